"""Equality constraints of the MJCF importer: connect, weld, joint and tendon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from gpusim.description.specs import WORLD
from gpusim.errors import ModelError
from gpusim.importers.mjcf_parts.mjcf_context import SLIDE, Context, frame, shift, vector
from gpusim.importers.mjcf_parts.mjcf_shapes import is_soft
from gpusim.transform import Transform
from gpusim.typing import Array
from gpusim.validate import matching

End = tuple[int, Transform]

SOFT_TIME_CONSTANT = 0.05
"""Time constant (s) above which the importer reports a constraint as soft."""


def add_equalities(context: Context) -> None:
    """Add equality constraints. Switchable or initially inactive connect and weld constraints become latches."""
    m, mj = context.m, context.mj
    if context.is_disabled("EQUALITY", "CONSTRAINT"):
        return
    kinds: dict[int, Callable[[Context, int], None]] = {
        int(mj.mjtEq.mjEQ_CONNECT): _add_ends,
        int(mj.mjtEq.mjEQ_WELD): _add_ends,
        int(mj.mjtEq.mjEQ_JOINT): _add_joint,
        int(mj.mjtEq.mjEQ_TENDON): _add_tendon,
    }
    active = context.field("eq_active0", np.ones(m.neq))
    ends = [e for e in range(m.neq) if kinds.get(int(m.eq_type[e])) is _add_ends]
    named = {context.name("EQUALITY", e): e for e in ends}
    patterns = context.options.switchable
    switchable = [named[name] for name in matching("constraint", patterns, named)] if patterns else []
    for e in range(m.neq):
        kind = int(m.eq_type[e])
        name = mj.mjtEq(kind).name.removeprefix("mjEQ_").lower()
        if e in ends and not _can_move(context, e):
            context.report_loss(
                "info", "EQUALITY", e, "it connects parts that cannot move relative to each other", "left out"
            )
        elif e in ends and (not active[e] or e in switchable):
            _add_latch(context, e, bool(active[e]))
        elif not active[e]:
            fix = "add the joint to the builder if you need it"
            context.report_loss("info", "EQUALITY", e, f"a {name} constraint that is not active", "left out", fix)
        elif kind not in kinds:
            context.report_loss("motion", "EQUALITY", e, f"a {name} constraint", "left out", "use a connect or a weld")
        else:
            kinds[kind](context, e)


def _ends(context: Context, e: int) -> tuple[End, End]:
    """Return a pair (body index, joint frame) for each of the two bodies of a connect or weld constraint.

    If one body is the world, the pair of the world comes first.
    """
    (a, frame_a), (b, frame_b) = _ends_of_file(context, e)
    return ((b, frame_b), (a, frame_a)) if b == WORLD else ((a, frame_a), (b, frame_b))


def _ends_of_file(context: Context, e: int) -> tuple[End, End]:
    m, mj, data = context.m, context.mj, context.m.eq_data[e]
    one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    kinds = context.field("eq_objtype", None)
    if kinds is not None and kinds[e] == mj.mjtObj.mjOBJ_SITE:
        return context.site(one), context.site(two)
    (a, pose_a), (b, pose_b) = context.placements[one], context.placements[two]
    if m.eq_type[e] == mj.mjtEq.mjEQ_CONNECT:
        return (a, pose_a * shift(data[:3])), (b, pose_b * shift(data[3:6]))
    return (a, pose_a * frame(data[3:6], data[6:10])), (b, pose_b * shift(data[:3]))


def _can_move(context: Context, e: int) -> bool:
    """Return True if a connect or weld constraint has two different bodies, with at least one dynamic body."""
    (a, _), (b, _) = _ends(context, e)
    return a != b and any(body != WORLD and not context.builder.bodies[body].kinematic for body in (a, b))


def _locks_rotation(context: Context, e: int) -> bool:
    """Return True if the constraint is a weld that constrains the rotation (``torquescale`` is not 0)."""
    m = context.m
    return bool(m.eq_type[e] == context.mj.mjtEq.mjEQ_WELD and m.eq_data[e][10] != 0.0)


def _add_ends(context: Context, e: int) -> None:
    builder = context.builder
    (a, frame_a), (b, frame_b) = _ends(context, e)
    label = context.label("joint", context.name("EQUALITY", e))
    weld = _locks_rotation(context, e)
    if any(builder.bodies[body].kinematic for body in (a, b) if body != WORLD):
        _add_soft(context, e, a, b, frame_a, frame_b, weld, label)
        return
    _check_softness(context, e)
    add = builder.add_joint_fixed if weld else builder.add_joint_ball
    add(a, b, frame_a, frame_b, label=label)


def _add_latch(context: Context, e: int, active: bool) -> None:
    """Add a latch for a connect or weld constraint that is switchable or initially inactive."""
    (a, frame_a), (b, frame_b) = _ends(context, e)
    label = context.label("joint", context.name("EQUALITY", e))
    weld = _locks_rotation(context, e)
    context.builder.add_latch(a, b, frame_a, frame_b, attached=active, rotation=weld, label=label)
    if not active:
        effect, fix = "an open latch", f'close it by sim.write("joint.{label}.attached", 1.0)'
        context.report_loss("info", "EQUALITY", e, f"a {'weld' if weld else 'connect'} that is not active", effect, fix)


def _add_soft(context: Context, e: int, a: int, b: int, frame_a: Any, frame_b: Any, weld: bool, label: str) -> None:
    """Add a bushing between a body and a mocap body, with the same static stiffness as the soft constraint."""
    stiffness, damping = [], []
    for inverse in _inverse_weights(context, e):
        k, c = _static_spring(context, e, inverse)
        stiffness += [k] * 3
        damping += [c] * 3
    if not weld:
        stiffness[3:], damping[3:] = [0.0] * 3, [0.0] * 3
    elif context.m.eq_data[e][10] >= 0.0:
        scale = float(context.m.eq_data[e][10])
        stiffness[3:], damping[3:] = [scale * x for x in stiffness[3:]], [scale * x for x in damping[3:]]
    context.builder.add_bushing(a, b, frame_a, frame_b, stiffness=stiffness, damping=damping, label=label)
    context.report_loss(
        "info", "EQUALITY", e, "a soft constraint to a mocap body", "a bushing with the same static stiffness"
    )


def _inverse_weights(context: Context, e: int) -> tuple[float, float]:
    """Return the sums of both bodies' invweight0 for translation (1/kg) and for rotation (1/(kg m2))."""
    m, total = context.m, np.zeros(2)
    kinds = context.field("eq_objtype", None)
    for o in (int(m.eq_obj1id[e]), int(m.eq_obj2id[e])):
        on_site = kinds is not None and kinds[e] == context.mj.mjtObj.mjOBJ_SITE
        total += m.body_invweight0[m.site_bodyid[o] if on_site else o]
    return max(float(total[0]), 1e-9), max(float(total[1]), 1e-9)


