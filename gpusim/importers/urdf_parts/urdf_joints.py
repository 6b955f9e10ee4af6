"""Conversion of a URDF tree to bodies and joints of the builder, with report entries for the joints."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.inertia import MassProperties, combine, parallel_axis
from gpusim.importers.report import ImportReport, JointInfo
from gpusim.importers.urdf_parts.urdf_bodies import Bodies, Body
from gpusim.importers.urdf_parts.urdf_check import SINGLE_AXIS
from gpusim.importers.urdf_parts.urdf_tree import Joint, Tree
from gpusim.transform import Transform

WORLD = -1


def add_bodies_and_joints(
    tree: Tree, groups: Bodies, builder: ModelBuilder, base: np.ndarray, report: ImportReport
) -> dict[str, int]:
    """Add all bodies and joints to ``builder``, and describe them in ``report``.

    Args:
        tree: links and joints, with the links' starting poses.
        groups: the bodies made from the links.
        builder: receives bodies and joints.
        base: pose (4, 4) of the root link in the world.
        report: receives information about bodies and joints.

    Returns:
        A dict: body name -> index of the body.
    """
    indices = {name: _add_body(builder, body, base) for name, body in groups.bodies.items()}
    if groups.world is None:
        _add_base_joint(tree, builder, indices[tree.root], base, report)
    carried = carried_masses(groups)
    for joint in groups.joints.values():
        index, carrier = _add_joint(groups, builder, indices, base, joint)
        load = load_inertia(tree, joint, carried[joint.child])
        report.joints[joint.name] = _describe_joint(tree, joint, index, carrier, load)
        if joint.kind != "fixed":
            report.joint_limits[joint.name] = joint.limits
    for info in list(report.joints.values()):
        if info.mimic is not None:
            builder.add_mimic(
                info.index,
                report.joints[info.mimic.leader].index,
                multiplier=info.mimic.multiplier,
                offset=info.mimic.offset,
                label=info.label,
            )
    _describe_bodies(groups, report, base)
    return indices


def _add_body(builder: ModelBuilder, body: Body, base: np.ndarray) -> int:
    return builder.add_body(
        mass=body.mass.mass,
        inertia=body.mass.inertia,
        com=tuple(body.mass.com),
        xform=Transform.from_matrix(base @ body.pose),
        label=body.name,
    )


def _describe_bodies(groups: Bodies, report: ImportReport, base: np.ndarray) -> None:
    report.total_mass = math.fsum(body.mass.mass for body in groups.bodies.values())
    report.added_mass = math.fsum(body.added_mass for body in groups.bodies.values())
    if groups.world is not None:
        report.merged[groups.world] = "world"
        report.link_frames[groups.world] = base
    for body in groups.bodies.values():
        report.link_frames.update(body.frames)
        report.merged.update((link, body.name) for link in body.frames if link != body.name)


def _add_base_joint(tree: Tree, builder: ModelBuilder, child: int, base: np.ndarray, report: ImportReport) -> None:
    label = f"world_to_{tree.root}"
    while label in tree.joints:
        label += "_"
    if report.fixed_base:
        index = builder.add_joint_fixed(WORLD, child, parent_xform=Transform.from_matrix(base), label=label)
    else:
        index = builder.add_joint_free(WORLD, child, label=label)
    report.base_joint = label
    kind = "fixed" if report.fixed_base else "floating"
    report.joints[label] = JointInfo(label, index, kind, parent="world", child=tree.root)


def _add_joint(
    groups: Bodies, builder: ModelBuilder, indices: dict[str, int], base: np.ndarray, joint: Joint
) -> tuple[int, str]:
    """Add a joint and return its index and the label of its parent body."""
    if joint.parent == groups.world:
        parent, carrier, frame = WORLD, "world", base
    else:
        carrier = groups.body_of[joint.parent]
        parent, frame = indices[carrier], groups.bodies[carrier].frames[joint.parent]
    parent_xform = Transform.from_matrix(frame @ joint.origin)
    return _ADD[joint.kind](builder, joint, parent, indices[joint.child], parent_xform), carrier


def _describe_joint(tree: Tree, joint: Joint, index: int, carrier: str, load: float) -> JointInfo:
    return JointInfo(
        label=joint.name,
        index=index,
        kind=joint.kind,
        parent=carrier,
        child=joint.child,
        lower=joint.lower,
        upper=joint.upper,
        limits=joint.limits,
        damping=joint.damping,
        friction=joint.friction,
        mimic=joint.mimic,
        initial_position=tree.positions[joint.name],
        load_inertia=load,
    )


def _add_fixed(builder: ModelBuilder, joint: Joint, parent: int, child: int, parent_xform: Transform) -> int:
    return builder.add_joint_fixed(parent, child, parent_xform=parent_xform, label=joint.name)


def _add_floating(builder: ModelBuilder, joint: Joint, parent: int, child: int, parent_xform: Transform) -> int:
    return builder.add_joint_free(parent, child, parent_xform=parent_xform, label=joint.name)


def _add_spherical(builder: ModelBuilder, joint: Joint, parent: int, child: int, parent_xform: Transform) -> int:
    return builder.add_joint_ball(parent, child, parent_xform=parent_xform, label=joint.name)


def _add_single_axis(builder: ModelBuilder, joint: Joint, parent: int, child: int, parent_xform: Transform) -> int:
    add = builder.add_joint_prismatic if joint.kind == "prismatic" else builder.add_joint_revolute
    return add(
        parent,
        child,
        parent_xform=parent_xform,
        axis=tuple(joint.axis),
        limit_lower=joint.lower,
        limit_upper=joint.upper,
        damping=joint.damping,
        friction=joint.friction,
        armature=joint.armature,
        label=joint.name,
    )


def _add_planar(builder: ModelBuilder, joint: Joint, parent: int, child: int, parent_xform: Transform) -> int:
    # URDF has one damping and one friction for x, y (N s/m, N) and the angle (N m s/rad, N m).
    return builder.add_joint_planar(
        parent,
        child,
        parent_xform=parent_xform,
        axis=tuple(joint.axis),
        damping=(joint.damping,) * 3,
        friction=(joint.friction,) * 3,
        label=joint.name,
    )


_ADD: dict[str, Callable[[ModelBuilder, Joint, int, int, Transform], int]] = {
    "fixed": _add_fixed,
    "floating": _add_floating,
    "revolute": _add_single_axis,
    "continuous": _add_single_axis,
    "prismatic": _add_single_axis,
    "planar": _add_planar,
    "spherical": _add_spherical,
}


def carried_masses(groups: Bodies) -> dict[str, MassProperties]:
    """Return a dict: body name -> mass properties of the body and all its descendants, in the root link's frame."""
    total = {name: body.mass.moved(body.pose) for name, body in groups.bodies.items()}
    # In reverse depth-first order, the load of a joint is complete before the loop adds it to the parent.
    for joint in reversed(groups.joints.values()):
        parent = groups.body_of.get(joint.parent)
        if parent is not None:
            total[parent] = combine((total[parent], total[joint.child]))
    return total


def load_inertia(tree: Tree, joint: Joint, carried: MassProperties) -> float:
    """Return the load of a joint in the starting pose: inertia (kg m2), or mass (kg) for a prismatic joint."""
    if joint.kind not in SINGLE_AXIS:
        return 0.0
    if joint.kind == "prismatic":
        return carried.mass
    pose = tree.poses[joint.child]
    axis = pose[:3, :3] @ joint.axis
    return float(axis @ (carried.inertia + carried.mass * parallel_axis(carried.com - pose[:3, 3])) @ axis)
