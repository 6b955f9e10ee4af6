"""``ModelBuilder.add_spring`` and ``add_torsion_spring``, which choose a spring type and check its parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.actuators.spring import line_params
from gpusim.actuators.strut import MAX_POINTS, BumpStop
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.typing import Array, Vector


@builder_method
def add_spring(
    self: ModelBuilder,
    body_a: int,
    body_b: int,
    point_a: Vector | None = None,
    point_b: Vector | None = None,
    stiffness: float = 0.0,
    damping: Any = 0.0,
    rest_length: float | None = None,
    label: str | None = None,
    *,
    preload: float | None = None,
    table: Any = None,
    bump: BumpStop | None = None,
    droop: BumpStop | None = None,
    at_a: Vector | None = None,
    at_b: Vector | None = None,
) -> int:
    """Add a spring-damper between two points.

    Args:
        body_a, body_b: bodies, -1 for the world.
        point_a, point_b: attachment points in the body frames (m). Default: origins of the body frames.
        stiffness: spring stiffness (N/m).
        damping: damping coefficient (N s/m), or a pair (bound, rebound) for shortening and lengthening. You can also
            give a table with 2 to 16 rows (lengthening velocity in m/s, force against the motion in N). From row to
            row, velocities must increase and forces must not decrease. One row must be (0, 0).
        rest_length: length at zero force (m). Default: 0.
        label: unique name. The signals are ``spring.<label>.length`` and ``spring.<label>.force``.
        preload: force that pushes the points apart in the current poses of the bodies (N), instead of ``rest_length``.
        table: 2 to 16 rows (length in m, force that pushes the points apart in N), instead of ``stiffness``. From row
            to row, lengths must increase and forces must not increase. Interpolation and extrapolation are linear.
        bump: soft stop that pushes when the spring is short.
        droop: soft stop that pulls when the spring is long.
        at_a, at_b: points in the world frame (m) for the current poses of the bodies, instead of point_a and point_b.

    Returns:
        The index of the actuator.
    """
    element = self.element("actuator", label, "spring")
    params: dict[str, Any] = line_params(self, element, body_a, body_b, point_a, point_b, at_a, at_b)
    k = validate.not_negative(element, "stiffness", stiffness)
    rest = 0.0 if rest_length is None else validate.not_negative(element, "rest_length", rest_length)
    if preload is not None:
        rest = _free_length(element, k, rest_length, preload, "rest_length") + _built_length(self, params)
        if rest < 0.0:
            rule = f"preload = {preload:g} N gives the free length {rest:.4g} m, which is below zero"
            raise validate.fail(element, rule, "give a smaller pull or a larger stiffness")
    for name, stop in (("bump", bump), ("droop", droop)):
        if isinstance(stop, BumpStop):
            validate.positive(element, f"{name}.at", stop.at)
    law = _law_params(
        element, k, damping, rest, table, bump, droop, given=rest_length is not None or preload is not None
    )
    return self.add_actuator("strut" if "bump_at" in law else "spring", label, params | law)


@builder_method
def add_torsion_spring(
    self: ModelBuilder,
    joint: int,
    stiffness: float = 0.0,
    damping: Any = 0.0,
    rest_angle: float | None = None,
    axis: int = 0,
    label: str | None = None,
    *,
    preload: float | None = None,
    table: Any = None,
    bump: BumpStop | None = None,
    droop: BumpStop | None = None,
) -> int:
    """Add a spring-damper on a joint coordinate: a torsion spring on a rotation, a coil spring on a slide.

    Args:
        joint: joint index.
        stiffness: spring stiffness (N m/rad, or N/m on a translation).
        damping: damping coefficient (N m s/rad or N s/m), a pair (decreasing, increasing coordinate) or a table, as in
            ``add_spring``.
        rest_angle: coordinate at zero torque (rad or m). Default: 0.
        axis: index of the joint coordinate.
        label: unique name.
        preload: torque or force along the coordinate at coordinate 0 (N m or N), instead of ``rest_angle``.
        table: rows (coordinate, torque along the coordinate) as in ``add_spring``, instead of ``stiffness``.
        bump, droop: soft stops at the lower end (bump) and the upper end (droop) of the coordinate.

    Returns:
        The index of the actuator.
    """
    element = self.element("actuator", label, "torsion_spring")
    params = {"joint": self.check_joint(element, "joint", joint, axis), "axis": axis}
    k = validate.not_negative(element, "stiffness", stiffness)
    rest = 0.0 if rest_angle is None else validate.number(element, "rest_angle", rest_angle)
    if preload is not None:
        rest = _free_length(element, k, rest_angle, preload, "rest_angle")
    law = _law_params(
        element, k, damping, rest, table, bump, droop, given=rest_angle is not None or preload is not None
    )
    lower, upper = (float(self.joints[joint].params[f"limit_{end}"][axis]) for end in ("lower", "upper"))
    for name, stop in (("bump", bump), ("droop", droop)):
        if stop is not None and not lower <= stop.at <= upper:
            rule = f"{name}.at = {stop.at:g} is outside the limits {lower:g} to {upper:g} of the joint"
            raise validate.fail(element, rule, "give a value within the limits, or move the limits")
    return self.add_actuator("joint_strut" if "bump_at" in law else "torsion_spring", label, params | law)


def _built_length(builder: ModelBuilder, params: dict[str, Any]) -> float:
    """Return the distance between the end points in the initial poses (m)."""
    a, b = (
        point if body < 0 else builder.bodies[body].xform.apply(point)
        for body, point in ((params["body_a"], params["point_a"]), (params["body_b"], params["point_b"]))
    )
    return float(np.linalg.norm(np.subtract(b, a)))


def _free_length(element: str, stiffness: float, rest: float | None, preload: Any, name: str) -> float:
    """Return the compression of the spring under the preload, preload / stiffness (m or rad)."""
    force = validate.number(element, "preload", preload)
    if rest is not None:
        raise validate.fail(element, f"preload and {name} exclude each other", "give one of them")
    if stiffness == 0.0:
        raise validate.fail(element, "preload needs a stiffness", "give a stiffness, or a table of forces")
    return force / stiffness


def _law_params(
    element: str, stiffness: float, damping: Any, rest: float, table: Any, bump: Any, droop: Any, given: bool
) -> dict[str, float]:
    """Return the parameters of a linear spring, or of a strut if it has soft stops, tables or two damping values."""
    plain = np.ndim(np.array(damping, dtype=object)) == 0
    if plain and table is bump is droop is None:
        damping = validate.not_negative(element, "damping", damping)
        return {"stiffness": stiffness, "damping": damping, "rest_length": rest}
    bound, rebound, curve = _damping_params(element, damping, plain)
    law = {"stiffness": stiffness, "rest_length": rest, "bound_damping": bound, "damping": rebound}
    for name, stop in (("bump", bump), ("droop", droop)):
        law.update(_stop_params(element, name, stop))
    if bump is not None and droop is not None and bump.at > droop.at:
        rule = f"bump.at = {bump.at:g} is above droop.at = {droop.at:g}"
        raise validate.fail(element, rule, "give bump.at <= droop.at")
    forces = np.zeros((0, 2))
    if table is not None:
        if stiffness > 0.0 or given:
            rule = "a table excludes stiffness, rest length and preload"
            raise validate.fail(element, rule, "remove them, or include them in the table")
        forces = _checked_table(element, "table", table)
        if np.any(np.diff(forces[:, 1]) > 0.0):
            rule = "table: the forces increase with the length"
            raise validate.fail(element, rule, "give forces that do not increase; forces that push apart are positive")
        # The energy is zero at the length with zero force, or at the nearest end of the table.
        law["rest_length"] = float(np.interp(0.0, -forces[:, 1], forces[:, 0]))
    law.update(_table_params("table", "length", forces), **_table_params("damper", "velocity", curve))
    return law


def _damping_params(element: str, damping: Any, plain: bool) -> tuple[float, float, Array]:
    """Return the damping in bound and in rebound (N s/m), and the rows of the damping table."""
    rows = validate.array(element, damping)
    if plain or rows.shape == (2,):
        pair = validate.per_axis(element, "damping", damping, 2)
        bound, rebound = (validate.not_negative(element, "damping", value) for value in pair)
        return bound, rebound, np.zeros((0, 2))
    rows = _checked_table(element, "damping", damping)
    if np.any(np.diff(rows[:, 1]) < 0.0):
        raise validate.fail(
            element, "damping: the forces decrease with the velocity", "give forces that do not decrease"
        )
    if not np.any(np.all(rows == 0.0, axis=1)):
        raise validate.fail(element, "damping: the table does not pass through (0, 0)", "add the row (0, 0)")
    return 0.0, 0.0, rows


def _checked_table(element: str, name: str, value: Any) -> Array:
    rows = validate.array(element, value)
    if rows.ndim != 2 or rows.shape[1] != 2 or not 2 <= rows.shape[0] <= MAX_POINTS:
        rule = f"{name} has the shape {rows.shape}"
        raise validate.fail(element, rule, f"give 2 to {MAX_POINTS} rows of two numbers")
    if not np.all(np.isfinite(rows)):
        raise validate.fail(element, f"{name} has a number that is not finite", "give finite numbers")
    if np.any(np.diff(rows[:, 0]) <= 0.0):
        raise validate.fail(element, f"{name}: the first column is not increasing", "sort the rows by the first column")
    return rows


def _stop_params(element: str, name: str, stop: Any) -> dict[str, float]:
    if stop is None:
        return {f"{name}_at": 0.0, f"{name}_stiffness": 0.0, f"{name}_length": math.inf}
    if not isinstance(stop, BumpStop):
        raise validate.fail(element, f"{name} = {stop!r} is not a BumpStop", "give gpusim.BumpStop(at, stiffness)")
    return {
        f"{name}_at": validate.number(element, f"{name}.at", stop.at),
        f"{name}_stiffness": validate.positive(element, f"{name}.stiffness", stop.stiffness),
        f"{name}_length": validate.positive(element, f"{name}.length", stop.length, infinite=True),
    }


def _table_params(table: str, abscissa: str, rows: Array) -> dict[str, float]:
    points = np.zeros((MAX_POINTS, 2))
    points[: len(rows)] = rows
    columns = {f"{table}_points": float(len(rows))}
    for k, (x, force) in enumerate(points.tolist()):
        columns |= {f"{table}_{abscissa}_{k}": x, f"{table}_force_{k}": force}
    return columns
