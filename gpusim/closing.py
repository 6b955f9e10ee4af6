"""Base class of objects that a ``with`` statement or ``close()`` closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

_Self = TypeVar("_Self")  # typing.Self is new in Python 3.11


class Closing(ABC):
    """Context manager that calls :meth:`close` at the end of a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
