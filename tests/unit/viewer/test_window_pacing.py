from __future__ import annotations

import pytest

from gpusim.viewer.window.pacing import Pacer


class Clock:
    def __init__(self, over: float = 0.0) -> None:
        self.now, self.over = 100.0, over
        self.slept = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.over
        self.slept += seconds


def pacer(clock: Clock, rate: float = 50.0) -> Pacer:
    return Pacer(rate, clock, clock.sleep)


def test_deadlines_are_absolute_and_do_not_drift() -> None:
    clock = Clock(over=0.0004)
    p = pacer(clock)
    deadlines = []
    for _ in range(500):
        deadlines.append(p.wait())
        clock.now += 0.003
    assert deadlines == pytest.approx([100.0 + 0.02 * (k + 1) for k in range(500)], abs=1e-9)
    assert p.every == 1 and p.frame_rate() == pytest.approx(50.0)


def test_jitter_is_how_late_frames_begin() -> None:
    clock = Clock()
    p = pacer(clock)
    for k in range(40):
        clock.over = 0.004 if k == 7 else 0.001
        p.wait()
    overall = p.overall()
    assert overall.frames == 40 and overall.skipped == 0
    assert overall.worst == pytest.approx(0.004)
    assert overall.rms == pytest.approx(((39 * 0.001**2 + 0.004**2) / 40) ** 0.5)
    p.restart()
    assert p.overall().frames == 0


def test_the_figures_that_are_shown_are_of_the_last_frames() -> None:
    clock = Clock()
    p = pacer(clock)
    for k in range(300):
        clock.over = 0.004 if k == 7 else 0.001
        p.wait()
    assert p.recent().worst == pytest.approx(0.001)
    assert p.overall().worst == pytest.approx(0.004)


def test_a_stall_skips_deadlines_and_keeps_their_phase() -> None:
    clock = Clock()
    p = pacer(clock)
    for _ in range(5):
        p.wait()
    clock.now += 0.513
    late = p.wait()
    assert (late - 100.0) / 0.02 == pytest.approx(round((late - 100.0) / 0.02))
    assert clock.now - 0.02 < late <= clock.now
    assert p.overall().skipped == 24


def test_slow_frames_take_every_other_deadline_evenly() -> None:
    clock = Clock()
    p = pacer(clock)
    deadlines = []
    for _ in range(60):
        deadlines.append(p.wait())
        clock.now += 0.027
    steps = [b - a for a, b in zip(deadlines[10:], deadlines[11:], strict=False)]
    assert p.every == 2 and steps == pytest.approx([0.04] * len(steps))
    assert p.overall().skipped <= 2
    for _ in range(60):
        p.wait()
        clock.now += 0.004
    assert p.every == 1
