"""Cameras and lights of a USD file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers.usd_parts.usd_bodies import UsdBody, host_of
from gpusim.importers.usd_parts.usd_looks import srgb
from gpusim.importers.usd_parts.usd_stage import UsdStage
from gpusim.transform import Transform

_DISTANT = "DistantLight"
_NEAR = ("SphereLight", "DiskLight", "RectLight", "CylinderLight")
_OTHERS = ("DomeLight", "DomeLight_1", "GeometryLight", "PortalLight", "MeshLight")
_MAX_EXPOSURE = 100.0
_RIGHT_ANGLE = 90.0
"""Half angle (degrees) of a light's cone if the file does not define the cone."""


def body_frame(stage: UsdStage, bodies: Mapping[str, UsdBody], path: str) -> tuple[int, Transform]:
    """Return the index of the body that contains a prim (-1 for the world), and the pose of the prim in the body."""
    owner = stage.prim(path)
    while owner and not owner.IsPseudoRoot() and str(owner.GetPath()) not in bodies:
        owner = owner.GetParent()
    body = bodies.get(str(owner.GetPath())) if owner else None
    pose = stage.pose(path)
    if body is None:
        return -1, pose
    return host_of(bodies, body).index, body.offset * stage.pose(body.path).inverse() * pose


def add_cameras(stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody]) -> None:
    """Add all cameras, and list their labels in ``report.cameras``."""
    from pxr import UsdGeom

    for prim in stage.prims():
        if prim.IsA(UsdGeom.Camera):
            try:
                _add_camera(stage, builder, bodies, UsdGeom.Camera(prim), str(prim.GetPath()))
            except ModelError as why:
                stage.report.add("look", f"camera '{prim.GetPath()}'", str(why).split(": ", 1)[-1], "left out")


def _add_camera(stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], camera: Any, path: str) -> None:
    from pxr import UsdGeom

    height, focal = (float(a.Get() or 0.0) for a in (camera.GetVerticalApertureAttr(), camera.GetFocalLengthAttr()))
    angle = 2.0 * math.atan(0.5 * height / focal) if height > 0.0 and 0.0 < focal < math.inf else 0.0
    if camera.GetProjectionAttr().Get() == UsdGeom.Tokens.orthographic or not 0.0 < angle < math.pi:
        stage.report.add("look", f"camera '{path}'", "has no perspective", "it has a perspective of 45 degrees")
        angle = math.radians(45.0)
    body, pose = body_frame(stage, bodies, path)
    label = stage.label("camera", path)
    builder.add_camera(body, pose, fov_y=angle, label=label)
    stage.report.cameras.append(label)


def add_lights(stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody]) -> None:
    """Add all visible lights, except dome, portal, geometry and mesh lights.

    Intensities are relative to the strongest light of the same type (distant, or with a position).
    """
    groups: dict[str, list[tuple[Any, float]]] = {}
    for prim in stage.prims():
        kind = str(prim.GetTypeName())
        if kind not in (_DISTANT, *_NEAR, *_OTHERS) or not _is_visible(prim):
            continue
        if kind in _OTHERS:
            stage.report.add("look", f"light '{prim.GetPath()}'", f"is a {kind}", "the viewer's own sky shines")
            continue
        strength = _strength(prim)
        if 0.0 < strength < math.inf:
            groups.setdefault("sun" if kind == _DISTANT else "lamp", []).append((prim, strength))
    for lights in groups.values():
        max_strength = max(strength for _, strength in lights)
        for prim, strength in lights:
            try:
                _add_light(stage, builder, bodies, prim, strength / max_strength)
            except ModelError as why:
                stage.report.add("look", f"light '{prim.GetPath()}'", str(why).split(": ", 1)[-1], "left out")


def _is_visible(prim: Any) -> bool:
    from pxr import UsdGeom

    return bool(UsdGeom.Imageable(prim).ComputeVisibility() != UsdGeom.Tokens.invisible)


def _strength(prim: Any) -> float:
    """Return the brightness of a light, in USD's units."""
    from pxr import UsdLux

    light = UsdLux.LightAPI(prim)
    exposure = min(float(light.GetExposureAttr().Get()), _MAX_EXPOSURE)
    return float(light.GetIntensityAttr().Get()) * 2.0**exposure * float(np.max(_color(prim)))


def _color(prim: Any) -> Any:
    """Return the linear color of a light, including its color temperature."""
    from pxr import UsdLux

    light = UsdLux.LightAPI(prim)
    color = np.array(light.GetColorAttr().Get(), float)
    if light.GetEnableColorTemperatureAttr().Get():
        color = color * np.array(UsdLux.BlackbodyTemperatureAsRgb(light.GetColorTemperatureAttr().Get()), float)
    return np.maximum(color, 0.0)


def _add_light(
    stage: UsdStage, builder: ModelBuilder, bodies: Mapping[str, UsdBody], prim: Any, strength: float
) -> None:
    from pxr import UsdLux

    path, color = str(prim.GetPath()), _color(prim)
    body, pose = body_frame(stage, bodies, path)
    shaping, shadows = UsdLux.ShapingAPI(prim), UsdLux.ShadowAPI(prim)
    cone = float(shaping.GetShapingConeAngleAttr().Get()) if prim.HasAPI(UsdLux.ShapingAPI) else _RIGHT_ANGLE
    shadow = shadows.GetShadowEnableAttr().Get() if prim.HasAPI(UsdLux.ShadowAPI) else None
    kind = "directional" if prim.GetTypeName() == _DISTANT else "point"
    if kind == "point" and 0.0 < cone < _RIGHT_ANGLE:
        kind = "spot"
    builder.add_light(
        kind,
        body,
        tuple(pose.position),
        tuple(pose.rotate((0.0, 0.0, -1.0))),
        color=srgb(color / np.max(color)),
        intensity=strength,
        cutoff=math.radians(cone) if kind == "spot" else math.pi / 4.0,
        shadow=shadow is not False,
        label=stage.label("light", path),
    )
