"""Bodies of the MJCF importer: masses, poses, velocities, and merging of bodies without joints into their parents."""

from __future__ import annotations

import fnmatch

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.importers.inertia import MassProperties, combine
from gpusim.importers.mjcf_parts.mjcf_context import FREE, Context, frame, vector
from gpusim.transform import Transform, homogeneous_matrix
from gpusim.typing import Array
from gpusim.validate import min_moment

KEPT_SHARE = 1e-6
"""Mass that a massless body without joints gets, as a fraction of the mean mass of all bodies with mass."""
MISSING_SHARE = 1e-4
"""Mass that a massless body with joints gets, as a fraction of the mean mass of all bodies with mass."""


def find_base(context: Context) -> int:
    """Return the base: the child of the world whose subtree has the most joints, or 0 without bodies."""
    m = context.m
    joints = np.array(m.body_jntnum, int)
    for b in range(m.nbody - 1, 0, -1):
        joints[m.body_parentid[b]] += joints[b]
    roots = [b for b in range(1, m.nbody) if m.body_parentid[b] == 0]
    return max(roots, key=lambda b: joints[b], default=0)


def free_joint(context: Context, b: int) -> int | None:
    """Return the free joint of a body, or None."""
    m = context.m
    first = int(m.body_jntadr[b])
    return first if m.body_jntnum[b] == 1 and m.jnt_type[first] == FREE else None


def add_bodies(context: Context) -> None:
    """Add all bodies. Bodies without joints are merged into their parents, unless the options keep them."""
    m, report = context.m, context.report
    base = find_base(context)
    for b in range(1, m.nbody):
        home, place = context.homes[int(m.body_parentid[b])]
        if _is_body(context, b, base, home):
            context.labels[b] = context.label("body", context.name("BODY", b))
            context.homes[b] = (len(context.members), Transform())
            context.members[len(context.members)] = [b]
        else:
            context.homes[b] = (home, place * frame(m.body_pos[b], m.body_quat[b]))
            if home != WORLD:
                context.members[home].append(b)
    _write_report(context, base)
    properties = {index: _properties(context, own) for index, own in context.members.items()}
    heavy = [p.mass for p in properties.values() if p.mass > 0.0]
    mean = float(np.mean(heavy)) if heavy else 1.0
    for index, own in context.members.items():
        _add_body(context, own[0], properties[index], mean)
    for b in context.labels:
        if m.body_jntnum[b] == 0 and m.body_mocapid[b] < 0 and not _floats(context, b, base):
            _fix(context, b, base)
        elif b == base and context.options.fixed_base and free_joint(context, b) is not None:
            _fix(context, b, base)
    report.total_mass = float(sum(x.mass for x in context.builder.bodies if not x.kinematic))


def _is_body(context: Context, b: int, base: int, home: int) -> bool:
    m, options = context.m, context.options
    if m.body_jntnum[b] or m.body_mocapid[b] >= 0 or not options.merge_fixed:
        return True
    if any(fnmatch.fnmatchcase(context.name("BODY", b), pattern) for pattern in options.keep):
        return True
    mounted = options.mount and home == WORLD and m.body_parentid[b] == 0 and m.body_subtreemass[b] > 0.0
    return mounted or _floats(context, b, base)


def _floats(context: Context, b: int, base: int) -> bool:
    """Return whether ``fixed_base=False`` frees a base that is fixed in the file."""
    m = context.m
    return context.options.fixed_base is False and b == base and m.body_jntnum[b] == 0 and m.body_mocapid[b] < 0


def _fix(context: Context, b: int, base: int) -> None:
    m, builder = context.m, context.builder
    parent, place = context.homes[int(m.body_parentid[b])]
    if free_joint(context, b) is not None:
        parent_frame = builder.bodies[context.homes[b][0]].xform  # fixes a free base in its starting pose
    else:
        parent_frame = place * frame(m.body_pos[b], m.body_quat[b])
    label = context.label("joint", f"{context.labels[b]}_fixed")
    builder.add_joint_fixed(parent, context.homes[b][0], parent_frame, label=label)
    if b == base:
        context.report.base_joint = label


