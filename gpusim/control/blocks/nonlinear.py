"""Nonlinear blocks: limits, dead zones, backlash, quantization, relays, tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, check_numbers
from gpusim.control.blocks.dynamics import bounded
from gpusim.control.blocks.sources import check_rising, interpolated
from gpusim.control.parameters import Positive
from gpusim.control.trace import Num


@block("limiter")
class Limiter(Block):
    """Clip the input to the range from ``lower`` to ``upper``. You may omit one bound."""

    lower: float | None = None
    upper: float | None = None

    def check(self, element: str) -> None:
        """Check that at least one bound is given."""
        if self.lower is None and self.upper is None:
            raise validate.fail(element, "it has no bound", "give lower, upper or both")

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Limit each component."""
        return {"out": [bounded(c, x, self.lower, self.upper) for x in inputs["in"]]}


@block("dead_zone")
class DeadZone(Block):
    """Dead zone: the output is 0 for inputs between ``lower`` and ``upper``.

    Above ``upper``, the output is input - ``upper``. Below ``lower``, it is input - ``lower``.
    """

    lower: float = -0.1
    upper: float = 0.1

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Apply the dead zone to each component."""
        lower, upper = c.tune("lower", self.lower), c.tune("upper", self.upper)
        return {"out": [x - c.trace.limit(x, lower, upper) for x in inputs["in"]]}


@block("backlash")
class Backlash(Block):
    """Backlash (play): after a reversal, the output moves only when the input has moved by ``width``."""

    width: Positive
    initial: float = 0.0

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the output, which differs from the input by at most ``width`` / 2."""
        c.add_states("last", [self.initial] * c.kinds["out"].size)
        half = 0.5 * c.tune("width", self.width, minimum=0.0)
        out = [c.trace.limit(y, u - half, u + half) for y, u in zip(c.read_state("last"), inputs["in"], strict=True)]
        c.write_state("last", out)
        return {"out": out}


@block("quantizer")
class Quantizer(Block):
    """Nearest multiple of ``step``."""

    step: Positive

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Round each component."""
        step = c.tune("step", self.step, minimum=0.0, above=True)
        return {"out": [c.trace.rounded(x / step) * step for x in inputs["in"]]}


@block("relay")
class Relay(Block):
    """Relay with hysteresis.

    The output becomes ``on`` when the input reaches ``upper``, and ``off`` when the input falls below ``lower``.
    """

    lower: float = -0.1
    upper: float = 0.1
    off: float = 0.0
    on: float = 1.0
    initial: bool = False
    unit: str | None = None

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Switch each component."""
        c.add_states("on", [float(self.initial)] * c.kinds["out"].size)
        lower, upper = c.tune("lower", self.lower), c.tune("upper", self.upper)
        is_on = [
            (x >= upper) | ((x >= lower) & y.is_true()) for x, y in zip(inputs["in"], c.read_state("on"), strict=True)
        ]
        c.write_state("on", [h.number() for h in is_on])
        on, off = c.tune("on", self.on), c.tune("off", self.off)
        return {"out": [c.select(h, on, off) for h in is_on]}


@block("lookup")
class Lookup(Block):
    """Piecewise linear curve through the points (x, y).

    Outside the range of x, the output is constant. With ``extend``, the block extrapolates linearly.
    """

    x: Sequence[float]
    y: Sequence[float]
    extend: bool = False
    unit: str | None = None

    def check(self, element: str) -> None:
        """Check that the table has at least two points and that x increases."""
        check_rising(element, "x", self.x, 2)
        validate.numbers(element, "y", self.y, len(self.x))

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Interpolate each component."""
        first, last = float(self.x[0]), float(self.x[-1])
        at = inputs["in"] if self.extend else [c.trace.limit(x, first, last) for x in inputs["in"]]
        return {"out": [interpolated(c, self.x, self.y, x) for x in at]}


@block("lookup2d")
class Lookup2d(Block):
    """Bilinear interpolation in a table. ``z[i][j]`` is the value at ``x[j]`` and ``y[i]``.

    The block clips its inputs to the range of the table.
    """

    x: Sequence[float]
    y: Sequence[float]
    z: Sequence[Sequence[float]]
    unit: str | None = None
    inputs = ("x", "y")

    def check(self, element: str) -> None:
        """Check ``x``, ``y`` and the shape of ``z``."""
        check_rising(element, "x", self.x, 2)
        check_rising(element, "y", self.y, 2)
        values = validate.array(element, self.z)
        if values.shape != (len(self.y), len(self.x)) or not np.all(np.isfinite(values)):
            rule = f"z has shape {values.shape}, but y and x need the shape {(len(self.y), len(self.x))}"
            raise validate.fail(element, rule, "give one finite number per point of the grid")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check that the inputs are numbers and return a number with the unit ``unit``."""
        check_numbers(inputs)
        return {"out": Kind((), units.parse(self.unit))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Interpolate along x in the two neighboring rows of ``z``, then along y."""
        t, columns = c.trace, float(len(self.x))
        x = t.limit(inputs["x"][0], float(self.x[0]), float(self.x[-1]))
        y = t.limit(inputs["y"][0], float(self.y[0]), float(self.y[-1]))
        xs, ys, zs = t.table(self.x), t.table(self.y), t.table(np.asarray(self.z, float).ravel().tolist())
        i, j = t.interval(xs, x), t.interval(ys, y)

        def fraction(table: str, k: Num, value: Num) -> Num:
            low = t.entry(table, k)
            return (value - low) / (t.entry(table, k + 1.0) - low)

        along, up = fraction(xs, i, x), fraction(ys, j, y)

        def row(k: Num) -> Num:
            at = k * columns + i
            low = t.entry(zs, at)
            return low + along * (t.entry(zs, at + 1.0) - low)

        low = row(j)
        return {"out": [low + up * (row(j + 1.0) - low)]}
