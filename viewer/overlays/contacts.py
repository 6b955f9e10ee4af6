"""Contact points, and arrows for contact forces. The arrow length depends on the ratio of force and body weight."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim.contact.constants import FLIGHT, SLIDING, STICKING
from gpusim.description.specs import WORLD
from gpusim.reference.contacts.contact_report import Contacts
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, register
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.panels import Row, add_panel

MODE_COLORS = {
    STICKING: (0.10, 0.72, 0.30),
    SLIDING: (1.00, 0.36, 0.05),
    FLIGHT: (0.62, 0.66, 0.70),
}
_FRICTION = (0.85, 0.10, 0.62)
_NAMES = {STICKING: "sticking", SLIDING: "sliding", FLIGHT: "flight"}
_LONG = 4.0
"""If force / weight exceeds this ratio, the arrow length grows only with the logarithm of the force."""


def arrow_lengths(force: Array, weight: float, size: float) -> Array:
    """Return arrow lengths (m): ``size`` * force / ``weight`` for forces up to four times ``weight``.

    For larger forces, the length grows with the logarithm of the force.

    Args:
        force: (n,) magnitudes of the forces, not negative (N).
        weight: weight of a body (N), or 0 to use the median of the forces.
        size: length of the arrow for a force equal to ``weight`` (m).
    """
    force = np.asarray(force, dtype=float)
    if weight <= 0.0:
        loaded = force[force > 0.0]
        weight = float(np.median(loaded)) if loaded.size else 1.0
    ratio = force / weight
    longer = _LONG * (1.0 + np.log(np.maximum(ratio, _LONG) / _LONG))
    return np.asarray(size * np.where(ratio > _LONG, longer, ratio))


def forces_on_moving_body(contacts: Contacts, dynamic: Array, up: Array) -> Array:
    """Return the forces (n, 3) on the moving body (N).

    If both bodies move, return the force on the body that the contact pushes up.
    """
    moves_a = (contacts.body_a != WORLD) & dynamic[contacts.body_a]
    moves_b = (contacts.body_b != WORLD) & dynamic[contacts.body_b]
    on_a = np.where(moves_a & moves_b, contacts.force @ up < 0.0, moves_a & ~moves_b)
    return np.asarray(np.where(on_a[:, None], -contacts.force, contacts.force))


@register
class ContactsOverlay(Overlay):
    """Contact points (disks), forces and friction (arrows), and contact modes (colors)."""

    name: ClassVar[str] = "contacts"
    key: ClassVar[str] = "c"
    description: ClassVar[str] = "contact points by mode, forces as arrows, friction along the surface"
    needs_simulation: ClassVar[bool] = True

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the contacts. Arrows start at the contact points."""
        contacts = frame.contacts
        assert contacts is not None
        point = frame.moved(contacts.point, contacts.world)
        force = forces_on_moving_body(contacts, frame.model.topology.dynamic, frame.stage.up)
        size = np.linalg.norm(force, axis=1)
        length = arrow_lengths(size, frame.weight, frame.body_radius)
        arrow = force * (length / np.maximum(size, 1e-300))[:, None]
        along = np.einsum("ni,ni->n", arrow, contacts.normal)
        friction = arrow - along[:, None] * contacts.normal
        rows = []
        for mode, color in MODE_COLORS.items():
            of = contacts.mode == mode
            rows.append(Row(_NAMES[mode], str(int(of.sum())), color))
            canvas.disks(point[of], color, 4.0 if mode == FLIGHT else 6.0)
            if mode != FLIGHT:
                canvas.arrows(point[of], point[of] + arrow[of], color)
        seen = np.linalg.norm(friction, axis=1) * canvas.pixels_per_meter(point) > 3.0 * canvas.unit
        canvas.arrows(point[seen], point[seen] + friction[seen], _FRICTION, 1.6)
        rows.append(Row("friction", "", _FRICTION))
        if frame.weight > 0.0:
            rows.append(Row("1 radius long", _force(frame.weight)))
        add_panel(canvas, "contacts", rows)


def _force(newton: float) -> str:
    return f"{newton / 1000.0:.3g} kN" if newton >= 1000.0 else f"{newton:.3g} N"
