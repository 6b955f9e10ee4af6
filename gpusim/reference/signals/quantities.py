"""Quantities: the signals that backends compute from a state. Each quantity has a NumPy function and a C++ function.

``Quantity.device`` is the function body in C++. The C++ function has the arguments ``w`` (world), ``i`` (index of an
element) and ``out`` (result). The methods of ``w`` return parameters, tables and the stored state (model/fields.py
lists their names). The function body can also call the functions of cuda_kernels/signals/observe.cuh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from gpusim import rotations
from gpusim.description.actuator_kinds import ActuatorType, Reading
from gpusim.reference.signals.rays import Casts, cast_rays
from gpusim.reference.signals.state_reader import ROUGH, StateReader
from gpusim.typing import Array

matvec, cross = rotations.matvec, rotations.cross


@dataclass(frozen=True)
class Quantity:
    """Quantity with one value for each element of a family (bodies, sites, ...).

    ``shape`` is the array shape of the value of one element. ``read`` takes the indices of n elements, and returns
    (num_worlds, n, *shape).
    """

    name: str
    shape: tuple[int, ...]
    unit: str
    doc: str
    read: Callable[[StateReader, Array], Array]
    device: str


def _state(name: str) -> Callable[[StateReader, Array], Array]:
    return lambda now, i: np.repeat(now.state[name][:, None], len(i), axis=1)


SIM = (
    Quantity("time", (), "s", "simulated time", _state("time"), "*out = *w.time();"),
    Quantity(
        "residual", (), "m/s", "largest row residual of the last velocity solve", _state("residual"),
        "*out = *w.residual();",
    ),
    Quantity(
        "not_converged", (), "-", "number of substeps since the start or reset in which the solve did not converge",
        _state("not_converged"), "*out = *w.not_converged();",
    ),
    Quantity(
        "joint_drift_peak", (), "m",
        "maximum gap of a joint since the start or reset, without the last substep",
        _state("joint_drift_peak"), "*out = *w.joint_drift_peak();",
    ),
    Quantity(
        "joint_tilt_peak", (), "rad", "maximum error of a locked rotation, or of a coupling (m for translations)",
        _state("joint_tilt_peak"), "*out = *w.joint_tilt_peak();",
    ),
    Quantity(
        "contact_residual", (), "-",
        "maximum change of an impulse in the last sweep over contacts, divided by the maximum normal impulse",
        _state("contact_residual"), "*out = *w.contact_residual();",
    ),
    Quantity(
        "pairs", (), "-", "number of close pairs of shapes in the last step", _state("pair_count"),
        "*out = *w.pair_count();",
    ),
    Quantity(
        "pair_peak", (), "-", "maximum number of close pairs since the start or reset; it may exceed max_pairs",
        _state("pair_peak"), "*out = *w.pair_peak();",
    ),
)  # fmt: skip
"""Quantities of a whole world."""


def _origin(now: StateReader, i: Array) -> Array:
    com = np.array([body.com for body in now.model.bodies]).reshape(-1, 3)
    return np.asarray(now.state["position"][:, i] - matvec(now.rotation(i), com[i]))


_POSE, _AT = "of the body frame, world frame", "world frame, at t"
BODY = (
    Quantity("position", (3,), "m", f"origin {_POSE}", _origin, "body_origin(w, i, out);"),
    Quantity(
        "orientation", (4,), "-", f"quaternion xyzw {_POSE}", lambda now, i: now.state["orientation"][:, i],
        "for (int k = 0; k < 4; ++k) out[k] = w.orientation()[4 * i + k];",
    ),
    Quantity(
        "center_of_mass", (3,), "m", "center of mass, world frame", lambda now, i: now.state["position"][:, i],
        "copy3(w.position() + 3 * i, out);",
    ),
    Quantity(
        "linear_velocity", (3,), "m/s", f"velocity of the center of mass, {_AT}",
        lambda now, i: now.velocity(i)[..., :3],
        "extrapolated(w, i, 0, out);",
    ),
    Quantity(
        "angular_velocity", (3,), "rad/s", f"angular velocity, {_AT}",
        lambda now, i: now.twist(i)[..., 3:], "angular_velocity(w, i, out);"
    ),
    Quantity(
        "angular_momentum", (3,), "kg m2/s", f"angular momentum about the center of mass, {_AT}",
        lambda now, i: now.velocity(i)[..., 3:], "extrapolated(w, i, 1, out);",
    ),
)  # fmt: skip
"""Quantities of a body."""


def _frame_position(now: StateReader, i: Array) -> Array:
    c = now.coordinates.columns
    frame = np.matmul(now.rotation(c["body_a"][i]), rotations.matrix_from_quaternion(c["frame_a"][i]))
    return np.concatenate([matvec(frame.swapaxes(-1, -2), now.points(i)[2]), now.frame_rotation(i)], axis=-1)


def _frame_twist(now: StateReader, i: Array) -> Array:
    twist = now.twist(now.coordinates.columns["body_b"][i])
    return np.concatenate([twist[..., :3] + cross(twist[..., 3:], now.points(i)[1]), twist[..., 3:]], axis=-1)


COORDINATE = (
    Quantity(
        "position", (), "m, rad", "joint coordinate; angles include full rotations",
        StateReader.value, "*out = coordinate_value(w, i);"
    ),
    Quantity(
        "velocity", (), "m/s, rad/s", "rate of the coordinate at t", StateReader.rate, "*out = coordinate_rate(w, i);"
    ),
)  # fmt: skip
"""Quantities of a coordinate (model/coordinates.py)."""


def _tension(now: StateReader, i: Array) -> Array:
    """Return the mean tension of the joints ``i`` in the last step (N)."""
    time = now.state["sensed_time"][:, None]
    return np.where(time > 0.0, now.state["sensed_pull"][:, i] / np.where(time > 0.0, time, 1.0), 0.0)


TENSION = (
    Quantity(
        "tension", (), "N",
        "mean tension of the rope, rod or tendon in the last step; negative if it pushes; tendons over the joint "
        "contribute to the tension of each of their lines",
        _tension, "*out = joint_tension(w, i);",
    ),
)  # fmt: skip
"""Quantities of ropes, rods and tendons (model/ropes.py). ``i`` is an index among the joints that have a tension."""
FRAME = (
    Quantity(
        "quaternion", (4,), "-", "orientation of the child's joint frame in the parent's joint frame, xyzw",
        StateReader.frame_rotation,
        "frame_rotation(w, i, out);",
    ),
    Quantity(
        "pose", (7,), "m, -", "pose of the child's joint frame in the parent's joint frame: position, quaternion xyzw",
        _frame_position,
        "frame_position(w, i, out);",
    ),
    Quantity(
        "twist", (6,), "m/s, rad/s", "linear and angular velocity of the child's joint frame at t, world frame",
        _frame_twist, "frame_twist(w, i, out);",
    ),
)  # fmt: skip
"""Quantities of a joint's frames."""


