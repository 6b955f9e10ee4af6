"""Operator input: commands from panel, keyboard, gamepad and recordings, and the emergency stop.

This package does not depend on OpenGL, windows or imgui.
"""

from __future__ import annotations

from gpusim.viewer.operator.gamepad import Gamepad, GamepadState, GlfwGamepad
from gpusim.viewer.operator.inputs import Input, command_inputs
from gpusim.viewer.operator.mapping import Binding, InputMapping, load_mapping
from gpusim.viewer.operator.operator import Operator
from gpusim.viewer.operator.patterns import PATTERNS, choose_mapping
from gpusim.viewer.operator.recording import OperatorRecording

__all__ = [
    "PATTERNS",
    "Binding",
    "Gamepad",
    "GamepadState",
    "GlfwGamepad",
    "Input",
    "InputMapping",
    "Operator",
    "OperatorRecording",
    "choose_mapping",
    "command_inputs",
    "load_mapping",
]
