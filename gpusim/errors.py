"""The errors gpusim raises: each message names the element, the rule that it breaks and the mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GpusimError(Exception):
    """Base of all errors that gpusim raises on purpose."""


class ModelError(GpusimError, ValueError):
    """A model, parameter or input file breaks a rule."""


class UnknownNameError(GpusimError, KeyError):
    """A label, signal, scene or parameter that does not exist."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0]) if self.args else ""


class SimulationError(GpusimError, RuntimeError):
    """The simulation itself failed: NaN, overflow in strict mode, no convergence."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Error for an unknown ``name`` of some ``kind`` ("signal", "scene", ...): names the nearest known ones.

    Args:
        kind: what the name should have named.
        name: the name that was given.
        known: every valid name.
    """
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=5, cutoff=0.5)
    if near:
        hint = "did you mean " + ", ".join(repr(n) for n in near) + "?"
    elif names:
        shown = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
        hint = "known: " + shown
    else:
        hint = "there are none"
    return UnknownNameError(f"unknown {kind} {name!r}; {hint}")