def _site_orientation(now: StateReader, i: Array) -> Array:
    body, frame = now.sites["body"][i], now.sites["frame"][i]
    return rotations.quaternion_product(now.state["orientation"][:, body], frame[None])


def _site_velocity(now: StateReader, i: Array) -> Array:
    body, arm = now.sites["body"][i], now.sites["arm"][i]
    twist = now.twist(body)
    return np.asarray(twist[..., :3] + cross(twist[..., 3:], matvec(now.rotation(body), arm)))


SITE = (
    Quantity(
        "position", (3,), "m", "origin of the site, world frame", StateReader.site_position,
        "site_position(w, i, out);",
    ),
    Quantity(
        "orientation", (4,), "-", "quaternion xyzw of the site, world frame", _site_orientation,
        "quaternion_product(w.orientation() + 4 * w.site_body()[i], w.site_frame() + 4 * i, out);",
    ),
    Quantity(
        "linear_velocity", (3,), "m/s", f"velocity of the site's origin, {_AT}",
        _site_velocity, "site_velocity(w, i, out);"
    ),
    Quantity(
        "angular_velocity", (3,), "rad/s", f"angular velocity of the site's body, {_AT}",
        lambda now, i: now.twist(now.sites["body"][i])[..., 3:], "angular_velocity(w, w.site_body()[i], out);",
    ),
)  # fmt: skip
"""Quantities of a site."""


