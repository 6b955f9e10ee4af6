"""Joint springs, tendons and gravity compensation of the MJCF importer.

A fixed tendon is a weighted sum of joint coordinates. A spatial tendon becomes a weighted sum of segment lengths. A
segment is straight between two sites, or wraps around a geom.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.description.wraps import CYLINDER, SPHERE, Wrap, WrappedPath
from gpusim.importers.mjcf_parts.mjcf_bodies import gravity_scale_of
from gpusim.importers.mjcf_parts.mjcf_context import BALL, FREE, Context, frame, shift, vector
from gpusim.reference.joints.wrapping import start_length
from gpusim.transform import Transform

_JOINT, _PULLEY, _SITE, _SPHERE = 1, 2, 3, 4
"""Values of mjtWrap."""
_BodyPoint = tuple[int, Transform]
_DROPPED = "left out"
_LINEAR = "use a linear one"
_RGBA, _WIDTH = (0.5, 0.5, 0.5, 1.0), 0.003


def add_springs(context: Context) -> None:
    """Add the springs of hinges and slides. Report nonlinear springs and dampers of all joints."""
    m = context.m
    poly = context.field("dof_dampingpoly", np.zeros(m.nv))
    for j, coordinate in context.coordinates.items():
        if not context.is_disabled("DAMPER") and np.any(poly[m.jnt_dofadr[j]]):
            context.report_loss(
                "motion", "JOINT", j, "damping that grows with the speed", "its constant part only", _LINEAR
            )
        if context.is_disabled("SPRING"):
            continue
        if np.any(context.field("jnt_stiffnesspoly", np.zeros(m.njnt))[j]):
            context.report_loss(
                "motion", "JOINT", j, "stiffness that grows with the angle", "its constant part only", _LINEAR
            )
        if np.any(context.field("jnt_springyield", np.zeros(m.njnt))[j]):
            context.report_loss("motion", "JOINT", j, "spring that yields", "it does not yield", _LINEAR)
        if m.jnt_stiffness[j] and m.jnt_type[j] not in (FREE, BALL):
            springref = float(m.qpos_spring[m.jnt_qposadr[j]])
            label = context.label("actuator", f"{context.joint_labels[j]}_spring")
            context.builder.add_torsion_spring(
                coordinate.index, float(m.jnt_stiffness[j]), rest_angle=springref, axis=coordinate.axis, label=label
            )


def add_gravity_compensation(context: Context) -> None:
    """Add gravity compensation to merged bodies whose MuJoCo bodies have different values of ``gravcomp``."""
    m, gravity, gravcomp = context.m, context.builder.gravity, context.gravcomp()
    for body, members in context.members.items():
        if context.builder.bodies[body].kinematic or gravity_scale_of(context, members[0]) is not None:
            continue
        for b in members:
            force = -float(gravcomp[b] * m.body_mass[b]) * gravity
            if np.any(force):
                point = vector(context.placements[b][1].apply(m.body_ipos[b]))
                label = context.label("actuator", f"{context.name('BODY', b)}_gravcomp")
                context.builder.add_force(body, vector(force), point, label=label)
                effect = "a force, which is also a command of the model"
                context.report_loss("info", "BODY", b, "gravity compensation of a part of a body", effect)


def add_tendons(context: Context) -> None:
    """Add the tendons."""
    for t in range(context.m.ntendon):
        rows = list(range(context.m.tendon_adr[t], context.m.tendon_adr[t] + context.m.tendon_num[t]))
        fixed = all(context.m.wrap_type[i] == _JOINT for i in rows)
        if not fixed and not _affects_motion(context, t):
            context.report_loss("look", "TENDON", t, "a spatial tendon without effect on the motion", _DROPPED)
            continue
        if not fixed:
            _report_look(context, t)
        terms = _fixed_terms(context, rows) if fixed else _spatial_terms(context, t, rows)
        if terms is not None:
            _add_tendon(context, t, terms)


def _report_look(context: Context, t: int) -> None:
    m = context.m
    painted = m.tendon_matid[t] >= 0 or not np.allclose(m.tendon_rgba[t], _RGBA)
    if painted or not np.isclose(m.tendon_width[t], _WIDTH):
        context.report_loss("look", "TENDON", t, "a color or a width", "drawn as a thin dark rope")


def _affects_motion(context: Context, t: int) -> bool:
    """Return True if a tendon affects the motion by a force, a limit, an actuator or an equality constraint."""
    m, mj = context.m, context.mj
    driven = any(
        m.actuator_trntype[a] == mj.mjtTrn.mjTRN_TENDON and m.actuator_trnid[a][0] == t
        for a in range(context.actuators)
    )
    constrained = any(
        m.eq_type[e] == mj.mjtEq.mjEQ_TENDON and t in (m.eq_obj1id[e], m.eq_obj2id[e]) for e in range(m.neq)
    )
    numbers = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss", "armature", "limited")
    return driven or constrained or any(np.any(context.field(f"tendon_{n}", np.zeros(m.ntendon))[t]) for n in numbers)


def _fixed_terms(context: Context, rows: list[int]) -> list[tuple[int, int, float]] | None:
    """Return the terms (joint index, coordinate index, factor) of a fixed tendon, or None if all factors are zero."""
    m = context.m
    factors: dict[tuple[int, int], float] = {}
    for i in rows:
        coordinate = context.coordinates[int(m.wrap_objid[i])]
        factors[coordinate.index, coordinate.axis] = factors.get((coordinate.index, coordinate.axis), 0.0) + float(
            m.wrap_prm[i]
        )
    return [(*key, factor) for key, factor in factors.items() if factor] or None


def _spatial_terms(context: Context, t: int, rows: list[int]) -> list[tuple[int, int, float]] | None:
    """Add a distance joint or rope for each segment of a spatial tendon. Return the terms of the tendon length."""
    m = context.m
    divisor, constant = 1.0, 0.0
    last: tuple[int, Transform] | None = None
    wrap: Wrap | None = None
    terms: list[tuple[int, int, float]] = []
    for i in rows:
        if m.wrap_type[i] == _PULLEY:
            divisor, last = float(m.wrap_prm[i]), None
            continue
        if m.wrap_type[i] != _SITE:
            wrap = _wrap(context, i)
            continue
        before, last = last, context.site(int(m.wrap_objid[i]))
        if before is None:
            continue
        joint, length = _add_part(context, t, before, wrap, last, f"{context.name('TENDON', t)}_part{len(terms)}")
        constant, wrap = constant + length / divisor, None
        if joint is not None:
            terms.append((joint, 0, 1.0 / divisor))
    context.offsets[t] = constant
    return terms or None


def _add_part(
    context: Context, t: int, before: _BodyPoint, wrap: Wrap | None, last: _BodyPoint, name: str
) -> tuple[int | None, float]:
    """Add a joint for a tendon segment.

    Return the joint's index and 0. For a segment of constant length, return None and the length (m).
    """
    builder, ends = context.builder, (before, last)
    bodies = {before[0], last[0]} if wrap is None else {before[0], wrap.body, last[0]}
    a, b = (vector(pose.position) for _, pose in ends)
    if len(bodies) == 1 or all(_is_static(context, body) for body in bodies):
        if len(bodies) > 1:
            effect, fix = "its length does not change", "use a body with joints"
            context.report_loss("motion", "TENDON", t, "a part between mocap bodies", effect, fix)
        if wrap is None:
            return None, _distance(context, *ends)
        path = WrappedPath(before[0], (a[0], a[1], a[2]), last[0], (b[0], b[1], b[2]), wrap)
        return None, start_length(path, builder.bodies)
    label = context.label("joint", name)
    if wrap is not None:
        return builder.add_joint_wrapped_rope(before[0], last[0], wrap, a, b, label=label), 0.0
    first, second = ends if last[0] != WORLD else ends[::-1]
    frames = shift(first[1].position), shift(second[1].position)
    return builder.add_joint_distance(first[0], second[0], *frames, label=label), 0.0


def _wrap(context: Context, i: int) -> Wrap:
    """Return the Wrap for a geom that a tendon wraps around."""
    m, geom, site = context.m, int(context.m.wrap_objid[i]), int(context.m.wrap_prm[i])
    body, body_pose = context.placements[int(m.geom_bodyid[geom])]
    pose = body_pose * frame(m.geom_pos[geom], m.geom_quat[geom])
    shape = SPHERE if m.wrap_type[i] == _SPHERE else CYLINDER
    wrap = Wrap(body, float(m.geom_size[geom][0]), pose, shape)
    if site < 0:
        return wrap
    side_body, side = context.site(site)
    x, y, z = vector(side.position)
    return replace(wrap, side=(x, y, z), side_body=None if side_body == body else side_body)


def _is_static(context: Context, body: int) -> bool:
    """Return True for the world and for kinematic bodies."""
    return body == WORLD or bool(context.builder.bodies[body].kinematic)


def _distance(context: Context, *ends: tuple[int, Transform]) -> float:
    """Return the distance between two points in the starting posture, m."""
    bodies = context.builder.bodies
    a, b = (pose.position if body == WORLD else bodies[body].xform.apply(pose.position) for body, pose in ends)
    return float(np.linalg.norm(b - a))


def _add_tendon(context: Context, t: int, terms: list[tuple[int, int, float]]) -> None:
    m, builder = context.m, context.builder
    offset = context.offsets.get(t, 0.0)
    active = m.tendon_limited[t] and not context.is_disabled("LIMIT", "CONSTRAINT")
    lower, upper = (x - offset for x in context.limited(active, m.tendon_range[t]))
    friction = 0.0 if context.is_disabled("FRICTIONLOSS", "CONSTRAINT") else float(m.tendon_frictionloss[t])
    label = context.label("joint", context.name("TENDON", t))
    if active and m.tendon_range[t][0] <= 0.0 and t in context.offsets:
        lower = -math.inf
    context.tendons[t] = builder.add_tendon(
        terms,
        limit_lower=lower,
        limit_upper=upper,
        damping=0.0 if context.is_disabled("DAMPER") else float(m.tendon_damping[t]),
        friction=friction,
        armature=float(context.field("tendon_armature", np.zeros(m.ntendon))[t]),
        label=label,
    )
    for name in ("stiffnesspoly", "dampingpoly", "springyield"):
        if np.any(context.field(f"tendon_{name}", np.zeros(m.ntendon))[t]):
            context.report_loss("motion", "TENDON", t, f"{name} that is not linear", "its constant part only", _LINEAR)
    stiffness = float(m.tendon_stiffness[t])
    if stiffness and not context.is_disabled("SPRING"):
        _add_spring(context, t, stiffness, f"{label}_spring", offset)


def _add_spring(context: Context, t: int, stiffness: float, name: str, offset: float) -> None:
    """Add the spring of a tendon."""
    lower, upper = (float(x) - offset for x in np.ravel(context.m.tendon_lengthspring[t]))
    index, label = context.tendons[t], context.label("actuator", name)
    spring: dict[str, Any] = {"stiffness": stiffness, "rest_angle": lower}
    if lower < upper:
        extent = max(1.0, upper - lower)
        spring = {
            "table": [
                (lower - extent, stiffness * extent),
                (lower, 0.0),
                (upper, 0.0),
                (upper + extent, -stiffness * extent),
            ]
        }
    context.builder.add_torsion_spring(index, label=label, **spring)
