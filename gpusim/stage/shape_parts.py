"""Drawn parts for shapes, and for the visuals that replace shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ShapeSpec, VisualSpec
from gpusim.model.model import Model
from gpusim.stage.materials import TERRAIN, Finish, body_finish, with_look
from gpusim.stage.meshes import MeshSource, piece_mesh, shape_mesh
from gpusim.stage.parts import Part, com_of
from gpusim.typing import Array

_WHITE = (1.0, 1.0, 1.0)


def shape_parts(model: Model, pictured: Collection[int] = (), visuals: bool = False) -> list[Part]:
    """Return parts for all shapes, except planes and the shapes of the bodies ``pictured``."""
    parts = []
    for index, shape in enumerate(model.shapes):
        if shape_type(shape.kind).picture == "ground" or shape.body in pictured or (visuals and shape.covered):
            continue
        mesh, stretch = shape_mesh(shape)
        parts.append(_part(model, shape, mesh, stretch, _finish(shape), index))
    return parts


def visual_parts(model: Model) -> list[Part]:
    """Return parts for all visuals, except planes. A mesh has one part for each material."""
    parts = []
    for visual in model.visuals:
        if shape_picture(visual) != "ground":
            parts += [_part(model, visual, *mesh) for mesh in _visual_meshes(visual)]
    return parts


def shape_picture(visual: VisualSpec) -> str:
    """Return the drawing type of a visual (``ShapeType.picture``), or "" for a mesh."""
    return "" if "pieces" in visual.params else shape_type(visual.kind).picture


def visual_finish(visual: VisualSpec) -> Finish:
    """Return the finish of a visual. A visual with a texture but without a color gets a white finish.

    In a mesh visual, each material has a separate finish.
    """
    default = Finish(_WHITE) if visual.look.texture is not None else body_finish(visual.body)
    return with_look(default if visual.color is None else Finish(visual.color), visual.look)


def _finish(shape: ShapeSpec) -> Finish:
    default = (
        TERRAIN if shape.body == WORLD and shape_type(shape.kind).picture == "terrain" else body_finish(shape.body)
    )
    return default if shape.color is None else replace(default, color=shape.color)


def _visual_meshes(visual: VisualSpec) -> Iterator[tuple[MeshSource, Array | float, Finish]]:
    """Yield the meshes of a visual with their scales and finishes."""
    visual_texture = visual.look.texture
    if "pieces" not in visual.params:
        yield *shape_mesh(visual, visual_texture), visual_finish(visual)
        return
    overridden = visual_texture is not None or visual.color is not None
    for piece in visual.params["pieces"]:
        texture = visual_texture if overridden else piece.look.texture
        colored = not overridden and piece.colors is not None
        finish = visual_finish(visual)
        if not overridden:
            white = colored or texture is not None
            finish = Finish(_WHITE) if white else finish if piece.color is None else Finish(piece.color)
        has_color = overridden or piece.color is not None
        finish = replace(finish, dimmed=has_color and not (colored or texture))  # the shader dims textures
        yield piece_mesh(piece, texture, colored), 1.0, with_look(finish, visual.look.over(piece.look))


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
