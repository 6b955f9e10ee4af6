"""Signals of joints: coordinates, rates, drive forces, reaction wrenches, and parameters."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import numpy as np

from gpusim import rotations, validate
from gpusim.compiler.rows import AXIS_PARAMETERS
from gpusim.description.joint_kinds import CHORD, angle_of_chord, chord_of, joint_type
from gpusim.model.ropes import pulling
from gpusim.reference.signals.quantities import COORDINATE, FRAME, TENSION
from gpusim.reference.signals.writes import Target
from gpusim.reference.step_buffers import StepBuffers
from gpusim.signals.added_rows import add_row, write_length
from gpusim.signals.latches import read_attached, write_attached
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import Signal, SignalInfo, SignalTable
from gpusim.typing import Array

_FORCES = {"m": "N", "rad": "N m"}
_UNITS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("limit_lower", "limit_upper"), {unit: unit for unit in ("m", "rad", "m, rad")}),
    "damping": {"m": "N s/m", "rad": "N m s/rad"}, "friction": _FORCES, "armature": {"m": "kg", "rad": "kg m2"},
    "limit_restitution": dict.fromkeys(("m", "rad", "m, rad"), "-"),
}  # fmt: skip
"""Units of joint parameters, by unit of the coordinate. A tendon over both sliders and hinges has the unit "m, rad"."""
_DOCS = {"limit_lower": "lower limit", "limit_upper": "upper limit", "limit_restitution": "restitution at the limits"}


def add_joint_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the signals of all joints, such as ``joint.<label>.position``."""
    # Build these tables once, because a model may have thousands of joints.
    axes: dict[int, dict[int, int]] = defaultdict(dict)
    for k, axis in enumerate(runtime.model.axes):
        axes[axis.joint][axis.coordinate] = k
    labels = runtime.model.topology.constraint_labels[: len(runtime.model.joints)]
    constraints = {label: k for k, label in enumerate(labels)}
    ropes = {joint: k for k, joint in enumerate(pulling(runtime.model))}
    for index, joint in enumerate(runtime.model.joints):
        constraint = constraints.get(joint.label, -1)
        JointSignals(runtime, index, axes[index], constraint, ropes.get(index, -1)).add(table, f"joint.{joint.label}.")


