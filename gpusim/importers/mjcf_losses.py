"""Findings of the MJCF importer for what the model has no word for: fluid, plugins and so on."""

from __future__ import annotations

import numpy as np

from gpusim.importers.mjcf_context import FREE, Context

_DEFAULT_SOLREF = (0.02, 1.0)


def report_losses(context: Context) -> None:
    """Add findings for all parts of the model that no other file of the importer reads."""
    _options(context)
    _joints(context)
    m, losses = context.m, context.losses
    for number, kind, severity in (
        (m.nflex if hasattr(m, "nflex") else 0, "flex", "motion"),
        (m.nplugin, "plugin", "motion"),
        (m.nskin, "skin", "look"),
    ):
        if number:
            losses.add(severity, "", "", f"{number} {kind}{'es' if kind == 'flex' else 's'}", "left out")


def _options(context: Context) -> None:
    m, losses = context.m, context.losses
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
