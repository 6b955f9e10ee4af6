"""Signals of joints: coordinates, rates, drive force, reaction wrench; and their parameters."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.geometry import rotations
from gpusim.model.joint_kinds import TRANSLATION, UNITS, joint_type
from gpusim.model.rows import AXIS_PARAMETERS
from gpusim.sensors import kinematics
from gpusim.sensors.added_rows import add_row
from gpusim.sensors.signal import SignalTable
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

matvec, cross = rotations.matvec, rotations.cross


def add_joint_signals(sim: Simulation, table: SignalTable) -> None:
    """``joint.<label>.position`` and so on."""
    # Looked up once for all joints: a model may have many thousands of them.
    axes: dict[int, dict[int, int]] = defaultdict(dict)
    for k, axis in enumerate(sim.model.axes):
        axes[axis.joint][axis.coordinate] = k
    labels = sim.model.topology.constraint_labels[: len(sim.model.joints)]
    constraints = {label: k for k, label in enumerate(labels)}
    for index, joint in enumerate(sim.model.joints):
        constraint = constraints.get(joint.label, -1)
        JointSignals(sim, index, axes[index], constraint).add(table, f"joint.{joint.label}.")


class JointSignals:
    """Readers and writers of one joint.

    Args:
        sim: whose joint it is.
        index: of the joint.
        axes: the model's axis that serves each of the joint's coordinates, where one does.
        constraint: that holds the joint's rows, or -1.
    """

    def __init__(self, sim: Simulation, index: int, axes: dict[int, int], constraint: int) -> None:
        self.sim, self.index, self.model = sim, index, sim.model
        self.axes, self.constraint = axes, constraint
        self.spec = sim.model.joints[index]
        self.type = joint_type(self.spec.kind)
        self.count = len(self.type.coordinates) - self.type.limits_alone

    def add(self, table: SignalTable, prefix: str) -> None:
        """Make the joint's signals known."""
        units = {UNITS[k] for k in self.type.coordinates}
        unit = units.pop() if len(units) == 1 else "m, rad"
        shape = {"quaternion": (4,), "pose": (7,)}.get(self.type.position_is, () if self.count == 1 else (self.count,))
        rate_shape: tuple[int, ...] = () if self.count == 1 else (self.count,)
        if self.type.position_is == "pose":
            rate_shape = (6,)
        if self.count or self.type.position_is == "pose":
            doc = {
                "quaternion": "child's frame in the parent's, xyzw",
                "pose": "child's frame in the parent's: position, quaternion xyzw",
            }.get(self.type.position_is, "joint coordinate, turns counted")
            writable = self.type.sets_pose and self.spec.child >= 0
            table.add(prefix + "position", shape, unit, doc, self.position, self.write_position if writable else None)
            rates = self.rate_of_pose if self.type.position_is == "pose" else self.velocity
            can_write = writable and self.type.position_is != "pose"
            table.add(
                prefix + "velocity", rate_shape, unit + "/s", "rate of the coordinate at t", rates,
                self.write_velocity if can_write else None,
            )  # fmt: skip
        if self.count:
            table.add(
                prefix + "drive_force", rate_shape, "N, N m", "sum of the actuators on the coordinate", self.drive_force
            )
        table.add(
            prefix + "reaction", (6,), "N, N m",
            "force and torque of the child on the parent at the parent's joint point, world frame", self.reaction,
        )  # fmt: skip
        for k in range(len(self.type.coordinates)):
            suffix = "" if self.count == 1 else f"_{k}"
            for name in AXIS_PARAMETERS:
                self._add_parameter(table, f"{prefix}{name}{suffix}", name, k)

    def _add_parameter(self, table: SignalTable, name: str, field: str, k: int) -> None:
        """A coordinate without a row has the values that it was built with; the first other one makes the row."""

        def read() -> Array:
            if k in self.axes:
                return self.sim.parameter(field)[:, self.axes[k]]
            return np.full(self.sim.num_worlds, float(self.spec.params[field][k]))

        def write(worlds: Array, value: Array) -> None:
            if k in self.axes:
                self.sim.write_parameter(field, self.axes[k], worlds, value)
            else:
                add_row(self.sim, self.index, k, field, worlds, value)

        table.add(name, (), "SI", f"{field}; may differ per world", read, write)

    def _pose(self) -> kinematics.JointPose:
        state = self.sim.read_state()
        rotation = rotations.matrix_from_quaternion(state["orientation"])
        return kinematics.joint_pose(self.model, self.index, state["position"], rotation)

    def position(self) -> Array:
        """The coordinates; a quaternion for a ball, a pose for a free joint."""
        state, pose = self.sim.read_state(), self._pose()
        if self.type.position_is != "coordinates":
            q = kinematics.relative_quaternion(self.model, self.index, state["orientation"])
            if self.type.position_is == "quaternion":
                return q
            frame = np.matmul(pose.rotation_a, self.spec.parent_xform.matrix()).swapaxes(-1, -2)
            return np.concatenate([matvec(frame, pose.point_b - pose.point_a), q], axis=-1)
        self.sim.current_angles()
        values = [
            kinematics.coordinate_value(self.model, self.index, k, pose, state["angle"], state["orientation"])
            for k in range(self.count)
        ]
        return values[0].copy() if self.count == 1 else np.stack(values, axis=-1)

    def velocity(self) -> Array:
        """Rates of the coordinates."""
        w = self.sim.sensed()
        values = [
            kinematics.coordinate_rate(self.model, self.index, k, self._pose(), w.twist_now) for k in range(self.count)
        ]
        return values[0] if self.count == 1 else np.stack(values, axis=-1)

    def rate_of_pose(self) -> Array:
        """Linear and angular velocity of the child's joint frame, world frame."""
        w, pose = self.sim.sensed(), self._pose()
        twist = w.twist_now[:, self.spec.child]
        return np.concatenate(
            [twist[:, :3] + cross(twist[:, 3:], pose.arm_b.astype(twist.dtype)), twist[:, 3:]], axis=-1
        )

    def drive_force(self) -> Array:
        """Sum of the actuators' shares, N or N m."""
        w = self.sim.sensed()
        total = np.zeros((self.sim.num_worlds, self.count))
        for k, axis in self.axes.items():
            for name, group in w.groups.items():
                if k < self.count and name in w.shares:
                    total[:, k] += np.sum(w.shares[name][:, group.axis == axis], axis=1)
        return total[:, 0] if self.count == 1 else total

    def reaction(self) -> Array:
        """Wrench of the last kick's impulses, drives and limits of this joint included."""
        w, t = self.sim.sensed(), self.model.topology
        if self.constraint < 0:
            return np.zeros((self.sim.num_worlds, 6))
        side = self.constraint * t.slots
        kick = np.where(w.kick_time > 0.0, w.kick_time, 1.0)
        wrench = np.matmul(w.impulse[:, self.constraint, None, :], w.jacobian[:, side])[:, 0] / kick
        pose = self._pose()
        force = wrench[:, :3]
        torque = wrench[:, 3:] - cross(pose.arm_a.astype(force.dtype), force)
        return np.concatenate([force, torque], axis=-1)

    def write_position(self, worlds: Array, value: Array) -> None:
        """Move the child and all that hangs on it; velocities turn with them."""
        sim = self.sim
        sim.begin_write(worlds)
        pose = self._pose()
        if self.type.position_is == "coordinates":
            values = np.zeros((sim.num_worlds, self.count))
            values[worlds] = value.reshape(worlds.size, self.count)
            rotation, center = kinematics.child_pose(self.model, self.index, pose, values)
        else:
            values = np.zeros((sim.num_worlds, 7))
            values[:, 6] = 1.0
            values[worlds, 7 - value.shape[-1] :] = value
            q = rotations.normalized(values[:, 3:])
            rotation, center = kinematics.child_pose_from_frame(self.model, self.index, pose, values[:, :3], q)
        self._carry(worlds, pose, rotation, center)
        sim.state.reset_angles(self.model, worlds)
        for k in range(self.count):
            if (self.index, k) in self.model.angle_of:
                sim.state.arrays["angle"][worlds, self.model.angle_of[self.index, k]] = values[worlds, k]

    def _carry(self, worlds: Array, pose: kinematics.JointPose, rotation: Array, center: Array) -> None:
        """Apply the child's rigid motion to its whole subtree."""
        state = self.sim.state.arrays
        child = self.spec.child
        old = state["position"][:, child].copy()
        turn = np.matmul(rotation, pose.rotation_b.swapaxes(-1, -2))[worlds]
        spin = np.stack([_quaternion(m) for m in turn])
        for body in kinematics.subtree(self.model, self.index):
            arm = state["position"][worlds, body] - old[worlds]
            state["position"][worlds, body] = center[worlds] + matvec(turn, arm)
            q = rotations.quaternion_product(spin, state["orientation"][worlds, body])
            state["orientation"][worlds, body] = rotations.normalized(q)
            for name in ("linear_velocity", "angular_momentum"):
                state[name][worlds, body] = matvec(turn, state[name][worlds, body].astype(np.float64))

    def write_velocity(self, worlds: Array, value: Array) -> None:
        """Change the rates: the subtree gets the rigid velocity field of the difference."""
        sim = self.sim
        sim.begin_write(worlds)
        wanted = value.reshape(worlds.size, self.count)
        current = self.velocity().reshape(sim.num_worlds, self.count)[worlds]
        pose, difference = self._pose(), wanted - current
        linear, angular = np.zeros((worlds.size, 3)), np.zeros((worlds.size, 3))
        for k in range(self.count):
            c = self.model.coordinates[self.index][k]
            owner = (pose.rotation_b if c.axis_on_child else pose.rotation_a)[worlds]
            along = matvec(owner, np.broadcast_to(c.axis, (worlds.size, 3))) * difference[:, k, None]
            if c.kind == TRANSLATION:
                linear += along
            else:
                angular += along
        self._add_field(worlds, pose.point_b[worlds], linear, angular)

    def _add_field(self, worlds: Array, point: Array, linear: Array, angular: Array) -> None:
        state = self.sim.state.arrays
        for body in kinematics.subtree(self.model, self.index):
            arm = state["position"][worlds, body] - point
            state["linear_velocity"][worlds, body] += (linear + cross(angular, arm)).astype(
                state["linear_velocity"].dtype
            )
            r = rotations.matrix_from_quaternion(state["orientation"][worlds, body])
            inertia = self.sim.parameter("inertia")[worlds, body]
            momentum = matvec(r, matvec(inertia, matvec(r.swapaxes(-1, -2), angular)))
            state["angular_momentum"][worlds, body] += momentum.astype(state["angular_momentum"].dtype)


def _quaternion(matrix: Any) -> Array:
    from gpusim.geometry import Transform

    return Transform.from_matrix(matrix).rotation
