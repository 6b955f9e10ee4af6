"""Drawn parts of actuators: coil springs, hydraulic cylinders, motors, torsion springs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpusim import validate
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.joint_kinds import joint_frames, triad
from gpusim.description.specs import WORLD, ActuatorSpec
from gpusim.model.model import Model
from gpusim.stage.machine_parts import MachineParts
from gpusim.stage.materials import BARREL, CHROME, FIXTURE, MOTOR, PIN, SPRING
from gpusim.stage.meshes import ROD, coil
from gpusim.stage.parts import Part, Span, com_of, cylinder_part, drawer_of, is_hinge, world_position
from gpusim.stage.posts import behind
from gpusim.typing import Array

_COIL_SLENDERNESS = 0.11
"""Ratio of a coil's radius to its length."""


def actuator_parts(model: Model, machine: MachineParts) -> list[Part | Span]:
    """Return the drawn parts of all actuators of a model.

    Raises:
        UnknownNameError: the attribute ``picture`` of an actuator type is unknown.
        ModelError: an actuator lacks a parameter that the drawing needs.
    """
    pieces: list[Part | Span] = []
    for actuator in model.actuators:
        picture = actuator_type(actuator.kind).picture
        if picture is None:
            continue
        drawer = drawer_of(actuator, picture, _DRAWERS)
        try:
            pieces += drawer(model, machine, actuator)
        except KeyError as error:
            hint = f"add it to the parameters of the kind {actuator.kind!r}, or choose another picture"
            raise validate.fail(actuator.element, f"its picture {picture!r} needs a parameter {error}", hint) from None
    return pieces


def _ends(model: Model, actuator: ActuatorSpec) -> tuple[int, int, Array, Array, float]:
    """Return an actuator's bodies, end points (m, relative to the centers of mass) and initial length (m)."""
    p = actuator.params
    a, b = int(p["body_a"]), int(p["body_b"])
    points = [
        point if body == WORLD else model.bodies[body].xform.apply(point)
        for body, point in ((a, p["point_a"]), (b, p["point_b"]))
    ]
    length = float(np.linalg.norm(np.subtract(*points)))
    return a, b, p["point_a"] - com_of(model, a), p["point_b"] - com_of(model, b), length


def _coil(model: Model, machine: MachineParts, actuator: ActuatorSpec) -> list[Part | Span]:
    """Return the drawn coil of a spring."""
    a, b, point_a, point_b, length = _ends(model, actuator)
    length = max(length, 0.3 * float(actuator.params.get("rest_length", 0.0)), 1e-6)
    radius = min(max(_COIL_SLENDERNESS * length, 0.012 * machine.size), 0.06 * machine.size)
    turns = min(max(round(length / (0.55 * radius) / 2.2), 4), 14)
    owner = b if b != WORLD else a
    pieces: list[Part | Span] = [Span(coil(length / radius, turns), a, b, point_a, point_b, radius, SPRING, owner)]
    if any(actuator.params.get(name, 0.0) > 0.0 for name in ("damping", "bound_damping", "damper_points")):
        tube, stem = 0.42 * radius, 0.22 * radius
        pieces.append(Span(ROD, a, b, point_a, point_b, tube, BARREL, owner, end=(0.0, 0.55)))
        pieces.append(Span(ROD, a, b, point_a, point_b, stem, CHROME, owner, start=(0.0, 0.5)))
    if WORLD not in (a, b):
        return pieces
    here, there = (
        (point_a, world_position(model, b, point_b)) if a == WORLD else (point_b, world_position(model, a, point_a))
    )
    offset = here - there
    if np.linalg.norm(offset) < 1e-9:
        return pieces
    axis = offset / np.linalg.norm(offset)
    return [*pieces, cylinder_part(WORLD, here + 0.12 * radius * axis, axis, 1.3 * radius, 0.12 * radius, FIXTURE)]


