from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
SIZE, SPIN = 0.1, np.array([20.0, 3.0, 1.0])
BASE, LINK, BAR = 5.0, 0.1, 1.0
CONFIG = SolverConfig(dt=2e-3, joint_solver="direct")


def _bar_on_links(links: int, closing: str, spin: np.ndarray, scale: float = 1.0) -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, 0))
    height = SIZE * (2.0 * BAR + links * LINK) / (BASE + BAR + links * LINK)

    def body(mass: float, moments: tuple[float, float, float], x: float, z: float) -> int:
        at = scale * np.array([x, 0.0, z - height])
        return b.add_body(
            scale**3 * mass, tuple(scale**5 * np.array(moments)), xform=Transform(tuple(at)),
            angular_velocity=tuple(spin), linear_velocity=tuple(np.cross(spin, at)),
        )  # fmt: skip

    base = body(BASE, (0.02, 0.03, 0.04), 0.0, 0.0)
    bar = body(BAR, (0.001, 0.004, 0.0045), 0.0, 2.0 * SIZE)
    for k, x in enumerate(np.linspace(-SIZE, SIZE, links)):
        link = body(LINK, (1e-4, 1e-4, 2e-5), x, SIZE)
        foot, head = (tuple(scale * np.array([x, 0.0, z - height])) for z in (0.0, 2.0 * SIZE))
        b.add_joint_revolute(base, link, at=foot, axis=(0, 1, 0), friction=100.0)
        if closing == "hinge":
            joint = b.add_joint_revolute(link, bar, at=head, axis=(0, 1, 0), friction=100.0)
        else:
            joint = (b.add_joint_ball if closing == "ball" else b.add_joint_fixed)(link, bar, at=head)
        b.add_force_sensor(joint, label=f"load{k}")
    return b


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("closing", ["ball", "fixed", "hinge"])
@pytest.mark.parametrize("links", [2, 3])
def test_links_bear_the_bar_in_equal_shares(links: int, closing: str, backend: str) -> None:
    """Each link pulls with m omega^2 r/links."""
    sim = Simulation(_bar_on_links(links, closing, SPIN).finalize(), backend=backend, config=CONFIG)
    lever = SIZE * (2.0 - (2.0 * BAR + links * LINK) / (BASE + BAR + links * LINK))
    for _ in range(10):
        sim.step(2)
        loads = [np.linalg.norm(sim.read(f"sensor.load{k}.force", numpy=True)[0]) for k in range(links)]
        assert np.allclose(loads, BAR * SPIN[0] ** 2 * lever / links, rtol=0.15), loads


def _momentum(sim: Simulation) -> np.ndarray:
    state, bodies = sim.read_state(), sim.model.bodies
    count = len(bodies)
    place, velocity, spin = (state[name][0, :count] for name in ("position", "linear_velocity", "angular_momentum"))
    mass = np.array([body.mass for body in bodies])
    return np.sum(np.cross(place, mass[:, None] * velocity) + spin, axis=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_light_links_do_not_turn_the_assembly(backend: str) -> None:
    sim = Simulation(_bar_on_links(3, "fixed", 3.0 * SPIN, 0.04).finalize(), backend=backend, config=CONFIG)
    energy, momentum = float(sim.read("sim.kinetic_energy")[0]), _momentum(sim)
    sim.step(300 if backend == "native" else 150)
    assert float(sim.read("sim.kinetic_energy")[0]) == pytest.approx(energy, rel=3e-3)
    assert np.allclose(_momentum(sim), momentum, rtol=0, atol=3e-3 * np.linalg.norm(momentum))
