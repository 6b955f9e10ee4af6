"""Named postures of a file: joint positions within their limits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import ImportReport


def add_poses(builder: ModelBuilder, report: ImportReport, poses: Mapping[str, Mapping[str, float]]) -> None:
    """Add the postures of a file to the model, with followers at the positions of their leaders.

    Args:
        builder: receives the postures.
        report: has all joints. It receives the names, and a finding for each position outside of the limits.
        poses: posture -> joint label -> position (rad or m).
    """
    for name, positions in poses.items():
        joints: dict[str, float] = {}
        for label, position in positions.items():
            info = report.joints[label]
            joints[label] = min(max(position, info.lower), info.upper)
            if joints[label] != position:
                limits = f"puts joint {label!r} at {position:g}, outside its limits {info.lower:g} to {info.upper:g}"
                report.add("none", f"pose {name!r}", limits, f"{joints[label]:g} put instead")
        for label, info in report.joints.items():
            if info.mimic is not None and info.mimic.leader in joints:
                joints[label] = info.mimic.multiplier * joints[info.mimic.leader] + info.mimic.offset
        label = re.sub(r"[.\s]+", "_", name)
        builder.add_pose(label, joints=joints)
        report.poses.append(label)
