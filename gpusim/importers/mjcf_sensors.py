"""Sensors of the MJCF importer: each becomes a signal of the model, which ``report.sensors`` names."""

from __future__ import annotations

import math

import numpy as np

from gpusim.description.rays import Rays
from gpusim.description.specs import WORLD
from gpusim.importers.mjcf_context import Context, frame
from gpusim.importers.report import SensorInfo

_FRAME = {
    "framepos": ("position", ""),
    "framequat": ("orientation", "wxyz"),
    "framexaxis": ("orientation", "x"),
    "frameyaxis": ("orientation", "y"),
    "framezaxis": ("orientation", "z"),
    "framelinvel": ("linear_velocity", ""),
    "frameangvel": ("angular_velocity", ""),
}
"""Sensors of an object's frame in the world: signal of a site, and the form of its value."""
_SITE = {
    "accelerometer": ("acceleration", ""),
    "gyro": ("angular_rate", ""),
    "velocimeter": ("linear_velocity", "local"),
}
_JOINT = {"jointpos": "position", "jointvel": "velocity", "jointactuatorfrc": "drive_force"}
_TENDON = {"tendonpos": "position", "tendonvel": "velocity"}
_BALL = {"ballquat": ("position", "wxyz"), "ballangvel": ("velocity", "")}
_FIXES = {
    "force": "use add_force_sensor of a joint",
    "torque": "use add_force_sensor of a joint",
    "subtreecom": "use gpusim.robotics.Tree",
    "subtreelinvel": "use gpusim.robotics.Tree",
    "subtreeangmom": "use gpusim.robotics.Tree",
    "contact": "use add_contact_sensor",
}
_FAR = 100.0
"""Greatest distance of a rangefinder without a cutoff, m."""


def add_sensors(context: Context) -> None:
    """Name the signal of every sensor, and report those without one."""
    m, mj = context.m, context.mj
    for s in range(m.nsensor):
        kind = str(mj.mjtSensor(int(m.sensor_type[s])).name).removeprefix("mjSENS_").lower()
        info = _signal(context, s, kind)
        if info is None:
            context.lost("info", "SENSOR", s, f"sensor type {kind}", "left out", _FIXES.get(kind, ""))
            continue
        context.report.sensors[context.name("SENSOR", s)] = info
        if m.sensor_noise[s] > 0.0:
            context.lost("info", "SENSOR", s, "noise", "left out", "use gpusim.sensors.add_imu or add_encoder")


def _signal(context: Context, s: int, kind: str) -> SensorInfo | None:
    m, target = context.m, int(context.m.sensor_objid[s])
    if kind in _SITE:
        return _of_site(context, target, *_SITE[kind])
    if kind in _FRAME:
        return _of_frame(context, s, *_FRAME[kind])
    if kind in _JOINT and target in context.coordinates:
        at = context.coordinates[target]
        return SensorInfo(f"joint.{at.label}.{_JOINT[kind]}", at.axis)
    if kind in _BALL and target in context.coordinates and _BALL[kind][0] == "position":
        return SensorInfo(f"joint.{context.coordinates[target].label}.position", form="wxyz")
    if kind in _TENDON and target in context.tendons:
        label = context.builder.joints[context.tendons[target]].label
        offset = context.offsets.get(target, 0.0) if kind == "tendonpos" else 0.0
        return SensorInfo(f"joint.{label}.{_TENDON[kind]}", offset=offset)
    if kind == "clock":
        return SensorInfo("sim.time")
    if kind == "touch":
        return _touch(context, s, target)
    if kind == "rangefinder" and int(m.sensor_objtype[s]) == int(context.mj.mjtObj.mjOBJ_SITE):
        return _range(context, s, target)
    return None


def _of_site(context: Context, site: int, quantity: str, form: str) -> SensorInfo | None:
    if context.site(site)[0] == WORLD:
        return None
    label = context.builder.sites[site].label
    return SensorInfo(f"site.{label}.{quantity}", form=form, axes=f"site.{label}.orientation" if form else "")


def _of_frame(context: Context, s: int, quantity: str, form: str) -> SensorInfo | None:
    """Return the signal of an object's frame. Objects other than sites get a site."""
    m, mj, target = context.m, context.mj, int(context.m.sensor_objid[s])
    if m.sensor_reftype[s] != int(mj.mjtObj.mjOBJ_UNKNOWN):
        return None  # relative to another frame
    kind = int(m.sensor_objtype[s])
    if kind == int(mj.mjtObj.mjOBJ_SITE):
        label = context.builder.sites[target].label
        return SensorInfo(f"site.{label}.{quantity}", form=form)
    if kind == int(mj.mjtObj.mjOBJ_XBODY):
        body, place = context.homes[target]
    elif kind == int(mj.mjtObj.mjOBJ_BODY):
        body, place = context.homes[target]
        place = place * frame(m.body_ipos[target], m.body_iquat[target])
    elif kind == int(mj.mjtObj.mjOBJ_GEOM):
        body, place = context.homes[int(m.geom_bodyid[target])]
        place = place * frame(m.geom_pos[target], m.geom_quat[target])
    elif kind == int(mj.mjtObj.mjOBJ_CAMERA):
        body, place = context.homes[int(m.cam_bodyid[target])]
        place = place * frame(m.cam_pos[target], m.cam_quat[target])
    else:
        return None
    label = context.label("site", context.name("SENSOR", s))
    context.builder.add_site(body, place, label=label)
    return SensorInfo(f"site.{label}.{quantity}", form=form)


def _touch(context: Context, s: int, site: int) -> SensorInfo | None:
    """Add a sensor for all contacts of the site's body."""
    body, _ = context.site(site)
    if body == WORLD or context.builder.bodies[body].kinematic:
        return None
    label = context.label("sensor", context.name("SENSOR", s))
    context.builder.add_contact_sensor(body, site, label=label)
    effect = "size of the force of all contacts of the body"
    context.lost("info", "SENSOR", s, "touch within the volume of a site", effect)
    return SensorInfo(f"sensor.{label}.force", form="size")


def _range(context: Context, s: int, site: int) -> SensorInfo:
    """Add a ray along the z axis of the site."""
    cutoff = float(context.m.sensor_cutoff[s])
    far = cutoff if cutoff > 0.0 and math.isfinite(cutoff) else _FAR
    label = context.label("sensor", context.name("SENSOR", s))
    context.builder.add_ray_sensor(site, Rays(np.array([[0.0, 0.0, 1.0]])), max_range=far, label=label)
    return SensorInfo(f"sensor.{label}", 0)
