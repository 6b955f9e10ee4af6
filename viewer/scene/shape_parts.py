"""Parts for shapes, or for the visuals that replace them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ShapeSpec, VisualSpec
from gpusim.model.model import Model
from gpusim.typing import Array
from gpusim.viewer.scene.materials import TERRAIN, Finish, body_finish
from gpusim.viewer.scene.meshes import MeshSource, piece_mesh, shape_mesh
from gpusim.viewer.scene.parts import Part, com_of


def shape_parts(model: Model, pictured: Collection[int] = ()) -> list[Part]:
    """Return parts for the shapes of all bodies except those ``pictured``, without grounds."""
    parts = []
    for index, shape in enumerate(model.shapes):
        if shape_type(shape.kind).picture == "ground" or shape.body in pictured:
            continue
        mesh, stretch = shape_mesh(shape)
        parts.append(_part(model, shape, mesh, stretch, _finish(shape), index))
    return parts


def visual_parts(model: Model) -> list[Part]:
    """Return parts for all visuals, one for each color of a mesh."""
    parts = []
    for visual in model.visuals:
        for mesh, stretch, color in _meshes(visual):
            finish = body_finish(visual.body) if color is None else Finish(color)
            parts.append(_part(model, visual, mesh, stretch, finish))
    return parts


def _finish(shape: ShapeSpec) -> Finish:
    usual = TERRAIN if shape.body == WORLD and shape_type(shape.kind).picture == "terrain" else body_finish(shape.body)
    return usual if shape.color is None else replace(usual, color=shape.color)


def _meshes(visual: VisualSpec) -> Iterator[tuple[MeshSource, Array | float, tuple[float, float, float] | None]]:
    if "pieces" not in visual.params:
        yield *shape_mesh(visual), visual.color
        return
    for piece in visual.params["pieces"]:
        yield piece_mesh(piece), 1.0, visual.color or piece.color


def _part(
    model: Model,
    spec: ShapeSpec | VisualSpec,
    mesh: MeshSource,
    stretch: Array | float,
    finish: Finish,
    shape: int = -1,
) -> Part:
    offset = spec.xform.position - com_of(model, spec.body)
    return Part(mesh, spec.body, spec.xform.matrix() * stretch, offset, finish, shape)
