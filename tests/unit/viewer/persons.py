from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import Simulation
from gpusim.recording.motion import MotionRecorder, load_motion
from gpusim.recording.player import MotionPlayer
from gpusim.scene import load_scene, scene_parameters
from gpusim.viewer.operator import Operator
from gpusim.viewer.panel import PanelState
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live, Played

SIZE = {"width": 640, "height": 360, "quality": "software"}
needs_imgui = pytest.mark.skipif(
    find_spec("imgui_bundle") is None, reason='imgui-bundle is not installed; pip install "gpusim[panel]"'
)


def panel_state_of(name: str, tmp_path: Path | None = None, dt: float = 0.01, num_worlds: int = 1) -> PanelState:
    made: list[Operator] = []

    def make(changes: Any) -> Live:
        scene = load_scene(name, **changes)
        config = dataclasses.replace(scene.config, dt=dt)
        live = Live(Simulation(scene.builder.finalize(), num_worlds, backend="numpy", config=config), scene)
        if made:
            made[0].attach(live.sim, scene)
        else:
            made.append(Operator(live.sim, scene))
        live.operator = made[0]
        return live

    session = Session(make({}), paused=True, rebuild=make)
    panel_state = PanelState(session, made[0], scene_parameters(name))
    if tmp_path is not None:
        panel_state.record_path = tmp_path / "operator.jsonl"
    return panel_state


class Person:
    def __init__(self, panel_state: PanelState, **size: Any) -> None:
        from tests.unit.viewer.panel_offscreen import PanelOffscreen

        self.panel_state = panel_state
        camera = panel_state.live.scene.camera if panel_state.live is not None else "fit"
        self.eye = PanelOffscreen(panel_state, camera=camera, **{**SIZE, **size})
        self.panel = self.eye.panel
        self.wait(2)

    def look(self) -> np.ndarray:
        return self.eye.image()

    def wait(self, frames: int = 1) -> None:
        for _ in range(frames):
            self.eye.act()

    def point(self, name: str, share: float = 0.5) -> None:
        place = self.panel_state.areas[name]
        self.panel.events.cursor(place.x + share * place.width, place.y + 0.5 * place.height)
        self.wait()

    def click(self, name: str, button: int = 0, share: float = 0.5) -> None:
        self.point(name, share)
        self.panel.events.button(button, True)
        self.wait()
        self.panel.events.button(button, False)
        self.wait(2)

    def drag(self, name: str, start: float, end: float) -> None:
        self.point(name, start)
        self.panel.events.button(0, True)
        self.wait()
        self.point(name, end)
        self.panel.events.button(0, False)
        self.wait(2)

    def type(self, name: str, text: str) -> None:
        self.click(name)
        self.panel.events.key(ord("A"), True, 2)
        self.panel.events.key(ord("A"), False)
        self.wait()
        for character in text:
            self.panel.events.character(ord(character))
            self.wait()


def played_pendulum(folder: Path) -> Played:
    """A recorded motion of 1 s of the double pendulum, 50 frames a second."""
    scene = load_scene("double_pendulum")
    config = dataclasses.replace(scene.config, dt=0.01)
    live = Live(Simulation(scene.builder.finalize(), backend="numpy", config=config), scene)
    with MotionRecorder(live.sim, folder / "a.npz", rate=50.0) as recorder:
        live.record(recorder)
        live.run_to(1.0, 60.0, smooth=False)
    return Played(MotionPlayer(load_motion(folder / "a.npz"), live.model))
