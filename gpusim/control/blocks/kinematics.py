"""Kinematics blocks: forward kinematics of chains, inverse kinematics, and transformations between frames.

    dq = z - J^T (J J^T + s 1)^-1 J z + J^T (J J^T + d2 1)^-1 e,   z = posture_gain (posture - q)

dq is one step of damped least squares for the joint positions q. J is the Jacobian, and 1 is the identity matrix. e is
the error to the target, with the length clipped to ``max_way``. The first two terms of dq move the joints to the
posture in the null space of J (Liegeois, 1977). The regularization s is close to zero (``PROJECTED``). The damping is
d2 = ``damping``^2 + |e|^2 / 2, with the unclipped error e. If the target is out of reach, the tip stops at the point
closest to the target. Source: Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method",
2011. The block clips the joint positions to the joint limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.control import units, vectors
from gpusim.control.block import Block, Context, Kind, Wire, block, check_sizes
from gpusim.control.parameters import NotNegative, Positive
from gpusim.control.trace import Num, Number, Trace
from gpusim.description.joint_kinds import ANGLE, TRANSLATION
from gpusim.errors import ModelError
from gpusim.renamed import OF_CHAINS, since
from gpusim.rotations import matrix_from_quaternion

PROJECTED = 1e-12
"""Regularization s in the null-space projection, as a fraction of the mean diagonal entry of J J^T."""
KINDS = {ANGLE: "revolute", TRANSLATION: "prismatic"}
"""Kinds of the joints of a chain, by type of the joint coordinate."""
_KNOWN = ("pose", "axis", "kind", "lower", "upper", "label", "start")
"""Keys of the dict that describes a joint of a chain."""


@dataclass(frozen=True)
class TipKinematics:
    """Forward kinematics of a chain in the base frame."""

    position: list[Number]
    rotation: list[list[Number]]
    axes: list[list[Number]]
    points: list[list[Number]]


def check_chain(element: str, joints: Any, tip: Any, more: Sequence[str] = ()) -> None:
    """Check the joints and the tip (7,) of a chain.

    Each joint is a dict with the required keys "pose" (7,), "axis" (3,) and "kind". ``more`` contains additional
    optional keys.
    """
    if not isinstance(joints, Sequence) or isinstance(joints, str) or not joints:
        raise validate.fail(element, f"joints = {joints!r} is not a list", "take them from gpusim.control.chain(...)")
    for joint in joints:
        if isinstance(joint, dict):
            _check_old_names(element, joint)
        if not isinstance(joint, dict) or set(joint) - {*_KNOWN, *more}:
            raise validate.fail(element, f"{joint!r} is not a joint", "take joints from gpusim.control.chain(...)")
        validate.numbers(element, "pose", joint.get("pose"), 7)
        validate.direction(element, "axis", joint.get("axis"))
        validate.number(element, "start", joint.get("start", 0.0))
        validate.choice(element, "kind", joint.get("kind"), tuple(KINDS.values()))
    validate.numbers(element, "tip", tip, 7)


def _check_old_names(element: str, joint: dict[str, Any]) -> None:
    """Raise a ModelError with the new name if a key or the ``kind`` of a joint was renamed."""
    for name in [key for key in joint if key in OF_CHAINS] + [joint.get("kind")]:
        if isinstance(name, str) and name in OF_CHAINS:
            new = OF_CHAINS[name]
            raise validate.fail(element, f"{name!r} of a joint is {new!r} {since(name)}", f"write {new!r}")


def forward(t: Trace, joints: Sequence[dict[str, Any]], tip: Sequence[float], q: Wire) -> TipKinematics:
    """Return the pose of the tip, the joint axes, and a point on each joint axis, in the base frame."""
    rotation: list[list[Number]] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    position: list[Number] = [0.0, 0.0, 0.0]
    axes, points = [], []
    for joint, x in zip(joints, q, strict=True):
        pose = np.asarray(joint["pose"], float)
        position = vectors.plus(t, position, vectors.apply(t, rotation, pose[:3].tolist()))
        rotation = vectors.multiply(t, rotation, matrix_from_quaternion(pose[3:]).tolist())
        axis = [float(v) for v in joint["axis"]]
        axes.append(vectors.apply(t, rotation, axis))
        points.append(position)
        if joint["kind"] == "revolute":
            joint_rotation = vectors.about(t, axis, t.function("sin", x), t.function("cos", x))
            rotation = vectors.multiply(t, rotation, joint_rotation)
        else:
            position = vectors.plus(t, position, [a * x for a in axes[-1]])
    end = np.asarray(tip, float)
    position = vectors.plus(t, position, vectors.apply(t, rotation, end[:3].tolist()))
    rotation = vectors.multiply(t, rotation, matrix_from_quaternion(end[3:]).tolist())
    return TipKinematics(position, rotation, axes, points)


def numbers(t: Trace, values: Sequence[Number]) -> Wire:
    """Convert plain numbers to traced constants."""
    return [x if isinstance(x, Num) else t.constant(x) for x in values]


def check_count(kind: Kind, count: int, port: str) -> None:
    """Check that the wire of an input has one number per joint."""
    if kind.size != count:
        raise ModelError(f"{port} has {kind.size} numbers, and there are {count} joints; connect one number per joint")


@block("chain")
class Chain(Block):
    """Forward kinematics: pose of a chain's tip in the base frame, for joint positions ``q``.

    :func:`gpusim.control.chain` returns ``joints`` and ``tip``. The outputs are ``position`` (3,) and the row-major
    rotation matrix ``rotation`` (9,).
    """

    joints: Sequence[dict[str, Any]]
    tip: Sequence[float] = (0, 0, 0, 0, 0, 0, 1)
    inputs = ("q",)
    outputs = ("position", "rotation")

    def check(self, element: str) -> None:
        """Check the chain."""
        check_chain(element, self.joints, self.tip)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return shapes and units of position (m) and rotation matrix."""
        check_count(inputs["q"], len(self.joints), "q")
        return {"position": Kind((3,), units.parse("m")), "rotation": Kind((9,), units.NONE)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Compute the forward kinematics joint by joint."""
        tip = forward(c.trace, self.joints, self.tip, inputs["q"])
        rows = [x for row in tip.rotation for x in row]
        return {"position": numbers(c.trace, tip.position), "rotation": numbers(c.trace, rows)}


@block("ik")
class Ik(Block):
    """Inverse kinematics: joint positions that move the tip of a chain to ``target`` (3,), m, in the base frame.

    The block starts from the joint positions ``start`` (n,) and does one iteration per sample. Without ``start``, the
    block starts from the start pose of the model. If the chain has redundant joints, they move towards ``posture`` (n,)
    in the null space. If ``lever`` (m) is positive, the block also controls the orientation of the tip. The target
    orientation is the input ``orientation`` (4,), a quaternion (xyzw) in the base frame. An orientation error of 1 rad
    counts as much as a position error of ``lever`` meters. The outputs are the joint positions ``out`` (n,) and the
    distance ``error`` (m) to the target before the iteration.
    """

    joints: Sequence[dict[str, Any]]
    tip: Sequence[float] = (0, 0, 0, 0, 0, 0, 1)
    start: Sequence[float] = ()
    damping: Positive = 0.03
    posture_gain: NotNegative = 0.1
    max_way: Positive = 0.05
    lever: NotNegative = 0.0
    outputs = ("out", "error")

    def __post_init__(self) -> None:
        has_lever = isinstance(self.lever, float | int) and self.lever > 0.0
        self.inputs = ("target", "posture", *(("orientation",) if has_lever else ()))

    def check(self, element: str) -> None:
        """Check the chain and the parameters."""
        check_chain(element, self.joints, self.tip)
        if np.size(self.start):
            validate.numbers(element, "start", self.start, len(self.joints))

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the types of both outputs: a vector with one position per joint, and the error."""
        check_count(inputs["posture"], len(self.joints), "posture")
        check_sizes(inputs, {"target": 3, "orientation": 4})
        return {"out": Kind((len(self.joints),)), "error": Kind((), units.parse("m"))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Do one step of damped least squares."""
        t, n = c.trace, len(self.joints)
        start = self.start if np.size(self.start) else [joint.get("start", 0.0) for joint in self.joints]
        c.add_states("q", [float(x) for x in start])
        q = c.read_state("q")
        tip = forward(t, self.joints, self.tip, q)
        error = vectors.minus(inputs["target"], tip.position) + self._rotation_error(t, tip, inputs)
        length = t.sqrt(numbers(t, [vectors.dot(t, error, error)])[0])
        max_length = c.tune("max_way", self.max_way, minimum=0.0, above=True)
        scale = c.select(length > max_length, max_length / c.select(length > 0.0, length, 1.0), 1.0)
        error = [x * scale for x in error]
        jacobian = [self._column(t, tip, k) for k in range(n)]
        gain = c.tune("posture_gain", self.posture_gain, minimum=0.0)
        posture_step = [gain * (p - x) for p, x in zip(inputs["posture"], q, strict=True)]
        rows = vectors.columns(jacobian)
        square = [[vectors.dot(t, a, b) for b in rows] for a in rows]
        damping = c.tune("damping", self.damping, minimum=0.0, above=True)
        damped = self._add_to_diagonal(square, damping * damping + 0.5 * (length * length))
        projected = [vectors.dot(t, row, posture_step) for row in rows]
        regularized = self._add_to_diagonal(square, self._regularization(t, square))
        posture_weights = vectors.solve_positive(t, regularized, projected)
        weights = vectors.minus(vectors.solve_positive(t, damped, error), posture_weights)
        out = []
        for k in range(n):
            step = vectors.total(t, [posture_step[k], vectors.dot(t, jacobian[k], weights)])
            value: Num = q[k] + step
            for bound, limit in (("lower", t.max), ("upper", t.min)):
                if self.joints[k].get(bound) is not None:
                    value = limit(value, float(self.joints[k][bound]))
            out.append(value)
        c.write_state("q", out)
        return {"out": out, "error": [length]}

    @staticmethod
    def _regularization(t: Trace, square: list[list[Number]]) -> Number:
        """Return the regularization s, which keeps J J^T invertible for a stretched chain."""
        trace = vectors.total(t, [square[i][i] for i in range(len(square))])
        return (PROJECTED / len(square)) * trace + 1e-100

    @staticmethod
    def _add_to_diagonal(square: list[list[Number]], by: Number) -> list[list[Number]]:
        """Return the matrix plus ``by`` times the identity."""
        return [[x + by if i == j else x for j, x in enumerate(row)] for i, row in enumerate(square)]

    def _rotation_error(self, t: Trace, tip: TipKinematics, inputs: dict[str, Wire]) -> list[Number]:
        """Return the orientation error (rotation vector) times ``lever``.

        The method is from Luh, Walker, Paul, "Resolved-acceleration control of mechanical manipulators", 1980.
        """
        if "orientation" not in inputs:
            return []
        target = vectors.columns(vectors.from_quaternion(t, inputs["orientation"]))
        sines = [vectors.cross(t, a, b) for a, b in zip(vectors.columns(tip.rotation), target, strict=True)]
        return [(0.5 * self.lever) * numbers(t, [vectors.total(t, terms)])[0] for terms in zip(*sines, strict=True)]

    def _column(self, t: Trace, tip: TipKinematics, k: int) -> list[Number]:
        """Return column ``k`` of the Jacobian: the tip velocity for a unit rate of joint ``k``."""
        is_revolute, axis = self.joints[k]["kind"] == "revolute", tip.axes[k]
        arm = [a - b for a, b in zip(tip.position, tip.points[k], strict=True)]
        linear = vectors.cross(t, axis, arm) if is_revolute else list(axis)
        if "orientation" not in self.inputs:
            return linear
        return linear + vectors.scaled(t, self.lever if is_revolute else 0.0, axis)


class Framed(Block):
    """Base class of blocks that convert vectors between the world frame and a body frame."""

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check the sizes and return a vector with the unit of the input."""
        check_sizes(inputs, {"in": 3, "position": 3, "orientation": 4})
        return {"out": Kind((3,), inputs["in"].unit)}


@block("to_frame")
class ToFrame(Framed):
    """Convert a point from the world frame to a body frame. With ``vector``, only rotate the input (e.g. a force)."""

    vector: bool = False
    inputs = ("in", "position", "orientation")

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return R^T (x - p) for the rotation matrix R and the position p of the body."""
        rotation = vectors.columns(vectors.from_quaternion(c.trace, inputs["orientation"]))
        x: Sequence[Number] = inputs["in"] if self.vector else vectors.minus(inputs["in"], inputs["position"])
        return {"out": numbers(c.trace, vectors.apply(c.trace, rotation, x))}


@block("from_frame")
class FromFrame(Framed):
    """Convert a point from a body frame to the world frame. With ``vector``, only rotate the input (e.g. a force)."""

    vector: bool = False
    inputs = ("in", "position", "orientation")

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return p + R x for the rotation matrix R and the position p of the body."""
        rotated = vectors.apply(c.trace, vectors.from_quaternion(c.trace, inputs["orientation"]), inputs["in"])
        out = rotated if self.vector else vectors.plus(c.trace, rotated, inputs["position"])
        return {"out": numbers(c.trace, out)}


@block("rotate")
class Rotate(Block):
    """Product of a row-major 3x3 matrix (9,) and a vector (3,). ``transposed`` transposes the matrix."""

    transposed: bool = False
    inputs = ("matrix", "in")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check the sizes and return a vector with the input's unit."""
        check_sizes(inputs, {"matrix": 9, "in": 3})
        return {"out": Kind((3,), inputs["in"].unit)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the product of the matrix and the vector."""
        rows: Any = [inputs["matrix"][3 * i : 3 * i + 3] for i in range(3)]
        matrix = vectors.columns(rows) if self.transposed else rows
        return {"out": numbers(c.trace, vectors.apply(c.trace, matrix, inputs["in"]))}
