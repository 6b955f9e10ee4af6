"""Heaps of shapes for the tests of contacts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.numpy.backend import NumpyBackend

DT = 2e-3


def random_pose(rng: np.random.Generator, size: float) -> Transform:
    q = rng.normal(size=4)
    place = rng.uniform(-size, size, 3) + np.array([0.0, 0.0, size])
    return Transform(place, q / np.linalg.norm(q))


def add_shape(b: ModelBuilder, body: int, k: int, **options: Any) -> int:
    """A box, ball or capsule."""
    if k % 3 == 0:
        return int(b.add_shape_box(body, (0.05, 0.08, 0.1), **options))
    if k % 3 == 1:
        return int(b.add_shape_sphere(body, 0.08, **options))
    return int(b.add_shape_capsule(body, 0.05, 0.06, **options))


def pile(bodies: int, seed: int = 1) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder()
    b.add_shape_plane(-1)
    b.add_shape_box(-1, (2.0, 0.05, 0.05), xform=Transform((0.0, 0.1, 0.1)))
    size = 0.25 * (bodies / 20.0) ** (1.0 / 3.0)
    for k in range(bodies):
        spin = rng.normal(size=3)
        body = b.add_body(xform=random_pose(rng, size), linear_velocity=-spin, angular_velocity=spin)
        add_shape(b, body, k, group=1 + k % 2, mask=1 if k % 7 == 0 else 3)
        if k % 4 == 0:
            add_shape(b, body, k + 1, xform=Transform((0.0, 0.1, 0.0)))
        if k % 10 == 9:
            b.add_joint_revolute(k - 1, k, axis=(0, 0, 1))
    moving = np.array([s.body for s in b.shapes])
    for first in range(2, len(b.shapes) - 3, 5):
        pair = first, first + 3
        if moving[pair[0]] != moving[pair[1]]:
            (b.add_collision_pair if first % 2 else b.exclude_collision_pair)(*pair)
    return b


def simulate(builder: ModelBuilder, num_worlds: int = 1, **config: Any) -> tuple[Simulation, NumpyBackend]:
    sim = Simulation(builder.finalize(), num_worlds, backend="numpy", config=SolverConfig(dt=DT, **config))
    assert isinstance(sim.backend, NumpyBackend)
    return sim, sim.backend


def shift_worlds(sim: Simulation, seed: int = 5) -> None:
    rng = np.random.default_rng(seed)
    position = sim.state.arrays["position"]
    position[:, :-1] += 0.03 * rng.normal(size=position[:, :-1].shape)
    sim.invalidate()
