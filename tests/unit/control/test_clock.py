"""Samples go by the clock: at steps of any size, after a change of the rate, and from the first sample on."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram, add_encoder

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


def hinge() -> ModelBuilder:
    b = ModelBuilder()
    b.add_joint_revolute(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(0, 0, 1), label="hinge")
    return b


def clock(backend: str, worlds: int = 1, host: bool = False, **rates: float) -> Simulation:
    """Simulation with a diagram: a ramp that is the time, and the ramp 50 ms ago."""
    d = Diagram("clock", **rates)
    d.add("ramp", "now", slope=1.0)
    d.connect("now", d.add("delay", "late", time=0.05, most=0.05))
    d.connect("now", d.add("integrator", "sum"))
    d.connect(1000.0, d.add("integrator", "count"))
    if host:
        d.connect("now", d.add("python", "own", function=lambda time, given: given["in"]))
    b = hinge()
    b.add_diagram(d)
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=1e-3))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dt", [5e-4, 1e-3, 2e-3, 7e-3])
def test_time_passes_for_a_diagram_as_for_the_simulation(backend: str, dt: float) -> None:
    sim = clock(backend)
    for _ in range(round(0.7 / dt)):
        sim.step(dt=dt)
    last = np.floor(float(sim.time) / 1e-3 - dt / 1e-3 + 1e-6) * 1e-3  # time of the last sample, before the last step
    assert sim.read("diagram.clock.now")[0] == pytest.approx(last, abs=1e-9)
    assert sim.read("diagram.clock.late")[0] == pytest.approx(last - 0.05, abs=1e-9)
    assert sim.state.arrays["diagram.clock"][0, 0] == round(last / 1e-3) + 1


@pytest.mark.native
def test_missed_samples_have_the_same_bits_everywhere() -> None:
    """Worlds of different rates, steps of random sizes; also on the host."""
    found = []
    for backend, host in (("numpy", False), ("native", False), ("native", True)):
        sim = clock(backend, 3, host, rate=300.0, most_rate=1000.0)
        sim.write("diagram.clock.clock.rate", [1000.0, 300.0, 7.0])
        for dt in np.random.default_rng(3).uniform(2e-4, 9e-3, 80):
            sim.step(dt=float(dt))
        found.append(sim.observe("diagram.clock.[nls]*").read().copy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_jump_of_the_clock_is_no_endless_loop(backend: str) -> None:
    sim = clock(backend)
    sim.step(dt=500.0)
    sim.step()
    assert sim.read("diagram.clock.count")[0] == pytest.approx(1000.0)
    sim.step(5)
    assert sim.read("diagram.clock.count")[0] == pytest.approx(1005.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_change_of_the_rate_leaves_a_delay_its_time(backend: str) -> None:
    """50 ms, as near as samples 10 ms apart allow; nothing is known that is newer than the last old one."""
    sim = clock(backend, 2, rate=100.0, most_rate=1000.0)
    sim.step(1000)
    sim.write("diagram.clock.clock.rate", 1000.0, world=0)
    for step in range(120):
        sim.step()
        age = sim.read("diagram.clock.now") - sim.read("diagram.clock.late")
        assert age[1] == pytest.approx(0.05, abs=1e-9)
        assert 0.045 - 1e-9 <= age[0] <= 0.0595
        if step >= 50:
            assert age[0] == pytest.approx(0.05, abs=1e-9)
    sim.write("diagram.clock.clock.rate", 50.0, world=0)
    for _ in range(300):
        sim.step()
        age = sim.read("diagram.clock.now") - sim.read("diagram.clock.late")
        assert age[0] == pytest.approx(0.05, abs=0.0101)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("latency", [{"latency": 0.03}, {"latency": 0.03, "most_latency": 0.1}])
def test_a_late_encoder_begins_with_its_first_reading(backend: str, latency: dict[str, float]) -> None:
    b = hinge()
    add_encoder(b, "hinge", "encoder", counts=10**6, **latency)  # type: ignore[arg-type]
    sim = Simulation(b.finalize(), 2, backend=backend, config=SolverConfig(dt=1e-3))

    def turned(worlds: list[int]) -> None:
        sim.write("joint.hinge.position", [1.0, -2.0][: len(worlds)], world=worlds)
        for _ in range(60):
            sim.step()
            np.testing.assert_allclose(sim.read("sensor.encoder.velocity"), 0.0, atol=1e-9)
            np.testing.assert_allclose(sim.read("sensor.encoder.position"), [1.0, -2.0], atol=1e-5)

    turned([0, 1])
    sim.reset([0])
    turned([0])


def test_worlds_with_rates_of_their_own_have_a_latency_without_more_ado() -> None:
    b = hinge()
    add_encoder(b, "hinge", "encoder", counts=10**6, rate=100.0, most_rate=1000.0, latency=0.02)
    sim = Simulation(b.finalize(), 2, backend="numpy", config=SolverConfig(dt=1e-3))
    sim.write("sensor.encoder.clock.rate", [50.0, 1000.0])
    sim.write("joint.hinge.velocity", 3.0)
    sim.step(401)
    np.testing.assert_allclose(sim.read("sensor.encoder.position"), 3.0 * 0.38, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"samples": 3, "time": 0.1}, r"samples = 3 and time = 0\.1 s are both given; leave one of them out"),
        ({"samples": 0}, "samples = 0 is not within 1 to"),
        ({"time": True}, "time = True is not a number"),
    ],
)
def test_wrong_delays_are_told(given: dict[str, float], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Diagram("d").add("delay", "late", **given)


def test_a_truth_is_no_rate() -> None:
    with pytest.raises(ModelError, match=r"diagram 'd': rate = True is not a number"):
        Diagram("d", rate=True)
