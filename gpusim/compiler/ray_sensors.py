"""Tables of ray sensors: all rays of a model, and the shapes that the rays of each sensor can hit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpusim import validate
from gpusim.description.elements import Elements
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import RAY_SENSOR, WORLD, RaySpec, SensorSpec, ShapeSpec
from gpusim.errors import ModelError, unknown_name
from gpusim.typing import Array

COLUMNS = {
    "ray_site": "int", "ray_sensor": "int", "ray_origin": "double", "ray_direction": "double", "ray_range": "double",
    "ray_shape_start": "int", "ray_shape": "int",
}  # fmt: skip
"""Arrays of the ray sensors, and the C type of each array. For each ray: site, index of the ray sensor, origin (m) and
direction in the site's frame, and range (m). For each sensor, ``ray_shape_start`` is the index of its first shape in
``ray_shape``."""


def with_shapes(sensor: SensorSpec, model: Elements) -> SensorSpec:
    """Return a copy of a sensor, with a list of the shapes that its rays can hit.

    Raises:
        ModelError: a group has no shapes, or a shape has a kind that rays cannot hit.
    """
    if sensor.rays is None:
        return sensor
    body = model.sites[sensor.site].body
    known = {s.group for s in model.shapes if isinstance(s.group, str)}
    for name in sensor.rays.groups or ():
        if name not in known:
            raise ModelError(f"{sensor.element}: {unknown_name('group of shapes', name, known)}")
    # A sensor on the world also sees the shapes of the world, because the world is not the housing of the sensor.
    hidden = None if sensor.rays.own_body or body == WORLD else body
    seen = [k for k, s in enumerate(model.shapes) if s.body != hidden and _is_in(s, sensor.rays)]
    for k in seen:
        shape = model.shapes[k]
        if not shape_type(shape.kind).ray_file:
            rule = f"rays do not see {shape.element}, which is a {shape.kind}"
            raise validate.fail(sensor.element, rule, "set groups= to groups without this shape")
    return replace(sensor, rays=replace(sensor.rays, shapes=tuple(seen)))


def _is_in(shape: ShapeSpec, rays: RaySpec) -> bool:
    return rays.groups is None or shape.group in rays.groups


def ray_sensors(model: Elements) -> list[tuple[SensorSpec, RaySpec]]:
    """Return all ray sensors of a model with their ray settings, in order."""
    return [(s, s.rays) for s in model.sensors if s.kind == RAY_SENSOR and s.rays is not None]


def ray_table(model: Elements) -> dict[str, Array]:
    """Return a dict of the arrays that ``COLUMNS`` lists."""
    sensors = ray_sensors(model)
    counts = [len(spec.rays) for _, spec in sensors]
    rows = np.zeros((0, 3))
    return {
        "ray_site": np.repeat(np.array([s.site for s, _ in sensors], np.int64), counts),
        "ray_sensor": np.repeat(np.arange(len(sensors)), counts),
        "ray_origin": np.concatenate([rows, *(spec.rays.begins for _, spec in sensors)]),
        "ray_direction": np.concatenate([rows, *(spec.rays.directions for _, spec in sensors)]),
        "ray_range": np.repeat(np.array([spec.max_range for _, spec in sensors], np.float64), counts),
        "ray_shape_start": np.cumsum([0, *(len(spec.shapes) for _, spec in sensors)]),
        "ray_shape": np.array([k for _, spec in sensors for k in spec.shapes], np.int64),
    }
