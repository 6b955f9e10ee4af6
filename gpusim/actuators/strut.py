"""Struts: spring-dampers with soft stops, separate damping for compression and rebound, and force tables.

The force F along the coordinate x is a sum of *pieces*: the spring, the stops and the linear segments of a table. A
piece is c0 + c1 y + c3 y^3 with y = x - at. Each piece has its own ``at`` and its own interval of x. The force of a
piece never increases with x. The force in a velocity update (kick) is the mean of F between the midpoints of the last
and the next step:

    f = 1/(b - a) int_a^b F dx,   a = x_n - h_prev u-/2,   b = x_n + h u+/2

This mean is a discrete gradient (Gonzalez 1996): the work f (b - a) equals the decrease of the potential energy.
Springs therefore conserve energy at any stiffness, even if the slope of the force changes suddenly. The damper force
depends on the velocity at t_n. In each solver pass, a linear law replaces the nonlinear force law (refitted_law.py).
With ``scheme="semi_implicit"``, spring and damper use the length and the velocity at the end of the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusim import validate
from gpusim.actuators.refitted_law import RefittedLaw
from gpusim.actuators.spring import read_length
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
from gpusim.typing import Array

MAX_POINTS = 16
"""Maximum number of points in a table."""
_OWN = (
    ("stiffness", "N/m", "spring constant"),
    ("rest_length", "m", "length without spring force"),
    ("bound_damping", "N s/m", "viscous damping while the length decreases"),
    ("damping", "N s/m", "viscous damping while the length increases"),
    ("bump_at", "m", "length below which the bump stop pushes"),
    ("bump_stiffness", "N/m", "initial stiffness of the bump stop"),
    ("bump_length", "m", "compression at which the bump stop has twice the force of a linear stop"),
    ("droop_at", "m", "length above which the droop stop pulls"),
    ("droop_stiffness", "N/m", "initial stiffness of the droop stop"),
    ("droop_length", "m", "compression at which the droop stop has twice the force of a linear stop"),
)
_TABLES = (
    ("table_points", "-", "number of points of the table of forces, 0 for none"),
    ("damper_points", "-", "number of points of the damper's table, 0 for none"),
    *(
        (f"{name}_{k}", unit, f"of point {k} of the {table}")
        for table, name, unit in (
            ("table of forces", "table_length", "m"),
            ("table of forces", "table_force", "N"),
            ("damper's table", "damper_velocity", "m/s"),
            ("damper's table", "damper_force", "N"),
        )
        for k in range(MAX_POINTS)
    ),
)
NUMBERS = {f"STRUT_{name.upper()}": at for at, (name, _, _) in enumerate((*_OWN, *_TABLES))}
"""Index of each parameter by its name in the kernels."""


_ROTATIONAL_UNITS = {"m": "rad", "N": "N m", "N/m": "N m/rad", "N s/m": "N m s/rad", "m/s": "rad/s", "-": "-"}


def _parameters(rotational: bool) -> tuple[Parameter, ...]:
    """Return the parameters of struts on joint coordinates (``rotational``) or between two points."""
    return tuple(
        Parameter(
            name,
            _ROTATIONAL_UNITS[unit] if rotational else unit,
            doc.replace("length", "angle") if rotational else doc,
            signal,
        )
        for numbers, signal in ((_OWN, True), (_TABLES, False))
        for name, unit, doc in numbers
    )


Piece = tuple[Array | float, ...]
"""Piece of a force: c0 + c1 y + c3 y^3 with y = x - at, for lower <= x < upper. Arrays are (1 or num_worlds, n)."""


@dataclass(frozen=True)
class BumpStop:
    """Soft stop of a spring. Its force at the compression d is stiffness d (1 + (d/length)^2).

    Attributes:
        at: spring length (m) or joint coordinate (rad or m) at which the stop begins to act.
        stiffness: initial stiffness (N/m or N m/rad).
        length: compression (m or rad) at which the force is twice the force of a linear stop. With infinity, the stop
            is linear.
    """

    at: float
    stiffness: float
    length: float = math.inf


def pieces(group: Group) -> tuple[Array, Array]:
    """Return the force pieces of springs and of dampers, (6, pieces, ...) each. The 6 rows describe a piece."""
    if "springs" not in group.derived:
        p = group.params
        springs: list[Piece] = [(p["rest_length"], -np.inf, np.inf, 0.0, -p["stiffness"], 0.0)]
        for stop, lower, upper in (("bump", -np.inf, p["bump_at"]), ("droop", p["droop_at"], np.inf)):
            stiffness, length = p[f"{stop}_stiffness"], p[f"{stop}_length"]
            springs.append((p[f"{stop}_at"], lower, upper, 0.0, -stiffness, -stiffness / length**2))
        dampers: list[Piece] = [
            (0.0, -np.inf, 0.0, 0.0, -p["bound_damping"], 0.0),
            (0.0, 0.0, np.inf, 0.0, -p["damping"], 0.0),
        ]
        springs += _segments(p, "table", "length", 1.0)
        dampers += _segments(p, "damper", "velocity", -1.0)
        group.derived["springs"], group.derived["dampers"] = _stack(springs), _stack(dampers)
    return group.derived["springs"], group.derived["dampers"]


def _stack(rows: list[Piece]) -> Array:
    shape = np.broadcast_shapes(*(np.shape(number) for row in rows for number in row))
    return np.stack([np.stack([np.broadcast_to(row[k], shape) for row in rows]) for k in range(6)])


def _segments(p: dict[str, Array], table: str, abscissa: str, sign: float) -> list[Piece]:
    count = p[f"{table}_points"]
    found: list[Piece] = []
    for k in range(int(count.max(initial=0.0)) - 1):
        x, next_x = p[f"{table}_{abscissa}_{k}"], p[f"{table}_{abscissa}_{k + 1}"]
        f, next_f = sign * p[f"{table}_force_{k}"], sign * p[f"{table}_force_{k + 1}"]
        used, last = k + 1 < count, k + 2 >= count
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(used, (next_f - f) / (next_x - x), 0.0)
        lower = x if k else np.full_like(x, -np.inf)
        found.append((x, lower, np.where(last, np.inf, next_x), np.where(used, f, 0.0), slope, 0.0))
    return found


def mean(rows: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Return the mean force from a to b, and its derivative with respect to b.

    Args:
        rows: force pieces, from :func:`pieces`.
        a, b: lengths or joint coordinates (num_worlds, n).
    """
    at, lower, upper, c0, c1, c3 = rows
    distance = b - a
    moves = distance != 0.0
    start, end = np.clip(a, lower, upper), np.clip(b, lower, upper)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = (a >= lower) & (a < upper)
        fraction = np.where(moves, (end - start) / distance, within)
        first = np.where(moves, (start - a) / distance, 0.0)
    last = first + fraction
    start, end = np.where(moves | within, start, at), np.where(moves | within, end, at)
    # Simpson's rule is exact for cubic functions.
    weights = ((1.0, start, first), (4.0, 0.5 * (start + end), 0.5 * (first + last)), (1.0, end, last))
    force, slope = np.zeros_like(fraction), np.zeros_like(fraction)
    for weight, x, s in weights:
        y = x - at
        force = force + weight * (c0 + y * (c1 + c3 * y * y))
        slope = slope + weight * s * (c1 + 3.0 * c3 * y * y)
    return np.sum(fraction * force / 6.0, axis=0), np.sum(fraction * slope / 6.0, axis=0)


