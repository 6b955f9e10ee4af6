"""Stage broad_phase: find the close pairs of shapes, in ascending order of their shape indices.

A pair is close if the bounding boxes of its shapes overlap. The stage enlarges each box by half the contact margin, and
by an upper bound of the body's motion in the step. With up to 64 shapes, the stage tests every pair that the collision
filter allows. With more shapes, the stage uses sweep and prune along the axis on which the shapes are spread widest.
The CUDA kernels use a grid for more than 64 shapes (cuda_kernels/contacts/broad_phase.cuh).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpusim import rotations
from gpusim.compiler.contact_topology import ContactTopology
from gpusim.reference.collide.pairs import all_bounds
from gpusim.reference.collide.shapes import UNBOUNDED
from gpusim.reference.contact_work import ContactWork
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

# Number of pairs that the sweep tests at once, to limit the memory.
_TOGETHER = 1 << 21


def search_pairs(w: StepBuffers, step_time: float) -> None:
    """Find the close pairs of all worlds, and write them to the pair buffer. Count buffer overflows."""
    c = w.contacts
    assert c is not None
    update_shapes(w, c, step_time)
    world, found = listed_pairs(w, c) if w.model.contact.candidates is not None else swept_pairs(w, c)
    _store(w, c, world, found)


def update_shapes(w: StepBuffers, c: ContactWork, step_time: float) -> None:
    """Compute the world poses and enlarged bounding boxes of all shapes."""
    pose_shapes(w, c)
    all_bounds(c.shapes, c.shape_position, c.shape_rotation, c.shape_lower, c.shape_upper)
    c.shape_margin[:] = shape_margin(w, step_time)
    c.shape_lower[:] -= c.shape_margin[..., None]
    c.shape_upper[:] += c.shape_margin[..., None]


def pose_shapes(w: StepBuffers, c: ContactWork) -> None:
    """Compute the world poses of all shapes."""
    shapes = w.model.contact
    rotation, shape_rotation = w.rotation[:, shapes.body], shapes.rotation.reshape(-1, 3, 3)
    c.shape_position[:] = w.state.arrays["position"][:, shapes.body] + rotations.matvec(rotation, shapes.center)
    c.shape_rotation[:] = np.matmul(rotation, shape_rotation).reshape(*rotation.shape[:2], 9)


def shape_margin(w: StepBuffers, step_time: float) -> Array:
    """Return the enlargement (m) of each bounding box: half the contact margin plus the motion of the body."""
    shapes, state = w.model.contact, w.state.arrays
    b = shapes.body
    momentum = state["angular_momentum"].astype(np.float64)
    rate = rotations.matvec(w.rotation.swapaxes(-1, -2), momentum)
    rate = rotations.matvec(w.inertia_inverse_body.astype(np.float64), rate)
    spin = rotations.norm(rate)[:, b]
    around = rotations.norm(shapes.center) + shapes.radius
    rotational_speed = spin * np.where(around < UNBOUNDED, around, 0.0)
    speed = rotations.norm(state["linear_velocity"].astype(np.float64))[:, b]
    acting = np.abs(w.parameters["gravity_scale"][:, b]) * rotations.norm(w.parameters["gravity"])[:, None]
    fall = np.where(w.topology.dynamic[b], acting * step_time, 0.0)
    widening: Array = 0.5 * w.config.contact_margin + step_time * (speed + rotational_speed + fall)
    return widening


def _overlap(lower_a: Array, upper_a: Array, lower_b: Array, upper_b: Array) -> Array:
    return np.all((lower_a <= upper_b) & (lower_b <= upper_a), axis=-1)


def listed_pairs(w: StepBuffers, c: ContactWork) -> tuple[Array, Array]:
    """Test every allowed pair. Return n close pairs in ascending order: worlds (n,), shapes (n, 2)."""
    pairs = np.array([(a, b) for a, others in enumerate(w.model.contact.candidates or []) for b in others])
    a, b = pairs.T
    close = _overlap(c.shape_lower[:, a], c.shape_upper[:, a], c.shape_lower[:, b], c.shape_upper[:, b])
    world, n = np.nonzero(close)
    return world, pairs[n]


def swept_pairs(w: StepBuffers, c: ContactWork) -> tuple[Array, Array]:
    """Find the close pairs by sweep and prune. Return n pairs in ascending order: worlds (n,), shapes (n, 2)."""
    shapes = w.model.contact
    may_touch = PairFilter(shapes, w.topology.dynamic)
    lists = [sweep(c.shape_lower[k], c.shape_upper[k], shapes, may_touch) for k in range(w.num_worlds)]
    return np.repeat(np.arange(w.num_worlds), [len(found) for found in lists]), np.concatenate(lists)


class PairFilter:
    """Collision filter for arrays of shape pairs a < b. compiler/contact_topology.py describes the rules.

    Attributes:
        moves: (shapes,) True for each shape of a dynamic body.
    """

    def __init__(self, shapes: ContactTopology, dynamic: Array) -> None:
        self._shapes = shapes
        self.moves = dynamic[shapes.body]
        self._included, self._excluded = self._keys(shapes.included), self._keys(shapes.excluded)

    def _keys(self, lists: list[list[int]]) -> Array:
        """Return the keys ``a * shapes + b`` of pairs (a, b), in ascending order."""
        return np.array([a * len(lists) + b for a, others in enumerate(lists) for b in others], dtype=np.int64)

    def __call__(self, a: Array, b: Array) -> Array:
        """Return whether the filter allows contacts of each pair, (pairs,)."""
        s, key = self._shapes, a * self._shapes.num_shapes + b
        apart = (s.body[a] != s.body[b]) & (self.moves[a] | self.moves[b])
        grouped = ((s.group[a] & s.mask[b]) != 0) & ((s.group[b] & s.mask[a]) != 0)
        may: Array = apart & (np.isin(key, self._included) | (grouped & ~np.isin(key, self._excluded)))
        return may


def sweep(lower: Array, upper: Array, shapes: ContactTopology, may_touch: PairFilter) -> Array:
    """Return the close pairs of one world in ascending order, (pairs, 2). Box corners are (shapes, 3), in m."""
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
        slots = np.maximum(shapes.manifolds[a[may]], shapes.manifolds[b[may]])
        found.append(np.stack((a[may], b[may]), axis=-1).repeat(slots, axis=0))
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *found])
    rising: Array = pairs[np.argsort(pairs[:, 0] * shapes.num_shapes + pairs[:, 1])]
    return rising


def _widest_axis(center: Array) -> int:
    return int(np.argmax(np.var(center, axis=0))) if len(center) else 0


def _neighbors(counts: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the index pairs (n, n + 1), ..., (n, n + counts[n]) of every n, in batches of about _TOGETHER pairs."""
    part = np.cumsum(counts) // _TOGETHER
    for indices in np.split(np.arange(counts.size), np.flatnonzero(np.diff(part)) + 1):
        lengths = counts[indices]
        first = np.repeat(indices, lengths)
        step = np.arange(first.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        yield first, first + 1 + step


def _store(w: StepBuffers, c: ContactWork, world: Array, found: Array) -> None:
    """Write the close pairs of all worlds to the pair buffer."""
    state, shapes, worlds = w.state.arrays, w.model.contact.num_shapes, np.arange(w.num_worlds)[:, None]
    start = np.searchsorted(world * shapes + found[:, 0], worlds * shapes + np.arange(shapes + 1))
    c.pair_start[:] = start - start[:, :1]
    slot = np.arange(world.size) - start[world, 0]
    fits = slot < c.num_pairs
    state["pair_shapes"][world[fits], slot[fits]] = found[fits]
    count = c.pair_start[:, -1]
    np.minimum(count, c.num_pairs, out=state["pair_count"])
    np.maximum(state["pair_peak"], count, out=state["pair_peak"])
    state["pair_overflow"] += np.maximum(count - c.num_pairs, 0)
    c.overflowed += int(np.count_nonzero(count > c.num_pairs))
