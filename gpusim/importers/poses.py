"""Named postures from an imported file. Joint positions are clipped to the joint limits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import ImportReport
from gpusim.transform import Transform


def add_poses(
    builder: ModelBuilder,
    report: ImportReport,
    poses: Mapping[str, Mapping[str, float]],
    roots: Mapping[str, Transform] | None = None,
) -> None:
    """Add the postures of a file to the model. The position of a mimic joint is computed from the joint that it mimics.

    Args:
        builder: receives the postures.
        report: report with all joints. The function adds the labels of the postures, and a finding for each position
            outside the joint limits.
        poses: posture -> joint label -> position (rad or m).
        roots: posture -> pose of a floating base in the world.
    """
    for name, positions in poses.items():
        joints: dict[str, float] = {}
        base = (roots or {}).get(name) if not report.fixed_base else None
        for label, position in positions.items():
            info = report.joints[label]
            joints[label] = min(max(position, info.lower), info.upper)
            if joints[label] != position:
                limits = f"puts joint {label!r} at {position:g}, outside its limits {info.lower:g} to {info.upper:g}"
                report.add("info", f"pose {name!r}", limits, f"{joints[label]:g} used instead")
        for label, info in report.joints.items():
            if info.mimic is not None and info.mimic.leader in joints:
                joints[label] = info.mimic.multiplier * joints[info.mimic.leader] + info.mimic.offset
        label = label_of(name)
        base_pose = {report.base_joint: base} if base is not None and report.base_joint else {}
        if base_pose or joints:
            builder.add_pose(label, joints={**base_pose, **joints})
            report.poses.append(label)


def label_of(name: str) -> str:
    """Return the label for a posture's name: "_" replaces dots and spaces."""
    return re.sub(r"[.\s]+", "_", name)
