"""Balance on contacts: zero-moment point, support polygon and margin, batched over worlds.

At the zero-moment point p, the moment of the ground forces is normal to the ground plane (Vukobratovic 1972; Sardain
and Bessonnet 2004). Relative to any point o of the plane, p = cross(n, M) / dot(n, F). n is the normal of the plane, F
is the total force, and M is the moment about o. The zero-moment point is inside the support polygon while the feet do
not tip over, if contacts have no adhesion. The support polygon is the convex hull of the contact points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusim import validate
from gpusim.reference.contacts.contact_report import Contacts
from gpusim.robotics.kinematics import cross
from gpusim.robotics.tree import Tree
from gpusim.rotations import dot, matvec
from gpusim.typing import Array, Vector

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

TOUCHING = 1e-4
"""Largest gap, m, at which a point without force still counts as a support point."""


class Zmp(NamedTuple):
    """Zero-moment point and margin. If no force presses on the ground, the point and the margin are NaN.

    Attributes:
        point: zero-moment points (worlds, 3) (m).
        margin: distance (worlds,) (m) from the zero-moment point to the edge of the support polygon, negative outside.
    """

    point: Array
    margin: Array


@dataclass(frozen=True)
class Support:
    """Support polygons of all worlds, on planes normal to ``up``.

    Attributes:
        corners: corners (worlds, n, 2) (m), counterclockwise, in the coordinates of ``axes``. Worlds with fewer than n
            corners repeat their last corner.
        count: number of corners (worlds,): 0 without contact, 1 for a point, 2 for a line.
        axes: unit axes as rows (worlds, 3, 3), in the world frame. The first two axes are in the plane, and the third
            axis is up. If up is z, the axes are x, y and z.
        height: height (worlds,) (m) of the plane along ``up``, which is the mean height of the contact points.
    """

    corners: Array
    count: Array
    axes: Array
    height: Array

    def polygon(self, world: int = 0) -> Array:
        """Return the corners (n, 3) (m) in the world frame, counterclockwise seen from above."""
        corners = self.corners[world, : self.count[world]]
        heights = np.full((len(corners), 1), self.height[world])
        return np.asarray(np.concatenate([corners, heights], axis=1) @ self.axes[world])

    def margin(self, points: Any) -> Array:
        """Return the distance (m) of points (worlds, 3) to the edge of the polygon, after projection along up.

        The distance is positive inside the polygon. If the polygon is a point or a line, the result is minus the
        distance to this point or line. Without a polygon, the result is NaN.
        """
        given = np.broadcast_to(validate.array("Support.margin", points), (len(self.count), 3))
        flat = matvec(self.axes[:, :2], given)
        start, end = self.corners, np.roll(self.corners, -1, axis=1)
        edge, arm = end - start, flat[:, None] - start
        square = dot(edge, edge)
        along = np.clip(dot(arm, edge) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
        away = arm - along[..., None] * edge
        distance = np.sqrt(dot(away, away)).min(axis=1)
        side = edge[..., 0] * arm[..., 1] - edge[..., 1] * arm[..., 0]
        inside = (self.count > 2) & (side >= 0.0).all(axis=1)
        return np.asarray(np.where(self.count > 0, np.where(inside, distance, -distance), np.nan))


def support(sim: Simulation, bodies: Sequence[str], up: Vector | None = None) -> Support:
    """Compute the support polygons.

    A support polygon is the convex hull of the contact points of ``bodies``, seen along ``up``.

    Args:
        sim: simulation at its current time. To compute contact forces, the call runs a step that does not change the
            state, like :meth:`gpusim.Simulation.contacts`.
        bodies: labels of the feet.
        up: upward direction (3,) in the world frame. Default: opposite to the gravity of each world, or z without
            gravity.

    Raises:
        UnknownNameError: a label belongs to no body of the model.
    """
    return _support(sim, _of_bodies(sim, bodies)[0], _axes(sim, up))


def zmp(sim: Simulation, bodies: Sequence[str], up: Vector | None = None) -> Zmp:
    """Compute the zero-moment point of the contact forces on ``bodies``, and the margin to the support polygon.

    Args:
        sim, bodies, up: as in :func:`support`.

    Raises:
        UnknownNameError: a label belongs to no body of the model.
    """
    contacts, side = _of_bodies(sim, bodies)
    axes = _axes(sim, up)
    polygons = _support(sim, contacts, axes)
    base = axes[:, 2] * polygons.height[:, None]
    force, moment = np.zeros((2, sim.num_worlds, 3))
    on_bodies = side[:, None] * contacts.force
    np.add.at(force, contacts.world, on_bodies)
    about = cross(contacts.point - base[contacts.world], on_bodies) + side[:, None] * contacts.torque
    np.add.at(moment, contacts.world, about)
    point = base + _zmp_offset(axes[:, 2], force, moment)
    return Zmp(point, polygons.margin(point))


def zmp_of_motion(tree: Tree, q: Any, v: Any, a: Any, height: float = 0.0) -> Array:
    """Compute the zero-moment point (worlds, 3) (m) that a motion requires.

    Args:
        tree: tree of the robot. Up is opposite to the tree's gravity, or z without gravity.
        q, v, a: postures, velocities, accelerations.
        height: height (m) of the ground along up.

    Returns:
        The zero-moment points. The point is NaN if the motion requires a ground force that pulls the robot down.
    """
    com, force, moment = tree.contact_wrench(q, v, a)
    up = _up_of(tree.inertias.gravity)
    base = com + up * (height - dot(com, up))[:, None]
    return np.asarray(base + _zmp_offset(up, force, moment + cross(com - base, force)))


def _zmp_offset(up: Array, force: Array, moment: Array) -> Array:
    """Return the vector from the reference point of ``moment`` to the zero-moment point.

    The vector is normal to ``up``.
    """
    normal_force = dot(up, force)
    safe = np.where(normal_force > 0.0, normal_force, np.nan)
    return np.asarray(cross(np.broadcast_to(up, moment.shape), moment) / safe[:, None])


def _of_bodies(sim: Simulation, bodies: Sequence[str]) -> tuple[Contacts, Array]:
    """Return the contacts between ``bodies`` and other bodies, and a factor for each contact force.

    Multiply each contact force by its factor (1 or -1) to get the force on ``bodies``.
    """
    if isinstance(bodies, str):
        bodies = [bodies]
    indices = {sim.model.index("body", label) for label in bodies}
    contacts = sim.contacts()
    a, b = (np.isin(ends, list(indices)) for ends in (contacts.body_a, contacts.body_b))
    near = contacts.touching | (contacts.gap <= TOUCHING)
    chosen = (a != b) & near
    return contacts.select(chosen), np.where(b, 1.0, -1.0)[chosen]


def _up_of(gravity: Array) -> Array:
    """Return unit vectors (worlds, 3) opposite to gravity, or z without gravity."""
    size = np.sqrt(dot(gravity, gravity))[:, None]
    return np.where(size > 0.0, -gravity / np.where(size > 0.0, size, 1.0), [0.0, 0.0, 1.0])


def _axes(sim: Simulation, up: Vector | None) -> Array:
    """Return three unit axes (worlds, 3, 3) as rows.

    The first axis is the projection of x onto the plane normal to up. If up is close to x, -z replaces x. The second
    axis is normal to up and to the first axis. The third axis is up.
    """
    if up is None:
        upward = _up_of(np.asarray(sim.runtime.parameter("gravity")))
    else:
        upward = np.broadcast_to(validate.direction("robotics", "up", up), (sim.num_worlds, 3))
    reference = np.where(np.abs(upward[:, :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 0.0, -1.0])
    first = reference - dot(reference, upward)[:, None] * upward
    first = first / np.sqrt(dot(first, first))[:, None]
    return np.stack([first, cross(upward, first), upward], axis=1)


def _support(sim: Simulation, contacts: Contacts, axes: Array) -> Support:
    worlds = sim.num_worlds
    local = matvec(axes[contacts.world], contacts.point)
    hulls = [_hull(local[contacts.world == w, :2]) for w in range(worlds)]
    count = np.array([len(h) for h in hulls])
    corners = np.zeros((worlds, max(count.max(initial=0), 1), 2))
    for w, hull in enumerate(hulls):
        corners[w, : len(hull)] = hull
        corners[w, len(hull) :] = hull[-1] if len(hull) else 0.0
    total = np.zeros(worlds)
    np.add.at(total, contacts.world, local[:, 2])
    points = np.bincount(contacts.world, minlength=worlds)
    return Support(corners, count, axes, total / np.maximum(points, 1))


def _hull(points: Array) -> Array:
    """Return the corners of the convex hull of points (n, 2), counterclockwise (Andrew's monotone chain).

    Omit points on edges.
    """
    ordered = np.unique(points, axis=0)
    if len(ordered) < 3:
        return ordered
    size = float(np.abs(ordered - ordered[0]).max())
    lower, upper = (_chain(side, 1e-12 * size * size) for side in (ordered, ordered[::-1]))
    return np.array(lower[:-1] + upper[:-1])


def _chain(points: Array, min_area: float) -> list[Array]:
    found: list[Array] = []
    for p in points:
        while len(found) > 1:
            (ax, ay), (bx, by) = found[-1] - found[-2], p - found[-2]
            if ax * by - ay * bx > min_area:
                break
            found.pop()
        found.append(p)
    return found
