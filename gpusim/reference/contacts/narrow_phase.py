"""Stage narrow_phase: find the contact points of close pairs, and match them with the points of the previous step.

A new contact point gets the impulse, slip and moment arms of the previous point with the same shape pair and feature
number. The solver uses these values to warm start and to prevent creep of resting contacts.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.contact.constants import FLIGHT
from gpusim.description.contact_fields import POINTS
from gpusim.reference.collide.pairs import find_all_manifolds, runs
from gpusim.reference.contact_work import ContactWork
from gpusim.reference.contacts.contact_tire import tire_pairs
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def keep_pairs(w: StepBuffers) -> None:
    """Save the pairs and contact points of the previous step."""
    c, state = w.contacts, w.state.arrays
    assert c is not None
    c.before_count[:] = state["pair_count"]
    for name, array in c.arrays.items():
        if name.startswith("before_") and name != "before_count":
            array[:] = state[name.removeprefix("before_")]


_OF_POINTS = (
    "pair_normal", "pair_force", "pair_torque", "contact_feature", "contact_anchor", "contact_mode", "contact_age",
    "contact_impulse", "contact_slip", "contact_arm",
)  # fmt: skip


def find_manifolds(w: StepBuffers) -> None:
    """Find the contact points of every pair, match new and previous points, and store the new points in the state."""
    c, state = w.contacts, w.state.arrays
    assert c is not None
    state["pair_points"][:] = 0
    world, slot = np.nonzero(np.arange(c.num_pairs) < state["pair_count"][:, None])
    if not world.size:
        return
    pair = state["pair_shapes"][world, slot]
    old = pairs_before(c, w.model.contact.num_shapes, world, pair)
    guess = np.where((old >= 0)[:, None], c.before_pair_guess[world, old], 0.0)
    margin = c.shape_margin[world, pair[:, 0]] + c.shape_margin[world, pair[:, 1]]
    new = NarrowPhaseResult(world.size)
    find_all_manifolds(c.shapes, c.shape_position, c.shape_rotation, world, pair, margin, guess, *new.arrays)
    new.take(_match_manifolds(c, new, world, pair, old))
    state["pair_guess"][world, slot] = guess
    state["pair_points"][world, slot] = new.count
    for side in (0, 1):
        new.keep_anchors(w, world, pair[:, side], side)
    for name in _OF_POINTS:
        state[name][world, slot] = 0
    touching = np.flatnonzero(new.count)
    match_pairs(w, c, world[touching], slot[touching], old[touching], new.normal[touching])
    n, k = np.nonzero(np.arange(POINTS) < new.count[:, None])
    at = world[n], slot[n], k
    state["contact_feature"][at] = new.feature[n, k]
    state["contact_anchor"][at] = new.anchor[n, k]
    match_points(w, c, at, old[n])


class NarrowPhaseResult:
    """Contact points that the narrow phase found for a list of pairs."""

    def __init__(self, pairs: int) -> None:
        self.count = np.zeros(pairs, np.int32)
        self.normal = np.zeros((pairs, 3))
        self.points = np.zeros((2, pairs, POINTS, 3))
        self.feature = np.zeros((pairs, POINTS), np.int64)
        self.anchor = np.zeros((pairs, POINTS, 6))

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Return the output arrays of ``find_all_manifolds``."""
        return (self.count, self.normal, self.points[0], self.points[1], self.feature)

    def take(self, source: Array) -> None:
        """Reorder the manifolds: entry i becomes the manifold of entry ``source[i]``."""
        self.count, self.normal, self.feature = self.count[source], self.normal[source], self.feature[source]
        self.points = self.points[:, source]

    def keep_anchors(self, w: StepBuffers, world: Array, shape: Array, side: int) -> None:
        """Store the contact points relative to the body's center of mass.

        The vectors are in the body frame, or in the world frame for rolling surfaces.
        """
        shapes = w.model.contact
        b = shapes.body[shape]
        arm = self.points[side] - w.state.arrays["position"][world, b][:, None]
        local = rotations.matvec(w.rotation[world, b].swapaxes(-1, -2)[:, None], arm)
        self.anchor[..., 3 * side : 3 * side + 3] = np.where(shapes.rolls[shape][:, None, None], arm, local)


def pairs_before(c: ContactWork, num_shapes: int, world: Array, pair: Array) -> Array:
    """Return the index of each pair in the pair list of the last step, or -1 for a new pair.

    If a pair has several entries, the function matches the new and old entries in order.
    """
    old_world, old_slot = np.nonzero(np.arange(c.num_pairs) < c.before_count[:, None])
    if not old_world.size:
        return np.full(world.size, -1)

    def key(world: Array, pair: Array) -> Array:
        number: Array = (world * num_shapes + pair[:, 0]) * num_shapes + pair[:, 1]
        return number

    known, keys = key(old_world, c.before_pair_shapes[old_world, old_slot]), key(world, pair)
    first = np.searchsorted(keys, keys)
    at = np.minimum(np.searchsorted(known, keys) + np.arange(keys.size) - first, known.size - 1)
    return np.where(known[at] == keys, old_slot[at], -1)