def _static_spring(context: Context, e: int, inverse: float) -> tuple[float, float]:
    """Return the stiffness and the damping of a spring that replaces a soft constraint.

    The spring has the constraint's stiffness at rest ("Solver parameters" in MuJoCo's documentation).
    """
    time, ratio = (float(x) for x in context.m.eq_solref[e][:2])
    dmax = min(float(context.m.eq_solimp[e][1]), 0.9999)
    k = -time if time < 0.0 else 1.0 / (dmax * max(time, 1e-3) * max(ratio, 1e-3)) ** 2
    stiffness = k * dmax**2 / ((1.0 - dmax) * inverse)
    return stiffness, 2.0 * math.sqrt(stiffness / inverse)


def _check_softness(context: Context, e: int) -> None:
    time, ratio = (float(x) for x in context.m.eq_solref[e][:2])
    if time < 0.0:  # negative values of solref are stiffness and damping for unit inertia
        time, ratio = 1.0 / math.sqrt(-time), 1.0
    if time > SOFT_TIME_CONSTANT:
        effect = f"rigid, but in MuJoCo it has a time constant of {time:g} s"
        context.report_loss("motion", "EQUALITY", e, "a soft constraint", effect, "add a spring or a bushing")
    elif is_soft((time, ratio), context.m.eq_solimp[e]):
        context.report_loss("contact", "EQUALITY", e, "custom solref or solimp", "rigid")


