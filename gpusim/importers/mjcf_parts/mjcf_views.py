"""Cameras and lights of the MJCF importer."""

from __future__ import annotations

import math

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.description.viewing import DIRECTIONAL, HEADLIGHT, POINT, SPOT
from gpusim.importers.mjcf_parts.mjcf_context import Context, frame, vector
from gpusim.transform import Transform
from gpusim.typing import Array

_FIXED = 0
"""Value of mjtCamLight for a camera or light that is fixed to its body."""
_KINDS = {0: SPOT, 1: DIRECTIONAL, 2: POINT}
"""Kinds of lights by the value of mjtLightType."""
_RIGHT_ANGLE = math.pi / 2.0
_GAMMA = 2.2


def add_cameras(context: Context) -> None:
    """Add all cameras, and list their labels in ``report.cameras``."""
    m = context.m
    context.mj.mj_camlight(m, context.now)
    for c in range(m.ncam):
        body, body_pose = context.placements[int(m.cam_bodyid[c])]
        pose = body_pose * frame(m.cam_pos[c], m.cam_quat[c])
        if m.cam_mode[c] != _FIXED:
            pose = _in_body(context, body, context.now.cam_xpos[c], context.now.cam_xmat[c].reshape(3, 3))
            context.report_loss(
                "look", "CAMERA", c, "a camera mode other than fixed", "fixed to its body in the starting pose"
            )
        if context.field("cam_projection", np.zeros(m.ncam))[c]:
            context.report_loss("look", "CAMERA", c, "an orthographic camera", "a perspective of 45 degrees")
        label = context.label("camera", context.name("CAMERA", c))
        context.builder.add_camera(body, pose, fov_y=_angle(context, c), label=label)
        context.report.cameras.append(label)


def _angle(context: Context, c: int) -> float:
    """Return the vertical field of view of a camera, rad."""
    m = context.m
    if context.field("cam_projection", np.zeros(m.ncam))[c]:
        return math.radians(45.0)
    sensor = context.field("cam_sensorsize", np.zeros((m.ncam, 2)))[c]
    if sensor[1] > 0.0:
        return 2.0 * math.atan(0.5 * float(sensor[1]) / float(m.cam_intrinsic[c][1]))
    return math.radians(float(m.cam_fovy[c]))


def add_lights(context: Context) -> None:
    """Add all lights that are on."""
    m = context.m
    for k in range(m.nlight):
        if not m.light_active[k]:
            continue
        kind = _kind(context, k)
        if kind is None:
            context.report_loss("look", "LIGHT", k, "an image light", "left out")
            continue
        body, body_pose = context.placements[int(m.light_bodyid[k])]
        position, direction = body_pose.apply(m.light_pos[k]), body_pose.rotate(m.light_dir[k])
        if m.light_mode[k] != _FIXED:
            pose = _in_body(context, body, context.now.light_xpos[k], np.eye(3))
            position, direction = pose.position, pose.rotate(context.now.light_xdir[k])
            context.report_loss(
                "look", "LIGHT", k, "a light mode other than fixed", "fixed to its body in the starting pose"
            )
        strength = float(np.max(m.light_diffuse[k]))
        if strength <= 0.0 or not np.any(direction):
            continue
        context.builder.add_light(
            kind,
            body,
            vector(position),
            vector(direction),
            color=vector(np.clip(m.light_diffuse[k] / strength, 0.0, 1.0)),
            intensity=strength,
            attenuation=vector(m.light_attenuation[k]) if np.any(m.light_attenuation[k]) else (1.0, 0.0, 0.0),
            cutoff=min(math.radians(float(m.light_cutoff[k])), _RIGHT_ANGLE),
            exponent=float(m.light_exponent[k]),
            shadow=bool(m.light_castshadow[k]),
            label=context.label("light", context.name("LIGHT", k)),
        )


def add_headlight(context: Context) -> None:
    """Add MuJoCo's headlight to a model that already has other lights.

    MuJoCo sums the colors of lights in sRGB, but the viewer sums them in linear RGB. The importer converts the
    intensity of the headlight from sRGB to linear RGB.
    """
    head = context.m.vis.headlight
    strength = float(np.max(head.diffuse))
    if head.active and strength > 0.0 and context.builder.lights:
        color = vector(np.clip(np.divide(head.diffuse, strength), 0.0, 1.0))
        label = context.label("light", "headlight")
        context.builder.add_light(HEADLIGHT, color=color, intensity=strength**_GAMMA, label=label)


def _kind(context: Context, k: int) -> str | None:
    """Return the kind of a light, or None if the viewer does not support the light."""
    types = context.field("light_type", None)
    if types is None:  # before MuJoCo 3.3.3
        return DIRECTIONAL if context.m.light_directional[k] else SPOT
    return _KINDS.get(int(types[k]))


def _in_body(context: Context, body: int, position: Array, axes: Array) -> Transform:
    """Convert a world pose from MuJoCo to a pose in the frame of the builder's body."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = axes, position
    world = Transform.from_matrix(matrix)
    return world if body == WORLD else context.builder.bodies[body].xform.inverse() * world
