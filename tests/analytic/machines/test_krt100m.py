from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusim import EnergyAudit, ModelError, Simulation, Transform
from gpusim.scene import Scene, load_scene
from gpusim.scenes.machines import krt100m
from tests.message_snapshot import naming

pytestmark = pytest.mark.native
WHEELS = (*krt100m.WHEELS, *krt100m.TRAILER_WHEELS)


class Run:
    def __init__(self, dt: float = 1e-2, **parameters: Any) -> None:
        self.scene: Scene = load_scene("krt100m", **parameters)
        config = replace(self.scene.config, dt=dt)
        self.sim = Simulation(self.scene.builder.finalize(), backend="native", config=config)

    def go(self, seconds: float) -> None:
        assert self.scene.schedule is not None
        for _ in range(round(seconds / self.sim.config.dt)):
            self.scene.schedule(self.sim, self.sim.time)
            self.sim.step()

    def read(self, name: str) -> np.ndarray:
        return np.array(self.sim.read(name)[0], dtype=float)

    def place(self) -> Transform:
        return Transform(self.read("body.chassis.position"), self.read("body.chassis.orientation"))


@pytest.mark.nightly
def test_it_stands_as_built_on_the_loads_of_the_balance() -> None:
    run = Run(speed=0.0, obstacle="none")
    run.go(6.0)
    loads = np.repeat(krt100m.axle_loads(), 2)
    found = [run.read(f"shape.{name}_tire.contact_force")[2] for name in WHEELS]
    np.testing.assert_allclose(found, loads, rtol=2e-3)
    assert sum(found) == pytest.approx(loads.sum(), rel=1e-9)
    built = run.scene.builder.bodies[0].xform.position
    assert np.abs(run.read("body.chassis.position") - built).max() < 5e-4


@pytest.mark.nightly
@pytest.mark.parametrize("trailer", [True, False])
def test_it_keeps_its_line(trailer: bool) -> None:
    run = Run(speed=5.0, obstacle="none", drive_mode="speed", trailer=trailer)
    run.go(4.0)
    start = run.read("body.chassis.position")
    run.go(3.7)
    way = run.read("body.chassis.position") - start
    assert way[0] > 18.0 and run.read("body.chassis.linear_velocity")[0] > 4.9
    assert abs(way[1]) < 1e-4 < 1e-3


@pytest.mark.nightly
def test_its_brakes_hold_it_on_a_slope() -> None:
    run = Run(speed=0.0, obstacle="none", slope=math.radians(10.0), brake=True)
    run.go(6.0)
    start = run.read("body.chassis.position")
    run.sim.step(6000)
    assert np.abs(run.read("body.chassis.position") - start).max() < 1e-6 < 1e-4


@pytest.mark.nightly
@pytest.mark.parametrize(("speed", "angle"), [(2.0, 0.3), (4.0, 0.1)])
@pytest.mark.parametrize("trailer", [True, False])
def test_yaw_rate_is_that_of_the_bicycle_model(speed: float, angle: float, trailer: bool) -> None:
    run = Run(speed=speed, steer=angle, obstacle="none", drive_mode="speed", trailer=trailer)
    run.go(8.0)
    rate, velocity = run.read("body.chassis.angular_velocity"), run.read("body.chassis.linear_velocity")
    frame = run.place().matrix()
    axle = frame @ (-0.5 * krt100m.WHEELBASE, 0.0, krt100m.RADIUS)
    ahead = float((velocity + np.cross(rate, axle)) @ frame[:, 0])
    assert ahead > 0.9 * speed
    assert rate[2] == pytest.approx(ahead * math.tan(angle) / krt100m.WHEELBASE, rel=1e-2)


@pytest.mark.nightly
def test_it_turns_on_the_spot() -> None:
    run = Run(speed=0.0, turn=1.0, obstacle="none", trailer=False)
    turned = 0.0
    for _ in range(60):
        run.go(0.1)
        turned += 0.1 * run.read("body.chassis.angular_velocity")[2]
    assert turned > math.pi
    assert run.read("joint.rr_spin.velocity") > 1.0 > -1.0 > run.read("joint.rl_spin.velocity")
    assert float(np.linalg.norm(run.read("body.chassis.position")[:2])) < 0.6 * krt100m.WHEELBASE


