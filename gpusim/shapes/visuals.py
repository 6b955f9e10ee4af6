"""Builder method for visuals: shapes and meshes that are only drawn."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.looks import checked_look
from gpusim.description.specs import WORLD, VisualSpec
from gpusim.meshes.pieces import mesh_pieces
from gpusim.meshes.textures import texture_of
from gpusim.transform import Transform

_METHOD = "add_shape_"
_NO_SIZES = frozenset("self body xform material label group mask density max_vertices color".split())
"""Parameters of ``add_shape_<kind>`` that are not sizes."""


@builder_method
def add_visual(
    self: ModelBuilder,
    body: int,
    kind: str,
    *sizes: Any,
    xform: Transform | None = None,
    color: Any = None,
    label: str | None = None,
    alpha: float | None = None,
    roughness: float | None = None,
    metallic: float | None = None,
    texture: Any = None,
    **params: Any,
) -> int:
    """Add a visual to a body. The viewer draws the visual instead of the body's shapes.

    Visuals have no contacts and no mass, and do not affect the simulation. A body may have several visuals. A body
    without visuals shows its shapes. A body without visuals and shapes shows a solid estimated from its inertia.
    For the world, the viewer draws both visuals and shapes.

    Args:
        body: body index, -1 for the world.
        kind: shape type ("box", "sphere", "cylinder", "capsule", ...), or "mesh". A "plane" replaces the body's plane
            shapes in the viewer.
        sizes, params: the size arguments of ``add_shape_<kind>``, in order or by name. For example, ``add_visual(body,
            "box", (0.1, 0.2, 0.3))`` draws a box with half extents of 0.1, 0.2 and 0.3 m. ``add_visual(body, "mesh",
            mesh, scale)`` draws the mesh itself, not its hull. ``mesh`` is the path of a file that trimesh reads (STL,
            OBJ, PLY, DAE, ..., needs the extra ``urdf``), ``(vertices, triangles)``, or an object with ``vertices`` and
            ``faces``. Vertices are (n, 3). Triangles are (m, 3), counterclockwise seen from outside. ``scale`` converts
            the unit of the mesh to m.
        xform: frame of the visual in the body frame.
        color: sRGB (red, green, blue) from 0 to 1, or "#rrggbb". Default: the colors and textures of the mesh file, or
            the body's color in the viewer. With ``texture``, ``color`` multiplies the image's colors.
        label: unique name, default ``visual<index>``.
        alpha: opacity, 0 (invisible) to 1. With ``alpha`` below 0.5, the visual casts no shadow, and camera sensors see
            through the visual. Default: the value of the mesh file, or 1.
        roughness: 0 (mirror) to 1 (chalk). Default: the value of the mesh file, or 0.55.
        metallic: 0 (paint, plastic) to 1 (bare metal). Default: the value of the mesh file, or 0.
        texture: image on the surface: a :class:`gpusim.Texture`, the path of a PNG or JPEG file, or an array.

    Returns:
        The visual's index.

    Raises:
        ModelError: a value is invalid, or a file cannot be read.
    """
    name = self._new_label("visual", label, len(self.visuals))
    element = f"visual '{name}'"
    body = self.check_body(element, "body", body)
    validate.transform(element, "xform", xform)
    spec = VisualSpec(
        label=name,
        kind=kind,
        body=body,
        xform=xform or Transform(),
        params={},
        color=None if color is None else validate.color(element, color),
        look=checked_look(
            element, alpha, roughness, metallic, None if texture is None else texture_of(element, texture)
        ),
    )
    spec.params = _checked_params(spec, sizes, params)
    return self._adopt("visual", spec)


class _Scratch(ModelBuilder):
    """Builder that checks the parameters of a shape without adding the shape."""

    element_word: ClassVar[str] = "visual"


def _checked_params(spec: VisualSpec, sizes: tuple[Any, ...], params: dict[str, Any]) -> dict[str, Any]:
    """Return the visual's parameters, checked by the method ``add_shape_<kind>``."""
    kinds = sorted(n.removeprefix(_METHOD) for n in dir(ModelBuilder) if n.startswith(_METHOD))
    if not isinstance(spec.kind, str) or spec.kind not in kinds:
        raise validate.fail(spec.element, f"kind {spec.kind!r} cannot be drawn", f"give one of {', '.join(kinds)}")
    parameters = inspect.signature(getattr(ModelBuilder, _METHOD + spec.kind)).parameters
    size_signature = inspect.Signature([p for p in parameters.values() if p.name not in _NO_SIZES])
    try:
        arguments = size_signature.bind(*sizes, **params).arguments
    except TypeError as error:
        names = ", ".join(size_signature.parameters)
        raise validate.fail(spec.element, f"{error}", f"give a {spec.kind} its {names}") from None
    if spec.kind == "mesh":
        return {"pieces": mesh_pieces(spec.element, **arguments)}
    scratch = _Scratch()
    getattr(scratch, _METHOD + spec.kind)(WORLD, label=spec.label, **arguments)
    return scratch.shapes[0].params
