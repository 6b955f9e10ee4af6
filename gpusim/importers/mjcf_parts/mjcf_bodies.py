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

STATIC_MASS_FRACTION = 1e-6
"""Mass that a massless body without joints gets, as a fraction of the mean mass of all bodies with mass."""
MOVING_MASS_FRACTION = 1e-4
"""Mass that a massless body with joints gets, as a fraction of the mean mass of all bodies with mass."""


def find_base(context: Context) -> int:
    """Return the index of the base: the child of the world with the most joints in its subtree.

    Return 0 if the model has no bodies.
    """
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
    """Add all bodies.

    Bodies without joints are merged into their parents. The options ``merge_fixed=False`` and ``keep`` prevent merging.
    """
    m, report = context.m, context.report
    base = find_base(context)
    for b in range(1, m.nbody):
        parent, pose = context.placements[int(m.body_parentid[b])]
        if _becomes_body(context, b, base, parent):
            context.labels[b] = context.label("body", context.name("BODY", b))
            context.placements[b] = (len(context.members), Transform())
            context.members[len(context.members)] = [b]
        else:
            context.placements[b] = (parent, pose * frame(m.body_pos[b], m.body_quat[b]))
            if parent != WORLD:
                context.members[parent].append(b)
    _write_report(context, base)
    properties = {index: _mass_properties(context, members) for index, members in context.members.items()}
    heavy = [p.mass for p in properties.values() if p.mass > 0.0]
    mean = float(np.mean(heavy)) if heavy else 1.0
    for index, members in context.members.items():
        _add_body(context, members[0], properties[index], mean)
    for b in context.labels:
        if m.body_jntnum[b] == 0 and m.body_mocapid[b] < 0 and not _is_freed_base(context, b, base):
            _add_fixed_joint(context, b, base)
        elif b == base and context.options.fixed_base and free_joint(context, b) is not None:
            _add_fixed_joint(context, b, base)
    report.total_mass = float(sum(x.mass for x in context.builder.bodies if not x.kinematic))


def _becomes_body(context: Context, b: int, base: int, parent: int) -> bool:
    m, options = context.m, context.options
    if m.body_jntnum[b] or m.body_mocapid[b] >= 0 or not options.merge_fixed:
        return True
    if any(fnmatch.fnmatchcase(context.name("BODY", b), pattern) for pattern in options.keep):
        return True
    mounted = options.mount and parent == WORLD and m.body_parentid[b] == 0 and m.body_subtreemass[b] > 0.0
    return mounted or _is_freed_base(context, b, base)


def _is_freed_base(context: Context, b: int, base: int) -> bool:
    """Return whether ``fixed_base=False`` lets the body ``b`` float, although the file fixes the body."""
    m = context.m
    return context.options.fixed_base is False and b == base and m.body_jntnum[b] == 0 and m.body_mocapid[b] < 0


def _add_fixed_joint(context: Context, b: int, base: int) -> None:
    m, builder = context.m, context.builder
    parent, pose = context.placements[int(m.body_parentid[b])]
    if free_joint(context, b) is not None:
        parent_frame = builder.bodies[context.placements[b][0]].xform  # fixes a free base in its starting pose
    else:
        parent_frame = pose * frame(m.body_pos[b], m.body_quat[b])
    label = context.label("joint", f"{context.labels[b]}_fixed")
    builder.add_joint_fixed(parent, context.placements[b][0], parent_frame, label=label)
    if b == base:
        context.report.base_joint = label


def _write_report(context: Context, base: int) -> None:
    m, report = context.m, context.report
    report.base_link = context.name("BODY", base) if base else "world"
    free = bool(base) and (free_joint(context, base) is not None or _is_freed_base(context, base, base))
    report.fixed_base = not free or bool(context.options.fixed_base)
    for b in range(1, m.nbody):
        index, pose = context.placements[b]
        name = context.labels.get(b) or context.label("body", context.name("BODY", b))
        report.link_frames[name] = homogeneous_matrix(pose)
        if b not in context.labels:
            report.merged[name] = "world" if index == WORLD else context.labels[context.members[index][0]]


