"""Detection of world shapes, such as walls, that are between the eye and the bodies."""

from __future__ import annotations

import numpy as np

from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD
from gpusim.stage.meshes import coarse_points
from gpusim.stage.stage import Stage
from gpusim.typing import Array

_MAX_BODIES = 200
_HIDDEN_FRACTION = 0.04
"""The viewer draws a world shape as glass if it hides more than this fraction of a world's bodies."""


class SeeThrough:
    """Detector of world shapes that hide bodies. It ignores planes, height fields and triangle meshes."""

    def __init__(self, stage: Stage) -> None:
        # For height fields and triangle meshes, bounding boxes are too inaccurate.
        solid = np.array([shape_type(shape.kind).movable for shape in stage.model.shapes], bool)
        fixed = (stage.body == WORLD) & (stage.shape >= 0)
        fixed[fixed] &= solid[stage.shape[fixed]]
        self._walls = np.flatnonzero(fixed)
        low, high = np.zeros((len(stage), 3)), np.zeros((len(stage), 3))
        for batch in stage.batches:
            points = coarse_points(batch.mesh)
            chosen = slice(batch.first, batch.first + batch.count)
            low[chosen], high[chosen] = points.min(axis=0), points.max(axis=0)
        self._low, self._high = low[self._walls], high[self._walls]
        bodies = np.flatnonzero(stage.body != WORLD)
        bodies = bodies[np.argsort(stage.world[bodies], kind="stable")]
        self._bodies = bodies[:: max(1, len(bodies) // (_MAX_BODIES * stage.num_worlds))]
        self._starts = np.flatnonzero(np.diff(stage.world[self._bodies], prepend=-1))

    def hiding(self, transforms: Array, eye: Array) -> Array:
        """Return the indices of instances. Each instance hides more than 4 % of the bodies of one world from the eye.

        Args:
            transforms: (instances, 3, 4) transforms of the instances in this frame.
            eye: position (3,) of the eye in the world frame (m).
        """
        if not self._walls.size or not self._bodies.size:
            return self._walls[:0]
        inverse = np.linalg.inv(transforms[self._walls, :, :3])
        origin = np.einsum("wij,wj->wi", inverse, eye - transforms[self._walls, :, 3])
        aim = transforms[self._bodies, :, 3] - eye
        # slab test in the axes of each wall, (walls, bodies, 3): a ray starts at the eye (0) and ends at a body (1)
        ray = np.einsum("wij,bj->wbi", inverse, aim)
        ray = np.where(np.abs(ray) < 1e-12, 1e-12, ray)
        first = (self._low[:, None] - origin[:, None]) / ray
        second = (self._high[:, None] - origin[:, None]) / ray
        enter, leave = np.minimum(first, second).max(axis=2), np.maximum(first, second).min(axis=2)
        hidden = (enter < leave) & (leave > 0.0) & (enter < 0.98) & (enter > 0.0)
        # a wall may hide bodies of its world and of worlds behind the wall
        counts = np.diff(self._starts, append=len(self._bodies))
        fractions = np.add.reduceat(hidden, self._starts, axis=1, dtype=float) / counts
        return self._walls[fractions.max(axis=1) > _HIDDEN_FRACTION]
