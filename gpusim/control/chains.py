"""Chains of joints as parameters of the kinematics and dynamics blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.control.blocks.kinematics import KINDS
from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import WORLD, JointSpec
from gpusim.model.coordinates import axis_inertia
from gpusim.model.model import Model
from gpusim.transform import Transform
from gpusim.typing import Array


def chain(b: ModelBuilder, base: str, tip: str) -> dict[str, Any]:
    """Return the joints between a body and a site, as parameters of the blocks ``chain`` and ``ik``.

    For example: ``d.add("chain", "arm", **chain(b, "torso", "l_grip"))``. The block ``ik`` starts from the start pose
    of the model.

    Args:
        b: the builder.
        base: label of the reference body.
        tip: label of a site on the last body.

    Returns:
        Dict with ``joints`` and ``tip`` (7,). Each joint is a dict with ``pose`` (7,) in the frame of the previous
        joint, ``axis`` (3,), ``kind`` ("revolute" or "prismatic"), ``lower``, ``upper``, ``label`` and ``start``.
        ``start`` is the value of the joint coordinate in the start pose of the model.

    Raises:
        ModelError: the body or site is unknown, the chain has no revolute or prismatic joint, or the chain contains
            another type of joint. Fixed joints are allowed.
    """
    found, poses = _joint_path(b, base, tip)
    joints: list[dict[str, Any]] = []
    for joint, pose in zip((b.joints[k] for k in found), poses, strict=False):
        limits = (float(np.ravel(joint.params.get(k, s))[0]) for k, s in
                  (("limit_lower", -math.inf), ("limit_upper", math.inf)))  # fmt: skip
        lower, upper = (x if math.isfinite(x) else None for x in limits)
        axis = [float(x) for x in np.asarray(joint.params["columns"])[:, 2]]
        kind = KINDS[joint_type(joint.kind).coordinates[0]]
        start = _coordinate(b, joint, kind, axis)
        joints.append(
            {"axis": axis, "kind": kind, "lower": lower, "upper": upper, "label": joint.label, "start": start}
            | {"pose": _numbers(pose)}
        )
    return {"joints": joints, "tip": _numbers(poses[-1])}


def _coordinate(b: ModelBuilder, joint: JointSpec, kind: str, axis: list[float]) -> float:
    """Return the coordinate of a hinge (rad) or slide (m) in the start pose."""
    parent, child = (Transform() if k == WORLD else b.bodies[k].xform for k in (joint.parent, joint.child))
    moved = (parent * joint.parent_xform).inverse() * (child * joint.child_xform)
    if kind == "prismatic":
        return float(np.dot(axis, moved.position))
    x, y, z, w = moved.rotation
    return math.remainder(2.0 * math.atan2(np.dot(axis, (x, y, z)), w), 2.0 * math.pi)


def heavy_chain(b: ModelBuilder, base: str, tip: str) -> dict[str, Any]:
    """Return a chain with masses and inertias, as parameters of the block ``inverse_dynamics``.

    Each joint carries the mass of its child body and of all bodies welded to the child.

    Args:
        b: the builder, with all masses and actuators of the chain.
        base: label of the reference body. The base must not move.
        tip: label of a site on the last body.

    Returns:
        Dict with ``joints`` and ``tip`` as in :func:`chain`, and ``gravity`` in the initial base frame (3,), m/s2.
        Each joint also has ``mass`` (kg), center of mass ``com`` (3,), m, and ``inertia`` (6,), kg m2. The inertia is
        (xx, yy, zz, xy, xz, yz) about the center of mass. ``com`` and ``inertia`` are in the joint frame on the child.
        ``armature`` is the inertia of the joint and the motors along the joint coordinate (kg m2 or kg).

    Raises:
        ModelError: as in :func:`chain`. In addition: the model is incomplete, a body in the chain is kinematic, or a
            body of the model has a gravity scale other than 1.
    """
    found, _ = _joint_path(b, base, tip)
    made, model = chain(b, base, tip), b.finalize()
    axis_inertias = axis_inertia(model, model.parameters["armature"], [g.type.inertia(g) for g in model.groups])[0]
    for joint, entry in zip(found, made["joints"], strict=True):
        axes = [k for k, axis in enumerate(model.axes) if (axis.joint, axis.coordinate) == (joint, 0)]
        entry |= _carried_mass(model, model.joints[joint]) | {"armature": float(sum(axis_inertias[k] for k in axes))}
    for body in model.bodies:
        if body.gravity_scale != 1.0:
            rule = f"gravity_scale = {body.gravity_scale:g}, and a chain uses the full weight of its bodies"
            raise validate.fail(body.element, rule, "use gpusim.robotics.Tree instead")
    bodies = [body.label for body in model.bodies]
    in_base = model.bodies[bodies.index(base)].xform.matrix().T @ np.asarray(b.gravity, float)
    return made | {"gravity": [float(x) for x in in_base]}


def _joint_path(b: ModelBuilder, base: str, tip: str) -> tuple[list[int], list[Transform]]:
    """Return the movable joints, and the pose of each joint relative to the previous joint."""
    element = f"chain from '{base}' to '{tip}'"
    bodies = {body.label: k for k, body in enumerate(b.bodies)}
    sites = {site.label: site for site in b.sites}
    for name, known, what in ((base, bodies, "body"), (tip, sites, "site")):
        if name not in known:
            listed = ", ".join(list(known)[:20]) or "none"
            raise validate.fail(element, f"there is no {what} '{name}'", f"known: {listed}")
    joints: list[int] = []
    parents = {joint.child: k for k, joint in reversed(list(enumerate(b.joints))) if joint.child >= 0}
    next_frame, body = sites[tip].xform, sites[tip].body
    ends: list[Transform] = []
    while body != bodies[base]:
        if body not in parents or len(joints) > len(b.joints):
            raise validate.fail(element, f"no joints connect '{base}' with the tip", "name a body that carries the tip")
        joint = b.joints[parents[body]]
        pose = joint.child_xform.inverse() * next_frame
        number, body = parents[body], joint.parent
        coordinates = joint_type(joint.kind).kinds(joint)
        if not coordinates and joint_type(joint.kind).holds:
            next_frame = joint.parent_xform * pose
            continue
        if len(coordinates) != 1 or coordinates[0] not in KINDS or "columns" not in joint.params:
            rule = f"joint '{joint.label}' is {joint.kind}, neither a hinge nor a slide"
            raise validate.fail(element, rule, "choose ends with only hinges and slides between them")
        ends.append(pose)
        joints.append(number)
        next_frame = joint.parent_xform
    if not joints:
        raise validate.fail(element, "there is no movable joint between them", "name a body that carries the joints")
    return joints[::-1], [next_frame, *ends[::-1]]


def _carried_mass(model: Model, joint: JointSpec) -> dict[str, Any]:
    """Return the total mass, center of mass and inertia of a joint's child and of all bodies welded to the child."""
    parts = []
    for body, pose in _welded(model, joint):
        spec = model.bodies[body]
        if spec.kinematic:
            raise validate.fail(
                spec.element, f"is kinematic, and joint '{joint.label}' carries it", "add it without kinematic=True"
            )
        rotation = pose.matrix()
        parts.append((spec.mass, pose.apply(spec.com), rotation @ np.asarray(spec.inertia) @ rotation.T))
    mass = math.fsum(m for m, _, _ in parts)
    com: Array = np.sum([m * c for m, c, _ in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for m, c, about_com in parts:
        arm = c - com
        inertia += about_com + m * (float(arm @ arm) * np.eye(3) - np.outer(arm, arm))
    six = [inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return {"mass": float(mass), "com": [float(x) for x in com], "inertia": [float(x) for x in six]}


def _welded(model: Model, joint: JointSpec) -> Iterator[tuple[int, Transform]]:
    """Yield the child of a joint and all bodies welded to it, with their poses in the joint frame on the child."""
    waiting, seen = [(joint.child, joint.child_xform.inverse())], {joint.child, WORLD}
    welds = [other for other in model.joints if joint_type(other.kind).welds]
    while waiting:
        body, pose = waiting.pop()
        yield body, pose
        for weld in welds:
            ends = (weld.parent, weld.parent_xform), (weld.child, weld.child_xform)
            for (near, near_frame), (far, far_frame) in (ends, ends[::-1]):
                if near == body and far not in seen:
                    seen.add(far)
                    waiting.append((far, pose * near_frame * far_frame.inverse()))


def _numbers(pose: Transform) -> list[float]:
    return [*(float(x) for x in pose.position), *(float(x) for x in pose.rotation)]
