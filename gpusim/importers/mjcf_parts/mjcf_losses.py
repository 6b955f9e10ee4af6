"""Findings of the MJCF importer for elements that the model cannot represent, such as flexes, plugins and skins."""

from __future__ import annotations

import numpy as np

from gpusim.importers.mjcf_parts.mjcf_context import FREE, Context
from gpusim.importers.mjcf_parts.mjcf_shapes import is_soft


def report_losses(context: Context) -> None:
    """Add findings for all elements of the MuJoCo model that the importer does not convert."""
    _options(context)
    _joints(context)
    _tendons(context)
    _pairs(context)
    _sensors(context)
    if context.options.actuators:
        _effort_ranges(context)
    m = context.m
    for number, kind, severity, fix in (
        (int(context.field("nflex", 0)), "FLEX", "motion", "use bodies with joints and springs"),
        (m.nplugin, "PLUGIN", "motion", "use springs of joints, or forces in your own loop"),
        (m.nskin, "SKIN", "look", ""),
    ):
        for k in range(number):
            context.report_loss(severity, kind, k, f"a {kind.lower()}", "left out", fix)


def _options(context: Context) -> None:
    m, losses = context.m, context.losses
    if hasattr(context.mj.mjtEnableBit, "mjENBL_OVERRIDE") and m.opt.enableflags & 1:
        losses.add("contact", "option", "", "override of contact parameters", "left out")


def _joints(context: Context) -> None:
    """Report joints with soft limits, limit margins or soft dry friction."""
    m = context.m
    for j in range(m.njnt):
        dof = int(m.jnt_dofadr[j])
        if m.dof_frictionloss[dof] and is_soft(m.dof_solref[dof], m.dof_solimp[dof]):
            context.report_loss(
                "contact", "JOINT", j, "custom solref or solimp of the friction", "dry friction is rigid"
            )
        if not m.jnt_limited[j] or m.jnt_type[j] == FREE:
            continue
        if is_soft(m.jnt_solref[j], m.jnt_solimp[j]):
            context.report_loss("contact", "JOINT", j, "custom solref or solimp of the limits", "limits are rigid")
        if m.jnt_margin[j]:
            context.report_loss("contact", "JOINT", j, "a margin of the limits", "limits act without a margin")


def _tendons(context: Context) -> None:
    """Report tendons with soft limits, limit margins, soft dry friction, or armature across branches of the tree."""
    m, armature = context.m, context.field("tendon_armature", np.zeros(context.m.ntendon))
    for t in context.tendons:
        if armature[t] and _spans_branches(context, t):
            effect = "it also couples the branches, unlike in MuJoCo"
            fix = "give the joints an armature"
            context.report_loss("motion", "TENDON", t, "armature over several branches of the tree", effect, fix)
        if m.tendon_frictionloss[t] and is_soft(m.tendon_solref_fri[t], m.tendon_solimp_fri[t]):
            context.report_loss(
                "contact", "TENDON", t, "custom solref or solimp of the friction", "dry friction is rigid"
            )
        if not m.tendon_limited[t]:
            continue
        if is_soft(m.tendon_solref_lim[t], m.tendon_solimp_lim[t]):
            context.report_loss("contact", "TENDON", t, "custom solref or solimp of the limits", "limits are rigid")
        if m.tendon_margin[t]:
            context.report_loss("contact", "TENDON", t, "a margin of the limits", "limits act without a margin")


def _pairs(context: Context) -> None:
    """Report properties of <pair> that the model cannot represent."""
    m, adhesion = context.m, context.field("pair_adhesion", np.zeros(context.m.npair))
    for p in range(m.npair):
        name = "/".join(context.name("GEOM", int(g)) for g in (m.pair_geom1[p], m.pair_geom2[p]))
        facts = (
            (is_soft(m.pair_solref[p], m.pair_solimp[p]), "custom solref or solimp", "contacts are rigid"),
            (m.pair_margin[p] or m.pair_gap[p], "a margin or gap of contacts", "contacts act where the geoms touch"),
            (np.any(adhesion[p]), "adhesion", "left out"),
        )
        for applies, what, effect in facts:
            if applies:
                context.losses.add("contact", "pair", name, what, effect)


def _sensors(context: Context) -> None:
    """Report delays of sensors."""
    delay = context.field("sensor_delay", np.zeros(context.m.nsensor))
    interval = np.reshape(context.field("sensor_interval", np.zeros((context.m.nsensor, 2))), (-1, 2))
    for s in range(context.m.nsensor):
        if context.name("SENSOR", s) in context.report.sensors and (delay[s] or interval[s, 0]):
            fix = "use gpusim.sensors.add_imu or add_encoder"
            context.report_loss("info", "SENSOR", s, "a delay or an interval", "read returns the present value", fix)