def _mass_properties(context: Context, members: list[int]) -> MassProperties:
    """Return the summed mass properties of a body and its merged bodies, in the body's frame."""
    m = context.m
    parts = []
    for b in members:
        if m.body_mass[b] > 0.0 or np.any(m.body_inertia[b]):
            pose = context.placements[b][1] * frame(m.body_ipos[b], m.body_iquat[b])
            part = MassProperties(float(m.body_mass[b]), np.zeros(3), np.diag(m.body_inertia[b]))
            parts.append(part.moved(homogeneous_matrix(pose)))
    return combine(parts)


def _add_body(context: Context, b: int, properties: MassProperties, mean: float) -> None:
    m, now = context.m, context.now
    kinematic = bool(m.body_mocapid[b] >= 0)
    if kinematic:
        properties = MassProperties(
            max(properties.mass, 1.0), properties.com, properties.inertia if properties.mass > 0.0 else np.eye(3)
        )
    elif properties.mass <= 0.0:
        properties = _substitute_mass(context, b, mean)
    gravity_scale = gravity_scale_of(context, b)
    velocity = np.zeros(6)
    context.mj.mj_objectVelocity(m, now, context.mj.mjtObj.mjOBJ_XBODY, b, velocity, 0)
    pose = frame(now.xpos[b], now.xquat[b])
    context.builder.add_body(
        mass=properties.mass,
        inertia=_repaired_inertia(context, b, properties),
        com=vector(properties.com),
        xform=pose,
        label=context.labels[b],
        linear_velocity=vector(velocity[3:] + np.cross(velocity[:3], pose.rotate(properties.com))),
        angular_velocity=vector(velocity[:3]),
        kinematic=kinematic,
        gravity_scale=1.0 if gravity_scale is None else gravity_scale,
    )


def gravity_scale_of(context: Context, b: int) -> float | None:
    """Return a body's gravity factor, 1 - gravcomp. Return None if its merged bodies have different factors."""
    m, members, gravcomp = context.m, context.members[context.placements[b][0]], context.gravcomp()
    scales = {1.0 - float(gravcomp[part]) for part in members if m.body_mass[part] > 0.0}
    return scales.pop() if len(scales) == 1 else None if scales else 1.0


def _substitute_mass(context: Context, b: int, mean: float) -> MassProperties:
    moves = bool(context.m.body_jntnum[b])
    mass = (MOVING_MASS_FRACTION if moves else STATIC_MASS_FRACTION) * mean
    severity, what = ("motion", "moves but has no mass") if moves else ("info", "is a separate body without mass")
    context.report_loss(severity, "BODY", b, what, f"it gets {mass:.3g} kg", "give it an <inertial>")
    context.report.added_mass += mass
    return MassProperties(mass, np.zeros(3), np.eye(3) * max(1e-4 * mass, 4.0 * min_moment(mass)))


def _repaired_inertia(context: Context, b: int, properties: MassProperties) -> Array:
    """Return the body's inertia (3, 3). Raise principal moments that are too small for a rigid body."""
    inertia = 0.5 * (properties.inertia + properties.inertia.T)
    moments, axes = np.linalg.eigh(inertia)
    raised = np.maximum(moments, min_moment(properties.mass))
    if raised[2] > raised[0] + raised[1]:
        raised[0] += 1.0000001 * (raised[2] - raised[0] - raised[1])
    if np.array_equal(raised, moments):
        return inertia
    if np.any(np.abs(raised - moments) > 1e-6 * max(float(moments.max()), min_moment(properties.mass))):
        effect = f"principal moments raised from {moments.min():.3g} to {raised.min():.3g} kg m2"
        severity = "info" if context.m.body_mocapid[b] >= 0 else "motion"
        context.report_loss(severity, "BODY", b, "an impossible inertia", effect, "give it an <inertial>")
    return (axes * raised) @ axes.T
