"""What a diagram does in a sample, as a list of operations on numbers: one text, from which kernels and NumPy are made.

Blocks say what they do in Python, with :class:`Num` and :class:`Truth` in place of numbers and conditions. That is
traced once for each block of a diagram; the list of operations is then written as C++ for one world (the kernels) and
as NumPy over all worlds. Both do the same operations on doubles in the same order, each of which IEEE 754 rounds in
one way only, so the bits are equal by construction. Angles and powers go through ``exact_math.py`` and
``cuda_kernels/detmath.cuh``, which are made of such operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusim.model.program import Ring

FUNCTIONS = ("sin", "cos", "exp", "log", "atan2", "pow")
"""Elementary functions: of det:: in C++, of exact_math in Python."""


class Value:
    """A result of an operation: its number in the trace."""

    def __init__(self, trace: Trace, name: str) -> None:
        self.trace, self.name = trace, name


class Truth(Value):
    """A condition."""

    def __and__(self, other: Truth) -> Truth:
        return self.trace.truth("({} && {})", "({} & {})", self, other)

    def __or__(self, other: Truth) -> Truth:
        return self.trace.truth("({} || {})", "({} | {})", self, other)

    def __invert__(self) -> Truth:
        return self.trace.truth("(!{})", "(~{})", self)

    def number(self) -> Num:
        """1 where it holds, 0 elsewhere."""
        return self.trace.select(self, 1.0, 0.0)


class Num(Value):
    """A double."""

    def __add__(self, other: Number) -> Num:
        return self.trace.binary("+", self, other)

    def __radd__(self, other: Number) -> Num:
        return self.trace.binary("+", other, self)

    def __sub__(self, other: Number) -> Num:
        return self.trace.binary("-", self, other)

    def __rsub__(self, other: Number) -> Num:
        return self.trace.binary("-", other, self)

    def __mul__(self, other: Number) -> Num:
        return self.trace.binary("*", self, other)

    def __rmul__(self, other: Number) -> Num:
        return self.trace.binary("*", other, self)

    def __truediv__(self, other: Number) -> Num:
        return self.trace.binary("/", self, other)

    def __rtruediv__(self, other: Number) -> Num:
        return self.trace.binary("/", other, self)

    def __neg__(self) -> Num:
        return self.trace.num("(-{})", "(-{})", self)

    def __lt__(self, other: Number) -> Truth:
        return self.trace.compare("<", self, other)

    def __le__(self, other: Number) -> Truth:
        return self.trace.compare("<=", self, other)

    def __gt__(self, other: Number) -> Truth:
        return self.trace.compare(">", self, other)

    def __ge__(self, other: Number) -> Truth:
        return self.trace.compare(">=", self, other)

    def equals(self, other: Number) -> Truth:
        """Whether both are the same number."""
        return self.trace.compare("==", self, other)

    def holds(self) -> Truth:
        """A number on a logic wire: true above one half."""
        return self > 0.5


Number = Num | float
"""What operations take."""


@dataclass
class Place:
    """A number that lives on from sample to sample."""

    at: int
    name: str


@dataclass
class Trace:
    """Operations as they come, in both languages.

    Attributes:
        cpp, numpy: one line an operation.
        initial: of the numbers that live on, in their places.
        parameters: numbers that may differ from world to world.
        tables: constant arrays, each with its name.
        calls: functions that are not made of operations here: name, C++ text that defines it, Python function.
        rings: of the numbers that live on.
    """

    cpp: list[str] = field(default_factory=list)
    numpy: list[str] = field(default_factory=list)
    initial: list[float] = field(default_factory=list)
    parameters: list[float] = field(default_factory=list)
    tables: dict[str, list[float]] = field(default_factory=dict)
    calls: dict[str, tuple[str, Any]] = field(default_factory=dict)
    rings: list[Ring] = field(default_factory=list)
    streams: int = 0
    _count: int = 0
    _known: dict[tuple[str, ...], str] = field(default_factory=dict)

    # What operations are made of.

    def _text(self, value: Value | float) -> str:
        if isinstance(value, Value):
            return value.name
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return {"inf": "INFINITE", "-inf": "(-INFINITE)"}.get(str(number), "NOT_A_NUMBER")
        text = repr(number)
        return f"({text})" if number < 0.0 or text.startswith("-") else text

    def _make(self, kind: str, cpp: str, numpy: str, given: Sequence[Value | float]) -> str:
        """A new result; the same operation on the same numbers is done once."""
        texts = tuple(self._text(v) for v in given)
        key = (kind, cpp, *texts)
        if key not in self._known:
            name = f"v{self._count}"
            self._count += 1
            self.cpp.append(f"const {kind} {name} = {cpp.format(*texts)};")
            self.numpy.append(f"{name} = {numpy.format(*texts)}")
            self._known[key] = name
        return self._known[key]

    def num(self, cpp: str, numpy: str, *given: Value | float) -> Num:
        """A number by an expression with ``{}`` for what is given."""
        return Num(self, self._make("double", cpp, numpy, given))

    def truth(self, cpp: str, numpy: str, *given: Value | float) -> Truth:
        """A condition by an expression."""
        return Truth(self, self._make("bool", cpp, numpy, given))

    def binary(self, sign: str, a: Number, b: Number) -> Num:
        """An arithmetic operation."""
        return self.num(f"{{}} {sign} {{}}", f"{{}} {sign} {{}}", a, b)

    def compare(self, sign: str, a: Number, b: Number) -> Truth:
        """A comparison."""
        return self.truth(f"({{}} {sign} {{}})", f"np.asarray({{}} {sign} {{}})", a, b)

    def constant(self, value: float) -> Num:
        """A number that stays."""
        return Num(self, self._text(value))

    def plain(self, value: Num) -> Number:
        """What :meth:`constant` was given, so that work on zeros can be left out; else the number itself."""
        try:
            return float(value.name.strip("()"))
        except ValueError:
            return value

    # Functions of numbers.

    def select(self, condition: Truth, a: Number, b: Number) -> Num:
        """``a`` where the condition holds, ``b`` elsewhere."""
        return self.num("({} ? {} : {})", "np.where({}, {}, {})", condition, a, b)

    def larger(self, a: Number, b: Number) -> Num:
        """The larger one; ``b`` where one is no number."""
        return self.num("larger({0}, {1})", "np.where({0} > {1}, {0}, {1})", a, b)

    def smaller(self, a: Number, b: Number) -> Num:
        """The smaller one; ``b`` where one is no number."""
        return self.num("smaller({0}, {1})", "np.where({0} < {1}, {0}, {1})", a, b)

    def limit(self, x: Number, lower: Number, upper: Number) -> Num:
        """Between two bounds."""
        return self.smaller(self.larger(x, lower), upper)

    def magnitude(self, x: Number) -> Num:
        """Without its sign."""
        return self.num("fabs({})", "np.abs({})", x)

    def sqrt(self, x: Number) -> Num:
        """Square root; of what is below zero, zero."""
        return self.num("sqrt({})", "np.sqrt({})", self.larger(x, 0.0))

    def floor(self, x: Number) -> Num:
        """The greatest whole number that is not above."""
        return self.num("whole_below({})", "np.floor({})", x)

    def rounded(self, x: Number) -> Num:
        """The nearest whole number, halves to even ones."""
        return self.num("det::round_even({})", "np.rint({})", x)

    def function(self, name: str, *given: Number) -> Num:
        """One of FUNCTIONS."""
        return self.num(f"det::{name}({', '.join(['{}'] * len(given))})",
                        f"exact_math.{name}({', '.join(['{}'] * len(given))})", *given)  # fmt: skip

    # What comes from outside, and what lives on.

    def signal(self, column: int) -> Num:
        """What was read of the simulation."""
        return self.num(f"in[{column}]", f"given[:, {column}]")

    def command(self, column: int) -> Num:
        """A command as it is, which a person or a program gives."""
        return self.num(f"control[{column}]", f"control[:, {column}].copy()")

    def parameter(self, value: float) -> Num:
        """A number that may be written, for every world; new at each call."""
        self.parameters.append(float(value))
        at = len(self.parameters) - 1
        return self.num(f"par[{at}]", f"par[:, {at}]")

    def place(self, initial: float) -> Place:
        """Room for a number that lives on."""
        self.initial.append(float(initial))
        at = len(self.initial) - 1
        return Place(at, self._make("double", f"s[{at}]", f"s[:, {at}].copy()", ()))

    def kept(self, place: Place) -> Num:
        """What a place held when the sample began."""
        return Num(self, place.name)

    def keep(self, place: Place, value: Number) -> None:
        """What it holds from the next sample on."""
        text = self._text(value)
        self.cpp.append(f"s[{place.at}] = {text};")
        self.numpy.append(f"s[:, {place.at}] = {text}")

    def command_out(self, column: int, value: Number) -> None:
        """Give a command."""
        text = self._text(value)
        self.cpp.append(f"control[{column}] = {text};")
        self.numpy.append(f"control[:, {column}] = {text}")

    def normal(self, seed: int) -> Num:
        """A normal random number of the sample, of a stream of its own."""
        self.streams += 1
        given = float(seed), float(self.streams)
        return self.num("normal_number({}, s[1], s[0], {})", "noise.normal_number({}, s[:, 1], s[:, 0], {})", *given)

    # Rings of numbers: delays of many samples.

    def ring(self, at: Place, count: int, initial: float) -> int:
        """Room for a row of numbers, of which the next is written at the place that ``at`` holds; its first place."""
        self.initial += [float(initial)] * count
        first = len(self.initial) - count
        self.rings.append(Ring(at.at, first, count))
        return first

    def ring_begin(self, first: int, count: int, value: Number) -> None:
        """In the first sample: as if it had held this value for ever."""
        text = self._text(value)
        self.cpp.append(f"if (s[0] == 0.0) for (int k = 0; k < {count}; ++k) s[{first} + k] = {text};")
        new = "s[:, 0] == 0.0"
        value_of_new = f"np.broadcast_to({text}, rows.shape)[{new}, None]"
        self.numpy.append(f"if ({new}).any(): s[{new}, {first}:{first + count}] = {value_of_new}")

    def ring_read(self, first: int, index: Num) -> Num:
        """The number at a place of a ring."""
        return self.num(f"s[{first} + int({{}})]", f"s[rows, {first} + {{}}.astype(int)].copy()", index)

    def ring_write(self, first: int, index: Num, value: Number) -> None:
        """Replace one."""
        text = self._text(value)
        self.cpp.append(f"s[{first} + int({index.name})] = {text};")
        self.numpy.append(f"s[rows, {first} + {index.name}.astype(int)] = {text}")

    # Tables.

    def table(self, values: Sequence[float]) -> str:
        """A constant array; its name."""
        listed = [float(v) for v in values]
        for name, known in self.tables.items():
            if known == listed:
                return name
        name = f"table{len(self.tables)}"
        self.tables[name] = listed
        return name

    def interval(self, table: str, x: Number) -> Num:
        """Number of the interval of rising values that x lies in, from 0; the first and last go on without end."""
        count = len(self.tables[table])
        return self.num(
            f"double(interval_of({table}, {count}, {{}}))",
            f"np.clip(np.searchsorted({table}, {{}}, side='right') - 1, 0, {count - 2}).astype(float)", x,
        )  # fmt: skip

    def entry(self, table: str, index: Number) -> Num:
        """A number of a table."""
        return self.num(f"{table}[int({{}})]", f"{table}[np.asarray({{}}).astype(int)]", index)

    # Functions of vectors that are written in both languages.

    def call(self, name: str, cpp: str, python: Any, given: Sequence[Number], count: int) -> list[Num]:
        """``count`` numbers of a function ``name(const double* in, double* out)``; ``python`` takes (n, in)."""
        self.calls.setdefault(name, (cpp, python))
        texts = [self._text(v) for v in given]
        call = f"v{self._count}"
        self._count += 1
        listed = ", ".join(texts) or "0.0"
        self.cpp.append(f"const double {call}_in[] = {{{listed}}}; double {call}[{max(count, 1)}];")
        self.cpp.append(f"{name}({call}_in, {call});")
        columns = ", ".join(f"np.broadcast_to({t}, rows.shape)" for t in texts)
        self.numpy.append(
            f"{call} = {name}(np.stack([{columns}], axis=1) if {len(texts)} else np.zeros((rows.size, 0)))"
        )
        return [Num(self, self._make("double", f"{call}[{k}]", f"{call}[:, {k}]", ())) for k in range(count)]
