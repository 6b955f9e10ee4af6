"""Reference trajectories, and ``run``, which measures the error of a case.

The coordinates (x, y) of planar reference cases are (x, z) in the scenes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpusim
from gpusim.scene import Scene, load_scene

from . import models, special
from .march import march
from .reference_data import Reference, load
from .setups import Result, Setup, point, read

Observe = Callable[[gpusim.Simulation], Any]
Errors = Callable[[np.ndarray, np.ndarray], np.ndarray]


def distance(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Euclidean distance of each row of ``found`` and ``expected``."""
    return np.linalg.norm(found - expected, axis=1)


def first_column(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return np.abs(found - expected)[:, 0]


def wrapped_angle(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Absolute difference of angles (rad), from 0 to pi."""
    difference = (found - expected)[:, 0]
    return np.abs((difference + np.pi) % (2.0 * np.pi) - np.pi)


def attitude(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    v, w = found[:, :3], found[:, 3:]
    v0, w0 = expected[:, 1:], expected[:, :1]
    vector = w0 * v - w * v0 - np.cross(v0, v)
    scalar = np.abs(w0 * w + np.sum(v0 * v, axis=1, keepdims=True))[:, 0]
    return 2.0 * np.arctan2(np.linalg.norm(vector, axis=1), scalar)


@dataclass(frozen=True)
class Trajectory:
    """A case that compares its output with a reference trajectory at the times of the reference.

    Attributes:
        columns: names of the output columns in the reference's CSV.
        scene: function that builds the model for a setup.
        observe: function that reads the outputs.
        unit: unit of the error.
        errors: function that returns the errors of the outputs, per sample.
        horizon: compared time (s), or None for the whole reference.
        conserves: whether the model keeps its energy.
        steady: time spans (s) in which relative errors are compared.
    """

    columns: tuple[str, ...]
    scene: Callable[[Setup], Scene]
    observe: Observe
    unit: str = "m"
    errors: Errors = distance
    horizon: float | None = None
    conserves: bool = True
    steady: tuple[tuple[float, float], ...] = ()


def _xz(position: np.ndarray) -> np.ndarray:
    return position[[0, 2]]


def _crank_angle(sim: gpusim.Simulation) -> list[float]:
    x, _, z = point(sim, "crank", (0.1, 0.0, 0.0))
    return [float(np.arctan2(z, x))]


def _cylinder(sim: gpusim.Simulation) -> list[float]:
    names = ("position", "velocity", "pressure_a", "pressure_b")
    return [float(read(sim, f"cylinder.lift.{name}")) for name in names]


def _lift(variant: str) -> Callable[[Setup], Scene]:
    def build(setup: Setup) -> Scene:
        coupling = "papers" if setup.scheme == "semi_implicit" else "implicit"
        return load_scene("hydraulic_lift", variant=variant, coupling=coupling)

    return build


def _hydraulic(scene: Callable[[Setup], Scene], steady: tuple[tuple[float, float], ...] = ()) -> Trajectory:
    columns = ("xp_m", "vp_mps", "pA_Pa", "pB_Pa")
    return Trajectory(columns, scene, _cylinder, errors=first_column, conserves=False, steady=steady)


def _motor(**parameters: Any) -> Trajectory:
    return Trajectory(
        ("alpha_L_rad",),
        lambda _: load_scene("dc_motor_rig", **parameters),
        lambda sim: [float(read(sim, "joint.hinge.position"))],
        unit="rad",
        conserves=False,
    )


#: Hydraulic cases follow the papers' coupling where the papers' scheme is asked for (case 1 only).
CASES: dict[str, Trajectory] = {
    "A01": Trajectory(("x", "y"), lambda _: models.simple_pendulum(), lambda sim: _xz(read(sim, "body.mass.position"))),
    "A02": Trajectory(
        ("x_B0", "y_B0"),
        lambda _: load_scene("four_bar"),
        lambda sim: _xz(point(sim, "vertical0", (0.0, 0.0, 1.0))),
    ),
    "A04": Trajectory(
        ("xP3", "yP3", "zP3"), lambda _: load_scene("bricard"), lambda sim: read(sim, "body.bar2.position")
    ),
    "A05": Trajectory(
        ("s",), lambda _: load_scene("flyball"), lambda sim: read(sim, "body.slider.position")[2:], conserves=False
    ),
    "B01": Trajectory(
        ("x2", "y2"),
        lambda _: load_scene("double_pendulum"),
        lambda sim: _xz(point(sim, "rod2", (0.0, 0.0, -1.0))),
        horizon=2.0,
    ),
    "C01": Trajectory(
        ("qw", "qx", "qy", "qz"),
        lambda _: load_scene("spinning_top", free=True),
        lambda sim: read(sim, "body.top.orientation"),
        unit="rad",
        errors=attitude,
        horizon=10.0,
    ),
    "C03": Trajectory(
        ("xCOM", "yCOM", "zCOM"),
        lambda _: load_scene("spinning_top"),
        lambda sim: point(sim, "top", (0.0, 0.0, 0.1)),
    ),
    "E01": Trajectory(
        ("crank_angle",), lambda _: load_scene("slider_crank"), _crank_angle, unit="rad", errors=wrapped_angle
    ),
    "case1a": _hydraulic(_lift("step"), steady=((1.5, 2.7),)),
    "case1c": _hydraulic(_lift("ramped"), steady=((2.0, 3.9), (5.0, 7.2))),
    "case1d": _hydraulic(_lift("closed_center")),
    "case2a": _motor(electrical_time_constant=0.0),
    "case2b": _motor(),
    "case2d": _motor(load="pendulum"),
    "case4": _hydraulic(lambda _: load_scene("boom_crane")),
    "case5": Trajectory(
        ("s_m",),
        lambda _: load_scene("chrono_crane"),
        lambda sim: [float(read(sim, "cylinder.lift.position")) + 0.5],
        conserves=False,
    ),
}


def run(
    case: str,
    *,
    dt: float = 1e-3,
    substeps: int = 1,
    dtype: Any = "float64",
    joint_solver: Any = "direct",
    iterations: int = 8,
    scheme: Any = "second_order",
    backend: str = "numpy",
    horizon: float | None = None,
) -> Result:
    """Run a case up to ``horizon`` s and measure its errors."""
    setup = Setup(dt, substeps, dtype, joint_solver, iterations, scheme, backend)
    trajectory = CASES.get(case)
    result = Result(case, trajectory.unit if trajectory else "m")
    start = time.perf_counter()
    try:
        if trajectory:
            _follow(trajectory, setup, horizon, result)
        else:
            special.CASES[case](setup, horizon, result)
    except gpusim.SimulationError as error:
        result.failure = str(error)
    result.finished = not result.failure
    result.wall_time = time.perf_counter() - start
    return result


def _follow(case: Trajectory, setup: Setup, horizon: float | None, result: Result) -> None:
    reference = load(result.case)
    limit = min(h for h in (horizon, case.horizon, float(reference.times[-1])) if h is not None)
    samples = march(case.scene(setup), setup, reference.times, limit, case.observe)
    expected = reference.table(*case.columns)[samples.rows]
    errors = case.errors(samples.found, expected)
    result.max_error, result.final_error = float(errors.max()), float(errors[-1])
    result.joint_gap = samples.joint_gap
    result.energy_error = samples.energy_error if case.conserves else None
    result.failure = samples.failure
    if case.steady:
        result.extra.update(_steady_errors(case, samples.found, reference, samples.rows))


def _steady_errors(case: Trajectory, found: np.ndarray, reference: Reference, rows: np.ndarray) -> dict[str, float]:
    """Maximum relative error in the steady time spans of each output except the first."""
    times = reference.times[rows]
    inside = np.zeros(len(rows), dtype=bool)
    for start, stop in case.steady:
        inside |= (times >= start) & (times <= stop)
    if not inside.any():
        return {}
    expected = reference.table(*case.columns)[rows]
    relative = np.abs(found[inside] / expected[inside] - 1.0).max(axis=0)
    return {f"steady {name}": float(value) for name, value in zip(case.columns[1:], relative[1:], strict=True)}
