from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gpusim
from gpusim.scene import Scene, load_scene

from . import models
from .march import advance, failure, march, simulation
from .reference_data import load
from .setups import Result, Setup, read

SHORTEST_PERIOD = 0.05
CHAIN_LINKS = 10


def spring_masses(setup: Setup, horizon: float | None, result: Result) -> None:
    reference = load("case3a")
    variants = reference.record["columns"]
    limit = horizon or float(reference.times[-1])
    names = [f"{variant['col']}_m" for variant in variants]
    scene = models.spring_masses()
    samples = march(
        scene,
        setup,
        reference.times,
        limit,
        lambda sim: [float(read(sim, f"joint.rail{i}.position")) for i in range(len(variants))],
    )
    expected = reference.table(*names)[samples.rows]
    # The tighter of the static deflection and what was really traveled: a slow variant must not hide its error.
    static = np.array([abs(variant["z_static"]) for variant in variants])
    amplitude = np.minimum(static, np.abs(expected).max(axis=0))
    relative = np.abs(samples.found - expected) / amplitude
    periods = [2.0 * np.pi * np.sqrt(reference.record["m"] / variant["k"]) for variant in variants]
    result.failure = samples.failure
    _report_relative(result, [variant["col"] for variant in variants], relative, periods)
    result.joint_gap = samples.joint_gap
    # A passive spring carries every mass: it moves no farther than twice its static deflection, and than gravity
    # takes it before a spring that is far stiffer than the step can see answers.
    free_fall = reference.record["g"] * setup.dt**2
    result.extra["overshoot"] = float((np.abs(samples.found).max(axis=0) / (2.0 * static + free_fall)).max())


def quarter_car(setup: Setup, horizon: float | None, result: Result) -> None:
    reference = load("case3b")
    parameters = reference.record["parameters"]
    limit = horizon or float(reference.times[-1])
    labels, relative, periods, gaps, peak = [], [], [], [], 0.0
    for variant in reference.record["variants"]:
        scene = load_scene("quarter_car", spring_stiffness=float(variant["k_s"]), spring_damping=float(variant["c_s"]))
        samples = march(
            scene,
            setup,
            reference.times,
            limit,
            lambda sim: [float(read(sim, f"joint.{name}.position")) for name in ("body", "wheel")],
        )
        expected = reference.table(*variant["columns"])[samples.rows]
        relative.append(np.abs(samples.found - expected).max(axis=1) / parameters["h"])
        labels.append(f"k{variant['k_s']:.0e}")
        stiffest = variant["k_s"] + parameters["k_t"]
        periods.append(2.0 * np.pi * float(np.sqrt(parameters["m_u"] / stiffest)))
        gaps.append(samples.joint_gap)
        result.failure = result.failure or samples.failure
        peak = max(peak, float(np.abs(samples.found).max()) / parameters["h"])
    _report_relative(result, labels, np.stack(relative, axis=1), periods)
    result.joint_gap = max(gaps)
    result.extra["overshoot"] = peak / 2.0  # a passive car on a step of height h rises to less than 2 h


def _report_relative(result: Result, labels: list[str], relative: np.ndarray, periods: list[float]) -> None:
    counts = np.array(periods) >= SHORTEST_PERIOD
    result.unit = "of amplitude"
    result.max_error = float(relative[:, counts].max())
    result.final_error = float(relative[-1, counts].max())
    result.extra["late"] = float(relative[-len(relative) // 5 :].max())
    for label, error in zip(labels, relative.max(axis=0), strict=True):
        result.extra[label] = float(error)


def hanging_chain(setup: Setup, horizon: float | None, result: Result) -> None:
    scene = load_scene("chain", horizontal=False)
    sim = simulation(scene, setup)
    expected = load("B03").columns["tension_N"]
    steps = round((horizon or 10.0) / setup.dt)
    stretch, gaps = [], []
    reached = 0
    for step in range(1, steps + 1):
        sim.step()
        if not reached and _tension_error(sim, expected) < 0.01:
            reached = step
        if step % 50 == 0 or step == steps:
            stretch.append(abs(float(read(sim, "body.ball.position")[2]) + 2.0))
            gaps.append(float(read(sim, "sim.joint_drift")))
    result.max_error, result.final_error = max(stretch), stretch[-1]
    result.joint_gap = max(gaps)
    result.extra["tension"] = _tension_error(sim, expected)
    result.extra["steps to 1 %"] = float(reached or np.inf)
    result.failure = failure(sim)


def _tension_error(sim: gpusim.Simulation, expected: np.ndarray) -> float:
    found = [float(np.linalg.norm(read(sim, f"joint.joint{i}.reaction")[:3])) for i in range(CHAIN_LINKS + 1)]
    return float(np.abs(np.array(found) / expected - 1.0).max())


def _hold(scene: Scene, setup: Setup, horizon: float | None, result: Result) -> None:
    """Return the drift (m) of a piston in 0.5 s with a closed valve."""
    sim = simulation(scene, setup)
    start = float(read(sim, "cylinder.lift.position"))
    drift = []
    for _ in range(round((horizon or 0.5) / setup.dt)):
        advance(sim, scene, 1)
        drift.append(abs(float(read(sim, "cylinder.lift.position")) - start))
    result.max_error, result.final_error = max(drift), drift[-1]
    result.joint_gap = float(read(sim, "sim.joint_drift"))
    result.failure = failure(sim)


def hold_lift(setup: Setup, horizon: float | None, result: Result) -> None:
    _hold(load_scene("hydraulic_lift", variant="closed_center", command=0.0), setup, horizon, result)


def hold_boom(setup: Setup, horizon: float | None, result: Result) -> None:
    _hold(load_scene("boom_crane", command=0.0), setup, horizon, result)


def free_chain(setup: Setup, horizon: float | None, result: Result) -> None:
    sim = simulation(load_scene("chain", links=4, link_length=0.25, mass_ratio=0.0, horizontal=True), setup)
    duration = horizon or 60.0
    stride = max(1, round(0.01 / setup.dt))
    energy, potential, gaps = [], [], []
    for _ in range(round(duration / (stride * setup.dt)) + 1):
        potential.append(float(read(sim, "sim.potential_energy")))
        energy.append(potential[-1] + float(read(sim, "sim.kinetic_energy")))
        gaps.append(float(read(sim, "sim.joint_drift")))
        sim.step(stride)
    scale = max(potential) - min(potential)
    change = (np.array(energy) - energy[0]) / scale
    result.unit = "of scale"
    result.max_error, result.final_error = float(np.abs(change).max()), float(abs(change[-1]))
    slope = np.polyfit(np.linspace(0.0, 1.0, len(change)), change, 1)[0]
    result.extra["trend"] = abs(float(slope))
    result.joint_gap = max(gaps)
    result.failure = failure(sim)


CASES: dict[str, Callable[[Setup, float | None, Result], None]] = {
    "case3a": spring_masses,
    "case3b": quarter_car,
    "B03": hanging_chain,
    "free_chain": free_chain,
    "hold_lift": hold_lift,
    "hold_boom": hold_boom,
}
