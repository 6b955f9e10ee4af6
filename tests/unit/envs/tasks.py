from __future__ import annotations

from typing import Any

import numpy as np

import gpusim
from gpusim.envs import Offset, Scale, Task, Uniform
from gpusim.scene import Camera, Scene


class Cart(Task):
    """A cart on a rail that a force drives. Control steps are 0.1 s, and episodes are 1 s."""

    dt, decimation, episode = 0.01, 10, 1.0
    actions = {"push": (-20.0, 20.0)}
    signals = ["joint.rail.position", "joint.rail.velocity"]
    goals = {"place": Uniform(-1.0, 1.0)}
    randomize = {
        "body.cart.mass": Scale(0.5, 2.0),
        "body.cart.inertia": Offset(np.zeros((3, 3)), np.diag([0.0, 0.0, 0.05])),
    }
    start = {"joint.rail.position": Uniform(-0.5, 0.5), "joint.rail.velocity": Uniform(-0.1, 0.1)}

    def make_scene(self) -> Scene:
        b = gpusim.ModelBuilder()
        cart = b.add_body(1.0, (0.1, 0.1, 0.1), label="cart")
        rail = b.add_joint_prismatic(-1, cart, axis=(1, 0, 0), label="rail")
        b.add_joint_force(rail, label="push")
        return Scene("cart", "A cart.", b, gpusim.SolverConfig(dt=2e-3), 1.0, camera=Camera((0, -3, 1), (0, 0, 0)))

    def reward(self, s: Any, goal: Any, action: Any) -> Any:
        return -np.abs(s["joint.rail.position"] - goal["place"]) - 0.01 * action[:, 0] ** 2

    def terminated(self, s: Any, goal: Any) -> Any:
        return np.abs(s["joint.rail.position"]) > 2.0

    def success(self, s: Any, goal: Any) -> Any:
        return np.abs(s["joint.rail.position"] - goal["place"]) < 0.1
