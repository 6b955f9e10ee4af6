from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpusim.cli import progress
from gpusim.cli.loop import simulate
from tests.cli.recordings import record_motion
from tests.unit.viewer.drawing import require_egl


class Clock:
    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 100.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def test_lines_come_first_after_10_s_and_then_every_30(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = Clock(), []
    monkeypatch.setattr(progress, "clock", clock)
    monkeypatch.setattr(progress, "note", lines.append)
    with progress.reported("pile", 1000, lambda done: f"{0.01 * done:g} s simulated") as report:
        clock.now += 20.0
        report.update(0)
        assert lines == []
        for second in range(21, 101):
            clock.now = 100.0 + second
            report.update(5 * second)
    assert lines == [
        "pile: 10.5 %, 1.05 s simulated, about 0:02:59 left",
        "pile: 25.5 %, 2.55 s simulated, about 0:02:29 left",
        "pile: 40.5 %, 4.05 s simulated, about 0:01:59 left",
    ]


@pytest.fixture
def fast_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "clock", Clock(0.5))


LINE = r"gpusim: double_pendulum: [0-9.]+ %, [0-9.]+ s simulated{}, about [0-9:]+ left"


@pytest.mark.nightly
def test_a_run_in_a_pipe_reports_how_far_it_is(cli, fast_clock) -> None:
    result = cli("run", "double_pendulum", "--duration", "0.5", "--backend", "numpy")
    lines = result.stderr.splitlines()
    assert result.exit_code == 0 and len(lines) >= 3
    assert all(re.fullmatch(LINE.format(""), line) for line in lines), lines


@pytest.mark.nightly
def test_films_report_their_frames(cli, fast_clock, tmp_path, monkeypatch) -> None:
    pytest.importorskip("imageio_ffmpeg")
    require_egl()
    monkeypatch.chdir(tmp_path)
    film = ("--out", "a.mp4", "--size", "64x36")
    short = ("--dt", "0.01", "--duration", "1", "--fps", "30", "--backend", "numpy")
    lines = cli("render", "double_pendulum", *film, *short).stderr.splitlines()
    assert lines and all(re.fullmatch(LINE.format(r", \d+ of 30 frames"), line) for line in lines), lines
    record_motion("a.npz")
    lines = cli("render", "a.npz", *film, "--fps", "60").stderr.splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(r"gpusim: double_pendulum: [0-9.]+ %, \d+ of 31 frames, about [0-9:]+ left", line)


class Slow:
    def __init__(self, clock: Clock) -> None:
        self.clock, self.config = clock, SimpleNamespace(dt=0.001)
        self.calls: list[int] = []

    def step(self, count: int) -> None:
        self.calls.append(count)
        self.clock.now += 0.01 * count

    def read(self, name: str, numpy: bool) -> Any:
        return np.array([0.001 * sum(self.calls) if name == "sim.time" else 0.0])

    def health(self) -> Any:
        return np.array([True])


def test_no_call_of_the_simulation_takes_long(monkeypatch) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "clock", clock)
    sim = Slow(clock)
    scene: Any = SimpleNamespace(name="slow", schedule=None)
    printed: list[str] = []
    monkeypatch.setattr(progress, "note", printed.append)

    class Enough(Exception):
        """Ends the test."""

    def sample() -> str:
        if len(printed) >= 3:
            raise Enough
        return "going on"

    with pytest.raises(Enough):
        simulate(sim, scene, 40_000_000, None, printed=sample)  # type: ignore[arg-type]
    assert max(sim.calls) <= 40 and np.mean(sim.calls) > 10
    assert re.fullmatch(r"slow: 0\.00\d+ %, 1\.\d+ s simulated, going on, about 4 days, [0-9:]+ left", printed[0]), (
        printed
    )


def test_calls_end_where_something_is_due(monkeypatch) -> None:
    sim = Slow(Clock())
    scene: Any = SimpleNamespace(name="slow", schedule=None)
    seen: list[int] = []
    recorder: Any = SimpleNamespace(sample=lambda: seen.append(sum(sim.calls)))
    simulate(sim, scene, 100, recorder, 7)  # type: ignore[arg-type]
    assert seen == [*range(0, 99, 7), 100]
