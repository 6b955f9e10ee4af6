"""Error messages and exit codes. Code 1: run, checks or file access failed. Code 2: invalid input. Code 130: Ctrl-C."""

from __future__ import annotations

import errno
import json
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
from gpusim.renamed import OPTIONS

DONE = 0
FAILED = 1
BAD_INPUT = 2

_LONGEST = 1200
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OptionError(GpusimError, ValueError):
    """Error for an invalid command-line option or argument."""


class BadRun(GpusimError):
    """Error for a finished run in which a check failed or a joint came apart."""


class Interrupted(GpusimError):
    """Error for a run that the user stopped with Ctrl-C."""


def exit_code(error: BaseException) -> int:
    """Return the exit code for ``error``."""
    if isinstance(error, Interrupted | KeyboardInterrupt | typer.Abort):
        return INTERRUPTED
    if isinstance(error, SimulationError | BadRun | OSError):
        return FAILED
    return BAD_INPUT


def sentence(error: BaseException) -> str:
    """Describe ``error`` on one line for the user."""
    if isinstance(error, MemoryError):
        text = f"not enough memory ({error or 'the request is too large'}); use fewer worlds or fewer signals"
    elif isinstance(error, OSError) and error.errno in _FULL and error.filename is not None:
        text = f"{error.filename!r} could not be written ({error.strerror}); free disk space, or use another folder"
    elif isinstance(error, KeyboardInterrupt | typer.Abort):
        text = "interrupted"
    elif hasattr(error, "format_message"):  # a usage error of typer's parser
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "gpusim"
        text = _plain(error.format_message().rstrip("."), _rejected_value(error))
        moved = OPTIONS.get(getattr(error, "option_name", ""))
        text += f"; since version 0.2, use {moved}" if moved else f"; see '{command} --help'"
    else:
        text = str(error)
    text = " ".join(text.split())
    # Cut the message: it may quote a very long value of the user.
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def _plain(text: str, given: str) -> str:
    """Return a shorter version of an error message from the option parser."""
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


def _rejected_value(error: BaseException) -> str:
    """Return ", got VALUE" for a rejected option, or an empty string if the error contains no value."""
    problems = getattr(error.__cause__, "errors", None)
    try:
        return f", got {problems()[0]['input']!r}" if callable(problems) else ""
    except (LookupError, TypeError):
        return ""


class CommandGroup(TyperGroup):
    """Group of all gpusim commands, which prints expected errors in one sentence and sets the exit code.

    Unexpected errors are bugs in gpusim, and print a traceback.
    """

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """Run the command line ``args``, then raise SystemExit with the exit code."""
        extra["standalone_mode"] = False
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # the shell has closed the stream (>&-)
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open as long as the process)
        try:
            with _signals_as_interrupts():
                result = super().main(args=args, prog_name=prog_name or "gpusim", **extra)
        except (GpusimError, OSError, MemoryError, KeyboardInterrupt, typer.Abort) as error:
            _exit_with_error(error, args)
        except Exception as error:
            # The parser's exception classes move between releases of typer, so we recognize them by a method.
            if not hasattr(error, "format_message"):
                raise
            _exit_with_error(error, args)
        sys.exit(result if isinstance(result, int) else DONE)


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP, so that recordings and films are closed before the exit."""
    kept = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # Keep handlers that are already set, e.g. ignored signals under nohup.
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                kept[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _exit_with_error(error: BaseException, args: Sequence[str] | None) -> None:
    """Print the error on stderr and exit with its code."""
    text, given = sentence(error), list(sys.argv[1:] if args is None else args)
    if "--json" in given and given[0] != "bench":  # for "bench", --json takes the name of a file
        print(json.dumps({"error": text}))
    print(f"gpusim: {text}", file=sys.stderr)
    sys.exit(exit_code(error))
