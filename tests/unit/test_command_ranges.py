from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.control import Diagram
from gpusim.scene import load_scene
from tests.message_snapshot import naming

from .helpers import ball_body, bits, different
from .machine import machine

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
SOLVERS = ("direct", "colored")
RANGES = {"motor": (-1, 1), "lift": (-1, 1), "lift.brake": (0, 1), "brake": (0, 1), "wheel": (-2, 7)}
FREE = ("servo", "push", "effort")


def builder() -> ModelBuilder:
    b = machine()
    joints = []
    for k, label in enumerate(("brake", "wheel", "effort")):
        wheel = ball_body(b, 1.0, 0.05, xform=Transform((5 + k, 0, 0)), angular_velocity=(0, 3, 0), label=label)
        joints.append(b.add_joint_revolute(-1, wheel, Transform((5 + k, 0, 0)), axis=(0, 1, 0), label=f"{label}_joint"))
    b.add_brake(joints[0], 0.1, label="brake")
    b.add_servo(joints[1], "velocity", damping=0.5, label="wheel", command_range=(-2.0, 7.0))
    b.add_joint_force(joints[2], label="effort")
    return b


def simulation(backend: str, worlds: int = 2, b: ModelBuilder | None = None, **config: Any) -> Simulation:
    options = {"launch": config.pop("launch")} if "launch" in config else {}
    dtype = config.pop("dtype", "float64")
    config = SolverConfig(dt=2e-3, **config)
    return Simulation((b or builder()).finalize(), worlds, backend, dtype, config, **options)


def by_item(sim: Simulation, values: dict[str, float]) -> None:
    for label, value in values.items():
        sim.control[label] = value


def by_list(sim: Simulation, values: dict[str, float]) -> None:
    sim.command(list(values)).write(list(values.values()))


def by_signal(sim: Simulation, values: dict[str, float]) -> None:
    names = {"motor": "motor.motor.command", "lift": "cylinder.lift.command", "lift.brake": "cylinder.lift.brake",
             "brake": "brake.brake.command", "wheel": "servo.wheel.target"}  # fmt: skip
    sim.write_state({names[label]: value for label, value in values.items()})


def by_array(sim: Simulation, values: dict[str, float]) -> None:
    for label, value in values.items():
        sim.control.array[:, sim.model.controls[label]] = value
    sim.invalidate()


def run(backend: str, end: int, beyond: float, give: Callable[..., None] = by_item, **options: Any) -> Simulation:
    sim = simulation(backend, **options)
    give(sim, {label: ends[end] + (beyond if end else -beyond) for label, ends in RANGES.items()})
    sim.step(20)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("end", [0, 1])
def test_beyond_the_range_acts_as_its_end(backend: str, end: int) -> None:
    expected = run(backend, end, 0.0)
    for give in (by_item, by_list, by_signal, by_array):
        for beyond in (0.5, 6.0, 1e300):
            sim = run(backend, end, beyond, give)
            assert different(bits(sim, 0), bits(expected, 0)) == []
            for name in ("cylinder.lift.command", "brake.brake.command", "servo.wheel.target", "motor.motor.torque"):
                np.testing.assert_array_equal(sim.read(name), expected.read(name), err_msg=name)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [{"joint_solver": "colored"}, {"scheme": "semi_implicit"}, {"substeps": 3}, {"dtype": "float32"}],
    ids=str,
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_in_other_settings(backend: str, options: dict[str, Any]) -> None:
    assert different(bits(run(backend, 1, 6.0, **options), 0), bits(run(backend, 1, 0.0, **options), 0)) == []


@pytest.mark.native
@pytest.mark.parametrize("launch", ["staged", "simd"])
def test_in_other_launches(launch: str) -> None:
    expected = bits(run("native", 0, 0.0), 0)
    assert different(bits(run("native", 0, 3.0, worlds=9, launch=launch), 8), expected) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_has_no_range_is_not_limited(backend: str) -> None:
    ends = []
    for value in (1.0, 5.0):
        sim = simulation(backend)
        by_item(sim, dict.fromkeys(FREE, value))
        sim.step(5)
        ends.append(sim.read("joint.effort_joint.velocity")[0] - 3.0)
        assert sim.read("force.push.scale")[0] == sim.read("servo.servo.target")[0] == value
    assert ends[1] == pytest.approx(5.0 * ends[0], rel=1e-6)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_of_diagrams(backend: str) -> None:
    def driven(value: float) -> Simulation:
        b = builder()
        d = Diagram("d")
        for label, (_, upper) in RANGES.items():
            if "." not in label:
                d.connect(d.add("constant", label, value=upper * value), f"command:{label}")
        b.add_diagram(d)
        sim = simulation(backend, b=b)
        sim.step(20)
        return sim

    sims = [driven(value) for value in (1.0, 9.0)]
    ours, theirs = (bits(sim, 0) for sim in sims)
    assert different(ours, theirs) == ["diagram.d"]
    assert sims[1].read("servo.wheel.target")[0] == 7.0


@pytest.mark.nightly
@pytest.mark.native
def test_every_valve_pump_and_brake_of_a_circuit() -> None:
    for end, beyond in ((1.0, 9.0), (-1.0, -9.0)):
        found = []
        for value in (end, beyond):
            scene = load_scene("excavator")
            sim = Simulation(scene.builder.finalize(), backend="native", config=scene.config)
            for label in sim.control:
                if label not in sim.runtime.drivers:
                    sim.control[label] = value
            sim.step(3)
            found.append(bits(sim, 0))
        assert different(*found) == []


@pytest.mark.nightly
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("label", [*RANGES, *FREE, "lever"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_no_number_never_acts(backend: str, label: str, value: float) -> None:
    b = builder()
    d = Diagram("d")
    d.connect(d.add("input", "lever"), d.add("limiter", "limiter", lower=-0.5, upper=0.5))
    b.add_diagram(d)
    sim = simulation(backend, b=b)
    for give in (by_item, by_list):
        with pytest.raises(ModelError, match=naming(f"command '{label}'")):
            give(sim, {label: value})
    calm = simulation(backend, b=b)
    for one in (sim, calm):
        one.step(2)
    sim.control.array[1, sim.model.controls[label]] = value
    sim.invalidate()
    if np.isinf(value) and label not in FREE:
        sim.step(3)
        assert sim.health().all()
        return
    with pytest.warns(UserWarning, match=naming(f"1 '{label}' {value}")):
        sim.step(3)
    calm.step(3)
    assert list(sim.health()) == [True, False] and sim.read("sim.time")[1] == pytest.approx(4e-3)
    assert different(bits(sim, 0), bits(calm, 0)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.reset([1])
        sim.step(2)
    assert sim.health().all()
