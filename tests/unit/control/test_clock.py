from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram
from gpusim.description.program_clock import COUNT, READ
from gpusim.sensors import add_encoder
from tests.backends import FASTEST
from tests.message_snapshot import naming

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


def hinge() -> ModelBuilder:
    b = ModelBuilder()
    b.add_joint_revolute(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), axis=(0, 0, 1), label="hinge")
    return b


def clock(backend: str, worlds: int = 1, host: bool = False, **rates: float) -> Simulation:
    d = Diagram("clock", **rates)
    d.add("ramp", "now", slope=1.0)
    d.connect("now", d.add("delay", "late", time=0.05, max_time=0.05))
    d.connect("now", d.add("integrator", "sum"))
    d.connect(1000.0, d.add("integrator", "count"))
    if host:
        d.connect("now", d.add("python", "own", function=lambda time, given: given["in"]))
    b = hinge()
    b.add_diagram(d)
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=1e-3))


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dt", [5e-4, 1e-3, 2e-3, 7e-3])
def test_time_passes_for_a_diagram_as_for_the_simulation(backend: str, dt: float) -> None:
    sim = clock(backend)
    for _ in range(round(0.7 / dt)):
        sim.step(dt=dt)
    last = np.floor(float(sim.time) / 1e-3 - dt / 1e-3 + 1e-6) * 1e-3
    assert sim.read("diagram.clock.now")[0] == pytest.approx(last, abs=1e-9)
    assert sim.read("diagram.clock.late")[0] == pytest.approx(last - 0.05, abs=1e-9)
    assert sim.state.arrays["diagram.clock"][0, 0] == round(last / 1e-3) + 1


@pytest.mark.native
def test_missed_samples_have_the_same_bits_everywhere() -> None:
    found = []
    for backend, host in (("numpy", False), ("native", False), ("native", True)):
        sim = clock(backend, 3, host, rate=300.0, max_rate=1000.0)
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
    assert sim.read("diagram.clock.now")[0] == pytest.approx(500.0)  # the last 1000 samples
    assert sim.read("diagram.clock.late")[0] == pytest.approx(499.95)
    sim.step(5)
    assert sim.read("diagram.clock.count")[0] == pytest.approx(1005.0)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_change_of_the_rate_leaves_a_delay_its_time(backend: str) -> None:
    sim = clock(backend, 2, rate=100.0, max_rate=1000.0)
    sim.step(1000)
    sim.write("diagram.clock.clock.rate", 1000.0, worlds=0)
    for step in range(120):
        sim.step()
        age = sim.read("diagram.clock.now") - sim.read("diagram.clock.late")
        assert age[1] == pytest.approx(0.05, abs=1e-9)
        assert 0.045 - 1e-9 <= age[0] <= 0.0595
        if step >= 50:
            assert age[0] == pytest.approx(0.05, abs=1e-9)
    sim.write("diagram.clock.clock.rate", 50.0, worlds=0)
    for _ in range(300):
        sim.step()
        age = sim.read("diagram.clock.now") - sim.read("diagram.clock.late")
        assert age[0] == pytest.approx(0.05, abs=0.0101)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("latency", [{"latency": 0.03}, {"latency": 0.03, "max_latency": 0.1}])
def test_a_late_encoder_begins_with_its_first_reading(backend: str, latency: dict[str, float]) -> None:
    b = hinge()
    add_encoder(b, "hinge", "encoder", counts=10**6, **latency)  # type: ignore[arg-type]
    sim = Simulation(b.finalize(), 2, backend=backend, config=SolverConfig(dt=1e-3))

    def turned(worlds: list[int]) -> None:
        sim.write("joint.hinge.position", [1.0, -2.0][: len(worlds)], worlds=worlds)
        for _ in range(60):
            sim.step()
            np.testing.assert_allclose(sim.read("sensor.encoder.velocity"), 0.0, atol=1e-9)
            np.testing.assert_allclose(sim.read("sensor.encoder.position"), [1.0, -2.0], atol=1e-5)

    turned([0, 1])
    sim.reset([0])
    turned([0])


