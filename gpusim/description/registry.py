"""Registry of the kinds of joints, actuators, shapes and overlays, by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gpusim.errors import ModelError

_Kind = TypeVar("_Kind")
_Class = TypeVar("_Class", bound=type[Any])


class Registry(Generic[_Kind]):
    """Registry with one object of each registered class. The key is the class attribute ``name``.

    Args:
        what: noun for one kind in error messages, such as "shape kind".
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._kinds: dict[str, _Kind] = {}

    def register(self, cls: _Class) -> _Class:
        """Register a class by its ``name``. Use this method as a class decorator."""
        self._kinds[cls.name] = cls()
        return cls

    def __getitem__(self, name: str) -> _Kind:
        """Return the kind with this name.

        Raises:
            ModelError: unknown name. The message lists the known names.
        """
        if not isinstance(name, str) or name not in self._kinds:
            known = ", ".join(sorted(self._kinds))
            raise ModelError(f"{self._what} {name!r}: is unknown; give one of {known}")
        return self._kinds[name]

    def forget(self, name: str) -> None:
        """Remove the kind with this name."""
        del self._kinds[name]

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._kinds)

    def all(self) -> list[_Kind]:
        """Return all kinds, sorted by name."""
        return [self._kinds[name] for name in self.names()]


def discover(package: str, path: Sequence[str]) -> None:
    """Import every module of a package, so that the kinds in the modules are registered."""
    for module in pkgutil.iter_modules(path):
        importlib.import_module(f"{package}.{module.name}")
