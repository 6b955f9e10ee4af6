"""Sensors with noise, bias, rate and latency: statistics, streams by world, the same bits on both backends."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.control import add_encoder, add_imu
from gpusim.control.noise import normal_number

G = 9.81


def table(worlds: int = 1, backend: str = "numpy", **options: object) -> Simulation:
    b = ModelBuilder()
    body = b.add_body(2.0, (0.1, 0.1, 0.1), label="table")
    b.add_joint_revolute(-1, body, axis=(0, 0, 1), label="hinge")
    b.add_site(body, Transform((0.3, 0, 0)), label="head")
    add_imu(b, "head", "imu", **options)  # type: ignore[arg-type]
    add_encoder(b, "hinge", "encoder", counts=1000, rate=100.0)
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=1e-3))


def test_noise_is_normal_and_its_streams_know_nothing_of_each_other() -> None:
    world, sample = np.repeat(np.arange(200.0), 500), np.tile(np.arange(500.0), 200)
    x, y = (normal_number(7, world, sample, stream) for stream in (1.0, 2.0))
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1.0) < 0.01
    assert abs(np.mean(x**4) - 3.0) < 0.1 and abs(np.mean(x**3)) < 0.05
    grid = x.reshape(200, 500)
    for other in (y.reshape(200, 500), np.roll(grid, 1, axis=0), np.roll(grid, 1, axis=1)):
        assert abs(np.mean(grid * other)) < 0.01


def test_bias_and_noise_of_an_imu() -> None:
    sim = table(50, acceleration_noise=0.2, acceleration_bias=0.1, rate_noise=0.01, seed=4)
    sim.write("sensor.imu.acceleration_bias.value_1", np.linspace(-1, 1, 50))
    rows = []
    for _ in range(100):
        sim.step()
        rows.append(sim.read("sensor.imu.acceleration").copy())
    a = np.array(rows)
    np.testing.assert_allclose(a[..., 0].mean(), 0.1, atol=0.02)
    np.testing.assert_allclose(a[..., 1].mean(axis=0), np.linspace(-1, 1, 50), atol=0.1)
    np.testing.assert_allclose(a[..., 2].mean(), G + 0.1, atol=0.02)
    np.testing.assert_allclose(a[..., 2].std(), 0.2, rtol=0.05)


def test_noise_of_a_world_is_its_own() -> None:
    """It does not depend on how many there are, and comes again after a reset."""
    few, many = table(2, acceleration_noise=0.2), table(5, acceleration_noise=0.2)
    for sim in (few, many):
        sim.step(7)
    first = few.read("sensor.imu.acceleration").copy()
    np.testing.assert_array_equal(first, many.read("sensor.imu.acceleration")[:2])
    many.step(3)
    many.reset([1])
    many.step(7)
    np.testing.assert_array_equal(many.read("sensor.imu.acceleration")[1], first[1])


def test_rate_and_latency_hold_and_delay() -> None:
    """100 samples a second, 30 ms late: a step of the speed is seen three to four samples after."""
    sim = table(rate=100.0, latency=0.03)
    sim.step(100)
    sim.write("joint.hinge.velocity", 2.0)
    seen = []
    for _ in range(60):
        sim.step()
        seen.append(float(sim.read("sensor.imu.angular_rate")[0, 2]))
    late = int(np.argmax(np.array(seen) > 1.9))
    assert 25 <= late <= 41
    assert len(set(np.round(seen, 6))) == 2


def test_an_encoder_counts() -> None:
    sim = table()
    sim.write("joint.hinge.velocity", 3.0)
    sim.step(500)
    step = 2 * np.pi / 1000
    measured = float(sim.read("sensor.encoder.position")[0])
    assert measured == pytest.approx(3.0 * 0.49, abs=0.51 * step)
    assert measured / step == pytest.approx(round(measured / step), abs=1e-9)
    assert sim.read("sensor.encoder.velocity")[0] == pytest.approx(3.0, abs=0.7)


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
    found = []
    for backend in ("numpy", "native"):
        sim = table(3, backend, acceleration_noise=0.2, rate_noise=0.1, latency=0.004, rate=500.0)
        sim.step(60)
        found.append(sim.observe("sensor.imu.*_noise").read().copy())
    np.testing.assert_array_equal(*found)


def test_wrong_ones_are_told() -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    b.add_site(body, label="head")
    for wrong, told in (
        (lambda: add_imu(b, "hat", "imu"), "no site 'hat'"),
        (lambda: add_imu(b, "head", "imu", latency=-1.0), "latency"),
        (lambda: add_encoder(b, "hinge", "e", 100), "no joint 'hinge'"),
    ):
        with pytest.raises(ModelError, match=told):
            wrong()