def _growth(now: StateReader, body: Array, change: Array, rate: Array) -> Array:
    """Return the change of linear acceleration and torque since the last kick, (num_worlds, n, 6)."""
    s, shape = now.state, (*change.shape[:2], 2, 3)
    h1, kick, older = (s[name][:, None, None, None] for name in ("step_before", "kick_before", "kick_before_last"))
    v2, v3 = (s[name][:, body].astype(float).reshape(shape) for name in ("velocity_before", "velocity_before_last"))
    steady = (h1 > 0.0) & (kick > 0.0) & (older > 0.0)
    scale = np.where(steady, h1 / np.where(steady, 2.0 * kick - h1, 1.0), 0.0)
    # v3 = v2 means that the acceleration increased suddenly (state_reader.py), or that the body was at rest
    known = (v2 != v3).any(axis=-1, keepdims=True)
    apart = change.reshape(shape) - (v2 - v3) / np.where(steady, older, 1.0)
    extrapolation = np.where(known, scale * apart, 0.0)
    half = 0.5 * h1 * rate[:, :, None]
    gain = (
        cross(half, extrapolation + cross(half, extrapolation)) * (2.0 / (1.0 + rotations.dot(half, half)))[..., None]
    )
    return (extrapolation + gain).reshape(change.shape)


def _site_acceleration(now: StateReader, i: Array) -> Array:
    """Return the acceleration of each site minus gravity, in the frame of the site."""
    s, body = now.state, now.sites["body"][i]
    kick = s["kick_before"][:, None, None]
    new = np.concatenate([s["linear_velocity"][:, body], s["angular_momentum"][:, body]], axis=-1).astype(float)
    change = (new - s["velocity_before"][:, body]) / np.where(kick > 0.0, kick, 1.0)
    change = np.where(kick > 0.0, change, 0.0)
    r, rate = now.rotation(body), now.twist(body)[..., 3:]
    inverse = np.linalg.inv(now.parameters["inertia"][:, body])
    arm = matvec(r, now.sites["arm"][i])

    def tangential(torque: Array) -> Array:
        return cross(matvec(r, matvec(inverse, matvec(r.swapaxes(-1, -2), torque))), arm)

    growth = _growth(now, body, change, rate)
    parts = (
        change[..., :3] - now.parameters["gravity"][:, None],
        tangential(change[..., 3:] - cross(rate, now.velocity(body)[..., 3:])),
        cross(rate, cross(rate, arm)),
    )
    growth_at_site = growth[..., :3] + tangential(growth[..., 3:])
    whole = rotations.dot(parts[0], parts[0]) + rotations.dot(parts[1], parts[1]) + rotations.dot(parts[2], parts[2])
    smooth = rotations.dot(growth_at_site, growth_at_site) <= ROUGH * ROUGH * whole
    at_site = parts[0] + parts[1] + parts[2] + np.where(smooth[..., None], growth_at_site, 0.0)
    return matvec(now.site_axes(i).swapaxes(-1, -2), at_site)


def _site_rate(now: StateReader, i: Array) -> Array:
    return matvec(now.site_axes(i).swapaxes(-1, -2), now.twist(now.sites["body"][i])[..., 3:])


IMU = (
    Quantity(
        "acceleration", (3,), "m/s2",
        "acceleration minus gravity at t, as an accelerometer measures, along the site's axes",
        _site_acceleration, "site_acceleration(w, i, out);",
    ),
    Quantity(
        "angular_rate", (3,), "rad/s", "angular velocity at t, as a gyro measures, along the site's axes", _site_rate,
        "site_rate(w, i, out);",
    ),
)  # fmt: skip
"""Quantities that an IMU measures at a site."""


def _sensed(part: slice) -> Callable[[StateReader, Array], Array]:
    return lambda now, i: now.state["sensed_wrench"][:, i, part].astype(np.float64)


JOINT_WRENCH = (
    Quantity(
        "force", (3,), "N",
        "mean force of the child on the parent in the last step, along the parent's joint frame",
        _sensed(slice(0, 3)),
        "for (int k = 0; k < 3; ++k) out[k] = double(w.sensed_wrench()[6 * i + k]);",
    ),
    Quantity(
        "torque", (3,), "N m", "mean torque of the child on the parent about the joint point, including drives",
        _sensed(slice(3, 6)),
        "for (int k = 0; k < 3; ++k) out[k] = double(w.sensed_wrench()[6 * i + 3 + k]);",
    ),
)  # fmt: skip
"""Quantities of a force sensor in a joint."""


def contact_wrench(now: StateReader, i: Array) -> Array:
    """Return the contact wrenches on the bodies of n sensors, about their centers of mass, (num_worlds, n, 6)."""
    time = now.state["sensed_time"][:, None, None]
    return np.where(time > 0.0, now.state["sensed_contact"][:, i] / np.where(time > 0.0, time, 1.0), 0.0)


