"""Named postures: ``b.add_pose("home", ...)`` and ``sim.reset(pose="home")``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.builder.commands import activation_signals, command_names
from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import JointSpec, PoseSpec
from gpusim.errors import ModelError, unknown_name
from gpusim.transform import Transform
from gpusim.typing import Array, Vector


@builder_method
def add_pose(
    self: ModelBuilder,
    label: str,
    joints: Mapping[str, Vector | float | Transform] | None = None,
    bodies: Mapping[str, Transform] | None = None,
    commands: Mapping[str, float] | None = None,
    activations: Mapping[str, float] | None = None,
) -> None:
    """Add a named posture for ``sim.reset(pose=label)``.

    All values that the posture does not set keep their initial values, including velocities. A joint coordinate moves
    the child and all bodies that are attached to the child. For closed loops, give the poses of all bodies in the loop.

    Args:
        label: unique name, such as "home".
        joints: joint coordinates (m or rad) by joint label. For a ball joint, give a quaternion (x, y, z, w). For a
            free joint, give a Transform.
        bodies: poses of body frames in the world, by body label.
        commands: values of commands (``sim.control``), by label.
        activations: activations of muscles, and of commands with a lag or an integrator, by command label.

    Raises:
        ModelError: a name is unknown, or a value has the wrong shape.
    """
    element = f"pose '{label}'"
    by_label = {joint.label: joint for joint in self.joints}
    known = [name for spec in self.actuators for name in command_names(spec)]
    known += [item.label for diagram in self.diagrams for item in diagram.operator_inputs]
    parts = [
        ("joint", _checked(element, "joints", joints), by_label),
        ("body", _checked(element, "bodies", bodies), [body.label for body in self.bodies]),
        ("command", _checked(element, "commands", commands), known),
        ("activation", _checked(element, "activations", activations), activation_signals(self)),
    ]
    for kind, given, names in parts:
        for name in given:
            if name not in names:
                raise ModelError(f"{element}: {unknown_name(kind, name, names)}")
    by_joint, by_body, by_command, by_activation = (given for _, given, _ in parts)
    for name, xform in by_body.items():
        if not isinstance(xform, Transform):
            rule = f"the pose of body '{name}' is {xform!r:.60}"
            raise validate.fail(element, rule, "give a gpusim.Transform")
    spec = PoseSpec(
        label,
        {name: _coordinates(element, by_label[name], value) for name, value in by_joint.items()},
        by_body,
        {name: validate.number(element, f"command '{name}'", value) for name, value in by_command.items()},
        {name: validate.number(element, f"activation '{name}'", value) for name, value in by_activation.items()},
    )
    if not (spec.joints or spec.bodies or spec.commands or spec.activations):
        raise validate.fail(element, "it sets nothing", "give joints, bodies, commands or activations")
    self.add_pose_spec(spec)


def _checked(element: str, name: str, given: Any) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise validate.fail(element, f"{name} = {given!r:.60} is not a dict", "give {label: value}")
    return dict(given or {})


def _coordinates(element: str, joint: JointSpec, value: Any) -> Array:
    """Check joint coordinates, and return them in the format of the signal ``joint.<label>.position``."""
    kind = joint_type(joint.kind)
    count = kind.moves(joint)
    size = {"pose": 7, "quaternion": 4}.get(kind.position_is, count)
    name = f"position of joint '{joint.label}'"
    if not kind.sets_pose or size == 0:
        rule = f"{joint.kind} joint '{joint.label}' has no position that can be set"
        raise validate.fail(element, rule, "give the poses of its bodies")
    if isinstance(value, Transform):
        if size != 7:
            rule = f"{name} is a Transform, and a {joint.kind} joint has {size} coordinate{'s' * (size > 1)}"
            raise validate.fail(element, rule, "give numbers, m or rad")
        return np.concatenate([value.position, value.rotation])
    numbers = validate.numbers(element, name, [value] if np.isscalar(value) else value, size)
    return numbers.reshape(()) if size == 1 else numbers
