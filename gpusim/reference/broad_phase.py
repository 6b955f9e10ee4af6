"""Stage broad_phase: which pairs of shapes are close, sorted by their numbers.

A pair is close where the boxes of its shapes overlap, each widened by half the margin and by what its body can move in
the step. Up to 64 shapes go through a list of all pairs that may touch. More of them are sorted along the axis on which
they lie farthest apart and swept; the kernels find the same pairs by a grid (cuda_kernels/broad_phase.cuh). A pair that
can have several manifolds is listed once for each. Where there are more close pairs than places, the first ones in the
sorted list are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpusim import rotations
from gpusim.model.contact_topology import ContactTopology
from gpusim.reference.collide.pairs import all_bounds
from gpusim.reference.collide.shapes import UNBOUNDED
from gpusim.reference.contact_work import ContactWork
from gpusim.reference.work import Work
from gpusim.typing import Array

# Pairs that a sweep looks at together, which bounds its memory.
_TOGETHER = 1 << 21


def search_pairs(w: Work, step_time: float) -> None:
    """Fill pair_shapes, pair_count and pair_start, and count the pairs that found no place."""
    c = w.contacts
    assert c is not None
    place_shapes(w, c, step_time)
    world, found = listed_pairs(w, c) if w.model.contact.candidates is not None else swept_pairs(w, c)
    _store(w, c, world, found)


def place_shapes(w: Work, c: ContactWork, step_time: float) -> None:
    """Poses of all shapes in the world and their widened boxes."""
    pose_shapes(w, c)
    all_bounds(c.shapes, c.shape_position, c.shape_rotation, c.shape_lower, c.shape_upper)
    c.shape_margin[:] = shape_margin(w, step_time)
    c.shape_lower[:] -= c.shape_margin[..., None]
    c.shape_upper[:] += c.shape_margin[..., None]


def pose_shapes(w: Work, c: ContactWork) -> None:
    """Poses of all shapes in the world."""
    shapes = w.model.contact
    rotation, turn = w.rotation[:, shapes.body], shapes.turn.reshape(-1, 3, 3)
    c.shape_position[:] = w.state.arrays["position"][:, shapes.body] + rotations.matvec(rotation, shapes.center)
    c.shape_rotation[:] = np.matmul(rotation, turn).reshape(*rotation.shape[:2], 9)


def shape_margin(w: Work, step_time: float) -> Array:
    """By how much the box of each shape is widened, m: half the margin and what the body moves, gravity included.

    Turning by omega moves no point of a shape faster than |omega| (|center| + radius), about the center of mass.
    """
    shapes, state = w.model.contact, w.state.arrays
    b = shapes.body
    momentum = state["angular_momentum"].astype(np.float64)
    rate = rotations.matvec(w.rotation.swapaxes(-1, -2), momentum)
    rate = rotations.matvec(w.inertia_inverse_body.astype(np.float64), rate)
    spin = rotations.norm(rate)[:, b]
    around = rotations.norm(shapes.center) + shapes.radius
    turning = spin * np.where(around < UNBOUNDED, around, 0.0)
    speed = rotations.norm(state["linear_velocity"].astype(np.float64))[:, b]
    fall = np.where(w.topology.dynamic[b], rotations.norm(w.parameters["gravity"])[:, None] * step_time, 0.0)
    reach: Array = 0.5 * w.config.contact_margin + step_time * (speed + turning + fall)
    return reach


def _overlap(lower_a: Array, upper_a: Array, lower_b: Array, upper_b: Array) -> Array:
    """Do boxes (..., 3) overlap? False where a number is NaN."""
    return np.all((lower_a <= upper_b) & (lower_b <= upper_a), axis=-1)


def listed_pairs(w: Work, c: ContactWork) -> tuple[Array, Array]:
    """Close pairs of all worlds among the candidates: world (n,) and shapes (n, 2), rising."""
    pairs = np.array([(a, b) for a, others in enumerate(w.model.contact.candidates or []) for b in others])
    a, b = pairs.T
    close = _overlap(c.shape_lower[:, a], c.shape_upper[:, a], c.shape_lower[:, b], c.shape_upper[:, b])
    world, n = np.nonzero(close)
    return world, pairs[n]


def swept_pairs(w: Work, c: ContactWork) -> tuple[Array, Array]:
    """Close pairs of all worlds by sweeps: world (n,) and shapes (n, 2), rising."""
    shapes = w.model.contact
    may_touch = PairFilter(shapes, w.topology.dynamic)
    lists = [sweep(c.shape_lower[k], c.shape_upper[k], shapes, may_touch) for k in range(w.num_worlds)]
    return np.repeat(np.arange(w.num_worlds), [len(found) for found in lists]), np.concatenate(lists)


class PairFilter:
    """Which pairs may touch at all: as model/contact_topology.py, for arrays of pairs a < b.

    Attributes:
        moves: (shapes,) True for shapes of bodies that impulses move.
    """

    def __init__(self, shapes: ContactTopology, dynamic: Array) -> None:
        self._shapes = shapes
        self.moves = dynamic[shapes.body]
        self._included, self._excluded = self._keys(shapes.included), self._keys(shapes.excluded)

    def _keys(self, lists: list[list[int]]) -> Array:
        """Numbers a * shapes + b of listed pairs, rising."""
        return np.array([a * len(lists) + b for a, others in enumerate(lists) for b in others], dtype=np.int64)

    def __call__(self, a: Array, b: Array) -> Array:
        """True where a pair may touch, (pairs,)."""
        s, key = self._shapes, a * self._shapes.num_shapes + b
        apart = (s.body[a] != s.body[b]) & (self.moves[a] | self.moves[b])
        grouped = ((s.group[a] & s.mask[b]) != 0) & ((s.group[b] & s.mask[a]) != 0)
        may: Array = apart & (np.isin(key, self._included) | (grouped & ~np.isin(key, self._excluded)))
        return may


def sweep(lower: Array, upper: Array, shapes: ContactTopology, may_touch: PairFilter) -> Array:
    """Close pairs of one world, (pairs, 2) rising; boxes (shapes, 3) in m.

    Along one axis a box overlaps those whose lower ends lie between its own ends.
    """
    axis = _widest_axis(0.5 * (lower + upper)[may_touch.moves])
    order = np.argsort(lower[:, axis], kind="stable")
    low, up = np.ascontiguousarray(lower[order].T), np.ascontiguousarray(upper[order].T)
    counts = np.maximum(np.searchsorted(low[axis], up[axis], side="right") - np.arange(1, order.size + 1), 0)
    found = []
    for i, j in _neighbors(counts):
        for k in range(3):
            near = (low[k, i] <= up[k, j]) & (low[k, j] <= up[k, i])
            i, j = i[near], j[near]
        a, b = np.minimum(order[i], order[j]), np.maximum(order[i], order[j])
        may = may_touch(a, b)
        places = np.maximum(shapes.manifolds[a[may]], shapes.manifolds[b[may]])
        found.append(np.stack((a[may], b[may]), axis=-1).repeat(places, axis=0))
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *found])
    rising: Array = pairs[np.argsort(pairs[:, 0] * shapes.num_shapes + pairs[:, 1])]
    return rising


def _widest_axis(center: Array) -> int:
    """Axis along which (n, 3) points spread most."""
    return int(np.argmax(np.var(center, axis=0))) if len(center) else 0


def _neighbors(counts: Array) -> Iterator[tuple[Array, Array]]:
    """Places (n, n + 1), (n, n + 2), ... up to n + counts[n] of every place n, some at a time."""
    part = np.cumsum(counts) // _TOGETHER
    for places in np.split(np.arange(counts.size), np.flatnonzero(np.diff(part)) + 1):
        own = counts[places]
        first = np.repeat(places, own)
        step = np.arange(first.size) - np.repeat(np.cumsum(own) - own, own)
        yield first, first + 1 + step


def _store(w: Work, c: ContactWork, world: Array, found: Array) -> None:
    """Put the close pairs of all worlds into their places; those that find none are counted."""
    state, shapes, worlds = w.state.arrays, w.model.contact.num_shapes, np.arange(w.num_worlds)[:, None]
    start = np.searchsorted(world * shapes + found[:, 0], worlds * shapes + np.arange(shapes + 1))
    c.pair_start[:] = start - start[:, :1]
    place = np.arange(world.size) - start[world, 0]
    kept = place < c.num_pairs
    state["pair_shapes"][world[kept], place[kept]] = found[kept]
    count = c.pair_start[:, -1]
    np.minimum(count, c.num_pairs, out=state["pair_count"])
    np.maximum(state["pair_peak"], count, out=state["pair_peak"])
    state["pair_overflow"] += np.maximum(count - c.num_pairs, 0)
    c.overflowed += int(np.count_nonzero(count > c.num_pairs))
