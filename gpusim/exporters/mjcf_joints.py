"""Joints of an MJCF file: hinges, slides and balls, and equality constraints and tendons for all other joints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.polynomial import Polynomial

from gpusim.description.specs import WORLD, CouplingSpec, JointSpec
from gpusim.description.wraps import CYLINDER, WrappedPath
from gpusim.exporters.mjcf_document import Coordinate, Document, finite_limits, pose, text
from gpusim.importers.usd_parts.usd_joints import gimbal_angles, twist
from gpusim.model.sensors import BREAKS
from gpusim.reference.joints.wrapping import start_length
from gpusim.transform import Transform
from gpusim.typing import Array

# MuJoCo closes loops by soft constraints. These parameters make them stiff, but stable at the file's time step.
STIFF = {"solref": (0.004, 1.0), "solimp": (0.99, 0.999, 0.001)}

Axis = tuple[bool, Array, float]
"""MJCF joint as a tuple: True for a slide or False for a hinge, axis in the joint frame, start position."""


def start_pose(doc: Document, joint: JointSpec) -> Transform:
    """Return the starting pose of the child's joint frame in the parent's joint frame."""
    first, second = (
        (Transform() if body == WORLD else doc.model.bodies[body].xform) * frame
        for body, frame in ((joint.parent, joint.parent_xform), (joint.child, joint.child_xform))
    )
    return first.inverse() * second


def _revolute(joint: JointSpec, start: Transform) -> list[Axis]:
    axis = joint.params["columns"][:, 2]
    return [(False, axis, twist(start, axis))]


def _prismatic(joint: JointSpec, start: Transform) -> list[Axis]:
    axis = joint.params["columns"][:, 2]
    return [(True, axis, float(start.position @ axis))]


def _cylindrical(joint: JointSpec, start: Transform) -> list[Axis]:
    return [*_prismatic(joint, start), *_revolute(joint, start)]


def _planar(joint: JointSpec, start: Transform) -> list[Axis]:
    columns = joint.params["columns"]
    slides: list[Axis] = [(True, columns[:, k], float(start.position @ columns[:, k])) for k in range(2)]
    return [*slides, *_revolute(joint, start)]


def _rotations(columns: Array, axes: list[Array], start: Transform) -> list[Axis]:
    if len(axes) == 1:
        return [(False, axes[0], twist(start, axes[0]))]
    angles = list(gimbal_angles(columns.T @ start.matrix() @ columns))[: len(axes)]
    if len(axes) == 3:
        angles[2] *= float(np.sign(columns[:, 2] @ axes[2]))
    return [(False, axis, angle) for axis, angle in zip(axes, angles, strict=True)]


def _universal(joint: JointSpec, start: Transform) -> list[Axis]:
    columns = joint.params["columns"]
    return _rotations(columns, [columns[:, 0], columns[:, 1]], start)


def _d6(joint: JointSpec, start: Transform) -> list[Axis]:
    slides: list[Axis] = [(True, axis, float(start.position @ axis)) for axis in joint.params["linear"]]
    angular = list(joint.params["angular"])
    return slides + (_rotations(joint.params["columns"], angular, start) if angular else [])


_AXES: dict[str, Callable[[JointSpec, Transform], list[Axis]]] = {
    "revolute": _revolute,
    "prismatic": _prismatic,
    "cylindrical": _cylindrical,
    "planar": _planar,
    "universal": _universal,
    "d6": _d6,
}
SINGLE_COORDINATES = frozenset(_AXES)
"""Joint types whose coordinates are hinges and slides."""
FREE = frozenset(("free",))
CARRIERS = frozenset((*_AXES, "fixed", "ball"))
"""Joint types of gpusim that become MJCF joints between a nested body and its parent."""


def has_closure(joint: JointSpec) -> bool:
    """Return whether MJCF can represent the joint by equality constraints or tendons."""
    return joint.kind in _CLOSURES


def _has_kind(joint: JointSpec, *names: str) -> bool:
    return joint.kind in frozenset(names)


def add_tree_joint(doc: Document, body: ElementTree.Element, index: int) -> None:
    """Add the MJCF joints between a body and its parent. The type of joint ``index`` must be in CARRIERS."""
    joint = doc.model.joints[index]
    doc.report.joints[joint.label] = []
    if joint.kind in _AXES:
        _add_axes(doc, body, index, joint)
    elif _has_kind(joint, "ball"):
        _add_ball(doc, body, index, joint)


def _add_axes(doc: Document, body: ElementTree.Element, index: int, joint: JointSpec) -> None:
    start, params = start_pose(doc, joint), joint.params
    axes = _AXES[joint.kind](joint, start)
    child = doc.model.bodies[joint.child].xform
    rates = _Rates(doc, joint)
    doc.qpos_index["joint", joint.label] = len(doc.qpos)
    rotation = Transform()
    for k, (slide, axis, position) in enumerate(axes):
        # Convert the axis to the child's starting frame. The joint's preceding rotations also rotate a hinge axis.
        local_axis = joint.child_xform.rotate(start.inverse().rotate(axis if slide else rotation.rotate(axis)))
        if not slide:
            rotation = rotation * Transform.from_axis_angle((0, 0, 0), axis, position)
        lower, upper = float(params["limit_lower"][k]), float(params["limit_upper"][k])
        name = joint.label if len(axes) == 1 else f"{joint.label}_{k}"
        limit_range = None if lower == upper else finite_limits(lower, upper)
        element = doc.add(
            body,
            "joint",
            name=name,
            type="slide" if slide else "hinge",
            pos=joint.child_xform.position if np.any(joint.child_xform.position) else None,
            axis=local_axis,
            ref=position or None,
            range=limit_range,
            **_nonzero(params, k),
        )
        name = str(element.get("name"))
        doc.coordinates[index, k] = Coordinate(name, position)
        doc.report.joints[joint.label].append(name)
        doc.qpos.append(position)
        rates.add(slide, child.rotate(local_axis))
        if lower == upper:  # MuJoCo does not support equal limits
            doc.add(doc.section("equality"), "joint", joint1=name, polycoef=(lower - position, 0, 0, 0, 0), **STIFF)
    doc.qvel += rates.solve()
    if np.any(params["limit_restitution"] > 0.0):
        doc.report.add("contact", joint.element, "bounces off its limits", "it does not bounce in the file")


class _Rates:
    """Solver for the rates of a joint's coordinates. The inputs are the velocities of the joint's two bodies."""

    def __init__(self, doc: Document, joint: JointSpec) -> None:
        self.doc, self.joint = doc, joint
        bodies = doc.model.bodies
        point = bodies[joint.child].xform.apply(joint.child_xform.position)
        twists = [np.zeros(6)]
        for index in (joint.parent, joint.child):
            if index != WORLD:
                body = bodies[index]
                arm = point - body.xform.apply(body.com)
                linear = body.linear_velocity + np.cross(body.angular_velocity, arm)
                twists.append(np.concatenate([body.angular_velocity, linear]))
        self.relative = twists[-1] - (twists[-2] if joint.parent != WORLD else 0.0)
        self.columns: list[Array] = []

    def add(self, slide: bool, axis: Array) -> None:
        """Add a translation along ``axis`` or a rotation about ``axis`` (world frame)."""
        self.columns.append(np.concatenate([np.zeros(3), axis] if slide else [axis, np.zeros(3)]))

    def solve(self) -> list[float]:
        """Return the rates of the coordinates. Report body velocities that the joint does not allow."""
        if not np.any(self.relative):
            return [0.0] * len(self.columns)
        matrix = np.stack(self.columns, axis=1)
        rates = np.linalg.lstsq(matrix, self.relative, rcond=None)[0]
        if np.abs(matrix @ rates - self.relative).max() > 1e-6 * max(1.0, float(np.abs(self.relative).max())):
            what = "its bodies start with velocities that it does not allow"
            self.doc.report.add("motion", self.joint.element, what, "the file has the closest velocities")
        return [float(rate) for rate in rates]


def _nonzero(params: dict[str, Any], k: int) -> dict[str, float]:
    names = {"damping": "damping", "friction": "frictionloss", "armature": "armature"}
    values = {attribute: float(params[name][k]) for name, attribute in names.items() if name in params}
    return {attribute: value for attribute, value in values.items() if value}


def _add_ball(doc: Document, body: ElementTree.Element, index: int, joint: JointSpec) -> None:
    params, start = joint.params, start_pose(doc, joint)
    properties = _nonzero(params, 0)
    for name in ("damping", "friction", "armature"):
        if name in params and np.ptp(params[name][:3]) > 0.0:
            doc.report.add("motion", joint.element, f"its {name} differs by axis", "the first one applies to all")
    limit = float(params["limit_upper"][3]) if len(params["limit_upper"]) > 3 else math.inf
    if "cone_axis" in params:
        doc.report_loss(joint.element, "its cone limit", "use limit, which bounds the whole rotation")
    if math.isfinite(limit) and abs(start.rotation[3]) < 1.0 - 1e-12:
        doc.report.add(
            "motion", joint.element, "starts rotated and has a limit", "the limit applies relative to the start"
        )
    element = doc.add(
        body, "joint", name=joint.label, type="ball", pos=joint.child_xform.position,
        range=(0.0, limit) if limit < FULL_ROTATION else None, **properties,
    )  # fmt: skip
    doc.report.joints[joint.label].append(str(element.get("name")))
    doc.qpos_index["joint", joint.label] = len(doc.qpos)
    doc.qpos += [1.0, 0.0, 0.0, 0.0]
    child = doc.model.bodies[joint.child].xform
    rates = _Rates(doc, joint)
    for axis in np.eye(3):  # a ball's velocity is in the axes of the child
        rates.add(False, child.rotate(axis))
    doc.qvel += rates.solve()


FULL_ROTATION = math.pi
HIDDEN_GROUP = 3
"""Group of geoms that MuJoCo's viewer does not draw."""


