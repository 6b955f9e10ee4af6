"""Writes of poses and velocities in many worlds. A write is a list of operations.

A write first sets the poses of bodies, then joint coordinates (from parent to child), velocities of bodies, and joint
rates. The NumPy backend executes the operations with :func:`run`. The kernels use cuda_kernels/signals/writes.cuh.

Users write values at the time t, but the state stores velocities half a step before t. The first operations of a write
therefore advance the velocities of the affected bodies to t. The last operations convert them back to the half step.
They subtract (h'/2) a, with the duration h' of the last step and the last acceleration a of the body. If the write
changes the pose of a body, a is the acceleration of free fall. The state of all other bodies stays bitwise equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.description.joint_kinds import COUNTED, MIDDLE_ANGLE, SUM, TRANSLATION, joint_type
from gpusim.description.specs import WORLD
from gpusim.model.coordinates import KINDS
from gpusim.model.model import Model
from gpusim.reference.signals.state_reader import StateReader
from gpusim.typing import Array

matvec, cross = rotations.matvec, rotations.cross
OPERATIONS = (
    "RESTART", "ADVANCE", "STEP_BACK", "BODY_POSITION", "BODY_ORIENTATION", "REMEMBER", "JOINT", "JOINT_ROTATION",
    "JOINT_POSE", "CARRY", "BODY_LINEAR", "BODY_ANGULAR", "RATE", "CARRY_RATE", "APPLY_RATES", "WRAP_ANGLE",
    "SET_ANGLE", "AXIS_RATE", "FORGET_CONTACTS", "POSED",
)  # fmt: skip
"""Names of the operations. The index of a name is the operation's number."""
CODES = {name: number for number, name in enumerate(OPERATIONS)}
REMEMBERED = 21
"""Number of values that a write stores for each body: previous pose, changes of velocities, impact flags."""
IMPACT = 3.0
"""A velocity change counts as an impact if it exceeds IMPACT times the change in free fall."""
Operation = tuple[str, int, int, int]
_COUNTED = [KINDS[kind] for kind in COUNTED]


@dataclass(frozen=True)
class Target:
    """Target of a write: the quantity ``what`` of the body or joint with the index ``index``.

    For a body, ``what`` is "position", "orientation", "linear" or "angular". For a joint, ``what`` is "coordinates",
    "quaternion", "pose" or "rates".
    """

    what: str
    index: int


_OF_BODY = {
    "position": "BODY_POSITION", "orientation": "BODY_ORIENTATION", "linear": "BODY_LINEAR", "angular": "BODY_ANGULAR",
}  # fmt: skip
_OF_JOINT = {"coordinates": "JOINT", "quaternion": "JOINT_ROTATION", "pose": "JOINT_POSE"}


def plan(now: StateReader, targets: Sequence[tuple[Target, int]]) -> Array:
    """Return n operations (n, 4) that write ``targets``.

    Each entry of ``targets`` contains a target, and the first column of the values to write.
    """
    model = now.model

    def of_bodies(*what: str) -> list[Operation]:
        return [(_OF_BODY[t.what], t.index, 0, column) for w in what for t, column in targets if t.what == w]

    joint_poses = {t.index: (t, column) for t, column in targets if t.what in _OF_JOINT}
    rates = {t.index: column for t, column in targets if t.what == "rates"}
    posed_bodies, rated = _outward(model, list(joint_poses)), _outward(model, list(rates))
    moved = {t.index for t, _ in targets if t.what in ("position", "orientation")} | {
        body for _, body, _ in posed_bodies
    }
    sped = {t.index for t, _ in targets if t.what in ("linear", "angular")} | {body for _, body, _ in rated}
    start, end = _start_and_end(now, moved, sped)
    operations = start + of_bodies("position", "orientation")
    if joint_poses or rates:
        operations.append(("REMEMBER", 0, 0, 0))
    for joint, body, onto in posed_bodies:
        if joint < 0:
            operations.append(("CARRY", body, onto, 0))
            continue
        target, column = joint_poses[joint]
        numbers = now.coordinates.of_joint[joint]
        operations.append((_OF_JOINT[target.what], numbers[0], len(numbers), column))
    rotated = {t.index for t, _ in targets if t.what == "orientation"} | {body for _, body, _ in posed_bodies}
    angle = model.topology.angle
    for k, ends in enumerate(zip(angle.body_a.tolist(), angle.body_b.tolist(), strict=True)):
        if rotated.intersection(ends):
            operations.append(("WRAP_ANGLE", k, 0, 0))
    for joint, (target, column) in joint_poses.items():
        for k in range(len(model.coordinates[joint])):
            if target.what == "coordinates" and (joint, k) in model.angle_of:
                operations.append(("SET_ANGLE", model.angle_of[joint, k], 0, column + k))
    operations += of_bodies("linear", "angular")
    for joint, body, onto in rated:
        numbers = now.coordinates.of_joint[max(joint, 0)]
        if joint < 0:
            operations.append(("CARRY_RATE", body, onto, 0))
        else:
            spec = model.joints[joint]
            operations.append(("RATE", numbers[0], joint_type(spec.kind).moves(spec), rates[joint]))
    if rates:
        operations.append(("APPLY_RATES", 0, 0, 0))
    operations += end
    return np.array([(CODES[name], *rest) for name, *rest in operations], np.int32).reshape(-1, 4)


