"""Centers of mass of the bodies and the scene, and the support polygon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.reference.contacts.contact_report import Contacts
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import DASHED, INK, PAPER, RIMMED, Canvas
from gpusim.viewer.overlays.panels import Row, add_panel
from gpusim.viewer.overlays.support import Level, convex_hull, margin

_INSIDE, _OUTSIDE = (0.10, 0.65, 0.28), (0.90, 0.14, 0.12)
_BODY = (1.0, 0.82, 0.10)


@dataclass(frozen=True)
class Support:
    """Support polygon of a world.

    Attributes:
        corners: (n, 3) corners of the support polygon in order, in the world frame (m). All corners have the height of
            the lowest contact.
        margin: distance (m) from the projected common center of mass to the polygon's edge, negative outside.
    """

    corners: Array
    margin: float


def support_of(contacts: Contacts, dynamic: Array, center: Array, up: Array) -> Support | None:
    """Return the support polygon of one world: the convex hull of the contact points, projected along gravity.

    Args:
        contacts: contacts of the world.
        dynamic: (bodies + 1,) True for dynamic bodies.
        center: common center of mass (3,) of the dynamic bodies (m).
        up: unit vector against gravity.

    Returns:
        The support polygon, or None if no dynamic body touches the world or a kinematic body.
    """
    moves_a = (contacts.body_a != WORLD) & dynamic[contacts.body_a]
    moves_b = (contacts.body_b != WORLD) & dynamic[contacts.body_b]
    points = contacts.point[contacts.touching & (moves_a != moves_b)]
    if not len(points):
        return None
    level = Level(up)
    hull = convex_hull(level.down(points))
    return Support(level.lift(hull, float((points @ up).min())), margin(hull, level.down(center)[0]))


def whole_center(mass: Array, coms: Array) -> Array:
    """Return the common center of mass (worlds, 3) of all bodies, for ``mass`` (worlds, bodies)."""
    total = np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.einsum("wn,wni->wi", mass, coms) / total)


@register
class MassOverlay(Overlay):
    """Centers of mass, drawn as disks. Larger masses have larger disks.

    A plumb line goes from the common center of mass to the support polygon.
    """

    name: ClassVar[str] = "mass"
    key: ClassVar[str] = "m"
    description: ClassVar[str] = "centers of mass of the bodies and the scene, with the support polygon"

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the centers of mass. For a simulation with contacts, also draw the support polygon."""
        mass, bodies = frame.mass, len(frame.model.bodies)
        coms = frame.coms[:, :bodies]
        centers = whole_center(mass, coms)
        moving = mass > 0.0
        width = 4.0 + 6.0 * np.cbrt(mass / max(float(mass.max(initial=0.0)), 1e-300))
        for world, center in enumerate(centers):
            if moving[world].any():
                self._draw_plumb(frame, canvas, world, center)
        canvas.disks(coms[moving], _BODY, width[moving], top=True)
        shown = centers[moving.any(axis=1)]
        for size, color in ((15.0, INK), (12.0, PAPER), (6.0, INK)):
            canvas.disks(shown, color, size, top=True)
        self._add_table(frame, canvas, float(mass[0].sum()))

    def _draw_plumb(self, frame: Frame, canvas: Canvas, world: int, center: Array) -> None:
        """Draw the support polygon, and a vertical line from the common center of mass to the polygon or the ground."""
        up, offset = frame.stage.up, frame.stage.offsets[world]
        support = self._support(frame, world)
        height, color = self._ground(frame), INK
        if support is not None:
            color = _INSIDE if support.margin >= 0.0 else _OUTSIDE
            corners = support.corners + offset
            height = float(corners[0] @ up)
            canvas.area(corners, (*color, 0.25))
            canvas.lines(corners, np.roll(corners, -1, axis=0), color, 3.0, style=RIMMED)
            canvas.disks(corners, color, 6.0)
        if height is None:
            return
        foot = center + (height - center @ up) * up
        canvas.lines(center, foot, INK, 1.6, top=True, style=DASHED)
        canvas.disks(foot, color, 9.0, top=True)

    def _ground(self, frame: Frame) -> float | None:
        level = next((ground for ground in frame.stage.grounds if ground.level), None)
        return None if level is None else float(level.point @ frame.stage.up)

    def _support(self, frame: Frame, world: int) -> Support | None:
        contacts = frame.contacts
        if contacts is None:
            return None
        touching = contacts.select(contacts.world == frame.worlds[world])
        bodies = len(frame.model.bodies)
        center = whole_center(frame.mass[world : world + 1], frame.poses.position[world : world + 1, :bodies])[0]
        return support_of(touching, frame.model.topology.dynamic, center, frame.stage.up)

    def _add_table(self, frame: Frame, canvas: Canvas, total: float) -> None:
        rows = [Row("bodies", str(int((frame.mass[0] > 0.0).sum())), _BODY), Row("whole", f"{total:.4g} kg", INK)]
        support = self._support(frame, 0) if frame.num_worlds == 1 else None
        if support is not None:
            side, color = ("inside support by", _INSIDE) if support.margin >= 0.0 else ("outside support by", _OUTSIDE)
            rows.append(Row(side, f"{abs(support.margin):.3g} m", color))
        add_panel(canvas, "center of mass", rows)
