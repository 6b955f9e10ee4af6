"""Exit codes and error sentences: 0 done, 1 the run failed or is not what it must be, 2 bad input, 130 interrupted."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from gpusim.errors import GpusimError, SimulationError
from gpusim.interrupts import INTERRUPTED

DONE = 0
FAILED = 1
BAD_INPUT = 2

_LONGEST = 1200
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OptionError(GpusimError, ValueError):
    """A command-line option or argument breaks a rule."""


class BadRun(GpusimError):
    """A run that came to its end, but not as the scene's checks or whole joints have it."""


class Interrupted(GpusimError):
    """The user stopped the run with Ctrl-C."""


def exit_code(error: BaseException) -> int:
    """The exit code that ``error`` stands for."""
    if isinstance(error, Interrupted | KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(error, SimulationError | BadRun | OSError):
        return FAILED
    return BAD_INPUT


def sentence(error: BaseException) -> str:
    """What went wrong, on one line, for people."""
    if isinstance(error, MemoryError):
        text = f"not enough memory ({error or 'the request is too large'}); use fewer worlds or fewer signals"
    elif isinstance(error, OSError) and error.errno in _FULL and error.filename is not None:
        text = f"{error.filename!r} could not be written ({error.strerror}); make room, or name another folder"
    elif isinstance(error, KeyboardInterrupt | typer.Abort):
        text = "interrupted"
    elif hasattr(error, "format_message"):  # a usage error of typer's parser
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "gpusim"
        text = f"{_plain(error.format_message().rstrip('.'), _given(error))}; see '{command} --help'"
    else:
        text = str(error)
    text = " ".join(text.split())
    # a value of 100,000 letters is no sentence
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _plain(text: str, given: str) -> str:
    """What the parser says, in our words; what is not known stays as it is.

    Its texts differ from release to release, and some are those of a library below it.
    """
    match = re.fullmatch(r"Invalid value for '?([^':]+)'?[^:]*: (?:Value error, )?(.*)", text, flags=re.DOTALL)
    if match is None:
        return text
    name, what = match.groups()
    choice = re.fullmatch(r"'(.*)' is not one of (.*)", what)
    if choice is not None:
        return f"{name} {choice.group(1)!r} is not one of {choice.group(2).replace(chr(39), '')}"
    kind = re.match(r"Input should be (a valid \w+)", what)
    if kind is not None:
        return f"{name} must be {kind.group(1)}{given}"
    return f"{name}: {what}"


def _given(error: BaseException) -> str:
    """What was given for an option, as far as the parser tells."""
    problems = getattr(error.__cause__, "errors", None)
    try:
        return f", got {problems()[0]['input']!r}" if callable(problems) else ""
    except (LookupError, TypeError):
        return ""


class CommandGroup(TyperGroup):
    """The commands of gpusim, with every foreseen error turned into one sentence on stderr and an exit code.

    A traceback can then only mean a bug in gpusim: such errors pass through untouched.
    """

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """Run the command line ``args`` and leave by SystemExit."""
        extra["standalone_mode"] = False
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the shell, >&-; nobody wants to read
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (as long as the process)
        try:
            with _signals_as_interrupts():
                result = super().main(args=args, prog_name=prog_name or "gpusim", **extra)
        except (GpusimError, OSError, MemoryError, KeyboardInterrupt, typer.Abort) as error:
            _leave(error)
        except Exception as error:
            # the parser's own exceptions have moved between releases of typer: known by their method
            if not hasattr(error, "format_message"):
                raise
            _leave(error)
        sys.exit(result if isinstance(result, int) else DONE)


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """The end of a session or a container is told as Ctrl-C is: recordings and films are closed first."""
    kept = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # who ignores it (nohup) or handles it goes on to do so
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                kept[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _leave(error: BaseException) -> None:
    print(f"gpusim: {sentence(error)}", file=sys.stderr)
    sys.exit(exit_code(error))
