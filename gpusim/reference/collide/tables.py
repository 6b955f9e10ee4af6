"""The arrays of shapes that never change, as the compiled loops of the narrow phase take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusim.model.contact_topology import ContactTopology
from gpusim.typing import Array


class ShapeTables(NamedTuple):
    """Flat arrays of all shapes (model/contact_topology.py), int32 and float64."""

    kind: Array
    size: Array
    points: Array
    point_start: Array
    face_first: Array
    face_start: Array
    vertex_start: Array
    face_vertex: Array
    face_normal: Array


def shape_tables(c: ContactTopology) -> ShapeTables:
    """The tables of a model."""
    return ShapeTables(
        kind=c.kind.astype(np.int32),
        size=c.size.astype(np.float64),
        points=c.points.astype(np.float64),
        point_start=c.point_start.astype(np.int32),
        face_first=c.face_first.astype(np.int32),
        face_start=c.face_start.astype(np.int32),
        vertex_start=c.vertex_start.astype(np.int32),
        face_vertex=c.face_vertex.astype(np.int32),
        face_normal=c.face_normal.astype(np.float64).reshape(-1),
    )
