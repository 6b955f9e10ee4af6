"""Servos that hold an imported robot in its initial posture."""

from __future__ import annotations

import math

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers.report import ImportReport

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

    The servo's stiffness is ``I w^2`` and its damping is ``2 z I w``. Here, w is 2 pi ``frequency``, and z is
    ``damping_ratio``. I is the inertia or mass that the joint moves. I includes the loads of joints that mimic the
    joint. The first target is the joint's position in the imported pose. After a reset to a named posture, the target
    is the joint's position in that posture. Joints that follow another joint (``<mimic>``) get no servo.

    Args:
        builder: builder from the importer.
        report: report from the same import.
        frequency: natural frequency (Hz) of a joint with its load.
        damping_ratio: damping ratio. A damping ratio of 1 is critical damping.
        use_effort_limits: limit the servo's effort to the joint's effort limit in the file (N m or N).

    Returns:
        The labels of the servos, which equal the joint labels. ``sim.control[label]`` is the target in rad or m.

    Raises:
        ModelError: the frequency is not positive, or the damping ratio is negative.
    """
    if not 0.0 < frequency < math.inf or not 0.0 <= damping_ratio < math.inf:
        raise ModelError(
            f"add_holding_servos: frequency = {frequency:g} Hz must be positive, and damping_ratio = {damping_ratio:g} "
            "must not be negative; give e.g. 10 and 1"
        )
    rate = 2.0 * math.pi * frequency
    labels = []
    for name, joint in report.joints.items():
        if joint.kind not in _DRIVABLE or joint.mimic is not None:
            continue
        inertia = _total_load(report, name)
        builder.add_servo(
            joint.index,
            mode="position",
            stiffness=inertia * rate * rate,
            damping=2.0 * damping_ratio * inertia * rate,
            effort_limit=joint.limits.effort if use_effort_limits else math.inf,
            target=min(max(joint.initial_position, joint.lower), joint.upper),
            axis=joint.axis,
            label=name,
        )
        labels.append(name)
        for pose in builder.poses:
            if joint.axis == 0 and np.ndim(pose.joints.get(joint.label, (0.0,))) == 0:
                pose.commands.setdefault(name, float(pose.joints[joint.label]))
    return labels


def _total_load(report: ImportReport, name: str) -> float:
    """Return the inertia (kg m2) or mass (kg) that a joint moves, including reflected loads of mimic followers."""
    total = report.joints[name].load_inertia
    for other, follower in report.joints.items():
        if follower.mimic is not None and follower.mimic.leader == name:
            total += follower.mimic.multiplier**2 * _total_load(report, other)
    return total
