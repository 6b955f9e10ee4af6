from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import EnergyAudit, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim import machines as m
from gpusim.machines.track_parts import GREASED
from gpusim.machines.tracks import BUSHING

from .crawler import PITCH, TEETH, Tracks, crawler, drive, small, weight

RAMP = 0.5
SETTLED = 0.5


class Run:
    def __init__(self, dt: float = 2.5e-3, **options: Any) -> None:
        self.sim, self.tracks = crawler(dt, backend="native", **options)
        self.every = round(0.02 / dt)
        self.gap = self.drift = 0.0

    def go(self, time: float, *speeds: float, audit: EnergyAudit | None = None) -> None:
        for _ in range(round(time / 0.02)):
            share = min(1.0, max(0.0, (self.sim.time - SETTLED) / RAMP))
            drive(self.sim, self.tracks, *(share * speed for speed in speeds))
            for _ in range(self.every):
                audit.step() if audit else self.sim.step()
            if self.tracks[0].shoes:
                self.gap = max(self.gap, *(track.gap(self.sim)[0] for track in self.tracks))
                self.drift = max(self.drift, *(abs(track.length_drift(self.sim)[0]) for track in self.tracks))

    def torque(self, speed: float) -> float:
        self.go(0.02, speed)
        return float(sum(self.read(f"servo.{side}_drive.force") for side in ("left", "right")))

    def read(self, name: str) -> np.ndarray:
        return np.array(self.sim.read(name, numpy=True)[0])

    def whole(self) -> None:
        assert self.sim.health()[0]
        assert self.gap < 1e-4 and self.drift < 1e-3
        chassis = Transform(self.read("body.chassis.position"), self.read("body.chassis.orientation")).inverse()
        for track in self.tracks:
            for k in range(track.count if track.shoes else 0):
                x, y, z = chassis.apply(self.read(f"body.{track.label}_shoe{k}.position")) - track.xform.position
                assert abs(x) < 1.25 and abs(y) < 0.03 and -0.1 < z < 0.8


@pytest.mark.nightly
@pytest.mark.native
def test_straight_on_level_ground() -> None:
    run = Run()
    assert max(track.gap(run.sim)[0] for track in run.tracks) < 1e-12
    audit = EnergyAudit(run.sim)
    run.go(1.3, 1.0, audit=audit)
    start, turned = run.read("body.chassis.position"), run.read("joint.left_drive.position")
    loads = []
    for _ in range(35):
        run.go(0.02, 1.0, audit=audit)
        loads.append(run.read("shape.ground.contact_force")[2])
    way = run.read("body.chassis.position") - start
    pitches = (run.read("joint.left_drive.position") - turned) * TEETH / (2.0 * math.pi)
    assert way[0] == pytest.approx(pitches * PITCH, rel=0.01)
    assert abs(way[1]) < 1e-3
    assert -np.mean(loads) == pytest.approx(weight(run.sim), rel=0.02)
    assert audit.balance().relative_error[0] < 1e-4
    run.whole()


@pytest.mark.nightly
@pytest.mark.native
def test_grip_on_thirty_degrees() -> None:
    level = Run()
    level.go(1.2, 0.3)
    lost = np.mean([level.torque(0.3) for _ in range(120)])
    angle = math.radians(30.0)
    run = Run(where={"slope": angle})
    run.go(1.2, 0.3)
    uphill = np.array([math.cos(angle), 0.0, math.sin(angle)])
    start, turned = run.read("body.chassis.position"), run.read("joint.left_drive.position")
    torque = np.mean([run.torque(0.3) for _ in range(120)])
    way = (run.read("body.chassis.position") - start) @ uphill
    track = run.tracks[0]
    assert way == pytest.approx((run.read("joint.left_drive.position") - turned) * track.advance, rel=0.01)
    sprocket, turn = m.Sprocket((0.0, 0.0)), 2.0 * math.pi / TEETH
    share = (2.0 * sprocket.play + GREASED.friction * BUSHING * PITCH * turn) / PITCH
    asked = weight(run.sim) * math.sin(angle) * track.advance * (1.0 + share) + lost
    assert torque == pytest.approx(asked, rel=0.08)
    run.whole()


@pytest.mark.nightly
@pytest.mark.native
def test_pivots_and_goes_back() -> None:
    run = Run()
    run.go(2.0, -0.6, 0.6)
    turn = run.read("body.chassis.angular_velocity")[2]
    assert 0.6 < turn < 2.0 * 0.6 / 1.3
    assert np.linalg.norm(run.read("body.chassis.position")[:2]) < 0.15
    run.go(1.0, -0.8)
    assert run.tracks[0].ground_speed(run.sim)[0] == pytest.approx(-0.8, abs=0.08)
    run.whole()


@pytest.mark.nightly
@pytest.mark.native
def test_climbs_a_step() -> None:
    run = Run(where={"step": 0.2})
    run.go(1.4, 1.0)
    audit = EnergyAudit(run.sim)
    run.go(1.6, 1.0, audit=audit)
    found = audit.balance()
    run.go(1.0, 1.0)
    x, _, z = run.read("body.chassis.position")
    assert x > 2.6 and z == pytest.approx(0.2, abs=0.02)
    assert found.relative_error[0] < 1e-3 and found.works["impacts"][0] < 1e-3 * found.turnover[0]
    run.whole()


@pytest.mark.nightly
@pytest.mark.native
def test_a_parked_carrier_is_still() -> None:
    run = Run()
    run.go(4.5, 0.0)
    for _ in range(25):
        run.go(0.02, 0.0)
        assert np.abs(run.read("body.chassis.linear_velocity")).max() < 5e-4
        for track in run.tracks:
            speeds = [run.read(f"body.{track.label}_shoe{k}.linear_velocity") for k in range(track.count)]
            assert np.abs(speeds).max() < 0.01


