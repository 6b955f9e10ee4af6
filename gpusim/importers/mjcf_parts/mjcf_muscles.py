"""Muscles of the MJCF importer on joints and tendons, with MuJoCo's muscle model and activation dynamics."""

from __future__ import annotations

import numpy as np

from gpusim.importers.mjcf_parts.mjcf_context import Context

_MIN = 1e-15
"""MuJoCo's mjMINVAL."""


def is_muscle(context: Context, a: int) -> bool:
    """Return whether an actuator uses MuJoCo's muscle model."""
    return int(context.m.actuator_gaintype[a]) == int(context.mj.mjtGain.mjGAIN_MUSCLE)


def unknown_muscle(context: Context, a: int) -> str:
    """Return a text that names an unsupported feature of a muscle, or an empty text."""
    m, mj = context.m, context.mj
    if m.actuator_dyntype[a] != mj.mjtDyn.mjDYN_MUSCLE:
        return "a muscle's curves with other activation dynamics"
    bias = int(m.actuator_biastype[a])
    if bias not in (int(mj.mjtBias.mjBIAS_MUSCLE), int(mj.mjtBias.mjBIAS_NONE)):
        return "a muscle's curves with another bias"
    gain = m.actuator_gainprm[a][:9]
    if bias == int(mj.mjtBias.mjBIAS_MUSCLE) and not np.array_equal(gain, m.actuator_biasprm[a][:9]):
        return "a muscle with different parameters for its passive and active force"
    lmin, lmax, vmax, _, fvmax = (float(x) for x in gain[4:9])
    if not (lmin < 1.0 < lmax and fvmax >= 1.0 and vmax > 0.0 and gain[0] < gain[1]):
        return "a muscle without lmin < 1 < lmax, fvmax >= 1, vmax > 0 and a rising range"
    if not m.actuator_lengthrange[a][0] < m.actuator_lengthrange[a][1]:
        return "a muscle without a length range"
    return ""


def add_muscle(context: Context, a: int, joint: int, axis: int, offset: float, label: str) -> None:
    """Add a muscle on a joint coordinate q. MuJoCo's actuator length is gear (q + ``offset``)."""
    m = context.m
    gear, address = float(m.actuator_gear[a][0]), int(m.actuator_actadr[a])
    lower, upper, force, scale, lmin, lmax, vmax, fpmax, fvmax = (float(x) for x in m.actuator_gainprm[a][:9])
    if force < 0.0:
        force = scale / max(_MIN, float(m.actuator_acc0[a]))
    shortest, longest = (float(x) for x in m.actuator_lengthrange[a])
    rise, fall, tausmooth = (float(x) for x in m.actuator_dynprm[a][:3])
    passive = m.actuator_biastype[a] == context.mj.mjtBias.mjBIAS_MUSCLE
    context.builder.add_muscle(
        joint,
        force,
        (shortest - gear * offset, longest - gear * offset),
        gear=gear,
        operating_range=(lower, upper),
        timeconst=(max(rise, _MIN), max(fall, _MIN)),
        tausmooth=max(tausmooth, 0.0),
        lmin=lmin,
        lmax=lmax,
        vmax=vmax,
        fpmax=fpmax if passive else 0.0,
        fvmax=fvmax,
        activation=min(max(float(context.now.act[address]), 0.0), 1.0),
        axis=axis,
        label=label,
    )
    if m.actuator_forcelimited[a]:
        context.report_loss("motion", "ACTUATOR", a, "a force range of a muscle", "no limit", "limit its force")
    if m.actuator_actlimited[a] and not (m.actuator_actrange[a][0] <= 0.0 and m.actuator_actrange[a][1] >= 1.0):
        context.report_loss("motion", "ACTUATOR", a, "an activation range of a muscle", "0 to 1", "give a ctrlrange")
    context.activations.append((address, label, 0.0, 1.0))
