"""Springs of joints, tendons and gravity compensation of the MJCF importer.

A fixed tendon is a weighted sum of joint coordinates. A spatial tendon is a weighted sum of distances between its
sites. A pulley divides the weights behind it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.importers.mjcf_bodies import gravity_share
from gpusim.importers.mjcf_context import BALL, FREE, Context, shift, vector
from gpusim.transform import Transform

_JOINT, _PULLEY, _SITE = 1, 2, 3
"""Values of mjtWrap."""
_DROPPED = "left out"


def add_springs(context: Context) -> None:
    """Add the springs of hinges and slides."""
    m = context.m
    if context.off("SPRING"):
        return
    for j, at in context.coordinates.items():
        if m.jnt_type[j] in (FREE, BALL):
            continue
        if np.any(context.field("jnt_stiffnesspoly", np.zeros(m.njnt))[j]):
            context.lost("motion", "JOINT", j, "stiffness that grows with the angle", "its constant part only")
        if np.any(context.field("jnt_springyield", np.zeros(m.njnt))[j]):
            context.lost("motion", "JOINT", j, "spring that yields", "it does not yield")
        if m.jnt_stiffness[j]:
            rest = float(m.qpos_spring[m.jnt_qposadr[j]])
            label = context.label("actuator", f"{context.joint_labels[j]}_spring")
            context.builder.add_torsion_spring(
                at.index, float(m.jnt_stiffness[j]), rest_angle=rest, axis=at.axis, label=label
            )
    poly = context.field("dof_dampingpoly", np.zeros(m.nv))
    for j in context.coordinates:
        if not context.off("DAMPER") and np.any(poly[m.jnt_dofadr[j]]):
            context.lost("motion", "JOINT", j, "damping that grows with the speed", "its constant part only")


def add_gravity_compensation(context: Context) -> None:
    """Add an upward force for every part with ``gravcomp``, in bodies whose parts differ in it."""
    m, gravity = context.m, context.builder.gravity
    for body, own in context.members.items():
        if context.builder.bodies[body].kinematic or gravity_share(context, own[0]) is not None:
            continue
        for b in own:
            force = -float(m.body_gravcomp[b] * m.body_mass[b]) * gravity
            if np.any(force):
                point = vector(context.homes[b][1].apply(m.body_ipos[b]))
                label = context.label("actuator", f"{context.name('BODY', b)}_gravcomp")
                context.builder.add_force(body, vector(force), point, label=label)
                effect = "a force, which is also a command of the model"
                context.lost("info", "BODY", b, "gravity compensation of a part of a body", effect)


def add_tendons(context: Context) -> None:
    """Add the tendons."""
    for t in range(context.m.ntendon):
        rows = list(range(context.m.tendon_adr[t], context.m.tendon_adr[t] + context.m.tendon_num[t]))
        fixed = all(context.m.wrap_type[i] == _JOINT for i in rows)
        if not fixed and not _acts(context, t):
            context.lost("look", "TENDON", t, "a spatial tendon without effect on the motion", _DROPPED)
            continue
        terms = _fixed_terms(context, rows) if fixed else _spatial_terms(context, t, rows)
        if terms is not None:
            _add_tendon(context, t, terms)


def _acts(context: Context, t: int) -> bool:
    """Return True if a tendon has a force, a limit, an actuator or an equality."""
    m, mj = context.m, context.mj
    driven = any(
        m.actuator_trntype[a] == mj.mjtTrn.mjTRN_TENDON and m.actuator_trnid[a][0] == t
        for a in range(context.actuators)
    )
    held = any(m.eq_type[e] == mj.mjtEq.mjEQ_TENDON and t in (m.eq_obj1id[e], m.eq_obj2id[e]) for e in range(m.neq))
    numbers = ("stiffness", "damping", "frictionloss", "armature", "limited")
    return driven or held or any(np.any(context.field(f"tendon_{n}", np.zeros(m.ntendon))[t]) for n in numbers)


def _fixed_terms(context: Context, rows: list[int]) -> list[tuple[int, int, float]] | None:
    """Return terms (joint, coordinate, factor). MuJoCo only allows hinges and slides."""
    m = context.m
    found: dict[tuple[int, int], float] = {}
    for i in rows:
        at = context.coordinates[int(m.wrap_objid[i])]
        found[at.index, at.axis] = found.get((at.index, at.axis), 0.0) + float(m.wrap_prm[i])
    return [(*key, factor) for key, factor in found.items() if factor] or None


def _spatial_terms(context: Context, t: int, rows: list[int]) -> list[tuple[int, int, float]] | None:
    """Add a distance joint between each two sites. Return the terms, or None for a tendon that wraps around a geom."""
    m, builder = context.m, context.builder
    if any(m.wrap_type[i] not in (_SITE, _PULLEY) for i in rows):
        effect = "left out with all that acts on it"
        context.lost("motion", "TENDON", t, "it wraps around a geom", effect, "use sites instead of the geom")
        return None
    divisor, constant = 1.0, 0.0
    last: tuple[int, Transform] | None = None
    terms: list[tuple[int, int, float]] = []
    for i in rows:
        if m.wrap_type[i] == _PULLEY:
            divisor, last = float(m.wrap_prm[i]), None
            continue
        (body, place), before = context.site(int(m.wrap_objid[i])), last
        last = (body, place)
        if before is None:
            continue
        if before[0] == body or _still(context, body) and _still(context, before[0]):
            constant += _distance(context, before, last) / divisor
            if before[0] != body:
                context.lost("motion", "TENDON", t, "a part between mocap bodies", "its length does not change")
            continue
        ends = (before, last) if body != WORLD else (last, before)
        label = context.label("joint", f"{context.name('TENDON', t)}_part{len(terms)}")
        a, b = (shift(end[1].position) for end in ends)
        terms.append((builder.add_joint_distance(ends[0][0], ends[1][0], a, b, label=label), 0, 1.0 / divisor))
    context.offsets[t] = constant
    return terms or None


def _still(context: Context, body: int) -> bool:
    """Return True for a body that forces do not move."""
    return body == WORLD or bool(context.builder.bodies[body].kinematic)


def _distance(context: Context, *ends: tuple[int, Transform]) -> float:
    """Return the distance of two points in the starting posture, m."""
    bodies = context.builder.bodies
    a, b = (place.position if body == WORLD else bodies[body].xform.apply(place.position) for body, place in ends)
    return float(np.linalg.norm(b - a))


def _add_tendon(context: Context, t: int, terms: list[tuple[int, int, float]]) -> None:
    m, builder = context.m, context.builder
    offset = context.offsets.get(t, 0.0)
    active = m.tendon_limited[t] and not context.off("LIMIT", "CONSTRAINT")
    lower, upper = (x - offset for x in context.limited(active, m.tendon_range[t]))
    friction = 0.0 if context.off("FRICTIONLOSS", "CONSTRAINT") else float(m.tendon_frictionloss[t])
    label = context.label("joint", context.name("TENDON", t))
    if active and m.tendon_range[t][0] <= 0.0 and t in context.offsets:
        lower = -math.inf
    context.tendons[t] = builder.add_tendon(
        terms,
        limit_lower=lower,
        limit_upper=upper,
        damping=0.0 if context.off("DAMPER") else float(m.tendon_damping[t]),
        friction=friction,
        armature=float(context.field("tendon_armature", np.zeros(m.ntendon))[t]),
        label=label,
    )
    for name in ("stiffnesspoly", "dampingpoly", "springyield"):
        if np.any(context.field(f"tendon_{name}", np.zeros(m.ntendon))[t]):
            context.lost("motion", "TENDON", t, f"{name} that is not linear", "its constant part only")
    stiffness = float(m.tendon_stiffness[t])
    if stiffness and not context.off("SPRING"):
        _add_spring(context, t, stiffness, f"{label}_spring", offset)


def _add_spring(context: Context, t: int, stiffness: float, name: str, offset: float) -> None:
    """Add the spring of a tendon. Within ``springlength`` it has no force."""
    lower, upper = (float(x) - offset for x in np.ravel(context.m.tendon_lengthspring[t]))
    index, label = context.tendons[t], context.label("actuator", name)
    spring: dict[str, Any] = {"stiffness": stiffness, "rest_angle": lower}
    if lower < upper:
        reach = max(1.0, upper - lower)
        spring = {
            "table": [
                (lower - reach, stiffness * reach),
                (lower, 0.0),
                (upper, 0.0),
                (upper + reach, -stiffness * reach),
            ]
        }
    context.builder.add_torsion_spring(index, label=label, **spring)
