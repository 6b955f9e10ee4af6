"""Intersection of rays with the triangles and ground planes of a stage, without OpenGL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gpusim.description.specs import WORLD
from gpusim.stage.floor import Ground
from gpusim.stage.meshes import MeshSource
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.gl.see_through import SeeThrough

_SEGMENTS = 24
"""Number of segments of round shapes in the meshes for ray casting."""


@dataclass(frozen=True)
class Hit:
    """Intersection of a ray with a body.

    Attributes:
        body: index of the body.
        world: index of the body's world among the drawn worlds.
        point: drawn position of the intersection (m), including the grid offset of the world.
        distance: distance from the eye (m).
    """

    body: int
    world: int
    point: Array
    distance: float


class Picker:
    """Ray caster for the bodies of a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._see_through = SeeThrough(stage)

    def pick(self, transforms: Array, poses: Poses, eye: Array, ray: Array) -> Hit | None:
        """Return the first hit of a ray. Return None if the ray hits nothing, or first hits another object than a body.

        Args:
            transforms: (instances, 3, 4) transforms of the instances in this frame.
            poses: poses of the bodies.
            eye: origin of the ray (m).
            ray: unit vector of the ray's direction.
        """
        met = [self._instance(transforms, eye, ray), self._ground(poses, eye, ray)]
        hit = min((hit for hit in met if hit is not None), key=lambda hit: hit.distance, default=None)
        return None if hit is None or hit.body == WORLD else hit

    def _instance(self, transforms: Array, eye: Array, ray: Array) -> Hit | None:
        """Return the nearest hit of the ray on the instances. Ignore instances drawn as glass."""
        blocking = np.ones(len(self._stage), dtype=bool)
        blocking[self._see_through.hiding(transforms, eye)] = False  # glass
        nearest, hit_instance = np.inf, -1
        for batch in self._stage.batches:
            chosen = np.arange(batch.first, batch.first + batch.count)
            chosen = chosen[blocking[chosen]]
            for instance in chosen[_may_hit(batch.mesh, transforms[chosen], eye, ray)]:
                distance = _distance(batch.mesh, transforms[instance], eye, ray)
                if distance < nearest:
                    nearest, hit_instance = distance, int(instance)
        if hit_instance < 0:
            return None
        body, world = int(self._stage.body[hit_instance]), int(self._stage.world[hit_instance])
        return Hit(body, world, eye + nearest * ray, float(nearest))

    def _ground(self, poses: Poses, eye: Array, ray: Array) -> Hit | None:
        """Return the ray's nearest hit on a plane of the model."""
        nearest: Hit | None = None
        for ground in (ground for ground in self._stage.grounds if ground.solid):
            for world, point, axes in self._stage.ground_poses(ground, poses):
                distance = _to_ground(ground, point, axes, eye, ray)
                if distance < (np.inf if nearest is None else nearest.distance):
                    nearest = Hit(ground.body, world, eye + distance * ray, distance)
        return nearest


def _to_ground(ground: Ground, point: Array, axes: Array, eye: Array, ray: Array) -> float:
    """Return the distance (m) along the ray to a ground, or inf if the ray misses the ground."""
    height, sinking = float(axes[:, 2] @ (eye - point)), -float(axes[:, 2] @ ray)
    if height * sinking <= 0.0 or not ground.seen_from(height):
        return float("inf")
    distance = height / sinking
    offset = np.abs(axes[:, :2].T @ (eye + distance * ray - point))
    return distance if ground.level or offset.max() <= ground.half else float("inf")


@lru_cache(maxsize=512)
def _triangles(mesh: MeshSource) -> tuple[Array, Array, float]:
    """Return the triangle corners (triangles, 3, 3) of a mesh, and center and radius of its bounding sphere."""
    made = mesh.make(_SEGMENTS)
    low, high = made.bounds()
    center = 0.5 * (low + high)
    radius = float(np.linalg.norm(made.positions - center, axis=1).max())
    return np.asarray(made.positions[made.triangles], dtype=float), center, radius


def _may_hit(mesh: MeshSource, transforms: Array, eye: Array, ray: Array) -> Array:
    """Return whether the ray hits the bounding sphere of each of n instances (n,)."""
    _, center, radius = _triangles(mesh)
    to_center = transforms[:, :, :3] @ center + transforms[:, :, 3] - eye
    # the Frobenius norm is an upper bound of the scaling
    radii = radius * np.sqrt((transforms[:, :, :3] ** 2).sum(axis=(1, 2)))
    along = to_center @ ray
    across = (to_center**2).sum(axis=1) - along**2
    may: Array = (across < radii**2) & (along > -radii)
    return may


def _distance(mesh: MeshSource, transform: Array, eye: Array, ray: Array) -> float:
    """Return the distance (m) along the ray to the nearest triangle of an instance, or inf without a hit.

    Source: Möller and Trumbore, Fast, minimum storage ray/triangle intersection, 1997.
    """
    corners, _, _ = _triangles(mesh)
    try:
        inverse = np.linalg.inv(transform[:, :3])
    except np.linalg.LinAlgError:  # the scale is zero along an axis
        return float("inf")
    origin, direction = inverse @ (eye - transform[:, 3]), inverse @ ray
    edge1, edge2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(direction, edge2)
    determinant = np.einsum("ij,ij->i", edge1, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        from_corner = origin - corners[:, 0]
        u = np.einsum("ij,ij->i", from_corner, p) / determinant
        q = np.cross(from_corner, edge1)
        v = (q @ direction) / determinant
        t = np.einsum("ij,ij->i", edge2, q) / determinant
        hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
    return float(t[hit].min()) if hit.any() else float("inf")
