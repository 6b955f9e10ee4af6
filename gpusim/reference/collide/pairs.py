"""All shapes and all pairs of all worlds through the functions for one: boxes of shapes, points of pairs."""

from __future__ import annotations

import numpy as np

from gpusim.compiled import compiled
from gpusim.reference.collide.collide import collide
from gpusim.reference.collide.shape import SHAPE_HEIGHT_FIELD, Shape, shape_bounds, turned_box_bounds
from gpusim.reference.collide.tables import ShapeTables
from gpusim.typing import Array


@compiled
def take_shape(t: ShapeTables, i: int, position: Array, rotation: Array) -> Shape:
    """Shape i in its world pose; position (3,) in m, rotation (9,).

    Every shape has one entry more in ``face_first`` than faces, so ``face_start[i] - i`` faces come before its own.
    """
    first, last = t.face_start[i], t.face_start[i + 1]
    return Shape(
        int(np.int64(t.kind[i])),  # as Python's own: with another type every loop would be compiled twice
        t.size[i],
        t.points[t.point_start[i] : t.point_start[i + 1]],
        t.face_first[first:last],
        t.face_vertex[t.vertex_start[i] : t.vertex_start[i + 1]],
        t.face_normal[3 * (first - i) : 3 * (last - i - 1)],
        position,
        rotation,
    )


@compiled
def bounds_of(s: Shape, lower: Array, upper: Array) -> None:
    """Box around a shape, m. The heights of a field were looked at once, when the model was made (size 5 and 6)."""
    if s.kind != SHAPE_HEIGHT_FIELD:
        shape_bounds(s, lower, upper)
        return
    x = 0.5 * (s.size[0] - 1.0) * s.size[2]
    y = 0.5 * (s.size[1] - 1.0) * s.size[3]
    turned_box_bounds(s, x, y, s.size[5], s.size[6], lower, upper)


@compiled
def all_bounds(t: ShapeTables, position: Array, rotation: Array, lower: Array, upper: Array) -> None:
    """Boxes of the shapes of all worlds; arrays (worlds, shapes, 3 or 9), the last two are filled."""
    for world in range(position.shape[0]):
        for i in range(position.shape[1]):
            shape = take_shape(t, i, position[world, i], rotation[world, i])
            bounds_of(shape, lower[world, i], upper[world, i])


@compiled
def meet(
    tables: ShapeTables,
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
    """Contact points of n pairs.

    Args:
        tables: of all shapes.
        position: (worlds, shapes, 3), m.
        rotation: (worlds, shapes, 9).
        world: (n,).
        pair: (n, 2) shapes.
        margin: (n,) greatest gap that is reported, m.
        guess: (n, 4) read and written.
        count: (n,) filled, and so are the others.
        normal: (n, 3) from the first shape to the second, world frame.
        points_a: (n, 4, 3) m, world frame.
        points_b: (n, 4, 3) m, world frame.
        feature: (n, 4).
    """
    for n in range(world.size):
        a, b = pair[n, 0], pair[n, 1]
        shape_a = take_shape(tables, a, position[world[n], a], rotation[world[n], a])
        shape_b = take_shape(tables, b, position[world[n], b], rotation[world[n], b])
        count[n] = collide(shape_a, shape_b, margin[n], guess[n], normal[n], points_a[n], points_b[n], feature[n])
