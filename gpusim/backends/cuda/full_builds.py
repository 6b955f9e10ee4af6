"""Full builds of kernels in the background: one after another, each in a separate process.

A compiling thread would die inside the compiler when its process ends, and change the exit code. A separate process
continues, so that the build is in the cache when the next run starts.
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
from pathlib import Path

from gpusim.backends.cuda.compile import compile_cuda
from gpusim.compile_cache import CompileError

NICE = 10
"""Niceness of the compiling process, so that the simulation has priority."""
_ROOT = Path(__file__).resolve().parents[3]


class FullBuild:
    """A full build in the background.

    Attributes:
        path: the cubin when it is ready. It stays None if the build fails, and the quick build stays in use.
        ended: the build is ready or failed.
    """

    def __init__(self, make: Callable[[], Path]) -> None:
        self.path: Path | None = None
        self.ended = False
        self._make = make

    def make(self) -> None:
        """Make the build."""
        try:
            self.path = self._make()
        except Exception:  # e.g. a full disk: the run continues, and so do the builds in the queue
            pass
        finally:
            self.ended = True


@cache
def waiting_builds() -> queue.SimpleQueue[FullBuild]:
    """Return the queue of full builds, with a daemon thread that makes them."""
    waiting: queue.SimpleQueue[FullBuild] = queue.SimpleQueue()

    def work() -> None:
        while True:
            waiting.get().make()

    threading.Thread(target=work, name="gpusim full builds", daemon=True).start()
    return waiting


def compile_apart(main: str, generated: dict[str, str], defines: dict[str, str], arch: str, fast: bool) -> Path:
    """Run :func:`gpusim.backends.cuda.compile.compile_cuda` in a separate process.

    Raises:
        CompileError: as there, or the process failed.
    """
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps([main, generated, defines, arch, fast]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # Ctrl-C must stop the run only
    )
    if done.returncode:
        raise CompileError(done.stderr.strip() or f"the compiler's process ended with {done.returncode}")
    return Path(done.stdout.strip())


def _compile_given() -> int:
    """Compile the job on standard input. Return the exit code."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    main, generated, defines, arch, fast = json.load(sys.stdin)
    try:
        print(compile_cuda(main, generated, defines, arch, fast))
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_compile_given())