def add_closures(doc: Document, closing: list[int]) -> None:
    """Add equality constraints or tendons for the joints that the tree of nested bodies does not contain."""
    for index in closing:
        joint = doc.model.joints[index]
        doc.report.joints.setdefault(joint.label, [])
        maker = _CLOSURES.get(joint.kind)
        if maker is None:
            what = f"a {joint.kind} joint closes a loop" if joint.kind in CARRIERS else f"MJCF has no {joint.kind}"
            doc.report_loss(joint.element, what, "use a ball or fixed joint")
        else:
            maker(doc, joint, index)


def _sites(doc: Document, joint: JointSpec, shift: Array | None = None, mark: str = "") -> dict[str, str]:
    offset = Transform(np.zeros(3) if shift is None else shift)
    names = []
    for end, body, frame in (("a", joint.parent, joint.parent_xform), ("b", joint.child, joint.child_xform)):
        names.append(doc.site(body, frame * offset, f"{joint.label}{mark}_{end}"))
    return {"site1": names[0], "site2": names[1]}


def _report_lost_properties(doc: Document, joint: JointSpec) -> None:
    """Report that a joint loses limits, damping, friction and armature, because it becomes an equality constraint."""
    params = joint.params
    lossy = any(np.any(params[name]) for name in ("damping", "friction", "armature") if name in params)
    bounded = any(np.any(np.isfinite(params[name])) for name in ("limit_lower", "limit_upper") if name in params)
    if lossy or bounded:
        doc.report_loss(joint.element, "limits, damping, friction and armature of a joint that closes a loop")