@pytest.mark.native
@pytest.mark.parametrize(
    ("pitch", "wheels"), [(0.12, True), (0.12, False), pytest.param(0.06, True, marks=pytest.mark.nightly)]
)
def test_a_track_keeps_the_tension_that_was_asked_for(pitch: float, wheels: bool) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    track = m.add_track(
        b, -1, pitch=pitch, sprocket=m.Sprocket((-0.9, 0.36), teeth=round(1.32 / pitch)),
        idler=m.Idler((0.9, 0.36), tension=5000.0), shoe=m.Shoe(size=(pitch - 2e-3, 0.3, 0.04), mass=30 * pitch),
        road=[m.RoadWheel((x, 0.181)) for x in (-0.6, -0.3, 0.0, 0.3, 0.6)] if wheels else [], label="left",
    )  # fmt: skip
    b.add_brake(track.drive, torque=5e4, command=1.0)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3, iterations=8))
    for steps in (20, 200):
        sim.step(steps)
        assert track.tension(sim)[0] == pytest.approx(5000.0, rel=0.01)
        assert abs(sim.read("joint.left_tension.position")[0]) < 1e-4
    assert max(float(np.abs(sim.read(f"body.left_shoe{k}.linear_velocity")).max()) for k in range(track.count)) < 0.02


@pytest.mark.native
def test_tension_is_that_of_the_pins() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    idler = m.Idler((0.9, 0.36), tension=3000.0, stiffness=1e5)
    track = m.add_track(b, -1, pitch=PITCH, sprocket=m.Sprocket((-0.9, 0.36)), idler=idler, label="left")
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=2.5e-3, iterations=4))
    sim.step(400)
    tension = track.tension(sim)[0]
    assert tension == pytest.approx(3000.0, rel=0.01)
    runs: dict[bool, list[float]] = {False: [], True: []}
    for k in range(track.count):
        x, _, z = sim.read(f"body.left_shoe{k}.position")[0]
        if abs(x) < 0.6:
            runs[z > 0.36].append(float(np.linalg.norm(sim.read(f"joint.left_pin{k}.reaction")[0][:3])))
    assert all(len(run) > 8 and np.ptp(run) < 0.002 * tension for run in runs.values())
    upper, lower = (np.mean(run) for run in runs.values())
    assert 0.5 * (upper + lower) == pytest.approx(tension, rel=5e-3)
    assert upper == pytest.approx(lower, rel=0.05)
    assert track.ground_speed(sim)[0] == 0.0 and abs(track.speed(sim)[0]) < 1e-2 and track.gap(sim)[0] < 1e-7


@pytest.mark.nightly
@pytest.mark.native
def test_surface_speed_moves_like_the_track() -> None:
    run = Run(dt=5e-3, surface_speed=True)
    assert not run.tracks[0].shoes and len(run.sim.model.bodies) == 25
    run.go(1.6, 1.0)
    assert run.tracks[0].ground_speed(run.sim)[0] == pytest.approx(1.0, rel=4e-3)
    run.go(1.0, -0.6, 0.6)
    assert 0.6 < run.read("body.chassis.angular_velocity")[2] < 2.0 * 0.6 / 1.3
    climb = Run(dt=5e-3, surface_speed=True, where={"slope": math.radians(30.0)})
    climb.go(2.6, 0.3)
    assert abs(climb.tracks[0].slip(climb.sim)[0]) < 0.01
    assert climb.tracks[0].ground_speed(climb.sim)[0] == pytest.approx(0.3, rel=0.05)


def state(sim: Simulation, world: int) -> np.ndarray:
    names = [f"body.{body.label}.{what}" for body in sim.model.bodies for what in ("position", "linear_velocity")]
    return np.array([sim.read(name, numpy=True)[world] for name in names])


def rolled(tracks: Tracks, sim: Simulation, worlds: int, steps: int) -> Simulation:
    for track in tracks:
        sim.control[f"{track.label}_drive"] = np.linspace(0.2, 1.0, 256)[-worlds:]
    sim.step(steps)
    return sim


@pytest.mark.nightly
@pytest.mark.native
def test_a_world_of_256_has_its_bits_alone() -> None:
    tracks, model = small()
    config = SolverConfig(dt=2.5e-3, iterations=4)
    many = rolled(tracks, Simulation(model, num_worlds=256, backend="native", config=config), 256, 8)
    alone = rolled(tracks, Simulation(model, backend="native", config=config), 1, 8)
    np.testing.assert_array_equal(state(many, 255), state(alone, 0))
    assert not np.array_equal(state(many, 0), state(alone, 0))
    assert many.health().all()


@pytest.mark.nightly
@pytest.mark.native
def test_numpy_and_native_agree() -> None:
    tracks, model = small()
    config = SolverConfig(dt=2.5e-3, iterations=4)
    native, numpy = (
        rolled(tracks, Simulation(model, backend=name, config=config), 1, 6) for name in ("native", "numpy")
    )
    np.testing.assert_allclose(state(numpy, 0), state(native, 0), atol=1e-6)


@pytest.mark.native
def test_a_scattered_ring_assembles() -> None:
    tracks, model = small(scatter=0.004)
    sim = Simulation(model, backend="native", config=SolverConfig(dt=2.5e-3, iterations=4))
    assert tracks[0].gap(sim)[0] > 1e-3
    sim.assemble()
    assert tracks[0].gap(sim)[0] < 1e-9
