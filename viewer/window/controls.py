"""Mouse and keyboard: conversion of events to commands for session and camera, without glfw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gpusim.typing import Array
from gpusim.viewer.errors import ViewerError
from gpusim.viewer.operator.key_list import KeyGroup, KeyLine, KeyUser, window_key
from gpusim.viewer.window.picking import Hit
from gpusim.viewer.window.pulling import Pull, why_not_pulled
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live
from gpusim.viewer.window.view_state import ViewState

_CLICK = 4.0
"""Maximum cursor movement during a mouse click, in cursor units. A longer movement is a drag."""
_SCRUB = 1.0
"""Time by which Shift + arrow key jumps forward or back in a recording, s."""
MOUSE, WINDOW = "Mouse", "Window"
"""Titles of groups in the list of keys."""


@dataclass(frozen=True)
class Binding:
    """Action of a key.

    Attributes:
        key: name of the key: a letter, "space", "right", "escape", "[", ...
        shift: True if the user must press the shift key, too.
        description: one line for the list of keys.
        action: function to call when the user presses the key.
        repeats: True to repeat the action while the user holds the key.
        group: title of the binding's group in the list of keys.
    """

    key: str
    shift: bool
    description: str
    action: Callable[[], None]
    repeats: bool = False
    group: str = WINDOW

    @property
    def name(self) -> str:
        """Display name, e.g. "Shift+R"."""
        return window_key(self.key, self.shift)


@dataclass(frozen=True)
class Drag:
    """Mouse action while a button is held.

    Attributes:
        button: "left" or "middle".
        modifier: "Shift", "Ctrl", or empty.
        act: "orbit", "pan" or "pull".
        description: one line for the list of keys.
    """

    button: str
    modifier: str
    act: str
    description: str

    @property
    def line(self) -> KeyLine:
        """Line in the list of keys."""
        return KeyLine((f"{self.modifier}+" if self.modifier else "") + f"{self.button} drag", self.description)


_DRAGS = (
    Drag("left", "", "orbit", "orbit"),
    Drag("middle", "", "pan", "pan"),
    Drag("left", "Shift", "pan", "pan"),
    Drag("left", "Ctrl", "pull", "pull a body with a spring"),
)
_CLICK_LINE = KeyLine("click", "pick a body")
_WHEEL_LINE = KeyLine("wheel", "zoom")


class Controls:
    """Mouse and keyboard of a window.

    Args:
        session: session that gets the commands.
        sight: view that the mouse moves.

    Attributes:
        bindings: (key name, shift) -> action, see :meth:`bind`.
        help: displayed page of the key list (1, 2, ...), or 0 if the list is hidden.
        others: objects that handle keys before the window, such as the operator and the panel.
        panel_reports: True if a panel shows the simulation state.
        pull: spring that pulls a body to the cursor, or None.
    """

    def __init__(self, session: Session, sight: ViewState) -> None:
        self.session, self.sight = session, sight
        self.bindings: dict[tuple[str, bool], Binding] = {}
        self.help = 0
        self.others: list[KeyUser] = []
        self.panel_reports = False
        self.pull: Pull | None = None
        self._pulled: Hit | None = None
        self._drag: str | None = None
        self._moved = 0.0
        self._x = self._y = 0.0
        self._bind_all()
        session.on_restart.append(self.let_go)

    def _bind_all(self) -> None:
        s = self.session
        self.bind("space", "pause, go on", s.toggle_pause)
        self.bind("right", "single step (recording: one frame forward)", s.single_step, repeats=True)
        self.bind("left", "recording: one frame back", lambda: s.single_step(-1), repeats=True)
        self.bind("right", "recording: 1 s on", lambda: s.scrub(_SCRUB), shift=True, repeats=True)
        self.bind("left", "recording: 1 s back", lambda: s.scrub(-_SCRUB), shift=True, repeats=True)
        self.bind("[", "slower", s.slower)
        self.bind("]", "faster", s.faster)
        self.bind("r", "reset", self._reset)
        self.bind("r", "restart with the same parameters", s.restart, shift=True)
        self.bind("h", "camera home", lambda: self.sight.home())
        self.bind("v", "next camera of the model", self._next_camera)
        self.bind("f", "follow the picked body, or stop following", self._toggle_follow)
        self.bind("f1", "show the list of keys, its next page, or hide it", self._cycle_help)
        self.bind("escape", "quit", s.quit)

    def bind(
        self,
        key: str,
        description: str,
        action: Callable[[], object],
        *,
        shift: bool = False,
        repeats: bool = False,
        group: str = WINDOW,
    ) -> None:
        """Bind a key to an action, with the arguments of :class:`Binding`.

        Raises:
            ViewerError: the key is bound already.
        """
        if (key, shift) in self.bindings:
            taken = self.bindings[key, shift]
            raise ViewerError(f"key {taken.name} is already bound to {taken.description!r}; choose another key")

        def act() -> None:
            action()

        self.bindings[key, shift] = Binding(key, shift, description, act, repeats, group)

    def key_groups(self) -> list[KeyGroup]:
        """Return help for mouse and keys."""
        taken = {key for other in self.others for key in other.used_keys()}
        groups: dict[str, list[KeyLine]] = {}
        for binding in self.bindings.values():
            line = KeyLine(window_key(binding.key, binding.shift, taken), binding.description)
            groups.setdefault(binding.group, []).append(line)
        mouse = KeyGroup(MOUSE, [*(drag.line for drag in _DRAGS), _CLICK_LINE, _WHEEL_LINE])
        others = [group for other in self.others for group in other.key_groups()]
        return [mouse, *others, *(KeyGroup(title, lines) for title, lines in groups.items())]

    def key(self, name: str, shift: bool = False, repeated: bool = False) -> bool:
        """Handle a pressed key. Return True if the key is bound."""
        binding = self.bindings.get((name, shift))
        if binding is None or (repeated and not binding.repeats):
            return binding is not None
        binding.action()
        return True

    def press(self, button: str, x: float, y: float, *, shift: bool = False, ctrl: bool = False) -> None:
        """Handle a pressed mouse button: "left", "middle" or "right"."""
        self._x, self._y, self._moved = x, y, 0.0
        modifier = "Ctrl" if ctrl else "Shift" if shift else ""
        acts = {(drag.button, drag.modifier): drag.act for drag in _DRAGS}
        act = acts.get((button, modifier), acts.get((button, "")))
        if act == "pull":
            self._drag = act if self._grab(x, y) else None
        elif act is not None:
            self._drag = act

    def release(self, button: str, x: float, y: float) -> None:
        """Handle a released mouse button."""
        if button == "left" and self._drag == "orbit" and self._moved < _CLICK:
            self.sight.picked = self.sight.pick(x, y)
        self._drag = None
        self.let_go()

    def move(self, x: float, y: float) -> None:
        """Handle a cursor movement to a point. Points are relative to the upper left corner of the scene's area."""
        right, down = (x - self._x) / self.sight.height, (y - self._y) / self.sight.height
        self._moved += math.hypot(x - self._x, y - self._y)
        self._x, self._y = x, y
        if self._drag == "orbit" and self._moved >= _CLICK:
            self.sight.release()
            self.sight.navigator.orbit(right, down)
        elif self._drag == "pan":
            self.sight.release()
            self.sight.navigator.pan(right, down)

    def scroll(self, notches: float) -> None:
        """Zoom with the mouse wheel. Positive ``notches`` (wheel rotated away from the user) zoom in."""
        self.sight.release()
        self.sight.navigator.zoom(notches)

    @property
    def cursor(self) -> tuple[float, float]:
        """Last cursor position."""
        return self._x, self._y

    def _grab(self, x: float, y: float) -> bool:
        hit = self.sight.pick(x, y)
        source = self.session.source
        if hit is None:
            return False
        if not isinstance(source, Live):
            self.session.note = "a recording cannot be pulled"
            return False
        if why := why_not_pulled(source.sim, hit.body):
            self.session.note = why
            return False
        offset = self.sight.stage.offsets[hit.world]
        self.pull = Pull(source.sim, self.sight.worlds[hit.world], hit.body, hit.point - offset)
        self.sight.picked = self._pulled = hit
        source.before_step = self.pull.apply
        return True

    def aim_pull(self) -> None:
        """Move the target of the mouse spring to the cursor. Call this once per frame."""
        if self.pull is not None and self._pulled is not None:
            offset = self.sight.stage.offsets[self._pulled.world]
            self.pull.target = self.sight.on_plane(self._x, self._y, self._pulled.point) - offset

    def pull_ends(self) -> tuple[Array, Array] | None:
        """Return the grabbed point and the spring's target at the cursor (m), with the grid offset of the world."""
        if self.pull is None or self._pulled is None:
            return None
        offset = self.sight.stage.offsets[self._pulled.world]
        return self.pull.point() + offset, self.pull.target + offset

    def let_go(self) -> None:
        """Stop pulling the body, and remove the spring force."""
        if self.pull is None:
            return
        self.pull.release()
        if isinstance(self.session.source, Live):
            self.session.source.before_step = None
        self.pull = self._pulled = None

    def _cycle_help(self) -> None:
        self.help += 1  # after the last page, Sketches sets the page number to 0

    def _next_camera(self) -> None:
        self.session.note = self.sight.next_camera()

    def _reset(self) -> None:
        self.let_go()
        self.session.reset()

    def _toggle_follow(self) -> None:
        followed, picked = self.sight.followed, self.sight.picked
        same = followed is not None and picked is not None and _body_and_world(followed) == _body_and_world(picked)
        if picked is None and followed is None:
            self.session.note = "click a body first, then F follows it"
        self.sight.follow(None if same or picked is None else picked)


def _body_and_world(hit: Hit) -> tuple[int, int]:
    return hit.world, hit.body
