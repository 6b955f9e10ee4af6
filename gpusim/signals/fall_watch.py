"""Warning about bodies that fall below every shape of the world.

The warning appears once per simulation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from gpusim.backends.base import Backend
from gpusim.description.joint_kinds import joint_type
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ShapeSpec
from gpusim.errors import callers_level
from gpusim.model.model import Model
from gpusim.typing import Array

FIRST = 128
"""Number of steps before the first check."""
DROP = 1.0
"""A body falls if it is at least this far below every shape of the world, m."""
FREE = 0.9
"""Minimum speed of a falling body, as a fraction of the speed after a free fall from the lowest shape."""


class FallWatch:
    """Monitor that warns once if a body falls forever.

    The monitor ignores bodies that joints connect to the world or to a kinematic body.
    """

    def __init__(self, backend: Backend, model: Model) -> None:
        self._next: float = FIRST
        self.rebind(backend, model)

    def rebind(self, backend: Backend, model: Model) -> None:
        """Monitor another backend of a model with the same elements."""
        self._backend, self._model = backend, model
        grounded_bodies = grounded(model)
        kinematic = {k for k, body in enumerate(model.bodies) if body.kinematic}
        self._loose = np.array(
            [k for k in range(len(model.bodies)) if k not in grounded_bodies | kinematic], dtype=np.int64
        )
        self._catching = [shape for shape in model.shapes if shape.body == WORLD or shape.body in kinematic]
        if not self._loose.size or not self._catching:
            self.stop()

    def stop(self) -> None:
        """Stop all further checks."""
        self._next = np.inf

    def check(self, steps: int, gravity: Array) -> None:
        """Warn if a body has fallen below all shapes. ``gravity`` is the acceleration (worlds, 3) or (1, 3), m/s2."""
        if steps < self._next:
            return
        self._next = 2.0 * steps
        state = self._backend.memory.read_state().arrays
        position = np.asarray(state["position"], np.float64)
        size = np.linalg.norm(gravity, axis=1)
        down = np.broadcast_to(gravity / np.maximum(size, 1e-300)[:, None], (len(position), 3))
        fell = np.min([self._below(shape, position, down) for shape in self._catching], axis=0)
        speed = np.einsum("wbk,wk->wb", np.asarray(state["linear_velocity"], np.float64)[:, self._loose], down)
        fell = np.where(np.isfinite(fell) & (size > 0.0)[:, None], fell, 0.0)
        falls = (fell >= DROP) & (speed**2 >= FREE**2 * 2.0 * size[:, None] * fell) & (speed > 0.0)
        if falls.any():
            self._warn(np.where(falls, fell, 0.0))

    def _below(self, shape: ShapeSpec, position: Array, down: Array) -> Array:
        """Return the distance (m) of each monitored body below ``shape``, (worlds, bodies)."""
        points = position[:, self._loose]
        if np.isinf(shape_type(shape.kind).radius(shape.params)):  # a plane
            normal, origin = shape.xform.matrix()[:, 2], np.asarray(shape.xform.position)
            if shape.body != WORLD:
                return np.full(points.shape[:2], -np.inf)  # the plane of a moving body may rotate
            catches = down @ normal < -1e-6
            return np.where(catches[:, None], (origin - points) @ normal, np.inf)
        depth = np.einsum("wbk,wk->wb", points, down)
        corners = shape.xform.apply(shape_type(shape.kind).corners(shape.params))
        if shape.body == WORLD:
            return depth - (down @ corners.T).max(axis=1)[:, None]
        body = self._model.bodies[shape.body]
        radius = float(np.linalg.norm(corners - np.asarray(body.com), axis=1).max())
        return depth - np.einsum("wk,wk->w", position[:, shape.body], down)[:, None] - radius

    def _warn(self, fell: Array) -> None:
        world, at = (int(i) for i in np.unravel_index(int(fell.argmax()), fell.shape))
        label = self._model.bodies[int(self._loose[at])].label
        count = int((fell > 0.0).sum()) - 1
        others = f" ({count} more in all worlds)" if count else ""
        warnings.warn(
            f"world {world}: body '{label}' fell {fell[world, at]:.3g} m below every shape of the world{others} and "
            "falls forever; put a floor below it, or check what it collides with",
            stacklevel=callers_level(),
        )
        self.stop()


def grounded(model: Model) -> set[int]:
    """Return WORLD, all kinematic bodies, and all bodies that joints connect to them (also through other bodies)."""
    links: dict[int, list[int]] = {}
    for joint in model.joints:
        if joint_type(joint.kind).holds:
            links.setdefault(joint.parent, []).append(joint.child)
            links.setdefault(joint.child, []).append(joint.parent)
    return _reached(links, [WORLD, *(k for k, body in enumerate(model.bodies) if body.kinematic)])


def _reached(links: dict[int, list[int]], starts: Iterable[int]) -> set[int]:
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        body = waiting.pop()
        if body not in found:
            found.add(body)
            waiting += links.get(body, [])
    return found
