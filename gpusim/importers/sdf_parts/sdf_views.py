"""Conversion of SDF sensors to sites and cameras, and of SDF lights to lights of the viewer."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_bodies import Link
from gpusim.importers.sdf_parts.sdf_frames import Scope
from gpusim.importers.sdf_parts.sdf_joints import WORLD, clean_name
from gpusim.importers.sdf_parts.sdf_xml import Node
from gpusim.transform import Transform

_CAMERAS = ("camera", "depth", "depth_camera", "rgbd", "rgbd_camera", "thermal", "thermal_camera", "wideanglecamera")
_KINDS = ("directional", "point", "spot")
_FORWARD = Transform.from_matrix(
    np.array([[0.0, 0.0, -1.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
)
"""Rotation from the builder's camera frame (looks along -z, y up) to SDF's camera frame (looks along x, z up)."""


def add_sensor(
    builder: ModelBuilder, body: int, frame: Transform, node: Node, owner: str, report: ImportReport
) -> None:
    """Add a site at the frame of a sensor, and a camera if the sensor takes images.

    Args:
        builder: receives the site and the camera.
        body: body index, -1 for the world.
        frame: frame of the link in the body frame.
        node: <sensor>.
        owner: label of the link.
        report: receives a finding, and the label of the camera.
    """
    kind, pose_node = node.get("type"), node.find("pose")
    pose = frame * (pose_node.pose() if pose_node is not None else Transform())
    label = _unused_label(
        f"{owner}::{clean_name(node.get('name') or 'sensor')}", [site.label for site in builder.sites]
    )
    builder.add_site(body, pose, label=label)
    fix = "add a sensor with gpusim.sensors"
    camera = node.find("camera")
    if kind in _CAMERAS and camera is not None:
        inner = camera.find("pose")
        pose = pose * (inner.pose() if inner is not None else Transform()) * _FORWARD
        name = _unused_label(label, [found.label for found in builder.cameras])
        builder.add_camera(body, pose, fov_y=_angle(camera), label=name)
        report.cameras.append(name)
        fix = "gpusim render draws its view"
    report.add("info", f"link {owner!r}", f"sensor of type {kind!r} is not read", f"site {label!r} has its frame", fix)


def _angle(camera: Node) -> float:
    """Return the vertical field of view (rad) of a camera."""
    across = min(max(camera.number("horizontal_fov", 1.047), 1e-3), 3.1)
    width, height = camera.number("image/width", 320.0), camera.number("image/height", 240.0)
    ratio = height / width if width > 0.0 and height > 0.0 and math.isfinite(height / width) else 0.75
    return min(2.0 * math.atan(ratio * math.tan(0.5 * across)), 3.1)


def add_lights(builder: ModelBuilder, root: Node, world: Scope, links: Iterable[Link], report: ImportReport) -> None:
    """Add the lights of the world, the models and the links."""
    if world.node is not root:
        for node in root.all("light"):
            _light(builder, WORLD, world.world_pose() * world.pose_of(node.find("pose")), node, report)
    for scope in world.all_models():
        for node in scope.node.all("light"):
            _light(builder, WORLD, scope.world_pose() * scope.pose_of(node.find("pose")), node, report)
    for link in links:
        for node in link.node.all("light"):
            pose = node.find("pose")
            _light(builder, link.body, link.frame * (pose.pose() if pose is not None else Transform()), node, report)


def _light(builder: ModelBuilder, body: int, pose: Transform, node: Node, report: ImportReport) -> None:
    kind = node.get("type", "point")
    diffuse = node.find("diffuse")
    rgb = diffuse.numbers(4, 3)[:3] if diffuse is not None and diffuse.text.strip() else (1.0, 1.0, 1.0)
    color = np.clip(rgb, 0.0, 1e3)
    strength = float(np.max(color)) * node.number("intensity", 1.0)
    direction = pose.matrix() @ node.vector("direction", (0.0, 0.0, -1.0))
    if kind not in _KINDS or not 0.0 < strength < 1e3 or not node.flag("light_on", True) or not np.any(direction):
        report.add("look", node.title, f"is a light of type {kind!r} without effect", "left out")
        return
    attenuation = [max(node.number(f"attenuation/{name}", start), 0.0)
              for name, start in (("constant", 1.0), ("linear", 0.0), ("quadratic", 0.0))]  # fmt: skip
    builder.add_light(
        kind,
        body,
        tuple(pose.position),
        tuple(direction),
        color=tuple(np.clip(color / np.max(color), 0.0, 1.0)),
        intensity=strength,
        attenuation=tuple(attenuation) if any(attenuation) else (1.0, 0.0, 0.0),
        cutoff=min(max(0.5 * node.number("spot/outer_angle", 1.0), 1e-2), 0.5 * math.pi),
        exponent=min(max(node.number("spot/falloff", 0.0), 0.0), 128.0),
        shadow=node.flag("cast_shadows", kind == "directional"),
        label=_unused_label(clean_name(node.get("name") or "light"), [found.label for found in builder.lights]),
    )


def _unused_label(label: str, taken: list[str]) -> str:
    number, unused = 1, label
    while unused in taken:
        number += 1
        unused = f"{label}_{number}"
    return unused