def _barrel_and_rod(model: Model, machine: MachineParts, actuator: ActuatorSpec) -> list[Part | Span]:
    """Return the parts of a hydraulic cylinder: barrel, rod, gland, and a pin at each end."""
    a, b, point_a, point_b, _ = _ends(model, actuator)
    p = actuator.params
    shortest, longest = (float(p["length_offset"]) + float(p[f"stroke_{end}"]) for end in ("min", "max"))
    bore = math.sqrt(p["area_a"] / math.pi)
    rod = math.sqrt(max(p["area_a"] - p["area_b"], 0.2 * p["area_a"]) / math.pi)
    scale = max(1.0, 0.022 * longest / bore)  # keeps thin cylinders visible
    bore, rod = 1.18 * scale * bore, min(scale * rod, 0.85 * bore)
    barrel = max(0.9 * (shortest - _hidden_length(machine, b, point_b)), 0.35 * longest)
    owner = b if b != WORLD else a
    base = a if a != WORLD else b

    def span(
        radius: float, finish: object, start: tuple[float, float], end: tuple[float, float], owner_body: int
    ) -> Span:
        return Span(ROD, a, b, point_a, point_b, radius, finish, owner_body, start, end)  # type: ignore[arg-type]

    pieces: list[Part | Span] = [
        span(bore, BARREL, (0.0, 0.0), (barrel, 0.0), base),
        span(1.12 * bore, PIN, (barrel - 0.5 * bore, 0.0), (barrel + 0.15 * bore, 0.0), base),
        span(1.12 * bore, PIN, (0.0, 0.0), (0.5 * bore, 0.0), base),
        span(rod, CHROME, (-(longest - 0.8 * barrel), 1.0), (0.0, 1.0), owner),
    ]
    axis = _pin_axis(model, a, b)
    for body, point in ((a, point_a), (b, point_b)):
        local = axis if body == WORLD else model.bodies[body].xform.inverse().rotate(axis)
        pieces.append(cylinder_part(body, point, local, 0.7 * bore, 1.3 * bore, PIN))
    return pieces


def _hidden_length(machine: MachineParts, body: int, point: Array) -> float:
    """Return the length (m) of the piston rod that is hidden inside the solid of its body."""
    solid = None if body == WORLD else machine.solids[body]
    return float(solid.half.min()) if solid is not None and solid.contains(point) else 0.0


def _pin_axis(model: Model, a: int, b: int) -> Array:
    """Return the direction of the pin axes of a hydraulic cylinder in the world frame."""
    for joint in model.joints:
        if is_hinge(joint) and {joint.parent, joint.child} & ({a, b} - {WORLD}):
            axis: Array = joint_frames(joint).axes_a[:, 2]
            return axis if joint.parent == WORLD else model.bodies[joint.parent].xform.rotate(axis)
    return np.array([0.0, 1.0, 0.0])


def _motor_can(model: Model, machine: MachineParts, actuator: ActuatorSpec) -> list[Part | Span]:
    """Return the parts of a motor on the joint's parent body: a cylinder with a flange."""
    joint = model.joints[actuator.params["joint"]]
    frames = joint_frames(joint)
    radius, half = machine.pin_size(joint)
    can = max(3.0 * radius, 0.9 * half)
    axis = -behind(frames.axes_a[:, 2])
    start = frames.point_a - com_of(model, joint.parent) + (half + 0.3 * can) * axis
    return [
        cylinder_part(joint.parent, start + 1.2 * can * axis, axis, can, 1.2 * can, MOTOR),
        cylinder_part(joint.parent, start, axis, 1.15 * can, 0.15 * can, PIN),
    ]


def _torsion_coil(model: Model, machine: MachineParts, actuator: ActuatorSpec) -> list[Part | Span]:
    """Return a short coil around the joint's pin."""
    joint = model.joints[actuator.params["joint"]]
    frames = joint_frames(joint)
    radius, half = machine.pin_size(joint)
    width, length = 2.4 * radius, 1.5 * half
    axis = frames.axes_a[:, 2]
    start = frames.point_a - com_of(model, joint.parent) - 0.5 * length * axis
    linear = triad(axis) * [width, width, length]
    return [Part(coil(length / width, 4), joint.parent, linear, start, SPRING)]


_DRAWERS: dict[str, Callable[[Model, MachineParts, ActuatorSpec], list[Part | Span]]] = {
    "coil": _coil,
    "barrel_and_rod": _barrel_and_rod,
    "motor_can": _motor_can,
    "torsion_coil": _torsion_coil,
}
"""Dict from ``ActuatorType.picture`` to the function that returns the drawn parts."""
