"""Overlay of the solver's graph coloring of joints and contacts."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpusim.reference.contacts.contact_report import Contacts
from gpusim.stage.parts import com_of
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.overlays.base import Frame, Overlay, cached_by_stage, register
from gpusim.viewer.overlays.canvas import Canvas
from gpusim.viewer.overlays.panels import Row, add_panel

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

OVERFLOW, NO_CONTACT, ARTICULATED = -1, -2, -3
"""Special values of the array manifold_color (description/contact_fields.py)."""
_OVERFLOW_COLOR, _ARTICULATED_COLOR = (0.06, 0.06, 0.07), (0.97, 0.97, 0.97)
_FIRST = (
    (0.89, 0.10, 0.11), (0.12, 0.47, 0.90), (0.15, 0.66, 0.17), (1.00, 0.55, 0.00), (0.56, 0.22, 0.80),
    (0.00, 0.72, 0.75), (0.95, 0.80, 0.10), (0.93, 0.35, 0.65), (0.55, 0.33, 0.14), (0.62, 0.80, 0.20),
)  # fmt: skip


def color_of(number: int) -> tuple[float, float, float]:
    """Return the display color for a color index of the solver: black for OVERFLOW, white for ARTICULATED."""
    if number == OVERFLOW:
        return _OVERFLOW_COLOR
    if number == ARTICULATED:
        return _ARTICULATED_COLOR
    if number < len(_FIRST):
        return _FIRST[number]
    extra = number - len(_FIRST)
    return colorsys.hsv_to_rgb((0.07 + 0.618 * extra) % 1.0, (0.55, 0.9)[extra % 2], (0.95, 0.6)[extra // 2 % 2])


@dataclass(frozen=True)
class Links:
    """Drawn graph of n constraints, with a disk (hub) for each constraint and m lines from the hubs to the bodies.

    Attributes:
        color: (n,) color index of the solver.
        hub: (n, 3) position at which each constraint is drawn (m).
        link: (m,) index of the constraint at which each line starts.
        end: (m, 3) position on the body at which each line ends (m).
    """

    color: Array
    hub: Array
    link: Array
    end: Array


@cached_by_stage
def _hubs(stage: Stage) -> tuple[Array, Array]:
    """Return two arrays for the joint constraints: child body (n,), and joint position (n, 3) on this body (m)."""
    model, t = stage.model, stage.model.topology
    joints = {joint.label: joint for joint in model.joints}
    body = np.full(t.num_constraints, t.num_bodies + 1, dtype=np.int64)
    point = np.zeros((t.num_constraints, 3))
    for k, label in enumerate(t.constraint_labels[: len(model.joints)]):
        joint = joints[label]
        body[k] = joint.child
        point[k] = joint.child_xform.position - com_of(model, joint.child)
    return body, point


def joint_links(frame: Frame, max_colors: int) -> Links:
    """Return the graph of the joints and couplings in the drawn worlds, with the solver's colors."""
    t = frame.model.topology
    body, point = _hubs(frame.stage)
    slots = t.constraint_bodies
    moving = t.dynamic[slots]
    ends = frame.coms[:, slots]
    weights = moving / np.maximum(moving.sum(axis=1, keepdims=True), 1)
    hub = np.einsum("ns,wnsi->wni", weights, ends)
    named = body <= t.num_bodies
    hub[:, named] = frame.world_points(body[named], point[named])
    color = np.tile(t.coloring_for(max_colors).color_of, frame.num_worlds)
    constraint, slot = np.nonzero(moving)
    link = (np.arange(frame.num_worlds)[:, None] * t.num_constraints + constraint).reshape(-1)
    return Links(color, hub.reshape(-1, 3), link, ends[:, constraint, slot].reshape(-1, 3))


def manifold_colors(sim: Simulation) -> Array:
    """Return an array with the constraint color of each shape pair that has contact points.

    The color of contact point i has the index ``sim.contacts().pair[i]``. The function runs a trial step, like
    :meth:`Simulation.contacts`.
    """
    if not len(sim.contacts()):
        return np.zeros(0, dtype=np.int64)
    trial = sim.backend.forward_contacts()
    assert trial is not None
    return trial.color


def contact_links(frame: Frame, contacts: Contacts, color: Array) -> Links:
    """Return the graph of the contact manifolds in the drawn worlds.

    ``color`` is the result of :func:`manifold_colors`.
    """
    pair, first, link = np.unique(contacts.pair, return_index=True, return_inverse=True)
    count = np.maximum(np.bincount(link, minlength=len(pair)), 1)
    points = frame.moved(contacts.point, contacts.world)
    hub = np.stack([np.bincount(link, points[:, k], minlength=len(pair)) / count for k in range(3)], axis=1)
    bodies = np.stack([contacts.body_a[first], contacts.body_b[first]], axis=1)
    manifold, side = np.nonzero(frame.model.topology.dynamic[bodies])
    column = frame.column(contacts.world[first])
    return Links(color[pair], hub, manifold, frame.coms[column[manifold], bodies[manifold, side]])


@register
class ColorsOverlay(Overlay):
    """Graph coloring.

    Constraints of one color share no moving body, so the solver processes them in parallel.
    """

    name: ClassVar[str] = "colors"
    key: ClassVar[str] = "g"
    description: ClassVar[str] = "graph coloring: joints and contacts in the solver's colors"

    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw joints first, then contacts, each with a legend."""
        sim = frame.sim
        if frame.model.topology.num_constraints:
            links = joint_links(frame, 32 if sim is None else sim.config.max_colors)
            direct = sim is not None and sim.config.direct
            _draw_links(canvas, links, 7.0, 2.6)
            _add_legend(canvas, "joints by color, if colored" if direct else "joints by color", links)
        if sim is not None and frame.contacts is not None and len(frame.contacts):
            links = contact_links(frame, frame.contacts, manifold_colors(sim))
            _draw_links(canvas, links, 6.0, 2.2)
            _add_legend(canvas, "contacts by color", links)


def _draw_links(canvas: Canvas, links: Links, disk: float, line: float) -> None:
    for number in np.unique(links.color):
        shown = color_of(int(number))
        of = links.color[links.link] == number
        canvas.lines(links.hub[links.link[of]], links.end[of], shown, line, top=True)
    for number in np.unique(links.color):
        canvas.disks(links.hub[links.color == number], color_of(int(number)), disk, top=True)


def _add_legend(canvas: Canvas, title: str, links: Links) -> None:
    numbers, counts = np.unique(links.color, return_counts=True)
    named = {OVERFLOW: "overflow", ARTICULATED: "with joints"}
    order = sorted(range(len(numbers)), key=lambda k: (numbers[k] < 0, abs(int(numbers[k]))))
    rows = [
        Row(named.get(int(numbers[k]), f"color {numbers[k]}"), str(counts[k]), color_of(int(numbers[k]))) for k in order
    ]
    if OVERFLOW not in numbers:
        rows.append(Row("overflow", "0", _OVERFLOW_COLOR))
    add_panel(canvas, title, rows)
