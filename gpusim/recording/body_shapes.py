"""Triangles of the visuals and shapes of bodies, for recordings that show the motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ShapeSpec, VisualSpec
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model

_SEGMENTS = 24
_GRAY = (0.6, 0.6, 0.62)


@dataclass(frozen=True)
class BodyShape:
    """Triangles fixed to a body.

    Attributes:
        body: label of the body, "" for the world.
        name: unique name.
        vertices: (n, 3) m, body frame.
        triangles: (m, 3) indices.
        color: sRGB, 0 to 1.
    """

    body: str
    name: str
    vertices: Array
    triangles: Array
    color: tuple[float, float, float]


def body_shapes(model: Model) -> Iterator[BodyShape]:
    """Yield the visuals, and the shapes that no visual covers."""
    specs: list[ShapeSpec | VisualSpec] = [*model.visuals, *(s for s in model.shapes if not s.covered)]
    for spec in specs:
        body = "" if spec.body == WORLD else model.bodies[spec.body].label
        kind = "visual" if isinstance(spec, VisualSpec) else "shape"
        for number, (vertices, triangles, color) in enumerate(_meshes(spec)):
            points = spec.xform.apply(np.asarray(vertices, np.float64))
            yield BodyShape(body, f"{kind}_{spec.label}_{number}", points, np.asarray(triangles), color)


def _meshes(spec: ShapeSpec | VisualSpec) -> Iterator[tuple[Array, Array, tuple[float, float, float]]]:
    if "pieces" in spec.params:
        for piece in spec.params["pieces"]:
            yield piece.vertices, piece.triangles, spec.color or piece.color or _GRAY
        return
    mesh = shape_type(spec.kind).mesh(spec.params, _SEGMENTS)
    yield mesh[0], mesh[1], spec.color or _GRAY