def effort(group: Group, x: Array, rate: Array) -> Array:
    """Return the force of spring, stops and damper at the coordinate x (m or rad) and its rate."""
    springs, dampers = pieces(group)
    return np.asarray(mean(springs, x, x)[0] + mean(dampers, rate, rate)[0])


def read_force(group: Group, now: StateReader) -> Array:
    """Return the force along the coordinate at time t (N or N m)."""
    return effort(group, now.axis_value(group.axis), now.axis_rate(group.axis))


def _readings(kind: str, unit: str, length: str, force: str) -> tuple[Reading, ...]:
    axis = f"w.{kind}_axis()[i]"
    return (
        Reading("length", unit, length, read_length, f"*out = axis_value(w, {axis});"),
        Reading(
            "force", "N" if unit == "m" else "N m", force, read_force,
            f"*out = strut_effort({kind}_of(w, i), axis_value(w, {axis}), axis_rate(w, {axis}));",
        ),
    )  # fmt: skip


@register
class Strut(LineActuator, RefittedLaw):
    """Spring, damper and stops between two points."""

    name: ClassVar[str] = "strut"
    kernel_file: ClassVar[str] = "strut.cuh"
    prefix: ClassVar[str] = "spring"
    picture: ClassVar[str | None] = "coil"
    parameters: ClassVar[tuple[Parameter, ...]] = _parameters(rotational=False)
    readings: ClassVar[tuple[Reading, ...]] = _readings(
        "strut", "m", "distance of the two points", "force that pushes the points apart"
    )

    def check(self, group: Group) -> None:
        """Raise ModelError if a parameter is negative, a stop's length is not positive, or the stops are swapped."""
        p, element = group.params, group.specs[0].element
        group.check_signs(not_negative=("stiffness", "bound_damping", "damping", "bump_stiffness", "droop_stiffness"))
        group.check_signs(positive=("bump_length", "droop_length"))
        both = (p["bump_stiffness"] > 0.0) & (p["droop_stiffness"] > 0.0)
        if np.any(both & (p["bump_at"] > p["droop_at"])):
            raise validate.fail(element, "bump_at is above droop_at", "write bump_at <= droop_at")

    def potential(self, group: Group, now: StateReader) -> Array | None:
        """Return the stored energy of springs, stops and tables (J)."""
        x, springs = now.axis_value(group.axis), pieces(group)[0]
        starts = [*springs[0, :3], now.broadcast(group.params["rest_length"])]
        parts = [springs[:, 0:1], springs[:, 1:2], springs[:, 2:3], springs[:, 3:]]
        return np.asarray(sum((at - x) * mean(part, at, x)[0] for at, part in zip(starts, parts, strict=True)))

    def kick_law(self, group: Group, work: StepBuffers, rate: Array) -> tuple[Array, Array]:
        """Return the impulse p for the new velocity u+ = ``rate``, and -dp/du+, (num_worlds, n) each."""
        springs, dampers = pieces(group)
        x, kick = work.axis_position[:, group.axis].astype(np.float64), work.kick_time.astype(np.float64)
        if work.scheme == "semi_implicit":
            a = b = x + work.h * rate
            spring_factor, damper_factor, velocity = 2.0 * work.h, 2.0, rate
        else:
            before, before_last = (r[:, group.axis].astype(np.float64) for r in (work.rate, work.rate_old))
            a, b = x - 0.5 * work.h_prev.astype(np.float64) * before, x + 0.5 * work.h * rate
            spring_factor, damper_factor = 0.5 * work.h, 2.0 * NEXT
            velocity = NEXT * rate + (LAST * before + BEFORE_LAST * before_last)
        spring, damper = mean(springs, a, b), mean(dampers, velocity, velocity)
        return kick * (spring[0] + damper[0]), -kick * (spring_factor * spring[1] + damper_factor * damper[1])


@register
class JointStrut(JointActuator, Strut):
    """Spring, damper and stops on a joint coordinate."""

    name: ClassVar[str] = "joint_strut"
    rotational: ClassVar[bool] = True
    picture: ClassVar[str | None] = "torsion_coil"
    parameters: ClassVar[tuple[Parameter, ...]] = _parameters(rotational=True)
    readings: ClassVar[tuple[Reading, ...]] = _readings(
        "joint_strut", "rad", "joint coordinate", "torque along the coordinate"
    )