def _ball_closure(doc: Document, joint: JointSpec, index: int) -> None:
    _report_lost_properties(doc, joint)
    doc.add(doc.section("equality"), "connect", name=joint.label, **_sites(doc, joint), **STIFF)


def _fixed_closure(doc: Document, joint: JointSpec, index: int) -> None:
    doc.add(doc.section("equality"), "weld", name=joint.label, **_sites(doc, joint), **STIFF)


def _latch(doc: Document, joint: JointSpec, index: int) -> None:
    """Add a weld or connect constraint for a latch. The constraint is active if the latch is attached."""
    params = joint.params
    if any(name in params for name in BREAKS):
        doc.report_loss(joint.element, "its break force or break torque")
    active = None if params["limit_upper"][0] == 0.0 else False
    tag = "weld" if params.get("rotation", True) else "connect"
    doc.add(doc.section("equality"), tag, name=joint.label, active=active, **_sites(doc, joint), **STIFF)
    if active is False:
        effect = "eq_active pulls its sites together, while a latch locks the pose in which it closes"
        doc.report.add("info", joint.element, "is open", effect)


def _hinge_closure(doc: Document, joint: JointSpec, index: int) -> None:
    """Add two connect constraints, at two points on the hinge axis."""
    _report_lost_properties(doc, joint)
    axis = joint.params["columns"][:, 2]
    for mark, side in (("_1", -0.5), ("_2", 0.5)):
        sites = _sites(doc, joint, 0.1 * side * axis, mark)
        doc.add(doc.section("equality"), "connect", name=joint.label + mark, **sites, **STIFF)


