from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpusim import Simulation
from gpusim.output_files import atomic_file
from gpusim.signals.saving import checkpoint_file

from .test_checkpoints import pendulum

MOMENTS = 50


class Slow:
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), 1 + len(data) // 50):
            self.stream.write(data[start : start + 1 + len(data) // 50])
            self.stream.flush()
            time.sleep(1e-3)


@contextmanager
def slow_file(path: Path) -> Iterator[Slow]:
    with atomic_file(path) as stream:
        yield Slow(stream)


def main(folder: Path) -> None:
    path, sim = folder / "a.npz", pendulum(worlds=200)
    sim.save(path)
    checkpoint_file.atomic_file = slow_file  # type: ignore[assignment]
    random.seed(1)
    within, times = 0, set()
    for _ in range(MOMENTS):
        child = os.fork()
        while child == 0:
            sim.step()
            sim.save(path)
        time.sleep(random.uniform(0.0, 0.5))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        parts = list(folder.glob(".gpusim.*"))
        within += bool(parts)
        for part in parts:
            part.unlink()
        sim = Simulation.load(path)
        times.add(sim.time)
    print(within, len(times))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
