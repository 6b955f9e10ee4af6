"""Renderer that draws a stage into framebuffers of the current OpenGL context.

Positions on the GPU are relative to the eye, which keeps precision far from the origin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from OpenGL import GL

from gpusim.stage.floor import Ground, plane_pose
from gpusim.stage.materials import BRIGHT, BRIGHTER, DIMMED_GROUND
from gpusim.stage.poses import Bounds, Poses
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.gl import lighting
from gpusim.viewer.gl.lighting import Rig, ShadowView
from gpusim.viewer.gl.objects import Framebuffer, Program, Texture
from gpusim.viewer.gl.quality import Quality
from gpusim.viewer.gl.scene_buffers import SceneBuffers
from gpusim.viewer.gl.see_through import SeeThrough
from gpusim.viewer.gl.shade import GroundShade
from gpusim.viewer.gl.textures import textures_of

_AMBIENT = 62
"""Ambient light: percentage of the sky's light that reaches a surface."""
_HORIZON = 400.0
"""Half of the drawn ground's edge length, divided by max(camera distance, scene radius)."""


@dataclass(frozen=True)
class View:
    """Data of one frame: camera, poses, lights, and the transforms that the renderer computes from them.

    Attributes:
        camera: camera of the picture.
        to_clip: matrix (4, 4) from positions relative to the eye to clip coordinates.
        transforms: transforms (instances, 3, 4) to the world frame.
        bounds: bounding sphere of all instances.
        poses: poses of the bodies.
        rig: the lights.
    """

    camera: PinholeCamera
    to_clip: Array
    transforms: Array
    bounds: Bounds
    poses: Poses
    rig: Rig

    @property
    def eye(self) -> Array:
        """Position of the camera (m)."""
        return np.array(self.camera.position)


