"""Bounding boxes of shapes and contact points of shape pairs, in all worlds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.description.contact_fields import POINTS
from gpusim.reference.collide.ground import bounds, on_half_space, on_height_field
from gpusim.reference.collide.manifolds import Manifold, manifold
from gpusim.reference.collide.mesh_ground import on_triangle_mesh
from gpusim.reference.collide.separation import Pair, Posed, approach
from gpusim.reference.collide.shapes import UNBOUNDED, Box, Convex, HalfSpace, HeightField, Shape, TriangleMesh
from gpusim.typing import Array

Pose = tuple[Array, Array]
"""Center (3,) and rotation matrix (3, 3)."""
GRAZE, GRAZE_THIN = 5e-4, 0.02
"""Maximum overlap at which two boxes only graze. GRAZE is a fraction of the sum of the half extents of both boxes.
GRAZE_THIN is a fraction of the smallest half extent. The smaller overlap applies."""


def all_bounds(shapes: Sequence[Shape], position: Array, rotation: Array, lower: Array, upper: Array) -> None:
    """Write the bounding boxes of all shapes to ``lower`` and ``upper``, (worlds, shapes, 3)."""
    for i, shape in enumerate(shapes):
        center, matrix = position[:, i], rotation[:, i].reshape(-1, 3, 3)
        lower[:, i], upper[:, i] = shape_bounds(shape, center, matrix)


def shape_bounds(shape: Shape, center: Array, rotation: Array) -> tuple[Array, Array]:
    """Return the bounding boxes of one shape in n poses: lower and upper corners, (n, 3) each.

    ``center`` (n, 3) and ``rotation`` (n, 3, 3) are the poses of the shape.
    """
    if isinstance(shape, Convex):
        return bounds(shape, center, rotation)
    if isinstance(shape, HalfSpace):
        # A half space is bounded only if its normal is along an axis of the world.
        straight = np.abs(rotation[..., 2]).sum(axis=1, keepdims=True) == np.abs(rotation[..., 2])
        low = np.where(straight & (rotation[..., 2] < 0.0), center, -UNBOUNDED)
        return low, np.where(straight & (rotation[..., 2] > 0.0), center, UNBOUNDED)
    if isinstance(shape, TriangleMesh):
        middle = center + rotation @ (0.5 * (shape.lower + shape.upper))
        half_size = np.abs(rotation) @ (0.5 * (shape.upper - shape.lower))
        return middle - half_size, middle + half_size
    columns, rows, dx, dy, _, low, high = shape.size[:7]
    half = 0.5 * np.array([(columns - 1.0) * dx, (rows - 1.0) * dy, high - low])
    middle, half_size = center + rotation[..., 2] * (0.5 * (low + high)), np.abs(rotation) @ half
    return middle - half_size, middle + half_size


def find_manifold(a: Shape, pose_a: Pose, b: Shape, pose_b: Pose, margin: float, guess: Array) -> Manifold | None:
    """Return the contact manifold of two shapes. Return None for grazing boxes and for gaps above ``margin``.

    Args:
        a, b: shapes, at least one of them convex.
        pose_a, pose_b: world poses.
        margin: maximum gap of a contact point, m.
        guess: contact normal of the last step in the frame of A, (3,). The function stores the new normal in ``guess``.
            ``guess`` affects only the speed of the search.
    """
    return next(iter(find_manifolds(a, pose_a, b, pose_b, margin, guess, 1)), None)


def find_manifolds(
    a: Shape, pose_a: Pose, b: Shape, pose_b: Pose, margin: float, guess: Array, max_count: int
) -> list[Manifold]:
    """Return up to ``max_count`` manifolds, deepest first. Their normals differ by more than 10 degrees."""
    if not isinstance(b, Convex):
        return [x.swapped() for x in find_manifolds(b, pose_b, a, pose_a, margin, guess, max_count)]
    body = Posed(b, *pose_b)
    if isinstance(a, HeightField):
        return on_height_field(a, *pose_a, body, margin, max_count)
    if isinstance(a, TriangleMesh):
        return on_triangle_mesh(a, *pose_a, body, margin, max_count)
    if isinstance(a, HalfSpace):
        found = on_half_space(*pose_a, body, margin)
    else:
        found = _convex_manifold(a, pose_a, body, margin, guess)
    return [found] if found else []


def _convex_manifold(a: Convex, pose_a: Pose, body: Posed, margin: float, guess: Array) -> Manifold | None:
    pair = Pair(Posed(a, *pose_a), body)
    found, normal = approach(pair, margin, pose_a[1] @ guess)
    guess[:] = pose_a[1].T @ normal
    if found is None or grazes(pair):
        return None
    return manifold(pair, found, margin)


def grazes(pair: Pair) -> bool:
    """Return whether two boxes overlap only slightly along two box axes. Such grazing boxes get no contact.

    The angle between these two axes is more than 60 degrees.
    """
    a, b = pair.a.shape, pair.b.shape
    if not (isinstance(a, Box) and isinstance(b, Box)):
        return False
    limit = min(GRAZE * float(a.size[:3].sum() + b.size[:3].sum()), GRAZE_THIN * float(min(*a.size[:3], *b.size[:3])))
    axes = np.concatenate([pair.a.rotation.T, pair.b.rotation.T])
    gap = np.maximum(pair.separation(axes), pair.separation(-axes))
    if gap.max() < -limit:
        return False
    best = int(np.argmax(gap))
    crossing = np.abs(axes @ axes[best]) < 0.5
    return bool(np.any(crossing & (np.abs(gap) <= limit)))


def find_all_manifolds(
    shapes: Sequence[Shape],
    position: Array,
    rotation: Array,
    world: Array,
    pair: Array,
    margin: Array,
    guess: Array,
    count: Array,
    normal: Array,
    points_a: Array,
    points_b: Array,
    feature: Array,
) -> None:
    """Compute the contact points of n shape pairs.

    If ``pair`` lists the same two shapes k times, these shapes get up to k manifolds, the deepest first.

    Args:
        shapes: shapes of the model.
        position: (worlds, shapes, 3) positions of the shapes, m.
        rotation: (worlds, shapes, 9) rotation matrices of the shapes.
        world: (n,) index of each pair's world.
        pair: (n, 2) indices of the two shapes of each pair.
        margin: (n,) maximum gap of a contact point, m.
        guess: (n, 4) contact normals of the last step in the first 3 columns. The function stores the new normals in
            ``guess``.
        count: (n,) output: number of contact points of each pair.
        normal: (n, 3) output: unit normal from the first shape to the second, world frame.
        points_a: (n, 4, 3) output: points on the first shape, world frame, m.
        points_b: (n, 4, 3) output: points on the second shape, world frame, m.
        feature: (n, 4) output: feature number of each point.
    """
    assert points_a.shape[1] == POINTS
    count[:] = 0
    for first, max_count in runs(world, pair):
        w, (a, b) = world[first], pair[first]
        pose_a, pose_b = ((position[w, i], rotation[w, i].reshape(3, 3)) for i in (a, b))
        manifolds = find_manifolds(
            shapes[a], pose_a, shapes[b], pose_b, float(margin[first]), guess[first, :3], max_count
        )
        for n, found in enumerate(manifolds, start=first):
            count[n] = len(found.feature)
            k = slice(int(count[n]))
            normal[n], points_a[n, k], points_b[n, k], feature[n, k] = (
                found.normal, found.on_a, found.on_b, found.feature,
            )  # fmt: skip


def runs(world: Array, pair: Array) -> list[tuple[int, int]]:
    """Return the first index and the length of each run of equal consecutive pairs.

    ``world`` (n,) and ``pair`` (n, 2) contain the world and the shape indices of each pair.
    """
    keys = np.column_stack([world, pair])
    starts = np.flatnonzero(np.concatenate([[True], np.any(keys[1:] != keys[:-1], axis=1)]))
    return list(zip(starts.tolist(), np.diff(starts, append=len(keys)).tolist(), strict=True))
