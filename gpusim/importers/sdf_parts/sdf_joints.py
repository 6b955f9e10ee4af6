"""SDF joints: axes, and builder calls for each joint type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import ImportReport, JointInfo, JointLimits
from gpusim.importers.sdf_parts.sdf_xml import UNLIMITED, Node
from gpusim.transform import Transform

WORLD = -1
JOINT_TYPES = ("ball", "continuous", "fixed", "gearbox", "prismatic", "revolute", "revolute2", "screw", "universal")
_RIGID = 1e8
"""SDF's default stiffness of joint limits."""
SINGLE_AXIS = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True)
class Axis:
    """An axis of a joint. ``direction`` (3,) is a unit vector in the joint's frame, in the starting pose."""

    node: Node | None
    direction: np.ndarray
    lower: float = -math.inf
    upper: float = math.inf
    limits: JointLimits = JointLimits()
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest_position: float = 0.0

    def reversed(self) -> Axis:
        """Return the axis for exchanged parent and child. The joint coordinate keeps its sign."""
        same = {name: value for name, value in vars(self).items() if name != "direction"}
        return Axis(direction=-self.direction, **same)


@dataclass(frozen=True)
class BodyJoint:
    """A joint between two bodies of the builder.

    Attributes:
        parent, child: indices of the bodies, -1 for the world.
        parent_xform, child_xform: pose of the joint frame in the parent's frame, and in the child's frame.
    """

    node: Node
    label: str
    axes: list[Axis]
    parent: int
    child: int
    parent_xform: Transform
    child_xform: Transform

    @property
    def kind(self) -> str:
        """Return the joint type in the file."""
        return self.node.get("type")


def read_axes(node: Node, old_frame: bool, rotation: Callable[[str], np.ndarray], report: ImportReport) -> list[Axis]:
    """Return the axes of a joint.

    Args:
        node: the <joint>.
        old_frame: True if axes without an explicit frame are in the model's frame, as in SDF 1.4 and older.
        rotation: function that returns the (3, 3) rotation of a named frame in the joint's frame.
        report: receives findings.
    """
    count = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2, "gearbox": 2}.get(node.get("type"), 1)
    return [_axis(node, tag, old_frame, rotation, report) for tag in ("axis", "axis2")[:count]]


def _axis(node: Node, tag: str, old_frame: bool, rotation: Callable[[str], np.ndarray], report: ImportReport) -> Axis:
    axis = node.find(tag)
    if axis is None:
        return Axis(None, np.array([0.0, 0.0, 1.0] if tag == "axis" else [1.0, 0.0, 0.0]))
    direction = np.array(axis.vector("xyz", (0.0, 0.0, 1.0)))
    length = float(np.linalg.norm(direction))
    if not 1e-9 < length < math.inf:
        raise axis.error(f'{node.title}: axis "{axis.words("xyz")}" must be a direction such as 0 0 1')
    xyz = axis.find("xyz")
    frame = xyz.get("expressed_in") if xyz is not None else ""
    if axis.flag("use_parent_model_frame", old_frame and not frame):
        frame = "__model__"
    if frame:
        direction = rotation(frame) @ direction
    lower, upper = _bounds(node, axis)
    if math.isfinite(lower) or math.isfinite(upper):
        _report_soft_limit(node, axis, report)
    if start := axis.number("initial_position", 0.0):
        report.add("info", node.title, f"has <initial_position> {start:g}", "it starts at the poses of its links")
    damping, friction = (axis.number(f"dynamics/{name}", 0.0) for name in ("damping", "friction"))
    stiffness = axis.number("dynamics/spring_stiffness", 0.0)
    for name, value in (("damping", damping), ("friction", friction), ("spring_stiffness", stiffness)):
        if value < 0.0:
            report.add("motion", node.title, f"has {name} {value:g}, which is negative", "0 used instead")
    return Axis(
        axis,
        direction / length,
        lower,
        upper,
        JointLimits(_limit_or_infinity(axis, "effort"), _limit_or_infinity(axis, "velocity")),
        max(damping, 0.0),
        max(friction, 0.0),
        max(stiffness, 0.0),
        axis.number("dynamics/spring_reference", 0.0),
    )


def _bounds(node: Node, axis: Node) -> tuple[float, float]:
    lower, upper = axis.number("limit/lower", -math.inf), axis.number("limit/upper", math.inf)
    lower, upper = -math.inf if lower <= -UNLIMITED else lower, math.inf if upper >= UNLIMITED else upper
    if lower > upper or lower == math.inf or upper == -math.inf:
        raise axis.error(f"{node.title}: limit lower {lower:g} exceeds upper {upper:g}; swap or fix them")
    return lower, upper


