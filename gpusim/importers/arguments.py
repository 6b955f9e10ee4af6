"""Checks of the arguments that the loaders of all formats have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from gpusim import validate

F = TypeVar("F", bound=Callable[..., Any])
_FLAGS = ("fixed_base", "merge_fixed", "collisions", "self_collisions", "visuals", "actuators", "strict")


def checks_arguments(loader: F) -> F:
    """Decorate a loader to raise a ModelError if an argument has a value of the wrong type."""

    @functools.wraps(loader)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check_arguments(loader, kwargs)
        return loader(*args, **kwargs)

    return cast(F, checked)


def check_arguments(loader: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise a ModelError if a keyword argument of a loader has a value of the wrong type."""
    known = inspect.signature(loader).parameters
    for name, value in arguments.items():
        if name in known and not (value is None and known[name].default is None):
            _check(loader.__name__, name, value)


def _check(loader: str, name: str, value: Any) -> None:
    if name in _FLAGS:
        validate.flag(loader, name, value)
    elif name == "xform":
        validate.transform(loader, name, value)
    elif name in ("keep", "switchable"):
        validate.name_list(f"{loader}: {name}", value)
    elif name in ("assets", "mappings") and not isinstance(value, Mapping):
        raise validate.fail(loader, f"{name} = {validate.shown(value)} is not a dict", "give values by name")
    elif name == "pose" and not isinstance(value, str | Mapping):
        raise validate.fail(loader, f"pose = {validate.shown(value)} is not a name", "give the name of a posture")
    elif name == "meshes" and not isinstance(value, str):
        raise validate.fail(loader, f"meshes = {validate.shown(value)} is not text", "give a value such as 'hull'")
    elif name == "asset_dirs":
        if not isinstance(value, list | tuple):
            raise validate.fail(loader, f"asset_dirs = {validate.shown(value)} is not a list", "give a list of folders")
        for folder in value:
            validate.path(loader, name, folder)
    elif name == "srdf":
        validate.path(loader, name, value)
