"""The operator in a window: keys that drive, and a look at the gamepad in each frame."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from gpusim.errors import GpusimError
from gpusim.viewer.operator.operator import Operator

if TYPE_CHECKING:
    from gpusim.viewer.window.window import Shown

RELEASED = 0
"""glfw's number of the action."""
SHIFT, OTHERS = 1, 2 | 4 | 8
"""glfw's bits: with control, alt or super a key means something else."""


class OperatorClient:
    """A client of the window (see gpusim/viewer/window/window.py) that draws nothing."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def event(self, kind: str, *details: Any) -> bool:
        """Keys that are bound, and the emergency stop, are taken."""
        if kind != "key":
            return False
        code, _, action, bits = details
        if action != RELEASED and bits & OTHERS:
            return False
        return self.operator.key(code, action != RELEASED, bool(bits & SHIFT))

    def draw(self, shown: Shown) -> None:
        """Look at keys and sticks."""
        self.operator.poll(shown.seconds)

    def close(self) -> None:
        """Write what is recorded; where that fails it is a warning, so that the window still closes."""
        try:
            self.operator.stop_recording()
        except GpusimError as error:
            warnings.warn(str(error), stacklevel=2)
