"""Contact points on rolling surfaces, recomputed in every substep.

The broad phase and the narrow phase run only once per step, but the contact point of a rolling surface moves in every
substep. The recomputed point keeps its impulse and slip in the world frame.
"""

from __future__ import annotations

import numpy as np

from gpusim.description.contact_fields import POINTS
from gpusim.reference.collide.ground import CONE
from gpusim.reference.collide.pairs import find_all_manifolds, runs
from gpusim.reference.contacts import broad_phase
from gpusim.reference.contacts.narrow_phase import NarrowPhaseResult
from gpusim.reference.contacts.seams import SEAM_CORRECTED, SEAM_DROPPED, face_normal, verdict
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def _past_seam(w: StepBuffers, world: int, pair: Array, new: NarrowPhaseResult, i: int) -> bool:
    """Return whether neighbor tiles cover all contact points of manifold ``i`` (seams.py explains tiles)."""
    for side, sign in ((0, 1.0), (1, -1.0)):
        tile = int(pair[side])
        if w.model.contact.seams[tile]:
            rotation = w.rotation[world, w.model.contact.body[tile]]
            n = sign * (rotation.T @ new.normal[i])
            points = new.anchor[i, : new.count[i], 3 * side : 3 * side + 3]
            result = verdict(w, tile, points, n)
            if result == SEAM_DROPPED:
                return True
            if result == SEAM_CORRECTED:
                new.normal[i] = sign * (rotation @ face_normal(w, tile, points, n))
    return False


def _choose(new: NarrowPhaseResult, world: Array, pair: Array, points: Array, normal: Array) -> None:
    """Select for each stored manifold the new manifold with the nearest normal. Remove entries without a match."""
    source = np.arange(world.size)
    none = points == 0
    for first, count in runs(world, pair):
        if count == 1:
            continue
        slots = slice(first, first + count)
        near = np.where(new.count[slots] > 0, normal[slots] @ new.normal[slots].T, -np.inf)
        source[slots] = first + np.argmax(near, axis=1)
        if np.count_nonzero(points[slots]) > 1:
            none[slots] |= near.max(axis=1) < CONE
    new.take(source)
    new.count[none] = 0


def follow(w: StepBuffers) -> None:
    """Update the normals and contact points of pairs with a rolling surface, at the start of stage prepare_contacts."""
    c, state, shapes = w.contacts, w.state.arrays, w.model.contact
    assert c is not None
    if not shapes.rolls.any() or not (c.substep > 0).any():
        return
    # Pairs with several manifolds include entries without points, so that the narrow phase can fill all entries.
    several = (shapes.manifolds[state["pair_shapes"]] > 1).any(axis=-1)
    listed = (state["pair_points"] > 0) | several
    listed &= np.arange(c.num_pairs) < state["pair_count"][:, None]
    world, slot = np.nonzero(listed & shapes.rolls[state["pair_shapes"]].any(axis=-1))
    if not world.size:
        return
    broad_phase.pose_shapes(w, c)
    pair, guess = state["pair_shapes"][world, slot], state["pair_guess"][world, slot]
    margin = c.shape_margin[world, pair[:, 0]] + c.shape_margin[world, pair[:, 1]]
    new = NarrowPhaseResult(world.size)
    find_all_manifolds(c.shapes, c.shape_position, c.shape_rotation, world, pair, margin, guess, *new.arrays)
    _choose(new, world, pair, state["pair_points"][world, slot], state["pair_normal"][world, slot])
    state["pair_guess"][world, slot] = guess
    for side in (0, 1):
        new.keep_anchors(w, world, pair[:, side], side)
    # If the contact has ended, or the point has passed a seam, keep the old point until the end of the step.
    valid = [not _past_seam(w, int(world[i]), pair[i], new, int(i)) for i in np.flatnonzero(new.count)]
    at = np.flatnonzero(new.count)[np.array(valid, dtype=bool)]
    world, slot = world[at], slot[at]
    c.pair_bend[world, slot] = new.normal[at] - state["pair_normal"][world, slot]
    state["pair_normal"][world, slot] = new.normal[at]
    here, there = np.arange(POINTS)[:, None], np.arange(POINTS)
    feature, points = state["contact_feature"][world, slot], state["pair_points"][world, slot]
    same = feature[:, :, None] == new.feature[at][:, None, :]
    same &= (here < points[:, None, None]) & (there < new.count[at][:, None, None])
    n, k = np.nonzero(same.any(axis=2))
    state["contact_anchor"][world[n], slot[n], k] = new.anchor[at[n], np.argmax(same[n, k], axis=1)]
