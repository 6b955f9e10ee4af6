"""Controls of the browser view: time, the operator's inputs, views, scene parameters."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpusim.scene import ParameterInfo
from gpusim.viewer.camera import VIEWS
from gpusim.viewer.operator import Input, Operator
from gpusim.viewer.operator.operator import PANEL
from gpusim.viewer.panel.panel_state import PanelState
from gpusim.viewer.window.session import SPEEDS

Do = Callable[[Callable[[], None]], None]
"""Function that executes its argument (another function) at the next frame, in the thread of the simulation."""
_SETTLED = 0.5
"""After a browser changes a slider, the server does not overwrite the slider for this time, s."""
_STEPS = 200
NONE, ALL = "none", "all"
SCENE_VIEW = "scene"


class WebPanel:
    """Controls on the page, shared by all browsers.

    Args:
        gui: interface of a viser server.
        panel_state: state that the controls show and change.
        do: function that schedules a function (a browser's request) for the next frame.
        look: function to call with the name of a camera and the browser that has chosen this camera.
        follow: function to call with the label of the body to follow, or None.
        draw: function to call with the indices of the worlds to draw.
        worlds: indices of the initially drawn worlds.
    """

    def __init__(
        self,
        gui: Any,
        panel_state: PanelState,
        do: Do,
        look: Callable[[str, Any], None],
        follow: Callable[[str | None], None],
        draw: Callable[[list[int]], None],
        worlds: list[int],
    ) -> None:
        self._gui, self._state, self._do = gui, panel_state, do
        self._inputs: list[tuple[Input, Any]] = []
        self._status = gui.add_markdown("")
        self._time()
        self._view(look, follow, draw, worlds)
        self._stop: Any = None
        if panel_state.operator is not None:
            self._operator(panel_state.operator)
            self._parameters()
        self.refresh()

    # Elements. If an event has no client, the server has changed the element, not a user.

    def _on(self, handle: Any, action: Callable[[Any], None]) -> Any:
        """Call ``action`` with the new value of a control when a browser changes or clicks the control."""

        def changed(event: Any) -> None:
            if event.client is not None:
                value = handle.value
                self._do(lambda: action(value))

        (handle.on_click if hasattr(handle, "on_click") else handle.on_update)(changed)
        return handle

    def _button(self, label: str, action: Callable[[], None], **looks: Any) -> Any:
        return self._on(self._gui.add_button(label, **looks), lambda _: action())

    def _time(self) -> None:
        session = self._state.session
        actions = {"Pause / run": session.toggle_pause, "Step": session.single_step, "Reset": self._state.reset}
        self._on(self._gui.add_button_group("Time", tuple(actions)), lambda name: actions[name]())
        speeds = [f"{speed:g}" for speed in SPEEDS]
        now = f"{session.speed:g}"
        options = speeds if now in speeds else sorted([*speeds, now], key=float)
        self._speed = self._on(
            self._gui.add_dropdown("Speed", options, initial_value=now), lambda text: self._set_speed(float(text))
        )
        self._timeline: Any = None
        if (length := session.source.length) is not None:
            step = max(length / 1000.0, 1e-6)
            self._timeline = self._on(self._gui.add_slider("Position", 0.0, max(length, step), step, 0.0), session.seek)

    def _set_speed(self, speed: float) -> None:
        session = self._state.session
        while session.speed < speed - 1e-9:
            session.faster()
        while session.speed > speed + 1e-9:
            session.slower()

    def _view(
        self,
        look: Callable[[str, Any], None],
        follow: Callable[[str | None], None],
        draw: Callable[[list[int]], None],
        worlds: list[int],
    ) -> None:
        gui, source = self._gui, self._state.session.source
        with gui.add_folder("View", expand_by_default=len(worlds) > 1):
            if len(worlds) > 1:
                shown = gui.add_dropdown("World", [ALL, *map(str, worlds)], initial_value=ALL)
                self._on(shown, lambda text: draw(worlds if text == ALL else [int(text)]))
            names = dict.fromkeys([SCENE_VIEW, *source.model.labels("camera"), *VIEWS])
            cameras = gui.add_dropdown("Camera", list(names), initial_value=SCENE_VIEW)
            cameras.on_update(lambda event: look(event.target.value, event.client) if event.client else None)
            labels = source.model.labels("body")
            followed = gui.add_dropdown("Follow", [NONE, *labels], initial_value=NONE)
            self._on(followed, lambda text: follow(None if text == NONE else text))

    def _operator(self, operator: Operator) -> None:
        gui = self._gui
        with gui.add_folder("Operator"):
            self._stop = self._button("EMERGENCY STOP", self._toggle_stop, color="red")
            if operator.sim.num_worlds > 1:
                gui.add_markdown(f"Commands go to all {operator.sim.num_worlds} worlds.")
            for item in operator.inputs.values():
                if not item.idle:
                    self._inputs.append((item, self._input(operator, item)))
            if self._inputs and operator.scheduled():
                self._button("Follow the schedule", self._release, hint="return every command to the scene's schedule")

    def _input(self, operator: Operator, item: Input) -> Any:
        hint, value = item.doc or None, operator.value(item.name)
        if item.switch:
            box = self._gui.add_checkbox(item.name, _is_on(item, value), hint=hint)
            return self._on(box, lambda on: operator.set(item.name, item.upper if on else item.lower))
        label = item.name if item.unit == "-" else f"{item.name} ({item.unit})"
        step = (item.upper - item.lower) / _STEPS
        slider = self._gui.add_slider(label, item.lower, item.upper, step, item.clamp(value), hint=hint)
        return self._on(slider, lambda number: operator.set(item.name, number))

    def _toggle_stop(self) -> None:
        operator = self._state.operator
        assert operator is not None
        (operator.release_stop if operator.stopped else operator.emergency_stop)()

    def _release(self) -> None:
        operator = self._state.operator
        assert operator is not None
        for item, _ in self._inputs:
            operator.release(item.name)

    def _parameters(self) -> None:
        if not self._state.parameters:
            return
        with self._gui.add_folder("Parameters", expand_by_default=False):
            for parameter in self._state.parameters:
                self._parameter(parameter)
            self._button("Restart with these", self._state.restart)
            self._message = self._gui.add_markdown("")

    def _parameter(self, parameter: ParameterInfo) -> None:
        name, text, hint = parameter.name, self._state.values[parameter.name], parameter.doc or None
        handle: Any
        if " | " in parameter.type:
            choices = parameter.type.split(" | ")
            now = text if text in choices else choices[0]
            handle = self._gui.add_dropdown(name, choices, initial_value=now, hint=hint)
        elif parameter.type == "true or false":
            handle = self._gui.add_checkbox(name, text.lower() in ("true", "1", "yes", "on"), hint=hint)
        else:
            handle = self._gui.add_text(name, text, hint=hint)
        self._on(handle, lambda value: self._state.values.__setitem__(name, str(value)))

    def refresh(self) -> None:
        """Update status, labels of buttons, and values of inputs."""
        session, operator = self._state.session, self._state.operator
        self._show(self._status, "content", self._headline())
        self._show(self._speed, "value", f"{session.speed:g}")
        if self._timeline is not None:
            self._settle(self._timeline, session.time)
        if operator is None:
            return
        self._show(self._stop, "label", "RELEASE STOP" if operator.stopped else "EMERGENCY STOP")
        self._show(self._stop, "color", "orange" if operator.stopped else "red")
        for item, handle in self._inputs:
            value = operator.value(item.name, self._state.world)
            shown = _is_on(item, value) if item.switch else item.clamp(value)
            if operator.source(item.name) == PANEL:
                self._settle(handle, shown)
            else:
                self._show(handle, "value", shown)
            self._show(handle, "disabled", operator.stopped)
        if self._state.parameters:
            self._show(self._message, "content", self._state.message)

    @staticmethod
    def _show(handle: Any, name: str, value: Any) -> None:
        """Send a value to the browsers if it has changed."""
        if getattr(handle, name) != value:
            setattr(handle, name, value)

    def _settle(self, handle: Any, value: Any) -> None:
        """Send a value to the browsers. Skip elements that a browser has changed in the last 0.5 s."""
        if time.time() - handle.update_timestamp > _SETTLED:
            self._show(handle, "value", value)

    def _headline(self) -> str:
        state, session = self._state, self._state.session
        health, _ = state.health()
        pace = "paused" if session.paused else f"{session.real_time_factor():.2f}x real time"
        behind = ", behind" if session.behind and not session.paused else ""
        operator = state.operator
        stopped = operator is not None and operator.stopped
        note = "EMERGENCY STOP" if stopped else session.note or (operator.note if operator is not None else "")
        parts = [f"**{session.clock}**", f"{pace}{behind}", health, session.source.recording, _plain(note)]
        return " · ".join(part for part in parts if part)


def _is_on(item: Input, value: float) -> bool:
    return value > 0.5 * (item.lower + item.upper)


def _plain(text: str) -> str:
    """Escape all Markdown characters of a text, and return the text."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|" else c for c in text)
