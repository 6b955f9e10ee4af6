from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.control import Diagram
from gpusim.control.noise import normal_number
from gpusim.sensors import add_encoder, add_imu
from tests.message_snapshot import naming

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


@pytest.mark.nightly
def test_an_encoder_counts() -> None:
    sim = table()
    sim.write("joint.hinge.velocity", 3.0)
    sim.step(500)
    step = 2 * np.pi / 1000
    measured = float(sim.read("sensor.encoder.position")[0])
    assert measured == pytest.approx(3.0 * 0.49, abs=0.51 * step)
    assert measured / step == pytest.approx(round(measured / step), abs=1e-9)
    assert sim.read("sensor.encoder.velocity")[0] == pytest.approx(3.0, abs=0.7)


def test_sensors_have_noise_of_their_own() -> None:
    b = ModelBuilder()
    body = b.add_body(2.0, (0.1, 0.1, 0.1))
    b.add_site(body, label="head")
    for label in ("left", "right"):
        add_imu(b, "head", label, acceleration_noise=1.0)
    sim = Simulation(b.finalize(), 200, backend="numpy", config=SolverConfig(dt=1e-3))
    sim.step()
    left, right = (sim.read(f"sensor.{label}.acceleration_noise") for label in ("left", "right"))
    assert abs(np.mean(left * right)) < 0.1 and 0.9 < left.std() < 1.1


def test_diagrams_have_noise_of_their_own() -> None:
    b = ModelBuilder()
    b.add_body(2.0, (0.1, 0.1, 0.1))
    for label in ("left", "right"):
        d = Diagram(label)
        d.connect(d.add("noise", "noise"), d.add("abs", "abs"))
        b.add_diagram(d)
    sim = Simulation(b.finalize(), 200, backend="numpy", config=SolverConfig(dt=1e-3))
    sim.step()
    left, right = (sim.read(f"diagram.{label}.noise") for label in ("left", "right"))
    assert abs(np.mean(left * right)) < 0.2 and 0.9 < left.std() < 1.1


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
    found = []
    for backend in ("numpy", "native"):
        sim = table(3, backend, acceleration_noise=0.2, rate_noise=0.1, latency=0.004, rate=500.0)
        sim.step(60)
        found.append(sim.observe("sensor.imu.*_noise").read().copy())
    np.testing.assert_array_equal(*found)


def test_wrong_ones_are_reported() -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    b.add_site(body, label="head")
    for wrong, reported in (
        (lambda: add_imu(b, "hat", "imu"), "'hat'"),
        (lambda: add_imu(b, "head", "imu", latency=-1.0), "latency"),
        (lambda: add_encoder(b, "hinge", "e", 100), "'hinge'"),
    ):
        with pytest.raises(ModelError, match=naming(reported)):
            wrong()


def test_worlds_differ_in_latency() -> None:
    seen = {}
    for backend in ("numpy", "native"):
        sim = table(4, backend, latency=0.01, max_latency=0.05)
        for channel in ("acceleration", "angular_rate"):
            sim.write(f"sensor.imu.{channel}.time", [0.0, 0.01, 0.0234, 0.05])
        sim.step(60)
        sim.write("joint.hinge.velocity", 2.0)
        rows = []
        for _ in range(60):
            sim.step()
            rows.append(sim.read("sensor.imu.angular_rate")[:, 2].copy())
        seen[backend] = np.array(rows)
    late = np.argmax(seen["numpy"] > 1.9, axis=0)
    np.testing.assert_array_equal(late - late[0], [0, 10, 23, 50])
    np.testing.assert_allclose(seen["numpy"], seen["native"], rtol=1e-13, atol=0.0)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_worlds_differ_in_rate(backend: str) -> None:
    rates = np.array([100.0, 200.0, 50.0, 1000.0])
    sim = table(4, backend, rate=100.0, max_rate=1000.0)
    sim.write("sensor.imu.clock.rate", rates)
    sim.write("joint.hinge.velocity", 1.0)

    def changes(steps: int) -> list[int]:
        counts, before = np.zeros(4, int), sim.read("sensor.imu.acceleration_true").copy()
        for k in range(steps):
            sim.write("joint.hinge.velocity", 1.0 + 0.01 * k)
            sim.step()
            now = sim.read("sensor.imu.angular_rate_true").copy()
            counts += (now != before).any(axis=1)
            before = now
        return counts.tolist()

    sim.step()
    np.testing.assert_allclose(changes(200), rates * 0.2, atol=1.0)
    sim.write("sensor.imu.clock.rate", rates[::-1])
    late = 1.01 + rates[::-1] / rates
    np.testing.assert_array_less(np.abs(np.array(changes(200)) - rates[::-1] * 0.2), late)
    sim.reset()
    np.testing.assert_allclose(changes(100), rates[::-1] * 0.1, atol=1.0)


