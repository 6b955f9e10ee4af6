"""Kinds that are known by name: joints, actuators, shapes, overlays."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gpusim.errors import ModelError

_Kind = TypeVar("_Kind")
_Class = TypeVar("_Class", bound=type[Any])


class Registry(Generic[_Kind]):
    """One object of each class that was registered, by the class's ``name``.

    Args:
        what: one of them, in words, for errors.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._kinds: dict[str, _Kind] = {}

    def register(self, cls: _Class) -> _Class:
        """Class decorator: make a kind known by its name."""
        self._kinds[cls.name] = cls()
        return cls

    def __getitem__(self, name: str) -> _Kind:
        """The kind of a name.

        Raises:
            ModelError: there is none; names those there are.
        """
        if not isinstance(name, str) or name not in self._kinds:
            known = ", ".join(sorted(self._kinds))
            raise ModelError(f"{self._what} {name!r}: is unknown; give one of {known}")
        return self._kinds[name]

    def forget(self, name: str) -> None:
        """Take a kind out again, where a test or a program has registered it for a while."""
        del self._kinds[name]

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._kinds)

    def all(self) -> list[_Kind]:
        """All kinds, by name."""
        return [self._kinds[name] for name in self.names()]


def discover(package: str, path: Sequence[str]) -> None:
    """Import every module of a package, so that what it registers is known."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")
