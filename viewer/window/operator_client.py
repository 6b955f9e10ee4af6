"""The operator as a client of a window: drives with keys, and polls the gamepad in each frame."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from gpusim.errors import GpusimError
from gpusim.viewer.operator.operator import Operator

if TYPE_CHECKING:
    from gpusim.viewer.window.window import FrameInfo

RELEASED = 0
"""glfw's code of the action."""
SHIFT, OTHERS = 1, 2 | 4 | 8
"""glfw's modifier bits. Keys with control, alt or super are left to others."""


class OperatorClient:
    """Client of the window (see gpusim/viewer/window/window.py) that draws nothing."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def event(self, kind: str, *details: Any) -> bool:
        """Handle a key event. Return True for bound keys and the emergency stop."""
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
        """End a recording. If its file cannot be written, warn instead of raising, so that the window still closes."""
        try:
            self.operator.stop_recording()
        except GpusimError as error:
            warnings.warn(str(error), stacklevel=2)