def _distance(doc: Document, joint: JointSpec, index: int) -> None:
    doc.paths[index] = [("site", {"site": site}) for site in _sites(doc, joint).values()]
    rod = joint.params["rod"]
    name = _spatial(doc, joint, doc.paths[index], rod is None)
    doc.coordinates[index, 0] = Coordinate(name, float(np.linalg.norm(start_pose(doc, joint).position)), rope=True)
    if rod is not None:
        change = float(rod) - doc.coordinates[index, 0].start
        doc.add(doc.section("equality"), "tendon", tendon1=name, polycoef=(change, 0, 0, 0, 0), **STIFF)


def _spatial(doc: Document, joint: JointSpec, path: list[tuple[str, dict[str, str]]], limited: bool = True) -> str:
    """Add a spatial tendon, and return its name."""
    lower, upper = (float(joint.params[f"limit_{side}"][0]) for side in ("lower", "upper"))
    limit_range = finite_limits(max(lower, 0.0), upper) if limited else None
    tendon = doc.add(doc.section("tendon"), "spatial", name=joint.label, range=limit_range, **_nonzero(joint.params, 0))
    for tag, attributes in path:
        doc.add(tendon, tag, **attributes)
    _report_tendon_armature(doc, joint, tendon)
    return str(tendon.get("name"))


def _report_tendon_armature(doc: Document, joint: JointSpec, tendon: ElementTree.Element) -> None:
    """Report the lost armature of a tendon that spans several branches of the kinematic tree."""
    if not np.any(joint.params.get("armature", 0.0)):
        return
    parents = {child: element for element in doc.root.iter() for child in element}
    ends = {(step.tag, step.get(step.tag)) for step in tendon}
    branches = []
    for element in (e for e in parents if (e.tag, e.get("name")) in ends):
        branches.append(set[ElementTree.Element]())
        while element in parents:
            element = parents[element]
            if any(child.tag in ("joint", "freejoint") for child in element):
                branches[-1].add(element)
    longest = max(branches, key=len)
    if not all(branch <= longest for branch in branches):
        what = "its armature acts over several branches of the tree"
        doc.report.add("motion", joint.element, what, "MuJoCo ignores how it couples the branches")


def _wrapped_rope(doc: Document, joint: JointSpec, index: int) -> None:
    """Add a spatial tendon, and a geom for the tendon to wrap around. The geom does not collide."""
    path: WrappedPath = joint.params["path"]
    wrap = path.wrap
    geom = doc.add(
        doc.bodies[wrap.body], "geom", name=f"{joint.label}_wrap", type=wrap.shape, mass=0, contype=0, conaffinity=0,
        group=HIDDEN_GROUP, size=(wrap.radius, wrap.radius) if wrap.shape == CYLINDER else wrap.radius,
        **pose(wrap.xform),
    )  # fmt: skip
    attributes = {"geom": str(geom.get("name"))}
    if wrap.side is not None:
        side_body = wrap.body if wrap.side_body is None else wrap.side_body
        attributes["sidesite"] = doc.site(side_body, Transform(wrap.side), f"{joint.label}_side")
    a, b = (
        ("site", {"site": doc.site(body, Transform(point), f"{joint.label}_{end}")})
        for end, body, point in (("a", path.body_a, path.point_a), ("b", path.body_b, path.point_b))
    )
    doc.paths[index] = [a, ("geom", attributes), b]
    name, start = _spatial(doc, joint, doc.paths[index]), start_length(path, doc.model.bodies)
    doc.coordinates[index, 0] = Coordinate(name, start, rope=True)


def _tendon(doc: Document, joint: JointSpec, index: int) -> None:
    params = joint.params
    if any(j in doc.paths for j, *_ in params["terms"]):
        _spatial_tendon(doc, joint, index)
        return
    terms = [(doc.coordinates.get((j, axis)), factor) for j, axis, factor in params["terms"]]
    if any(one is None for one, _ in terms):
        doc.report_loss(joint.element, "a coordinate of it is not a hinge or slide")
        return
    limit_range = finite_limits(float(params["limit_lower"][0]), float(params["limit_upper"][0]))
    tendon = doc.add(doc.section("tendon"), "fixed", name=joint.label, range=limit_range, **_nonzero(params, 0))
    for one, factor in terms:
        doc.add(tendon, "joint", joint=one.name if one else "", coef=factor)
    _report_tendon_armature(doc, joint, tendon)
    name = str(tendon.get("name"))
    doc.coordinates[index, 0] = Coordinate(name, sum(one.start * factor for one, factor in terms if one is not None))
    doc.report.joints[joint.label].append(name)


