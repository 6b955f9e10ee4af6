"""Compile kernels in the background, one build after another, each in a separate process.

Compilation continues after the end of the simulation. The next run finds the build in the cache.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gpusim.compile_cache import CompileError

NICE = 10
"""Niceness of the process that compiles. A positive niceness gives the simulation priority."""
_ROOT = Path(__file__).resolve().parents[2]


class BackgroundBuild:
    """Kernel library or cubin that is compiled in the background.

    Attributes:
        path: path of the compiled file. The path is None until the file is ready, and stays None after a failure.
        ended: True if the build is ready or has failed.
    """

    def __init__(self, make: Callable[[], Path]) -> None:
        self.path: Path | None = None
        self.ended = False
        self._make = make

    def make(self) -> None:
        """Compile the build."""
        try:
            self.path = self._make()
        except Exception:  # for example, the disk is full. The run and the other builds continue
            pass
        finally:
            self.ended = True


@cache
def waiting_builds() -> queue.SimpleQueue[BackgroundBuild]:
    """Return the queue of background builds. A thread compiles them one after another."""
    waiting: queue.SimpleQueue[BackgroundBuild] = queue.SimpleQueue()

    def work() -> None:
        while True:
            waiting.get().make()

    threading.Thread(target=work, name="gpusim builds", daemon=True).start()
    return waiting


def compile_apart(compiler: Callable[..., Path], *given: Any) -> Path:
    """Run the function ``compiler`` in a separate process. The arguments of ``compiler`` must be JSON values.

    Raises:
        CompileError: the function raised a CompileError, or the process failed.
    """
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps([compiler.__module__, compiler.__name__, given]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # Ctrl-C must only stop the run
    )
    if done.returncode:
        raise CompileError(done.stderr.strip() or f"the compiler's process ended with {done.returncode}")
    return Path(done.stdout.strip())


def _compile_given() -> int:
    """Read a compilation job from standard input, and run it."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    module, name, given = json.load(sys.stdin)
    try:
        print(getattr(import_module(module), name)(*given))
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_compile_given())