def _reference_position(context: Context, j: int) -> float:
    return float(context.m.qpos0[context.m.jnt_qposadr[j]])


def _add_joint(context: Context, e: int) -> None:
    """Add a joint equality: the displacement of joint 1 from qpos0 is a polynomial of the displacement of joint 2."""
    m, builder, data = context.m, context.builder, context.m.eq_data[e]
    one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if m.jnt_type[one] < SLIDE or (two >= 0 and m.jnt_type[two] < SLIDE):
        context.report_loss(
            "motion", "EQUALITY", e, "a joint constraint on a ball or free joint", "left out", "use a weld"
        )
        return
    _check_softness(context, e)
    at, label = context.coordinates[one], context.label("coupling", context.name("EQUALITY", e))
    offset, slope, curve = _reference_position(context, one) + float(data[0]), float(data[1]), [0.0, 0.0, 0.0]
    if two < 0 or not np.any(data[1:5]):
        builder.add_linear_coupling([(at.index, at.axis, 1.0)], offset=offset, label=label)
        return
    leader = context.coordinates[two]
    if np.any(data[2:5]):
        constant, slope, *curve = _polynomial(data, -_reference_position(context, two), 1.0)
        offset += constant - float(data[0])
    else:
        offset -= slope * _reference_position(context, two)
    builder.add_mimic(
        at.index, leader.index, multiplier=slope, offset=offset, axis=at.axis, leader_axis=leader.axis, label=label,
        curve=curve,
    )  # fmt: skip
    context.report.add_mimic((at.index, at.axis), (leader.index, leader.axis), slope, offset)


def _polynomial(data: Array, offset: float, factor: float) -> tuple[float, ...]:
    """Return the coefficients of p(offset + factor x) as a polynomial in x. p has the coefficients ``data[:5]``."""
    coefficients = Polynomial(data[:5])(Polynomial([offset, factor])).coef
    return vector([*coefficients, *np.zeros(5 - len(coefficients))])


def _add_tendon(context: Context, e: int) -> None:
    """Add a tendon equality: the elongation of tendon 1 from qpos0 is a polynomial of the elongation of tendon 2."""
    m = context.m
    one, two = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if one not in context.tendons or (two >= 0 and two not in context.tendons):
        fix = "give the tendon joints or sites that move"
        context.report_loss("motion", "EQUALITY", e, "a constraint of a tendon that is left out", "left out", fix)
        return
    _check_softness(context, e)
    try:
        _couple_tendons(context, e, one, two)
    except ModelError as error:
        context.report_loss("motion", "EQUALITY", e, f"a constraint of tendons: {error}", "left out", "couple joints")


def _couple_tendons(context: Context, e: int, one: int, two: int) -> None:
    builder, data = context.builder, context.m.eq_data[e]
    label = context.label("coupling", context.name("EQUALITY", e))
    length, leader_length = (context.m.tendon_length0[t] - context.offsets.get(t, 0.0) for t in (one, two))
    parts = builder.joints[context.tendons[two]].params["terms"] if two >= 0 else []
    if len(parts) == 1 and np.any(data[2:5]):
        joint, axis, factor = parts[0]
        constant, slope, *curve = _polynomial(data, -leader_length, factor)
        builder.add_mimic(context.tendons[one], joint, slope, length + constant, 0, axis, label, curve)
        return
    if parts and np.any(data[2:5]):
        what, fix = "a polynomial of a tendon with several parts", "lead with a tendon of one part"
        context.report_loss("motion", "EQUALITY", e, what, "its linear part only", fix)
    terms, offset = [(context.tendons[one], 1.0)], float(length + data[0])
    if parts and data[1]:
        terms.append((context.tendons[two], -float(data[1])))
        offset -= float(data[1] * leader_length)
    builder.add_linear_coupling(terms, offset=offset, label=label)
