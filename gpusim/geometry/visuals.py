"""Builder method for what bodies look like: pictures of any kind of shape, and meshes, apart from physics."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from gpusim.geometry.pieces import mesh_pieces
from gpusim.model import validate
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.specs import WORLD, VisualSpec
from gpusim.transform import Transform

_METHOD = "add_shape_"
_NO_SIZES = frozenset("self body xform material label group mask density max_vertices color".split())
"""Parameters of ``add_shape_<kind>`` that do not say what it looks like, or that ``add_visual`` has itself."""


@builder_method
def add_visual(
    self: ModelBuilder,
    body: int,
    kind: str,
    *sizes: Any,
    xform: Transform | None = None,
    color: Any = None,
    label: str | None = None,
    **params: Any,
) -> int:
    """Add what a body looks like; the viewer draws it in place of the body's shapes.

    Visuals touch nothing and weigh nothing: a simulation with them has the same bits as one without. A body may have
    several; one without any is drawn by its shapes, or as what its inertia belongs to. Visuals of the world are drawn
    beside its shapes.

    Args:
        body: body index, -1 for the world.
        kind: of a shape ("box", "sphere", "cylinder", "capsule", ...; no "plane"), or "mesh".
        sizes, params: what ``add_shape_<kind>`` takes, in its order or by name: ``add_visual(body, "box", (0.1, 0.2,
            0.3))`` has these half extents. A mesh is drawn as it is, not as its hull: ``add_visual(body, "mesh", mesh,
            scale)``, ``mesh`` the path of a file that trimesh reads (STL, OBJ, PLY, DAE, ...; needs the extra
            ``urdf``), ``(vertices, triangles)``, vertices (n, 3), triangles (m, 3) counterclockwise seen from outside,
            or an object that has ``vertices`` and ``faces``; ``scale`` from its unit to m.
        xform: frame of the visual in the body frame.
        color: sRGB, red, green and blue from 0 to 1, or "#rrggbb"; left out: the colors in a mesh's file, or the one
            that the viewer gives the body.
        label: unique name; ``visual<index>`` if left out.

    Returns:
        The visual's index.

    Raises:
        ModelError: a value breaks a rule, or a file cannot be read.
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
    )
    spec.params = _checked_params(spec, sizes, params)
    self.visuals.append(spec)
    self._labels["visual"][name] = len(self.visuals) - 1
    return len(self.visuals) - 1


class _Scratch(ModelBuilder):
    """Takes a shape for its checks alone."""

    element_word: ClassVar[str] = "visual"


def _checked_params(spec: VisualSpec, sizes: tuple[Any, ...], params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a kind, by the checks of its ``add_shape_<kind>``."""
    kinds = sorted(n.removeprefix(_METHOD) for n in dir(ModelBuilder) if n.startswith(_METHOD))
    kinds.remove("plane")
    if not isinstance(spec.kind, str) or spec.kind not in kinds:
        raise validate.fail(spec.element, f"kind {spec.kind!r} cannot be drawn", f"give one of {', '.join(kinds)}")
    wanted = inspect.signature(getattr(ModelBuilder, _METHOD + spec.kind)).parameters
    own = inspect.Signature([p for p in wanted.values() if p.name not in _NO_SIZES])
    try:
        given = own.bind(*sizes, **params).arguments
    except TypeError as error:
        names = ", ".join(own.parameters)
        raise validate.fail(spec.element, f"{error}", f"give a {spec.kind} its {names}") from None
    if spec.kind == "mesh":
        return {"pieces": mesh_pieces(spec.element, **given)}
    scratch = _Scratch()
    getattr(scratch, _METHOD + spec.kind)(WORLD, label=spec.label, **given)
    return scratch.shapes[0].params
