"""Sensors of the MJCF importer. ``report.sensors`` maps each sensor to a signal of the model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gpusim.description.rays import Rays
from gpusim.description.specs import WORLD
from gpusim.importers.mjcf_parts.mjcf_context import Context, frame, vector
from gpusim.importers.mjcf_parts.mjcf_losses import driven_joints, has_gravity_compensation
from gpusim.importers.mjcf_parts.mjcf_shapes import PLANE
from gpusim.importers.sensor_info import Part, SensorInfo, SubtreeInfo

_FRAME = {
    "framepos": ("position", ""),
    "framequat": ("orientation", "wxyz"),
    "framexaxis": ("orientation", "x"),
    "frameyaxis": ("orientation", "y"),
    "framezaxis": ("orientation", "z"),
    "framelinvel": ("linear_velocity", ""),
    "frameangvel": ("angular_velocity", ""),
}
"""Type of frame sensor -> (quantity in the site's signal, ``form`` as in ``SensorInfo``)."""
_SITE = {
    "accelerometer": ("acceleration", ""),
    "gyro": ("angular_rate", ""),
    "velocimeter": ("linear_velocity", "local"),
}
_JOINT = {"jointpos": "position", "jointvel": "velocity", "jointactfrc": "drive_force"}
_TENDON = {"tendonpos": "position", "tendonvel": "velocity"}
_SUBTREE = {
    "subtreecom": "center_of_mass",
    "subtreelinvel": "linear_velocity",
    "subtreeangmom": "angular_momentum",
}
_FIXES = {
    "jointactfrc": "read drive_force of the joint, the force of actuators and springs on it",
    "force": "use add_force_sensor of a joint",
    "torque": "use add_force_sensor of a joint",
    "contact": "use add_contact_sensor",
}
_MAX_RANGE = 1000.0
"""Maximum distance of a rangefinder, m."""


def add_sensors(context: Context) -> None:
    """Write the signal of every sensor to ``report.sensors``. If no signal matches a sensor, add a finding."""
    m, mj = context.m, context.mj
    for s in range(m.nsensor):
        kind = str(mj.mjtSensor(int(m.sensor_type[s])).name).removeprefix("mjSENS_").lower()
        info = _signal(context, s, kind)
        if info is None:
            context.report_loss("info", "SENSOR", s, f"sensor type {kind}", "left out", _FIXES.get(kind, ""))
            continue
        lower, upper = _value_range(context, s)
        noise = float(m.sensor_noise[s])
        context.report.sensors[context.name("SENSOR", s)] = replace(info, lower=lower, upper=upper, noise=noise)
        if noise > 0.0:
            fix = "give read a random generator, or use gpusim.sensors.add_imu or add_encoder"
            context.report_loss("info", "SENSOR", s, "noise", "the signal has no noise", fix)


def _value_range(context: Context, s: int) -> tuple[float, float]:
    """Return the lower and upper limit of a sensor's values, from the attribute ``cutoff``."""
    cutoff = float(context.m.sensor_cutoff[s])
    types, kind = context.mj.mjtDataType, int(context.m.sensor_datatype[s])
    real, positive = int(types.mjDATATYPE_REAL), int(types.mjDATATYPE_POSITIVE)
    if cutoff <= 0.0 or kind not in (real, positive):
        return -math.inf, math.inf
    return (-cutoff if kind == real else -math.inf), cutoff


def _signal(context: Context, s: int, kind: str) -> SensorInfo | None:
    m, target = context.m, int(context.m.sensor_objid[s])
    if kind in _SITE:
        return _site_sensor(context, target, *_SITE[kind])
    if kind in _FRAME:
        return _frame_sensor(context, s, *_FRAME[kind])
    if kind == "jointactfrc" and not _only_own_actuators(context, target):
        return None
    if kind in _JOINT and target in context.coordinates:
        at = context.coordinates[target]
        return SensorInfo(f"joint.{at.label}.{_JOINT[kind]}", at.axis)
    if kind in ("ballquat", "ballangvel") and target in context.coordinates:
        prefix = f"joint.{context.coordinates[target].label}"
        if kind == "ballquat":
            return SensorInfo(f"{prefix}.position", form="wxyz")
        return SensorInfo(f"{prefix}.velocity", form="local", axes=f"{prefix}.position")
    if kind in _SUBTREE:
        return _subtree_sensor(context, target, _SUBTREE[kind])
    if kind in _TENDON and target in context.tendons:
        label = context.builder.joints[context.tendons[target]].label
        offset = context.offsets.get(target, 0.0) if kind == "tendonpos" else 0.0
        return SensorInfo(f"joint.{label}.{_TENDON[kind]}", offset=offset)
    if kind == "clock":
        return SensorInfo("sim.time")
    if kind == "touch":
        return _add_touch(context, s, target)
    on_site = int(m.sensor_objtype[s]) == int(context.mj.mjtObj.mjOBJ_SITE)
    if kind == "rangefinder" and on_site and m.sensor_dim[s] == 1 and _gives_distance(context, s):
        return _add_rangefinder(context, s, target)
    return None


def _only_own_actuators(context: Context, j: int) -> bool:
    """Return True if only actuators on joint ``j`` contribute to the joint's drive force."""
    m = context.m
    others = [a for a in range(context.actuators) if m.actuator_trntype[a] > 1 and j in driven_joints(context, a)[0]]
    return not (others or m.jnt_stiffness[j] or has_gravity_compensation(context, j))


def _site_sensor(context: Context, site: int, quantity: str, form: str) -> SensorInfo | None:
    if context.site(site)[0] == WORLD:
        return None
    label = context.builder.sites[site].label
    return SensorInfo(f"site.{label}.{quantity}", form=form, axes=f"site.{label}.orientation" if form else "")


def _frame_sensor(context: Context, s: int, quantity: str, form: str) -> SensorInfo | None:
    """Return the signal of a frame sensor, relative to the sensor's reference frame."""
    m, name = context.m, context.name("SENSOR", s)
    label = _site_of(context, int(m.sensor_objtype[s]), int(m.sensor_objid[s]), name)
    reference = ""
    if m.sensor_reftype[s] != int(context.mj.mjtObj.mjOBJ_UNKNOWN):
        site = _site_of(context, int(m.sensor_reftype[s]), int(m.sensor_refid[s]), f"{name}_reference")
        if site is None:
            return None
        reference = site
    return None if label is None else SensorInfo(f"site.{label}.{quantity}", form=form, reference=reference)


def _site_of(context: Context, kind: int, target: int, name: str) -> str | None:
    """Return the label of a site at the frame of a MuJoCo object. Add the site if necessary."""
    m, mj = context.m, context.mj
    if kind == int(mj.mjtObj.mjOBJ_SITE):
        return context.builder.sites[target].label
    if kind == int(mj.mjtObj.mjOBJ_XBODY):
        body, pose = context.placements[target]
    elif kind == int(mj.mjtObj.mjOBJ_BODY):
        body, pose = context.placements[target]
        pose = pose * frame(m.body_ipos[target], m.body_iquat[target])
    elif kind == int(mj.mjtObj.mjOBJ_GEOM):
        body, pose = context.placements[int(m.geom_bodyid[target])]
        pose = pose * frame(m.geom_pos[target], m.geom_quat[target])
    elif kind == int(mj.mjtObj.mjOBJ_CAMERA):
        body, pose = context.placements[int(m.cam_bodyid[target])]
        pose = pose * frame(m.cam_pos[target], m.cam_quat[target])
    else:
        return None
    label = context.label("site", name)
    context.builder.add_site(body, pose, label=label)
    return label


def _subtree_sensor(context: Context, root: int, quantity: str) -> SubtreeInfo | None:
    """Return a sensor for a mass-weighted sum over a body's subtree, or None if the subtree has no mass."""
    parts = tuple(_part(context, b) for b in context.subtree(root) if context.m.body_mass[b] > 0.0)
    return SubtreeInfo("", quantity=quantity, parts=parts) if parts else None


def _part(context: Context, b: int) -> Part:
    m, (body, pose) = context.m, context.placements[b]
    inertial_pose = pose * frame(m.body_ipos[b], m.body_iquat[b])
    rotation = inertial_pose.matrix()
    inertia = rotation @ np.diag(m.body_inertia[b]) @ rotation.T
    spec = None if body == WORLD else context.builder.bodies[body]
    return Part(
        "" if spec is None else spec.label,
        float(m.body_mass[b]),
        vector(inertial_pose.position),
        tuple(vector(row) for row in inertia),
        (0.0, 0.0, 0.0) if spec is None else vector(spec.com),
    )


def _add_touch(context: Context, s: int, site: int) -> SensorInfo | None:
    """Add a contact sensor that replaces a touch sensor."""
    body, _ = context.site(site)
    if body == WORLD or context.builder.bodies[body].kinematic:
        return None
    label = context.label("sensor", context.name("SENSOR", s))
    context.builder.add_contact_sensor(body, site, label=label)
    effect = "magnitude of the total contact force on the body"
    context.report_loss("info", "SENSOR", s, "touch within the volume of a site", effect)
    return SensorInfo(f"sensor.{label}.force", form="size")


def _gives_distance(context: Context, s: int) -> bool:
    """Return whether the first output value of a rangefinder is the distance."""
    data = context.field("sensor_intprm", np.ones((context.m.nsensor, 1)))[s][0]
    return int(data) in (0, 1)


def _add_rangefinder(context: Context, s: int, site: int) -> SensorInfo:
    """Add a ray sensor along the z axis of the site."""
    m, owner = context.m, int(context.m.site_bodyid[site])
    label = context.label("sensor", context.name("SENSOR", s))
    context.builder.add_ray_sensor(site, Rays(np.array([[0.0, 0.0, 1.0]])), max_range=_MAX_RANGE, label=label)
    others = [g for g in range(m.ngeom) if m.geom_bodyid[g] != owner]
    if any(g not in context.shapes for g in others):
        fix = "give them a contype and exclude their contacts"
        context.report_loss("info", "SENSOR", s, "rays that hit geoms without contacts", "rays pass through them", fix)
    if any(m.geom_type[g] == PLANE and m.geom_size[g][0] > 0.0 for g in others):
        context.report_loss("info", "SENSOR", s, "rays that pass planes beyond their size", "planes are infinite")
    return SensorInfo(f"sensor.{label}", 0, form="range")
