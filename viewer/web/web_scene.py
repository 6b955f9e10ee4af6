"""Conversion of the drawn objects (the stage) to nodes of a viser scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim.stage.floor import Ground
from gpusim.stage.frames import Frames
from gpusim.stage.meshes import TriangleMesh
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Batch, Stage
from gpusim.typing import Array
from gpusim.viewer.gl.lighting import grid_spacing

ROOT = "/stage"
_SEGMENTS = 32
_STILL = 1e-6
"""Minimum pose change that the server sends to browsers. Changes of position are divided by the scene's radius."""
_FLOOR = (214, 216, 219)
_LINES, _SECTIONS = (190, 193, 197), (160, 164, 170)
_OPAQUE = 255
_SURROUNDINGS = 0.6
"""Brightness of the environment light."""
_VISIBLE = 60.0
"""Distance at which the grid lines of the ground fade, divided by the scene's radius."""


@dataclass
class _Node:
    """Instances of one viser node, and their last sent poses."""

    handle: Any
    chosen: Array
    sent: tuple[Array, Array, Array]


def set_up_lights(scene: Any) -> None:
    """Set the environment light of a viser scene."""
    scene.configure_environment_map("city", environment_intensity=_SURROUNDINGS)


class WebScene:
    """Viser scene with nodes for all objects of a stage.

    Args:
        scene: scene of a viser server.
        stage: stage to draw.
        poses: initial poses.

    Attributes:
        stage: as given.
        updates: number of arrays sent since the start.
    """

    def __init__(self, scene: Any, stage: Stage, poses: Poses) -> None:
        self._scene, self.stage, self.updates = scene, stage, 0
        scene.set_up_direction(stage.up)
        self._root = scene.add_frame(ROOT, show_axes=False)
        self._shift = np.zeros(3)
        arrays = _arrays(stage.frames(poses))
        rgba = stage.rgba()
        self._nodes = [node for batch in stage.batches for node in self._add(batch, rgba, arrays)]
        self._grounds: dict[tuple[int, int], tuple[Any, Array | None]] = {}
        self._move_grounds(poses)

    def _add(self, batch: Batch, rgba: Array, arrays: tuple[Array, ...]) -> list[_Node]:
        """Add the instances of a batch."""
        every = np.arange(batch.first, batch.first + batch.count)
        mesh = batch.mesh.make(_SEGMENTS)
        name = f"{ROOT}/{batch.first}"
        if not batch.mesh.dressed or (batch.picture is None and mesh.colors is None):
            return [self._node(name, every, arrays, self._plain(batch, mesh, rgba[every]))]
        colors, group = np.unique(rgba[every], axis=0, return_inverse=True)
        nodes = []
        for k, color in enumerate(colors):
            members = every[group.reshape(-1) == k]
            nodes.append(self._node(f"{name}_{k}", members, arrays, {"mesh": _dressed(batch, mesh, color)}))
        return nodes

    def _plain(self, batch: Batch, mesh: TriangleMesh, rgba: Array) -> dict[str, Any]:
        looks: dict[str, Any] = {"vertices": mesh.positions, "faces": mesh.triangles, "batched_colors": rgba[:, :3]}
        looks["side"] = "double" if batch.mesh.open else "front"
        if np.any(rgba[:, 3] < _OPAQUE):
            looks["batched_opacities"] = rgba[:, 3] / _OPAQUE
        return looks

    def _node(self, name: str, chosen: Array, arrays: tuple[Array, ...], looks: dict[str, Any]) -> _Node:
        position, wxyz, scale = (array[chosen] for array in arrays)
        add = self._scene.add_batched_meshes_trimesh if "mesh" in looks else self._scene.add_batched_meshes_simple
        poses = {"batched_positions": position, "batched_wxyzs": wxyz, "batched_scales": scale}
        return _Node(add(name, **looks, **poses, lod="off"), chosen, (position, wxyz, scale))

    def _add_ground(self, name: str, ground: Ground) -> Any:
        stage = self.stage
        color = _FLOOR if ground.finish is None else tuple(round(255 * c) for c in _mixed(ground))
        if not ground.level:
            opacity = 1.0 if ground.finish is None else ground.finish.alpha
            triangles = np.array([[0, 1, 2], [0, 2, 3]])
            corners = ground.half * np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
            return self._scene.add_mesh_simple(name, corners, triangles, color=color, opacity=opacity, side="double")
        cell = grid_spacing(2.0 * stage.home.radius)
        lines = {"cell_color": _LINES, "section_color": _SECTIONS} if ground.finish is None else {}
        lines = lines or {"cell_color": color, "section_color": color}
        return self._scene.add_grid(
            name, infinite_grid=True, cell_size=cell, section_size=5.0 * cell, plane_color=color, plane_opacity=1.0,
            fade_distance=_VISIBLE * stage.home.radius, shadow_opacity=0.25, **lines,
        )  # fmt: skip

    def _move_grounds(self, poses: Poses) -> None:
        """Move the drawn planes that are fixed to moving bodies."""
        for number, ground in enumerate(self.stage.grounds):
            for world, point, axes in self.stage.ground_poses(ground, poses):
                handle, before = self._grounds.get((number, world), (None, None))
                if handle is None:
                    handle = self._add_ground(f"{ROOT}/ground_{number}_{world}", ground)
                now = np.concatenate([axes, point[:, None]], axis=1)
                self._grounds[number, world] = handle, now
                if before is None or not np.array_equal(before, now):
                    position, wxyz, _ = _arrays(Frames.from_transforms(now[None]))
                    handle.position, handle.wxyz = position[0], wxyz[0]

    def show(self, poses: Poses) -> None:
        """Send all changed poses to the browsers."""
        arrays = _arrays(self.stage.frames(poses))
        tolerance = (_STILL * self.stage.home.radius, _STILL, _STILL)
        for node in self._nodes:
            now = tuple(array[node.chosen] for array in arrays)
            moved = [
                np.abs(a - b).max(initial=0.0) > e for a, b, e in zip(now, node.sent, tolerance, strict=True)
            ]  # one message for each array
            for name, array, changed in zip(("positions", "wxyzs", "scales"), now, moved, strict=True):
                if changed:
                    setattr(node.handle, f"batched_{name}", array)
                    self.updates += 1
            chosen = (new if changed else old for new, old, changed in zip(now, node.sent, moved, strict=True))
            node.sent = next(chosen), next(chosen), next(chosen)
        self._move_grounds(poses)

    def shift(self, shift: Array) -> None:
        """Move all drawn objects by ``shift`` (m), to keep a followed body at the center of all views."""
        if np.abs(shift - self._shift).max() > _STILL * self.stage.home.radius:
            self._root.position, self._shift = shift, shift
            self.updates += 1

    @property
    def shifted(self) -> Array:
        """Current shift (3,) of all objects in the browsers, m."""
        return self._shift