@pytest.mark.nightly
@pytest.mark.parametrize(("obstacle", "height"), [("kerb", 0.15), ("sine", 0.08), ("step", 0.15)])
@pytest.mark.parametrize("dt", [5e-3, 1e-2])
def test_its_loops_and_travel_hold_over_obstacles(obstacle: str, height: float, dt: float) -> None:
    run = Run(dt, obstacle=obstacle, height=height, travel=0.04)
    coordinates = {}
    for joint in run.scene.builder.joints:
        if joint.label in [f"{name}_lower" for name in krt100m.WHEELS]:
            limits = (float(np.ravel(joint.params[f"limit_{end}"])[0]) for end in ("lower", "upper"))
            coordinates[f"joint.{joint.label}.position"] = tuple(limits)
    least = dict.fromkeys(coordinates, math.inf)
    most = dict.fromkeys(coordinates, -math.inf)
    for _ in range(round(4.0 / dt)):
        run.go(dt)
        assert run.sim.read("sim.joint_drift")[0] < 1e-4
        for name in coordinates:
            value = float(run.read(name))
            least[name], most[name] = min(least[name], value), max(most[name], value)
    slack = 5e-4 / 0.35
    for name, (low, high) in coordinates.items():
        assert low - slack < least[name] and most[name] < high + slack
    assert least["joint.fr_lower.position"] < -0.07 and most["joint.fl_lower.position"] > 0.06
    assert run.sim.health().all() and run.read("body.chassis.position")[0] > krt100m.OBSTACLE_X


@pytest.mark.nightly
def test_its_energy_account_closes() -> None:
    run = Run()
    audit = EnergyAudit(run.sim)
    assert run.scene.schedule is not None
    for _ in range(400):
        run.scene.schedule(run.sim, run.sim.time)
        audit.step()
    balance = audit.balance()
    assert balance.works["motor.drive"][0] > 500.0 and balance.works["contacts"][0] < -100.0
    assert abs(float(balance.relative_error[0])) < 1e-3 < 1e-2


@pytest.mark.nightly
def test_worlds_have_their_bits_alone() -> None:
    worlds_together = 64
    scene = load_scene("krt100m")
    model, steps = scene.builder.finalize(), 30
    rng = np.random.default_rng(3)
    numbers = {name: rng.uniform(low, high, worlds_together) for name, low, high in KNOBS}

    def ends(worlds: np.ndarray) -> dict[str, np.ndarray]:
        sim = Simulation(model, worlds.size, backend="native", config=replace(scene.config, dt=1e-2))
        sim.write("shape.ground.friction", numbers["friction"][worlds])
        sim.write("body.chassis.mass", numbers["mass"][worlds])
        for command in ("drive", "steer", "fl_brake"):
            sim.control[command] = numbers[command][worlds]
        sim.step(steps)
        state = sim.read_state()
        return {name: np.array(state[name]) for name in ("position", "orientation", "linear_velocity", "impulse")}

    chosen = np.array([0, 37, 50, 63])
    together = ends(np.arange(worlds_together))
    for world in chosen:
        alone = ends(np.array([world]))
        for name, values in alone.items():
            assert np.array_equal(values[0], together[name][world]), (world, name)
    assert len(np.unique(together["position"][:, 0, 0])) == worlds_together


KNOBS = (
    ("friction", 0.5, 1.0), ("mass", 350.0, 450.0), ("drive", -1.0, 1.0), ("steer", -0.04, 0.04), ("fl_brake", 0.0, 1.0)
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 0.5}, "'height' 0.01 0.15 0.5"),
        ({"speed": 9.0}, "'speed' -5.4 9.0"),
        ({"turn": -9.0}, "'turn' -5.4"),
        ({"travel": 0.5}, "'travel' 0.02 0.12"),
        ({"slope": 1.0}, "'slope' -0.6"),
        ({"steer": 1.0}, "'steer' angle 1"),
        ({"stiffness": -5.0}, "'fl' spring.stiffness -5"),
        ({"obstacle": "wall"}, "'kerb' 'sine' 'step' 'none'"),
    ],
)
def test_bad_parameters_are_reported(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=naming(message)):
        load_scene("krt100m", **change)


@pytest.mark.nightly
def test_random_commands_leave_it_whole() -> None:
    run = Run(dt=5e-3)
    rng = np.random.default_rng(5)
    ranges = {"drive": (-1.0, 1.0), "turn": (-3.0, 3.0), "turn_clutch": (0.0, 1.0), "steer": (-0.048, 0.048)}
    ranges |= {f"{name}_brake": (-1.0, 1.0) for name in WHEELS}  # below 0: released
    for _ in range(25):
        for command, ends in ranges.items():
            run.sim.control[command] = rng.uniform(*ends)
        for _ in range(10):
            run.sim.step(4)
            assert run.sim.read("sim.joint_drift")[0] < 1e-4
    assert run.sim.health().all(), run.sim.health_report()
