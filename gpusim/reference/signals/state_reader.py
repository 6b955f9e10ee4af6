"""Signals that need no trial substep: poses, velocities, joint coordinates and their rates at the time t of a state.

The state stores the velocities at the last three half steps: v1 at t - h1/2, v2 one step earlier, and v3 two steps
earlier. Between two half steps, a kick applies the forces for the kick time H. The mean accelerations in the last two
kicks are (v1 - v2)/H1 and (v2 - v3)/H2. The reader extrapolates these accelerations to t - h1/4, and advances v1 to t
with the result. The velocity at t has a second-order error. After an impact, the reader does not extrapolate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import rotations
from gpusim.compiler.ray_sensors import ray_table
from gpusim.compiler.topology import MIDDLE, OUTER
from gpusim.description.actuator_kinds import Group
from gpusim.description.joint_kinds import (
    ANGLE,
    COUNTED,
    DISTANCE,
    MIDDLE_ANGLE,
    OUTER_ANGLE,
    ROTATION,
    SUM,
    TOTAL_ROTATION,
    TRANSLATION,
)
from gpusim.model import euler_angles
from gpusim.model.coordinates import KINDS, Coordinates
from gpusim.model.model import Model
from gpusim.model.sensors import sensor_table
from gpusim.model.sites import site_table
from gpusim.model.state import State
from gpusim.reference.joints import wrapping
from gpusim.typing import Array

matvec, cross, dot = rotations.matvec, rotations.cross, rotations.dot
SPRING = 4.0
"""An acceleration counts as an impact if it grows by more than this factor from one kick to the next."""
SMALL = 0.02
"""After an impact, the reader advances a velocity only if the change is below SMALL times the velocity."""
ROUGH = 0.5
"""Maximum relative change of a site's acceleration in a step for which the reader extrapolates the acceleration."""


def extrapolated_velocities(state: dict[str, Array], semi_implicit: bool, bodies: Any) -> Array:
    """Return the linear velocities (m/s) and angular momenta (kg m2/s) of n bodies at t, (num_worlds, n, 6)."""
    last = np.concatenate([state[name][:, bodies] for name in ("linear_velocity", "angular_momentum")], axis=-1)
    v1: Array = last.astype(np.float64)
    if semi_implicit:
        return v1
    shape = (*v1.shape[:2], 2, 3)
    v1, v2, v3 = (
        np.asarray(x, np.float64).reshape(shape)
        for x in (v1, state["velocity_before"][:, bodies], state["velocity_before_last"][:, bodies])
    )
    h1, kick, kick_before = (
        state[name][:, None, None, None] for name in ("step_before", "kick_before", "kick_before_last")
    )
    moved, steady = h1 > 0.0, kick_before > 0.0
    change = np.where(moved, 0.5 * h1 / np.where(moved, kick, 1.0), 0.0) * (v1 - v2)
    before = np.where(steady, 0.5 * h1 / np.where(steady, kick_before, 1.0), 0.0) * (v2 - v3)
    weight = np.where(steady, 0.75 * h1 / np.where(steady, 2.0 * kick - h1, 1.0), 0.0)
    apart = change - before
    size, size_before, whole = (dot(x, x)[..., None] for x in (change, before, v1))
    smooth = change + weight * apart
    steady_push = (dot(change, before)[..., None] > 0.0) & (size <= SPRING * SPRING * size_before)
    agree = steady_push & (dot(smooth, change)[..., None] > 0.0)
    small, both = size <= SMALL * SMALL * whole, (size_before <= SMALL * SMALL * whole) & (size_before > 0.0)
    extrapolated = np.where(agree | (small & both), smooth, np.where(small, change, 0.0))
    extrapolated = np.where(moved & (kick_before >= 0.0), np.where(steady, extrapolated, change), 0.0)
    return (v1 + extrapolated).reshape(*shape[:2], 6)