def _start_and_end(now: StateReader, moved: set[int], sped: set[int]) -> tuple[list[Operation], list[Operation]]:
    """Return the first operations and the last operations of a write."""
    bodies, axis_bodies = now.model.bodies, _axis_bodies(now)
    free = {i for i, body in enumerate(bodies) if not body.kinematic}
    if free and free <= moved:
        return [("RESTART", 0, 0, 0)], []
    advanced = sorted((moved & free) | sped)
    end: list[Operation] = [("STEP_BACK", i, (1 + (i in sped)) * (i in moved & free), 0) for i in advanced]
    end += [("FORGET_CONTACTS", i, 0, 0) for i in advanced if i in moved & free]
    end += [("POSED", 0, 0, 0)] if free & moved else []
    axes = [k for k, ends in enumerate(axis_bodies) if ends & (moved | sped)]
    end += [("AXIS_RATE", k, 1, 0) for k in axes]
    return [("AXIS_RATE", k, -1, 0) for k in axes] + [("ADVANCE", i, 0, 0) for i in advanced], end


def _axis_bodies(now: StateReader) -> list[set[int]]:
    """Return for each joint axis the set of bodies that its rate depends on."""
    columns, sums = now.coordinates.columns, now.coordinates.sums

    def ends(number: int) -> set[int]:
        if columns["kind"][number] != KINDS[SUM]:
            return {int(columns["body_a"][number]), int(columns["body_b"][number])}
        first, last = sums["sum_start"][columns["part"][number] :][:2]
        return set().union(*(ends(int(n)) for n in sums["sum_coordinate"][first:last]))

    return [ends(int(number)) for number in now.coordinates.of_axis]


def _outward(model: Model, joints: list[int]) -> list[tuple[int, int, int]]:
    """Return the bodies that move with the children of ``joints``, from parent to child.

    Each entry contains the joint to write (or -1), the body, and the body that carries this body.
    """
    joint_of = {model.joints[j].child: j for j in reversed(joints)}
    children_of = _children(model, joint_of)
    moved: dict[int, tuple[int, int, int]] = {}

    def follow(root: int) -> None:
        spec = model.joints[root]
        moved[spec.child] = (root, spec.child, spec.parent)
        queue = [spec.child]
        for body in queue:
            for j, child in children_of.get(body, ()):
                if child in moved or child == spec.parent or joint_of.get(child, j) != j:
                    continue
                moved[child] = (j if child in joint_of else -1, child, body)
                queue.append(child)

    behind = {b for j in joints for b in _subtree(model, children_of, j)[1:]}
    for j in sorted(joints, key=lambda j: model.joints[j].child in behind):
        if model.joints[j].child not in moved:
            follow(j)
    return list(moved.values())


