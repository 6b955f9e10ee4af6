"""The operator as a client of a window."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from gpusim.errors import GpusimError
from gpusim.viewer.operator.operator import Operator

if TYPE_CHECKING:
    from gpusim.viewer.window.window import FrameInfo

RELEASED = 0
"""glfw's code for a released key."""
SHIFT, OTHERS = 1, 2 | 4 | 8
"""glfw's bits for shift and for other modifiers."""


class OperatorClient:
    """Window client that passes key events to the operator and draws nothing."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def event(self, kind: str, *details: Any) -> bool:
        """Handle a key event. Return True for bound keys and for the key of the emergency stop."""
        if kind != "key":
            return False
        code, _, action, bits = details
        if action != RELEASED and bits & OTHERS:
            return False
        return self.operator.key(code, action != RELEASED, bool(bits & SHIFT))

    def draw(self, shown: FrameInfo) -> None:
        """Poll keys and sticks."""
        self.operator.poll(shown.seconds)

    def close(self) -> None:
        """End a recording. Warn if the recording's file cannot be written."""
        try:
            self.operator.stop_recording()
        except GpusimError as error:
            warnings.warn(str(error), stacklevel=2)
