"""Command schedules: tables of times and values that drive the commands of a simulation."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gpusim import validate
from gpusim.errors import ModelError

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

__all__ = ["Path", "Schedule", "drive", "follow_paths"]


def _columns(element: str, points: Any) -> tuple[list[float], list[float]]:
    """Return the times and values of (time, value) pairs.

    Raises:
        ModelError: ``points`` is not a list of pairs, or a number is not finite.
    """
    try:
        pairs = [(float(t), float(v)) for t, v in points]
    except (TypeError, ValueError):
        rule = f"{points!r:.80} is not a list of (time, value) pairs"
        raise validate.fail(element, rule, "give pairs of numbers, such as [(0.0, 0.0), (1.0, 0.5)]") from None
    if not all(math.isfinite(x) for pair in pairs for x in pair):
        raise ModelError(f"{element}: every time and value must be finite; give plain numbers")
    return [t for t, _ in pairs], [v for _, v in pairs]


def _by_label(function: str, given: Any, kind: type) -> None:
    """Raise a ModelError if ``given`` is not a dict from labels to objects of the type ``kind``."""
    if not isinstance(given, Mapping):
        raise validate.fail(function, f"{given!r:.80} is not a dict", f"give {{label: {kind.__name__}(points)}}")
    for label, value in given.items():
        if not isinstance(value, kind):
            rule = f"{value!r:.80} of {label!r} is not of type {kind.__name__}"
            raise validate.fail(function, rule, f"give {kind.__name__}(points)")


class Schedule:
    """A command as a function of time: a table of (time, value) points.

    If two points have the same time, the value jumps at this time. Before the first point, the schedule has the first
    value. After the last point, it has the last value. A table with a ``period`` repeats forever.

    Args:
        points: pairs (time in s, value). The times must not decrease.
        kind: "linear" interpolates between the points. "constant" holds each value until the next point.
        period: length of one repetition (s), or None for a table that does not repeat.

    Raises:
        ModelError: there are no points, a time decreases, a number is not finite, or the period is too short.
    """

    def __init__(
        self,
        points: Sequence[tuple[float, float]],
        *,
        kind: Literal["linear", "constant"] = "linear",
        period: float | None = None,
    ) -> None:
        self._times, self._values = _columns("schedule", points)
        self.period = period
        self._validate()
        validate.choice("schedule", "kind", kind, ("linear", "constant"))
        if kind == "constant":
            self._hold_values()
        # Integral of the table from its first time to each point. The mean over a span then needs two lookups.
        self._areas = [0.0]
        for i in range(1, len(self._times)):
            width = self._times[i] - self._times[i - 1]
            self._areas.append(self._areas[-1] + 0.5 * width * (self._values[i] + self._values[i - 1]))

    def _validate(self) -> None:
        if not self._times:
            raise ModelError("schedule: it has no points; give at least one (time, value) pair")
        for before, after in zip(self._times, self._times[1:], strict=False):
            if after < before:
                raise ModelError(f"schedule: time {after} s follows {before} s; sort the points by time")
        if self.period is not None:
            validate.number("schedule", "period", self.period, infinite=True)
        if self.period is not None and not self.period > 0.0:
            raise ModelError(f"schedule: period must be positive, got {self.period} s")
        if self.period is not None and not self._times[-1] <= self.period < math.inf:
            raise ModelError(
                f"schedule: period {self.period} s is shorter than the table; give {self._times[-1]} s or more"
            )

    def _hold_values(self) -> None:
        times, values = self._times[:1], self._values[:1]
        for t, v in zip(self._times[1:], self._values[1:], strict=True):
            times += [t, t]
            values += [values[-1], v]
        self._times, self._values = times, values

    def value(self, t: float) -> float:
        """Return the value at the time ``t`` (s). At a jump, return the value after the jump."""
        if self.period is not None:
            t = t % self.period
        i = bisect.bisect_right(self._times, t)
        if i == 0:
            return self._values[0]
        if i == len(self._times):
            return self._values[-1]
        t0, t1 = self._times[i - 1], self._times[i]
        return self._values[i - 1] + (self._values[i] - self._values[i - 1]) * (t - t0) / (t1 - t0)

    __call__ = value

    def mean(self, start: float, stop: float) -> float:
        """Return the mean value between two times (s)."""
        if stop <= start:
            return self.value(start)
        if self._holds(start, stop):  # a difference of integrals would add round-off
            return self.value(start)
        return (self._integral(stop) - self._integral(start)) / (stop - start)

    def _holds(self, start: float, stop: float) -> bool:
        """Return True if the value is constant between ``start`` and ``stop`` (s)."""
        if self.period is not None:
            cycles = math.floor(start / self.period)
            start, stop = start % self.period, stop - cycles * self.period
            if stop > self.period:
                return False
        i = bisect.bisect_right(self._times, start)
        if i < len(self._times) and stop > self._times[i]:
            return False
        return i in (0, len(self._times)) or self._values[i - 1] == self._values[i]

    def _integral(self, t: float) -> float:
        if self.period is None:
            return self._table_integral(t)
        cycles = math.floor(t / self.period)
        return cycles * self._table_integral(self.period) + self._table_integral(t - cycles * self.period)

    def _table_integral(self, t: float) -> float:
        """Return the integral of the table, without repetitions, up to the time ``t`` (s)."""
        first = 0.0 if self.period is not None else self._times[0]
        lead = self._values[0] * (self._times[0] - first)
        i = bisect.bisect_right(self._times, t)
        if i == 0:
            return self._values[0] * (t - first)
        t0, v0 = self._times[i - 1], self._values[i - 1]
        if i == len(self._times):
            return lead + self._areas[-1] + v0 * (t - t0)
        slope = (self._values[i] - v0) / (self._times[i] - t0)
        return lead + self._areas[i - 1] + (t - t0) * (v0 + 0.5 * slope * (t - t0))

    def scaled(self, factor: float) -> Schedule:
        """Return a copy of the schedule with all values multiplied by ``factor``."""
        points = [(t, factor * v) for t, v in zip(self._times, self._values, strict=True)]
        return Schedule(points, period=self.period)


def drive(tables: Mapping[str, Schedule]) -> Callable[[Simulation, float], None]:
    """Return a function for ``Scene.schedule`` that writes ``sim.control[label]`` for every label in ``tables``.

    In each step, the command is the mean value of the schedule during the step.

    Raises:
        ModelError: ``tables`` is not a mapping, or a value is not a Schedule.
    """
    _by_label("drive", tables, Schedule)

    def write(sim: Simulation, t: float) -> None:
        step = sim.step_size
        for label, table in tables.items():
            sim.control[label] = table.mean(t, t + step)

    return write


class Path:
    """A cubic spline x(t) through points at given times, for ``add_motion``.

    At both ends, the velocity is zero, and the acceleration may jump. Before the first point and after the last point,
    x is constant.

    Args:
        points: at least two pairs (time in s, value). The times must increase.

    Raises:
        ModelError: there are fewer than two points, the times do not increase, or a number is not finite.
    """

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        times, values = _columns("path", points)
        if len(times) < 2:
            raise ModelError(f"path: it has {len(times)} of the two points that a spline needs; give two or more")
        if any(after <= before for before, after in zip(times, times[1:], strict=False)):
            raise ModelError("path: its times do not rise; sort the points by time and give each time once")
        from scipy.interpolate import CubicSpline  # heavy to import

        self._ends = times[0], times[-1]
        spline = CubicSpline(times, values, bc_type="clamped")
        self._curves = spline, spline.derivative(1), spline.derivative(2)

    def at(self, t: float) -> tuple[float, float, float]:
        """Return position, velocity and acceleration at the time ``t`` (s)."""
        inside = self._ends[0] <= t <= self._ends[1]
        x, v, a = (float(curve(min(max(t, self._ends[0]), self._ends[1]))) for curve in self._curves)
        return (x, v, a) if inside else (x, 0.0, 0.0)


def follow_paths(paths: Mapping[str, Path]) -> Callable[[Simulation, float], None]:
    """Return a function for ``Scene.schedule`` that writes the commands of each motion (``add_motion``).

    Raises:
        ModelError: ``paths`` is not a mapping, or a value is not a Path.
    """
    _by_label("follow_paths", paths, Path)

    def write(sim: Simulation, t: float) -> None:
        for label, path in paths.items():
            sim.control[label], sim.control[f"{label}.velocity"], sim.control[f"{label}.acceleration"] = path.at(t)

    return write
