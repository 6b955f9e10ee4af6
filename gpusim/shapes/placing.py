"""Builder methods for shapes of any type, collision pairs and collision groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.builder.collision_groups import ALL_GROUPS, UNNAMED
from gpusim.contact.material import Material
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, PairSpec, ShapeSpec
from gpusim.transform import Transform
from gpusim.typing import Index


def shape_element(builder: ModelBuilder, label: str | None) -> str:
    """Return the name of the next shape for error messages."""
    return builder.element("shape", label).replace("shape", builder.element_word, 1)


@builder_method
def add_shape(
    self: ModelBuilder,
    kind: str,
    body: int,
    params: dict[str, Any],
    xform: Transform | None = None,
    material: Material | None = None,
    label: str | None = None,
    group: int | str = UNNAMED,
    mask: int = ALL_GROUPS,
    density: float | None = None,
    color: Any = None,
) -> int:
    """Add a shape of a registered type. Prefer ``add_shape_<kind>``, since it checks ``params``.

    Args:
        kind: registered shape type, such as "box".
        body: body index, -1 for the world.
        params: checked parameters of the shape type.
        xform: shape frame in the body frame.
        material: surface and bulk properties, default ``Material()``.
        label: unique name, default ``shape<index>``.
        group: name of the shape's group (see ``set_group_collision``), or group bits.
        mask: bits of the groups that the shape collides with. Shapes a and b collide if ``a.group & b.mask`` and
            ``b.group & a.mask`` are both nonzero. Shapes of one body never collide. Welded bodies, and bodies that a
            joint connects, collide only after ``add_collision_pair``. The following joints do not prevent collisions:
            free joints, latches, tendons, wrapped ropes, and all joints to the world except fixed joints.
        density: density for a body without a given mass (kg/m3). Default: the material's density.
        color: color for drawing, sRGB (red, green, blue) from 0 to 1, or "#rrggbb". Default: the body's color.

    Returns:
        The shape's index.

    Raises:
        ModelError: a value is invalid, or a dynamic body gets a plane, height field or triangle mesh.
    """
    name = self._new_label("shape", label, len(self.shapes))
    element = shape_element(self, name)
    body = self.check_body(element, "body", body)
    self.check_movable(element, kind, body)
    validate.transform(element, "xform", xform)
    try:
        shape_type(kind).radius(params)
    except (LookupError, TypeError):
        rule = f"params = {params!r} are not the parameters of a shape {kind!r}"
        raise validate.fail(element, rule, f"use add_shape_{kind}, which sets them") from None
    material = _check_material(element, material) or Material()
    spec = ShapeSpec(
        label=name,
        kind=kind,
        body=body,
        xform=xform or Transform(),
        params=params,
        material=material,
        group=_group_name(element, group) if isinstance(group, str) else _bits(element, "group", group),
        mask=_bits(element, "mask", mask),
        density=material.density if density is None else validate.positive(element, "density", density),
        color=None if color is None else validate.color(element, color),
    )
    return self._adopt("shape", spec)


@builder_method
def add_collision_pair(self: ModelBuilder, shape_a: int, shape_b: int, material: Material | None = None) -> int:
    """Make two shapes collide, regardless of groups and joints.

    Args:
        shape_a, shape_b: indices of shapes on two bodies.
        material: material for the contacts of this pair. Default: the combination of the shapes' materials.

    Returns:
        The pair's index.

    Raises:
        ModelError: a shape is unknown, both shapes belong to one body, neither of the two bodies is dynamic, or the
            pair already exists.
    """
    return _add_pair(self, shape_a, shape_b, True, _check_material("add_collision_pair", material))


@builder_method
def exclude_collision_pair(self: ModelBuilder, shape_a: int, shape_b: int) -> int:
    """Let two shapes pass through each other, regardless of their groups.

    Args:
        shape_a, shape_b: shape indices.

    Returns:
        The pair's index.

    Raises:
        ModelError: a shape is unknown, both shapes belong to one body, or the pair already exists.
    """
    return _add_pair(self, shape_a, shape_b, False, None)


@builder_method
def set_group_collision(self: ModelBuilder, group_a: str, group_b: str | None, collide: bool) -> None:
    """Set whether shapes of two named groups collide. By default all groups collide.

    Masks, joints and collision pairs can still prevent or enable collisions. A second call for the same groups replaces
    the first call.

    Args:
        group_a: group name, as in ``group=`` of shapes.
        group_b: name of the other group, or ``group_a`` for collisions between shapes of one group. If ``group_b`` is
            None, the rule applies to ``group_a`` and all shapes. Rules with two names take precedence over rules with
            None.
        collide: True if shapes of the two groups collide.

    Raises:
        ModelError: a group is not a name, or ``collide`` is not a bool. ``finalize`` raises a ModelError if no shape
            has the group name.
    """
    element = "ModelBuilder.set_group_collision"
    a, b = _group_name(element, group_a), None if group_b is None else _group_name(element, group_b)
    validate.flag(element, "collide", collide)
    self.group_rules[(a, None) if b is None else (min(a, b), max(a, b))] = bool(collide)


def _group_name(element: str, name: Any) -> str:
    if not isinstance(name, str) or not name or any(c.isspace() for c in name):
        raise validate.fail(element, f"group {name!r} is not a valid group name", 'give a word, such as "left_track"')
    return name


def _add_pair(builder: ModelBuilder, shape_a: int, shape_b: int, collide: bool, material: Material | None) -> int:
    caller = "add_collision_pair" if collide else "exclude_collision_pair"
    a, b = (builder.check_index(caller, n, s, "shape") for n, s in (("shape_a", shape_a), ("shape_b", shape_b)))
    first, second = builder.shapes[a], builder.shapes[b]
    element = f"{caller}: {first.element} and {second.element}"
    if first.body == second.body:
        raise validate.fail(
            element,
            f"both belong to one body ({builder.body_label(first.body)}), so they never collide",
            "leave the pair out, or give shapes of two bodies",
        )
    if collide and not (_can_move(builder, first.body) or _can_move(builder, second.body)):
        raise validate.fail(
            element,
            f"neither {builder.body_label(first.body)} nor {builder.body_label(second.body)} is dynamic",
            "leave the pair out, or give a shape of a dynamic body",
        )
    for pair in builder.pairs:  # fast comparison, since robots have thousands of pairs
        if (pair.shape_a == a and pair.shape_b == b) or (pair.shape_a == b and pair.shape_b == a):
            listed = "add_collision_pair" if pair.collide else "exclude_collision_pair"
            raise validate.fail(element, f"{listed} already added the pair", "add it once")
    builder.pairs.append(PairSpec(a, b, collide, material))
    return Index(len(builder.pairs) - 1, "pair")


def _can_move(builder: ModelBuilder, body: int) -> bool:
    return body != WORLD and not builder.bodies[body].kinematic


def _check_material(element: str, material: Any) -> Material | None:
    if not isinstance(material, Material | None):
        raise validate.fail(element, f"material {material!r} is not a Material", "give gpusim.Material(...)")
    return material


def _bits(element: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= ALL_GROUPS:
        raise validate.fail(
            element,
            f"{name} = {validate.shown(value)} is not a set of 32 bits",
            f"give a whole number from 0 to {ALL_GROUPS:#x}",
        )
    return int(value)
