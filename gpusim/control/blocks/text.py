"""Expression and Python function blocks."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, each
from gpusim.control.blocks.arithmetic import TRIGONOMETRY, quotient, trigonometric
from gpusim.control.blocks.logic import compared
from gpusim.control.blocks.sources import time_now
from gpusim.control.parameters import check_words
from gpusim.control.trace import Num, Truth
from gpusim.errors import ModelError
from gpusim.validate import shortened

_SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_UNKNOWN_SIGNS = (
    ast.FloorDiv, ast.MatMult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.LShift, ast.RShift, ast.In, ast.NotIn, ast.Is,
    ast.IsNot, ast.Invert,
)  # fmt: skip
_CONSTANTS = {"pi": math.pi, "inf": math.inf}
_PLAIN = ("sin", "cos", "exp", "log", "atan2", "pow")
_OTHER = ("sqrt", "abs", "floor", "min", "max", "round")
FUNCTIONS = tuple(sorted({*_PLAIN, *_OTHER, *TRIGONOMETRY}))


MAX_PYTHON_SIZE = 4096
"""Maximum number of values that a Python function returns for one world."""


def _listed(names: Sequence[str]) -> tuple[str, ...]:
    """Convert a name or a list of names to a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


MAX_DEPTH, MAX_NUMBER = 200, 1e300
"""Limits of a formula: maximum nesting depth, and maximum magnitude of a number."""


@block("expression")
class Expression(Block):
    """Evaluate a formula, given as text such as "kp * (a - b) if abs(a) > 0.1 else 0".

    The formula may use arithmetic, powers, comparisons, ``and``, ``or``, ``not`` and ``x if c else y``. Constants are
    pi and inf. Functions are sin cos tan asin acos atan atan2 exp log pow sqrt abs floor round min max. The inputs of
    the block are ``names``. By default, the inputs are all names in the formula, in alphabetical order. Division by
    zero gives 0. Write powers as ``x**n`` with a literal integer n from 0 to 8 if x can be negative. With other
    exponents, powers of zero and of negative numbers are 0. The block evaluates vectors component by component.
    """

    text: str
    names: Sequence[str] = field(default_factory=tuple)
    unit: str | None = None
    same_units = False

    def __post_init__(self) -> None:
        self._tree: ast.expr | None = None
        self.inputs = ()
        try:
            self._tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # too deep nesting raises the last two
            return
        called = {id(n.func) for n in ast.walk(self._tree) if isinstance(n, ast.Call)}
        found = [n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name) and id(n) not in called]
        self.inputs = _listed(self.names) or tuple(sorted({n for n in found if n not in _CONSTANTS}))

    def check(self, element: str) -> None:
        """Check the syntax and the names of the formula."""
        if self._tree is None:
            rule = f"text = {shortened(self.text)} is not a formula"
            raise validate.fail(element, rule, "give a formula such as 'a * (b - 1)'")
        if _is_deeper_than(self._tree, MAX_DEPTH):
            rule = f"text = {shortened(self.text)} has more than {MAX_DEPTH} nested operations"
            raise validate.fail(element, rule, "split it over several blocks")
        check_words(element, "names", _listed(self.names))
        try:
            _Reader({name: None for name in self.inputs}).check(self._tree)
        except ModelError as error:
            raise ModelError(f"{element}: in {shortened(self.text)} {error}") from None

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Evaluate the formula component by component."""
        assert self._tree is not None
        tree = self._tree

        def value(*numbers: Num) -> Num:
            return _Reader(dict(zip(self.inputs, numbers, strict=True)), c).number(tree)

        return {"out": each(value, *(inputs[port] for port in self.inputs))}


def _is_deeper_than(node: ast.expr, max_depth: int) -> bool:
    """Return whether the formula is nested more deeply than ``max_depth``."""
    level: list[ast.AST] = [node]
    for _ in range(max_depth):
        level = [child for part in level for child in ast.iter_child_nodes(part)]
    return bool(level)


class _Reader:
    """Evaluator of a formula."""

    def __init__(self, names: dict[str, Any], c: Context | None = None) -> None:
        self._names, self._c = names, c

    def check(self, node: ast.expr) -> None:
        """Check that the formula contains only known names, functions and operators.

        Raises:
            ModelError: a part of the formula is unknown.
        """
        called = {id(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)}
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                name = ast.unparse(part.func)
                if part.keywords and name in FUNCTIONS:
                    raise ModelError(f"{name} does not accept keyword arguments; remove '{part.keywords[0].arg}='")
                if name not in FUNCTIONS:
                    raise ModelError(f"the function {name!r} is unknown; known: {', '.join(FUNCTIONS)}")
                count = {"atan2": 2, "pow": 2}.get(name, 1 if name not in ("min", "max") else 0)
                if count and len(part.args) != count:
                    raise ModelError(f"{name} takes {count} values, not {len(part.args)}; give {count}")
                if not part.args:
                    raise ModelError(f"{name} has no values; give at least one")
            elif isinstance(part, ast.Name):
                if part.id in FUNCTIONS and part.id not in self._names and id(part) not in called:
                    raise ModelError(f"the function {part.id!r} has no values; write them in brackets after its name")
                if part.id not in self._names and part.id not in _CONSTANTS and part.id not in FUNCTIONS:
                    raise ModelError(f"the name {part.id!r} is not an input; add it to names, or remove names")
            elif isinstance(part, ast.Constant):
                if not isinstance(part.value, bool | int | float):
                    raise ModelError(f"{part.value!r} is not a number; give one")
                if not abs(part.value) <= MAX_NUMBER:
                    raise ModelError(f"a number is above {MAX_NUMBER:g}; give a smaller number")
            elif not isinstance(
                part, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.operator | ast.unaryop
                | ast.cmpop | ast.boolop | ast.expr_context
            ):  # fmt: skip
                raise ModelError(f"{ast.unparse(part)!r} is not allowed in a formula; use numbers, names and functions")
            if isinstance(part, _UNKNOWN_SIGNS):
                rule = f"the operator {type(part).__name__} is unknown"
                raise ModelError(f"{rule}; use + - * / % **, comparisons, and, or, not")

    def number(self, node: ast.expr) -> Num:
        """Trace a formula as a number."""
        assert self._c is not None
        t = self._c.trace
        if isinstance(node, ast.Constant):
            return t.constant(float(node.value))  # type: ignore[arg-type]
        if isinstance(node, ast.Name):
            return t.constant(_CONSTANTS[node.id]) if node.id not in self._names else self._names[node.id]
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            inner = self.number(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self._binary(self.number(node.left), node)
        if isinstance(node, ast.IfExp):
            return t.select(self.truth(node.test), self.number(node.body), self.number(node.orelse))
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            return self._call(node.func.id, [self.number(x) for x in node.args])
        return self.truth(node).number()

    def truth(self, node: ast.expr) -> Truth:
        """Trace a formula as a condition."""
        if isinstance(node, ast.BoolOp):
            made = [self.truth(x) for x in node.values]
            out = made[0]
            for other in made[1:]:
                out = out & other if isinstance(node.op, ast.And) else out | other
            return out
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.truth(node.operand)
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            made = [
                compared(self.number(a), _SIGNS[type(sign)], self.number(b))
                for a, sign, b in zip(parts, node.ops, parts[1:], strict=False)
            ]
            out = made[0]
            for other in made[1:]:
                out = out & other
            return out
        return self.number(node).is_true()

    def _binary(self, left: Num, node: ast.BinOp) -> Num:
        assert self._c is not None
        right, sign = self.number(node.right), type(node.op)
        if sign is ast.Pow:
            return self._power(left, node.right, right)
        if sign is ast.Mod:
            return left - right * self._c.trace.floor(quotient(self._c, left, right))
        if sign is ast.Div:
            return quotient(self._c, left, right)
        return left + right if sign is ast.Add else left - right if sign is ast.Sub else left * right

    def _power(self, base: Num, node: ast.expr, exponent: Num) -> Num:
        """Return a power. Compute constant integer exponents from 0 to 8 as repeated products."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and 0 <= node.value <= 8:
            out = base if node.value else base * 0.0 + 1.0
            for _ in range(node.value - 1):
                out = out * base
            return out
        return self._pow(base, exponent)

    def _pow(self, base: Num, exponent: Num) -> Num:
        assert self._c is not None
        t = self._c.trace
        return t.select(base <= 0.0, 0.0, t.function("pow", t.max(base, 1e-300), exponent))

    def _call(self, name: str, given: list[Num]) -> Num:
        assert self._c is not None
        t = self._c.trace
        if name in TRIGONOMETRY:
            return trigonometric(self._c, name, given[0])
        if name == "pow":
            return self._pow(*given)
        if name in _PLAIN:
            return t.function(name, *given)
        if name in ("min", "max"):
            out = given[0]
            for other in given[1:]:
                out = t.min(out, other) if name == "min" else t.max(out, other)
            return out
        return {"sqrt": t.sqrt, "abs": t.abs, "floor": t.floor, "round": t.rounded}[name](given[0])


