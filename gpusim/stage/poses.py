"""Poses of bodies, and bounding spheres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import rotations
from gpusim.model.model import Model
from gpusim.signals.writing import chosen_worlds
from gpusim.typing import Array


@dataclass(frozen=True)
class Poses:
    """Poses of all bodies.

    Attributes:
        position: (num_worlds, bodies + 1, 3) centers of mass in the world frame (m). The last entry is
            the world.
        rotation: (num_worlds, bodies + 1, 3, 3) rotation matrices, body to world.
    """

    position: Array
    rotation: Array

    @classmethod
    def of(cls, source: Any, worlds: Any = (0,)) -> Poses:
        """Create poses of ``worlds`` from the current state of a Simulation or MotionPlayer.

        Raises:
            ModelError: no such world.
        """
        state = source.read_state()
        chosen = chosen_worlds("Poses.of", worlds, len(state["position"])).tolist()
        return cls.from_state(state["position"], state["orientation"], chosen)

    @classmethod
    def from_state(cls, position: Array, orientation: Array, worlds: Sequence[int]) -> Poses:
        """Create poses of ``worlds`` from the arrays of a simulation's state."""
        chosen = list(worlds)
        matrices = rotations.matrix_from_quaternion(np.asarray(orientation[chosen]))
        return cls(np.asarray(position[chosen]), matrices)

    @classmethod
    def from_body_frames(cls, model: Model, position: Array, orientation: Array) -> Poses:
        """Create poses of one world from the body frames: positions (bodies, 3) in m, and quaternions xyzw (bodies, 4).

        Arrays (n, bodies, 3) and (n, bodies, 4) contain the poses of n worlds or of n samples.
        """
        matrices = rotations.matrix_from_quaternion(np.asarray(orientation, dtype=float))
        coms = np.array([body.com for body in model.bodies]).reshape(-1, 3)
        count = len(position) if np.ndim(position) == 3 else 1
        rotation = np.tile(np.eye(3), (count, len(coms) + 1, 1, 1))
        centers = np.zeros((count, len(coms) + 1, 3))
        rotation[:, :-1], centers[:, :-1] = matrices, position + rotations.matvec(matrices, coms)
        return cls(centers, rotation)

    @classmethod
    def from_model(cls, model: Model) -> Poses:
        """Create poses of one world from the model's initial poses."""
        position = np.zeros((1, len(model.bodies) + 1, 3))
        rotation = np.repeat(np.eye(3)[None, None], len(model.bodies) + 1, axis=1)
        for k, body in enumerate(model.bodies):
            position[0, k], rotation[0, k] = body.xform.apply(body.com), body.xform.matrix()
        return cls(position, rotation)


@dataclass(frozen=True)
class Bounds:
    """Bounding sphere, with center and radius in m."""

    center: Array
    radius: float
