"""Allowed instructions in the kernels' PTX. They have the same result on every machine.

Sums, products, quotients and roots need ``.rn``: IEEE 754 defines this rounding, and ptxas does not fuse such
instructions. If both operands of ``max`` or ``min`` can be zero, the result may only be compared, because PTX does not
define the sign of zero. Instructions must not exchange data between the threads of a warp, and every call must name its
target. NVRTC 12 writes the same PTX for all architectures before sm_100, except for ``.target``.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import NamedTuple

from ci.ptx.reader import Function, Instruction, Module, call_parts, short_name

_ROUNDED, _FLOAT, _WHOLE, _BITS = r"rn\.f(32|64)", r"f(32|64)", r"[su](16|32|64)", r"b(16|32|64)"
_ANY = r"[bsuf](8|16|32|64)"
_EQUAL, _ORDERED = "eq|ne", "lt|le|gt|ge"
_UNORDERED = "equ|neu|ltu|leu|gtu|geu|num|nan"
_ALLOWED = {
    "add": f"{_ROUNDED}|{_WHOLE}",
    "sub": f"{_ROUNDED}|{_WHOLE}",
    "mul": rf"{_ROUNDED}|lo\.{_WHOLE}|wide\.[su](16|32)|hi\.[su](16|32|64)",
    "mad": rf"lo\.{_WHOLE}|wide\.[su]32",
    "div": f"{_ROUNDED}|{_WHOLE}",
    "rem": _WHOLE,
    "rcp": _ROUNDED,
    "sqrt": _ROUNDED,
    "neg": f"{_FLOAT}|s(16|32|64)",
    "abs": f"{_FLOAT}|s(16|32|64)",
    "min": f"{_FLOAT}|{_WHOLE}",
    "max": f"{_FLOAT}|{_WHOLE}",
    "setp": rf"({_EQUAL}|{_ORDERED})\.({_FLOAT}|{_WHOLE})|({_EQUAL})\.{_BITS}|({_UNORDERED})\.{_FLOAT}",
    "selp": rf"{_BITS}|{_WHOLE}|{_FLOAT}",
    "and": f"{_BITS}|pred",
    "or": f"{_BITS}|pred",
    "xor": f"{_BITS}|pred",
    "not": f"{_BITS}|pred",
    "shl": _BITS,
    "shr": rf"{_BITS}|{_WHOLE}",
    "shf": r"[lr]\.wrap\.b32",
    "bfi": "b32",
    "bfe": r"[su](32|64)",
    "prmt": "b32",
    "cvt": rf"[su](8|16|32|64)\.[su](8|16|32|64)|rn\.f32\.f64|f64\.f32|rn\.{_FLOAT}\.{_WHOLE}|rzi\.{_WHOLE}\.{_FLOAT}",
    "mov": rf"pred|{_ANY}",
    "cvta": r"(to\.)?(local|global|shared)\.u64",
    "ld": rf"((global|local|shared)\.)?(nc\.)?(v[24]\.)?{_ANY}|param\.(v[24]\.)?{_ANY}|volatile\.global\.[bsu]32",
    "st": rf"((global|local|shared)\.)?(v[24]\.)?{_ANY}|param\.(v[24]\.)?{_ANY}|volatile\.global\.[bsu]32",
    # relaxed.gpu is the default, which newer compilers write explicitly
    "atom": r"(relaxed\.gpu\.)?((global|shared)\.)?(add|min|max|or|and|xor|exch)\.[sub](32|64)",
    "red": r"(relaxed\.gpu\.)?((global|shared)\.)?(add|min|max|or|and|xor)\.[sub](32|64)",
    "bar": r"sync|warp\.sync",
    "membar": "gl",
    "bra": "(uni)?",
    "call": "(uni)?",
    "ret": "(uni)?",
    "trap": "",
}
_REASONS = (
    (r"fma\..*|mad\..*f(32|64)", "rounds once where the CPU rounds twice: compile with --fmad=false"),
    (r".*\.ftz\b.*", "flushes denormal numbers to zero: compile with --ftz=false"),
    (r".*\.(approx|full)\b.*", "is not rounded as IEEE 754 has it: --prec-div=true, --prec-sqrt=true, detmath.cuh"),
    (r"(add|sub|mul|div|sqrt|rcp)\.(sat\.)?f(32|64)", "has no .rn, and ptxas may fuse it: compile with --fmad=false"),
    (r".*\.(rz|rm|rp)\b.*", "rounds in another direction than the CPU: use the default"),
    (r"(shfl|vote|match|activemask|redux|elect)\b.*", "couples the threads of a warp: the CPU has none"),
    (r"(atom|red)\..*f(16|32|64).*", "adds in an unknown order: reduce in a fixed order"),
    (r"brx\b.*", "indirect jump: make no jump table"),
)
_INDIRECT = "indirect call: call a function by its name"
_FOREIGN = "calls a function that the kernels do not hold: its bits may differ; use detmath.cuh"
_ZEROS = "may give another zero than the CPU's comparison: use max_ and min_ of platform.cuh"
_CONSTANT = re.compile(r"0[df]([0-9A-F]+)$")
_UNKNOWN = "is an unknown form: add it to ci/ptx/forms.py and instructions.py, with a test of its bits"


class Fault(NamedTuple):
    """Forbidden instruction: kernels that reach it, function, line, text, and the reason."""

    kernels: str
    where: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kernels}, {self.where}: `{self.text}` {self.reason}"


@cache
def why_not(name: str) -> str:
    """Return the reason why an instruction of this name is forbidden, or an empty string."""
    opcode, _, modifiers = name.partition(".")
    if re.fullmatch(_ALLOWED.get(opcode, "(?!)"), modifiers):
        return ""
    return next((reason for pattern, reason in _REASONS if re.fullmatch(pattern, name)), _UNKNOWN)


def check_forms(module: Module, outer: Collection[str] = ()) -> list[Fault]:
    """Return the forbidden instructions of a module. ``outer`` contains functions linked from other modules."""
    faults = []
    for function in module.functions.values():
        for s in function.instructions():
            reason = why_not(s.name) or (_why_not_call(module, s, outer) if s.name.startswith("call") else "")
            if not reason and _is_min_or_max(s) and not _has_number(s) and not _only_compared(function, s):
                reason = _ZEROS
            if reason:
                where = f"{module.where(s.position)}, in {short_name(function.name)}"
                faults.append(Fault(_kernels(module, function.name), where, s.text, reason))
    return faults


def _is_min_or_max(s: Instruction) -> bool:
    """Return whether an instruction is the maximum or minimum of two floating-point numbers."""
    return re.match(r"(max|min)\.f", s.name) is not None


def _only_compared(function: Function, s: Instruction) -> bool:
    """Return whether all instructions that read the result of ``s`` are comparisons."""
    waiting, seen, compared = [_written(s)], set(), False
    while waiting:
        register = waiting.pop()
        if register in seen:
            continue
        seen.add(register)
        for other in function.instructions():
            if register not in _read(other):
                continue
            if _is_min_or_max(other):
                waiting.append(_written(other))
            elif not other.name.startswith("setp."):
                return False
            else:
                compared = True
    return compared


def _written(s: Instruction) -> str:
    return s.operands.split(",")[0].strip()


def _read(s: Instruction) -> list[str]:
    """Return the registers that an instruction reads."""
    first, _, sources = s.operands.partition(",")
    return re.findall(r"%\w+", s.operands if "[" in first or s.name.startswith(("call", "st", "red")) else sources)


def _has_number(s: Instruction) -> bool:
    """Return whether an operand is a constant that is not zero."""
    constants = (_CONSTANT.match(operand.strip()) for operand in s.operands.split(","))
    return any(match and match[1].strip("0") not in ("", "8") for match in constants)


def _why_not_call(module: Module, s: Instruction, outer: Collection[str]) -> str:
    target = call_parts(s)[1]
    if target.startswith("%"):
        return _INDIRECT
    return "" if target in module.functions or target in outer else _FOREIGN


def _kernels(module: Module, name: str) -> str:
    """Return the names of the kernels that reach a function."""
    entries = [f.name for f in module.functions.values() if f.entry and name in module.reached(f.name)]
    return f"kernel {', '.join(entries)}" if entries else "no kernel"
