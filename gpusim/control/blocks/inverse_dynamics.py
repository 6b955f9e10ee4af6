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
"""Keys of a joint that only the block ``inverse_dynamics`` needs."""
ROUNDING = 1e-15
"""Entries of constant rotation matrices below this value are round-off and count as 0."""
Vector = list[Number]


class Frame:
    """Joint frame on the child body: its motion, and the force and moment on the frame, in frame axes."""

    def __init__(self, t: Trace, back: list[Vector], point: Vector, motion: tuple[Vector, Vector, Vector]) -> None:
        self._t, self.back, self.point = t, back, point
        self.rate, self.turning, self.moving = motion
        self.force: Vector = [0.0, 0.0, 0.0]
        self.moment: Vector = [0.0, 0.0, 0.0]

    def acceleration(self, point: Sequence[Number]) -> Vector:
        """Return the acceleration of a frame-fixed point minus the acceleration of gravity."""
        t, w = self._t, self.rate
        first = vectors.plus(t, self.moving, vectors.cross(t, self.turning, point))
        return vectors.plus(t, first, vectors.cross(t, w, vectors.cross(t, w, point)))

    def bear(self, mass: Number, point: Sequence[Number], inertia: Sequence[Sequence[float]] | None = None) -> None:
        """Add the inertial force and moment of a body at ``point``. Without ``inertia``, the body is a point mass."""
        t = self._t
        force = vectors.scaled(t, mass, self.acceleration(point))
        moment = vectors.cross(t, point, force)
        if inertia is not None:
            spin = vectors.cross(t, self.rate, vectors.apply(t, inertia, self.rate))
            moment = vectors.plus(t, moment, vectors.plus(t, vectors.apply(t, inertia, self.turning), spin))
        self.add(force, moment)

    def add(self, force: Sequence[Number], moment: Sequence[Number]) -> None:
        """Add a force, and a moment about the origin of the frame."""
        self.force = vectors.plus(self._t, self.force, force)
        self.moment = vectors.plus(self._t, self.moment, moment)

    def hand_on(self, before: Frame) -> None:
        """Add the force and moment of this frame to the previous frame."""
        t, turn = self._t, vectors.columns(self.back)
        force, moment = vectors.apply(t, turn, self.force), vectors.apply(t, turn, self.moment)
        before.add(force, vectors.plus(t, moment, vectors.cross(t, self.point, force)))


def following(t: Trace, before: Frame, joint: dict[str, Any], motion: tuple[Number, Number, Number]) -> Frame:
    """Return the next frame of the chain. ``motion``: position, velocity and acceleration of the joint."""
    x, v, a = motion
    place = np.asarray(joint["place"], float)
    matrix = matrix_from_quaternion(place[3:])
    turn: Any = np.where(np.abs(matrix) < ROUNDING, 0.0, matrix).tolist()
    axis = [float(u) for u in joint["axis"]]
    point: Vector = place[:3].tolist()
    turns = joint["kind"] == "turn"
    if turns:
        turn = vectors.multiply(t, turn, vectors.about(t, axis, t.function("sin", x), t.function("cos", x)))
    else:
        point = vectors.plus(t, point, vectors.scaled(t, x, vectors.apply(t, turn, axis)))
    back = vectors.columns(turn)
    rate, turning = vectors.apply(t, back, before.rate), vectors.apply(t, back, before.turning)
    moving = vectors.apply(t, back, before.acceleration(point))
    own, gained = vectors.scaled(t, v, axis), vectors.scaled(t, a, axis)
    across = vectors.cross(t, rate, own)
    if turns:
        turning = vectors.plus(t, turning, vectors.plus(t, gained, across))
        rate = vectors.plus(t, rate, own)
    else:
        moving = vectors.plus(t, moving, vectors.plus(t, gained, vectors.scaled(t, 2.0, across)))
    return Frame(t, back, point, (rate, turning, moving))


