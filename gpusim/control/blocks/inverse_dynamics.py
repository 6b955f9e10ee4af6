"""Inverse dynamics block: the joint forces and torques of a chain for a given acceleration.

    tau = M(q) a + b(q, v)

tau are the joint forces and torques. q, v and a are the positions, velocities and accelerations of the joints. M is the
mass matrix. b contains the gravity, centrifugal and Coriolis terms. The block uses the recursive Newton-Euler algorithm
(Featherstone, "Rigid Body Dynamics Algorithms", 2008, table 5.1) in the joint frames on the child bodies. The outward
pass computes the motion of each frame. The inward pass sums the forces and moments of the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.control import units, vectors
from gpusim.control.block import Block, Context, Kind, Wire, block, check_sizes
from gpusim.control.blocks.kinematics import check_chain, check_count, numbers
from gpusim.control.trace import Number, Trace
from gpusim.errors import ModelError
from gpusim.rotations import matrix_from_quaternion

HEAVY = ("mass", "com", "inertia", "armature")
"""Additional keys of a joint's dict, which only the block ``inverse_dynamics`` needs."""
ROUNDING = 1e-15
"""Entries of a constant rotation matrix below this magnitude are round-off errors and count as 0."""
Vector = list[Number]


class Frame:
    """Joint frame on the child body: motion, and the force and moment on the frame. Vectors are in frame axes."""

    def __init__(self, t: Trace, back: list[Vector], point: Vector, motion: tuple[Vector, Vector, Vector]) -> None:
        self._t, self.back, self.point = t, back, point
        self.angular_velocity, self.angular_acceleration, self.linear_acceleration = motion
        self.force: Vector = [0.0, 0.0, 0.0]
        self.moment: Vector = [0.0, 0.0, 0.0]

    def acceleration(self, point: Sequence[Number]) -> Vector:
        """Return the acceleration of a point fixed in the frame, minus the gravitational acceleration."""
        t, w = self._t, self.angular_velocity
        first = vectors.plus(t, self.linear_acceleration, vectors.cross(t, self.angular_acceleration, point))
        return vectors.plus(t, first, vectors.cross(t, w, vectors.cross(t, w, point)))

    def add_mass(self, mass: Number, point: Sequence[Number], inertia: Sequence[Sequence[float]] | None = None) -> None:
        """Add the inertial force and moment of a body at ``point``. Without ``inertia``, the body is a point mass."""
        t = self._t
        force = vectors.scaled(t, mass, self.acceleration(point))
        moment = vectors.cross(t, point, force)
        if inertia is not None:
            gyroscopic = vectors.cross(t, self.angular_velocity, vectors.apply(t, inertia, self.angular_velocity))
            euler = vectors.apply(t, inertia, self.angular_acceleration)
            moment = vectors.plus(t, moment, vectors.plus(t, euler, gyroscopic))
        self.add(force, moment)

    def add(self, force: Sequence[Number], moment: Sequence[Number]) -> None:
        """Add a force, and a moment about the origin of the frame."""
        self.force = vectors.plus(self._t, self.force, force)
        self.moment = vectors.plus(self._t, self.moment, moment)

    def add_to_parent(self, parent: Frame) -> None:
        """Add the force and moment on this frame to the previous frame of the chain."""
        t, rotation = self._t, vectors.columns(self.back)
        force, moment = vectors.apply(t, rotation, self.force), vectors.apply(t, rotation, self.moment)
        parent.add(force, vectors.plus(t, moment, vectors.cross(t, self.point, force)))


def next_frame(t: Trace, parent: Frame, joint: dict[str, Any], motion: tuple[Number, Number, Number]) -> Frame:
    """Return the next frame of the chain. ``motion``: position, velocity and acceleration of the joint."""
    x, v, a = motion
    pose = np.asarray(joint["pose"], float)
    matrix = matrix_from_quaternion(pose[3:])
    rotation: Any = np.where(np.abs(matrix) < ROUNDING, 0.0, matrix).tolist()
    axis = [float(u) for u in joint["axis"]]
    point: Vector = pose[:3].tolist()
    is_revolute = joint["kind"] == "revolute"
    if is_revolute:
        joint_rotation = vectors.about(t, axis, t.function("sin", x), t.function("cos", x))
        rotation = vectors.multiply(t, rotation, joint_rotation)
    else:
        point = vectors.plus(t, point, vectors.scaled(t, x, vectors.apply(t, rotation, axis)))
    back = vectors.columns(rotation)
    w, angular = vectors.apply(t, back, parent.angular_velocity), vectors.apply(t, back, parent.angular_acceleration)
    linear = vectors.apply(t, back, parent.acceleration(point))
    joint_velocity, joint_acceleration = vectors.scaled(t, v, axis), vectors.scaled(t, a, axis)
    coriolis = vectors.cross(t, w, joint_velocity)
    if is_revolute:
        angular = vectors.plus(t, angular, vectors.plus(t, joint_acceleration, coriolis))
        w = vectors.plus(t, w, joint_velocity)
    else:
        linear = vectors.plus(t, linear, vectors.plus(t, joint_acceleration, vectors.scaled(t, 2.0, coriolis)))
    return Frame(t, back, point, (w, angular, linear))