@pytest.mark.nightly
def test_worlds_with_rates_of_their_own_have_a_latency_without_more_ado() -> None:
    b = hinge()
    add_encoder(b, "hinge", "encoder", counts=10**6, rate=100.0, max_rate=1000.0, latency=0.02)
    sim = Simulation(b.finalize(), 2, backend=FASTEST, config=SolverConfig(dt=1e-3))
    sim.write("sensor.encoder.clock.rate", [50.0, 1000.0])
    sim.write("joint.hinge.velocity", 3.0)
    sim.step(401)
    np.testing.assert_allclose(sim.read("sensor.encoder.position"), 3.0 * 0.38, atol=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rate", [1000.0, 333.0, 300.0, 130.0])
def test_writing_the_same_rate_changes_nothing(backend: str, rate: float) -> None:
    sim = clock(backend, 2, rate=rate, max_rate=1000.0)
    sim.step(100)
    for _ in range(200):
        sim.write("diagram.clock.clock.rate", rate, worlds=0)
        sim.step()
    assert sim.read("diagram.clock.now")[0] == pytest.approx(sim.time - 1e-3, abs=1.01 / rate)
    for name in ("now", "late", "sum"):
        np.testing.assert_array_equal(*sim.read(f"diagram.clock.{name}"))


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_rates_that_change_in_every_step_leave_integrals_right(backend: str) -> None:
    d = Diagram("clock", max_rate=1000.0)
    d.add("timer", "now")
    d.connect(1.0, d.add("integrator", "sum"))
    b = hinge()
    b.add_diagram(d)
    sim = Simulation(b.finalize(), 3, backend=backend, config=SolverConfig(dt=1e-3))
    rng = np.random.default_rng(5)
    for _ in range(600):
        sim.write("diagram.clock.clock.rate", rng.choice([20.0, 50.0, 333.0, 1000.0], 3))
        sim.step()
        np.testing.assert_allclose(sim.read("diagram.clock.sum"), sim.read("diagram.clock.now"), atol=1e-9)
    np.testing.assert_allclose(sim.read("diagram.clock.now"), float(sim.time), atol=0.051)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("first", "then"), [(1000.0, 100.0), (100.0, 1000.0), (200.0, 300.0)])
def test_a_state_of_another_rate_goes_on(backend: str, first: float, then: float) -> None:
    sim = clock(backend, 1, rate=first, max_rate=1000.0)
    sim.step(500)
    kept = sim.state.copy()
    sim.write("diagram.clock.clock.rate", then)
    sim.step(100)
    sim.state.restore(kept)
    sim.invalidate()
    for _ in range(300):
        before = float(sim.read("diagram.clock.now")[0])
        sim.step()
        now, late = (float(sim.read(f"diagram.clock.{name}")[0]) for name in ("now", "late"))
        assert 0.0 <= now - before <= 1.0 / min(first, then) + 1e-9
        assert now - late == pytest.approx(0.05, abs=1.01 / min(first, then))
    assert now - late == pytest.approx(0.05, abs=0.51 / then)
    assert now == pytest.approx(sim.time, abs=1.0 / first + 1.0 / then)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dt", [7e-4, 3e-3, 7e-3, 1e-2])
