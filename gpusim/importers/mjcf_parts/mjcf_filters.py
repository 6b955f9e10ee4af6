"""Collision filters of the MJCF importer, and the friction of geom pairs.

Geoms with the same collision partners form one named collision group. MuJoCo's rules for parent and child bodies,
<exclude> and <pair> become rules for pairs of shapes.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.compiler.adjacent_bodies import adjacent_bodies
from gpusim.contact.material import Material, combine
from gpusim.description.specs import WORLD
from gpusim.importers.mjcf_parts.mjcf_context import Context
from gpusim.importers.mjcf_parts.mjcf_shapes import colliding_geoms, effective_friction
from gpusim.typing import Array

MAX_GROUPS = 30
"""Maximum number of named collision groups in a builder."""


class Filters:
    """Collision groups of the geoms of one model.

    Attributes:
        geoms: geoms that may collide.
        number: geom -> index of its collision group.
        collides: bool matrix. ``collides[i, k]`` is True if the groups i and k collide.
        pairs_only: bool for each group, True if its geoms have contype = conaffinity = 0. Such geoms collide only if a
            <pair> lists them.
        named: True if the collision groups get names (at most ``MAX_GROUPS`` groups). If False, each pair of geoms gets
            a separate collision rule.
    """

    def __init__(self, context: Context):
        self.context, m = context, context.m
        self.geoms = colliding_geoms(context)
        bodies = [context.placements[int(m.geom_bodyid[g])][0] for g in self.geoms]
        is_static = [b == WORLD or context.builder.bodies[b].kinematic for b in bodies]
        keys = [
            (int(m.geom_contype[g]), int(m.geom_conaffinity[g]), s) for g, s in zip(self.geoms, is_static, strict=True)
        ]
        kinds = sorted(set(keys))
        table = [[self._groups_collide(one, two) for two in kinds] for one in kinds]
        signatures: list[tuple[list[bool], bool]] = []  # geoms that collide with the same geoms share one group
        group: dict[tuple[int, int, bool], int] = {}
        for kind, row in zip(kinds, table, strict=True):
            signature = (row, not (kind[0] or kind[1]))
            if signature not in signatures:
                signatures.append(signature)
            group[kind] = signatures.index(signature)
        self.number = {g: group[key] for g, key in zip(self.geoms, keys, strict=True)}
        first = [next(i for i, kind in enumerate(kinds) if group[kind] == n) for n in range(len(signatures))]
        self.collides = np.array([[table[i][k] for k in first] for i in first], bool).reshape(len(first), len(first))
        self.pairs_only = np.array([bare for _, bare in signatures], bool)
        self.named = len(signatures) <= MAX_GROUPS

    def _groups_collide(self, one: tuple[int, int, bool], two: tuple[int, int, bool]) -> bool:
        """Return whether two groups of geoms collide."""
        self_collisions = self.context.options.self_collisions
        if self_collisions is not None and not one[2] and not two[2]:
            return self_collisions and bool(one[0] or one[1]) and bool(two[0] or two[1])
        return bool(one[0] & two[1] or two[0] & one[1])

    def group_of(self, g: int) -> str:
        """Return the name of the collision group that contains a geom."""
        return self._name(self.number[g]) if self.named else self.context.report.robot_name

    def _name(self, number: int) -> str:
        return f"{self.context.report.robot_name}_{number}"

    def write(self) -> None:
        """Write the collision rules to the builder."""
        builder = self.context.builder
        used = sorted({self.number[g] for g in self.context.shapes}) if self.named else []
        for i in used:
            if self.pairs_only[i]:
                builder.set_group_collision(self._name(i), None, False)
            for k in used:
                if k >= i and not self.collides[i, k]:
                    builder.set_group_collision(self._name(i), self._name(k), False)
        geoms = [g for g in self.geoms if g in self.context.shapes]
        if len(geoms) > 1:
            self._write_pairs(geoms)

    def _write_pairs(self, geoms: list[int]) -> None:
        context, builder = self.context, self.context.builder
        index = [context.shapes[g] for g in geoms]
        bodies = np.array([builder.shapes[s].body for s in index])
        is_static = np.array([b == WORLD or builder.bodies[b].kinematic for b in bodies.tolist()])
        number = np.array([self.number[g] for g in geoms])
        by_bits = self.collides[np.ix_(number, number)]
        possible = np.triu((bodies[:, None] != bodies[None, :]) & ~(is_static[:, None] & is_static[None, :]), 1)
        should_collide = by_bits & ~self._filtered_mask(geoms)
        listed = self._listed_pairs(geoms)
        needs_material = self._custom_friction_mask(geoms)
        for pair in listed:
            should_collide[pair] = needs_material[pair] = True
        default = ~_adjacent_mask(builder, bodies)
        if self.named:
            default &= by_bits
        for i, k in np.argwhere(possible & should_collide & (needs_material | ~default)).tolist():
            material = self._material(geoms[i], geoms[k], listed.get((i, k))) if needs_material[i, k] else None
            for a, b in product(context.parts[geoms[i]], context.parts[geoms[k]]):
                builder.add_collision_pair(a, b, material=material)
        for i, k in np.argwhere(possible & default & ~should_collide).tolist():
            for a, b in product(context.parts[geoms[i]], context.parts[geoms[k]]):
                builder.exclude_collision_pair(a, b)

    def _material(self, a: int, b: int, pair: int | None) -> Material:
        m = self.context.m
        if pair is None:
            slide, spin, roll = self._pair_friction(a, b)
        else:
            mu = m.pair_friction[pair]
            slide, spin, roll = effective_friction(m.pair_dim[pair], (mu[0], mu[2], mu[3]))
            if mu[0] != mu[1] or mu[3] != mu[4]:
                what = "friction that differs between two directions"
                self.context.losses.add("contact", "pair", f"{self.context.name('GEOM', a)}/{b}", what, "the first one")
        return Material(friction=slide, spinning_friction=spin, rolling_friction=roll)

    def _filtered_mask(self, geoms: list[int]) -> Array:
        """Return a mask (geoms, geoms): True if MuJoCo excludes the pair of geoms."""
        m = self.context.m
        body = np.array([int(m.geom_bodyid[g]) for g in geoms])
        weld = np.array(m.body_weldid)
        parent_weld = np.array([weld[m.body_parentid[w]] for w in weld])
        weld_id, parent_id = weld[body], parent_weld[body]
        mask = weld_id[:, None] == weld_id[None, :]
        if not self.context.is_disabled("FILTERPARENT"):
            related = (parent_id[:, None] == weld_id[None, :]) | (weld_id[:, None] == parent_id[None, :])
            mask |= related & (weld_id[:, None] > 0) & (weld_id[None, :] > 0)
        excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in m.exclude_signature}
        for a, b in excluded:
            one, two = np.flatnonzero(body == a), np.flatnonzero(body == b)
            mask[np.ix_(one, two)] = mask[np.ix_(two, one)] = True
        return mask

    def _listed_pairs(self, geoms: list[int]) -> dict[tuple[int, int], int]:
        """Return the geom pairs that <pair> elements of the file define.

        Returns:
            A dict: (i, k) -> index of the <pair> in the file. i and k are indices into ``geoms``, with i < k.
        """
        m, position, pairs = self.context.m, {g: i for i, g in enumerate(geoms)}, {}
        for p in range(m.npair):
            one, two = int(m.pair_geom1[p]), int(m.pair_geom2[p])
            if one in position and two in position:
                i, k = sorted((position[one], position[two]))
                pairs[i, k] = p
        return pairs

    def _pair_friction(self, a: int, b: int) -> tuple[float, float, float]:
        """Return the friction that MuJoCo computes for a geom pair from the friction of both geoms."""
        m = self.context.m
        if m.geom_priority[a] != m.geom_priority[b]:
            g = max(a, b, key=lambda x: int(m.geom_priority[x]))
            return effective_friction(m.geom_condim[g], m.geom_friction[g])
        dimension = max(int(m.geom_condim[a]), int(m.geom_condim[b]))
        return effective_friction(dimension, np.maximum(m.geom_friction[a], m.geom_friction[b]))

    def _custom_friction_mask(self, geoms: list[int]) -> Array:
        """Return a mask (geoms, geoms): True if gpusim and MuJoCo compute different friction for the pair."""
        m, shapes = self.context.m, self.context.builder.shapes
        kinds: dict[tuple[float, ...], int] = {}
        number = np.array(
            [kinds.setdefault((*m.geom_friction[g], m.geom_condim[g], m.geom_priority[g]), len(kinds)) for g in geoms]
        )
        first = [geoms[int(np.flatnonzero(number == n)[0])] for n in range(len(kinds))]
        table = np.zeros((len(kinds), len(kinds)), bool)
        for i, a in enumerate(first):
            for k, b in enumerate(first):
                pair = combine(shapes[self.context.shapes[a]].material, shapes[self.context.shapes[b]].material)
                ours = (pair.friction, pair.spinning_friction, pair.rolling_friction)
                table[i, k] = not np.allclose(ours, self._pair_friction(a, b), rtol=1e-12, atol=0.0)
        return table[np.ix_(number, number)]


def _adjacent_mask(builder: ModelBuilder, bodies: Array) -> Array:
    """Return a mask (shapes, shapes): True if the shapes do not collide because a joint connects their bodies."""
    mask = np.zeros((bodies.size, bodies.size), bool)
    indices = {int(b): np.flatnonzero(bodies == b) for b in set(bodies.tolist())}
    for a, b in adjacent_bodies(builder.joints, {b for b in indices if b >= 0}):
        if a in indices and b in indices:
            mask[np.ix_(indices[a], indices[b])] = mask[np.ix_(indices[b], indices[a])] = True
    return mask