def _arrays(frames: Frames) -> tuple[Array, Array, Array]:
    """Return positions, quaternions wxyz and scales in viser's format."""
    wxyz = np.roll(frames.quaternion, 1, axis=1)
    position, rotation, scale = (np.asarray(a, np.float32) for a in (frames.position, wxyz, frames.scale))
    return position, rotation, scale


def _mixed(ground: Ground) -> Array:
    """Return the sRGB color of a drawn plane times the mean color of its texture."""
    color = np.ones(3) if ground.finish is None else np.asarray(ground.finish.color)
    return color if ground.texture is None else color * ground.texture.mean()


def _dressed(batch: Batch, mesh: TriangleMesh, rgba: Array) -> Any:
    """Return a trimesh mesh with the texture or the vertex colors of a batch."""
    import trimesh

    solid: Any = trimesh.Trimesh(mesh.positions, mesh.triangles, vertex_normals=mesh.normals, process=False)
    if batch.picture is None or mesh.texcoords is None:
        solid.visual.vertex_colors = np.column_stack([np.asarray(mesh.colors), np.full(len(mesh.positions), rgba[3])])
        return solid
    from PIL import Image

    pixels = batch.picture.pixels
    mode = "MASK" if pixels.shape[-1] > 3 else "BLEND" if rgba[3] < _OPAQUE else "OPAQUE"
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=Image.fromarray(pixels), baseColorFactor=rgba, metallicFactor=0.0, roughnessFactor=0.8,
        alphaMode=mode, doubleSided=batch.mesh.open,
    )  # fmt: skip
    solid.visual = trimesh.visual.TextureVisuals(uv=mesh.texcoords[:, :2], material=material)
    return solid
