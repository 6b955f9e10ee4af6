"""Errors of gpusim. Each error message names the element, the broken rule and the fix."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from gpusim.renamed import new_name, since

PACKAGE = str(Path(__file__).parent) + os.sep


class GpusimError(Exception):
    """Base class of all errors of gpusim."""


class ModelError(GpusimError, ValueError):
    """A model, parameter or input file is invalid."""


class UnknownNameError(GpusimError, KeyError):
    """A label, signal, scene or parameter does not exist."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0]) if self.args else ""


class SimulationError(GpusimError, RuntimeError):
    """A simulation failed, for example because of NaN or an overflow in strict mode."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name. The message contains the nearest known names.

    Args:
        kind: type of the unknown object, such as "signal" or "scene".
        name: the unknown name.
        known: all valid names.
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=5, cutoff=0.5)
    new = new_name(str(name), names)
    if new:
        hint = f"it is {new!r} {since(str(name))}"
    elif near:
        hint = "did you mean " + ", ".join(repr(n) for n in near) + "?"
    elif names:
        shown = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
        hint = "known: " + shown
    else:
        hint = "there are none"
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}")


def callers_level() -> int:
    """Return the ``stacklevel`` with which a warning shows the user's line that called gpusim."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
