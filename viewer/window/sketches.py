"""Drawings over the scene in a window: mouse spring, selected body, list of keys, and simulation state."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from gpusim.viewer.operator.key_list import KeyGroup, KeyLine
from gpusim.viewer.overlays.base import Frame
from gpusim.viewer.overlays.canvas import RIMMED, Canvas
from gpusim.viewer.overlays.panels import Row, add_panel, has_room
from gpusim.viewer.window.controls import Controls
from gpusim.viewer.window.picked import Picked
from gpusim.viewer.window.session import Session

_SPRING = (0.86, 0.10, 0.42)
_MARK = (1.0, 1.0, 1.0)
_RED = (0.86, 0.17, 0.16)
_MAX_PAGES = 99
_READ_EVERY = 0.1
"""Interval between two readings of a body's velocities, s."""


class Sketches:
    """Drawings of the session's data over each frame of a window.

    Args:
        session: session with the displayed state.
        controls: controls, which contain the pulled body and the selected body.
    """

    def __init__(self, session: Session, controls: Controls) -> None:
        self._session, self._controls = session, controls
        self._lines: list[str] = []
        self._read_at = float("-inf")
        self._of: tuple[object, ...] = ()

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw onto the canvas of the overlays."""
        self._draw_pull(canvas)
        self._draw_picked(canvas)
        self._draw_keys(canvas)
        if notes := self.notes():
            add_panel(canvas, "", notes, low=True)

    def _draw_pull(self, canvas: Canvas) -> None:
        ends = self._controls.pull_ends()
        if ends is None:
            return
        point, target = (np.reshape(end, (1, 3)) for end in ends)
        canvas.lines(point, target, _SPRING, 3.6, top=True, style=RIMMED)
        canvas.disks(np.concatenate([point, target]), _SPRING, np.array([9.0, 6.0]), top=True)

    def _draw_picked(self, canvas: Canvas) -> None:
        sight, hit = self._controls.sight, self._controls.sight.picked
        if hit is None:
            return
        self._read(hit.world, hit.body)
        add_panel(canvas, "", [Row(text) for text in self._lines], right=True)
        canvas.disks(sight.center(hit).reshape(1, 3), _MARK, 9.0, top=True)

    def _draw_keys(self, canvas: Canvas) -> None:
        """Draw one page of the key list."""
        controls = self._controls
        if not controls.help:
            return
        pages = key_pages(canvas, controls.key_groups())
        if controls.help > len(pages):
            controls.help = 0
            return
        add_panel(canvas, _page_title(controls.help, len(pages)), pages[controls.help - 1])

    def _read(self, world: int, body: int) -> None:
        session, now = self._session, time.perf_counter()
        of = (session.generation, world, body)
        if of == self._of and now - self._read_at < _READ_EVERY:
            return
        self._of, self._read_at = of, now
        self._lines = Picked.read(session.source, self._controls.sight.worlds[world], body).lines()

    def notes(self) -> list[Row]:
        """Return rows of text: the state of the session, then the last message about a command.

        If a panel shows the state, return only the message.
        """
        reported = [] if self._controls.panel_reports else self._state()
        return [*reported, Row(self._session.note)] if self._session.note else reported

    def _state(self) -> list[Row]:
        session = self._session
        reported, playback = [], session.source.length is not None
        if playback:
            reported.append(Row(session.headline))
        if session.source.recording:
            reported.append(Row(session.source.recording, color=_RED))
        if session.behind:
            reported.append(
                Row(f"behind: {session.real_time_factor():.2f}x real time, {session.dropped:.1f} s dropped")
            )
        if session.paused:
            reported.append(Row("paused" if playback else f"paused at {session.time:.3f} s"))
        if session.speed != 1.0:
            reported.append(Row(f"speed {session.speed:g}x"))
        return reported


def key_pages(canvas: Canvas, groups: Sequence[KeyGroup]) -> list[list[Row]]:
    """Split the key list into pages that fit into the picture.

    A title is always on the same page as the first line below it.
    """
    pages: list[list[Row]] = [[]]
    widest = max((line.keys for group in groups for line in group.lines), key=canvas.atlas.width, default="")
    for group in groups:
        head = Row(group.title.upper())
        for number, line in enumerate(group.lines):
            more = [*([head] if number == 0 else []), _shortened(canvas, line, widest)]
            if pages[-1] and not has_room(canvas, _page_title(_MAX_PAGES, _MAX_PAGES), [*pages[-1], *more]):
                pages.append([] if number == 0 else [head])
            pages[-1] += more
    return pages


def _page_title(page: int, pages: int) -> str:
    return "Keys" if pages == 1 else f"Keys {page}/{pages}"


def _shortened(canvas: Canvas, line: KeyLine, widest: str) -> Row:
    """Return a row of the key list, with a shortened description if the row is too wide."""
    text = line.what
    for end in range(len(line.what) - 1, 0, -1):
        if has_room(canvas, "", [Row(text, widest)]):
            break
        text = line.what[:end].rstrip() + "..."
    return Row(text, line.keys)
