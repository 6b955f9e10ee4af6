from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from tests.backends import FASTEST

GRAVITY = 9.81


def _walls(builder: ModelBuilder, apart: float, height: float) -> None:
    for side in (-1.0, 1.0):
        builder.add_shape_box(-1, (0.5, 2.0, 2.0), xform=Transform((side * (0.5 + 0.5 * apart), 0.0, height)))


def _jammed_box(over: float, mass: float = 1.0, gravity: float = GRAVITY) -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity))
    _walls(b, 0.2 - over, 1.0)
    body = b.add_body(mass=mass, inertia=(mass * 0.2**2 / 6.0,) * 3, xform=Transform((0.0, 0.0, 1.0)), label="box")
    b.add_shape_box(body, (0.1, 0.1, 0.1))
    return b


def _jammed_link(over: float) -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    body = b.add_body(mass=1.0, inertia=(0.02,) * 3, xform=Transform((0.25, 0.0, 1.0)), label="box")
    b.add_joint_revolute(-1, body, Transform((0.0, 0.0, 1.0)), Transform((-0.25, 0.0, 0.0)), axis=(0, 1, 0))
    b.add_shape_box(body, (0.25, 0.05, 0.05))
    for side in (-1.0, 1.0):
        b.add_shape_box(-1, (0.1, 0.5, 0.1), xform=Transform((0.45, 0.0, 1.0 + side * (0.15 - 0.5 * over))))
    return b


def _lever(angle: float, gravity: float = 0.0) -> ModelBuilder:
    b = ModelBuilder(gravity=(0.0, 0.0, -gravity))
    pose = Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), angle)
    body = b.add_body(mass=1.0, inertia=(0.02,) * 3, xform=pose * Transform((0.25, 0.0, 0.0)), label="box")
    b.add_joint_revolute(-1, body, pose, Transform((-0.25, 0.0, 0.0)), axis=(0, 1, 0))
    b.add_shape_sphere(body, 0.05, xform=Transform((0.25, 0.0, 0.0)))
    wall = 0.5 * math.cos(angle) + 0.05 - 0.01
    b.add_shape_box(-1, (0.5, 2.0, 2.0), xform=Transform((wall + 0.5, 0.0, 0.0)))
    return b


def _run(builder: ModelBuilder, seconds: float, backend: str = FASTEST, **settings: Any) -> tuple[Simulation, float]:
    sim = Simulation(builder.finalize(), backend=backend, config=SolverConfig(**settings))
    fastest = 0.0
    for _ in range(round(seconds / sim.config.dt)):
        sim.step()
        fastest = max(fastest, float(np.abs(sim.state.arrays["linear_velocity"]).max()))
    assert sim.health().all(), sim.health_report()
    return sim, fastest


def _speed(sim: Simulation) -> float:
    return float(np.abs(np.asarray(sim.state.arrays["linear_velocity"])).max())


def _largest_load(sim: Simulation) -> float:
    return float(np.linalg.norm(np.asarray(sim.state.arrays["contact_impulse"]), axis=-1).max()) / sim.config.dt


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("over", [1e-4, 1e-3, 1e-2, 0.1])
def test_jammed_box_rests_in_the_air(over: float, dt: float) -> None:
    sim, fastest = _run(_jammed_box(over), 1.0, dt=dt)
    assert _speed(sim) < 1e-3 and fastest < (1e-3 if over > 1e-4 else 1.1 * GRAVITY * 1e-2)
    assert _largest_load(sim) < 50.0 * GRAVITY
    # Statics: the wrench of both walls is the weight, and each of them is within its friction cone.
    force = np.asarray(sim.read("body.box.contact_force"))[0]
    np.testing.assert_allclose(force, (0.0, 0.0, GRAVITY), atol=0.02 * GRAVITY)
    # What is jammed by less than a load presses in slides until its friction has grown.
    assert float(sim.read("body.box.position")[0][2]) == pytest.approx(1.0, abs=2e-3 if over > 1e-4 else 5e-3)
    assert float(sim.read("sim.penetration")[0]) < 1.01 * over


@pytest.mark.native
def test_jam_goes_by_the_mass() -> None:
    loads = [_largest_load(_run(_jammed_box(1e-3, mass), 0.5)[0]) for mass in (1.0, 1e3)]
    assert loads[1] == pytest.approx(1e3 * loads[0], rel=1e-6)


@pytest.mark.native
def test_jam_without_a_load_bears_none() -> None:
    sim, fastest = _run(_jammed_box(1e-3, gravity=0.0), 0.5)
    assert fastest == 0.0 and _largest_load(sim) == 0.0


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("over", [1e-3, 1e-2])
def test_jammed_link_rests(solver: str, over: float) -> None:
    sim, fastest = _run(_jammed_link(over), 1.0, joint_solver=solver)
    assert _speed(sim) < 1e-4 and fastest < 1e-3
    assert _largest_load(sim) < 1e3
    assert float(sim.read("sim.joint_drift")[0]) < 1e-5


@pytest.mark.native
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("angle", [0.5, 0.4, 0.3, 0.1])
def test_overlap_within_the_friction_cone_is_taken_back(angle: float, solver: str, dt: float) -> None:
    sim, fastest = _run(_lever(angle), 2.0, joint_solver=solver, dt=dt)
    assert float(sim.read("sim.penetration")[0]) < 2e-5
    assert fastest == 0.0
    np.testing.assert_array_equal(np.asarray(sim.read("body.box.contact_force"))[0], 0.0)


@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_numpy_takes_it_back_too(solver: str) -> None:
    sims = [_run(_lever(0.3), 0.01, backend, joint_solver=solver)[0] for backend in ("numpy", FASTEST)]
    gone = [float(sim.read("sim.penetration")[0]) for sim in sims]
    assert gone[0] == pytest.approx(gone[1], rel=1e-6) and gone[0] < 9e-3


@pytest.mark.native
@pytest.mark.parametrize("masses", [(1.0, 100.0), (10.0, 100.0)])
def test_heavy_box_rests_on_a_light_one(masses: tuple[float, float]) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    b.add_shape_plane(-1)
    for k, mass in enumerate(masses):
        body = b.add_body(mass=mass, inertia=(mass * 0.16 / 6.0,) * 3, xform=Transform((0.0, 0.0, 0.2 + 0.4 * k)))
        b.add_shape_box(body, (0.2, 0.2, 0.2))
    sim, _ = _run(b, 2.0)
    assert _speed(sim) < 1e-3
    assert float(sim.read("sim.penetration")[0]) < 1.25 * sim.config.contact_slop
