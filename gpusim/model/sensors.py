"""Tables of force sensors, for simulation steps and signals."""

from __future__ import annotations

import numpy as np

from gpusim.description.elements import Elements
from gpusim.description.specs import CONTACT_SENSOR, JOINT_SENSOR, SensorSpec
from gpusim.model.coordinates import coordinates
from gpusim.model.model import Model
from gpusim.typing import Array

COLUMNS = {
    "joint_sensor_constraint": "int", "joint_sensor_coordinate": "int", "joint_sensor_break": "double",
    "axis_sensor": "int", "contact_sensor_body": "int", "contact_sensor_site": "int",
}  # fmt: skip
"""Columns and their C types. The columns ``joint_sensor_...`` contain the constraint and a coordinate of each sensor's
joint, a break force (N) and a break torque (N m). If the joint is not a breakable latch, break force and break torque
are infinite. ``axis_sensor`` is the joint sensor of each axis row of a breakable latch, or -1 for other rows. The
columns ``contact_sensor_...`` contain the body and the site of each contact sensor."""
BREAKS = ("break_force", "break_torque")
"""Names of the parameters of a breakable latch."""


def of_kind(model: Elements, kind: str) -> list[SensorSpec]:
    """Return all sensors of one kind, in the order of the model."""
    return [s for s in model.sensors if s.kind == kind]


def breaking_sensors(model: Elements) -> dict[int, int]:
    """Return a dict that maps each breakable joint to the index of its first joint sensor."""
    first_sensor: dict[int, int] = {}
    for index, sensor in enumerate(of_kind(model, JOINT_SENSOR)):
        if BREAKS[0] in model.joints[sensor.element_index].params:
            first_sensor.setdefault(sensor.element_index, index)
    return first_sensor


def sensor_table(model: Model, constraint_labels: list[str]) -> dict[str, Array]:
    """Return a dict of the arrays that ``COLUMNS`` lists."""
    joints, contacts = of_kind(model, JOINT_SENSOR), of_kind(model, CONTACT_SENSOR)
    constraint_of = {label: k for k, label in reversed(list(enumerate(constraint_labels)))} if joints else {}
    read = coordinates(model) if joints else None
    breaking = breaking_sensors(model)
    return {
        "joint_sensor_break": np.array(
            [[model.joints[s.element_index].params.get(name, np.inf) for name in BREAKS] for s in joints], np.float64
        ).reshape(-1, 2),
        "axis_sensor": np.array([breaking.get(axis.joint, -1) for axis in model.axes], np.int64),
        "joint_sensor_constraint": np.array(
            [constraint_of[model.joints[s.element_index].label] for s in joints], np.int64
        ),
        "joint_sensor_coordinate": np.array([read.of_joint[s.element_index][0] for s in joints if read], np.int64),
        "contact_sensor_body": np.array([s.element_index for s in contacts], np.int64),
        "contact_sensor_site": np.array([s.site for s in contacts], np.int64),
    }
