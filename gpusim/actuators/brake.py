"""Brake: dry friction on a joint coordinate, proportional to the command.

    |T| <= torque * command,   command 0 to 1

The solver solves Coulomb's law together with the joint constraints. A brake therefore holds a machine at rest. A
velocity servo would let the machine creep.
"""

from __future__ import annotations

from typing import ClassVar

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.actuator_kinds import (
    Group,
    JointActuator,
    Parameter,
    Reading,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import SUM, joint_type
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array


def read_command(group: Group, now: StateReader) -> Array:
    """Return the brake command, 0 to 1."""
    return now.control[:, group.control["command"]]


@register
class Brake(JointActuator):
    """Brake: dry friction on a joint coordinate."""

    name: ClassVar[str] = "brake"
    kernel_file: ClassVar[str] = "brake.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate",)
    prefix: ClassVar[str] = "brake"
    rotational: ClassVar[bool] = True
    commands: ClassVar[tuple[str, ...]] = ("command",)
    needs: ClassVar[tuple[str, ...]] = ("safe",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("torque", "N m", "maximum torque (N on a translation)"),
        Parameter("initial_command", "-", "initial command"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading(
            "command",
            "-",
            "fraction of the maximum torque",
            read_command,
            "*out = w.brake_command_now(i);",
            lambda p: (0.0, 1.0),
        ),
    )
    brakes: ClassVar[bool] = True

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return the initial command from the builder."""
        return float(spec.params["initial_command"])

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the command: a pedal, 0 to 1. The builder chooses the safe value."""
        return UiHints(lower=0.0, upper=1.0, safe=float(spec.params["safe"]))

    def check(self, group: Group) -> None:
        """Raise ModelError if a torque is negative."""
        group.check_signs(not_negative=("torque",))

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add dry friction in proportion to the mean command over the velocity update (kick)."""
        if velocity is None:
            work.add_friction(group, group.params["torque"] * work.command(group, "command"))


@builder_method
def add_brake(
    self: ModelBuilder,
    joint: int,
    torque: float,
    axis: int = 0,
    command: float = 0.0,
    label: str | None = None,
) -> int:
    """Add a brake on a joint coordinate.

    ``sim.control[label]`` is the fraction of the maximum torque, 0 (released) to 1. The signal ``brake.<label>.force``
    is the torque of the brake, and ``brake.<label>.heat`` is the dissipated power. To model a clutch, add a tendon that
    connects the two shafts, and a brake on the tendon. An emergency stop applies brakes on joints, and releases brakes
    on tendons, so that clutches open. ``set_command_map(label, safe=...)`` sets another command for emergency stops.

    Args:
        joint: joint index.
        torque: maximum torque (N m, or N on a translation).
        axis: index of the joint coordinate.
        command: initial command, 0 to 1.
        label: unique name.

    Returns:
        The index of the actuator.

    Raises:
        ModelError: the torque is negative, the command is not between 0 and 1, or the joint or coordinate is unknown.
    """
    element = self.element("actuator", label, "brake")
    index = self.check_joint(element, "joint", joint, axis)
    first = validate.number(element, "command", command)
    if not 0.0 <= first <= 1.0:
        raise validate.fail(element, f"command = {first:g} is not within 0 to 1", "give a fraction of the torque")
    spec = self.joints[index]
    params = {
        "joint": index,
        "axis": axis,
        "torque": validate.not_negative(element, "torque", torque),
        "initial_command": first,
        "safe": 0.0 if joint_type(spec.kind).kinds(spec)[axis] == SUM else 1.0,
    }
    return self.add_actuator("brake", label, params)
