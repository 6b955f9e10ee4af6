from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform

G = 9.81
DT = 1.0 / 120.0


def ground(slope: float = 0.0, **material: Any) -> ModelBuilder:
    b = ModelBuilder(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    b.add_shape_plane(-1, material=Material(**material), label="ground")
    return b


def add_box(
    b: ModelBuilder, x: float = 0.0, z: float = 0.1, mass: float = 2.0, label: str = "box", **given: Any
) -> int:
    """A cube of 0.2 m with the shape ``<label>_shape``."""
    inertia = (mass * 0.2**2 / 6.0,) * 3
    body = b.add_body(mass, inertia, xform=Transform((x, 0.0, z)), label=label, **given)
    b.add_shape_box(body, (0.1, 0.1, 0.1), label=f"{label}_shape")
    return int(body)


def add_ball(b: ModelBuilder, x: float = 0.0, z: float = 0.1, label: str = "ball", **given: Any) -> int:
    """A ball of 1 kg and 0.1 m with the shape ``<label>_shape``."""
    body = b.add_body(1.0, (0.004,) * 3, xform=Transform((x, 0.0, z)), label=label, **given)
    b.add_shape_sphere(body, 0.1, label=f"{label}_shape")
    return int(body)


def simulate(builder: ModelBuilder, backend: str = "native", num_worlds: int = 1, **config: Any) -> Simulation:
    settings = {"dt": DT, "substeps": 2, "iterations": 60, "contact_slop": 0.0, **config}
    return Simulation(builder.finalize(), num_worlds, backend=backend, config=SolverConfig(**settings))


def settled(builder: ModelBuilder, backend: str, steps: int = 240, num_worlds: int = 1, **config: Any) -> Simulation:
    fast = simulate(builder, "native", num_worlds, **config)
    fast.step(steps)
    return handed_over(fast, builder, backend, **config)


def handed_over(fast: Simulation, builder: ModelBuilder, backend: str, **config: Any) -> Simulation:
    if backend == "native":
        return fast
    sim = simulate(builder, backend, fast.num_worlds, **config)
    for name, array in fast.read_state().items():
        sim.state.arrays[name][:] = array
    for name in sim.runtime.parameters:
        sim.runtime.parameters[name] = fast.runtime.parameters[name].copy()
    sim.backend.work.refresh_parameters()
    sim.invalidate()
    return sim