def _match_manifolds(c: ContactWork, new: NarrowPhaseResult, world: Array, pair: Array, old: Array) -> Array:
    """Match previous and new manifolds of each pair. Return the indices of the new manifolds, (n,)."""
    source = np.arange(world.size)
    for first, count in runs(world, pair):
        if count == 1:
            continue
        slots, k = np.arange(first, first + count), world[first]
        found = np.count_nonzero(new.count[slots])
        had = (old[slots] >= 0) & (c.before_pair_points[k, old[slots]] > 0)
        near = new.normal[slots[:found]] @ c.before_pair_normal[k, old[slots]].T
        near[:, ~had] = -np.inf
        taken = np.full(count, -1)
        free = list(range(found))
        while free and np.isfinite(near).any():
            i, j = np.unravel_index(np.argmax(near), near.shape)
            taken[j] = i
            free.remove(int(i))
            near[i], near[:, j] = -np.inf, -np.inf
        empty = np.flatnonzero(taken < 0)
        taken[empty] = [*free, *range(found, count)]
        source[slots] = first + taken
    return source


def match_pairs(w: StepBuffers, c: ContactWork, world: Array, slot: Array, old: Array, normal: Array) -> None:
    """Copy the pair data of the previous step to matching pairs, and store the changes of the contact normals."""
    state, at = w.state.arrays, (world, slot)
    matched = ((old >= 0) & (c.before_pair_points[world, old] > 0))[:, None]
    c.pair_bend[at] = np.where(matched, normal - c.before_pair_normal[world, old], 0.0)
    state["pair_normal"][at] = normal
    state["pair_force"][at] = np.where(matched, c.before_pair_force[world, old], 0.0)
    state["pair_torque"][at] = np.where(matched, c.before_pair_torque[world, old], 0.0)


def match_points(w: StepBuffers, c: ContactWork, at: tuple[Array, Array, Array], old: Array) -> None:
    """Copy the data of matching contact points from the previous step."""
    state, world = w.state.arrays, at[0]
    existed = (np.arange(POINTS) < c.before_pair_points[world, old][:, None]) & (old >= 0)[:, None]
    same = existed & (c.before_contact_feature[world, old] == state["contact_feature"][at][:, None])
    rolls: Array = w.model.contact.rolls[state["pair_shapes"][at[:2]]]
    near: Array = np.where(rolls.any(axis=1, keepdims=True), _nearest(w, c, at, old, rolls, existed, same), same)
    continues: Array = np.asarray(np.any(same & near, axis=1))
    takes, near_one = np.asarray(near.any(axis=1)), (world, old, np.argmax(near, axis=1))
    state["contact_mode"][at] = FLIGHT
    state["contact_age"][at] = np.where(continues, c.before_contact_age[near_one], 0)
    for name, taken in (("contact_impulse", takes), ("contact_slip", takes), ("contact_arm", continues)):
        state[name][at] = np.where(taken[:, None], c.arrays[f"before_{name}"][near_one], 0.0)
    # The bristles of a tire keep their deflection at the seams of a surface.
    seam = ~takes & existed[:, 0] & tire_pairs(w, state["pair_shapes"][at[:2]])
    state["contact_slip"][at] = np.where(seam[:, None], c.before_contact_slip[world, old, 0], state["contact_slip"][at])


def _nearest(
    w: StepBuffers,
    c: ContactWork,
    at: tuple[Array, Array, Array],
    old: Array,
    rolls: Array,
    existed: Array,
    same: Array,
) -> Array:
    """Return a mask (n, 4) of the nearest previous contact point, for each of n points on rolling surfaces."""
    world, slot, k = at
    arm = w.state.arrays["contact_anchor"][world, slot].reshape(-1, POINTS, 1, 2, 3)
    before = c.arrays["before_contact_arm"][world, old].reshape(-1, 1, POINTS, 2, 3).astype(float)
    apart = arm - before
    squares = apart[..., 0] * apart[..., 0] + apart[..., 1] * apart[..., 1] + apart[..., 2] * apart[..., 2]
    far = np.where(rolls[:, 0, None, None], squares[..., 0], 0.0) + np.where(
        rolls[:, 1, None, None], squares[..., 1], 0.0
    )
    here = np.arange(POINTS) < w.state.arrays["pair_points"][world, slot][:, None]
    far = np.where(existed[:, None, :] & here[:, :, None], far, np.inf)
    n = np.arange(len(k))
    best = np.argmin(far[n, k], axis=1)
    back = np.argmin(far[n, :, best], axis=1)
    size = w.model.contact.size[w.state.arrays["pair_shapes"][world, slot], 0]
    squares_of = np.where(rolls, size * size, 0.0)
    neighbor = (far[n, k, best] <= squares_of[:, 0] + squares_of[:, 1])[:, None] | same
    return (np.arange(POINTS) == best[:, None]) & (back == k)[:, None] & existed[n, best][:, None] & neighbor
