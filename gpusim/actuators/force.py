"""Forces and torques on a body, scaled by a command."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import add_columns
from gpusim.builder.anchors import end_point
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.actuator_kinds import (
    ActuatorType,
    Group,
    Parameter,
    Reading,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.references import BODY
from gpusim.description.specs import ActuatorSpec, BodySpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array, Vector

_XYZ = ("x", "y", "z")
_SCALE = UiHints(limited=False, lower=0.0, upper=1.0, safe=0.0, springs=False)
"""Operator settings of the command of a force or torque. An emergency stop sets the command to 0."""


def _vector(group: Group, name: str) -> Array:
    return np.stack(np.broadcast_arrays(*(group.params[f"{name}_{c}"] for c in _XYZ)), axis=-1)


def _world_vector(group: Group, work: StepBuffers, name: str) -> Array:
    """Return the force or torque, multiplied by the command, in the world frame (num_worlds, n, 3)."""
    bodies = group.axis
    vector = _vector(group, name)
    rotated = rotations.matvec(work.rotation_real[:, bodies], vector)
    in_world = np.where(group.params["in_body_frame"][..., None] > 0.5, rotated, vector)
    scaled: Array = work.command(group, "scale")[..., None] * in_world
    return scaled


def read_scale(group: Group, now: StateReader) -> Array:
    """Return the command, which is the factor of the force or torque."""
    return now.control[:, group.control["scale"]]


@register
class Force(ActuatorType):
    """Force at a point of a body, and torque on the body. One command scales the force and the torque."""

    name: ClassVar[str] = "force"
    kernel_file: ClassVar[str] = "force.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("push",)
    prefix: ClassVar[str] = "force"
    references = {"body": BODY}
    commands: ClassVar[tuple[str, ...]] = ("scale",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *(Parameter(f"force_{c}", "N", f"{c} component") for c in _XYZ),
        *(Parameter(f"point_{c}", "m", f"{c} of the point, from the center of mass, body frame") for c in _XYZ),
        *(Parameter(f"torque_{c}", "N m", f"{c} component of the torque", default=0.0) for c in _XYZ),
        Parameter("in_body_frame", "-", "1: body frame; 0: world frame"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("scale", "-", "factor of the force and the torque", read_scale, "*out = w.force_scale_now(i);"),
    )

    def completed(self, spec: ActuatorSpec, bodies: list[BodySpec]) -> ActuatorSpec:
        """Return the actuator with the point of application relative to the center of mass."""
        com = bodies[spec.params["body"]].com
        point = {f"point_{c}": spec.params[f"point_{c}"] - com[k] for k, c in enumerate(_XYZ)}
        return replace(spec, params=spec.params | point)

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return 1, the full force."""
        return 1.0

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the command: a factor from 0 to 1. Safe value: 0."""
        return _SCALE

    def axis(self, spec: ActuatorSpec, maker: Any) -> int:
        """Return the index of the body. The load acts on a body, not on a joint coordinate."""
        return int(spec.params["body"])

    def push(self, group: Group, work: StepBuffers) -> None:
        """Add the force and the torque about the center of mass. The torque includes the moment of the force."""
        force = _world_vector(group, work, "force")
        arm = rotations.matvec(work.rotation_real[:, group.axis], _vector(group, "point"))
        add_columns(work.force, group.axis, force)
        add_columns(work.torque, group.axis, rotations.cross(arm, force) + _world_vector(group, work, "torque"))


@register
class Torque(ActuatorType):
    """Torque on a body, scaled by a command."""

    name: ClassVar[str] = "torque"
    kernel_file: ClassVar[str] = "force.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("push",)
    prefix: ClassVar[str] = "force"
    references = {"body": BODY}
    commands: ClassVar[tuple[str, ...]] = ("scale",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *(Parameter(f"torque_{c}", "N m", f"{c} component") for c in _XYZ),
        Parameter("in_body_frame", "-", "1: body frame; 0: world frame"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading("scale", "-", "factor of the torque", read_scale, "*out = w.torque_scale_now(i);"),
    )

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return 1, the full torque."""
        return 1.0

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the command: a factor from 0 to 1. Safe value: 0."""
        return _SCALE

    def axis(self, spec: ActuatorSpec, maker: Any) -> int:
        """Return the index of the body. The load acts on a body, not on a joint coordinate."""
        return int(spec.params["body"])

    def push(self, group: Group, work: StepBuffers) -> None:
        """Add the torque in the world frame."""
        add_columns(work.torque, group.axis, _world_vector(group, work, "torque"))


def _common(builder: ModelBuilder, element: str, body: int, frame: str) -> dict[str, Any]:
    validate.choice(element, "frame", frame, ("world", "body"))
    index = builder.check_body(element, "body", body)
    if index < 0:
        raise validate.fail(element, "body = -1 is the world, which does not move", "give a body")
    return {"body": index, "in_body_frame": float(frame == "body")}


@builder_method
def add_force(
    self: ModelBuilder,
    body: int,
    force: Vector,
    point: Vector | None = None,
    frame: str = "world",
    label: str | None = None,
    at: Vector | None = None,
    torque: Vector = (0.0, 0.0, 0.0),
) -> int:
    """Apply a force and an optional torque to a body. ``sim.control[label]`` scales both (initially 1).

    Args:
        body: body index.
        force: force vector in ``frame`` (N).
        point: point of application in the body frame (m). Default: origin of the body frame.
        frame: "world" or "body". A force in the body frame rotates with the body.
        label: unique name.
        at: point of application in the world frame (m) for the current pose of the body, instead of ``point``.
        torque: torque vector in ``frame`` (N m), such as the drag torque of a propeller.

    Returns:
        The index of the actuator.
    """
    element = self.element("actuator", label, "force")
    params = _common(self, element, body, frame)
    arm = end_point(self, element, "point at", params["body"], point, at)
    for name, values in (("force", force), ("torque", torque)):
        numbers = validate.numbers(element, name, values, 3).tolist()
        params.update(zip((f"{name}_{c}" for c in _XYZ), numbers, strict=True))
    params.update(zip((f"point_{c}" for c in _XYZ), arm.tolist(), strict=True))
    return self.add_actuator("force", label, params)


@builder_method
def add_torque(self: ModelBuilder, body: int, torque: Vector, frame: str = "world", label: str | None = None) -> int:
    """Apply a torque to a body. ``sim.control[label]`` scales the torque (initially 1).

    Args:
        body: body index.
        torque: torque vector in ``frame`` (N m).
        frame: "world" or "body". A torque in the body frame rotates with the body.
        label: unique name.

    Returns:
        The index of the actuator.
    """
    element = self.element("actuator", label, "torque")
    params = _common(self, element, body, frame)
    values = validate.numbers(element, "torque", torque, 3).tolist()
    params.update(zip((f"torque_{c}" for c in _XYZ), values, strict=True))
    return self.add_actuator("torque", label, params)