def _children(model: Model, written: dict[int, int]) -> dict[int, list[tuple[int, int]]]:
    """Return the children of each body as pairs (joint, child body). ``written`` maps children to written joints."""
    fittings = _fittings(model)
    carriers = dict(written)
    for sets_pose in (True, False):
        for j, spec in enumerate(model.joints):
            if j not in fittings and joint_type(spec.kind).sets_pose >= sets_pose:
                carriers.setdefault(spec.child, j)
    children_of: dict[int, list[tuple[int, int]]] = {}
    for j, spec in enumerate(model.joints):
        if spec.child != WORLD and carriers.get(spec.child) == j:
            children_of.setdefault(spec.parent, []).append((j, spec.child))
    for j in sorted(fittings):
        children_of.setdefault(model.joints[j].child, []).append((j, model.joints[j].parent))
    return children_of


def _fittings(model: Model) -> set[int]:
    """Return the fixed joints that attach a free parent body to a link. A write moves this parent with the link."""
    parents = [spec.parent for spec in model.joints if spec.child != WORLD]
    children = [spec.child for spec in model.joints]
    found = set()
    for j, spec in enumerate(model.joints):
        free = spec.parent != WORLD and spec.parent not in children and not model.bodies[spec.parent].kinematic
        link = spec.child != WORLD and children.count(spec.child) > 1
        if joint_type(spec.kind).welds and free and link and parents.count(spec.parent) == 1:
            found.add(j)
    return found


def _subtree(model: Model, children_of: dict[int, list[tuple[int, int]]], joint: int) -> list[int]:
    """Return the child body of a joint and all its descendants, from parent to child."""
    found = {model.joints[joint].child: None}
    for body in (queue := list(found)):
        for _, child in children_of.get(body, ()):
            if child not in found and child != model.joints[joint].parent:
                found[child] = None
                queue.append(child)
    return list(found)


def run(now: StateReader, operations: Array, values: Array, worlds: Array) -> None:
    """Execute operations in n chosen ``worlds`` (n,). ``values`` is (n, columns)."""
    writer = _Writer(now, values, worlds)
    for code, i, j, column in operations.tolist():
        getattr(writer, OPERATIONS[code].lower())(i, j, column)