class StateReader:
    """Reader of the current state of all worlds.

    In the shapes of results, n is the number of requested elements.

    Args:
        model, coordinates: model of the simulation, and its table of joint coordinates.
        semi_implicit: True if the state stores velocities at t, False if it stores velocities at half steps.
        state: function that returns the current state.
        parameters: parameter arrays by name (``fields.PARAMETER_FIELDS``).
        control: function that returns the commands of all actuators, (num_worlds, controls).
    """

    def __init__(
        self,
        model: Model,
        coordinates: Coordinates,
        semi_implicit: bool,
        state: Callable[[], State],
        parameters: dict[str, Array],
        control: Callable[[], Array],
    ) -> None:
        self.model, self.coordinates, self.semi_implicit, self.parameters = (
            model,
            coordinates,
            semi_implicit,
            parameters,
        )
        self._state, self._control = state, control
        self.sites = site_table(model)
        self.sensors = sensor_table(model, model.topology.constraint_labels)
        self.rays = ray_table(model)

    @property
    def state(self) -> dict[str, Array]:
        """Return the state's arrays by name."""
        return self._state().arrays

    @property
    def num_worlds(self) -> int:
        """Return the number of worlds."""
        return self._state().num_worlds

    @property
    def control(self) -> Array:
        """Return the commands after limits, factor and offset, as the actuators use them, (num_worlds, controls)."""
        return self.model.acting(self._control())

    def broadcast(self, array: Array) -> Array:
        """Broadcast an array (1 or num_worlds, n) to (num_worlds, n)."""
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:]))

    def rotation(self, bodies: Any = slice(None)) -> Array:
        """Return the rotation matrices of bodies (body to world), (num_worlds, n, 3, 3)."""
        return rotations.matrix_from_quaternion(self.state["orientation"][:, bodies])

    def velocity(self, bodies: Any = slice(None)) -> Array:
        """Return the linear velocities (m/s) and angular momenta (kg m2/s) of bodies at t, (num_worlds, n, 6)."""
        return extrapolated_velocities(self.state, self.semi_implicit, bodies)

    def twist(self, bodies: Any = slice(None)) -> Array:
        """Return the linear (m/s) and angular velocities (rad/s) of bodies at t, world frame, (num_worlds, n, 6)."""
        r, velocity = self.rotation(bodies), self.velocity(bodies)
        inverse = np.linalg.inv(self.parameters["inertia"][:, bodies])
        momentum = matvec(r.swapaxes(-1, -2), velocity[..., 3:])
        return np.concatenate([velocity[..., :3], matvec(r, matvec(inverse, momentum))], axis=-1)

    def site_position(self, i: Array) -> Array:
        """Return the origins of sites (m), world frame, (num_worlds, n, 3)."""
        body, arm = self.sites["body"][i], self.sites["arm"][i]
        return np.asarray(self.state["position"][:, body] + matvec(self.rotation(body), arm))

    def site_axes(self, i: Array) -> Array:
        """Return the rotation matrices of sites (site to world), (num_worlds, n, 3, 3)."""
        frame = rotations.matrix_from_quaternion(self.sites["frame"][i])
        return np.asarray(np.matmul(self.rotation(self.sites["body"][i]), frame))

    def ray_lines(self, i: Array) -> tuple[Array, Array]:
        """Return the origins (m) and directions of rays ``i`` in the world frame, (num_worlds, n, 3) each."""
        site, axes = self.rays["ray_site"][i], self.site_axes(self.rays["ray_site"][i])
        return (
            np.asarray(self.site_position(site) + matvec(axes, self.rays["ray_origin"][i])),
            matvec(axes, self.rays["ray_direction"][i]),
        )

    def points(self, i: Any) -> tuple[Array, Array, Array]:
        """Return the moment arms of the joint points on parent and child, and the vector between both points (m)."""
        c, x = self.coordinates.columns, self.state["position"]
        a, b = c["body_a"][i], c["body_b"][i]
        arm_a, arm_b = matvec(self.rotation(a), c["arm_a"][i]), matvec(self.rotation(b), c["arm_b"][i])
        return arm_a, arm_b, (x[:, b] + arm_b) - (x[:, a] + arm_a)

    def axis(self, i: Any) -> Array:
        """Return the axes of coordinates ``i`` in the world frame, (num_worlds, n, 3)."""
        c = self.coordinates.columns
        return matvec(self.rotation(c["owner"][i]), c["axis"][i])

    def rotation_direction(self, i: Any) -> Array:
        """Return the vector d of each rotational coordinate, in the world frame, (num_worlds, n, 3).

        The rate of the coordinate is d . (omega_child - omega_parent). See model/euler_angles.py.
        """
        c, kind = self.coordinates.columns, self.coordinates.columns["kind"][i]
        other = np.where(c["owner"][i] == c["body_a"][i], c["body_b"][i], c["body_a"][i])
        component = np.where(kind == KINDS[OUTER_ANGLE], OUTER, np.where(kind == KINDS[MIDDLE_ANGLE], MIDDLE, -1))
        return euler_angles.direction(self.axis(i), matvec(self.rotation(other), c["other"][i]), component)

    def rotation_axis(self, i: Any) -> Array:
        """Return the rotation or translation axis of each coordinate, in the world frame, (num_worlds, n, 3)."""
        middle = (self.coordinates.columns["kind"][i] == KINDS[MIDDLE_ANGLE])[:, None]
        return np.where(middle, self.rotation_direction(i), self.axis(i))

    def frame_rotation(self, i: Any) -> Array:
        """Return the quaternions (with w >= 0) from the parent's to the child's joint frame, (num_worlds, n, 4)."""
        c, q = self.coordinates.columns, self.state["orientation"]
        a = rotations.quaternion_product(q[:, c["body_a"][i]], c["frame_a"][i][None])
        b = rotations.quaternion_product(q[:, c["body_b"][i]], c["frame_b"][i][None])
        relative = rotations.quaternion_product(rotations.quaternion_conjugate(a), b)
        return np.where(relative[..., 3:] < 0.0, -relative, relative)

    def wrapped_angles(self, k: Array) -> Array:
        """Return the joint angles ``k`` between -pi and pi (rad), (num_worlds, n)."""
        t = self.model.topology.angle
        axis = matvec(self.rotation(t.owner[k]), t.axis[k])
        ref_a, ref_b = matvec(self.rotation(t.body_a[k]), t.ref_a[k]), matvec(self.rotation(t.body_b[k]), t.ref_b[k])
        return euler_angles.wrapped(t, axis, ref_a, ref_b, k)

    def _angles(self, k: Array) -> Array:
        """Return the joint angles ``k`` at the current poses, including full rotations (rad)."""
        from gpusim.reference.joints.elements import TWO_PI

        wrapped = self.wrapped_angles(k)
        return np.asarray(wrapped + TWO_PI * np.round((self.state["angle"][:, k] - wrapped) / TWO_PI))

    def value(self, numbers: Array) -> Array:
        """Return the values of the joint coordinates ``numbers`` (m or rad), (num_worlds, n)."""
        return self._by_kind(numbers, self._value)

    def rate(self, numbers: Array) -> Array:
        """Return the rates of the joint coordinates ``numbers`` (m/s or rad/s), (num_worlds, n)."""
        return self._by_kind(numbers, self._rate)

    def axis_value(self, axes: Array) -> Array:
        """Return the joint coordinates of the joint axes ``axes`` (m or rad), (num_worlds, n)."""
        return self.value(self.coordinates.of_axis[axes])

    def axis_rate(self, axes: Array) -> Array:
        """Return the coordinate rates of the joint axes ``axes`` (m/s or rad/s), (num_worlds, n)."""
        return self.rate(self.coordinates.of_axis[axes])

    def _by_kind(self, numbers: Array, read: Callable[[str, Array], Array]) -> Array:
        out, kinds = np.zeros((self.num_worlds, len(numbers))), self.coordinates.columns["kind"][numbers]
        for name in (TRANSLATION, ANGLE, DISTANCE, ROTATION, TOTAL_ROTATION, OUTER_ANGLE, MIDDLE_ANGLE):
            chosen = np.flatnonzero(kinds == KINDS[name])
            if chosen.size:
                out[:, chosen] = read(name, numbers[chosen])
        start, coordinate, factor = (self.coordinates.sums[k] for k in ("sum_start", "sum_coordinate", "sum_factor"))
        for k in np.flatnonzero(kinds == KINDS[SUM]):
            part = self.coordinates.columns["part"][numbers[k]]
            terms = slice(start[part], start[part + 1])
            for values in (factor[terms] * self._by_kind(coordinate[terms], read)).T:
                out[:, k] += values
        return out

    def paths(self, part: Array) -> wrapping.Paths:
        """Return the wrapped rope paths with the indices ``part``."""
        return wrapping.find_paths(self.model.topology.wrap, self.state["position"], self.rotation(), part)

    def path_rows(self, part: Array) -> list[tuple[Array, Array, Array]]:
        """Return the Jacobians of the wrapped rope paths with the indices ``part``. See :func:`wrapping.rows`."""
        return wrapping.rows(self.paths(part), self.model.topology.wrap, self.state["position"], part)

    def _value(self, kind: str, i: Array) -> Array:
        part = self.coordinates.columns["part"][i]
        if kind == DISTANCE and (wrapped := part >= 0).any():
            out = np.empty((self.num_worlds, i.size))
            out[:, wrapped] = self.paths(part[wrapped]).length
            out[:, ~wrapped] = rotations.norm(self.points(i[~wrapped])[2])
            return out
        if kind in COUNTED:
            return self._angles(part)
        if kind in (ROTATION, TOTAL_ROTATION):
            vector = rotations.rotation_vector_from_quaternion(self.frame_rotation(i))
            return rotations.norm(vector) if kind == TOTAL_ROTATION else vector[:, np.arange(i.size), part]
        apart = self.points(i)[2]
        return rotations.norm(apart) if kind == DISTANCE else dot(self.axis(i), apart)

    def _rate(self, kind: str, i: Array) -> Array:
        c = self.coordinates.columns
        if kind == DISTANCE and (wrapped := c["part"][i] >= 0).any():
            out = np.empty((self.num_worlds, i.size))
            out[:, wrapped] = wrapping.rates(self.path_rows(c["part"][i[wrapped]]), self.twist)
            if not wrapped.all():
                out[:, ~wrapped] = self._rate(kind, i[~wrapped])
            return out
        a, b = self.twist(c["body_a"][i]), self.twist(c["body_b"][i])
        if kind in (OUTER_ANGLE, MIDDLE_ANGLE):
            return dot(self.rotation_direction(i), b[..., 3:] - a[..., 3:])
        if kind in (ANGLE, ROTATION, TOTAL_ROTATION):
            return dot(self.axis(i), b[..., 3:] - a[..., 3:])
        arm_a, arm_b, apart = self.points(i)
        # The velocity relative to the parent includes the rotation of the parent's axes.
        slip = b[..., :3] + cross(b[..., 3:], arm_b) - a[..., :3] - cross(a[..., 3:], arm_a + apart)
        if kind == TRANSLATION:
            return dot(self.axis(i), slip)
        length = rotations.norm(apart)
        return np.asarray(dot(apart, slip) / np.where(length > 0.0, length, 1.0))

    @property
    def groups(self) -> list[Group]:
        """Return all actuator groups, one for each kind of actuator."""
        return self._state().groups

    def group(self, kind: str) -> Group:
        """Return the group of all actuators of one kind."""
        return next(g for g in self.groups if g.type.name == kind)

    def command_before(self, group: Group, name: str) -> Array:
        """Return the values of command ``name`` of an actuator group in the last step, (num_worlds, n)."""
        return self.state["command_before"][:, group.control[name]]
