from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

import gpusim


@dataclass(frozen=True)
class Setup:
    """Solver settings of one run."""

    dt: float = 1e-3
    substeps: int = 1
    dtype: Literal["float64", "float32"] = "float64"
    joint_solver: Literal["direct", "colored"] = "direct"
    iterations: int = 8
    scheme: Literal["second_order", "semi_implicit"] = "second_order"
    backend: str = "numpy"

    def config(self) -> gpusim.SolverConfig:
        return gpusim.SolverConfig(
            dt=self.dt,
            substeps=self.substeps,
            iterations=self.iterations,
            joint_solver=self.joint_solver,
            scheme=self.scheme,
        )

    def title(self) -> str:
        parts = [self.joint_solver if self.joint_solver == "direct" else f"colored {self.iterations} sweeps"]
        parts.append(f"{1e3 * self.dt:g} ms" + (f" x {self.substeps}" if self.substeps > 1 else ""))
        parts += [self.dtype] * (self.dtype != "float64") + ["semi_implicit"] * (self.scheme == "semi_implicit")
        parts += [self.backend] * (self.backend != "numpy")
        return ", ".join(parts)


@dataclass
class Result:
    """Results of a run.

    Attributes:
        case: short name ("A01").
        unit: unit of the errors ("m" or "rad").
        max_error: greatest error of the output at the reference's times.
        final_error: error at the last time of the reference.
        energy_error: greatest |E - E0|, J. None if the case loses energy.
        joint_gap: greatest joint gap, m.
        wall_time: wall time of the run, s.
        finished: whether the world ran to the end.
        failure: reason why the world failed.
        extra: other results by name.
    """

    case: str
    unit: str
    max_error: float = float("inf")
    final_error: float = float("inf")
    energy_error: float | None = None
    joint_gap: float = float("inf")
    wall_time: float = 0.0
    finished: bool = False
    failure: str = ""
    extra: dict[str, float] = field(default_factory=dict)


def point(sim: gpusim.Simulation, body: str, local: tuple[float, float, float]) -> np.ndarray:
    position, rotation = read(sim, f"body.{body}.position"), read(sim, f"body.{body}.orientation")
    return position + gpusim.Transform((0.0, 0.0, 0.0), rotation).rotate(np.asarray(local))


def read(sim: gpusim.Simulation, signal: str) -> np.ndarray:
    value: Any = sim.read(signal, numpy=True)
    return np.asarray(value, dtype=np.float64)[0]


def total_energy(sim: gpusim.Simulation) -> float:
    """Kinetic plus potential energy (J) of world 0."""
    return float(read(sim, "sim.kinetic_energy") + read(sim, "sim.potential_energy"))