def _report_soft_limit(node: Node, axis: Node, report: ImportReport) -> None:
    """Report a limit whose stiffness or dissipation differs from SDF's default."""
    values = [axis.number(f"limit/{name}", rigid) for name, rigid in (("stiffness", _RIGID), ("dissipation", 1.0))]
    if values[0] < _RIGID or values[1] != 1.0:
        text = f"has limits with stiffness {values[0]:g} and dissipation {values[1]:g}"
        report.add("contact", node.title, text, "limits are rigid", "add a spring")


def _limit_or_infinity(axis: Node, name: str) -> float:
    """Return the effort or velocity limit. Values that are 0, negative or huge mean infinity."""
    value = axis.number(f"limit/{name}", math.inf)
    return value if 0.0 < value < UNLIMITED else math.inf


def add_joint(builder: ModelBuilder, joint: BodyJoint, report: ImportReport) -> int:
    """Add a joint with its springs to ``builder`` and return its index."""
    add = _ADD[joint.kind]
    index = add(builder, joint, report)
    spring_axis = 1 if joint.kind == "screw" else 0
    for number, axis in enumerate(joint.axes):
        if axis.stiffness > 0.0:
            label = f"{joint.label}_spring" + ("2" if number else "")
            coordinate = number + spring_axis
            builder.add_torsion_spring(
                index, axis.stiffness, rest_angle=axis.rest_position, axis=coordinate, label=label
            )
    return index


def _common(joint: BodyJoint) -> dict[str, Any]:
    return {
        "parent": joint.parent,
        "child": joint.child,
        "parent_xform": joint.parent_xform,
        "child_xform": joint.child_xform,
        "label": joint.label,
    }


def _fixed(builder: ModelBuilder, joint: BodyJoint, report: ImportReport) -> int:
    return builder.add_joint_fixed(**_common(joint))


def _ball(builder: ModelBuilder, joint: BodyJoint, report: ImportReport) -> int:
    return builder.add_joint_ball(**_common(joint))


def _single(builder: ModelBuilder, joint: BodyJoint, report: ImportReport) -> int:
    (axis,) = joint.axes
    add = builder.add_joint_prismatic if joint.kind == "prismatic" else builder.add_joint_revolute
    values: dict[str, Any] = {"axis": tuple(axis.direction), "damping": axis.damping, "friction": axis.friction}
    if joint.kind != "continuous":
        values |= {"limit_lower": axis.lower, "limit_upper": axis.upper}
    return add(**_common(joint), **values)


def _universal(builder: ModelBuilder, joint: BodyJoint, report: ImportReport) -> int:
    first, second = joint.axes
    across = second.direction - (second.direction @ first.direction) * first.direction
    length = float(np.linalg.norm(across))
    if length < 1e-6:
        raise joint.node.error(f"{joint.node.title}: its two axes are parallel; give axes at a right angle")
    if abs(length - 1.0) > 1e-6:
        text = f"has axes at {math.degrees(math.asin(min(length, 1.0))):.3g} degrees"
        report.add("motion", joint.node.title, text, "the second one is rotated to a right angle")
    return builder.add_joint_universal(
        **_common(joint),
        axis=tuple(first.direction),
        axis2=tuple(across / length),
        limit_lower=(first.lower, second.lower),
        limit_upper=(first.upper, second.upper),
        damping=(first.damping, second.damping),
        friction=(first.friction, second.friction),
    )


def _screw(builder: ModelBuilder, joint: BodyJoint, report: ImportReport) -> int:
    """Add a screw: a cylindrical joint whose translation and rotation are coupled."""
    (axis,) = joint.axes
    index = builder.add_joint_cylindrical(
        **_common(joint),
        axis=tuple(axis.direction),
        limit_lower=(-math.inf, axis.lower),
        limit_upper=(math.inf, axis.upper),
        damping=(0.0, axis.damping),
        friction=(0.0, axis.friction),
    )
    # thread_pitch is in rad/m, and its sign is opposite to screw_thread_pitch
    old = joint.node.number("thread_pitch", 0.0)
    travel = -1.0 / old if old else joint.node.number("screw_thread_pitch", 1.0) / (2.0 * math.pi)
    if not 0.0 < abs(travel) < math.inf:
        rule = f"{joint.node.title}: its thread pitch must not be 0"
        raise joint.node.error(f"{rule}; give the travel per revolution in m")
    builder.add_linear_coupling([(index, 0, 1.0), (index, 1, -travel)], label=joint.label)
    return index


_ADD: dict[str, Callable[[ModelBuilder, BodyJoint, ImportReport], int]] = {
    "ball": _ball,
    "continuous": _single,
    "fixed": _fixed,
    "prismatic": _single,
    "revolute": _single,
    "revolute2": _universal,
    "screw": _screw,
    "universal": _universal,
}


