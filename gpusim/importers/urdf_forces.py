"""Conversion of URDF extensions: springs, links without gravity, sensors, and joints that close loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_joints import JOINT_TYPES, BodyJoint, add_joint, clean_name, describe, read_axes
from gpusim.importers.sdf_parts.sdf_views import add_sensor
from gpusim.importers.sdf_parts.sdf_xml import Node
from gpusim.importers.urdf_parts.urdf_bodies import Bodies
from gpusim.importers.urdf_parts.urdf_extras import Extras
from gpusim.importers.urdf_parts.urdf_tree import Tree, zero_poses
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, local_name
from gpusim.transform import Transform, homogeneous_matrix


def add_forces(
    document: Document, tree: Tree, groups: Bodies, builder: ModelBuilder, extras: Extras, report: ImportReport
) -> None:
    """Add the springs, sensors, loop joints and gravity settings from a file's extensions."""
    for joint, (stiffness, rest_position) in extras.springs.items():
        if joint not in report.joints or tree.joints[joint].kind not in ("revolute", "continuous", "prismatic"):
            report.warn(f"joint {joint!r}: springStiffness needs a joint with one axis; the spring is left out")
            continue
        label = f"{joint}_spring"
        builder.add_torsion_spring(report.joints[joint].index, stiffness, rest_angle=rest_position, label=label)
    for link in dict.fromkeys(extras.weightless):
        _disable_gravity(tree, groups, builder, link, extras.weightless, report)
    for link, sensor in extras.sensors:
        name = groups.body_of.get(link)
        frame = Transform() if name is None else Transform.from_matrix(groups.bodies[name].frames[link])
        index = -1 if name is None else _index(builder, name)
        add_sensor(builder, index, frame, _node(sensor, document.source.name), link, report)
    for element in extras.loops:
        _close_loop(document, tree, groups, builder, _node(element, document.source.name), report)


def _node(element: Element, source: str) -> Node:
    """Convert an element of <gazebo> to a node of the SDF reader."""
    inner = [_node(child, source) for child in element if isinstance(child.tag, str)]
    return Node(local_name(element), dict(element.attrib), element.sourceline or 0, source, element.text or "", inner)


def _close_loop(
    document: Document, tree: Tree, groups: Bodies, builder: ModelBuilder, node: Node, report: ImportReport
) -> None:
    """Add an SDF joint between two links."""
    label, kind = clean_name(node.get("name")) or "gazebo_joint", node.get("type")
    ends = [document.link_labels.get(node.words(end)) for end in ("parent", "child")]
    parent, child = ends
    if parent is None or child is None or kind not in JOINT_TYPES or kind == "gearbox" or label in report.joints:
        what = f"joins {node.words('parent')!r} and {node.words('child')!r} by type {kind!r}"
        report.warn(f"joint {label!r} of <gazebo>: it {what}; it is left out, add it to the builder", "motion")
        return
    poses = zero_poses(tree)
    pose = node.find("pose")
    at = poses[child] @ (np.eye(4) if pose is None else homogeneous_matrix(pose.pose()))

    def rotation(name: str) -> np.ndarray:
        frame = np.eye(4) if name == "__model__" else poses.get(document.link_labels.get(name, ""))
        if frame is None:
            raise node.error(f"joint {label!r}: its axis is in frame {name!r}, which is not a link")
        relative: np.ndarray = at[:3, :3].T @ frame[:3, :3]
        return relative

    axes = read_axes(node, False, rotation, report)
    frames, bodies = [], []
    for link in (parent, child):
        local_pose = np.linalg.inv(poses[link]) @ at
        body = groups.body_of.get(link)
        frames.append(
            Transform.from_matrix(local_pose if body is None else groups.bodies[body].frames[link] @ local_pose)
        )
        bodies.append(-1 if body is None else _index(builder, body))
    if bodies[0] == bodies[1]:
        report.warn(f"joint {label!r} of <gazebo>: it joins links of one body; it is left out")
        return
    joint = BodyJoint(node, label, axes, bodies[0], bodies[1], frames[0], frames[1])
    names = [groups.body_of.get(link, "world") for link in (parent, child)]
    index = add_joint(builder, joint, report)
    report.joints[label] = describe(joint, index, names[0], names[1], 0.0)
    if any(tree.positions.values()):
        report.warn(f"joint {label!r} of <gazebo>: it closes a loop, and other joints start off 0; call sim.assemble()")


def _index(builder: ModelBuilder, label: str) -> int:
    return next(index for index, spec in enumerate(builder.bodies) if spec.label == label)


def _disable_gravity(
    tree: Tree, groups: Bodies, builder: ModelBuilder, link: str, weightless: Sequence[str], report: ImportReport
) -> None:
    """Disable gravity for a link."""
    mass, gravity = tree.links[link].mass, np.asarray(builder.gravity)
    if mass is None or mass.mass == 0.0 or link in groups.still or not np.any(gravity):
        return
    body = groups.bodies[groups.body_of[link]]
    heavy = [
        name for name in body.frames if (properties := tree.links[name].mass) is not None and properties.mass > 0.0
    ]
    if set(heavy) <= set(weightless):
        builder.bodies[_index(builder, body.name)].gravity_scale = 0.0
        return
    frame = body.frames[link]
    point = frame[:3, :3] @ mass.com + frame[:3, 3]
    builder.add_force(
        _index(builder, body.name), tuple(-mass.mass * gravity), point=tuple(point), label=f"{link}_no_gravity"
    )
    report.warn(f"link {link!r}: gravity is off; a constant force cancels its weight, since its body has gravity")
