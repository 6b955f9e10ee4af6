from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelError
from gpusim.recording.motion import MotionRecorder
from gpusim.scene import Scene, load_scene
from gpusim.stage.poses import Poses
from gpusim.viewer import ViewerError
from gpusim.viewer.window.adaptive_step import AdaptiveStep
from gpusim.viewer.window.session import SPEEDS, Session
from gpusim.viewer.window.sources import Live, Played
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.viewer.persons import played_pendulum


class Fake:
    def __init__(self, length: float | None = None, cost: float = 0.0) -> None:
        self.model: Any = None
        self.num_worlds = 1
        self.time, self.length, self.cost = 0.0, length, cost
        self.why = self.recording = ""

    def run_to(self, target: float, budget: float, smooth: bool) -> float:
        reach = self.time + budget / self.cost if self.cost else target
        self.time = min(target, reach, self.length or target)
        return self.time

    def single_step(self, count: int) -> None:
        self.time += 0.01 * count

    def jump(self, seconds: float) -> None:
        self.time += seconds

    def reset(self) -> None:
        self.time = 0.0

    def poses(self, worlds: Sequence[int], time: float | None) -> Poses:
        raise NotImplementedError

    def failure(self) -> str:
        return self.why


def run(session: Session, seconds: float, start: float = 0.0, rate: float = 50.0) -> float:
    for k in range(round(seconds * rate) + 1):
        session.frame(start + k / rate)
    return start + seconds


def pendulum(dt: float = 0.01) -> tuple[Live, Scene]:
    scene = load_scene("double_pendulum")
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=dt))
    return Live(sim, scene), scene


@pytest.mark.parametrize("speed", SPEEDS)
def test_the_source_keeps_pace(speed: float) -> None:
    session = Session(Fake(), speed=speed)
    run(session, 3.0)
    assert session.source.time == pytest.approx(3.0 * speed)
    assert session.real_time_factor() == pytest.approx(speed)
    assert not session.behind and session.dropped == 0.0


def test_notes_go_when_they_have_been_read() -> None:
    session = Session(Fake())
    session.frame(0.0)
    session.note = "restarted"
    for k in range(1, 70):
        session.frame(0.1 * k)
    assert session.note == "restarted"
    session.paused = True
    session.frame(100.0)
    session.paused = False
    session.frame(107.9)
    assert session.note == "restarted"
    session.frame(108.1)
    assert session.note == ""


def test_a_source_that_is_too_slow_drops_time_and_says_so() -> None:
    session = Session(Fake(cost=2.0))
    run(session, 4.0)
    # a budget of 1/30 s in each frame of 1/50 s, at twice the cost
    assert session.source.time == pytest.approx(201 * (1 / 30) / 2.0, rel=0.05)
    assert session.behind and session.dropped > 0.5
    assert session.real_time_factor() == pytest.approx(50 / 60, rel=0.05)


def test_a_short_lag_is_caught_up() -> None:
    source = Fake()
    session = Session(source)
    end = run(session, 1.0)
    source.cost = 2.0
    end = run(session, 0.2, end + 0.02)
    source.cost = 0.0
    run(session, 0.2, end + 0.02)
    assert source.time == pytest.approx(1.44) and session.dropped == 0.0


def test_a_stall_is_dropped() -> None:
    session = Session(Fake())
    run(session, 1.0)
    run(session, 1.0, start=9.0)
    assert session.source.time == pytest.approx(2.1)
    assert session.dropped == pytest.approx(7.9)
    run(session, 0.5, start=10.02)
    assert not session.behind


def test_pause_step_and_go_on() -> None:
    session = Session(Fake(), paused=True)
    end = run(session, 1.0)
    assert session.source.time == 0.0 and session.real_time_factor() == 0.0
    session.single_step()
    session.single_step(2)
    assert session.source.time == pytest.approx(0.03) and session.paused
    session.toggle_pause()
    run(session, 1.0, end + 0.02)
    # the time of the pause is not made up for
    assert session.source.time == pytest.approx(0.03 + 1.0 + 0.02)
    session.toggle_pause()
    assert session.paused


