"""Intersections of sensor rays with shapes at the time t of the state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim import rotations
from gpusim.description.shape_kinds import Line, shape_type
from gpusim.reference.signals.state_reader import StateReader
from gpusim.typing import Array

matvec, dot = rotations.matvec, rotations.dot


@dataclass
class Casts:
    """Results of casting n rays in each world, in the world frame. Arrays are (num_worlds, n, ...).

    Attributes:
        origin: start points of the rays, m.
        direction: unit vectors.
        distance: distance to the first surface, m, or the range of the sensor if the ray hits nothing.
        normal: outward unit normal of the surface that the ray hits, or zeros if the ray hits nothing.
        shape: index of the shape that the ray hits, or -1 if the ray hits nothing.
    """

    origin: Array
    direction: Array
    distance: Array
    normal: Array
    shape: Array

    def points(self) -> Array:
        """Return the end points of the rays (m)."""
        return np.asarray(self.origin + self.distance[..., None] * self.direction)

    def intersect(self, now: StateReader, shape: int, rays: Array) -> None:
        """Intersect the rays with the indices ``rays`` with one shape. Keep the nearest hit of each ray."""
        spec, body = now.model.shapes[shape], now.model.contact.body[shape : shape + 1]
        kind, rotation = shape_type(spec.kind), now.rotation(body)
        center = now.state["position"][:, body] + matvec(rotation, now.model.contact.center[shape])
        shape_rotation = np.matmul(rotation, now.model.contact.rotation[shape].reshape(3, 3))
        near, direction = self.origin[:, rays] - center, self.direction[:, rays]
        start = np.zeros(near.shape[:2])
        if np.isfinite(now.model.contact.radius[shape]):
            start = dot(near, direction)
            near = near - start[..., None] * direction
        back = np.broadcast_to(shape_rotation.swapaxes(-1, -2), (*near.shape, 3))
        line = Line(matvec(back, near).reshape(-1, 3), matvec(back, direction).reshape(-1, 3), start.ravel())
        s, normal = kind.cast(spec.params, line)
        self._take(shape, rays, s.reshape(start.shape) - start, matvec(shape_rotation, normal.reshape(near.shape)))

    def _take(self, shape: int, rays: Array, distance: Array, normal: Array) -> None:
        nearer, length = distance < self.distance[:, rays], rotations.norm(normal)[..., None]
        unit = np.where(length > 0.0, normal / length, -self.direction[:, rays])  # a disk has no side
        self.normal[:, rays] = np.where(nearer[..., None], unit, self.normal[:, rays])
        self.shape[:, rays] = np.where(nearer, shape, self.shape[:, rays])
        self.distance[:, rays] = np.where(nearer, np.maximum(distance, 0.0), self.distance[:, rays])


def cast_rays(now: StateReader, i: Array) -> Casts:
    """Cast n rays with the indices ``i``, (n,)."""
    table, worlds = now.rays, now.num_worlds
    origin, direction = now.ray_lines(i)
    max_distance = np.repeat(table["ray_range"][None, i], worlds, axis=0)
    casts = Casts(origin, direction, max_distance, np.zeros_like(origin), np.full(max_distance.shape, -1))
    start, sensor = table["ray_shape_start"], table["ray_sensor"][i]
    for number in np.unique(sensor):
        rays = np.flatnonzero(sensor == number)
        for shape in table["ray_shape"][start[number] : start[number + 1]]:
            with np.errstate(all="ignore"):  # rays that miss the shape divide by zero
                casts.intersect(now, int(shape), rays)
    return casts