def _contact_frame(now: StateReader, i: Array) -> tuple[Array, Array]:
    """Return the sensor's origin relative to the center of mass (m), and the sensor's z axis, in the world frame."""
    site, body = now.sensors["contact_sensor_site"][i], now.sensors["contact_sensor_body"][i]
    r, has = now.rotation(body), site >= 0
    com = np.array([b.com for b in now.model.bodies]).reshape(-1, 3)[body]
    if not has.any():
        return matvec(r, -com), r[..., 2]
    at = np.where(has, site, 0)
    arm = np.where(has[:, None], now.sites["arm"][at], -com)
    return matvec(r, arm), np.where(has[:, None], now.site_axes(at)[..., 2], r[..., 2])


def _contact_force(now: StateReader, i: Array) -> Array:
    return contact_wrench(now, i)[..., :3]


def _contact_torque(now: StateReader, i: Array) -> Array:
    wrench, (arm, _) = contact_wrench(now, i), _contact_frame(now, i)
    return wrench[..., 3:] - cross(arm, wrench[..., :3])


def _pressure_center(now: StateReader, i: Array) -> Array:
    (arm, normal), wrench = _contact_frame(now, i), contact_wrench(now, i)
    torque = wrench[..., 3:] - cross(arm, wrench[..., :3])
    press = rotations.dot(normal, wrench[..., :3])[..., None]
    shift = cross(normal, torque) / np.where(press > 0.0, press, 1.0)
    origin = now.state["position"][:, now.sensors["contact_sensor_body"][i]] + arm
    return np.where(press > 0.0, origin + shift, origin)


CONTACT_WRENCH = (
    Quantity(
        "force", (3,), "N",
        "mean force of all contacts on the body in the last step, including bounces, world frame",
        _contact_force,
        "double torque[3]; contact_wrench(w, i, out, torque);",
    ),
    Quantity(
        "torque", (3,), "N m", "torque of these contacts about the sensor's origin, world frame", _contact_torque,
        "double force[3]; contact_wrench(w, i, force, out);",
    ),
    Quantity(
        "center_of_pressure", (3,), "m",
        "point where the force acts, in the plane z = 0 of the sensor, world frame; without force: the origin",
        _pressure_center, "pressure_center(w, i, out);",
    ),
)  # fmt: skip
"""Quantities of a contact sensor on a body."""


def _cast(measure: Callable[[Casts], Array]) -> Callable[[StateReader, Array], Array]:
    return lambda now, i: measure(cast_rays(now, i))


RAY = (
    Quantity(
        "", (), "m", "distance to the first surface along each ray; the sensor's range if the ray hits nothing",
        _cast(lambda casts: casts.distance), "*out = c.distance;",
    ),
    Quantity(
        "shape", (), "-", "index of the shape that each ray hits, or -1",
        _cast(lambda casts: casts.shape.astype(np.float64)), "*out = double(c.shape);",
    ),
    Quantity(
        "point", (3,), "m", "end point of each ray, world frame", _cast(lambda casts: casts.points()),
        "for (int k = 0; k < 3; ++k) out[k] = c.origin[k] + c.distance * c.direction[k];",
    ),
    Quantity(
        "normal", (3,), "-", "outward unit normal of the surface that each ray hits, or zeros, world frame",
        _cast(lambda casts: casts.normal), "copy3(c.normal, out);",
    ),
)  # fmt: skip
"""Quantities of a ray in a ray sensor."""


def reading(kind: str, declared: Reading) -> Quantity:
    """Return the quantity for one reading (output value) of an actuator kind."""

    def read(now: StateReader, i: Array) -> Array:
        return np.asarray(declared.read(now.group(kind), now))[:, i]

    return Quantity(declared.name, (), declared.unit, declared.doc, read, declared.device)


@cache
def readings(kind: ActuatorType) -> tuple[Quantity, ...]:
    """Return the quantities for all readings of an actuator kind."""
    return tuple(reading(kind.name, r) for r in kind.readings)


@cache
def device_quantities(kinds: tuple[ActuatorType, ...]) -> tuple[Quantity, ...]:
    """Return all quantities that the kernels can compute, including readings of ``kinds``, sorted by number."""
    of_kinds = (q for kind in kinds for q in readings(kind) if q.device)
    return (*SIM, *BODY, *COORDINATE, *TENSION, *FRAME, *SITE, *IMU, *JOINT_WRENCH, *CONTACT_WRENCH, *of_kinds)


@cache
def numbers(kinds: tuple[ActuatorType, ...]) -> dict[int, int]:
    """Return the number of each quantity, with ``id(quantity)`` as the key."""
    return {id(q): number for number, q in enumerate((*device_quantities(kinds), *RAY))}
