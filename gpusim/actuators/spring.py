"""Linear and torsion spring-dampers: soft constraint rows, second-order accurate and stable for any stiffness.

G_n is the elongation at t_n. u- and u+ are the elongation rates before and after the kick. The kick is the velocity
update from t_n - h_prev/2 to t_n + h/2. k is the stiffness and c is the damping. The force at t_n is

    f = -k (G_(n-1) + 2 G_n + G_(n+1))/4 - c u_n,   G_(n+1) = G_n + h u+,   G_(n-1) = G_n - h_prev u-

The spring term follows the average-acceleration rule, which conserves energy and is stable for any k. u_n is the
elongation rate at t_n, a weighted mean of three rates. The step size can change from step to step. With
``scheme="semi_implicit"``, spring and damper are implicit: f = -k (G + h u+) - c u+.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import end_point
from gpusim.builder.builder import ModelBuilder
from gpusim.description.actuator_kinds import (
    BEFORE_LAST,
    LAST,
    NEXT,
    Group,
    JointActuator,
    LineActuator,
    Parameter,
    Reading,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.typing import Array, Vector


def spring_law(
    work: StepBuffers, axis: Array, stiffness: Array, damping: Array, elongation: Array
) -> tuple[Array, Array]:
    """Return the impulse law ``p = P - D u+`` of spring-dampers over one velocity update (kick).

    Args:
        work: work arrays of the step.
        axis: indices of the axis rows of n springs (n,).
        stiffness, damping: stiffness k and damping c (1 or num_worlds, n).
        elongation: elongation G at t_n (num_worlds, n).

    Returns:
        P and D, both (num_worlds, n).
    """
    kick = work.kick_time
    if work.scheme == "semi_implicit":
        return -kick * stiffness * elongation, kick * (damping + kick * stiffness)
    before, before_last = work.rate[:, axis], work.rate_old[:, axis]
    spring = stiffness * (elongation - 0.25 * work.h_prev * before)
    damper = damping * (LAST * before + BEFORE_LAST * before_last)
    return -kick * (spring + damper), kick * (0.25 * work.h * stiffness + NEXT * damping)


def read_length(group: Group, now: StateReader) -> Array:
    """Return the lengths of springs (m), or the joint coordinates of torsion springs (m or rad)."""
    return now.axis_value(group.axis)


def read_force(group: Group, now: StateReader) -> Array:
    """Return the force or torque -k G - c u at time t (N or N m)."""
    p = group.params
    elongation = now.axis_value(group.axis) - p["rest_length"]
    return np.asarray(-p["stiffness"] * elongation - p["damping"] * now.axis_rate(group.axis))


def _readings(kind: str, unit: str, length: str, force: str) -> tuple[Reading, ...]:
    """Return the readings of a spring type: length or angle, and force or torque."""
    law = f"w.{kind}_stiffness(i), w.{kind}_damping(i), w.{kind}_rest_length(i)"
    return (
        Reading("length", unit, length, read_length, f"*out = axis_value(w, w.{kind}_axis()[i]);"),
        Reading(
            "force", "N" if unit == "m" else "N m", force, read_force,
            f"*out = spring_effort(w, w.{kind}_axis()[i], {law});",
        ),
    )  # fmt: skip


@register
class Spring(LineActuator):
    """Spring-damper between two points."""

    name: ClassVar[str] = "spring"
    kernel_file: ClassVar[str] = "spring.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate",)
    prefix: ClassVar[str] = "spring"
    picture: ClassVar[str | None] = "coil"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", "N/m", "spring constant"),
        Parameter("damping", "N s/m", "viscous damping"),
        Parameter("rest_length", "m", "length without force"),
    )
    readings: ClassVar[tuple[Reading, ...]] = _readings(
        "spring", "m", "distance of the two points", "force that pushes the points apart"
    )

    def check(self, group: Group) -> None:
        """Raise ModelError if a stiffness or damping is negative."""
        group.check_signs(not_negative=("stiffness", "damping"))

    def potential(self, group: Group, now: StateReader) -> Array | None:
        """Return the stored energy k G^2/2 (J)."""
        elongation = now.axis_value(group.axis) - group.params["rest_length"]
        return np.asarray(0.5 * group.params["stiffness"] * elongation * elongation)

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the linear impulse-velocity law."""
        if velocity is not None:
            return
        p = group.params
        elongation = work.axis_position[:, group.axis] - p["rest_length"]
        work.add_law(group, *spring_law(work, group.axis, p["stiffness"], p["damping"], elongation))


@register
class TorsionSpring(JointActuator, Spring):
    """Spring-damper on a joint coordinate."""

    name: ClassVar[str] = "torsion_spring"
    rotational: ClassVar[bool] = True
    picture: ClassVar[str | None] = "torsion_coil"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", "N m/rad", "spring constant"),
        Parameter("damping", "N m s/rad", "viscous damping"),
        Parameter("rest_length", "rad", "angle without torque"),
    )
    readings: ClassVar[tuple[Reading, ...]] = _readings(
        "torsion_spring", "rad", "joint coordinate", "torque along the coordinate"
    )


def line_params(
    builder: ModelBuilder,
    element: str,
    body_a: int,
    body_b: int,
    point_a: Vector | None,
    point_b: Vector | None,
    at_a: Vector | None = None,
    at_b: Vector | None = None,
) -> dict[str, Any]:
    """Check and return the end points of an actuator between two points.

    ``at_a`` and ``at_b`` are in the world frame.
    """
    a, b = builder.check_body(element, "body_a", body_a), builder.check_body(element, "body_b", body_b)
    if a == b:
        raise validate.fail(element, "both ends are on the same body", "attach it to two different bodies")
    return {
        "body_a": a,
        "body_b": b,
        "point_a": end_point(builder, element, "point_a at_a", a, point_a, at_a),
        "point_b": end_point(builder, element, "point_b at_b", b, point_b, at_b),
    }
