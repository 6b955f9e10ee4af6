"""Digests (hashes) of the parts of a model. They show whether a saved state belongs to the model."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim.description.elements import Elements
from gpusim.typing import Array

_UNSEEN = ("visuals", "poses", "cameras", "lights", "num_worlds")
"""Parts of a model that do not affect the simulation steps."""
_PICTURES = ("color", "covered")


def model_digest(model: Elements, gravity: Array) -> dict[str, str]:
    """Return a dict of the digests of all model parts that affect simulation steps.

    Equal models have equal digests in every process.
    """
    parts = {f.name: getattr(model, f.name) for f in dataclasses.fields(Elements) if f.name not in _UNSEEN}
    return {name: digest_of(part) for name, part in (parts | {"gravity": gravity}).items()}


def different_parts(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return the names of the model parts with different digests."""
    return [name for name in ours if theirs.get(name) != ours[name]]


def digest_of(value: Any) -> str:
    """Return the digest of a value of any type."""
    digest = hashlib.sha256()
    _feed(digest, value, ())
    return digest.hexdigest()


def _feed(digest: Any, value: Any, within: tuple[int, ...]) -> None:
    """Add a value to a digest. ``within`` contains the ids of the enclosing objects."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        digest.update(f"{type(value).__name__} {value!r};".encode())
    elif id(value) in within:
        digest.update(b"circle;")
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"array {value.dtype.str} {value.shape};".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        _feed_parts(digest, value, (*within, id(value)))


def _feed_parts(digest: Any, value: Any, within: tuple[int, ...]) -> None:
    """Add the type and the content of an object to a digest."""
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        digest.update(f"{value.__module__} {value.__qualname__};".encode())
        return
    digest.update(f"{type(value).__qualname__} (".encode())
    if isinstance(value, set | frozenset):
        value = sorted(digest_of(one) for one in value)
    parts = _named(value).items() if not isinstance(value, list | tuple | np.ndarray) else enumerate(value)
    for name, part in parts:
        _feed(digest, name, within)
        _feed(digest, part, within)
    digest.update(b");")


def _named(value: Any) -> dict[Any, Any]:
    """Return the fields of an object as a dict, sorted by field name."""
    if hasattr(value, "digest_parts"):  # files of diagrams do not contain tuples and default values
        value = value.digest_parts()
    if isinstance(value, Mapping):
        return dict(sorted(value.items(), key=lambda item: repr(item[0])))
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if f.name not in _PICTURES]
    else:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        names = sorted({*slots, *getattr(value, "__dict__", {})})
        names = [name for name in names if not name.startswith("_")]
    return {name: getattr(value, name) for name in names if hasattr(value, name)}
