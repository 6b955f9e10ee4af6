"""Drag of a body in a fluid, such as air or water: MuJoCo's inertia-box model.

The drag acts on a box with the edge lengths b along the principal axes of the body. The force F and the torque T along
axis k, with the other axes i and j, are

    F_k = -(3 pi d mu + rho b_i b_j |v_k| / 2) v_k
    T_k = -(pi d^3 mu + rho b_k (b_i^4 + b_j^4) |w_k| / 64) w_k,   d = (b_x + b_y + b_z) / 3

v and w are the velocity and the angular velocity relative to the fluid at time t. mu is the viscosity and rho is the
density of the fluid. Source: MuJoCo's documentation, "Fluid forces". The model reduces the drag if it would remove more
than half of the speed in one velocity update (kick).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import add_columns
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.actuator_kinds import ActuatorType, Group, Parameter, StepBuffers, register
from gpusim.description.references import BODY
from gpusim.description.specs import ActuatorSpec, BodySpec
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

_XYZ = ("x", "y", "z")
SHARE_OF_STOP = 0.5
"""The model reduces a drag that would remove more than this fraction of the speed in one velocity update (kick)."""


@register
class Drag(ActuatorType):
    """Drag force and drag torque of a fluid on a body."""

    name: ClassVar[str] = "drag"
    extra: ClassVar[bool] = True
    kernel_file: ClassVar[str] = "drag.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("push",)
    prefix: ClassVar[str] = "drag"
    references = {"body": BODY}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("density", "kg/m3", "density of the fluid"),
        Parameter("viscosity", "Pa s", "viscosity of the fluid"),
        *(Parameter(f"wind_{c}", "m/s", f"{c} component of the fluid's velocity, world frame") for c in _XYZ),
        *(Parameter(f"size_{c}", "m", f"edge {c} of the box") for c in _XYZ),
        *(
            Parameter(f"rotation_{c}", "-", f"{c} of the box's orientation on the body", signal=False, computed=True)
            for c in "xyzw"
        ),
    )

    def axis(self, spec: ActuatorSpec, maker: Any) -> int:
        """Return the index of the body. Drag acts on a body, not on a joint coordinate."""
        return int(spec.params["body"])

    def completed(self, spec: ActuatorSpec, bodies: list[BodySpec]) -> ActuatorSpec:
        """Return the actuator. Without ``size``, compute the box from mass and inertia of the body."""
        body = bodies[spec.params["body"]]
        size, rotation = np.array([spec.params[f"size_{c}"] for c in _XYZ]), Transform()
        if np.isnan(size).any():
            moments, axes = np.linalg.eigh(body.inertia)
            axes[:, 0] *= np.linalg.det(axes)
            rotation = Transform.from_matrix(axes)
            size = np.sqrt(np.maximum(6.0 / body.mass * (moments.sum() - 2.0 * moments), 0.0))
        sizes = {f"size_{c}": float(size[k]) for k, c in enumerate(_XYZ)}
        orientation = {f"rotation_{c}": float(rotation.rotation[k]) for k, c in enumerate("xyzw")}
        return replace(spec, params=orientation | spec.params | sizes)

    def check(self, group: Group) -> None:
        """Raise ModelError if a density, viscosity or size is negative."""
        group.check_signs(not_negative=("density", "viscosity", "size_x", "size_y", "size_z"))

    def push(self, group: Group, work: StepBuffers) -> None:
        """Add the drag force at the center of mass, and the drag torque."""
        p, bodies = group.params, group.axis
        rotation = rotations.matrix_from_quaternion(_stack_components(p, "rotation", "xyzw"))
        box = np.matmul(np.asarray(work.rotation_real[:, bodies], np.float64), rotation)
        size, wind = _stack_components(p, "size"), _stack_components(p, "wind")
        i, j = size[..., [1, 2, 0]], size[..., [2, 0, 1]]
        diameter = size.sum(axis=-1, keepdims=True) / 3.0
        density, viscosity = p["density"][..., None], p["viscosity"][..., None]
        inverse = np.asarray(work.inertia_inverse[:, bodies], np.float64)
        mass = work.broadcast(np.asarray(work.inverse_mass, np.float64))[:, bodies, None]
        angular_response = np.einsum("...ik,...ij,...jk->...k", box, inverse, box)
        kick = np.asarray(work.kick_time, np.float64)[..., None]
        (linear, linear_change), (angular, angular_change) = _velocities(work, bodies, inverse)
        cube, quartic = diameter * diameter * diameter, i * i * i * i + j * j * j * j
        force = _resistance(
            3.0 * math.pi * diameter * viscosity, 0.5 * density * i * j, kick * mass, box, linear - wind, linear_change
        )
        torque = _resistance(
            math.pi * cube * viscosity,
            density * size * quartic / 64.0,
            kick * angular_response,
            box,
            angular,
            angular_change,
        )
        add_columns(work.force, bodies, force)
        add_columns(work.torque, bodies, torque)


def _stack_components(p: dict[str, Array], name: str, components: str = "xyz") -> Array:
    return np.stack(np.broadcast_arrays(*(p[f"{name}_{c}"] for c in components)), axis=-1)


def _resistance(viscous: Array, quadratic: Array, response: Array, box: Array, last: Array, change: Array) -> Array:
    """Return the drag force or the drag torque in the world frame.

    Args:
        viscous, quadratic: coefficients of the velocity and of the squared velocity along the axes of the box.
        response: velocity change in one velocity update (kick), per unit of force or torque.
        box: rotation matrices, box to world.
        last, change: velocity at the last half step, and velocity change from the last half step to t (world frame).
    """
    to_box = box.swapaxes(-1, -2)
    v, box_change = rotations.matvec(to_box, last), rotations.matvec(to_box, change)
    v = v + box_change / (1.0 + _excess(viscous + quadratic * np.abs(v), response))
    factor = viscous + quadratic * np.abs(v)
    return rotations.matvec(box, -factor / (1.0 + _excess(factor, response)) * v)


def _excess(factor: Array, response: Array) -> Array:
    """Return max(0, r - SHARE_OF_STOP). The drag would remove the fraction r of the speed in one substep."""
    return np.maximum(factor * response - SHARE_OF_STOP, 0.0)


def _velocities(work: StepBuffers, bodies: Array, inverse: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return (value at the last half step, change until t) of the velocities and of the angular velocities."""
    state, last = work.state.arrays, work.twist_before[:, bodies].astype(np.float64)
    older = state["velocity_before"][:, bodies].astype(np.float64)
    before = np.concatenate([older[..., :3], rotations.matvec(inverse, older[..., 3:])], axis=-1)
    kick = state["kick_before"]
    has_history = (kick > 0.0) & (work.scheme != "semi_implicit")
    ratio = np.where(
        has_history, 0.5 * np.asarray(work.h_prev[:, 0], np.float64) / np.where(has_history, kick, 1.0), 0.0
    )
    change = ratio[:, None, None] * (last - before)
    return (last[..., :3], change[..., :3]), (last[..., 3:], change[..., 3:])