def _effort_ranges(context: Context) -> None:
    """Report joints and tendons that limit the sum of actuator forces. The model limits each actuator separately."""
    m, driven = context.m, [driven_joints(context, a) for a in range(context.actuators)]
    if context.is_disabled("ACTUATION") or not driven:
        for j in range(m.njnt):
            if has_gravity_compensation(context, j):
                what = "actuatorgravcomp, but no actuator acts"
                context.report_loss(
                    "motion", "JOINT", j, what, "gravity is compensated, unlike in MuJoCo", "remove gravcomp"
                )
        return
    effect, fix = "it limits each of its actuators, not their sum", "keep one actuator, or give each a forcerange"
    for j in np.flatnonzero(context.field("jnt_actfrclimited", np.zeros(m.njnt))).tolist():
        drivers = [a for a, (joints, _) in enumerate(driven) if j in joints]
        if len(drivers) > 1:
            context.report_loss("motion", "JOINT", j, "actuatorfrcrange with several actuators", effect, fix)
        elif drivers and m.actuator_trntype[drivers[0]] > 1:
            what = "actuatorfrcrange with an actuator on a tendon or site"
            context.report_loss("motion", "JOINT", j, what, "no limit", "give the actuator a forcerange")
        if has_gravity_compensation(context, j):
            what = "actuatorfrcrange with actuatorgravcomp"
            effect = "it does not limit the compensation of gravity"
            context.report_loss("motion", "JOINT", j, what, effect, "leave out actuatorgravcomp")
    for t in np.flatnonzero(context.field("tendon_actfrclimited", np.zeros(m.ntendon))).tolist():
        if sum(tendon == t for _, tendon in driven) > 1:
            context.report_loss("motion", "TENDON", t, "actuatorfrcrange with several actuators", effect, fix)


def has_gravity_compensation(context: Context, j: int) -> bool:
    """Return whether a joint's actuator force includes gravity compensation (``actuatorgravcomp``)."""
    bodies = context.subtree(int(context.m.jnt_bodyid[j]))
    enabled = context.field("jnt_actgravcomp", np.zeros(context.m.njnt))[j]
    return bool(enabled and np.any(context.gravcomp()[bodies]))


def driven_joints(context: Context, a: int) -> tuple[set[int], int]:
    """Return the joints that an actuator drives, and the index of the actuator's tendon (-1 without a tendon)."""
    m, kinds, target = context.m, context.mj.mjtTrn, int(context.m.actuator_trnid[a][0])
    kind = kinds(int(m.actuator_trntype[a]))
    if kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
        return {target}, -1
    if kind == kinds.mjTRN_SITE:
        return _ancestor_joints(context, int(m.site_bodyid[target])), -1
    return (_tendon_joints(context, target), target) if kind == kinds.mjTRN_TENDON else (set(), -1)


def _spans_branches(context: Context, t: int) -> bool:
    """Return whether a tendon depends on joints in several branches of the kinematic tree."""
    joints = _tendon_joints(context, t)
    return bool(joints - _ancestor_joints(context, max((int(context.m.jnt_bodyid[j]) for j in joints), default=0)))


def _tendon_joints(context: Context, t: int) -> set[int]:
    """Return the joints that can change a tendon's length. These include all ancestor joints of its sites and geoms."""
    m, wraps, joints = context.m, context.mj.mjtWrap, set[int]()
    for i in range(m.tendon_adr[t], m.tendon_adr[t] + m.tendon_num[t]):
        element, wrap = int(m.wrap_objid[i]), wraps(int(m.wrap_type[i]))
        if wrap == wraps.mjWRAP_JOINT:
            joints.add(element)
        elif wrap == wraps.mjWRAP_SITE:
            joints |= _ancestor_joints(context, int(m.site_bodyid[element]))
        elif wrap != wraps.mjWRAP_PULLEY:
            joints |= _ancestor_joints(context, int(m.geom_bodyid[element]))
    return joints


def _ancestor_joints(context: Context, b: int) -> set[int]:
    """Return the joints between a body and the world."""
    m = context.m
    joints: set[int] = set()
    while b > 0:
        joints.update(range(m.body_jntadr[b], m.body_jntadr[b] + m.body_jntnum[b]))
        b = int(m.body_parentid[b])
    return joints
