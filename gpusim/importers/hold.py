"""Servos that hold an imported robot where it stands."""

from __future__ import annotations

import math

from gpusim.errors import ModelError
from gpusim.importers.report import ImportReport, JointInfo
from gpusim.model.builder import ModelBuilder

_DRIVABLE = ("revolute", "continuous", "prismatic")


def add_holding_servos(
    builder: ModelBuilder,
    report: ImportReport,
    *,
    frequency: float = 10.0,
    damping_ratio: float = 1.0,
    use_effort_limits: bool = True,
) -> list[str]:
    """Add a position servo to every revolute, continuous and prismatic joint of an imported robot.

    Each servo is tuned to what its joint carries: stiffness ``I w^2`` and damping ``2 z I w`` with w = 2 pi frequency
    and I the inertia of all bodies behind the joint, followers of the joint included. Its target is position 0, or the
    limit next to it. Followers (``<mimic>``) get none: their leaders carry them.

    Args:
        builder: the one that the importer returned.
        report: the one that came with it.
        frequency: natural frequency of a joint with its load, Hz.
        damping_ratio: 1 returns without overshoot.
        use_effort_limits: hold with no more than the effort that the file allows (N m or N).

    Returns:
        The servos' labels, which are the joints' labels: ``sim.control[label]`` is the target in rad or m.

    Raises:
        ModelError: frequency not positive or damping ratio negative.
    """
    if not 0.0 < frequency < math.inf or not 0.0 <= damping_ratio < math.inf:
        raise ModelError(
            f"add_holding_servos: frequency {frequency:g} Hz must be positive and damping_ratio {damping_ratio:g} "
            "not negative; give such numbers"
        )
    rate = 2.0 * math.pi * frequency
    labels = []
    for joint in report.joints.values():
        if joint.kind not in _DRIVABLE or joint.mimic is not None:
            continue
        inertia = _total_load(report, joint)
        builder.add_servo(
            joint.index,
            mode="position",
            stiffness=inertia * rate * rate,
            damping=2.0 * damping_ratio * inertia * rate,
            effort_limit=joint.limits.effort if use_effort_limits else math.inf,
            target=min(max(0.0, joint.lower), joint.upper),
            label=joint.label,
        )
        labels.append(joint.label)
    return labels


def _total_load(report: ImportReport, joint: JointInfo) -> float:
    """Inertia that a joint feels with its followers: each counts with the square of its gear ratio."""
    total = joint.load_inertia
    for follower in report.joints.values():
        if follower.mimic is not None and follower.mimic.leader == joint.label:
            total += follower.mimic.multiplier**2 * _total_load(report, follower)
    return total
