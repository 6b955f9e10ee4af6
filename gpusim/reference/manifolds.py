"""Manifolds of a substep as flat lists over all worlds, in the order in which sweeps take them.

A *list* is what one sweep solves at once: the overflow of all worlds, then one color after another. The articulated
ones of the direct solver follow one by one, the n-th of every world together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gpusim.contact.constants import ARTICULATED, NEW_AGE, NEW_PASSES, OVERFLOW, POINT_PASSES
from gpusim.model import contact_fields as at
from gpusim.reference.work import Work
from gpusim.typing import Array


@dataclass
class Manifolds:
    """n manifolds: arrays (n, ...), of which a list of a sweep has slices.

    ``record`` holds everything that lives on in ``ContactWork.manifold``; its parts are properties, all of them views.
    The frame is (normal, tangent, tangent), wrenches (force, torque) are about the middle of the manifold.
    """

    world: Array
    pair: Array
    place: Array
    """(n,) places of the records."""
    shape: Array
    """(n, 2) shapes A and B."""
    body: Array
    """(n, 2) their bodies."""
    moves: Array
    """(n, 2) True for bodies that impulses move."""
    inverse_mass: Array
    inertia_inverse_effective: Array
    """(n, 2, 3, 3) inverse inertias, world frame."""
    points: Array
    """(n,) 1 to 4."""
    passes: Array
    """(n,) how often the points are solved in turn in each sweep."""
    law: Array
    """(n, 8) numbers of the contact law."""
    record: Array
    lever: Array
    """(n, 4, 6, 3): wrench of a unit impulse along each axis of the frame at each point."""
    moved: Array
    """(n, 4, 6, 3): relative twist that these wrenches bring."""

    @property
    def frame(self) -> Array:
        """(n, 3, 3), rows normal and tangents from A to B, world frame."""
        return self.record[:, at.FRAME : at.ARM].reshape(-1, 3, 3)

    @property
    def arm(self) -> Array:
        """(n, 2, 3) from each center of mass to the middle of the manifold, m."""
        return self.record[:, at.ARM : at.RESPONSE].reshape(-1, 2, 3)

    @property
    def response(self) -> Array:
        """(n, 6, 6) relative twist by wrench."""
        return self.record[:, at.RESPONSE : at.FRICTION].reshape(-1, 6, 6)

    @property
    def material(self) -> Array:
        """(n, 4) friction, rolling and spinning friction, restitution."""
        return self.record[:, at.FRICTION : at.PATCH]

    @property
    def torque(self) -> Array:
        """(n, 3) impulses of spinning and rolling friction along the frame, N m s."""
        return self.record[:, at.TORQUE : at.SHEAR]

    @property
    def shear(self) -> Array:
        """(n, 2) friction impulse of a patch along the tangents, N s."""
        return self.record[:, at.SHEAR : at.BODIES]

    @property
    def point(self) -> Array:
        """(n, 4, POINT) records of the points."""
        return self.record[:, at.FIRST_POINT :].reshape(-1, at.POINTS, at.POINT)

    @property
    def exists(self) -> Array:
        """(n, 4) True for points."""
        return np.arange(at.POINTS) < self.points[:, None]

    @property
    def soft(self) -> Array:
        """(n,) True where a law gives the normal force."""
        return self.law[:, 0] > 0.0

    def part(self, where: slice | Array) -> Manifolds:
        """Some of them: views of a slice, copies of a mask."""
        return Manifolds(*(getattr(self, f.name)[where] for f in fields(self)))


@dataclass
class ContactRows:
    """All manifolds of a substep, and as lists for sweeps."""

    all: Manifolds
    lists: list[Manifolds]
    articulated: list[Manifolds]
    overflow: bool
    """The first list is the overflow, whose changes are summed over each body."""
    touching: Array
    """(num_worlds,) True where a manifold has points."""

    def keep(self, w: Work) -> None:
        """Write the records to the work arrays."""
        assert w.contacts is not None
        w.contacts.manifold[self.all.world, self.all.place] = self.all.record


def gather(w: Work) -> ContactRows | None:
    """The manifolds of all worlds, with their records as they were left; None where nothing touches."""
    c, s, t = w.contacts, w.state.arrays, w.model.contact
    assert c is not None
    world, pair = np.nonzero((s["pair_points"] > 0) & (np.arange(c.num_pairs) < s["pair_count"][:, None]))
    if not world.size:
        return None
    turn = _turns(c.manifold_color[world, pair], world, w.config.max_colors)
    order = np.lexsort((pair, world, -s["pair_points"][world, pair], turn))
    world, pair, turn = world[order], pair[order], turn[order]
    shape = s["pair_shapes"][world, pair]
    body, who = t.body[shape], world[:, None]
    points = s["pair_points"][world, pair]
    inverse_mass = w.broadcast(w.inverse_mass)[who, body]
    age = np.where(np.arange(at.POINTS) < points[:, None], s["contact_age"][world, pair], NEW_AGE).min(axis=1)
    # New points have nothing to start from, so they are solved in turn more often.
    passes = np.where(points == 1, 1, np.where(age < NEW_AGE, NEW_PASSES, POINT_PASSES))
    place = c.record_place[world, pair]
    flat = Manifolds(
        world=world,
        pair=pair,
        place=place,
        shape=shape,
        body=body,
        moves=w.topology.dynamic[body],
        inverse_mass=inverse_mass,
        inertia_inverse_effective=w.inertia_inverse_effective[who, body],
        points=points,
        passes=passes,
        law=w.pair_tables.law(shape[:, 0], shape[:, 1]),
        record=c.manifold[world, place],
        lever=np.zeros((world.size, at.POINTS, 6, 3), w.real),
        moved=np.zeros((world.size, at.POINTS, 6, 3), w.real),
    )
    edge = np.flatnonzero(np.diff(turn, prepend=turn[0] - 1, append=turn[-1] + 1))
    parts = [flat.part(slice(a, b)) for a, b in zip(edge[:-1], edge[1:], strict=True)]
    colors = int(np.count_nonzero(turn[edge[:-1]] < w.config.max_colors))
    touching = np.zeros(w.num_worlds, bool)
    touching[world] = True
    return ContactRows(flat, parts[:colors], parts[colors:], bool(turn[0] == OVERFLOW), touching)


def _turns(color: Array, world: Array, max_colors: int) -> Array:
    """When manifolds (sorted by world) have their turn: -1 the overflow, colors, then articulated ones by number."""
    turn = color.astype(np.int64)
    articulated = np.flatnonzero(color == ARTICULATED)
    number = np.arange(articulated.size) - np.searchsorted(world[articulated], world[articulated])
    turn[articulated] = max_colors + number
    return turn