@block("inverse_dynamics")
class InverseDynamics(Block):
    """Joint torques (N m) and forces (N) of a chain for ``acceleration``, at positions ``q`` and rates ``velocity``.

    :func:`gpusim.control.heavy_chain` returns ``joints``, ``tip`` and ``gravity`` (in the base frame, m/s2).

    Inputs without a wire are 0. If only ``q`` has a wire, the output balances the weight of the chain. ``load`` is an
    additional point mass at the tip (kg). ``wrench`` (6,) is an external force and its moment about the tip, in base
    axes, such as the ground force on a foot. With ``gravity=None``, the block has an input ``gravity`` (3,) for a base
    that tilts. If the base accelerates, subtract the acceleration of the base from the input ``gravity``. The block
    ignores the angular velocity of the base, and the springs, damping and friction of joints.
    """

    joints: Sequence[dict[str, Any]]
    tip: Sequence[float] = (0, 0, 0, 0, 0, 0, 1)
    gravity: Sequence[float] | None = (0, 0, -9.81)
    optional = {"velocity": 0.0, "acceleration": 0.0, "load": 0.0, "wrench": 0.0}  # noqa: RUF012 (as in Block)

    def __post_init__(self) -> None:
        own = ("gravity",) if self.gravity is None else ()
        self.inputs = ("q", "velocity", "acceleration", "load", "wrench", *own)

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

    def wires(self, given: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape and unit of a vector with one number per joint."""
        count = len(self.joints)
        check_count(given["q"], count, "q")
        for port in ("velocity", "acceleration"):
            if given[port].shape:
                check_count(given[port], count, port)
        check_sizes(given, {"load": 1, "gravity": 3, "wrench": 6 if given["wrench"].shape else 1})
        if not units.fits(given["load"].unit, units.parse("kg")):
            raise ModelError(f"load is a mass, and the wire is in {units.shown(given['load'].unit)}; give it in kg")
        return {"out": Kind((count,))}

    def run(self, c: Context, given: dict[str, Wire]) -> dict[str, Wire]:
        """Compute the forces and torques by an outward and an inward pass."""
        t, count = c.trace, len(self.joints)
        known = {port: [t.plain(x) for x in wire] for port, wire in given.items()}
        rates, gains = (known[p] * count if len(known[p]) == 1 else known[p] for p in ("velocity", "acceleration"))
        field: Sequence[Number] = known["gravity"] if self.gravity is None else [float(x) for x in self.gravity]
        still: Vector = [0.0, 0.0, 0.0]
        frames = [Frame(t, [still, still, still], still, (still, still, vectors.scaled(t, -1.0, field)))]
        for joint, x, v, a in zip(self.joints, known["q"], rates, gains, strict=True):
            frames.append(following(t, frames[-1], joint, (x, v, a)))
            xx, yy, zz, xy, xz, yz = (float(x) for x in joint["inertia"])
            com = [float(x) for x in joint["com"]]
            frames[-1].bear(float(joint["mass"]), com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        tip = [float(x) for x in self.tip[:3]]
        frames[-1].bear(known["load"][0], tip)
        if len(known["wrench"]) == 6:
            force, moment = known["wrench"][:3], known["wrench"][3:]
            for frame in frames[1:]:
                force, moment = (vectors.apply(t, frame.back, x) for x in (force, moment))
            moment = vectors.plus(t, moment, vectors.cross(t, tip, force))
            frames[-1].add(vectors.scaled(t, -1.0, force), vectors.scaled(t, -1.0, moment))
        out: list[Number] = []
        for k in reversed(range(count)):
            frame, joint = frames[k + 1], self.joints[k]
            own = vectors.scaled(t, gains[k], [float(joint["armature"])])
            borne = frame.moment if joint["kind"] == "turn" else frame.force
            out.insert(0, vectors.total(t, [vectors.dot(t, [float(x) for x in joint["axis"]], borne), *own]))
            frame.hand_on(frames[k])
        return {"out": numbers(t, out)}