@block("inverse_dynamics")
class InverseDynamics(Block):
    """Joint torques (N m) and forces (N) of a chain for the joint ``acceleration``, ``velocity`` and position ``q``.

    :func:`gpusim.control.heavy_chain` returns ``joints``, ``tip`` and ``gravity`` (in the base frame, m/s2).

    Inputs without a wire are 0. If only ``q`` has a wire, the output balances the weight of the chain. ``load`` is an
    additional point mass at the tip (kg). ``wrench`` (6,) is an external force and a moment about the tip, in base
    axes. An example is the ground force on a foot. With ``gravity=None``, gravity is an input (3,), for a base that
    tilts. If the base accelerates, subtract the acceleration of the base from the input ``gravity``. The block ignores
    the angular velocity of the base. It also ignores springs, damping and friction of the joints.
    """

    joints: Sequence[dict[str, Any]]
    tip: Sequence[float] = (0, 0, 0, 0, 0, 0, 1)
    gravity: Sequence[float] | None = (0, 0, -9.81)
    optional = {"velocity": 0.0, "acceleration": 0.0, "load": 0.0, "wrench": 0.0}  # noqa: RUF012 (as in Block)

    def __post_init__(self) -> None:
        gravity = ("gravity",) if self.gravity is None else ()
        self.inputs = ("q", "velocity", "acceleration", "load", "wrench", *gravity)

    def check(self, element: str) -> None:
        """Check the chain, the masses and ``gravity``."""
        check_chain(element, self.joints, self.tip, HEAVY)
        for joint in self.joints:
            for name, count in (("com", 3), ("inertia", 6)):
                if name not in joint:
                    rule = f"a joint has no {name}"
                    raise validate.fail(element, rule, "take joints from gpusim.control.heavy_chain(...)")
                validate.numbers(element, name, joint[name], count)
            for name in ("mass", "armature"):
                validate.not_negative(element, name, joint.get(name))
        if self.gravity is not None:
            validate.numbers(element, "gravity", self.gravity, 3)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a vector type with one number per joint."""
        count = len(self.joints)
        check_count(inputs["q"], count, "q")
        for port in ("velocity", "acceleration"):
            if inputs[port].shape:
                check_count(inputs[port], count, port)
        check_sizes(inputs, {"load": 1, "gravity": 3, "wrench": 6 if inputs["wrench"].shape else 1})
        if not units.fits(inputs["load"].unit, units.parse("kg")):
            raise ModelError(
                f"load is a mass, and the wire is in {units.shown(inputs['load'].unit)}; connect a wire in kg"
            )
        return {"out": Kind((count,))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Compute the forces and torques by an outward and an inward pass."""
        t, count = c.trace, len(self.joints)
        known = {port: [t.plain(x) for x in wire] for port, wire in inputs.items()}
        velocities, accelerations = (
            known[p] * count if len(known[p]) == 1 else known[p] for p in ("velocity", "acceleration")
        )
        field: Sequence[Number] = known["gravity"] if self.gravity is None else [float(x) for x in self.gravity]
        zero: Vector = [0.0, 0.0, 0.0]
        frames = [Frame(t, [zero, zero, zero], zero, (zero, zero, vectors.scaled(t, -1.0, field)))]
        for joint, x, v, a in zip(self.joints, known["q"], velocities, accelerations, strict=True):
            frames.append(next_frame(t, frames[-1], joint, (x, v, a)))
            xx, yy, zz, xy, xz, yz = (float(x) for x in joint["inertia"])
            com = [float(x) for x in joint["com"]]
            frames[-1].add_mass(float(joint["mass"]), com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        tip = [float(x) for x in self.tip[:3]]
        frames[-1].add_mass(known["load"][0], tip)
        if len(known["wrench"]) == 6:
            force, moment = known["wrench"][:3], known["wrench"][3:]
            for frame in frames[1:]:
                force, moment = (vectors.apply(t, frame.back, x) for x in (force, moment))
            moment = vectors.plus(t, moment, vectors.cross(t, tip, force))
            frames[-1].add(vectors.scaled(t, -1.0, force), vectors.scaled(t, -1.0, moment))
        out: list[Number] = []
        for k in reversed(range(count)):
            frame, joint = frames[k + 1], self.joints[k]
            from_armature = vectors.scaled(t, accelerations[k], [float(joint["armature"])])
            load = frame.moment if joint["kind"] == "revolute" else frame.force
            axis = [float(x) for x in joint["axis"]]
            out.insert(0, vectors.total(t, [vectors.dot(t, axis, load), *from_armature]))
            frame.add_to_parent(frames[k])
        return {"out": numbers(t, out)}