class Renderer:
    """Renderer of one stage. The constructor and all methods need a current OpenGL context.

    Args:
        stage: the stage to draw.
        quality: the quality level.
        glass: if True, draw a world shape as glass while it hides bodies. Depth and segmentation ignore glass shapes.
    """

    def __init__(self, stage: Stage, quality: Quality, glass: bool = True) -> None:
        self.stage, self.quality = stage, quality
        self._lights = lighting.model_lights(stage.model, stage.num_worlds)
        defines = {
            "SHADOW_TAPS": quality.shadow_taps,
            "SHADOW_RINGS": quality.shadow_rings,
            "SHADOW_RADIUS": quality.shadow_radius,
            "FINE_SHINE": int(quality.fine_shine),
            "AMBIENT": _AMBIENT / 100.0,
            "LIGHTS": len(self._lights),
            "BRIGHT": BRIGHT,
            "BRIGHTER": BRIGHTER,
            "DIMMED_GROUND": DIMMED_GROUND,
        }
        self._solid = Program("solid.vert", "solid.frag", **defines)
        self._ground = Program("ground.vert", "ground.frag", **defines)
        self._sky = Program("sky.vert", "sky.frag", **defines)
        self._shadow = Program("shadow.vert", "shadow.frag")
        self._sensors: tuple[Program, Program] | None = None
        self._textures = textures_of(stage)
        self._dressed = self._textured_ground = None
        if self._textures is not None:
            self._dressed = Program("solid.vert", "solid.frag", **defines, DRESSED=1)
            self._textured_ground = Program("ground.vert", "ground.frag", **defines, DRESSED=1)
        self._buffers = SceneBuffers(stage, quality, self._textures)
        self._empty = GL.glGenVertexArrays(1)
        self._shadow_map = _shadow_map(quality.shadow_size)
        self._see_through = SeeThrough(stage) if glass else None
        level = any(ground.level for ground in stage.grounds)
        self._shade = GroundShade(quality.shade_spokes) if level else None

    def view(self, camera: PinholeCamera, poses: Poses, aspect: float) -> View:
        """Compute the data of a frame, and upload the transforms to the GPU.

        Args:
            camera: camera of the picture.
            poses: poses of the stage's worlds.
            aspect: ratio of picture width to height.
        """
        transforms = self.stage.transforms(poses)
        bounds = self.stage.bounds(transforms)
        near = self._near(camera, poses, bounds, aspect)
        to_clip = camera.to_clip(aspect, near, 2.0 * _HORIZON * max(camera.distance, bounds.radius))
        eye = np.array(camera.position)
        if self._see_through is not None:
            self._buffers.make_glass(self._see_through.hiding(transforms, eye))
        self._buffers.move(transforms, eye)
        rig = lighting.rig_of(self.stage.model, self._lights, poses, bounds, eye, self.stage.up)
        return View(camera, to_clip, transforms, bounds, poses, rig)

    def _near(self, camera: PinholeCamera, poses: Poses, bounds: Bounds, aspect: float) -> float:
        """Return the depth (m) of the near plane, which is in front of all instances and the ground."""
        gaps = [float(np.linalg.norm(bounds.center - camera.position)) - bounds.radius]
        rise = np.tan(0.5 * camera.field_of_view)
        corner = 1.0 / np.sqrt(1.0 + rise**2 * (1.0 + aspect**2))  # depth / distance in the corners of the picture
        for ground in self.stage.grounds:
            if ground.level:
                point, axes = plane_pose(ground, poses, 0)
                gaps.append(corner * abs(float(axes[:, 2] @ (camera.position - point))))
        return max(0.5 * min(gaps), 0.004 * camera.distance)

    def draw(self, view: View, target: Framebuffer) -> None:
        """Draw the picture into ``target``, a framebuffer with color and depth textures."""
        GL.glEnable(GL.GL_DEPTH_TEST)
        GL.glDisable(GL.GL_BLEND)
        GL.glEnable(GL.GL_CULL_FACE)
        GL.glDepthMask(True)
        shadow = self._draw_shadow(view)
        to_shade = self._draw_shade(view)
        target.bind()
        GL.glClear(GL.GL_DEPTH_BUFFER_BIT)
        self._shadow_map.colors_bind()
        self._light(self._solid, view, shadow)
        self._solid.set("glass", 0)
        self._buffers.draw_plain()
        if self._dressed is not None:
            self._light(self._dressed, view, shadow)
            self._dressed.set("glass", 0)
            self._buffers.draw_dressed(self._dressed)
        GL.glDisable(GL.GL_CULL_FACE)
        self._draw_grounds(view, shadow, to_shade)
        self._draw_sky(view, shadow)
        self._draw_transparent(view, shadow)

    def _draw_sky(self, view: View, shadow: ShadowView) -> None:
        self._light(self._sky, view, shadow)
        self._sky.set("from_clip", np.linalg.inv(view.to_clip))
        GL.glDepthFunc(GL.GL_LEQUAL)
        GL.glBindVertexArray(self._empty)
        GL.glDrawArrays(GL.GL_TRIANGLES, 0, 3)
        GL.glDepthFunc(GL.GL_LESS)

    def _draw_grounds(self, view: View, shadow: ShadowView, to_shade: Array | None) -> None:
        for ground in self.stage.grounds:
            program = self._ground
            if ground.texture is not None and self._textured_ground is not None and self._textures is not None:
                program = self._textured_ground
            self._light(program, view, shadow)
            if ground.texture is not None and self._textures is not None:
                self._textures.bind(ground.texture, program)
            program.set("to_shade", np.eye(4) if to_shade is None else to_shade)
            program.set("shade_map", 1)
            program.set("shade_depth", 0.85 if to_shade is not None and ground.level else 0.0)
            self._draw_ground(program, ground, view)

    def _draw_transparent(self, view: View, shadow: ShadowView) -> None:
        """Draw glass and transparent visuals last, from back to front."""
        chosen = self._buffers.transparent
        if not chosen.size:
            return
        depth = (self._buffers.middles(chosen, view.transforms) - view.eye) @ view.camera.forward
        GL.glEnable(GL.GL_CULL_FACE)
        GL.glEnable(GL.GL_BLEND)
        GL.glBlendFunc(GL.GL_SRC_ALPHA, GL.GL_ONE_MINUS_SRC_ALPHA)
        GL.glDepthMask(False)
        current: Program | None = None
        for instance in chosen[np.argsort(-depth, kind="stable")].tolist():
            dressed = self._dressed if self._buffers.is_dressed(instance) else None
            program = self._solid if dressed is None else dressed
            if program is not current:
                current = program
                self._light(program, view, shadow)
                program.set("glass", 1)
            self._buffers.draw_one(instance, program)
        GL.glDepthMask(True)
        GL.glDisable(GL.GL_BLEND)

    def _draw_shade(self, view: View) -> Array | None:
        if self._shade is None:
            return None
        ground = next(ground for ground in self.stage.grounds if ground.level)
        point, axes = plane_pose(ground, view.poses, 0)
        bounds = self._shadow_bounds(view)
        GL.glDisable(GL.GL_CULL_FACE)
        to_shade = self._shade.draw(self._buffers, bounds, point, axes, view.eye)
        GL.glEnable(GL.GL_CULL_FACE)
        self._shade.bind(1)
        return to_shade

    def draw_sensors(self, view: View, target: Framebuffer) -> None:
        """Draw depth along the view axis (m) and body indices into ``target``.

        Pixels without an object have the depth inf. Pixels without a body have the index -1. Instances with an opacity
        below 0.5 are ignored.
        """
        if self._sensors is None:
            self._sensors = Program("sensor.vert", "sensor.frag"), Program("sensor_ground.vert", "sensor.frag")
        GL.glEnable(GL.GL_DEPTH_TEST)
        GL.glDisable(GL.GL_BLEND)
        GL.glDisable(GL.GL_CULL_FACE)
        target.bind()
        GL.glClear(GL.GL_DEPTH_BUFFER_BIT)
        GL.glClearBufferfv(GL.GL_COLOR, 0, np.full(4, np.inf, dtype=np.float32))
        GL.glClearBufferiv(GL.GL_COLOR, 1, np.full(4, -1, dtype=np.int32))
        solid, ground = self._sensors
        solid.use(to_clip=view.to_clip, forward=view.camera.forward)
        self._buffers.draw()
        ground.use(to_clip=view.to_clip, forward=view.camera.forward)
        for plane in self.stage.grounds:
            if plane.solid:
                self._draw_ground(ground, plane, view)

    def draw_instances(self) -> None:
        """Draw all meshes with the current program. See :class:`SceneBuffers` for the vertex attributes."""
        self._buffers.draw()

    def _draw_shadow(self, view: View) -> ShadowView:
        size = self.quality.shadow_size
        shadow = lighting.shadow_view(self._shadow_bounds(view), view.rig.to_light, view.eye, size)
        self._shadow_map.bind()
        GL.glClear(GL.GL_DEPTH_BUFFER_BIT)
        if not view.rig.shadowed:
            return shadow
        GL.glEnable(GL.GL_POLYGON_OFFSET_FILL)
        GL.glPolygonOffset(1.5, 2.0)
        self._shadow.use(to_light_clip=shadow.to_clip)
        self._buffers.draw()
        GL.glDisable(GL.GL_POLYGON_OFFSET_FILL)
        return shadow

    def _shadow_bounds(self, view: View) -> Bounds:
        """Return the sphere that the shadow map covers: all objects, or the region near the camera's target."""
        radius = 3.0 * view.camera.distance
        if view.bounds.radius <= radius:
            return view.bounds
        return Bounds(np.array(view.camera.target), radius)

    def _light(self, program: Program, view: View, shadow: ShadowView) -> None:
        distance = max(view.camera.distance, 0.8 * view.bounds.radius)
        pixel = 1.0 / self.quality.shadow_size
        program.use(
            to_clip=view.to_clip,
            up=self.stage.up,
            to_light=view.rig.to_light,
            sun=view.rig.sun,
            horizon=lighting.HORIZON,
            zenith=lighting.ZENITH,
            bounce=lighting.BOUNCE,
            haze_start=2.2 * distance,
            haze_end=22.0 * distance,
            to_shadow=shadow.to_texture,
            shadow_texel=shadow.texel,
            shadow_pixel=(pixel, pixel),
            shadow_map=0,
            **view.rig.uniforms,
        )

    def _draw_ground(self, program: Program, ground: Ground, view: View) -> None:
        for _, point, axes in self.stage.ground_poses(ground, view.poses):
            height = float(axes[:, 2] @ (view.eye - point))
            if ground.seen_from(height):
                self._draw_square(program, ground, view, point, axes, height)

    def _draw_square(
        self, program: Program, ground: Ground, view: View, point: Array, axes: Array, height: float
    ) -> None:
        size = max(view.camera.distance, view.bounds.radius)
        foot = -height * axes[:, 2]
        from_point = axes[:, :2].T @ (view.eye - point)
        spacing = lighting.grid_spacing(view.camera.distance)
        uniforms: dict[str, Any] = {
            "foot": foot,
            "along_x": axes[:, 0],
            "along_y": axes[:, 1],
            "half_size": float(_HORIZON * size),
            "ground_color": lighting.GROUND if ground.finish is None else ground.finish.linear(),
            "grid_offset": np.fmod(from_point, 10.0 * spacing),
            "grid_spacing": spacing,
            "grid_strength": 0.3 if ground.finish is None else 0.0,
            "patch_center": axes[:, :2].T @ (point - view.eye),
            "patch_half": 0.0 if ground.level else ground.half,
        }
        if ground.texture is not None:
            repeat = np.array(ground.texture.repeat)
            uniforms |= {"repeat": repeat, "texture_offset": np.fmod(from_point * repeat, 1.0) + 0.5}
        for name, value in uniforms.items():
            program.set(name, value)
        GL.glBindVertexArray(self._empty)
        GL.glDrawArrays(GL.GL_TRIANGLE_STRIP, 0, 4)

    def close(self) -> None:
        """Release the GPU memory."""
        if self._shade is not None:
            self._shade.close()
        programs = (self._solid, self._dressed, self._ground, self._textured_ground, self._sky, self._shadow)
        for resource in (*programs, *(self._sensors or ()), self._textures):
            if resource is not None:
                resource.close()
        self._buffers.close()
        self._shadow_map.close()
        GL.glDeleteVertexArrays(1, [self._empty])


class _ShadowMap(Framebuffer):
    def colors_bind(self) -> None:
        """Bind the shadow map's depth texture to texture unit 0."""
        assert self.depth is not None
        self.depth.bind(0)


def _shadow_map(size: int) -> _ShadowMap:
    shadow_map = _ShadowMap(size, size, [], GL.GL_DEPTH_COMPONENT32F)
    texture = shadow_map.depth
    assert isinstance(texture, Texture)
    texture.bind(0)
    GL.glTexParameteri(texture.target, GL.GL_TEXTURE_COMPARE_MODE, GL.GL_COMPARE_REF_TO_TEXTURE)
    GL.glTexParameteri(texture.target, GL.GL_TEXTURE_COMPARE_FUNC, GL.GL_LEQUAL)
    for name in (GL.GL_TEXTURE_MIN_FILTER, GL.GL_TEXTURE_MAG_FILTER):
        GL.glTexParameteri(texture.target, name, GL.GL_LINEAR)
    return shadow_map
