"""Trace of the operations in one sample of a diagram, as C++ code for kernels and as NumPy code.

The Python code of a block computes with :class:`Num` and :class:`Truth` objects instead of numbers and conditions. The
compiler traces each block once. The trace contains C++ code for one world and NumPy code for all worlds. Both codes do
the same operations on doubles in the same order. IEEE 754 defines the rounding of each operation, so the results are
bit-identical. Elementary functions (``exact_math.py``, ``cuda_kernels/math/detmath.cuh``) also consist of operations
with defined rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusim.description.program import Ring

FUNCTIONS = ("sin", "cos", "exp", "log", "atan2", "pow")
"""Names of the elementary functions in the C++ namespace ``det`` and in the Python module ``exact_math``."""


class Value:
    """Result of an operation. ``name`` is the variable name in the trace."""

    def __init__(self, trace: Trace, name: str) -> None:
        self.trace, self.name = trace, name


class Truth(Value):
    """A traced condition (true or false in each world)."""

    def __and__(self, other: Truth) -> Truth:
        return self.trace.truth("({} && {})", "({} & {})", self, other)

    def __or__(self, other: Truth) -> Truth:
        return self.trace.truth("({} || {})", "({} | {})", self, other)

    def __invert__(self) -> Truth:
        return self.trace.truth("(!{})", "(~{})", self)

    def number(self) -> Num:
        """Return 1 if the condition is true, else 0."""
        return self.trace.select(self, 1.0, 0.0)


class Num(Value):
    """A traced number (double)."""

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
        """Return whether two numbers are equal, as a condition."""
        return self.trace.compare("==", self, other)

    def is_true(self) -> Truth:
        """Convert a number on a logic wire to a condition: true above 0.5."""
        return self > 0.5


Number = Num | float
"""Type of an operand of an operation."""


@dataclass
class StateSlot:
    """A state variable, which keeps its value from sample to sample. ``index`` is its index in the array of states."""

    index: int
    name: str


@dataclass
class Trace:
    """List of operations in order, as C++ and as NumPy code.

    Attributes:
        cpp, numpy: code with one line per operation.
        initial: initial values of the state variables.
        parameters: numbers that may differ between worlds.
        tables: constant arrays by name.
        calls: name of a called function -> (C++ definition, Python function).
        rings: ring buffers of state variables.
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

    # Operations.

    def _text(self, value: Value | float) -> str:
        if isinstance(value, Value):
            return value.name
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return {"inf": "INFINITE", "-inf": "(-INFINITE)"}.get(str(number), "NOT_A_NUMBER")
        text = repr(number)
        return f"({text})" if number < 0.0 or text.startswith("-") else text

    def _make(self, kind: str, cpp: str, numpy: str, given: Sequence[Value | float]) -> str:
        """Add an operation and return the name of its result."""
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
        """Add an operation that returns a number. The operands replace the ``{}`` in both expressions, in order."""
        return Num(self, self._make("double", cpp, numpy, given))

    def truth(self, cpp: str, numpy: str, *given: Value | float) -> Truth:
        """Add an operation that returns a condition. The arguments are as in :meth:`num`."""
        return Truth(self, self._make("bool", cpp, numpy, given))

    def binary(self, sign: str, a: Number, b: Number) -> Num:
        """Return the result of an arithmetic operation."""
        return self.num(f"{{}} {sign} {{}}", f"{{}} {sign} {{}}", a, b)

    def compare(self, sign: str, a: Number, b: Number) -> Truth:
        """Return a comparison."""
        return self.truth(f"({{}} {sign} {{}})", f"np.asarray({{}} {sign} {{}})", a, b)

    def constant(self, value: float) -> Num:
        """Return a constant."""
        return Num(self, self._text(value))

    def plain(self, value: Num) -> Number:
        """Convert a constant to a float. Return other numbers unchanged."""
        try:
            return float(value.name.strip("()"))
        except ValueError:
            return value

    # Functions of numbers.

    def select(self, condition: Truth, a: Number, b: Number) -> Num:
        """Return ``a`` if the condition is true, else ``b``."""
        return self.num("({} ? {} : {})", "np.where({}, {}, {})", condition, a, b)

    def max(self, a: Number, b: Number) -> Num:
        """Return the maximum, or NaN if a number is NaN."""
        return self.num("max_or_nan({0}, {1})", "np.where(({0} > {1}) | ({0} != {0}), {0}, {1})", a, b)

    def min(self, a: Number, b: Number) -> Num:
        """Return the minimum, or NaN if a number is NaN."""
        return self.num("min_or_nan({0}, {1})", "np.where(({0} < {1}) | ({0} != {0}), {0}, {1})", a, b)

    def limit(self, x: Number, lower: Number, upper: Number) -> Num:
        """Clip a number to two bounds."""
        return self.min(self.max(x, lower), upper)

    def abs(self, x: Number) -> Num:
        """Return the absolute value."""
        return self.num("fabs({})", "np.abs({})", x)

    def sqrt(self, x: Number) -> Num:
        """Return the square root, or 0 for negative numbers."""
        return self.num("sqrt({})", "np.sqrt({})", self.max(x, 0.0))

    def floor(self, x: Number) -> Num:
        """Return the greatest integer <= ``x``."""
        return self.num("whole_below({})", "np.floor({})", x)

    def rounded(self, x: Number) -> Num:
        """Return the nearest integer. Values such as 2.5 round to the even integer."""
        return self.num("det::round_even({})", "np.rint({})", x)

    def function(self, name: str, *given: Number) -> Num:
        """Return the value of a function in FUNCTIONS."""
        return self.num(f"det::{name}({', '.join(['{}'] * len(given))})",
                        f"exact_math.{name}({', '.join(['{}'] * len(given))})", *given)  # fmt: skip

    # Inputs and state.

    def signal(self, column: int) -> Num:
        """Return the value of a signal of the simulation."""
        return self.num(f"in[{column}]", f"given[:, {column}]")

    def command(self, column: int) -> Num:
        """Return the current value of a command."""
        return self.num(f"control[{column}]", f"control[:, {column}].copy()")

    def parameter(self, value: float) -> Num:
        """Allocate a parameter that can differ between worlds. Each call allocates a new parameter."""
        self.parameters.append(float(value))
        index = len(self.parameters) - 1
        return self.num(f"par[{index}]", f"par[:, {index}]")

    def add_state(self, initial: float) -> StateSlot:
        """Allocate a state variable."""
        self.initial.append(float(initial))
        index = len(self.initial) - 1
        return StateSlot(index, self._make("double", f"s[{index}]", f"s[:, {index}].copy()", ()))

    def read_state(self, slot: StateSlot) -> Num:
        """Return the value of a state variable at the start of the sample."""
        return Num(self, slot.name)

    def write_state(self, slot: StateSlot, value: Number) -> None:
        """Set the value of a state variable for the next sample."""
        text = self._text(value)
        self.cpp.append(f"s[{slot.index}] = {text};")
        self.numpy.append(f"s[:, {slot.index}] = {text}")

    def command_out(self, column: int, value: Number) -> None:
        """Write a command."""
        text = self._text(value)
        self.cpp.append(f"control[{column}] = {text};")
        self.numpy.append(f"control[:, {column}] = {text}")

    def normal(self, seed: int) -> Num:
        """Return a normal random number that is new in each sample. Each call uses a new random stream."""
        self.streams += 1
        given = float(seed), float(self.streams)
        return self.num("normal_number({}, s[1], s[0], {})", "noise.normal_number({}, s[:, 1], s[:, 0], {})", *given)

    # Ring buffers, for delays of many samples.

    def ring(self, write_index: StateSlot, count: int, initial: float) -> int:
        """Allocate a ring buffer and return the index of its first entry.

        ``write_index`` is the state variable that stores the write index.
        """
        self.initial += [float(initial)] * count
        first = len(self.initial) - count
        self.rings.append(Ring(write_index.index, first, count))
        return first

    def ring_begin(self, first: int, count: int, value: Number) -> None:
        """Fill the ring buffer with ``value`` in the first sample."""
        text = self._text(value)
        self.cpp.append(f"if (s[0] == 0.0) for (int k = 0; k < {count}; ++k) s[{first} + k] = {text};")
        is_first = "s[:, 0] == 0.0"
        initial = f"np.broadcast_to({text}, rows.shape)[{is_first}, None]"
        self.numpy.append(f"if ({is_first}).any(): s[{is_first}, {first}:{first + count}] = {initial}")

    def ring_read(self, first: int, index: Num) -> Num:
        """Return an entry of a ring buffer."""
        return self.num(f"s[{first} + int({{}})]", f"s[rows, {first} + {{}}.astype(int)].copy()", index)

    def ring_write(self, first: int, index: Num, value: Number) -> None:
        """Overwrite an entry of a ring buffer."""
        text = self._text(value)
        self.cpp.append(f"s[{first} + int({index.name})] = {text};")
        self.numpy.append(f"s[rows, {first} + {index.name}.astype(int)] = {text}")

    # Tables.

    def table(self, values: Sequence[float]) -> str:
        """Add a constant array to the trace, and return its name. Equal arrays share one name."""
        listed = [float(v) for v in values]
        for name, known in self.tables.items():
            if known == listed:
                return name
        name = f"table{len(self.tables)}"
        self.tables[name] = listed
        return name

    def interval(self, table: str, x: Number) -> Num:
        """Return the index (from 0) of the table interval that contains x. The outer intervals are unbounded."""
        count = len(self.tables[table])
        return self.num(
            f"double(interval_of({table}, {count}, {{}}))",
            f"np.clip(np.searchsorted({table}, {{}}, side='right') - 1, 0, {count - 2}).astype(float)", x,
        )  # fmt: skip

    def entry(self, table: str, index: Number) -> Num:
        """Return an entry of a table."""
        return self.num(f"{table}[int({{}})]", f"{table}[np.asarray({{}}).astype(int)]", index)

    # Vector functions that exist in both languages.

    def call(self, name: str, cpp: str, python: Any, given: Sequence[Number], count: int) -> list[Num]:
        """Call ``name(const double* in, double* out)`` and return ``count`` results. ``python``: the NumPy version."""
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
