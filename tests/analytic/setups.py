"""How a reference case is run, and what a run yields."""

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
        """The same as a solver configuration."""
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
    """What one run yields.

    Attributes:
        case: short name ("A01").
        unit: of the errors ("m" or "rad").
        max_error: greatest error of the listed output at the reference's own times.
        final_error: error at the last of them.
        energy_error: greatest |E - E0|, J; None where the case loses energy by itself.
        joint_gap: greatest distance between joint halves, m.
        wall_time: of the run, s.
        finished: the world was not stopped.
        failure: why it was.
        extra: further figures by name.
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
    """A signal of world 0 as float64: a scalar array or its components."""
    value: Any = sim.read(signal, numpy=True)
    return np.asarray(value, dtype=np.float64)[0]


def total_energy(sim: gpusim.Simulation) -> float:
    """Kinetic and potential energy (J) of world 0 at a synchronized time."""
    return float(read(sim, "sim.kinetic_energy") + read(sim, "sim.potential_energy"))
