"""The window: a simulation or a recorded motion on the screen, steered with mouse and keyboard.

What it does is apart from how it is shown: :mod:`session` runs a source against the clock, :mod:`controls` turns events
into commands, :mod:`canvas` draws. Only :mod:`screen` knows glfw.
"""

from __future__ import annotations
