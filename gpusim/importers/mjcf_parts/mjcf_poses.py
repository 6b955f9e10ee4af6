"""Named postures of the MJCF importer, one for each keyframe."""

from __future__ import annotations

from typing import Any

from gpusim.importers.mjcf_parts.mjcf_context import BALL, FREE, Context, frame


def add_poses(context: Context) -> None:
    """Add a posture for every keyframe."""
    m, mj = context.m, context.mj
    for k in range(m.nkey):
        data = mj.MjData(m)
        mj.mj_resetDataKeyframe(m, data, k)
        mj.mj_normalizeQuat(m, data.qpos)
        mj.mj_kinematics(m, data)
        bodies = {
            context.labels[b]: frame(data.xpos[b], data.xquat[b]) for b in context.labels if m.body_mocapid[b] >= 0
        }
        joints = _joints(context, data)
        label = context.label("pose", context.name("KEY", k))
        commands = _commands(context, data)
        active = {c: min(max(float(data.act[k]), lower), upper) for k, c, lower, upper in context.activations}
        if joints or bodies or commands or active:
            context.builder.add_pose(label, joints=joints, bodies=bodies, commands=commands, activations=active)
            context.report.poses.append(label)
        if m.key_qvel[k].any():
            context.report_loss("info", "KEY", k, "velocities", f'load with pose="{label}" to start with them')


def _joints(context: Context, data: Any) -> dict[str, Any]:
    """Return a dict: joint label -> joint coordinates."""
    m, positions = context.m, dict[str, Any]()
    for j, coordinate in context.coordinates.items():
        q = data.qpos[m.jnt_qposadr[j] :]
        joint = context.builder.joints[coordinate.index]
        if m.jnt_type[j] == FREE:
            if joint.kind == "free":
                positions[coordinate.label] = frame(q[:3], q[3:7])
        elif m.jnt_type[j] == BALL:
            positions[coordinate.label] = (float(q[1]), float(q[2]), float(q[3]), float(q[0]))
        else:
            positions.setdefault(coordinate.label, []).append(float(q[0]))
    return {
        label: value[0] if isinstance(value, list) and len(value) == 1 else value for label, value in positions.items()
    }


def _commands(context: Context, data: Any) -> dict[str, float]:
    """Return the command values of a keyframe, clipped to the command ranges."""
    return {info.command: min(max(float(data.ctrl[k]), info.lower), info.upper) for k, info in context.controls}
