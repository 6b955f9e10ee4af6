from __future__ import annotations

import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np

from gpusim.recording import stream
from gpusim.recording.formats.writers import WRITERS
from gpusim.recording.recorder import load_recording
from gpusim.recording.stream import StreamRecorder, recover
from tests.unit.test_recording import Clock, Info

BLOCK, SAMPLES = 8, 120
_REPORT = struct.Struct("<iiii")


class Wide(Clock):
    num_worlds, signals_of_it = 40, 6

    def signals(self) -> dict[str, Info]:
        return {"sim.time": Info(()), **{f"body.b{k}.position": Info((3,)) for k in range(self.signals_of_it)}}

    def read(self, name: str, numpy: bool = False) -> np.ndarray:
        return self._time if name == "sim.time" else numbers(np.max(self._time))[0]


def numbers(time: np.ndarray | float) -> np.ndarray:
    """Return the values of a signal at times (n,), as (n, worlds, 3)."""
    phase = np.arange(3.0 * Wide.num_worlds).reshape(-1, 3)
    return np.sin(np.reshape(time, (-1, 1, 1)) + phase)


def record(folder: Path, suffix: str, pipe: int) -> None:
    stream._MAX_SAMPLES, run = BLOCK, 0
    while True:
        clock = Wide()
        recorder = StreamRecorder(clock, list(clock.signals())[1:], _path(folder, suffix, run))
        for k in range(SAMPLES):
            recorder.sample()
            clock.step()
            if k % BLOCK == 0:
                os.write(pipe, _REPORT.pack(run, k, 0, 0))
        os.write(pipe, _REPORT.pack(run, SAMPLES - BLOCK, 1, 0))
        recorder.close()
        os.write(pipe, _REPORT.pack(run, SAMPLES, 1, 1))
        run += 1


def _path(folder: Path, suffix: str, run: int) -> Path:
    return folder / f"run{run}.{suffix}"


def last_report(pipe: int) -> tuple[int, int, int, int]:
    data = b""
    while piece := os.read(pipe, 1 << 16):
        data += piece
    whole = len(data) // _REPORT.size * _REPORT.size
    return _REPORT.unpack(data[whole - _REPORT.size : whole]) if whole else (0, 0, 0, 0)


def check(folder: Path, suffix: str, report: tuple[int, int, int, int], restored: bool) -> None:
    run, written, _, closed = report
    path = _path(folder, suffix, run)
    part = path.with_name(path.name + ".part")
    if not path.exists() and not closed:
        if not written:
            return
        path = recover(part) if restored else part
    found = load_recording(path)
    assert len(found) >= written, (len(found), written)
    np.testing.assert_allclose(found.time, 0.5 * np.arange(len(found)))
    for name in list(Wide().signals())[1:]:
        np.testing.assert_array_equal(found[name], numbers(found.time))


def main(folder: Path, suffix: str, moments: int, seed: int) -> None:
    WRITERS[f".{suffix}"].prepare()
    chance = random.Random(seed)
    within = ending = 0
    for moment in range(moments):
        own = folder / str(moment)
        own.mkdir()
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(here)
            record(own, suffix, there)
        os.close(there)
        time.sleep(chance.uniform(0.02, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        report = last_report(here)
        os.close(here)
        check(own, suffix, report, restored=moment % 2 == 1)
        within, ending = within + (report[1] > 0 and not report[2]), ending + (report[2] and not report[3])
    print(within, ending)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