@pytest.mark.nightly
def test_an_encoder_of_another_rate_in_each_world_reports_the_speed() -> None:
    b = ModelBuilder()
    b.add_joint_revolute(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(0, 0, 1), label="hinge")
    add_encoder(b, "hinge", "encoder", counts=10**6, rate=100.0, max_rate=500.0, max_latency=0.02)
    sim = Simulation(b.finalize(), 3, backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write("sensor.encoder.clock.rate", [50.0, 125.0, 500.0])
    sim.write("sensor.encoder.position.time", [0.0, 0.008, 0.02])
    sim.write("joint.hinge.velocity", 3.0)
    sim.step(401)
    np.testing.assert_allclose(sim.read("sensor.encoder.velocity"), 3.0, atol=1e-3)
    late = [0.0, 0.008, 0.02]
    np.testing.assert_allclose(sim.read("sensor.encoder.position"), 3.0 * (0.4 - np.array(late)), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("sensor.imu.clock.rate", 0.0, "signal 'sensor.imu.clock.rate' 0"),
        ("sensor.imu.clock.rate", 501.0, "501 500"),
        ("sensor.imu.acceleration.time", 0.2, "0.2 0.1"),
        ("sensor.imu.acceleration.time", -0.1, "-0.1 0"),
        ("sensor.imu.acceleration_noise.sigma", -1.0, "-1 0"),
        ("sensor.encoder.steps.step", 0.0, "0"),
    ],
)
def test_what_worlds_may_not_be_given(name: str, value: float, words: str) -> None:
    b = ModelBuilder()
    body = b.add_body(2.0, (0.1, 0.1, 0.1))
    b.add_joint_revolute(-1, body, axis=(0, 0, 1), label="hinge")
    b.add_site(body, label="head")
    add_imu(b, "head", "imu", rate=100.0, max_rate=500.0, max_latency=0.1)
    add_encoder(b, "hinge", "encoder", counts=1000, max_latency=0.1)
    sim = Simulation(b.finalize(), 2, backend="numpy", config=SolverConfig(dt=1e-3))
    before = sim.read(name).copy()
    with pytest.raises(ModelError, match=naming(words)):
        sim.write(name, [float(before[0]), value])
    np.testing.assert_array_equal(sim.read(name), before)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"latency": 0.2, "max_latency": 0.1}, "latency 0.2 max_latency 0.1"),
        ({"rate": 200.0, "max_rate": 100.0}, "rate 200 max_rate 100"),
        ({"max_rate": 2000.0}, "0.0005 0.001"),
        ({"max_latency": 1e-5}, "max_time 1e-05 0.001"),
    ],
)
def test_rates_and_latencies_that_do_not_fit(given: dict[str, float], words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        table(**given)


def test_an_encoder_needs_a_single_coordinate() -> None:
    b = ModelBuilder()
    b.add_joint_ball(-1, b.add_body(1.0, (1, 1, 1)), label="ball")
    with pytest.raises(ModelError, match=naming("encoder 'ball' 4")):
        add_encoder(b, "ball", "e", 100)