@block("python")
class Python(Block):
    """Python function ``function(time, inputs)``. ``inputs`` is a dict of arrays by input name.

    The arrays and the result have the shape (worlds,) for numbers, or (worlds, n) for vectors of length n. The arrays
    contain only the worlds in which a sample is due. A diagram with a ``python`` block runs on the host. A reset does
    not change internal variables of the function, and files do not contain these variables.
    """

    function: Callable[..., Any]
    names: Sequence[str] = ("in",)
    size: int = 1
    unit: str | None = None
    host = True
    same_units = False

    def __post_init__(self) -> None:
        self.inputs = _listed(self.names)

    def check(self, element: str) -> None:
        """Check that the function is callable, and check ``size`` and ``names``."""
        if not callable(self.function):
            raise validate.fail(element, f"function = {self.function!r} can't be called", "give a function")
        if not 1 <= self.size <= MAX_PYTHON_SIZE:
            raise validate.fail(
                element, f"size = {self.size!r} is not within 1 to {MAX_PYTHON_SIZE}", "give a size in this range"
            )
        check_words(element, "names", self.inputs)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a number, or a vector of length ``size``, with the unit ``unit``."""
        return {"out": Kind(() if self.size == 1 else (self.size,), units.parse(self.unit))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Call the function."""
        sizes = [c.kinds[port].size for port in self.inputs]
        element, width = c.element, self.size

        def call(rows: Any) -> Any:
            parts = np.split(rows[:, 1:], np.cumsum(sizes)[:-1], axis=1) if sizes else []
            values = {p: x[:, 0] if x.shape[1] == 1 else x for p, x in zip(self.inputs, parts, strict=True)}
            try:
                result = np.asarray(self.function(rows[:, 0], values), float)
            except Exception as error:
                reported = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
                raise ModelError(f"{element}: its function raised {reported}; correct the function") from error
            shape = (len(rows),) if width == 1 else (len(rows), width)
            try:
                return np.broadcast_to(result, shape).reshape(len(rows), width)
            except ValueError:
                rule = f"its function returned the shape {result.shape}, not {shape}"
                raise validate.fail(element, rule, "return one value for each world") from None

        name = f"python{id(self)}"
        return {"out": c.trace.call(name, "", call, [time_now(c), *(x for p in self.inputs for x in inputs[p])], width)}
