"""Window that shows a simulation or a recorded motion and handles mouse and keyboard.

:mod:`session` runs a source in real time, :mod:`controls` turns events into commands, and :mod:`surface` draws. Only
:mod:`screen` uses glfw.
"""

from __future__ import annotations
