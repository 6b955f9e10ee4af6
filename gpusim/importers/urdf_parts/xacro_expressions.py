"""Limits of the expressions in xacro files, such as ``${9**9**9}``, which would compute for hours."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gpusim.errors import ModelError

_MAX_BITS = 10_000
"""Maximum size of a whole number."""
_MAX_ITEMS = 1_000_000
"""Maximum length of a text, list or range."""
_LARGEST = {"factorial": 1000, "comb": 10_000, "perm": 1000}
"""Maximum arguments of functions of ``math`` that return whole numbers."""


def _refused(what: str) -> ModelError:
    return ModelError(f"an expression {what} that is too large")


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and exponent * base.bit_length() > _MAX_BITS:
        raise _refused("has a power")
    return base**exponent


def _product(left: Any, right: Any) -> Any:
    for items, count in ((left, right), (right, left)):
        if isinstance(items, str | bytes | list | tuple) and isinstance(count, int) and len(items) * count > _MAX_ITEMS:
            raise _refused(f"makes a {type(items).__name__}")
    return left * right


def _shift(value: Any, count: Any) -> Any:
    if isinstance(count, int) and count > _MAX_BITS:
        raise _refused("has a shift")
    return value << count


def _limited(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def checked(*given: Any) -> Any:
        if any(isinstance(x, int) and x > _LARGEST.get(name, x) for x in given):
            raise _refused(f"gives {name} a number")
        found = function(*given)
        if isinstance(found, range) and len(found[: _MAX_ITEMS + 1]) > _MAX_ITEMS:
            raise _refused("has a range")
        return found

    return checked


_FUNCTIONS = {"gpusim_power": _power, "gpusim_product": _product, "gpusim_shift": _shift, "gpusim_limited": _limited}
_OPERATORS: dict[type, str] = {ast.Pow: "gpusim_power", ast.Mult: "gpusim_product", ast.LShift: "gpusim_shift"}


class _Limits(ast.NodeTransformer):
    """Replace operators and functions whose results can be huge by functions that check the size."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802 (name of the base class)
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        return node if name is None else ast.Call(ast.Name(name, ast.Load()), [node.left, node.right], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("range", *_LARGEST):
            node.func = ast.Call(ast.Name("gpusim_limited", ast.Load()), [node.func, ast.Constant(name)], [])
        return node


def _evaluate(text: str, names: dict[str, Any], local_names: Any = None) -> Any:
    """Evaluate an expression like ``xacro.safe_eval``, with limits."""
    tree = ast.parse(text.strip(), "<expression>", "eval")
    used = [str(getattr(node, "id", getattr(node, "attr", ""))) for node in ast.walk(tree)]
    if hidden := [name for name in used if name.startswith(("__", "gpusim_"))]:
        raise ModelError(f"an expression uses {hidden[0]}, which is not allowed; remove it")
    limited = ast.fix_missing_locations(_Limits().visit(tree))
    names.update(__builtins__=_FUNCTIONS)
    return eval(compile(limited, "<expression>", "eval"), names, local_names)


@contextmanager
def limited_expressions(xacro: Any) -> Iterator[None]:
    """Let the package ``xacro`` evaluate expressions with limits."""
    usual = xacro.safe_eval
    xacro.safe_eval = _evaluate
    try:
        yield
    finally:
        xacro.safe_eval = usual
