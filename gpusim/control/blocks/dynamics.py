"""Blocks with state: integrators, filters, transfer functions, delays, PID.

The outputs are exact solutions of the continuous systems for inputs that are constant between samples (zero-order
hold). Source: Franklin, Powell and Workman, "Digital Control of Dynamic Systems", 1998, section 4.3.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce

import numpy as np

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, check_numbers, common_shape, each
from gpusim.control.parameters import Positive
from gpusim.control.trace import Num
from gpusim.errors import ModelError
from gpusim.typing import Array

MAX_ORDER = 12
MAX_DELAY = 100_000
"""Maximum delay (samples)."""


def bounded(c: Context, x: Num, lower: float | None, upper: float | None) -> Num:
    """Clip ``x`` to the range from ``lower`` to ``upper``. None means no bound."""
    if lower is not None:
        x = c.trace.max(x, c.tune("lower", lower))
    return x if upper is None else c.trace.min(x, c.tune("upper", upper))


@block("integrator")
class Integrator(Block):
    """Time integral of ``gain`` times the input, clipped to the range from ``lower`` to ``upper``.

    While ``reset`` is above 0.5, the output is ``initial``.
    """

    gain: float = 1.0
    initial: float | Sequence[float] = 0.0
    lower: float | None = None
    upper: float | None = None
    unit: str | None = None
    inputs = ("in", "reset")
    optional = {"reset": 0.0}
    waits = frozenset({"in"})

    def check(self, element: str) -> None:
        """Check the initial values."""
        count = int(np.size(np.array(self.initial, dtype=object)))
        for value in validate.per_axis(element, "initial", self.initial, count):
            if (self.lower is not None and value < self.lower) or (self.upper is not None and value > self.upper):
                raise validate.fail(
                    element, f"initial = {value:g} is outside the bounds", "give a value within lower and upper"
                )
        if not count:
            raise validate.fail(element, "initial has no numbers", "give one number, or one per component of the input")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the input's shape, with the unit of (input) * (gain) * s."""
        check_numbers({"reset": inputs["reset"]})
        shape = inputs["in"].shape if "in" in inputs else ()
        if np.ndim(self.initial):
            shape = shape or (len(self.initial),)  # type: ignore[arg-type]
            if shape != (len(self.initial),):  # type: ignore[arg-type]
                rule = f"initial has {len(self.initial)} numbers, and its input has {shape[0]}"  # type: ignore[arg-type]
                raise ModelError(f"{rule}; give {shape[0]}")
        unit = inputs["in"].unit if "in" in inputs else None
        gain = units.NONE if self.unit is None and self.gain in (1.0, -1.0) else units.parse(self.unit)
        return {"out": Kind(shape, units.product(unit, units.SECOND, gain))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the value of the integral at the sample, or ``initial`` during a reset."""
        count = c.kinds["out"].size
        c.add_states("sum", np.broadcast_to(np.asarray(self.initial, float), (count,)).tolist())
        start = np.broadcast_to(np.asarray(self.initial, float), (count,)).tolist()
        resets = inputs["reset"][0].is_true()
        out = [c.select(resets, x0, x) for x0, x in zip(start, c.read_state("sum"), strict=True)]
        c.memory["out"] = out
        return {"out": out}

    def update(self, c: Context, inputs: dict[str, Wire]) -> None:
        """Add the integral over one sample period, with constant input."""
        rate = c.tune("gain", self.gain)
        sums = each(lambda x, u: bounded(c, x + (rate * u) * c.period, self.lower, self.upper),
                    c.memory["out"], inputs["in"])  # fmt: skip
        c.write_state("sum", sums)


def linear(c: Context, a: Array, b: Array, given: Wire) -> None:
    """Store the next state a x + b u of a filter. Each component u of the input has a separate state x."""
    order = len(a)
    for k, u in enumerate(given):
        x = c.read_state(f"x{k}")
        c.write_state(f"x{k}", [add_up(c, [*a[i], b[i]], [*x, u]) for i in range(order)])


def add_up(c: Context, factors: Sequence[float], values: Sequence[Num]) -> Num:
    """Return the scalar product of ``factors`` and ``values``. Omit terms with a zero factor."""
    terms = [float(f) * v for f, v in zip(factors, values, strict=True) if f != 0.0]
    return reduce(lambda p, q: p + q, terms) if terms else c.trace.constant(0.0)


class Linear(Block):
    """Linear system dx/dt = A x + B u, y = C x + D u."""

    @abstractmethod
    def system(self) -> tuple[Array, Array, Array, float]:
        """Return A (n, n), B (n,), C (n,) and D (scalar) for n states."""

    @property
    def start(self) -> float:
        """Output before the first sample. The system starts in equilibrium."""
        return 0.0

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return C x + D u."""
        a, b, out, through = self.system()
        n = len(b)
        unit_state = -np.linalg.solve(a, b) if n and self.start and np.linalg.matrix_rank(a) == n else np.zeros(n)
        dc_gain = float(out @ unit_state) + through
        x0 = (unit_state * (self.start / dc_gain) if self.start and dc_gain else np.zeros(n)).tolist()
        outputs = []
        for k in range(c.kinds["out"].size):
            c.add_states(f"x{k}", x0)
            factors, values = [*out], c.read_state(f"x{k}")
            if through:
                factors, values = [*factors, through], [*values, inputs["in"][k]]
            outputs.append(add_up(c, factors, values))
        return {"out": outputs}

    def update(self, c: Context, inputs: dict[str, Wire]) -> None:
        """Integrate the states exactly over one sample period with constant input."""
        a, b, _, _ = self.system()
        n = len(b)
        from scipy.linalg import expm  # slow to import, and few diagrams need it

        transition = expm(np.block([[a, b[:, None]], [np.zeros((1, n + 1))]]) * c.fixed_period())
        linear(c, transition[:n, :n], transition[:n, n], inputs["in"])


class LowPassFilter(Linear):
    """Base class of low-pass filters."""

    initial: float
    waits = frozenset({"in"})

    @property
    def start(self) -> float:
        """Output before the first sample: the parameter ``initial``."""
        return self.initial

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape and unit of the input."""
        return {"out": inputs.get("in", Kind())}


@block("lowpass")
class Lowpass(LowPassFilter):
    """First-order low-pass: 1 / (time s + 1), with ``time`` in seconds. The output starts at ``initial``."""

    time: Positive
    initial: float = 0.0

    def system(self) -> tuple[Array, Array, Array, float]:
        """Return the matrices of the system. The state is the output."""
        return np.array([[-1.0 / self.time]]), np.array([1.0 / self.time]), np.ones(1), 0.0


@block("lowpass2")
class Lowpass2(LowPassFilter):
    """Second-order low-pass: w^2 / (s^2 + 2 ``damping`` w s + w^2) with w = 2 pi ``frequency`` (Hz)."""

    frequency: Positive = 1.0
    damping: Positive = 0.7
    initial: float = 0.0

    def system(self) -> tuple[Array, Array, Array, float]:
        """Return the matrices of the system. The states are the output and its time derivative."""
        w = 2.0 * math.pi * self.frequency
        a = np.array([[0.0, 1.0], [-w * w, -2.0 * self.damping * w]])
        return a, np.array([0.0, w * w]), np.array([1.0, 0.0]), 0.0


@block("transfer")
class Transfer(Linear):
    """Transfer function ``num`` / ``den``.

    ``num`` and ``den`` are lists of polynomial coefficients in s, highest power first. The order of ``num`` must not
    exceed the order of ``den``.
    """

    num: Sequence[float]
    den: Sequence[float]
    unit: str | None = None

    def __post_init__(self) -> None:
        try:
            self.waits = frozenset({"in"}) if len(self.num) < len(self.den) else frozenset()  # type: ignore[misc]
        except TypeError:
            self.waits = frozenset()  # type: ignore[misc]

    def check(self, element: str) -> None:
        """Check the polynomials."""
        for name in ("num", "den"):
            given = getattr(self, name)
            count = len(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else 0
            if not 1 <= count <= MAX_ORDER + 1:
                rule = f"{name} = {given!r} is not a list of 1 to {MAX_ORDER + 1} numbers"
                raise validate.fail(element, rule, "give coefficients, the highest power of s first")
            validate.numbers(element, name, given, count)
            if float(given[0]) == 0.0:
                raise validate.fail(element, f"the first coefficient of {name} is zero", "remove it")
        if len(self.num) > len(self.den):
            rule = f"num has order {len(self.num) - 1}, den {len(self.den) - 1}: it needs future inputs"
            raise validate.fail(element, rule, "give a den of at least the same order")

    def system(self) -> tuple[Array, Array, Array, float]:
        """Return the matrices of the controllable canonical form."""
        from scipy import signal  # slow to import

        a, b, out, through = signal.tf2ss(list(self.num), list(self.den))
        if len(self.den) == 1:
            return np.zeros((0, 0)), np.zeros(0), np.zeros(0), float(through[0, 0])
        return a, b[:, 0], out[0], float(through[0, 0])

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the input's shape, with the unit ``unit``."""
        return {"out": Kind(inputs["in"].shape if "in" in inputs else (), units.parse(self.unit))}


@block("delay")
class Delay(Block):
    """Delay the input by ``samples`` samples (default 1) or by ``time`` seconds.

    The block rounds ``time`` to whole samples. Before the delay time has passed, the output is ``initial``, or the
    first input if ``initial`` is None. With ``max_time``, you can change ``time`` in each world during the simulation,
    from 0 to ``max_time`` seconds. A delay breaks an algebraic loop only if ``initial`` is a number and ``max_time`` is
    None.
    """

    samples: int | None = None
    time: float | None = None
    initial: float | None = 0.0
    max_time: Positive | None = None
    waits = frozenset({"in"})

    def __post_init__(self) -> None:
        waits = self.max_time is None and self.initial is not None
        self.waits = frozenset({"in"}) if waits else frozenset()  # type: ignore[misc]

    def check(self, element: str) -> None:
        """Check the number of samples or the time."""
        if self.samples is not None and not 1 <= self.samples <= MAX_DELAY:
            raise validate.fail(
                element, f"samples = {self.samples!r} is not within 1 to {MAX_DELAY}", "give a number in this range"
            )
        for name, value in (("time", self.time), ("max_time", self.max_time)):
            if self.samples is not None and value is not None:
                rule = f"samples = {self.samples} and {name} = {value!r} s are both given"
                raise validate.fail(element, rule, "remove one of them")
        if self.max_time is None:
            if self.time is not None:
                validate.positive(element, "time", self.time)
            return
        if self.time is None:
            raise validate.fail(element, "max_time needs a time", "give time=... in s")
        time = validate.not_negative(element, "time", self.time)
        validate.up_to(element, "time", time, "max_time", self.max_time, "s")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape and unit of the input."""
        name, time = ("time", self.time) if self.max_time is None else ("max_time", self.max_time)
        if time is not None and self._capacity(period) < 1:
            rule = f"{name} = {time:g} s is less than half of a period of {period:g} s"
            raise ModelError(f"{rule}; give a longer time")
        if time is not None and self._capacity(period) > MAX_DELAY:
            rule = f"{name} = {time:g} s is more than {MAX_DELAY} periods of {period:g} s"
            raise ModelError(f"{rule}; give a shorter time, or a lower rate of the diagram")
        return {"out": inputs.get("in", Kind())}

    def _capacity(self, period: float) -> int:
        """Return the capacity of the ring buffer in samples."""
        time = self.time if self.max_time is None else self.max_time
        return (self.samples or 1) if time is None else round(min(time / period, MAX_DELAY + 1.0))

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the oldest entry of the ring buffer. With ``max_time``, return the entry from ``time`` seconds ago."""
        if self.max_time is None and self.time is not None and isinstance(c.period, Num):
            rule = f"time = {self.time:g} s is a different number of samples in each world with its own rate (max_rate)"
            raise validate.fail(c.element, rule, f"also give max_time = {self.time:g}")
        capacity, size = self._capacity(c.min_period), c.kinds["out"].size
        write_index = c.add_state("at")
        c.memory["rings"] = [c.trace.ring(write_index, capacity, self.initial or 0.0) for _ in range(size)]
        if self.initial is None:
            for first, u in zip(c.memory["rings"], inputs["in"], strict=True):
                c.trace.ring_begin(first, capacity, u)
        (at,) = c.read_state("at")
        if self.max_time is None:
            return {"out": [c.trace.ring_read(first, at) for first in c.memory["rings"]]}
        time = c.tune("time", self.time or 0.0, minimum=0.0, maximum=self.max_time, unit="s")
        ago = c.trace.limit(c.trace.rounded(time / c.period), 0.0, float(capacity))
        index = at - ago  # index of the delayed input; the newest entry is just before ``at``
        index = c.select(index < 0.0, index + float(capacity), index)
        delayed = [c.trace.ring_read(first, index) for first in c.memory["rings"]]
        return {"out": [c.select(ago < 0.5, u, x) for u, x in zip(inputs["in"], delayed, strict=True)]}

    def update(self, c: Context, inputs: dict[str, Wire]) -> None:
        """Overwrite the oldest entry with the newest input."""
        (at,) = c.read_state("at")
        for first, value in zip(c.memory["rings"], inputs["in"], strict=True):
            c.trace.ring_write(first, at, value)
        following = at + 1.0
        c.write_state("at", [c.select(following >= float(self._capacity(c.min_period)), 0.0, following)])


@block("derivative")
class Derivative(Block):
    """Filtered derivative of the input, s / (time s + 1), with ``time`` in seconds.

    The result is exact for inputs that are linear between samples. In the first sample, the output is 0.
    """

    time: Positive

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape of the input, and the unit of the input per second."""
        return {"out": Kind(inputs["in"].shape, units.product(inputs["in"].unit, units.power(units.SECOND, -1)))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the filtered derivative a y + (1 - a) (u - u_previous) / T of the input u.

        y is the previous output, T the sample period, and a = exp(-T / ``time``).
        """
        size, t = c.kinds["out"].size, c.trace
        for name in ("before", "rate"):
            c.add_states(name, [0.0] * size)
        c.add_state("began")
        began = c.read_state("began")[0].is_true()
        decay = c.decay(self.time)
        out = []
        for u, before, rate in zip(inputs["in"], c.read_state("before"), c.read_state("rate"), strict=True):
            mean = c.select(began, (u - before) / c.period, 0.0)
            out.append(mean + (rate - mean) * decay)
        c.write_state("before", inputs["in"])
        c.write_state("rate", out)
        c.write_state("began", [t.constant(1.0)])
        return {"out": out}


@block("pid")
class Pid(Block):
    """PID controller: kp e + ki integral(e) + kd derivative(e), clipped to ``lower`` and ``upper``.

    e is the input. A low-pass with the time constant ``derivative_time`` (s) filters the derivative. Anti-windup: the
    integral stops while the unclipped output exceeds a bound and ki e would increase the excess. Source: conditional
    integration in Astrom and Hagglund, "Advanced PID Control", 2006, section 3.5. With ``measured_rate``, the input
    ``rate`` (de/dt) replaces the filtered derivative. While ``reset`` is above 0.5, the integral is zero.
    """

    kp: float = 1.0
    ki: float = 0.0
    kd: float = 0.0
    derivative_time: Positive = 0.01
    lower: float | None = None
    upper: float | None = None
    initial: float = 0.0
    unit: str | None = None
    measured_rate: bool = False

    def __post_init__(self) -> None:
        self.inputs = ("in", "rate", "reset") if self.measured_rate else ("in", "reset")
        self.optional = {"reset": 0.0}

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape of the input, with the unit ``unit``. Check the unit of ``rate``."""
        check_numbers({"reset": inputs["reset"]})
        if self.measured_rate:
            expected = units.product(inputs["in"].unit, units.power(units.SECOND, -1))
            if not units.fits(inputs["rate"].unit, expected):
                rule = f"rate is in {units.shown(inputs['rate'].unit)}, not in {units.shown(expected)}"
                raise ModelError(f"{rule}; connect the rate of the error")
            common_shape({port: kind for port, kind in inputs.items() if port != "reset"})
        return {"out": Kind(inputs["in"].shape, units.parse(self.unit))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the PID output and update the states."""
        size, t = c.kinds["out"].size, c.trace
        c.add_states("sum", [self.initial] * size)
        c.add_states("slow", [0.0] * size)
        c.add_state("began")
        began, resets = c.read_state("began")[0].is_true(), inputs["reset"][0].is_true()
        decay = c.decay(self.derivative_time)
        out, sums, slows = [], [], []
        for k in range(size):
            e = inputs["in"][k]
            total = c.select(resets, 0.0, c.read_state("sum")[k])
            slow = c.select(began, c.read_state("slow")[k], e)
            rate = inputs["rate"][k] if self.measured_rate else (e - slow) / self.derivative_time
            unlimited = (c.tune("kp", self.kp) * e + total) + c.tune("kd", self.kd) * rate
            limited = bounded(c, unlimited, self.lower, self.upper)
            rise = (c.tune("ki", self.ki) * e) * c.period
            winds_up = ((unlimited > limited) & (rise > 0.0)) | ((unlimited < limited) & (rise < 0.0))
            sums.append(c.select(winds_up, total, total + rise))
            slows.append(e + (slow - e) * decay)
            out.append(limited)
        c.write_state("sum", sums)
        c.write_state("slow", slows)
        c.write_state("began", [t.constant(1.0)])
        return {"out": out}


@block("rate_limiter")
class RateLimiter(Block):
    """Limit the rate of the output to ``rise`` per second up and ``fall`` per second down (default: ``rise``)."""

    rise: Positive
    fall: Positive | None = None

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Move the output towards the input. In the first sample, the output equals the input."""
        size, t = c.kinds["out"].size, c.trace
        c.add_states("last", [0.0] * size)
        c.add_state("began")
        began = c.read_state("began")[0].is_true()
        up = c.tune("rise", self.rise, minimum=0.0) * c.period
        down = up if self.fall is None else c.tune("fall", self.fall, minimum=0.0) * c.period
        reachable = [t.limit(u, y - down, y + up) for u, y in zip(inputs["in"], c.read_state("last"), strict=True)]
        out = [c.select(began, y, u) for y, u in zip(reachable, inputs["in"], strict=True)]
        c.write_state("last", out)
        c.write_state("began", [t.constant(1.0)])
        return {"out": out}
