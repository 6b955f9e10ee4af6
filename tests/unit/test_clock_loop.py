from __future__ import annotations

import gc
import os
import sys

import pytest

import gpusim
from gpusim.cosim import StepClock
from gpusim.cosim.realtime import realtime_thread
from tests.message_snapshot import naming

MS = 1_000_000


class Time:
    def __init__(self) -> None:
        self.now = 5 * MS

    def look(self) -> int:
        self.now += 1000
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(1e9 * seconds) + 20_000


def clock(overrun: str = "catch_up", spin: float = 5e-5) -> tuple[StepClock, Time]:
    now = Time()
    return StepClock(1e-3, overrun, spin, now.look, now.sleep), now


def begun(clock_: StepClock, now: Time, work: list[float]) -> list[float]:
    found, first = [], 0
    for number, busy in enumerate(work):
        clock_.wait()
        first = first if number else now.now
        found.append((now.now - first) / MS)
        now.now += round(busy * MS)
    clock_.end()
    return found


def test_deadlines_are_absolute() -> None:
    clock_, now = clock()
    found = begun(clock_, now, [0.1, 0.7, 0.3] * 100)
    assert found == pytest.approx(list(range(300)), abs=0.003)
    report = clock_.report()
    assert (report.cycles, report.overruns, report.lost) == (300, 0, 0)
    assert report.late.max <= 3e-6 and report.wall == pytest.approx(0.2993, abs=1e-5)
    late = begun(*clock(spin=0.0), [0.1] * 10)
    assert late[1:] == pytest.approx([k + 0.02 for k in range(1, 10)], abs=0.003)


def test_catch_up_begins_late_cycles_at_once() -> None:
    clock_, now = clock("catch_up")
    found = begun(clock_, now, [0.1, 2.5, 0.1, 0.1, 0.1, 0.1])
    assert found == pytest.approx([0.0, 1.0, 3.5, 3.6, 4.0, 5.0], abs=0.02)
    report = clock_.report()
    assert (report.cycles, report.overruns, report.lost) == (6, 2, 0)
    assert report.late.max == pytest.approx(1.5e-3, abs=2e-5)
    assert report.work.max == pytest.approx(2.5e-3, abs=2e-5)


def test_skip_leaves_missed_deadlines_out() -> None:
    clock_, now = clock("skip")
    found = begun(clock_, now, [0.1, 2.5, 0.1, 0.1])
    assert found == pytest.approx([0.0, 1.0, 4.0, 5.0], abs=0.01)
    report = clock_.report()
    assert (report.cycles, report.overruns, report.lost, clock_.deadlines) == (4, 1, 2, 6)
    assert report.late.max <= 3e-6


def test_the_report_has_percentiles() -> None:
    clock_, now = clock()
    begun(clock_, now, [0.2] * 989 + [0.6] * 11)
    work = clock_.report().work
    assert work.min == pytest.approx(2.02e-4, abs=2e-6) and work.max == pytest.approx(6.02e-4, abs=2e-6)
    assert work.mean == pytest.approx((989 * 2e-4 + 11 * 6e-4) / 1000, rel=0.01)
    assert 6e-4 < work.p99 <= work.max
    text = str(clock_.report(("no SCHED_FIFO: not permitted",)))
    assert "1000 cycles of 1 ms" in text and "0 lost" in text and "note: no SCHED_FIFO" in text


def falling(dt: float = 1e-3) -> gpusim.Simulation:
    builder = gpusim.ModelBuilder()
    builder.add_shape_box(builder.add_body(mass=2.0, label="box"), half_extents=(0.1, 0.1, 0.1))
    return gpusim.Simulation(builder.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=dt))


def test_a_loop_calls_the_callback_before_each_cycle() -> None:
    sim, times = falling(), []
    report = gpusim.run_clock(sim, lambda sim, time: times.append(time), duration=0.05, rate=200.0, realtime=False)
    assert times == pytest.approx([0.005 * k for k in range(10)])
    assert (report.cycles, report.lost, report.period) == (10, 0, pytest.approx(0.005))
    assert sim.time == pytest.approx(0.05) and gc.isenabled()


def test_a_comparison_of_a_signal_ends_the_loop() -> None:
    for chosen in (0, slice(None)):
        sim = falling()
        gpusim.run_clock(sim, lambda sim, time, k=chosen: sim.read("sim.time")[k] < 0.0025, realtime=False)
        assert sim.time == pytest.approx(0.003)


@pytest.mark.nightly
def test_false_and_failed_worlds_end_the_loop() -> None:
    sim = falling()
    report = gpusim.run_clock(sim, lambda sim, time: time < 0.0045)
    assert report.cycles == 6 and sim.time == pytest.approx(0.005)
    sim.write("body.box.applied_force", (1e300, 0.0, 0.0))
    with pytest.warns(UserWarning, match="world 0"):
        assert gpusim.run_clock(sim, duration=1.0).cycles == 1


@pytest.mark.nightly
def test_missing_rights_are_noted_and_the_scheduler_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if sys.platform.startswith("linux"):
        before = os.sched_getscheduler(0)
        with realtime_thread():
            pass
        assert os.sched_getscheduler(0) == before
        monkeypatch.setattr(os, "sched_setscheduler", refuse)
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr("resource.getrlimit", lambda _: (65536, 65536))
    report = gpusim.run_clock(falling(), duration=0.002)
    assert len(report.notes) == 2 and "SCHED_FIFO" in report.notes[0] and "locked" in report.notes[1]


def test_bad_arguments_are_refused() -> None:
    sim = falling()
    with pytest.raises(gpusim.ModelError, match=naming("rate = 300 1000")):
        gpusim.run_clock(sim, duration=1.0, rate=300.0)
    with pytest.raises(gpusim.ModelError, match=naming("duration callback")):
        gpusim.run_clock(sim)
    with pytest.raises(gpusim.UnknownNameError, match=naming("'stop' 'skip'")):
        gpusim.run_clock(sim, duration=1.0, overrun="stop")
    with pytest.raises(gpusim.ModelError, match=naming("priority = 100")):
        gpusim.run_clock(sim, duration=1.0, priority=100)
    with pytest.raises(gpusim.ModelError, match=naming("callback 3")):
        gpusim.run_clock(sim, 3)
    with pytest.raises(gpusim.ModelError, match=naming("duration = -1")):
        gpusim.run_clock(sim, duration=-1.0)
