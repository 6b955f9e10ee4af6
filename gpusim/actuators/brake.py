"""Brake: dry friction on a joint coordinate, as much as the command asks for.

    |T| <= torque * command,   command 0 to 1

Coulomb's law, solved with the joint: the coordinate slides against the full torque or stands still exactly, so that a
parked machine does not creep, which a velocity servo does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.model import validate
from gpusim.model.actuator_kinds import (
    JOINT_REFERENCES,
    ActuatorType,
    AxisMaker,
    Group,
    Now,
    Parameter,
    Reading,
    Work,
    register,
)
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.elements import Elements
from gpusim.model.specs import ActuatorSpec
from gpusim.model.steering import Steering
from gpusim.typing import Array


def read_command(group: Group, now: Now) -> Array:
    """The command within 0 to 1."""
    return np.clip(now.control[:, group.control["command"]], 0.0, 1.0)


@register
class Brake(ActuatorType):
    """Adds dry friction to the law of its coordinate."""

    name: ClassVar[str] = "brake"
    kernel_file: ClassVar[str] = "brake.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("contribute",)
    prefix: ClassVar[str] = "brake"
    references = JOINT_REFERENCES
    commands: ClassVar[tuple[str, ...]] = ("command",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("torque", "N m", "greatest torque (N on a travel)"),
        Parameter("initial_command", "-", "command before one is written"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading(
            "command", "-", "share of the torque", read_command, "*out = clamped(w.brake_command_now(i), 0.0, 1.0);",
            lambda p: (0.0, 1.0),
        ),
    )  # fmt: skip

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """That given to the builder."""
        return float(spec.params["initial_command"])

    def steering(self, model: Elements, spec: ActuatorSpec, name: str) -> Steering:
        """A pedal: on is safe."""
        return Steering(lower=0.0, upper=1.0, safe=1.0)

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """The joint's coordinate."""
        return maker.joint_axis(spec.params["joint"], spec.params["axis"])

    def check(self, group: Group) -> None:
        """The torque is not negative."""
        if np.any(group.params["torque"] < 0.0):
            raise validate.fail(group.specs[0].element, "torque must not be negative", "write torque >= 0")

    def contribute(self, group: Group, work: Work, velocity: Array | None) -> None:
        """Friction of the mean command over the kick."""
        if velocity is None:
            work.add_friction(group, group.params["torque"] * np.clip(work.command(group, "command"), 0.0, 1.0))


@builder_method
def add_brake(
    self: ModelBuilder,
    joint: int,
    torque: float,
    axis: int = 0,
    command: float = 0.0,
    label: str | None = None,
) -> int:
    """Add a brake on a joint coordinate; ``sim.control[label]`` is the share of its torque, 0 (released) to 1.

    Args:
        joint: joint index.
        torque: greatest torque, N m (N on a travel).
        axis: which coordinate of the joint.
        command: before one is written, 0 to 1.
        label: unique name.

    Returns:
        The actuator's index.

    Raises:
        ModelError: a negative torque, a command outside 0 to 1, or an unknown joint or coordinate.
    """
    element = self.element("actuator", label, "brake")
    command = validate.number(element, "command", command)
    if not 0.0 <= command <= 1.0:
        raise validate.fail(element, f"command = {command:g} is not within 0 to 1", "give a share of the torque")
    params = {
        "joint": self.check_joint(element, "joint", joint, axis),
        "axis": axis,
        "torque": validate.not_negative(element, "torque", torque),
        "initial_command": command,
    }
    return self.add_actuator("brake", label, params)