def _write_report(context: Context, base: int) -> None:
    m, report = context.m, context.report
    report.base_link = context.name("BODY", base) if base else "world"
    free = bool(base) and (free_joint(context, base) is not None or _floats(context, base, base))
    report.fixed_base = not free or bool(context.options.fixed_base)
    for b in range(1, m.nbody):
        index, place = context.homes[b]
        name = context.labels.get(b) or context.label("body", context.name("BODY", b))
        report.link_frames[name] = homogeneous_matrix(place)
        if b not in context.labels:
            report.merged[name] = "world" if index == WORLD else context.labels[context.members[index][0]]


def _properties(context: Context, own: list[int]) -> MassProperties:
    """Return the summed mass properties of a body and its merged bodies, in the body's frame."""
    m = context.m
    parts = []
    for b in own:
        if m.body_mass[b] > 0.0 or np.any(m.body_inertia[b]):
            place = context.homes[b][1] * frame(m.body_ipos[b], m.body_iquat[b])
            part = MassProperties(float(m.body_mass[b]), np.zeros(3), np.diag(m.body_inertia[b]))
            parts.append(part.moved(homogeneous_matrix(place)))
    return combine(parts)


def _add_body(context: Context, b: int, found: MassProperties, mean: float) -> None:
    m, now = context.m, context.now
    kinematic = bool(m.body_mocapid[b] >= 0)
    if kinematic:
        found = MassProperties(max(found.mass, 1.0), found.com, found.inertia if found.mass > 0.0 else np.eye(3))
    elif found.mass <= 0.0:
        found = _with_mass(context, b, mean)
    share = gravity_share(context, b)
    velocity = np.zeros(6)
    context.mj.mj_objectVelocity(m, now, context.mj.mjtObj.mjOBJ_XBODY, b, velocity, 0)
    place = frame(now.xpos[b], now.xquat[b])
    context.builder.add_body(
        mass=found.mass,
        inertia=_possible(context, b, found),
        com=vector(found.com),
        xform=place,
        label=context.labels[b],
        linear_velocity=vector(velocity[3:] + np.cross(velocity[:3], place.rotate(found.com))),
        angular_velocity=vector(velocity[:3]),
        kinematic=kinematic,
        gravity_scale=1.0 if share is None else share,
    )


def gravity_share(context: Context, b: int) -> float | None:
    """Return a body's gravity factor, 1 - gravcomp, or None if its merged bodies have different factors."""
    m, own, given = context.m, context.members[context.homes[b][0]], context.gravcomp()
    shares = {1.0 - float(given[part]) for part in own if m.body_mass[part] > 0.0}
    return shares.pop() if len(shares) == 1 else None if shares else 1.0


def _with_mass(context: Context, b: int, mean: float) -> MassProperties:
    moves = bool(context.m.body_jntnum[b])
    mass = (MISSING_SHARE if moves else KEPT_SHARE) * mean
    severity, what = ("motion", "moves without mass") if moves else ("info", "is kept and has no mass")
    context.lost(severity, "BODY", b, what, f"it gets {mass:.3g} kg", "give it an <inertial>")
    context.report.added_mass += mass
    return MassProperties(mass, np.zeros(3), np.eye(3) * max(1e-4 * mass, 4.0 * min_moment(mass)))


def _possible(context: Context, b: int, found: MassProperties) -> Array:
    """Return the inertia, with too small principal moments raised to values that a rigid body can have."""
    inertia = 0.5 * (found.inertia + found.inertia.T)
    moments, axes = np.linalg.eigh(inertia)
    raised = np.maximum(moments, min_moment(found.mass))
    if raised[2] > raised[0] + raised[1]:
        raised[0] += 1.0000001 * (raised[2] - raised[0] - raised[1])
    if np.array_equal(raised, moments):
        return inertia
    if np.any(np.abs(raised - moments) > 1e-6 * max(float(moments.max()), min_moment(found.mass))):
        effect = f"principal moments raised from {moments.min():.3g} to {raised.min():.3g} kg m2"
        severity = "info" if context.m.body_mocapid[b] >= 0 else "motion"
        context.lost(severity, "BODY", b, "inertia that no solid body has", effect, "give it an <inertial>")
    return (axes * raised) @ axes.T
