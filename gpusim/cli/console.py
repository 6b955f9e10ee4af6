"""Consoles for tables and progress bars."""

from __future__ import annotations

import sys

from rich.console import Console

_PIPE_WIDTH = 160


def out_console() -> Console:
    """Console on stdout; wide enough in a pipe that no table loses text."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def error_console() -> Console:
    """Console on stderr, for progress and notes."""
    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """One line to the user beside the results (stderr)."""
    print(f"gpusim: {text}", file=sys.stderr)