@builder_method
def add_drag(
    self: ModelBuilder,
    body: int,
    density: float = 0.0,
    viscosity: float = 0.0,
    size: Vector | None = None,
    wind: Vector = (0.0, 0.0, 0.0),
    label: str | None = None,
) -> int:
    """Add the drag of a fluid, such as air or water, on a body.

    The model excludes buoyancy and lift. For different values in each world, write signals such as
    ``drag.<label>.density`` and ``drag.<label>.wind_x``.

    Args:
        body: body index.
        density: density of the fluid (kg/m3): 1.2 for air, 1000 for water.
        viscosity: dynamic viscosity of the fluid (Pa s): 1.8e-5 for air, 1e-3 for water.
        size: edge lengths of the box along the axes of the body frame (m). Default: a box along the principal axes with
            the mass and the inertia of the body, as in MuJoCo.
        wind: velocity of the fluid in the world frame (m/s).
        label: unique name.

    Returns:
        The index of the actuator.

    Raises:
        ModelError: the body is unknown, or a density, viscosity or size is negative.
    """
    element = self.element("actuator", label, "drag")
    index = self.check_body(element, "body", body)
    if index < 0:
        raise validate.fail(element, "body = -1 is the world, which does not move", "give a body")
    edges = None if size is None else validate.numbers(element, "size", size, 3)
    if edges is not None and np.any(edges < 0.0):
        raise validate.fail(element, f"size = {edges.tolist()} must not be negative", "give three lengths")
    params: dict[str, Any] = {"body": index}
    for k, c in enumerate(_XYZ):
        params[f"size_{c}"] = math.nan if edges is None else float(edges[k])  # NaN: computed in ``placed``
    params |= dict(zip((f"wind_{c}" for c in _XYZ), validate.numbers(element, "wind", wind, 3).tolist(), strict=True))
    for name, value in (("density", density), ("viscosity", viscosity)):
        params[name] = validate.not_negative(element, name, value)
    return self.add_actuator("drag", label, params)