def test_keys_walk_through_the_speeds() -> None:
    session = Session(Fake(), speed=0.7)
    walked = []
    for _ in range(5):
        session.faster()
        walked.append(session.speed)
    assert walked == [1.0, 2.0, 4.0, 4.0, 4.0]
    for _ in range(6):
        session.slower()
    assert session.speed == 0.1
    with pytest.raises(ViewerError, match=naming("9 0.1 4")):
        Session(Fake(), speed=9.0)


def test_a_source_that_fails_pauses_and_reports() -> None:
    source = Fake()
    session = Session(source)
    run(session, 0.5)
    source.why = "all worlds failed"
    run(session, 0.5, 0.52)
    assert session.paused and session.note == "all worlds failed"
    session.toggle_pause()
    assert session.paused
    source.why = ""
    session.reset()
    session.toggle_pause()
    assert not session.paused and session.note == ""


def test_restart_with_other_parameters() -> None:
    asked: list[Mapping[str, Any]] = []

    def rebuild(changes: Mapping[str, Any]) -> Fake:
        asked.append(changes)
        if changes.get("mass") == -1:
            raise ModelError("mass must be above 0")
        return Fake()

    session = Session(Fake(), rebuild=rebuild)
    reported: list[float] = []
    session.on_restart.append(lambda: reported.append(session.source.time))
    run(session, 1.0)
    session.restart({"mass": -1})
    assert session.generation == 0 and session.note == "mass must be above 0" and reported == []
    session.restart({"mass": 3})
    assert asked[-1] == {"mass": 3} and session.generation == 1
    assert session.source.time == 0.0 and reported == pytest.approx([1.0])
    other = Session(Fake())
    other.restart()
    assert other.generation == 0 and "cannot be restarted" in other.note


# With simulations.


def test_a_simulation_is_where_the_clock_says() -> None:
    live, _ = pendulum()
    session = Session(live)
    run(session, 0.305, rate=200.0)
    assert float(live.sim.time) == pytest.approx(0.31) == live.time
    live.single_step(1)
    assert float(live.sim.time) == pytest.approx(0.32)
    session.reset()
    assert float(live.sim.time) == 0.0 == session.time


def test_the_schedule_sees_every_step() -> None:
    live, scene = pendulum()
    seen: list[float] = []
    scene.schedule = lambda sim, time: seen.append(time)
    live.run_to(0.05, 10.0, smooth=False)
    assert seen == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])


def test_forces_that_follow_the_state_are_asked_often_enough() -> None:
    live, _ = pendulum(dt=0.001)
    seen: list[float] = []
    live.before_step = seen.append
    live.run_to(0.04, 10.0, smooth=False)
    assert sum(seen) == pytest.approx(0.04) and max(seen) <= live.longest + 1e-12


def test_slow_motion_is_smooth() -> None:
    live, _ = pendulum(dt=0.02)
    session = Session(live, speed=0.1)
    angles, places = [], []
    for k in range(100):
        session.frame(k / 50.0)
        poses = session.poses([0])
        angles.append(np.arctan2(poses.rotation[0, 1, 0, 2], poses.rotation[0, 1, 0, 0]))
        places.append(poses.position[0, 1].copy())
        assert np.allclose(poses.rotation @ np.swapaxes(poses.rotation, -1, -2), np.eye(3), atol=1e-12)
    step = np.linalg.norm(np.diff(places, axis=0), axis=1)[30:]
    # ten frames for a step: no frame stands still, none jumps by a whole step
    assert step.min() > 0.5 * np.median(step) and step.max() < 1.6 * np.median(step)
    assert np.abs(np.diff(np.unwrap(angles))).max() < 0.02
    assert session.time == pytest.approx(99 / 500.0)


def test_at_full_speed_poses_are_those_of_a_step() -> None:
    live, _ = pendulum()
    session = Session(live)
    run(session, 0.105, rate=200.0)
    state = live.sim.read_state()
    assert np.array_equal(session.poses([0]).position[0], state["position"][0])