class JointSignals:
    """Signals of one joint.

    Args:
        runtime: runtime of the simulation.
        index: index of the joint.
        axes: dict that maps joint coordinates to the indices of their axis rows (constraint rows). Some coordinates
            have no axis row.
        constraint: index of the joint's constraint, or -1.
        rope: index of the joint among the joints with a tension signal, or -1.
    """

    def __init__(self, runtime: Runtime, index: int, axes: dict[int, int], constraint: int, rope: int) -> None:
        self.runtime, self.index, self.model = runtime, index, runtime.model
        self.axes, self.constraint, self.rope = axes, constraint, rope
        self.spec = runtime.model.joints[index]
        self.type = joint_type(self.spec.kind)
        self.count = self.type.moves(self.spec)

    def add(self, table: SignalTable, prefix: str) -> None:
        """Add the signals of the joint to the table."""
        unit = self.type.unit(self.spec)
        rate_shape: tuple[int, ...] = () if self.count == 1 else (self.count,)
        numbers = tuple(self.runtime.now.coordinates.of_joint[self.index][: max(self.count, 1)])
        writable = self.type.sets_pose and self.spec.child >= 0
        write = Target(self.type.position_is, self.index) if writable else None
        value, rate = COORDINATE
        if self.type.position_is == "pose":
            table.observe(prefix + "position", FRAME[1], numbers[:1], write)
            table.observe(prefix + "velocity", FRAME[2], numbers[:1])
        elif self.count:
            if self.type.position_is == "quaternion":
                table.observe(prefix + "position", FRAME[0], numbers[:1], write)
            else:
                table.observe(prefix + "position", value, numbers, write, shape=rate_shape, unit=unit)
            write = Target("rates", self.index) if writable else None
            table.observe(prefix + "velocity", rate, numbers, write, shape=rate_shape, unit=unit + "/s")
        if self.rope >= 0:
            force = {"m": "N", "rad": "N m"}.get(unit, "N, N m")
            table.observe(prefix + "tension", TENSION[0], (self.rope,), unit=force)
        if self.count:
            table.add(
                prefix + "drive_force", rate_shape, _FORCES.get(unit, "N, N m"),
                "sum of all actuators on the coordinate, including brakes", self.drive_force, forward=True,
            )  # fmt: skip
        table.add(
            prefix + "reaction", (6,), "N, N m",
            "force and torque of the child on the parent at the parent's joint point, world frame; by a trial step "
            "from t with constant commands and constant rates of ropes",
            self.reaction, forward=True,
        )  # fmt: skip
        if self.type.switched:
            table.add(
                prefix + "attached", (), "-", "1: locked at the current pose; 0: released; may differ per world",
                partial(read_attached, self.runtime, self.index), partial(write_attached, self.runtime, self.index),
            )  # fmt: skip
        for k, kind in enumerate(self.type.kinds(self.spec)):
            if kind == CHORD:
                self._add_cone(table, prefix, self.axes[k])
                continue
            suffix = "" if self.count == 1 else f"_{k}"
            names = (f"{prefix}{name}{suffix}" for name in AXIS_PARAMETERS)
            table.later(names, partial(self._parameter, prefix, suffix, k))

    def _add_cone(self, table: SignalTable, prefix: str, axis: int) -> None:
        name, element = f"{prefix}cone_limit", self.spec.element

        def read() -> Array:
            return angle_of_chord(self.runtime.parameter("limit_upper")[:, axis])

        def write(worlds: Array, value: Array) -> None:
            wrong = value[~((value > 0.0) & ((value < np.pi) | np.isinf(value)))]
            if wrong.size:
                raise validate.fail(element, f"cone_limit = {wrong[0]:g} is not within 0 to pi", "give an angle in rad")
            self.runtime.write_parameter("limit_upper", axis, worlds, chord_of(value))

        doc = "maximum angle between the cone axes of parent and child; may differ per world"
        table.add(name, (), "rad", doc, read, write)

    def _parameter(self, prefix: str, suffix: str, k: int, name: str) -> Signal:
        """Return the signal of the joint parameter ``name`` of coordinate ``k``."""
        key, field = (self.index, k), name.removeprefix(prefix).removesuffix(suffix)
        moving = self.type.moving(self.spec.params) if field in ("limit_lower", "limit_upper") else None

        def read() -> Array:
            axis, params = self.runtime.model.axis_of.get(key, -1), self.spec.params
            if axis >= 0 and (moving is None or "moves" in params):
                return self.runtime.parameter(field)[:, axis]
            return np.full(self.runtime.num_worlds, float((moving or params)[field][k]))

        def write(worlds: Array, value: Array) -> None:
            if moving:
                write_length(self.runtime, self.index, worlds, value)
                return
            axis = self.runtime.model.axis_of.get(key, -1)  # another write may have added the row
            if axis >= 0:
                self.runtime.write_parameter(field, axis, worlds, value)
            else:
                add_row(self.runtime, self.index, k, field, worlds, value)

        unit = _UNITS[field].get(self.type.unit_of(self.spec, k), "m or rad, N or N m")
        axis = self.runtime.model.axis_of.get(key, -1)
        parameter = (field, (axis,)) if axis >= 0 and moving is None else None
        return Signal(
            SignalInfo(name, (), unit, f"{_DOCS.get(field, field)}; may differ per world", True),
            read,
            write,
            parameter=parameter,
        )

    def drive_force(self) -> Array:
        """Return the total actuator force or torque on each joint coordinate (N or N m)."""
        w = self.runtime.forward()
        total = np.zeros((self.runtime.num_worlds, self.count))
        for k, axis in self.axes.items():
            if k >= self.count:  # the limit of a ball joint's total angle has an axis row, but no coordinate
                continue
            for name, group in w.groups.items():
                if name in w.term_forces:
                    total[:, k] += np.sum(w.term_forces[name][:, group.axis == axis], axis=1)
            total[:, k] += self._coupled(w, axis)
        return total[:, 0] if self.count == 1 else total

    def _coupled(self, w: StepBuffers, axis: int) -> Array:
        """Return the force or torque on an axis row from actuators that couple several axis rows, (num_worlds,)."""
        total, kick = np.zeros(self.runtime.num_worlds), np.where(w.kick_time > 0.0, w.kick_time, 1.0).reshape(-1)
        for group in w.groups.values():
            if group.coupled is None:
                continue
            for number, axes in zip(group.coupled, group.axes, strict=True):
                constraint = self.model.topology.coupled_constraint[number]
                total += np.sum(w.solved[:, constraint, : axes.size][:, axes == axis], axis=1) / kick
        return total

    def reaction(self) -> Array:
        """Return the current reaction wrench of the joint (N, N m), including drives and limits, (num_worlds, 6)."""
        w, t = self.runtime.forward(), self.model.topology
        if self.constraint < 0:
            return np.zeros((self.runtime.num_worlds, 6))
        side = self.constraint * t.slots
        kick = np.where(w.kick_time > 0.0, w.kick_time, 1.0)
        wrench = np.matmul(w.solved[:, self.constraint, None, :], w.jacobian[:, side])[:, 0] / kick
        arm = self.runtime.now.points(self.runtime.now.coordinates.of_joint[self.index][:1])[0][:, 0]
        force = wrench[:, :3]
        torque = wrench[:, 3:] - rotations.cross(arm.astype(force.dtype), force)
        return np.concatenate([force, torque], axis=-1)
