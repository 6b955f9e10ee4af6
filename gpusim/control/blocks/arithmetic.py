"""Blocks for arithmetic: sums, products, functions, vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, common_shape, common_unit, each
from gpusim.control.trace import Num
from gpusim.errors import ModelError

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Counted(Block):
    """Base class of blocks with ``count`` inputs a, b, ..."""

    count: int

    def __post_init__(self) -> None:
        self.inputs = tuple(LETTERS[: self.count])

    def check(self, element: str) -> None:
        """Check ``count``."""
        if not 1 <= self.count <= len(LETTERS):
            rule = f"count = {self.count!r} is not within 1 to {len(LETTERS)}"
            raise validate.fail(element, rule, "give a count in this range")


@block("gain")
class Gain(Block):
    """Multiply the input by the number ``gain``, which may have a ``unit``."""

    gain: float = 1.0
    unit: str | None = None

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the input's shape, and the product of the units of input and gain."""
        unit = units.product(inputs["in"].unit, units.parse(self.unit))
        return {"out": Kind(inputs["in"].shape, unit)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return gain times input."""
        factor = c.tune("gain", self.gain)
        return {"out": [factor * x for x in inputs["in"]]}


class Signed(Block):
    """Base class of blocks with one sign per input a, b, ... ``known`` contains the allowed signs."""

    signs: str
    known: ClassVar[str]

    def __post_init__(self) -> None:
        self.inputs = tuple(LETTERS[: len(self.signs)])

    def check(self, element: str) -> None:
        """Check the signs."""
        if not 0 < len(self.signs) <= len(LETTERS) or set(self.signs) - set(self.known):
            rule = f"signs = {self.signs!r} must consist of {' and '.join(self.known)}"
            raise validate.fail(element, rule, f'give one sign per input, such as "{self.known}"')


@block("sum")
class Sum(Signed):
    """Sum or difference of the inputs a, b, ... ``signs`` has one sign per input, such as "+-" for a - b."""

    signs: str = "++"
    known = "+-"

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Add the inputs in order."""

        def add(*terms: Num) -> Num:
            first = -terms[0] if self.signs[0] == "-" else terms[0]
            pairs = zip(self.signs[1:], terms[1:], strict=True)
            return reduce(lambda total, pair: total + pair[1] if pair[0] == "+" else total - pair[1], pairs, first)

        return {"out": each(add, *(inputs[port] for port in self.inputs))}


@block("product")
class Product(Signed):
    """Product or quotient of the inputs a, b, ...

    ``signs`` has one sign per input, such as "*/" for a / b. Division by zero gives 0.
    """

    signs: str = "**"
    known = "*/"
    same_units = False

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the common shape of the inputs, and the product or quotient of their units."""
        powers = zip(self.inputs, self.signs, strict=True)
        unit = units.product(*(units.power(inputs[port].unit, 1 if sign == "*" else -1) for port, sign in powers))
        return {"out": Kind(common_shape(inputs), unit)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Multiply the inputs in order."""

        def multiply(*factors: Num) -> Num:
            out = factors[0] if self.signs[0] == "*" else quotient(c, 1.0, factors[0])
            for sign, factor in zip(self.signs[1:], factors[1:], strict=True):
                out = out * factor if sign == "*" else quotient(c, out, factor)
            return out

        return {"out": each(multiply, *(inputs[port] for port in self.inputs))}


def quotient(c: Context, above: Num | float, below: Num) -> Num:
    """Return ``above / below``, or 0 if ``below`` is zero."""
    zero = below.equals(0.0)
    return c.select(zero, 0.0, above / c.select(zero, 1.0, below))


@block("division")
class Division(Product):
    """Quotient a / b. Division by zero gives 0."""

    signs: str = "*/"


@block("minmax")
class Minmax(Counted):
    """Minimum ("min") or maximum ("max") of the inputs a, b, ..."""

    which: str = "max"
    count: int = 2

    def check(self, element: str) -> None:
        """Check ``which`` and ``count``."""
        validate.choice(element, "which", self.which, ("min", "max"))
        super().check(element)

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the minimum or maximum of each component."""
        choose = c.trace.max if self.which == "max" else c.trace.min
        return {"out": each(lambda *x: reduce(choose, x), *(inputs[port] for port in self.inputs))}


@block("abs")
class Abs(Block):
    """Absolute value."""

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the absolute value of each component."""
        return {"out": [c.trace.abs(x) for x in inputs["in"]]}


@block("sign")
class Sign(Block):
    """Sign of the input: 1, 0 or -1."""

    same_units = False

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the sign of each component."""
        return {"out": [c.select(x > 0.0, 1.0, c.select(x < 0.0, -1.0, x * 0.0 + 0.0)) for x in inputs["in"]]}


_TAN = "tan"
TRIGONOMETRY = ("sin", "cos", _TAN, "asin", "acos", "atan")


@block("trigonometry")
class Trigonometry(Block):
    """sin, cos, tan, asin, acos or atan. Angles are in rad. Arguments of asin and acos are clipped to -1 to 1."""

    function: str = "sin"
    same_units = False

    def check(self, element: str) -> None:
        """Check the name of the function."""
        validate.choice(element, "function", self.function, TRIGONOMETRY)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check that the input is in rad or unitless. Return the input's shape without a unit."""
        if not units.fits(inputs["in"].unit, units.NONE):
            rule = f"its input is in {units.shown(inputs['in'].unit)}, not in rad"
            raise ModelError(f"{rule}; insert a gain with a unit")
        return {"out": Kind(inputs["in"].shape, units.NONE)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Apply the function to each component."""
        return {"out": [trigonometric(c, self.function, x) for x in inputs["in"]]}


def trigonometric(c: Context, name: str, x: Num) -> Num:
    """Return a trigonometric function of ``x``, computed from sin, cos, atan2 and sqrt."""
    t = c.trace
    if name in ("sin", "cos"):
        return t.function(name, x)
    if name == _TAN:
        return t.function("sin", x) / t.function("cos", x)
    if name == "atan":
        return t.function("atan2", x, 1.0)
    x = t.limit(x, -1.0, 1.0)
    other = t.sqrt((1.0 - x) * (1.0 + x))
    return t.function("atan2", x, other) if name == "asin" else t.function("atan2", other, x)


@block("atan2")
class Atan2(Block):
    """Angle (rad, -pi to pi) of the vector (x, y)."""

    inputs = ("y", "x")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the common shape of the inputs, without a unit (rad)."""
        common_unit(inputs)
        return {"out": Kind(common_shape(inputs), units.NONE)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the angle of each component."""
        return {"out": each(lambda y, x: c.trace.function("atan2", y, x), inputs["y"], inputs["x"])}


@block("mux")
class Mux(Counted):
    """Join the numbers and vectors a, b, c, ... into one vector."""

    count: int = 2

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a vector with the total length of the inputs. The vector has a unit if all inputs share this unit."""
        kinds = [kind.unit for kind in inputs.values()]
        same = all(units.fits(kinds[0], u) for u in kinds)
        return {"out": Kind((sum(kind.size for kind in inputs.values()),), kinds[0] if same else None)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Join the inputs in order."""
        return {"out": [x for port in self.inputs for x in inputs[port]]}


@block("select_element")
class SelectElement(Block):
    """Component ``index`` of a vector, counted from 0. A list of indices selects several components."""

    index: int | Sequence[int] = 0

    def check(self, element: str) -> None:
        """Check that each index is an integer of at least 0."""
        listed = list(self.index) if isinstance(self.index, list | tuple) else [self.index]
        if not listed or not all(isinstance(k, int) and not isinstance(k, bool) and k >= 0 for k in listed):
            raise validate.fail(
                element, f"index = {self.index!r} is not a whole number of at least 0", "give 0 or more"
            )

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the number of selected components, and the input's unit."""
        listed = [self.index] if isinstance(self.index, int) else list(self.index)
        if max(listed) >= inputs["in"].size:
            raise ModelError(
                f"index = {max(listed)} is too large for a wire of {inputs['in'].size} numbers; give a smaller index"
            )
        return {"out": Kind(() if isinstance(self.index, int) else (len(listed),), inputs["in"].unit)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the selected components."""
        listed = [self.index] if isinstance(self.index, int) else list(self.index)
        return {"out": [inputs["in"][k] for k in listed]}


@block("norm")
class Norm(Block):
    """Length (Euclidean norm) of a vector."""

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a number with the input's unit."""
        return {"out": Kind((), inputs["in"].unit)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the square root of the sum of squares."""
        return {"out": [c.trace.sqrt(reduce(lambda a, b: a + b, [x * x for x in inputs["in"]]))]}


@block("dot")
class Dot(Block):
    """Scalar product of two vectors of equal length."""

    inputs = ("a", "b")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a number whose unit is the product of the two units."""
        common_shape(inputs)
        return {"out": Kind((), units.product(inputs["a"].unit, inputs["b"].unit))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the scalar product."""
        return {"out": [reduce(lambda a, b: a + b, each(lambda a, b: a * b, inputs["a"], inputs["b"]))]}