def test_what_is_recorded_is_reported_until_a_restart_ends_it(tmp_path) -> None:
    live, _ = pendulum()
    session = Session(live, rebuild=lambda changes: pendulum()[0])
    assert live.recording == "" and session.headline == "0.00 s"
    with MotionRecorder(live.sim, tmp_path / "boom.npz") as recorder:
        live.record(recorder)
        session.on_restart.append(lambda: live.record(None))
        session.single_step(20)
        session.reset()
        session.single_step(12)
        assert session.clock == "0.12 s"
        assert session.headline == "0.12 s   ● recording boom.npz 0.32 s"
        session.restart()
        assert session.source.recording == "" and session.headline == "0.00 s"
        assert session.note == "restarted; ended: recording boom.npz 0.32 s"
    session.restart()
    assert session.note == "restarted"


@pytest.fixture
def played(tmp_path) -> Played:
    return played_pendulum(tmp_path)


def test_a_playback_reports_where_it_is_and_how_long(played: Played) -> None:
    session = Session(played, paused=True)
    session.seek(0.318)
    assert session.time == pytest.approx(0.318)
    assert session.clock == "0.32 / 1.00 s" and session.headline == "playback 0.32 / 1.00 s"
    session.seek(7.0)
    assert session.clock == "1.00 / 1.00 s"
    session.toggle_pause()
    run(session, 0.2)
    session.seek(0.6)
    assert not session.paused and session.time == pytest.approx(0.6)
    run(session, 2.0, 0.22)
    assert session.note == "end, 1.00 s"
    session.seek(0.5)
    assert session.note == "" and session.paused


def test_a_recording_is_played_to_its_end_and_again(played: Played) -> None:
    session = Session(played)
    end = run(session, 0.5)
    assert session.time == pytest.approx(0.5) and not session.paused
    end = run(session, 1.0, end + 0.02)
    assert session.paused and session.time == pytest.approx(1.0) and session.note == "end, 1.00 s"
    session.toggle_pause()
    run(session, 0.2, end + 0.02)
    assert session.time == pytest.approx(0.22)


def test_scrubbing_a_recording(played: Played) -> None:
    session = Session(played, paused=True)
    session.scrub(0.413)
    assert session.time == pytest.approx(0.413)
    session.single_step()
    assert session.time == pytest.approx(0.42)
    session.single_step(-2)
    assert session.time == pytest.approx(0.38)
    session.scrub(-7.0)
    assert session.time == 0.0
    session.single_step(-1)
    assert session.time == 0.0
    session.scrub(7.0)
    assert session.time == pytest.approx(1.0)


def total_energy(sim: gpusim.Simulation) -> float:
    return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])


@pytest.mark.nightly
def test_the_step_grows_with_the_load_and_keeps_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = load_scene("double_pendulum")
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=gpusim.SolverConfig(dt=2e-3))
    now, cost, sizes = [0.0], [5e-4], []
    live = Live(sim, scene, clock=lambda: now[0])
    live.variable = AdaptiveStep(2e-3, 1e-2)
    step, start = sim.step, total_energy(sim)

    def timed(n: int = 1, dt: float | None = None) -> None:
        now[0] += n * cost[0]
        sizes.extend([dt] * n)
        step(n, dt)

    monkeypatch.setattr(sim, "step", timed)
    session = Session(live)
    end = run(session, 1.0)
    assert set(sizes) == {2e-3}
    cost[0] = 6e-3
    sizes.clear()
    end = run(session, 1.0, end + 0.02)
    assert session.dropped == 0.0 and session.real_time_factor() == pytest.approx(1.0, rel=0.05)
    assert 7e-3 < np.median(sizes) <= 1e-2
    cost[0] = 5e-4
    run(session, 1.0, end + 0.02)
    assert sizes[-1] == 2e-3
    assert total_energy(sim) == pytest.approx(start, abs=0.05)


def test_one_late_step_changes_nothing_and_sizes_rise() -> None:
    step = AdaptiveStep(1e-3, 8e-3)
    for seconds in (1e-4, 1e-4, 0.5, 1e-4, 1e-4):
        step.record(seconds)
        assert step.size == 1e-3
    for _ in range(5):
        step.record(1.0)
    assert step.size == 8e-3
    with pytest.raises(gpusim.ModelError, match=naming("AdaptiveStep min_dt 0.01 max_dt 0.001")):
        AdaptiveStep(1e-2, 1e-3)
