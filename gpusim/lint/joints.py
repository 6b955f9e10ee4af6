"""Checks of joints, loops and drives."""

from __future__ import annotations

import numpy as np

from gpusim.description.joint_kinds import angle_of_chord, joint_type
from gpusim.errors import ModelError
from gpusim.lint.subject import Subject
from gpusim.typing import Array

_LIMIT_SLOP = 1e-6
"""Tolerance (rad or m) for a joint that starts outside of its limits."""
OPEN, CLOSED = 1e-6, 1e-8
"""OPEN: gap (m or rad) above which a joint is open. CLOSED: maximum gap after a successful assembly."""
_RANK = 1e-9
"""Constraint rows are redundant if a singular value is below this fraction of the maximum singular value."""
_MANY = 10.0
"""A rotation limit above this value (rad) is probably in degrees."""
_STIFFEST, _DAMPED = 1.0, 10.0
"""Maximum frequency of a drive times the time step, and maximum damping rate of a drive times the time step."""


def outside_limits(subject: Subject) -> None:
    """Report joint coordinates that start outside of their limits."""
    now = subject.simulation().runtime.now
    for index, joint in enumerate(subject.model.joints):
        limits = joint_type(joint.kind).limits(joint)
        position = now.value(np.array(now.coordinates.of_joint[index]))[0].round(12) + 0.0
        for axis, (name, lower, upper) in enumerate(limits):
            at = float(angle_of_chord(position[axis])) if name == "cone" else position[axis]
            if max(lower - at, at - upper) > _LIMIT_SLOP:
                coordinate = f" its {name}" if name else f" coordinate {axis}" if len(limits) > 1 else ""
                subject.add(
                    "motion",
                    joint.element,
                    f"starts{coordinate} at {at:.4g}, outside of {lower:.4g} to {upper:.4g}",
                    "the limit pushes it back in the first steps",
                    "start in a posture within the limits",
                )


def limits_in_degrees(subject: Subject) -> None:
    """Report rotation limits that are probably in degrees: multiples of 5 above 10 rad."""
    for joint in subject.model.joints:
        type_ = joint_type(joint.kind)
        for axis, (name, lower, upper) in enumerate(type_.limits(joint)):
            finite = [limit for limit in (lower, upper) if np.isfinite(limit)]
            rotates = bool(name) or type_.unit_of(joint, axis) == "rad"
            if rotates and max(map(abs, finite), default=0.0) > _MANY and not any(limit % 5.0 for limit in finite):
                subject.add(
                    "info",
                    joint.element,
                    f"has limits of {' and '.join(f'{limit:g}' for limit in finite)} rad",
                    "the limits stop the joint only after several revolutions, or never",
                    "give radians, such as math.radians(90), unless the joint must rotate this far",
                )


def open_loops(subject: Subject) -> None:
    """Report joints with a gap in the initial poses. The finding says if ``assemble`` can close the gap."""
    if not subject.model.topology.num_constraints:
        return
    sim = subject.simulation()
    report = sim.assemble()
    wide = {label: float(error[0]) for label, error in report.before.items() if error[0] > OPEN}
    for label, error in wide.items():
        after = float(report.after[label][0])
        closes = after <= CLOSED
        subject.add(
            "motion",
            f"joint '{label}'",
            f"has an initial gap of {error:.3g} m or rad",
            f"sim.assemble() closes it to {after:.1g}" if closes else f"it cannot close: {after:.3g} remains",
            "correct its frames" if not closes else "correct its frames, or call sim.assemble()",
        )


def redundant_rows(subject: Subject) -> None:
    """Report loops with redundant constraints. The constraint forces of such loops are not unique."""
    try:
        tree = subject.tree
        if not tree.loop_rows:
            return
        _, jacobian, _ = tree.loops(tree.start)
    except ModelError:
        return  # the forest cannot represent the model, for example a differential
    size = np.linalg.svd(jacobian[0], compute_uv=False) if jacobian[0].size else np.zeros(0)
    rank = int((size > _RANK * max(size.max(initial=0.0), 1e-30)).sum())
    if rank < tree.loop_rows:
        subject.add(
            "info",
            "",
            f"{tree.loop_rows - rank} of {tree.loop_rows} constraints of closed loops are redundant",
            "the forces in them are not unique",
            "if the forces matter, use joints with fewer constraints, such as a planar pin or a ball",
        )


def stiff_gains(subject: Subject) -> None:
    """Report position drives whose frequency is too high for the time step."""
    drives = [a for a in subject.model.actuators if {"joint", "stiffness", "damping"} <= a.params.keys()]
    if not drives:
        return
    try:
        inertia = _inertias(subject)
    except (ModelError, np.linalg.LinAlgError):
        return
    for spec in drives:
        joint = subject.model.joints[spec.params["joint"]]
        load = inertia.get((joint.label, int(spec.params.get("axis", 0))), 0.0)
        stiffness, damping = (float(np.max(spec.params[name])) for name in ("stiffness", "damping"))
        if load <= 0.0 or spec.params.get("follows_velocity"):
            continue
        phase, decay = np.sqrt(stiffness / load) * subject.dt, damping / load * subject.dt
        if phase > _STIFFEST and decay < _DAMPED:
            subject.add(
                "motion",
                spec.element,
                f"stiffness {stiffness:.3g} on an inertia of {load:.3g} oscillates at "
                f"{phase / subject.dt / 2.0 / np.pi:.3g} Hz",
                f"a step of {subject.dt:g} s is too long for this frequency",
                "lower the stiffness, add armature, or take a smaller step",
            )


def _inertias(subject: Subject) -> dict[tuple[str, int], float]:
    """Return a dict from (joint, axis) to the effective inertia of this joint coordinate."""
    tree = subject.tree
    mass: Array = tree.mass_matrix(tree.start)[0]
    effective = 1.0 / np.maximum(np.diag(np.linalg.inv(mass)), 1e-300)
    inertias = {}
    for label in tree.carriers:
        part = tree.rate_slice(label)
        for axis, k in enumerate(range(part.start, part.stop)):
            inertias[label, axis] = float(effective[k])
    return inertias
