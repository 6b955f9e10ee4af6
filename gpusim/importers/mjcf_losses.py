"""Findings of the MJCF importer for what the model has no word for: fluid, sensors, lights, plugins and so on."""

from __future__ import annotations

import numpy as np

from gpusim.importers.mjcf_context import FREE, Context

_DEFAULT_SOLREF = (0.02, 1.0)
_SIGNALS = {
    "touch": "add_contact_sensor of its body",
    "contact": "add_contact_sensor of a body",
    "accelerometer": "gpusim.sensors.add_imu at its site",
    "gyro": "gpusim.sensors.add_imu at its site",
    "velocimeter": "the signal site.<label>.linear_velocity",
    "force": "add_force_sensor of a joint",
    "torque": "add_force_sensor of a joint",
    "rangefinder": "add_ray_sensor at its site",
    "jointpos": "the signal joint.<label>.position",
    "jointvel": "the signal joint.<label>.velocity",
    "framepos": "the signal body.<label>.position",
    "framequat": "the signal body.<label>.orientation",
    "framelinvel": "the signal body.<label>.linear_velocity",
    "frameangvel": "the signal body.<label>.angular_velocity",
}
"""What to use in place of a sensor."""


def report_losses(context: Context) -> None:
    """Add findings for all parts of the model that no other file of the importer reads."""
    _options(context)
    _joints(context)
    _sensors(context)
    m, losses = context.m, context.losses
    for number, kind, severity in (
        (m.nflex if hasattr(m, "nflex") else 0, "flex", "motion"),
        (m.nplugin, "plugin", "motion"),
        (m.nskin, "skin", "look"),
        (m.nlight, "light", "look"),
        (m.ncam, "camera", "look"),
    ):
        if number:
            effect = "report.cameras has the names" if kind == "camera" else "left out"
            losses.add(severity, "", "", f"{number} {kind}{'es' if kind == 'flex' else 's'}", effect)
    context.report.cameras = [context.name("CAMERA", c) for c in range(m.ncam)]


def _options(context: Context) -> None:
    m, losses = context.m, context.losses
    if m.opt.density or m.opt.viscosity:
        text = f"density {m.opt.density:g} kg/m3 and viscosity {m.opt.viscosity:g} Pa s of a fluid"
        losses.add("motion", "option", "", text, "no drag", "add forces in a diagram")
    if np.any(m.opt.wind) and (m.opt.density or m.opt.viscosity):
        losses.add("motion", "option", "", "wind", "left out")
    if hasattr(context.mj.mjtEnableBit, "mjENBL_OVERRIDE") and m.opt.enableflags & 1:
        losses.add("contact", "option", "", "override of contact parameters", "left out")


def _joints(context: Context) -> None:
    """Report limits that MuJoCo makes soft in an own way."""
    m = context.m
    for j in range(m.njnt):
        if not m.jnt_limited[j] or m.jnt_type[j] == FREE:
            continue
        if not np.allclose(m.jnt_solref[j], _DEFAULT_SOLREF):
            context.lost("contact", "JOINT", j, "its own solref of the limits", "limits are rigid")
        if m.jnt_margin[j]:
            context.lost("contact", "JOINT", j, "a margin of the limits", "limits act where they are")


def _sensors(context: Context) -> None:
    m, mj = context.m, context.mj
    for s in range(m.nsensor):
        kind = str(mj.mjtSensor(int(m.sensor_type[s])).name).removeprefix("mjSENS_").lower()
        context.lost(
            "none", "SENSOR", s, f"sensor type {kind}", "left out", f"use {_SIGNALS[kind]}" if kind in _SIGNALS else ""
        )
