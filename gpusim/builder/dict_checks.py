"""Checks of the elements that ``ModelBuilder.from_dict`` reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.commands import MAPS, OPERATOR
from gpusim.builder.joint_groups import check_solver
from gpusim.compiler.rows import AXIS_PARAMETERS
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.joint_kinds import joint_type
from gpusim.description.references import AS_IS, BODY, InFrame
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import CONTACT_SENSOR, JOINT_SENSOR, RAY_SENSOR, WORLD
from gpusim.errors import ModelError, unknown_name

LISTS = {"body": "bodies"}
"""Name of the builder's list of elements by element type, if the name is not type + "s"."""
FIX = "give the result of ModelBuilder.to_dict"
_OF_ALL = ("delay", MAPS, OPERATOR)
"""Parameters that each actuator may have."""
_DRAWN_ONLY = {"mesh": ("pieces",)}
"""Parameters of visuals whose kind is not a kind of shape."""


def check_elements(made: Any) -> None:
    """Check numbers, labels, kinds, parameters and indices of a builder, and register the labels.

    Raises:
        ModelError: an entry is invalid. The message names the element.
    """
    made.gravity = validate.numbers("ModelBuilder", "gravity", made.gravity, 3)
    if made.num_worlds < 1:
        raise validate.fail("ModelBuilder.from_dict", f"num_worlds = {made.num_worlds} is below 1", "give 1 or more")
    for space, labels in made._labels.items():
        for index, item in enumerate(getattr(made, LISTS.get(space, f"{space}s"))):
            labels[made._new_label(space, item.label, index)] = index
    for body in made.bodies:
        if not math.isnan(body.mass):  # NaN: the mass comes from the shapes
            validate.positive(body.element, "mass", body.mass)
    for joint in made.joints:
        _check_joint(made, joint)
    for shape in made.shapes:
        _check_shape(shape)
    for visual in made.visuals:
        _check_shape(visual, _DRAWN_ONLY)
    for item in [*made.shapes, *made.visuals, *made.sites, *made.cameras, *made.lights]:
        made.check_body(item.element, "body", item.body)
    for actuator in made.actuators:
        _check_actuator(made, actuator)
    for coupling in made.couplings:
        for joint, axis, _ in coupling.terms:
            made.check_joint(coupling.element, "joint", joint, axis)
    for pair in made.pairs:
        for name in ("shape_a", "shape_b"):
            made.check_index("collision pair", name, getattr(pair, name), "shape")
    for sensor in made.sensors:
        _check_sensor(made, sensor)


def _check_names(element: str, params: Mapping[str, Any], known: Iterable[str], needed: Iterable[str]) -> None:
    """Raise an error for an unknown and for a missing parameter."""
    for name in params:
        if name not in known:
            raise ModelError(f"{element}: {unknown_name('parameter', name, known)}")
    for name in needed:
        if name not in params:
            raise validate.fail(element, f"parameter {name!r} is missing", FIX)


def _check_shape(item: Any, more: Mapping[str, tuple[str, ...]] = {}) -> None:
    names = more.get(item.kind)
    if names is None:
        kind = shape_type(item.kind)
        names = kind.size_names if kind.param_names is None else kind.param_names
    _check_names(item.element, item.params, names, names)


def _check_joint(made: Any, joint: Any) -> None:
    kind, params = joint_type(joint.kind), joint.params
    made.check_body(joint.element, "parent", joint.parent)
    made.check_body(joint.element, "child", joint.child)
    check_solver(joint.element, joint.solver)
    _check_names(joint.element, params, [*AXIS_PARAMETERS, *kind.needs, *kind.options], kind.needs)
    if count := len(kind.kinds(joint)):
        _check_names(joint.element, params, params, AXIS_PARAMETERS)
        for name in AXIS_PARAMETERS:
            validate.numbers(joint.element, name, params[name], count, infinite=True)
    for other, axis, _ in params.get("terms", ()):
        made.check_joint(joint.element, "joint", other, axis)


def _check_actuator(made: Any, actuator: Any) -> None:
    kind, params, element = actuator_type(actuator.kind), actuator.params, actuator.element
    numbers = [p.name for p in kind.parameters]
    computed = {p.name for p in kind.parameters if p.computed or p.default is not None}
    known = {*numbers, *kind.references, *kind.needs, *kind.options, *_OF_ALL}
    _check_names(element, params, known, [*kind.references, *kind.needs, *(n for n in numbers if n not in computed)])
    for name in (n for n in numbers if n in params):
        if not isinstance(params[name], int | float):  # NaN is a valid number: finalize computes the value
            validate.number(element, name, params[name])
    for name, space in kind.references.items():
        if not (isinstance(space, InFrame) or space == AS_IS or params[name] is None):
            for index in np.ravel(params[name]).tolist():
                _check_reference(made, element, name, index, space)
    if {"joint", "axis"} <= kind.references.keys():
        made.check_joint(element, "joint", params["joint"], params["axis"])


def _check_reference(made: Any, element: str, name: str, index: Any, space: str) -> None:
    if space == BODY:
        made.check_body(element, name, index)
    elif index != WORLD:  # -1: no element
        made.check_index(element, name, index, space)


def _check_sensor(made: Any, sensor: Any) -> None:
    validate.choice(sensor.element, "kind", sensor.kind, (JOINT_SENSOR, CONTACT_SENSOR, RAY_SENSOR))
    if sensor.kind == JOINT_SENSOR:
        made.check_index(sensor.element, "joint", sensor.element_index, "joint")
    elif sensor.kind == CONTACT_SENSOR:
        made.check_body(sensor.element, "body", sensor.element_index)
    if sensor.site != -1 or sensor.kind == RAY_SENSOR:
        made.check_index(sensor.element, "site", sensor.site, "site")