def clean_name(name: str) -> str:
    """Return a label for a name, without dots and spaces."""
    return re.sub(r"[.\s]+", "_", name.strip())


def describe(joint: BodyJoint, index: int, parent: str, child: str, load: float) -> JointInfo:
    """Return the :class:`JointInfo` about a joint for the report."""
    axis = joint.axes[0] if joint.axes else Axis(None, np.zeros(3))
    free = joint.kind == "continuous"
    return JointInfo(
        label=joint.label,
        index=index,
        kind=joint.kind,
        parent=parent,
        child=child,
        lower=-math.inf if free else axis.lower,
        upper=math.inf if free else axis.upper,
        limits=axis.limits,
        damping=axis.damping,
        friction=axis.friction,
        load_inertia=load,
        axis=1 if joint.kind == "screw" else 0,
    )


@dataclass(frozen=True)
class Gear:
    """A gearbox between two bodies.

    The rows of ``axes`` (2, 3) are the rotation axes of parent and child in the world frame.
    """

    node: Node
    label: str
    parent: int
    child: int
    reference: int
    axes: np.ndarray


def add_couplings(builder: ModelBuilder, joints: list[BodyJoint], gears: list[Gear], report: ImportReport) -> None:
    """Add the couplings for <mimic> elements and for gearbox joints.

    Args:
        builder: builder that already contains the joints.
        joints: all joints of the builder.
        gears: all gearboxes.
        report: report that contains the joints' indices.
    """
    for joint in joints:
        for number, axis in enumerate(joint.axes):
            mimic = axis.node.find("mimic") if axis.node is not None else None
            if mimic is not None:
                _mimic(builder, joint, number, mimic, joints, report)
    for gear in gears:
        first = _hinge(builder, joints, gear, gear.parent, gear.axes[0])
        second = _hinge(builder, joints, gear, gear.child, gear.axes[1])
        if first is None or second is None:
            text = "is a gearbox whose bodies have no hinges on its reference body"
            report.add("motion", gear.node.title, text, "left out", "add_gear couples two joints")
            continue
        ratio = gear.node.number("gearbox_ratio", 1.0)
        if ratio == 0.0:
            raise gear.node.error(f"{gear.node.title}: gearbox_ratio must not be 0; give the ratio of the angles")
        (a, sign_a), (b, sign_b) = first, second
        # Angles a of the parent and b of the child, relative to the reference body: b = -ratio * a.
        builder.add_gear(report.joints[a].index, report.joints[b].index, -ratio * sign_a * sign_b, label=gear.label)


def _hinge(
    builder: ModelBuilder, joints: list[BodyJoint], gear: Gear, body: int, axis: np.ndarray
) -> tuple[str, float] | None:
    """Return the label of the hinge between ``body`` and the gearbox's reference body, or None.

    Also return the sign (+1 or -1) of the rotation of ``body`` about ``axis`` at a positive hinge angle.
    """
    for joint in joints:
        if joint.kind in ("revolute", "continuous") and {joint.parent, joint.child} == {gear.reference, body}:
            pose = joint.child_xform if joint.child == WORLD else builder.bodies[joint.child].xform * joint.child_xform
            sign = 1.0 if float(pose.matrix() @ joint.axes[0].direction @ axis) >= 0.0 else -1.0
            return joint.label, sign if joint.child == body else -sign
    return None


def _mimic(
    builder: ModelBuilder, joint: BodyJoint, axis: int, mimic: Node, joints: list[BodyJoint], report: ImportReport
) -> None:
    name = clean_name(mimic.get("joint"))
    prefix = joint.label.rpartition("::")[0]
    leader_label = f"{prefix}::{name}" if prefix else name
    leader = next((other for other in joints if other.label == leader_label), None)
    if leader is None:
        raise mimic.error(f"{joint.node.title}: <mimic>: no joint {name!r}; name a joint of the same model")
    multiplier, reference = mimic.number("multiplier", 1.0), mimic.number("reference", 0.0)
    offset = mimic.number("offset", 0.0) - multiplier * reference
    follower = (report.joints[joint.label].index, axis + (joint.kind == "screw"))
    tags, tag = [one.node.tag if one.node else "" for one in leader.axes], mimic.get("axis", "axis")
    # The axes are exchanged if the world is the child.
    leading = tags.index(tag) if tag in tags else int(tag == "axis2")
    first = (report.joints[leader.label].index, leading + (leader.kind == "screw"))
    builder.add_mimic(follower[0], first[0], multiplier, offset, follower[1], first[1], label=joint.label)
    report.add_mimic(follower, first, multiplier, offset)
    if abs(offset) > 1e-9:
        text = f"starts at 0, but follows joint {leader.label!r} at {offset:g}"
        report.add(
            "info", joint.node.title, text, "it moves there in the first step", "start it at the matching position"
        )
