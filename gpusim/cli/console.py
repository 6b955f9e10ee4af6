"""Consoles for tables and progress bars."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

_PIPE_WIDTH = 160


def out_console() -> Console:
    """Return a console on stdout. In a pipe, the console is wide enough for all tables."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def error_console() -> Console:
    """Return a console on stderr, for progress and notes."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """Print a note on stderr."""
    print(f"gpusim: {text}", file=sys.stderr)


@contextmanager
def notes_instead_of_warnings() -> Iterator[None]:
    """Within a ``with`` block, print Python warnings as notes without the source line."""

    def show(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        note(f"warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