class _Writer:
    """NumPy versions of the operations.

    Each operation takes two integers i and j, and the first column of the values that it writes.
    """

    def __init__(self, now: StateReader, values: Array, worlds: Array) -> None:
        self.now, self.values, self.worlds, self.state = now, values, worlds, now.state
        self.table = now.coordinates.columns
        self.advanced: dict[int, Array] = {}
        self.struck: dict[int, Array] = {}

    def _get(self, name: str, body: int) -> Array:
        return np.asarray(self.state[name][self.worlds, body], np.float64)

    def _set(self, name: str, body: int, value: Array) -> None:
        self.state[name][self.worlds, body] = value

    def _rotation(self, body: int) -> Array:
        return rotations.matrix_from_quaternion(self._get("orientation", body))

    def _center_offset(self, body: int) -> Array:
        return matvec(self._rotation(body), np.broadcast_to(self.now.model.bodies[body].com, (len(self.worlds), 3)))

    def _momentum(self, body: int, omega: Array) -> Array:
        """Return the angular momentum I omega (kg m2/s) of a body in the world frame."""
        inertia = self.now.parameters["inertia"][:, body]
        inertia = inertia if inertia.shape[0] == 1 else inertia[self.worlds]
        r = self._rotation(body)
        return matvec(r, matvec(inertia, matvec(r.swapaxes(-1, -2), omega)))

    def restart(self, i: int, j: int, column: int) -> None:
        """Replace the stored velocities of all bodies by the velocities at t."""
        velocity = self.now.velocity()[self.worlds]
        half = 0.5 * self.state["step_before"][self.worlds][:, None]
        for body in range(len(self.now.model.bodies)):
            fall = np.where(self._was_struck(body, velocity[:, body]), half * self._free_fall(body), 0.0)
            velocity[:, body] += fall
        self.state["linear_velocity"][self.worlds] = velocity[..., :3]
        self.state["angular_momentum"][self.worlds] = velocity[..., 3:]
        self.state["step_before"][self.worlds] = 0.0

    def _half_velocity(self, body: int) -> Array:
        return np.concatenate([self._get("linear_velocity", body), self._get("angular_momentum", body)], axis=-1)

    def _was_struck(self, body: int, now: Array) -> Array:
        """Return a mask of the linear and angular velocities that an impact changed in the last step, (n, 6)."""
        half = self._half_velocity(body)
        kick = self.state["kick_before"][self.worlds][:, None]
        if self.now.model.bodies[body].kinematic or self.now.semi_implicit:
            return np.zeros(half.shape, bool)
        change, limit = half - self._get("velocity_before", body), IMPACT * kick * self._free_fall(body)
        change, limit, advance = (x.reshape(-1, 2, 3) for x in (change, limit, now - half))
        struck = (advance == 0.0).all(axis=2) & (rotations.dot(change, change) > rotations.dot(limit, limit))
        return np.repeat(struck, 3, axis=1)

    def advance(self, i: int, j: int, column: int) -> None:
        """Advance the velocities of body i from the half step to t, and store the change."""
        half, now = self._half_velocity(i), self.now.velocity([i])[self.worlds, 0]
        self.struck[i], self.advanced[i] = self._was_struck(i, now), now - half
        for name, part in (("linear_velocity", slice(3)), ("angular_momentum", slice(3, 6))):
            self._set(name, i, now[:, part])
        for name in ("velocity_before", "velocity_before_last"):
            self._set(name, i, now)

    def step_back(self, i: int, j: int, column: int) -> None:
        """Convert the velocities of body i, and its stored previous velocities, back to the half step.

        If j is 0, subtract the change that :meth:`advance` stored. If j is 1 or 2, subtract the velocity change in free
        fall. If j is 1, a body after an impact keeps its velocity.
        """
        times = ("step_before", "kick_before", "kick_before_last")
        h, kick, older = (self.state[name][self.worlds][:, None] for name in times)
        half = 0.5 * h
        change_back = half * self._free_fall(i) if j else self.advanced[i]
        change_back = np.where(self.struck[i] & (j == 1), 0.0, change_back)
        # If the first step had an impact, the velocities are not extrapolated.
        # Semi-implicit velocities are already at t.
        change_back = np.where((older < 0.0) | self.now.semi_implicit, 0.0, change_back)
        velocity = self._half_velocity(i) - change_back
        pull = np.where(h > 0.0, change_back / np.where(h > 0.0, half, 1.0), 0.0)
        before = velocity - kick * pull
        for name, part in (("linear_velocity", slice(3)), ("angular_momentum", slice(3, 6))):
            self._set(name, i, velocity[:, part])
        self._set("velocity_before", i, before)
        self._set("velocity_before_last", i, before - np.maximum(older, 0.0) * pull)

    def _free_fall(self, i: int) -> Array:
        """Return the acceleration of body i due to gravity and applied force, and the applied torque, (n, 6)."""
        p = self.now.parameters
        applied = (p[name][:, i] for name in ("applied_force", "applied_torque"))
        alone = (p[name][:, i, None] for name in ("gravity_scale", "mass"))
        gravity, force, torque, scale, mass = (
            a if a.shape[0] == 1 else a[self.worlds] for a in (p["gravity"], *applied, *alone)
        )
        pull = np.concatenate(np.broadcast_arrays(scale * gravity + force / mass, torque), axis=-1)
        return np.broadcast_to(pull, (len(self.worlds), 6))

    def axis_rate(self, i: int, j: int, column: int) -> None:
        """Add j times the rate of joint axis i at t to the stored rates of this axis.

        The write subtracts the old rate (j = -1), and adds the new rate at the end (j = 1).
        """
        rate = self.now.axis_rate(np.array([i]))[self.worlds, 0]
        for name in ("axis_velocity", "axis_velocity_before"):
            self.state[name][self.worlds, i] += j * rate

    def forget_contacts(self, i: int, j: int, column: int) -> None:
        """Make the next step ignore the history of all contact points on body i."""
        shapes, age = self.state["pair_shapes"][self.worlds], self.state["contact_age"][self.worlds]
        listed = np.arange(shapes.shape[1]) < self.state["pair_count"][self.worlds][:, None]
        mine = listed & (self.now.model.contact.body[shapes] == i).any(axis=-1) if shapes.size else listed
        self.state["contact_age"][self.worlds] = np.where(mine[..., None], 0, age)

    def posed(self, i: int, j: int, column: int) -> None:
        """Mark the worlds as written. The next accuracy check then ignores joint errors."""
        self.state["posed"][self.worlds] = 1

    def body_position(self, i: int, j: int, column: int) -> None:
        """Write the position of the body frame of body i."""
        self._set("position", i, self.values[:, column : column + 3] + self._center_offset(i))

    def body_orientation(self, i: int, j: int, column: int) -> None:
        """Rotate body i to the written orientation about the origin of its body frame."""
        origin = self._get("position", i) - self._center_offset(i)
        omega = self.now.twist([i])[self.worlds, 0, 3:]
        self._set("orientation", i, rotations.normalized(self.values[:, column : column + 4]))
        self._set("position", i, origin + self._center_offset(i))
        self._set("angular_momentum", i, self._momentum(i, omega))

    def body_linear(self, i: int, j: int, column: int) -> None:
        """Write the velocity of the center of mass of body i."""
        self._set("linear_velocity", i, self.values[:, column : column + 3])

    def body_angular(self, i: int, j: int, column: int) -> None:
        """Write the angular velocity of body i in the world frame."""
        self._set("angular_momentum", i, self._momentum(i, self.values[:, column : column + 3]))

    def remember(self, i: int, j: int, column: int) -> None:
        """Save the current poses, and set the accumulated velocity changes to zero."""
        self.before = {name: self.state[name][self.worlds].copy() for name in ("position", "orientation")}
        self.change = np.zeros((*self.before["position"].shape[:2], 6))

    def joint(self, i: int, j: int, column: int) -> None:
        """Write the joint coordinates i, ..., i + j - 1 of one joint."""
        t = self.table
        relative_rotation = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (len(self.worlds), 4))
        after, shift = relative_rotation, np.zeros((len(self.worlds), 3))
        for k in range(j):
            value, axis = self.values[:, column + k, None], t["axis"][i + k]
            if t["kind"][i + k] == KINDS[TRANSLATION]:
                shift = shift + value * axis
            elif t["kind"][i + k] in _COUNTED:
                if t["kind"][i + k] == KINDS[MIDDLE_ANGLE]:
                    axis = self._middle_axis(i + k)
                q = rotations.quaternion_from_rotation_vector(value * axis)
                if t["owner"][i + k] == t["body_b"][i]:
                    after = rotations.quaternion_product(after, q)
                else:
                    relative_rotation = rotations.quaternion_product(relative_rotation, q)
        relative_rotation = rotations.quaternion_product(relative_rotation, t["frame_a"][i][None])
        relative_rotation = rotations.quaternion_product(
            relative_rotation, rotations.quaternion_conjugate(t["frame_b"][i])[None]
        )
        self._move_child(i, rotations.quaternion_product(relative_rotation, after), shift)

    def _middle_axis(self, i: int) -> Array:
        """Return the axis of the second Euler angle in the zero pose, in the child's body frame."""
        t = self.table
        frame_rotation = rotations.quaternion_product(t["frame_b"][i], rotations.quaternion_conjugate(t["frame_a"][i]))
        return cross(t["axis"][i], matvec(rotations.matrix_from_quaternion(frame_rotation), t["other"][i]))

    def joint_rotation(self, i: int, j: int, column: int) -> None:
        """Write the rotation of the joint that owns coordinate i, as a quaternion from parent to child frame."""
        self._set_joint_frame(i, self.values[:, column : column + 4], np.zeros((len(self.worlds), 3)))

    def joint_pose(self, i: int, j: int, column: int) -> None:
        """Write the position (m) and the quaternion of the child's joint frame in the parent's joint frame."""
        frame = rotations.matrix_from_quaternion(self.table["frame_a"][i])
        shift = matvec(frame[None], self.values[:, column : column + 3])
        self._set_joint_frame(i, self.values[:, column + 3 : column + 7], shift)

    def _set_joint_frame(self, i: int, q: Array, shift: Array) -> None:
        rotation = rotations.quaternion_product(self.table["frame_a"][i][None], rotations.normalized(q))
        inverse = rotations.quaternion_conjugate(self.table["frame_b"][i])[None]
        self._move_child(i, rotations.quaternion_product(rotation, inverse), shift)

    def _move_child(self, i: int, relative_rotation: Array, shift: Array) -> None:
        a, b, count = int(self.table["body_a"][i]), int(self.table["body_b"][i]), len(self.worlds)
        q = rotations.normalized(rotations.quaternion_product(self._get("orientation", a), relative_rotation))
        point = matvec(self._rotation(a), self.table["arm_a"][i] + shift) + self._get("position", a)
        arm = matvec(rotations.matrix_from_quaternion(q), np.broadcast_to(self.table["arm_b"][i], (count, 3)))
        self._move(b, q, point - arm)

    def _move(self, b: int, q: Array, center: Array) -> None:
        """Write a new pose of body b. Its velocities rotate with the body."""
        old = self.before["orientation"][:, b]
        q = np.where(np.sum(q * old, axis=-1, keepdims=True) < 0.0, -q, q)
        spin = rotations.quaternion_product(q, rotations.quaternion_conjugate(old))
        matrix = rotations.matrix_from_quaternion(rotations.normalized(spin))
        self._set("orientation", b, q)
        self._set("position", b, center)
        for name in ("linear_velocity", "angular_momentum"):
            self._set(name, b, matvec(matrix, self._get(name, b)))

    def carry(self, i: int, j: int, column: int) -> None:
        """Move body i with body j, as if both bodies were rigidly connected."""
        inverse_before = rotations.quaternion_conjugate(self.before["orientation"][:, j])
        spin = rotations.normalized(rotations.quaternion_product(self._get("orientation", j), inverse_before))
        arm = self.before["position"][:, i] - self.before["position"][:, j]
        center = self._get("position", j) + matvec(rotations.matrix_from_quaternion(spin), arm)
        self._move(
            i, rotations.normalized(rotations.quaternion_product(spin, self.before["orientation"][:, i])), center
        )

    def rate(self, i: int, j: int, column: int) -> None:
        """Write the rates of the joint coordinates i, ..., i + j - 1 of one joint.

        The child first gets the velocity change of the parent, as if both bodies were rigidly connected.
        """
        numbers = np.arange(i, i + j)
        difference = self.values[:, column : column + j] - self.now.rate(numbers)[self.worlds]
        along = self.now.rotation_axis(numbers)[self.worlds] * difference[..., None]
        slides = (self.table["kind"][numbers] == KINDS[TRANSLATION])[:, None]
        a, b = int(self.table["body_a"][i]), int(self.table["body_b"][i])
        arm_b = matvec(self._rotation(b), np.broadcast_to(self.table["arm_b"][i], (len(self.worlds), 3)))
        self._rigid(b, a)
        angular = np.sum(np.where(slides, 0.0, along), axis=1)
        self.change[:, b, :3] += np.sum(np.where(slides, along, 0.0), axis=1) - cross(angular, arm_b)
        self.change[:, b, 3:] += angular

    def carry_rate(self, i: int, j: int, column: int) -> None:
        """Add the velocity change of body j to body i, as if both bodies were rigidly connected."""
        self._rigid(i, j)

    def _rigid(self, i: int, j: int) -> None:
        arm = self._get("position", i) - self._get("position", j)
        self.change[:, i, 3:] = self.change[:, j, 3:]
        self.change[:, i, :3] = self.change[:, j, :3] + cross(self.change[:, j, 3:], arm)

    def apply_rates(self, i: int, j: int, column: int) -> None:
        """Add the accumulated velocity changes to the velocities of all bodies."""
        for b in range(len(self.now.model.bodies)):
            if self.change[:, b].any():
                self._set("linear_velocity", b, self._get("linear_velocity", b) + self.change[:, b, :3])
                momentum = self._get("angular_momentum", b) + self._momentum(b, self.change[:, b, 3:])
                self._set("angular_momentum", b, momentum)

    def wrap_angle(self, i: int, j: int, column: int) -> None:
        """Compute joint angle i from the poses, between -pi and pi (rad)."""
        self.state["angle"][self.worlds, i] = self.now.wrapped_angles(np.array([i]))[self.worlds, 0]

    def set_angle(self, i: int, j: int, column: int) -> None:
        """Set joint angle i to the written value, which can include full rotations."""
        self.state["angle"][self.worlds, i] = self.values[:, column]
