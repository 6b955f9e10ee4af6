"""Tree of links and joints from a checked document, in depth-first order, with the pose of every link.

Frames follow URDF: a joint's frame is the frame of its child link. ``origin`` is the pose of the child link's frame in
the parent link's frame at joint position 0.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.errors import ModelError, unknown_name
from gpusim.importers.inertia import MassProperties
from gpusim.importers.report import JointLimits, Mimic
from gpusim.importers.urdf_parts.urdf_check import SINGLE_AXIS
from gpusim.importers.urdf_parts.urdf_xml import Document, Source


@dataclass(frozen=True)
class Link:
    """A link. ``mass`` contains the mass properties in the link's frame, or None if the link has no <inertial>."""

    name: str
    mass: MassProperties | None
    collides: bool = False


@dataclass(frozen=True)
class Joint:
    """A joint as in the file. ``axis`` (3,) is a unit vector, and ``origin`` (4, 4) is a pose.

    ``armature`` is the reflected inertia of the motor's rotor, kg m2 or kg.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: np.ndarray
    axis: np.ndarray
    lower: float = -math.inf
    upper: float = math.inf
    limits: JointLimits = JointLimits()
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    armature: float = 0.0


@dataclass
class Tree:
    """A robot as a tree of links and joints. ``joints`` are in depth-first order (parents before children).

    Attributes:
        name: name of the robot.
        root: name of the root link.
        links, joints: links and joints by name.
        positions: joint name -> starting position. Positions of mimic joints are computed from their leaders. The
            positions of all other joints are clipped to the limits.
        poses: link name -> (4, 4) starting pose in the frame of the root link.
        warnings: pairs (sentence, severity).
    """

    name: str
    root: str
    links: dict[str, Link]
    joints: dict[str, Joint]
    positions: dict[str, float]
    poses: dict[str, np.ndarray] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def warn(self, text: str, severity: str = "info") -> None:
        """Add a sentence "element: what; effect; fix" for the report."""
        self.warnings.append((text, severity))


def read_tree(document: Document, yourdfpy: Any, pose: Mapping[str, float] | None = None) -> Tree:
    """Return the tree of a checked document. The module ``yourdfpy`` parses the document.

    ``pose`` maps joint names to starting positions (rad or m). Other joints start at 0, or at the nearest limit.

    Raises:
        ModelError: the links do not form a tree, mimics form a cycle, or ``pose`` contains a joint without an axis or
            with several axes.
        UnknownNameError: a joint of ``pose`` is unknown.
    """
    robot = _parse(document, yourdfpy)
    shaped = {link.get("name") for link, _ in document.collisions}
    links = {x.name: Link(x.name, _mass_properties(x.inertial), x.name in shaped) for x in robot.links}
    joints = {joint.name: _joint(joint) for joint in robot.joints}
    root = _root(document.source, links, joints.values())
    ordered = _depth_first(document.source, root, links, joints.values())
    tree = Tree(robot.name, root, links, ordered, {})
    _resolve_mimics(document.source, tree, _checked_pose(tree, pose or {}))
    _compute_link_poses(tree)
    return tree


def _parse(document: Document, yourdfpy: Any) -> Any:
    from lxml import etree

    text = io.BytesIO(etree.tostring(document.robot, encoding="utf-8"))
    try:
        model = yourdfpy.URDF.load(text, build_scene_graph=False, load_meshes=False)
    except Exception as error:  # yourdfpy also raises errors of conversions and lookups
        raise document.source.error(f"yourdfpy cannot read it ({type(error).__name__}: {error})") from None
    return model.robot


def _mass_properties(inertial: Any) -> MassProperties | None:
    """Return mass properties in the link's frame."""
    if inertial is None:
        return None
    mass = 0.0 if inertial.mass is None else float(inertial.mass)
    inertia = np.zeros((3, 3)) if inertial.inertia is None else np.asarray(inertial.inertia, dtype=float)
    properties = MassProperties(mass, np.zeros(3), inertia)
    # Products with infinite entries are NaN. The repair treats infinite and NaN entries as invalid.
    with np.errstate(invalid="ignore"):
        return properties if inertial.origin is None else properties.moved(np.asarray(inertial.origin, dtype=float))


def _joint(joint: Any) -> Joint:
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    axis = np.asarray(joint.axis, dtype=float)
    length = float(np.linalg.norm(axis))
    values: dict[str, Any] = {}
    if limit is not None:
        values["lower"] = -math.inf if limit.lower is None else limit.lower
        values["upper"] = math.inf if limit.upper is None else limit.upper
        values["limits"] = JointLimits(limit.effort, limit.velocity)
    if dynamics is not None:
        values["damping"] = float(dynamics.damping or 0.0)
        values["friction"] = float(dynamics.friction or 0.0)
    if mimic is not None:
        values["mimic"] = Mimic(mimic.joint, float(mimic.multiplier), float(mimic.offset))
    origin = np.eye(4) if joint.origin is None else np.asarray(joint.origin, dtype=float)
    return Joint(joint.name, joint.type, joint.parent, joint.child, origin, axis / length, **values)


def _root(source: Source, links: Iterable[str], joints: Iterable[Joint]) -> str:
    carrier: dict[str, Joint] = {}
    for joint in joints:
        first = carrier.setdefault(joint.child, joint)
        if first is not joint:
            raise source.error(
                f"link {joint.child!r} is the child of two joints, {first.name!r} and {joint.name!r}; URDF is a tree, "
                "remove one and close the loop with the builder"
            )
    roots = [name for name in links if name not in carrier]
    if not roots:
        raise source.error(f"{_cycle(carrier)}; the tree needs one root link, remove a joint")
    if len(roots) > 1:
        names = ", ".join(map(repr, roots[:5])) + (", ..." if len(roots) > 5 else "")
        raise source.error(
            f"{len(roots)} root links ({names}); a URDF is one tree, add a joint from the base to each of the others"
        )
    return roots[0]


