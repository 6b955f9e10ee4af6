"""Joints of the MJCF importer.

The origin of the joint frame is the joint's anchor. For hinges and slides, ``joint.<label>.position`` equals MuJoCo's
qpos. Several hinges and slides of a body become one d6 joint, or a chain of joints with light bodies between them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.importers.inertia import LIGHT_FRACTION, light_link
from gpusim.importers.mjcf_parts.mjcf_context import (
    BALL,
    FREE,
    HINGE,
    SLIDE,
    Context,
    Coordinate,
    frame,
    rotation_about,
    shift,
    vector,
)
from gpusim.importers.report import JointInfo, JointLimits
from gpusim.transform import Transform
from gpusim.typing import Array

MAX_MIDDLE_ANGLE = 1.55
"""Maximum angle (rad) of the second rotation, if a d6 joint has three rotations. At 90 degrees, the d6 joint has gimbal
lock."""


def add_joints(context: Context) -> None:
    """Add the joints of all bodies, from parents to children."""
    m = context.m
    for b in context.labels:
        joints = list(range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]))
        if not joints:
            continue
        parent, pose = context.placements[int(m.body_parentid[b])]
        start = pose * frame(m.body_pos[b], m.body_quat[b])
        _add_chain(context, joints, parent, start, b)
    _describe(context)


def damping_of(context: Context, dof: int) -> float:
    """Return the viscous damping of a degree of freedom."""
    return 0.0 if context.is_disabled("DAMPER") else float(context.m.dof_damping[dof])


def friction_of(context: Context, dof: int) -> float:
    """Return the dry friction of a degree of freedom."""
    return 0.0 if context.is_disabled("FRICTIONLOSS", "CONSTRAINT") else float(context.m.dof_frictionloss[dof])


def limits_of(context: Context, j: int) -> tuple[float, float]:
    """Return the limits of a joint, or infinite values for a joint without limits."""
    active = context.m.jnt_limited[j] and not context.is_disabled("LIMIT", "CONSTRAINT")
    return context.limited(active, context.m.jnt_range[j])


def _passive_values(context: Context, j: int) -> dict[str, Any]:
    dof = int(context.m.jnt_dofadr[j])
    armature = float(context.m.dof_armature[dof])
    return {"damping": damping_of(context, dof), "friction": friction_of(context, dof), "armature": armature}


def _label(context: Context, j: int) -> str:
    context.joint_labels[j] = context.label("joint", context.name("JOINT", j))
    return context.joint_labels[j]


def _add_group(context: Context, joints: list[int], parent: int, child: int, start: Transform) -> None:
    """Add one joint of gpusim for a group of MuJoCo joints."""
    j, kind = joints[0], int(context.m.jnt_type[joints[0]])
    if len(joints) > 1:
        _add_d6(context, joints, parent, child, start)
    elif kind == FREE:
        _add_free(context, j, child)
    elif kind == BALL:
        _add_ball(context, j, parent, child, start)
    else:
        _add_axis(context, j, parent, child, start)


def _add_axis(context: Context, j: int, parent: int, child: int, start: Transform) -> None:
    m, builder, label = context.m, context.builder, _label(context, j)
    axis, ref = vector(m.jnt_axis[j]), float(m.qpos0[m.jnt_qposadr[j]])
    hinge = m.jnt_type[j] == HINGE
    back = rotation_about(axis, -ref) if hinge else shift(-ref * m.jnt_axis[j])
    lower, upper = limits_of(context, j)
    add = builder.add_joint_revolute if hinge else builder.add_joint_prismatic
    at = shift(m.jnt_pos[j])
    index = add(
        parent, child, start * at * back, at, axis=axis, limit_lower=lower, limit_upper=upper, label=label,
        **_passive_values(context, j),
    )  # fmt: skip
    context.coordinates[j] = Coordinate(index, label)


def _add_ball(context: Context, j: int, parent: int, child: int, start: Transform) -> None:
    m, builder, label = context.m, context.builder, _label(context, j)
    at, numbers = shift(m.jnt_pos[j]), _passive_values(context, j)
    upper = limits_of(context, j)[1]
    index = builder.add_joint_ball(
        parent, child, start * at, at, limit=upper if upper > 0.0 else math.inf, label=label, **numbers
    )
    context.coordinates[j] = Coordinate(index, label)
    stiffness = float(m.jnt_stiffness[j])
    if stiffness and not context.is_disabled("SPRING"):
        _, *xyz = vector(m.qpos_spring[m.jnt_qposadr[j] :][:4])
        rest_pose = Transform((0.0, 0.0, 0.0), (*xyz, float(m.qpos_spring[m.jnt_qposadr[j]])))
        name = context.label("joint", f"{label}_spring")
        springs = (0.0, 0.0, 0.0, stiffness, stiffness, stiffness)
        builder.add_bushing(parent, child, start * at * rest_pose, at, stiffness=springs, label=name)


def _add_free(context: Context, j: int, child: int) -> None:
    m, builder, report = context.m, context.builder, context.report
    is_base = report.base_link == context.name("BODY", int(m.jnt_bodyid[j]))
    label = _label(context, j)
    if is_base and report.base_joint:
        context.coordinates[j] = Coordinate(len(builder.joints) - 1, report.base_joint)
        return  # with fixed_base=True, the base needs no free joint
    q = int(m.jnt_qposadr[j])
    index = builder.add_joint_free(WORLD, child, label=label, **_passive_values(context, j))
    context.coordinates[j] = Coordinate(index, label)
    if is_base:
        report.base_joint = label
    stiffness = 0.0 if context.is_disabled("SPRING") else float(m.jnt_stiffness[j])
    if stiffness:
        rest_pose = frame(m.qpos_spring[q : q + 3], m.qpos_spring[q + 3 : q + 7])
        name = context.label("joint", f"{label}_spring")
        builder.add_bushing(WORLD, child, rest_pose, stiffness=(stiffness,) * 6, label=name)


def _fits_d6(context: Context, joints: list[int]) -> bool:
    """Return True if ``joints`` are orthogonal slides followed by orthogonal hinges at one anchor, as in a d6 joint."""
    m = context.m
    kinds = [int(m.jnt_type[j]) for j in joints]
    slides, hinges = kinds.count(SLIDE), kinds.count(HINGE)
    if slides + hinges < len(kinds) or max(slides, hinges) > 3 or kinds != [SLIDE] * slides + [HINGE] * hinges:
        return False
    for group in (joints[:slides], joints[slides:]):
        axes = np.reshape([m.jnt_axis[j] for j in group], (-1, 3))
        if np.abs(axes @ axes.T - np.eye(len(axes))).max(initial=0.0) > 1e-6:
            return False
    hinge_joints = joints[slides:]
    if any(np.abs(m.jnt_pos[j] - m.jnt_pos[hinge_joints[0]]).max() > 1e-9 for j in hinge_joints):
        return False
    if hinges > 1 and any(m.qpos0[m.jnt_qposadr[j]] for j in hinge_joints):
        return False  # the file gives axes at qpos0, but a d6 joint needs axes at position 0
    if hinges < 3:
        return True
    lower, upper = context.limited(m.jnt_limited[hinge_joints[1]], m.jnt_range[hinge_joints[1]])
    return lower >= -MAX_MIDDLE_ANGLE and upper <= MAX_MIDDLE_ANGLE


def _add_d6(context: Context, joints: list[int], parent: int, child: int, start: Transform) -> None:
    m = context.m
    labels = [_label(context, j) for j in joints]
    slides = [j for j in joints if m.jnt_type[j] == SLIDE]
    hinges = [j for j in joints if m.jnt_type[j] == HINGE]
    ref = {j: float(m.qpos0[m.jnt_qposadr[j]]) for j in joints}
    at = shift(m.jnt_pos[hinges[0]]) if hinges else Transform()
    translation = shift(sum((ref[j] * m.jnt_axis[j] for j in slides), np.zeros(3)))
    rotation = rotation_about(m.jnt_axis[hinges[0]], ref[hinges[0]]) if hinges else Transform()
    bounds = [limits_of(context, j) for j in joints]
    numbers = [_passive_values(context, j) for j in joints]
    each: dict[str, Any] = {name: tuple(n[name] for n in numbers) for name in ("damping", "friction", "armature")}
    index = context.builder.add_joint_d6(
        parent,
        child,
        start * at * translation.inverse() * rotation.inverse(),
        at,
        linear_axes=[vector(rotation.rotate(m.jnt_axis[j])) for j in slides],  # axes in the rotated joint frame
        angular_axes=[vector(m.jnt_axis[j]) for j in hinges],
        limit_lower=tuple(lower for lower, _ in bounds),
        limit_upper=tuple(upper for _, upper in bounds),
        label=labels[0],
        **each,
    )
    for axis, j in enumerate(joints):
        context.coordinates[j] = Coordinate(index, labels[0], axis)


def _group_joints(context: Context, joints: list[int]) -> list[list[int]]:
    """Divide MuJoCo joints into as few groups as possible. Each group becomes one joint of gpusim."""
    groups: list[list[int]] = []
    for j in joints:
        if groups and _fits_d6(context, [*groups[-1], j]):
            groups[-1].append(j)
        else:
            groups.append([j])
    return groups


def _add_chain(context: Context, joints: list[int], parent: int, start: Transform, b: int) -> None:
    """Add the joints of body ``b`` in series, with a light body between consecutive groups of joints."""
    builder, child = context.builder, context.placements[b][0]
    body = builder.bodies[child]
    pose = (Transform() if parent == WORLD else builder.bodies[parent].xform) * start
    *groups, last = _group_joints(context, joints)
    mass, moment = light_link(body.mass, body.inertia)
    for k, group in enumerate(groups):
        for j in group:
            pose = pose * _joint_displacement(context, j)
        velocity, spin = _link_velocity(context, b, joints[: joints.index(group[-1]) + 1], pose)
        link = builder.add_body(
            mass=mass,
            inertia=(moment,) * 3,
            xform=pose,
            label=context.label("body", f"{context.labels[b]}_link{k}"),
            linear_velocity=vector(velocity),
            angular_velocity=vector(spin),
        )
        context.report.added_mass += mass
        _add_group(context, group, parent, link, start)
        parent, start = link, Transform()
    if groups:
        effect = f"links of {LIGHT_FRACTION:g} of its mass between them"
        context.report_loss("info", "BODY", b, "joints that no single joint of gpusim has", effect)
    _add_group(context, last, parent, child, start)


def _joint_displacement(context: Context, j: int) -> Transform:
    """Return the displacement of the child due to joint ``j``, from qpos0 to the starting posture."""
    m, q = context.m, context.now.qpos[context.m.jnt_qposadr[j] :]
    anchor = shift(m.jnt_pos[j])
    if m.jnt_type[j] == BALL:
        return anchor * frame((0.0, 0.0, 0.0), q[:4]) * anchor.inverse()
    amount = float(q[0] - m.qpos0[m.jnt_qposadr[j]])
    if m.jnt_type[j] == HINGE:
        return anchor * rotation_about(m.jnt_axis[j], amount) * anchor.inverse()
    return shift(amount * m.jnt_axis[j])


def _link_velocity(context: Context, b: int, joints: list[int], pose: Transform) -> tuple[Array, Array]:
    """Return the linear and angular velocity of a light body at ``pose`` that moves with the joints ``joints``."""
    m, now, parent = context.m, context.now, int(context.m.body_parentid[b])
    spatial = np.zeros(6)
    context.mj.mj_objectVelocity(m, now, context.mj.mjtObj.mjOBJ_XBODY, parent, spatial, 0)
    point, spin = np.asarray(pose.position), spatial[:3].copy()
    velocity = spatial[3:] + np.cross(spin, point - now.xpos[parent])
    for j in joints:
        rate = now.qvel[m.jnt_dofadr[j] :]
        if m.jnt_type[j] == SLIDE:
            velocity = velocity + now.xaxis[j] * rate[0]
            continue
        joint_spin = now.xaxis[j] * rate[0] if m.jnt_type[j] == HINGE else pose.rotate(rate[:3])
        spin = spin + joint_spin
        velocity = velocity + np.cross(joint_spin, point - now.xanchor[j])
    return velocity, spin


def _describe(context: Context) -> None:
    """Write information about every joint into the report."""
    m, builder, report = context.m, context.builder, context.report
    kinds = {FREE: "floating", BALL: "ball", SLIDE: "prismatic", HINGE: "revolute"}
    inertia = _mass_matrix_diagonal(context)
    for j, at in context.coordinates.items():
        b = int(m.jnt_bodyid[j])
        lower, upper = limits_of(context, j)
        kind = kinds[int(m.jnt_type[j])]
        if kind == "revolute" and math.isinf(lower):
            kind = "continuous"
        dof = int(m.jnt_dofadr[j])
        limit = (
            m.jnt_actfrcrange[j] if context.field("jnt_actfrclimited", np.zeros(m.njnt))[j] else (-math.inf, math.inf)
        )
        parent = context.placements[int(m.body_parentid[b])][0]
        single = kind in ("revolute", "continuous", "prismatic")
        name = context.joint_labels[j]
        limits = JointLimits(effort=float(np.abs(limit).max()))
        report.joints[name] = JointInfo(
            label=at.label,
            index=at.index,
            kind=kind,
            parent=builder.body_label(parent),
            child=context.labels[b],
            lower=lower,
            upper=upper,
            limits=limits,
            damping=damping_of(context, dof),
            friction=friction_of(context, dof),
            initial_position=float(context.now.qpos[m.jnt_qposadr[j]]) if single else 0.0,
            load_inertia=float(inertia[dof] - m.dof_armature[dof]) if single else 0.0,
            axis=at.axis,
        )
        if single:
            report.joint_limits[name] = limits


def _mass_matrix_diagonal(context: Context) -> Any:
    """Return the diagonal of the mass matrix at the starting posture."""
    m, now = context.m, context.now
    context.mj.mj_fwdPosition(m, now)
    unit, diagonal = np.zeros(m.nv), np.zeros(m.nv)
    for dof in range(m.nv):
        unit[:] = 0.0
        unit[dof] = 1.0
        product = np.zeros(m.nv)
        context.mj.mj_mulM(m, now, product, unit)
        diagonal[dof] = product[dof]
    return diagonal
