"""Motion blocks: point-to-point motion, motion through via points, and sine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, check_sizes
from gpusim.control.blocks.sources import Source, check_rising, time_now
from gpusim.control.parameters import Positive
from gpusim.control.trace import Num


def _rates(kind: Kind) -> dict[str, Kind]:
    first = units.product(kind.unit, units.power(units.SECOND, -1))
    second = units.product(first, units.power(units.SECOND, -1))
    return {"out": kind, "velocity": Kind(kind.shape, first), "acceleration": Kind(kind.shape, second)}


@block("point_to_point")
class PointToPoint(Block):
    """Move from the current position to each new value of ``target`` in ``duration`` seconds, then stop.

    The move is a cubic (``order`` 3) or a quintic polynomial (``order`` 5). The quintic polynomial starts with the
    current acceleration and ends with zero acceleration. If the target changes during a move, a new move starts at once
    with the current velocity. A new value of ``duration`` has no effect on the current move.
    """

    duration: Positive = 1.0
    order: int = 5
    initial: float = 0.0
    inputs = ("target",)
    outputs = ("out", "velocity", "acceleration", "done")

    def check(self, element: str) -> None:
        """Check the order."""
        if self.order not in (3, 5):
            raise validate.fail(element, f"order = {self.order!r} is neither 3 nor 5", "give 3 (cubic) or 5 (quintic)")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return shapes and units of position, velocity, acceleration and ``done``."""
        return {**_rates(inputs["target"]), "done": Kind((), units.NONE)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Continue the move, or start a new one if the target has changed."""
        size, t = c.kinds["out"].size, c.trace
        for name, value in (("from", self.initial), ("to", self.initial), ("velocity", 0.0), ("acceleration", 0.0)):
            c.add_states(name, [value] * size)
        c.add_states("elapsed", [1e30, self.duration])
        new_duration = c.tune("duration", self.duration, minimum=0.0, above=True)
        elapsed, duration = c.read_state("elapsed")
        end = c.read_state("to")
        begin = [c.read_state("from"), c.read_state("velocity"), c.read_state("acceleration")]
        current = self._at(c, elapsed, duration, begin, end)
        is_same = inputs["target"][0].equals(end[0])
        for u, x in zip(inputs["target"][1:], end[1:], strict=True):
            is_same = is_same & u.equals(x)
        begin = [
            [c.select(is_same, a, x) for a, x in zip(*pair, strict=True)] for pair in zip(begin, current, strict=True)
        ]
        end = list(inputs["target"])
        elapsed, duration = c.select(is_same, elapsed, 0.0), c.select(is_same, duration, new_duration)
        out, velocity, acceleration = self._at(c, elapsed, duration, begin, end)
        for name, values in zip(("from", "velocity", "acceleration", "to"), (*begin, end), strict=True):
            c.write_state(name, values)
        c.write_state("elapsed", [t.min(elapsed + c.period, 1e30), duration])
        done = (elapsed >= duration - 1e-6 * c.period).number()
        return {"out": out, "velocity": velocity, "acceleration": acceleration, "done": [done]}

    def _at(self, c: Context, elapsed: Num, duration: Num, begin: list[Wire], end: Wire) -> tuple[Wire, Wire, Wire]:
        """Return position, velocity and acceleration after ``elapsed`` seconds of the move."""
        s = c.trace.limit(elapsed / duration, 0.0, 1.0)
        remaining = 1.0 - s
        if self.order == 3:
            zero = c.trace.constant(0.0)
            position_basis = (s * s) * (3.0 - 2.0 * s), (6.0 * s) * remaining, 6.0 - 12.0 * s
            velocity_basis = s * (remaining * remaining), remaining * (1.0 - 3.0 * s), 6.0 * s - 4.0
            acceleration_basis = zero, zero, zero
        else:
            square, cube = remaining * remaining, remaining * remaining * remaining
            position_basis = (
                (s * s * s) * (10.0 + s * (6.0 * s - 15.0)),
                (30.0 * (s * s)) * square,
                (60.0 * s) * remaining * (1.0 - 2.0 * s),
            )
            velocity_basis = (
                (s * cube) * (1.0 + 3.0 * s),
                square * ((1.0 + 2.0 * s) - 15.0 * (s * s)),
                (12.0 * s) * remaining * (5.0 * s - 3.0),
            )
            acceleration_basis = (
                (0.5 * (s * s)) * cube,
                (s * square) * (1.0 - 2.5 * s),
                remaining * ((1.0 - 8.0 * s) + 10.0 * (s * s)),
            )
        is_moving = c.select(elapsed >= duration, 0.0, c.trace.constant(1.0))
        out: tuple[Wire, Wire, Wire] = ([], [], [])
        for x, v, a, target in zip(*begin, end, strict=True):
            scales = target - x, v * duration, (a * duration) * duration
            position, velocity, acceleration = (
                sum((f * p for f, p in zip(scales[1:], ps[1:], strict=True)), scales[0] * ps[0])
                for ps in zip(position_basis, velocity_basis, acceleration_basis, strict=True)
            )
            out[0].append(x + position)
            out[1].append(velocity / duration)
            out[2].append((acceleration * is_moving) / (duration * duration))
        return out


@block("trajectory")
class Trajectory(Source):
    """Cubic spline through via points at the given times, with zero velocity at both ends.

    ``points`` is (n,) for scalars or (n, k) for vectors, with one via point for each of the n times. With ``repeat``,
    the motion starts again after the last time.
    """

    times: Sequence[float]
    points: Sequence[float] | Sequence[Sequence[float]]
    repeat: bool = False
    unit: str | None = None
    outputs = ("out", "velocity", "acceleration")

    def check(self, element: str) -> None:
        """Check that the times start at 0 and increase, and that each time has one via point."""
        check_rising(element, "times", self.times, 2)
        if float(self.times[0]) != 0.0:
            raise validate.fail(element, f"times begin at {self.times[0]:g} s, not at 0", "begin with the point at 0")
        points = validate.array(element, self.points)
        if points.ndim not in (1, 2) or len(points) != len(self.times) or not np.all(np.isfinite(points)):
            rule = f"points have shape {points.shape}, and there are {len(self.times)} times"
            raise validate.fail(element, rule, "give one finite point for each time")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return shapes and units of position, velocity and acceleration."""
        points = np.asarray(self.points, float)
        return _rates(Kind(points.shape[1:], units.parse(self.unit)))

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Evaluate the polynomial of the interval by Horner's rule."""
        t, duration = c.trace, float(self.times[-1])
        points = np.asarray(self.points, float).reshape(len(self.times), -1)
        now = time_now(c)
        if self.repeat:
            now = now - duration * t.floor((now + 1e-6 * c.period) / duration)
        inside = ((now <= duration) & (now >= 0.0)).number()
        now = t.limit(now, 0.0, duration)
        times = t.table(self.times)
        k = t.interval(times, now)
        s = now - t.entry(times, k)
        from scipy.interpolate import CubicSpline  # slow to import

        spline = CubicSpline(np.asarray(self.times, float), points, bc_type="clamped")
        out, velocity, acceleration = [], [], []
        for j in range(points.shape[1]):
            c3, c2, c1, c0 = (t.entry(t.table(spline.c[n, :, j].tolist()), k) for n in range(4))
            out.append(c0 + s * (c1 + s * (c2 + s * c3)))
            velocity.append(inside * (c1 + s * (2.0 * c2 + s * (3.0 * c3))))
            acceleration.append(inside * (2.0 * c2 + s * (6.0 * c3)))
        return {"out": out, "velocity": velocity, "acceleration": acceleration}


@block("sine")
class Sine(Source):
    """offset + amplitude sin(2 pi frequency t + phase)."""

    amplitude: float = 1.0
    frequency: float = 1.0
    phase: float = 0.0
    offset: float = 0.0
    unit: str | None = None

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the sine. The block first subtracts whole periods, so the sine stays accurate for days."""
        cycles = c.tune("frequency", self.frequency) * time_now(c)
        angle = (2.0 * math.pi) * (cycles - c.trace.floor(cycles)) + c.tune("phase", self.phase)
        oscillation = c.tune("amplitude", self.amplitude) * c.trace.function("sin", angle)
        return {"out": [c.tune("offset", self.offset) + oscillation]}


@block("project")
class Project(Block):
    """Split a vector into ``along``, its component along a direction, and ``across`` (3,), the perpendicular vector."""

    inputs = ("in", "direction")
    outputs = ("along", "across")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check the sizes of the inputs. Return the shapes of both outputs, with the unit of the vector."""
        check_sizes(inputs, {"in": 3, "direction": 3})
        return {"along": Kind((), inputs["in"].unit), "across": Kind((3,), inputs["in"].unit)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Project the vector on the direction. ``along`` is zero if the direction has length 0."""
        d, v, t = inputs["direction"], inputs["in"], c.trace
        length = t.sqrt((d[0] * d[0] + d[1] * d[1]) + d[2] * d[2])
        safe = c.select(length > 0.0, length, 1.0)
        unit = [x / safe for x in d]
        along = (v[0] * unit[0] + v[1] * unit[1]) + v[2] * unit[2]
        return {"along": [along], "across": [x - along * e for x, e in zip(v, unit, strict=True)]}
