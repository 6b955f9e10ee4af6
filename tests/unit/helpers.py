from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

SOLVERS = ("direct", "colored")
both_backends = pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
NO_GRAVITY = (0.0, 0.0, 0.0)
G = 9.81

# Frames without any special direction.
PLACE = Transform.from_rpy((0.3, -0.2, 0.9), (0.4, -0.7, 1.1))
FRAME_A = Transform.from_rpy((0.15, 0.05, -0.1), (-0.3, 0.5, 0.8))
FRAME_B = Transform.from_rpy((-0.07, 0.12, 0.2), (1.2, 0.1, -0.6))


def simulate(
    builder: ModelBuilder, num_worlds: int | None = None, dtype: str = "float64", backend: str = "auto", **config: Any
) -> Simulation:
    return Simulation(builder.finalize(), num_worlds, backend, dtype, SolverConfig(**config))


def ball_body(b: ModelBuilder, mass: float = 2.0, inertia: float = 0.05, **kwargs: Any) -> int:
    """A body with the same inertia about every axis."""
    return int(b.add_body(mass=mass, inertia=(inertia,) * 3, **kwargs))


def slider(b: ModelBuilder, mass: float = 2.0, label: str = "slide", y: float = 0.0, **joint: Any) -> int:
    place = Transform((0.0, y, 0.0))
    body = ball_body(b, mass, xform=place, label=label)
    return int(b.add_joint_prismatic(-1, body, parent_xform=place, axis=(1, 0, 0), label=label, **joint))


def wheel(b: ModelBuilder, inertia: float = 0.1, label: str = "wheel", y: float = 0.0, **joint: Any) -> int:
    place = Transform((0.0, y, 0.0))
    body = ball_body(b, 1.0, inertia, xform=place, label=label)
    return int(b.add_joint_revolute(-1, body, parent_xform=place, axis=(0, 1, 0), label=label, **joint))


def rows_of(model: gpusim.Model, label: str) -> int:
    t = model.topology
    return int(t.row_used[t.constraint_labels.index(label)].sum()) if label in t.constraint_labels else 0


def history(sim: Simulation, name: str, steps: int, dt: float | None = None) -> np.ndarray:
    values = [sim.read(name)]
    for _ in range(steps):
        sim.step(1, dt=dt)
        values.append(sim.read(name))
    return np.array(values)


def bits(sim: Simulation, world: int) -> dict[str, bytes]:
    sim.runtime.current_angles()
    return {name: np.ascontiguousarray(array[world]).tobytes() for name, array in sim.state.variables().items()}


def different(a: dict[str, bytes], b: dict[str, bytes]) -> list[str]:
    assert a.keys() == b.keys()
    return [name for name in a if a[name] != b[name]]


def order(error: Callable[[float], float], dt: float) -> float:
    """Order of convergence: log2 of the errors' ratio at dt and dt/2."""
    return float(np.log2(error(dt) / error(dt / 2.0)))
