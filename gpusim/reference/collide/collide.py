"""Contact points of any pair of shapes: which routine serves which kinds; as cuda_kernels/collide/collide.cuh."""

from __future__ import annotations

from gpusim.reference.collide.boxes import box_box
from gpusim.reference.collide.compiled import inner, outer
from gpusim.reference.collide.convex import convex_convex
from gpusim.reference.collide.height_field import height_field_convex
from gpusim.reference.collide.planes import plane_convex
from gpusim.reference.collide.shape import (
    SHAPE_BOX,
    SHAPE_CAPSULE,
    SHAPE_CONE,
    SHAPE_CYLINDER,
    SHAPE_ELLIPSOID,
    SHAPE_HEIGHT_FIELD,
    SHAPE_PLANE,
    SHAPE_SPHERE,
    SHAPE_SUPERELLIPSOID,
    Shape,
)
from gpusim.reference.collide.smooth import smooth_smooth
from gpusim.reference.collide.spheres import (
    capsule_capsule,
    sphere_box,
    sphere_capsule,
    sphere_cone,
    sphere_cylinder,
    sphere_sphere,
)
from gpusim.typing import Array


@inner
def is_smooth(s: Shape) -> bool:
    """Whether the shape has one normal everywhere and curves everywhere."""
    return s.kind == SHAPE_SPHERE or s.kind == SHAPE_ELLIPSOID or s.kind == SHAPE_SUPERELLIPSOID


@inner
def collide_ordered(
    a: Shape, b: Shape, margin: float, guess: Array, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Sees a height field or else the lower kind first."""
    if a.kind == SHAPE_HEIGHT_FIELD:
        return height_field_convex(a, b, margin, normal, points_a, points_b, feature)
    if a.kind == SHAPE_PLANE:
        return plane_convex(a, b, margin, normal, points_a, points_b, feature)
    if a.kind == SHAPE_BOX and b.kind == SHAPE_BOX:
        return box_box(a, b, margin, normal, points_a, points_b, feature)
    if a.kind == SHAPE_CAPSULE and b.kind == SHAPE_CAPSULE:
        return capsule_capsule(a, b, margin, normal, points_a, points_b, feature)
    if a.kind == SHAPE_SPHERE:
        if b.kind == SHAPE_SPHERE:
            return sphere_sphere(a, b, margin, normal, points_a, points_b, feature)
        if b.kind == SHAPE_CAPSULE:
            return sphere_capsule(a, b, margin, normal, points_a, points_b, feature)
        if b.kind == SHAPE_BOX:
            return sphere_box(a, b, margin, normal, points_a, points_b, feature)
        if b.kind == SHAPE_CYLINDER:
            return sphere_cylinder(a, b, margin, normal, points_a, points_b, feature)
        if b.kind == SHAPE_CONE:
            return sphere_cone(a, b, margin, normal, points_a, points_b, feature)
    if is_smooth(a) and is_smooth(b):
        return smooth_smooth(a, b, margin, guess, normal, points_a, points_b, feature)
    return convex_convex(a, b, margin, guess, normal, points_a, points_b, feature)


@outer
def collide(
    a: Shape, b: Shape, margin: float, guess: Array, normal: Array, points_a: Array, points_b: Array, feature: Array
) -> int:
    """Contact points of any pair of shapes, in double precision and the world frame.

    Two planes, two height fields or one of each have none to find and must not be asked for. Of the manifolds with a
    height field this gives the deepest; ``height_field_manifolds`` gives more.

    Args:
        a: first shape.
        b: second shape.
        margin: points with a greater gap are left out, m.
        guess: (4,), zeros at first, kept for the pair from step to step: the normal in the frame of the shape of the
            lower kind and a spare. It only saves time.
        normal: (3,), filled: unit, from A to B.
        points_a: (4, 3), filled: points on A's surface, m, world frame.
        points_b: (4, 3), filled: points on B's; gap = normal . (b - a), below zero where the shapes overlap.
        feature: (4,) int64, filled: 0 .. 65535, stays from step to step, unique among the points.

    Returns:
        How many points; 0 where the shapes are farther apart than margin.
    """
    swapped = b.kind == SHAPE_HEIGHT_FIELD or (a.kind > b.kind and a.kind != SHAPE_HEIGHT_FIELD)
    first, second = (b, a) if swapped else (a, b)
    on_first, on_second = (points_b, points_a) if swapped else (points_a, points_b)
    count = collide_ordered(first, second, margin, guess, normal, on_first, on_second, feature)
    if swapped:
        for k in range(3):
            normal[k] = -normal[k]
    return count
