"""Full builds of kernels, made beside the run: one after another, each by a process of its own.

A thread that compiles dies inside of the compiler when its process ends, and takes the process's exit code along. A
process of its own goes on, so that the cache has the build when the next run starts.
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

from gpusim.backends.compile_cuda import compile_cuda
from gpusim.compile_cache import CompileError

NICE = 10
"""The run goes first."""
_ROOT = Path(__file__).resolve().parents[2]


class FullBuild:
    """A full build that is made in the background.

    Attributes:
        path: where it is, once it is there; None also where it can't be made, for the quick one does.
        ended: whether there is nothing to wait for.
    """

    def __init__(self, make: Callable[[], Path]) -> None:
        self.path: Path | None = None
        self.ended = False
        self._make = make

    def make(self) -> None:
        """Make it."""
        try:
            self.path = self._make()
        except Exception:  # as a full disk; what runs goes on, and those that wait behind it are made
            pass
        finally:
            self.ended = True


@cache
def waiting_builds() -> queue.SimpleQueue[FullBuild]:
    """Full builds to be made, by a thread that ends with the process."""
    waiting: queue.SimpleQueue[FullBuild] = queue.SimpleQueue()

    def work() -> None:
        while True:
            waiting.get().make()

    threading.Thread(target=work, name="gpusim full builds", daemon=True).start()
    return waiting


def compile_apart(main: str, generated: dict[str, str], defines: dict[str, str], arch: str, fast: bool) -> Path:
    """:func:`gpusim.backends.compile_cuda.compile_cuda` in a process of its own, which ends when it has compiled.

    Raises:
        CompileError: as there, or no process can be started.
    """
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps([main, generated, defines, arch, fast]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,  # Ctrl-C is for the run
    )
    if done.returncode:
        raise CompileError(done.stderr.strip() or f"the compiler's process ended with {done.returncode}")
    return Path(done.stdout.strip())


def _compile_given() -> int:
    """Compile what standard input asks for; the exit code."""
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