def _spatial_tendon(doc: Document, joint: JointSpec, index: int) -> None:
    """Add one spatial tendon for several ropes."""
    terms = joint.params["terms"]
    if not all(j in doc.paths and factor > 0.0 for j, _, factor in terms):
        doc.report_loss(joint.element, "it adds lengths and other coordinates, or subtracts lengths")
        return
    path: list[tuple[str, dict[str, str]]] = []
    for j, _, factor in terms:
        path += [("pulley", {"divisor": text(1.0 / factor)}), *doc.paths[j]]
    name = _spatial(doc, joint, path)
    start = sum(doc.coordinates[j, axis].start * factor for j, axis, factor in terms)
    doc.coordinates[index, 0] = Coordinate(name, start, rope=True)
    doc.report.joints[joint.label].append(name)


def _free(doc: Document, joint: JointSpec, index: int) -> None:
    """Add nothing, because a free joint does not constrain motion."""


_CLOSURES: dict[str, Callable[[Document, JointSpec, int], None]] = {
    "ball": _ball_closure,
    "fixed": _fixed_closure,
    "latch": _latch,
    "revolute": _hinge_closure,
    "planar_pin": _ball_closure,
    "distance": _distance,
    "wrapped_rope": _wrapped_rope,
    "tendon": _tendon,
    "free": _free,
}


def add_coupling(doc: Document, coupling: CouplingSpec) -> None:
    """Add an equality constraint for a gear, a mimic or a differential."""
    terms = [(doc.coordinates.get((joint, axis)), factor) for joint, axis, factor in coupling.terms]
    if any(one is None for one, _ in terms):
        doc.report_loss(coupling.element, "a coordinate of it is not a hinge or slide of the tree")
        return
    known = [(one, factor) for one, factor in terms if one is not None]
    start = sum(factor * one.start for one, factor in known)
    shift = (coupling.offset - start) if coupling.offset is not None else 0.0
    equality = doc.section("equality")
    (first, a), (second, b) = known[0], known[-1]
    if not coupling.curve:
        poly = (shift / a, -b / a if len(known) == 2 else 0, 0, 0, 0)
    else:  # in MuJoCo, the first joint follows the second joint
        (first, a), (second, b) = (second, b), (first, a)
        rule = Polynomial([coupling.offset or 0.0, -b, *(-c for c in coupling.curve)]) / a
        coefficients = (rule(Polynomial([second.start, 1.0])) - first.start).coef
        poly = (*coefficients, *np.zeros(5 - len(coefficients)))
        if len(known) > 2 or first.rope or second.rope:
            doc.report_loss(coupling.element, "it follows a curve, and a coordinate is not a hinge or slide")
            return
    if any(one.rope for one, _ in known):
        if len(known) > 2:
            doc.report_loss(coupling.element, "it adds more than two coordinates, and one is a rope")
            return
        names = {
            f"tendon{k + 1}": one.name if one.rope else _fixed(doc, coupling.label, [(one, 1.0)])
            for k, (one, _) in enumerate(known)
        }
        doc.add(equality, "tendon", name=coupling.label, **names, polycoef=poly, **STIFF)
        return
    if len(known) == 2:
        doc.add(equality, "joint", name=coupling.label, joint1=first.name, joint2=second.name, polycoef=poly, **STIFF)
        return
    tendon = _fixed(doc, coupling.label, known)
    doc.add(equality, "tendon", tendon1=tendon, polycoef=(shift, 0, 0, 0, 0), **STIFF)


def _fixed(doc: Document, label: str, terms: list[tuple[Coordinate, float]]) -> str:
    """Add a fixed tendon, and return its name."""
    tendon = doc.add(doc.section("tendon"), "fixed", name=label)
    for one, factor in terms:
        doc.add(tendon, "joint", joint=one.name, coef=factor)
    return str(tendon.get("name"))
