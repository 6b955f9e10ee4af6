"""Contact points on rolling surfaces, recomputed in every substep.

The broad phase and the narrow phase run only once per step, but the contact point moves over a rolling surface. When
the code recomputes a point, the impulses and slips do not change in the world frame.
"""

from __future__ import annotations

import numpy as np

from gpusim.description.contact_fields import POINTS
from gpusim.reference.collide.ground import CONE
from gpusim.reference.collide.pairs import find_all_manifolds, runs
from gpusim.reference.contacts import broad_phase
from gpusim.reference.contacts.narrow_phase import FoundManifolds
from gpusim.reference.contacts.seams import SEAM_CORRECTED, SEAM_DROPPED, face_normal, verdict
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


def _past_seam(w: StepBuffers, world: int, pair: Array, met: FoundManifolds, i: int) -> bool:
    """Return whether neighbor tiles cover all contact points of pair ``i`` (seams.py)."""
    for side, sign in ((0, 1.0), (1, -1.0)):
        tile = int(pair[side])
        if w.model.contact.seams[tile]:
            turn = w.rotation[world, w.model.contact.body[tile]]
            n = sign * (turn.T @ met.normal[i])
            points = met.anchor[i, : met.count[i], 3 * side : 3 * side + 3]
            found = verdict(w, tile, points, n)
            if found == SEAM_DROPPED:
                return True
            if found == SEAM_CORRECTED:
                met.normal[i] = sign * (turn @ face_normal(w, tile, points, n))
    return False


def _choose(met: FoundManifolds, world: Array, pair: Array, points: Array, normal: Array) -> None:
    """Replace each stored manifold by the new manifold of its pair with the nearest normal, or remove it."""
    source = np.arange(world.size)
    none = points == 0
    for first, most in runs(world, pair):
        if most == 1:
            continue
        places = slice(first, first + most)
        near = np.where(met.count[places] > 0, normal[places] @ met.normal[places].T, -np.inf)
        source[places] = first + np.argmax(near, axis=1)
        if np.count_nonzero(points[places]) > 1:
            none[places] |= near.max(axis=1) < CONE
    met.take(source)
    met.count[none] = 0


def follow(w: StepBuffers) -> None:
    """Update normals and contact points of pairs with a rolling surface.

    Stage prepare_contacts calls ``follow`` first.
    """
    c, state, shapes = w.contacts, w.state.arrays, w.model.contact
    assert c is not None
    if not shapes.rolls.any() or not (c.substep > 0).any():
        return
    # Pairs with several manifolds include entries without points, so that the narrow phase can fill all entries.
    several = (shapes.manifolds[state["pair_shapes"]] > 1).any(axis=-1)
    listed = (state["pair_points"] > 0) | several
    listed &= np.arange(c.num_pairs) < state["pair_count"][:, None]
    world, place = np.nonzero(listed & shapes.rolls[state["pair_shapes"]].any(axis=-1))
    if not world.size:
        return
    broad_phase.pose_shapes(w, c)
    pair, guess = state["pair_shapes"][world, place], state["pair_guess"][world, place]
    margin = c.shape_margin[world, pair[:, 0]] + c.shape_margin[world, pair[:, 1]]
    met = FoundManifolds(world.size)
    find_all_manifolds(c.shapes, c.shape_position, c.shape_rotation, world, pair, margin, guess, *met.arrays)
    _choose(met, world, pair, state["pair_points"][world, place], state["pair_normal"][world, place])
    state["pair_guess"][world, place] = guess
    for side in (0, 1):
        met.keep_anchors(w, world, pair[:, side], side)
    # If the contact has ended, or the point has passed a seam, keep the old point until the end of the step.
    kept = [not _past_seam(w, int(world[i]), pair[i], met, int(i)) for i in np.flatnonzero(met.count)]
    at = np.flatnonzero(met.count)[np.array(kept, dtype=bool)]
    world, place = world[at], place[at]
    c.pair_bend[world, place] = met.normal[at] - state["pair_normal"][world, place]
    state["pair_normal"][world, place] = met.normal[at]
    here, there = np.arange(POINTS)[:, None], np.arange(POINTS)
    feature, points = state["contact_feature"][world, place], state["pair_points"][world, place]
    same = feature[:, :, None] == met.feature[at][:, None, :]
    same &= (here < points[:, None, None]) & (there < met.count[at][:, None, None])
    n, k = np.nonzero(same.any(axis=2))
    state["contact_anchor"][world[n], place[n], k] = met.anchor[at[n], np.argmax(same[n, k], axis=1)]
