from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram
from gpusim.typing import Array
from tests.backends import FASTEST
from tests.message_snapshot import naming

DT = 1e-3


def hinge(prefix: str = "", **options: float) -> ModelBuilder:
    b = ModelBuilder()
    joint = b.add_joint_revolute(-1, b.add_body(2.0, (0.1, 0.1, 0.1), label=f"{prefix}arm"), axis=(0, 0, 1))
    b.add_joint_force(joint, limit=(-1.0, 3.0), label=f"{prefix}drive", **options)
    return b


def simulation(b: ModelBuilder, worlds: int = 1, backend: str = FASTEST) -> Simulation:
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=DT))


def acting(sim: Simulation, steps: int, signal: str = "force.drive.command") -> Array:
    rows = []
    for _ in range(steps):
        sim.step()
        rows.append(np.array(sim.read(signal)))
    return np.array(rows)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_each_world_has_a_delay_of_its_own(backend: str) -> None:
    sim = simulation(hinge(delay=0.02, max_delay=0.05), 4, backend)
    sim.write("force.drive.delay", [0.0, 0.02, 0.0304, 0.05])
    sim.step(7)
    sim.control["drive"] = 2.0
    seen = acting(sim, 60)
    np.testing.assert_array_equal(np.argmax(seen == 2.0, axis=0), [0, 20, 30, 50])


def test_a_delay_is_the_same_course_later() -> None:
    late, now = simulation(hinge(delay=0.012)), simulation(hinge())
    paths = []
    for sim in (late, now):
        path = []
        for k in range(100):
            sim.control["drive"] = float(np.sin(0.3 * k))
            sim.step()
            path.append(float(sim.read("force.drive.command")[0]))
        paths.append(path)
    assert paths[0][12:] == paths[1][:-12] and set(paths[0][:12]) == {0.0}


def test_all_commands_of_a_servo_are_late() -> None:
    b = hinge()
    b.add_tracking_servo(0, 50.0, 5.0, target=0.1, label="servo", delay=0.004)
    sim = simulation(b)
    sim.step(10)
    assert sim.control["servo.applied"] == 0.1
    sim.control["servo"], sim.control["servo.velocity"], sim.control["servo.effort"] = 0.5, 0.2, 1.0
    for k in range(8):
        sim.step()
        applied = [float(sim.control[f"{name}.applied"][0]) for name in ("servo", "servo.velocity", "servo.effort")]
        assert applied == ([0.5, 0.2, 1.0] if k >= 4 else [0.1, 0.0, 0.0])


def test_what_a_diagram_commands_is_late_too() -> None:
    b = hinge(delay=0.01)
    d = Diagram("d")
    d.connect(d.add("step", "s", time=0.02), "command:drive")
    b.add_diagram(d)
    seen = acting(simulation(b), 50)
    assert int(np.argmax(seen > 0.5)) == 30


def test_stops_resets_and_copies() -> None:
    sim = simulation(hinge(delay=0.02), 2)
    sim.control["drive"] = 2.0
    sim.step(10)
    kept = sim.state.copy()
    first = acting(sim, 15)
    sim.state.restore(kept, [0, 1])
    sim.invalidate()
    np.testing.assert_array_equal(acting(sim, 15), first)
    sim.override(worlds=[0])
    np.testing.assert_array_equal(acting(sim, 1), [[0.0, 2.0]])
    sim.reset()
    sim.control["drive"] = 1.0
    assert int(np.argmax(acting(sim, 30)[:, 0] == 1.0)) == 20


def test_two_copies_in_one_model() -> None:
    b = ModelBuilder()
    for prefix in ("left_", "right_"):
        b.add_builder(hinge(delay=0.005), label_prefix=prefix)
    sim = simulation(b)
    sim.control["left_drive"] = 1.0
    sim.step(6)
    assert sim.read("force.left_drive.command") == 1.0 and sim.read("force.right_drive.command") == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": -0.1}, "joint_force 'drive' delay -0.1"),
        ({"delay": 0.2, "max_delay": 0.1}, "delay 0.2 max_delay 0.1"),
        ({"delay": float("nan")}, "delay nan"),
        ({"delay": 11.0}, "11 10000 0.001"),
    ],
)
def test_delays_that_are_none(options: dict[str, float], words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        simulation(hinge(**options))


def test_what_may_not_be_written() -> None:
    sim = simulation(hinge(delay=0.02))
    with pytest.raises(ModelError, match=naming("signal 'force.drive.delay' 0.03 0.02")):
        sim.write("force.drive.delay", 0.03)
    with pytest.raises(ModelError, match=naming("command 'drive.applied'")):
        sim.control["drive.applied"] = 1.0
    assert sim.command("*").names == ["drive"]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_was_commanded_before_a_stop_does_not_act_after_it(backend: str) -> None:
    b = hinge(delay=0.02)
    b.add_tracking_servo(0, 50.0, 5.0, target=0.1, label="servo", delay=0.02)
    sim = simulation(b, 2, backend)
    sim.control["drive"], sim.control["servo"] = 1.5, 1.0
    sim.step(10)
    sim.override(worlds=[0])
    sim.step(5)
    sim.release()
    held = float(sim.control["servo"][0])
    assert held != 1.0
    for k in range(40):
        sim.step()
        assert sim.control["drive.applied"].tolist() == [0.0, 1.5 if k >= 5 else 0.0]
        assert sim.control["servo.applied"].tolist() == [held, 1.0 if k >= 5 else 0.1]


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_a_diagram_commands_during_a_stop_does_not_act_after_it(backend: str) -> None:
    b = hinge(delay=0.02)
    d = Diagram("d")
    d.connect(1.5, "command:drive")
    b.add_diagram(d)
    sim = simulation(b, backend=backend)
    sim.step(30)
    assert sim.control["drive.applied"] == 1.5
    sim.override()
    np.testing.assert_array_equal(acting(sim, 60), np.zeros((60, 1)))
    sim.release()
    assert int(np.argmax(acting(sim, 40)[:, 0] == 1.5)) == 20


def test_what_acts_is_not_written() -> None:
    sim = simulation(hinge(delay=0.02))
    with pytest.raises(ModelError, match=naming("'drive.applied' 'drive'")):
        sim.control["drive.applied"] = 1.0


def test_a_delay_of_less_than_half_a_step_is_reported() -> None:
    with pytest.raises(ModelError, match=naming("0.0001 0.001")):
        simulation(hinge(delay=1e-4))