def _cycle(carrier: dict[str, Joint], start: str | None = None) -> str:
    """Return an error text that names the links of the cycle above link ``start``."""
    link = next(iter(carrier)) if start is None else start
    seen: list[str] = []
    while link not in seen:
        seen.append(link)
        link = carrier[link].parent
    circle = seen[seen.index(link) :][::-1]
    return f"links {', '.join(map(repr, circle))} form a cycle"


def _depth_first(source: Source, root: str, links: Iterable[str], joints: Iterable[Joint]) -> dict[str, Joint]:
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    ordered: dict[str, Joint] = {}
    reached, waiting = {root}, list(reversed(children.get(root, [])))
    while waiting:
        joint = waiting.pop()
        ordered[joint.name] = joint
        reached.add(joint.child)
        waiting.extend(reversed(children.get(joint.child, [])))
    unreached = [name for name in links if name not in reached]
    if unreached:
        carrier = {joint.child: joint for joint in joints}
        raise source.error(
            f"{_cycle(carrier, unreached[0])}, apart from root {root!r}; remove a joint and connect them to it"
        )
    return ordered


def _checked_pose(tree: Tree, pose: Mapping[str, float]) -> dict[str, float]:
    checked = {}
    for name, position in pose.items():
        if name not in tree.joints:
            raise unknown_name("joint", name, tree.joints)
        joint = tree.joints[name]
        if joint.kind not in SINGLE_AXIS:
            raise ModelError(f"pose: joint {name!r} is {joint.kind} and has no position; leave it out")
        checked[name] = validate.number(f"pose: joint {name!r}", "position", position)
        if joint.mimic is not None:
            tree.warn(f"joint {name!r}: it follows joint {joint.mimic.leader!r}; its position in the pose is ignored")
    return checked


def _resolve_mimics(source: Source, tree: Tree, pose: Mapping[str, float]) -> None:
    """Compute the starting positions of all joints. Leaders come before their mimic joints."""
    for name in tree.joints:
        for member in reversed(_leaders(source, tree.joints, name)):
            if member not in tree.positions:
                tree.positions[member] = _start_position(tree, tree.joints[member], pose)
    for name, joint in tree.joints.items():
        _warn_outside(tree, joint, tree.positions[name])


def _leaders(source: Source, joints: dict[str, Joint], name: str) -> list[str]:
    """Return the joint ``name``, its leader, the leader of its leader, and so on."""
    chain = [name]
    while (mimic := joints[chain[-1]].mimic) is not None:
        if mimic.leader in chain:
            circle = ", ".join(map(repr, chain[chain.index(mimic.leader) :]))
            raise source.error(f"joint {name!r}: <mimic> forms a cycle through {circle}; let one of them lead")
        chain.append(mimic.leader)
    return chain


def _start_position(tree: Tree, joint: Joint, pose: Mapping[str, float]) -> float:
    if joint.mimic is None:
        position = pose.get(joint.name, 0.0)
        start = min(max(position, joint.lower), joint.upper)
        if joint.kind != "fixed" and start != position:
            limits = f"position {position:g} is outside its limits {joint.lower:g} to {joint.upper:g}"
            tree.warn(f"joint {joint.name!r}: {limits}; it starts at {start:g}")
        return start if joint.kind != "fixed" else 0.0
    leader, (_, multiplier, offset) = tree.joints[joint.mimic.leader], joint.mimic
    if leader.kind != "fixed" and multiplier != 0.0:
        return multiplier * tree.positions[leader.name] + offset
    reason = f"it mimics the fixed joint {leader.name!r}" if multiplier else "its <mimic> has multiplier 0"
    tree.warn(f"joint {joint.name!r}: {reason}; fixed at position {offset:g}")
    fixed = replace(joint, kind="fixed", origin=joint.origin @ motion(joint, offset), mimic=None)
    tree.joints[joint.name] = fixed
    return 0.0


def _warn_outside(tree: Tree, joint: Joint, position: float) -> None:
    if joint.kind != "fixed" and not joint.lower <= position <= joint.upper:
        limits = f"starts at {position:g}, outside its limits {joint.lower:g} to {joint.upper:g}"
        tree.warn(f"joint {joint.name!r}: it {limits}; the limit will push it back", "motion")


def motion(joint: Joint, position: float) -> np.ndarray:
    """Return the displacement (4, 4) of the child's frame at the joint position ``position`` (rad or m)."""
    result = np.eye(4)
    if joint.kind == "prismatic":
        result[:3, 3] = position * joint.axis
    elif joint.kind in SINGLE_AXIS:
        x, y, z = joint.axis
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        result[:3, :3] += math.sin(position) * cross + (1.0 - math.cos(position)) * (cross @ cross)
    return result


def _compute_link_poses(tree: Tree) -> None:
    tree.poses[tree.root] = np.eye(4)
    for name, joint in tree.joints.items():
        pose = tree.poses[joint.parent] @ joint.origin
        position = tree.positions[name]
        tree.poses[joint.child] = pose @ motion(joint, position) if position else pose


def zero_poses(tree: Tree) -> dict[str, np.ndarray]:
    """Return a dict: link name -> (4, 4) pose in the frame of the root link, with all joints at 0."""
    poses = {tree.root: np.eye(4)}
    for joint in tree.joints.values():
        poses[joint.child] = poses[joint.parent] @ joint.origin
    return poses
