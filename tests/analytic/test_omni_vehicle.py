from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import gpusim
from gpusim import EnergyAudit, SolverConfig, rotations
from gpusim.scene import Scene, load_scene

RADIUS, DISTANCE = 0.1, 0.3
AZIMUTHS = np.radians([90.0, 210.0, 330.0])
TANGENTS = np.stack([-np.sin(AZIMUTHS), np.cos(AZIMUTHS)], axis=1)


def massless_rollers(mass: float, yaw: float, wheel: float, torques: np.ndarray, start: Any, times: Any) -> np.ndarray:
    """Return pose and velocity (x, y, angle, v1, v2, turn).

    Equations: Campion, Bastin, d'Andrea-Novel (1996).
    """
    heavy, stiff = mass + 1.5 * wheel / RADIUS**2, yaw + 3.0 * wheel * (DISTANCE / RADIUS) ** 2
    push, turn = torques @ TANGENTS / RADIUS, DISTANCE / RADIUS * torques.sum()

    def rates(_: float, s: np.ndarray) -> list[float]:
        c, z, v1, v2, w = np.cos(s[2]), np.sin(s[2]), *s[3:]
        return [v1 * c - v2 * z, v1 * z + v2 * c, w, (mass * w * v2 + push[0]) / heavy,
                (push[1] - mass * w * v1) / heavy, turn / stiff]  # fmt: skip

    solved = solve_ivp(rates, (0.0, times[-1]), start, t_eval=times, rtol=1e-11, atol=1e-12)
    return np.asarray(solved.y.T)


def test_the_model_is_that_of_the_reference() -> None:
    found = massless_rollers(30.0, 1.2, 0.05, np.array([0.5, -0.3, 0.1]), np.zeros(6), [0.0, 1.0, 2.0, 5.0])
    expected = [
        (-0.08178589727843498, 0.0428315893285449, 0.17647058823529413),
        (-0.3427167641274986, 0.12876868213429404, 0.7058823529411765),
        (-1.5468252651428178, -0.6101986763119115, 4.411764705882352),
    ]
    np.testing.assert_allclose(found[1:, :3], expected, atol=1e-8)


def inertias(scene: Scene) -> tuple[float, float, float]:
    """Return the mass of a wheel with its rollers, and its inertia about the vertical and about its axle."""
    total = sum(float(b.mass) for b in scene.builder.bodies if b.mass)
    yaw = axle = 0.0
    hub = next(b for b in scene.builder.bodies if b.label == "w0_hub").xform
    across = np.asarray(hub.rotate((0.0, 1.0, 0.0)))
    for body in scene.builder.bodies:
        turn = rotations.matrix_from_quaternion(np.asarray(body.xform.rotation))
        inertia = turn @ np.asarray(body.inertia) @ turn.T
        center, mass = np.asarray(body.xform.position), float(body.mass or 0.0)
        yaw += inertia[2, 2] + mass * float(center[:2] @ center[:2])
        if body.label.startswith("w0_"):
            arm = np.cross(across, center - np.asarray(hub.position))
            axle += across @ inertia @ across + mass * float(arm @ arm)
    return total, yaw, float(axle)


def path_error(roller_mass: float, dt: float = 1e-3, time: float = 3.0) -> float:
    """Return the greatest distance from the path of massless rollers, relative to the path length."""
    scene = load_scene("omni_vehicle", drive="torques", roller_mass=roller_mass)
    sim = gpusim.Simulation(scene.builder.finalize(), config=SolverConfig(dt=dt))
    places = [sim.read("body.platform.position")[0, :2]]
    assert scene.schedule
    for _ in range(round(time / dt)):
        scene.schedule(sim, float(sim.time))
        sim.step()
        places.append(sim.read("body.platform.position")[0, :2])
    assert sim.health().all()
    torques = np.array([0.5, -0.3, 0.1])
    model = massless_rollers(*inertias(scene), torques, np.zeros(6), dt * np.arange(len(places)))[:, :2]
    way = np.sum(np.linalg.norm(np.diff(model, axis=0), axis=1))
    return float(np.max(np.linalg.norm(np.array(places) - model, axis=1)) / way)


@pytest.mark.nightly
def test_light_rollers_follow_the_massless_ones() -> None:
    errors = [path_error(mass) for mass in (0.05, 0.01, 0.002)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 5e-3 and errors[2] < 1.5e-3


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["omni_vehicle", "mecanum_vehicle"])
def test_energy_of_the_scenes_closes(name: str) -> None:
    scene = load_scene(name)
    sim = gpusim.Simulation(scene.builder.finalize(), config=scene.config)
    audit = EnergyAudit(sim)
    assert scene.schedule
    for _ in range(round(3.5 / sim.step_size)):
        scene.schedule(sim, float(sim.time))
        audit.step()
    found = audit.balance()
    assert found.turnover[0] > 1.0
    assert found.relative_error[0] < 0.01, str(found)


def test_a_world_among_many_has_its_bits() -> None:
    def run(worlds: int, mine: int) -> dict[str, np.ndarray]:
        scene = load_scene("omni_vehicle", rollers=8)
        sim = gpusim.Simulation(scene.builder.finalize(), worlds, config=scene.config)
        for k, name in enumerate(("forward", "left", "turn")):
            commands = 0.1 * np.arange(8.0) * (k - 1)
            sim.control[name] = commands[mine : mine + 1] if worlds == 1 else commands
        sim.step(60)
        return {name: array[mine if worlds > 1 else 0] for name, array in sim.state.arrays.items() if array.ndim > 1}

    alone, among = run(1, 5), run(8, 5)
    for name in ("position", "orientation", "linear_velocity", "angular_momentum"):
        np.testing.assert_array_equal(alone[name], among[name])
