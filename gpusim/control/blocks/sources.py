"""Blocks without inputs: constants, time, schedules, operator inputs, noise and signals of the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, check_numbers
from gpusim.control.parameters import NotNegative, Positive, check_bounds
from gpusim.control.trace import Num
from gpusim.description.operator_names import check_key, check_part
from gpusim.description.program_clock import BASE, COUNT, ORIGIN
from gpusim.errors import ModelError


class Source(Block):
    """Base class of blocks without inputs."""

    inputs = ()


@block("constant")
class Constant(Source):
    """A number, or a vector of numbers, in ``unit``."""

    value: float | Sequence[float] = 1.0
    unit: str | None = None

    def check(self, element: str) -> None:
        """Check that the values are finite."""
        count = int(np.size(np.array(self.value, dtype=object)))
        validate.per_axis(element, "value", self.value, count)
        if not count:
            raise validate.fail(element, "value has no numbers", "give at least one")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape of the value, with the unit ``unit``."""
        return {"out": Kind((len(self.value),) if np.ndim(self.value) else (), units.parse(self.unit))}  # type: ignore[arg-type]

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the values. Each value is a parameter that users can change during the simulation."""
        if not np.ndim(self.value):
            return {"out": [c.tune("value", float(self.value))]}  # type: ignore[arg-type]
        return {"out": [c.tune(f"value_{k}", float(x)) for k, x in enumerate(self.value)]}  # type: ignore[arg-type]


def time_now(c: Context) -> Num:
    """Return the time (s) of this sample (description/program_clock.py)."""
    text = f"{{s}}{ORIGIN}] + ({{s}}{COUNT}] - {{s}}{BASE}]) * {{period}}"
    cpp, numpy = (text.format(s=s, period="{}") for s in ("s[", "s[:, "))
    return c.trace.num(cpp, numpy, c.period)


@block("timer")
class Timer(Source):
    """Time (s) since the start or the last reset."""

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a number in seconds."""
        return {"out": Kind((), units.SECOND)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the time of this sample."""
        return {"out": [time_now(c)]}


@block("step")
class Step(Source):
    """Step signal from ``before`` to ``after`` at the simulated time ``time`` (s)."""

    time: NotNegative = 0.0
    before: float = 0.0
    after: float = 1.0
    unit: str | None = None

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Compare the time of the sample with ``time``, with a tolerance of 1e-6 sample periods."""
        has_stepped = time_now(c) >= c.tune("time", self.time) - 1e-6 * c.period
        return {"out": [c.select(has_stepped, c.tune("after", self.after), c.tune("before", self.before))]}


@block("ramp")
class Ramp(Source):
    """Ramp signal. The value is ``start`` until the simulated time is ``time`` (s).

    Then the value changes by ``slope`` per second until it reaches ``end``.
    """

    slope: float = 1.0
    time: NotNegative = 0.0
    start: float = 0.0
    end: float | None = None
    unit: str | None = None

    def check(self, element: str) -> None:
        """Check that the slope leads towards ``end``."""
        if self.end is not None and self.end != self.start and not (self.end - self.start) * self.slope > 0.0:
            rule = f"slope = {self.slope:g} does not lead from start = {self.start:g} to end = {self.end:g}"
            raise validate.fail(element, rule, "give a slope with the sign of end - start")

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the value of the ramp at the time of the sample."""
        elapsed = c.trace.max(time_now(c) - c.tune("time", self.time), 0.0)
        slope = c.tune("slope", self.slope)
        value = c.tune("start", self.start) + slope * elapsed
        if self.end is not None:
            end = c.tune("end", self.end)
            value = c.select(slope > 0.0, c.trace.min(value, end), c.trace.max(value, end))
        return {"out": [value]}


@block("sequence")
class Sequence_(Source):  # noqa: N801 (Sequence is a type)
    """Values at given times. With ``repeat``, the sequence starts again after the last time.

    Each value is constant until the next time. With ``interpolate``, the values are linear between the times.
    """

    times: Sequence[float]
    values: Sequence[float]
    interpolate: bool = False
    repeat: bool = False
    unit: str | None = None

    def check(self, element: str) -> None:
        """Check that the times start at zero and increase, and that each time has one value."""
        check_rising(element, "times", self.times, 2 if self.interpolate or self.repeat else 1)
        validate.numbers(element, "values", self.values, len(self.times))
        if self.times[0] != 0.0:
            raise validate.fail(element, f"times begin at {self.times[0]:g} s, not at 0", "begin with the value at 0")

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the value of the sequence at the time of the sample."""
        t = time_now(c)
        if self.repeat:
            duration = float(self.times[-1])
            t = t - duration * c.trace.floor((t + 1e-6 * c.period) / duration)
        if self.interpolate:
            return {"out": [interpolated(c, self.times, self.values, c.trace.limit(t, 0.0, float(self.times[-1])))]}
        if len(self.times) == 1:
            return {"out": [c.trace.constant(self.values[0])]}
        out: Num = c.trace.constant(self.values[0])
        for begin, value in zip(self.times[1:], self.values[1:], strict=True):
            out = c.select(t >= float(begin) - 1e-6 * c.period, float(value), out)
        return {"out": [out]}


def check_rising(element: str, name: str, given: Any, minimum: int) -> None:
    """Check that a list contains at least ``minimum`` numbers in increasing order."""
    count = len(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else 0
    if count < minimum:
        raise validate.fail(element, f"{name} = {given!r} has fewer than {minimum} numbers", f"give at least {minimum}")
    numbers = validate.numbers(element, name, given, count)
    if not np.all(np.diff(numbers) > 0.0):
        raise validate.fail(element, f"{name} is not strictly increasing", "sort them and remove repeated values")


def interpolated(c: Context, x: Sequence[float], y: Sequence[float], at: Num) -> Num:
    """Interpolate linearly between points, and extrapolate linearly outside the points."""
    xs, ys = c.trace.table(x), c.trace.table(y)
    k = c.trace.interval(xs, at)
    x0, x1 = c.trace.entry(xs, k), c.trace.entry(xs, k + 1.0)
    y0, y1 = c.trace.entry(ys, k), c.trace.entry(ys, k + 1.0)
    return y0 + (at - x0) * ((y1 - y0) / (x1 - x0))


@block("input")
class Input(Source):
    """Operator input: a command that a person or a program sets. The viewer shows a slider.

    ``label`` is the name of the command, by default the name of the block. ``keys`` are two keyboard keys (decrease,
    increase), or one key for a ``switch`` (0 or 1). ``axis`` names a gamepad axis, or a gamepad button for a switch.
    The default of ``lower`` is -1, or 0 for a switch. The block clips values to the range.

    The deflection is (value - ``default``) / (bound - ``default``). The bound is ``upper`` above ``default``, else
    ``lower``. Deflections below ``dead_zone`` count as 0. The block raises the deflection to the power ``curve``, so
    values above 1 reduce small deflections.
    """

    default: float = 0.0
    lower: float | None = None
    upper: float = 1.0
    unit: str | None = None
    label: str = ""
    dead_zone: float = 0.0
    curve: Positive = 1.0
    keys: Sequence[str] = field(default_factory=tuple)
    axis: str = ""
    switch: bool = False

    @property
    def range_lower(self) -> float:
        """Lower bound of the command: ``lower``, or by default 0 for a switch and -1 for other inputs."""
        return float(self.lower) if self.lower is not None else 0.0 if self.switch else -1.0

    def check(self, element: str) -> None:
        """Check the range, the default, the keys and the axis."""
        check_bounds(element, self.range_lower, self.upper)
        if not self.range_lower <= self.default <= self.upper:
            rule = f"default = {self.default:g} is not within {self.range_lower:g} to {self.upper:g}"
            raise validate.fail(element, rule, "give a value in this range")
        if not 0.0 <= self.dead_zone < 1.0:
            raise validate.fail(
                element, f"dead_zone = {self.dead_zone:g} is not within 0 to 1", "give a fraction below 1"
            )
        if len(self.keys) > 2 or isinstance(self.keys, str):
            raise validate.fail(element, f"keys = {self.keys!r} are not one or two names", 'give ("A", "D")')
        for key in self.keys:
            check_key(element, key)
        if self.switch and len(self.keys) > 1:
            raise validate.fail(element, f"it is a switch with two keys, {', '.join(self.keys)}", "give one key")
        if not self.switch and len(self.keys) == 1:
            rule = f"it has one key, {self.keys[0]!r}, and is not a switch"
            raise validate.fail(element, rule, "give two keys (decrease, increase), or switch = True")
        check_part(element, "button" if self.switch else "axis", self.axis)

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the command after limits, dead zone and curve are applied."""
        lower, upper, t = self.range_lower, float(self.upper), c.trace
        x = t.limit(t.command(c.commands["out"]), lower, upper)
        if self.dead_zone == 0.0 and self.curve == 1.0:
            return {"out": [x]}
        neutral = float(self.default)
        below, above = neutral - lower, upper - neutral
        below, above = below or above, above or below  # for a default at an end of the range, use the other side
        offset = x - neutral
        deflection = offset / above if below == above else c.select(offset < 0.0, offset / below, offset / above)
        size = t.max(t.abs(deflection) - self.dead_zone, 0.0) / (1.0 - self.dead_zone)
        if self.curve != 1.0:
            size = c.select(size <= 0.0, 0.0, t.function("pow", t.max(size, 1e-300), self.curve))
        if below == above:
            return {"out": [neutral + above * c.select(offset < 0.0, -size, size)]}
        return {"out": [t.limit(neutral + c.select(offset < 0.0, -below * size, above * size), lower, upper)]}


@block("noise")
class Noise(Source):
    """Normal random numbers with standard deviation ``sigma``. Each sample has new numbers.

    ``size`` > 1 gives a vector. After a reset, the block produces the same numbers again. The numbers depend only on
    the diagram's label, the block's name, the seed, the world and the sample.
    """

    sigma: NotNegative = 1.0
    seed: int = 0
    size: int = 1
    unit: str | None = None

    def check(self, element: str) -> None:
        """Check the seed and the size."""
        for name, lower, upper in (("seed", 0, 2**53), ("size", 1, 1000)):
            validate.count(element, name, getattr(self, name), lower, upper)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a number or a vector with the unit ``unit``."""
        return {"out": Kind(() if self.size == 1 else (self.size,), units.parse(self.unit))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the random numbers. Each component uses a separate random stream."""
        sigma = c.tune("sigma", self.sigma, minimum=0.0)
        return {"out": [sigma * c.trace.normal(self.seed) for _ in range(self.size)]}


@block("signal")
class Signal(Source):
    """Value of a simulation signal at the time of the sample. A list of signals gives one vector."""

    signal: str | Sequence[str]

    @property
    def names(self) -> list[str]:
        """Names of the signals."""
        return [self.signal] if isinstance(self.signal, str) else list(self.signal)

    def check(self, element: str) -> None:
        """Check the names."""
        check_names(element, "signal", self.signal, 'give one, as "joint.hip.position"')

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the values of the signals."""
        return {"out": [c.trace.signal(column) for column in c.signals["out"]]}


@block("command")
class Command(Block):
    """Clip the input to the range from ``lower`` to ``upper``, and write it to a command.

    A vector sets several commands.
    """

    command: str | Sequence[str]
    lower: float | None = None
    upper: float | None = None
    outputs = ()

    def check(self, element: str) -> None:
        """Check the names."""
        check_names(element, "command", self.command, "give the command of an actuator")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check the size of the input. The block has no outputs."""
        if isinstance(self.command, str) and inputs["in"].size == 1:
            return {}  # a vector of one number is accepted
        if isinstance(self.command, str):
            check_numbers({"a command": inputs["in"]})
        elif inputs["in"].size != len(self.names):
            rule = f"the wire has {inputs['in'].size} numbers, and there are {len(self.names)} commands"
            raise ModelError(f"{rule}; connect one number per command")
        return {}

    @property
    def names(self) -> list[str]:
        """Labels of the commands."""
        return [self.command] if isinstance(self.command, str) else list(self.command)

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Clip the input to the range and write the command."""
        t = c.trace
        for name, value in zip(self.names, inputs["in"], strict=True):
            if self.lower is not None:
                value = t.max(value, float(self.lower))
            if self.upper is not None:
                value = t.min(value, float(self.upper))
            t.command_out(c.commands[name], value)
        return {}


def check_names(element: str, what: str, given: Any, hint: str) -> None:
    """Check that ``given`` is a name or a list of names. A list of commands must not contain duplicates."""
    listed = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else []
    if not listed or not all(isinstance(name, str) and name for name in listed):
        raise validate.fail(element, f"{what} = {given!r} is not a name", hint)
    if what == "command" and len(set(listed)) < len(listed):
        raise validate.fail(element, "a command is given twice", "give each command once")
