"""Expressions of machine files: arithmetic with named values, without access to Python."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.errors import GpusimError, ModelError, unknown_name
from gpusim.transform import Transform

_LONGEST = 1000
_MAX_NUMBERS = 100_000
_NAME = re.compile(r"\{([A-Za-z_]\w*)\}")

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%", ast.Pow: "**"}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _norm(vector: Any) -> float:
    return float(np.linalg.norm(np.asarray(vector, float)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sqrt", "exp")},
    **{name: getattr(math, name) for name in ("log", "hypot", "floor", "ceil", "copysign", "radians", "degrees")},
    "abs": abs,
    "min": min,
    "max": max,
    "dist": math.dist,
    "norm": _norm,
    "dot": lambda a, b: float(np.dot(np.asarray(a, float), np.asarray(b, float))),
    "cross": lambda a, b: np.cross(np.asarray(a, float), np.asarray(b, float)),
}
CONSTANTS = {"pi": math.pi, "inf": math.inf}
_READABLE = tuple(f"gpusim.{name}" for name in ("machines", "actuators", "joints", "control", "sensors", "contact"))
"""Expressions may read attributes of objects from these packages."""
_CALLABLE = "gpusim.machines"
"""Expressions may call methods of objects from this package, such as ``track.drive_speed(1.0)``."""


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    An expression may contain numbers, texts, names, vectors ``[x, y, z]``, ``+ - * / % **``, comparisons, ``and``,
    ``or``, ``not``, ``a if c else b``, indices such as ``x[0]``, and the functions in ``FUNCTIONS``. Results of calls
    have attributes and methods, such as ``wheel.spin``. Attributes with a leading underscore are errors.

    Args:
        text: the expression, without the leading "=".
        names: name -> known value.

    Raises:
        ModelError: the expression breaks a rule.
    """
    if len(text) > _LONGEST:
        raise validate.fail("expression", f"has {len(text)} letters", f"give at most {_LONGEST}")
    shown = f"expression '{text.strip():.80}'"
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise validate.fail(shown, "is not valid", "write it as in '= 0.5 * width + 1'") from None
    try:
        with np.errstate(all="ignore"):
            result = _Evaluator(names).value(tree.body)
    except GpusimError as error:
        raise ModelError(f"{shown}: {error}") from None
    except OverflowError:
        raise validate.fail(shown, "has a number that is too large", "check its numbers") from None
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise validate.fail(shown, f"cannot be computed ({reason:.80})", "check its numbers and names") from None
    return result


class _Evaluator:
    """Evaluator of one syntax tree."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def value(self, node: ast.expr) -> Any:
        """Return the value of a node of the syntax tree."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise ModelError(f"it has a {type(node).__name__}, which is not allowed; use numbers, names and functions")
        return method(node)

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, bool | int | float | str):
            raise ModelError(f"{node.value!r} is not allowed; give a number")
        return filled(node.value, self._names) if isinstance(node.value, str) else node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id in self._names:
            return vector(self._names[node.id])
        if node.id in CONSTANTS:
            return CONSTANTS[node.id]
        raise unknown_name("name", node.id, [*self._names, *CONSTANTS, *FUNCTIONS])

    def _list(self, node: ast.List) -> Any:
        return vector([self.value(item) for item in node.elts])

    _tuple = _list

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        poses = isinstance(left, Transform) and isinstance(right, Transform) and isinstance(node.op, ast.Mult)
        if not poses and not (_is_number(left) and _is_number(right)) or type(node.op) not in _OPERATORS:
            sign = _SIGNS.get(type(node.op), type(node.op).__name__)
            raise ModelError(f"{_description(left)} {sign} {_description(right)} has no value; give numbers or vectors")
        if isinstance(node.op, ast.Pow):  # use floats, because powers of whole numbers have no maximum
            left, right = (x if isinstance(x, np.ndarray) else float(x) for x in (left, right))
        result = _OPERATORS[type(node.op)](left, right)
        if isinstance(result, complex) or isinstance(result, int) and abs(result) > 2**63:
            raise ModelError("a number is too large or not real; check it")
        return result

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if not _is_number(value) or isinstance(node.op, ast.Invert):
            raise ModelError(f"{_description(value)} is not a number; give a number")
        return -value if isinstance(node.op, ast.USub) else value

    def _compare(self, node: ast.Compare) -> bool:
        values = [self.value(item) for item in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        if any(type(op) not in _COMPARISONS for op in node.ops):
            raise ModelError("it has an unknown comparison; use < <= > >= == !=")
        return all(bool(_COMPARISONS[type(op)](a, b)) for op, a, b in pairs)

    def _boolop(self, node: ast.BoolOp) -> bool:
        values = (bool(self.value(item)) for item in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        holder, index = self.value(node.value), self.value(node.slice)
        if not isinstance(holder, np.ndarray | list | tuple | dict):
            raise ModelError(f"{_description(holder)} has no elements; give a vector or a table")
        if isinstance(holder, dict) and index not in holder:
            raise unknown_name("name", str(index), [str(key) for key in holder])
        return vector(holder[index])

    def _attribute(self, node: ast.Attribute) -> Any:
        return vector(attribute(self.value(node.value), node.attr))

    def _call(self, node: ast.Call) -> Any:
        if node.keywords:
            raise ModelError("it gives arguments by name; give them in order")
        arguments = [self.value(item) for item in node.args]
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value)
            method = attribute(owner, node.func.attr)
            if not type(owner).__module__.startswith(_CALLABLE) or not callable(method):
                raise ModelError(f"{node.func.attr} cannot be called; use a function of machine files")
            return method(*arguments)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        value = self._names.get(name)
        if getattr(value, "for_expressions", False):
            return value(*arguments)  # type: ignore[misc]
        if name not in FUNCTIONS:
            raise unknown_name("function", name, FUNCTIONS)
        return FUNCTIONS[name](*arguments)


def attribute(value: Any, name: str) -> Any:
    """Return a public attribute of an object that a call returned, such as ``wheel.spin``.

    Raises:
        ModelError: ``value`` is not an object from a call.
        UnknownNameError: the object has no attribute ``name``.
    """
    if not type(value).__module__.startswith(_READABLE):
        raise ModelError(f"{_description(value)} has no attribute '{name}'; give a result of a call")
    known = [key for key in dir(value) if not key.startswith("_")]
    if name not in known:
        raise unknown_name(f"attribute of a {type(value).__name__}", name, known)
    return getattr(value, name)


def vector(value: Any) -> Any:
    """Convert a list of numbers to an array. Return any other value unchanged."""
    if isinstance(value, list | tuple) and value and len(value) <= _MAX_NUMBERS and all(map(_is_scalar, value)):
        return np.array(value, float)
    return value


def filled(text: str, names: Mapping[str, Any]) -> str:
    """Replace names in braces by their values: "leg_{n}" becomes "leg_2" if ``n`` is 2.

    Unknown names in braces stay unchanged.
    """

    def shown(match: re.Match[str]) -> str:
        value = names.get(match[1])
        return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else match[0]

    return _NAME.sub(shown, text) if "{" in text else text


def _is_scalar(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_scalar(value) or isinstance(value, np.ndarray)


def _description(value: Any) -> str:
    if isinstance(value, str):
        return f"text {value!r:.40}"
    if isinstance(value, bool | int | float):
        return f"{value!r:.40}"
    if isinstance(value, np.ndarray):
        return "a vector"
    return f"a {type(value).__name__}"