@pytest.mark.parametrize("rate", [None, 300.0])
def test_what_runs_steadily_is_measured_rightly_at_any_step(backend: str, dt: float, rate: float | None) -> None:
    b = hinge()
    add_encoder(b, "hinge", "encoder", counts=10**9, rate=rate, latency=0.02)
    d = Diagram("own", rate=rate)
    d.connect("signal:joint.hinge.velocity", d.add("integrator", "turned"))
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    sim.write("joint.hinge.velocity", 1.0)
    for _ in range(round(0.35 / dt)):
        began = float(sim.time)
        sim.step(dt=dt)
    period = 1e-3 if rate is None else 1.0 / rate
    last = np.floor(began / period + 1e-6) * period
    late = round(0.02 / period) * period
    assert sim.read("sensor.encoder.velocity")[0] == pytest.approx(1.0, abs=1e-4)
    assert sim.read("sensor.encoder.position")[0] == pytest.approx(last - late, abs=1e-6)
    assert sim.read("diagram.own.turned")[0] == pytest.approx(last, abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dt", "acts"), [(1e-3, 0.02), (3e-3, 0.021), (7e-3, 0.021), (1e-2, 0.02), (3e-2, 0.03)])
def test_commands_act_after_their_delay_at_any_step(backend: str, dt: float, acts: float) -> None:
    b = hinge()
    b.add_joint_force(0, delay=0.02, label="motor")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    for _ in range(5):
        sim.step(dt=dt)
    began = float(sim.time)
    sim.control["motor"] = 1.0
    while sim.control["motor.applied"][0] == 0.0:
        acted = float(sim.time)
        sim.step(dt=dt)
    assert acted - began == pytest.approx(acts, abs=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_rounding_of_the_time_takes_no_sample_away(backend: str) -> None:
    sim = clock(backend)
    sim.step()
    numbers, steps = sim.state.arrays["diagram.clock"], 334000
    time = float(np.add.accumulate(np.full(steps, 1e-3))[-1])
    numbers[:, COUNT], numbers[:, READ], sim.state.arrays["time"][:] = steps, time - 1e-3, time
    sim.invalidate()
    for k in range(1200):
        assert sim.state.arrays["diagram.clock"][0, COUNT] == steps + k
        sim.step()


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", ["sensor", "diagram"])
def test_a_diagram_reads_sensors_and_diagrams_before_it(backend: str, first: str) -> None:
    b = hinge()
    b.add_joint_force(0, label="motor")
    one, two = Diagram("one"), Diagram("two")
    one.connect("signal:sensor.encoder.velocity", one.add("gain", "brake", gain=-2.0))
    one.connect("brake", "command:motor")
    two.connect("signal:diagram.one.brake", two.add("gain", "same", gain=1.0))
    two.connect("signal:sensor.encoder.position", two.add("gain", "angle", gain=1.0))
    for part in ["encoder", one] if first == "sensor" else [one, "encoder"]:
        if isinstance(part, str):
            add_encoder(b, "hinge", part, counts=10**6)
        else:
            b.add_diagram(part)
    b.add_diagram(two)
    sim = Simulation(b.finalize(), 2, backend=backend, config=SolverConfig(dt=1e-3))
    sim.write("joint.hinge.velocity", [3.0, -1.0])
    for _ in range(400):
        sim.step()
        velocity = sim.read("sensor.encoder.velocity")
        np.testing.assert_array_equal(sim.read("diagram.two.same"), -2.0 * velocity)
        np.testing.assert_array_equal(sim.control["motor"], -2.0 * velocity)
        np.testing.assert_array_equal(sim.read("diagram.two.angle"), sim.read("sensor.encoder.position"))
    assert abs(sim.read("joint.hinge.velocity")[0]) < 0.1


def test_a_diagram_that_comes_later_is_reported() -> None:
    b = hinge()
    one, two = Diagram("one"), Diagram("two")
    one.connect("signal:diagram.two.later", one.add("gain", "g"))
    two.connect(1.0, two.add("gain", "later"))
    b.add_diagram(one)
    b.add_diagram(two)
    with pytest.raises(ModelError, match=naming("signal 'diagram.two.later'")):
        Simulation(b.finalize(), backend=FASTEST)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"samples": 3, "time": 0.1}, "samples 3 time 0.1"),
        ({"samples": 3, "max_time": 0.1}, "samples 3 max_time 0.1"),
        ({"samples": 0}, "samples 0 1"),
        ({"time": True}, "time True"),
    ],
)
def test_wrong_delays_are_reported(given: dict[str, float], words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        Diagram("d").add("delay", "late", **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rate": True}, "sensor 'e' rate True"),
        ({"latency": 1e-4}, "sensor 'e' 'position' time 0.0001 0.001"),
        ({"counts": 2.0}, "'e' counts 2.0"),
    ],
)
def test_wrong_sensors_are_reported_as_sensors(given: dict[str, float], words: str) -> None:
    b = hinge()
    with pytest.raises(ModelError, match=naming(words)):
        add_encoder(b, "hinge", "e", **({"counts": np.int64(100)} | given))  # type: ignore[arg-type]
        Simulation(b.finalize(), backend=FASTEST, config=SolverConfig(dt=1e-3))


def test_a_delay_by_time_among_different_rates_is_reported_how() -> None:
    d = Diagram("d", rate=100.0, max_rate=500.0)
    d.connect(1.0, d.add("delay", "late", time=0.02))
    b = hinge()
    b.add_diagram(d)
    with pytest.raises(ModelError, match=naming("time 0.02 max_rate")):
        Simulation(b.finalize(), backend=FASTEST, config=SolverConfig(dt=1e-3))


def test_a_truth_is_no_rate() -> None:
    with pytest.raises(ModelError, match=naming("diagram 'd' rate True")):
        Diagram("d", rate=True)
