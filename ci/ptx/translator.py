"""Translator of a PTX module to C++. Each PTX function becomes a C++ function, and each instruction becomes a
statement."""

from __future__ import annotations

import json
from typing import NamedTuple

from ci.ptx.forms import check_forms
from ci.ptx.instructions import Instructions, storage, symbol
from ci.ptx.reader import Brace, Function, Instruction, Label, Module, Param, PtxError, SourcePosition, short_name

Site = tuple[str, SourcePosition]
_BRANCHES = ("bra", "ret", "trap")


def translate(module: Module, counted: bool = False) -> str:
    """Return the C++ source of a module, for executor.hpp.

    Raises:
        PtxError: an instruction is not allowed (``forms.py``) or has no translation.
    """
    faults = check_forms(module)
    if faults:
        raise PtxError("\n".join(str(fault) for fault in faults[:5]))
    sites: list[Site] = []
    functions = list(module.functions.values())
    out = ['#include "executor.hpp"', "namespace {"]
    out += [f"u64 {symbol(name)};" for name in module.tables]
    out += [f"void {symbol(f.name)}({_signature(f)});" for f in functions]
    first = 0
    for function in functions:
        blocks = basic_blocks(function) if counted else []
        out += _FunctionWriter(module, function, sites).lines({b.start: first + k for k, b in enumerate(blocks)})
        first += len(blocks)
    out += [
        f"const u8 {symbol(name)}_values[] = {{{', '.join(map(str, values))}}};"
        for name, values in module.tables.items()
    ]
    out += ["}", 'extern "C" const Table ptx_tables[] = {']
    out += [f"    {{&{symbol(name)}, {symbol(name)}_values, {len(x)}}}," for name, x in module.tables.items()]
    out += ["    {nullptr, nullptr, 0}};", 'extern "C" const Kernel ptx_kernels[] = {']
    for f in functions:
        if f.entry:
            size, waits, spins = _layout(f.params)[1], *(int(_has(module, f.name, x)) for x in ("bar.", "ld.volatile."))
            out.append(f'    {{"{f.name}", {symbol(f.name)}, {size}, {waits}, {spins}}},')
    out += ["    {nullptr, nullptr, 0, 0}};", 'extern "C" const char* const ptx_sites[] = {']
    out += [f"    {json.dumps(f'{module.where(position)}, in {name}')}," for name, position in sites]
    return "\n".join([*out, "    nullptr};", ""])


class BasicBlock(NamedTuple):
    """Consecutive instructions of a function without branches. ``start`` is the index of the first instruction."""

    start: int
    instructions: tuple[Instruction, ...]


def basic_blocks(function: Function) -> list[BasicBlock]:
    """Return the basic blocks of a function. A block ends after a branch or return, or before a label."""
    blocks: list[BasicBlock] = []
    start, inside = 0, list[Instruction]()
    for k, s in enumerate(function.body):
        if isinstance(s, Instruction):
            start, inside = (start if inside else k), [*inside, s]
        if inside and (isinstance(s, Label) or (isinstance(s, Instruction) and s.name.split(".")[0] in _BRANCHES)):
            blocks.append(BasicBlock(start, tuple(inside)))
            inside = []
    return [*blocks, BasicBlock(start, tuple(inside))] if inside else blocks


def _signature(f: Function) -> str:
    if f.entry:
        return "Thread* t, const u8* entry_params"
    results = [f"void* {symbol(p.name)}" for p in f.results]
    return ", ".join(["Thread* t", *results, *(f"{storage(p)} {symbol(p.name)}" for p in f.params)])


def _layout(params: list[Param]) -> tuple[dict[str, int], int]:
    """Return the offset of each parameter of a kernel, and their total size."""
    offsets, end = {}, 0
    for p in params:
        end = -(-end // p.align) * p.align
        offsets[p.name] = end
        end += p.size
    return offsets, end


def _has(module: Module, name: str, form: str) -> bool:
    """Return whether a function or its called functions have an instruction that begins with ``form``."""
    reached = (module.functions[f] for f in module.reached(name))
    return any(s.name.startswith(form) for f in reached for s in f.instructions())


class _FunctionWriter(Instructions):
    """Writer of the C++ code for one function."""

    def __init__(self, module: Module, function: Function, sites: list[Site]) -> None:
        super().__init__(function.registers, {x.name for x in function.locals}, module.shared, set(module.tables))
        self._function, self._sites, self._position = function, sites, SourcePosition()
        self._offsets = _layout(function.params)[0] if function.entry else {}
        self._results = {p.name for p in function.results}

    def site(self) -> int:
        self._sites.append((short_name(self._function.name), self._position))
        return len(self._sites) - 1

    def param_address(self, name: str) -> str:
        if name in self._offsets:
            return f"entry_params + {self._offsets[name]}"
        return f"(u8*){'' if name in self._results else '&'}{symbol(name)}"

    def lines(self, counted: dict[int, int]) -> list[str]:
        """Return the lines of the function."""
        f, body = self._function, []
        for k, s in enumerate(f.body):
            if k in counted:
                body.append(f"    HIT({counted[k]});")
            body.append(f"    {self._statement(s)}")
        head = [f"void {symbol(f.name)}({_signature(f)}) {{"]
        variables: dict[str, list[str]] = {}
        for name, kind in self.used.items():
            variables.setdefault(kind, []).append(name)
        head += [f"    {kind} {', '.join(names)};" for kind, names in variables.items()]
        head += [f"    Local {symbol(x.name)}(t, {x.size}, {x.align});" for x in f.locals]
        return [*head, *body, "}"]

    def _statement(self, s: Label | Brace | Param | Instruction) -> str:
        if isinstance(s, Label):
            return f"{symbol(s.name)}:;"
        if isinstance(s, Brace):
            return s.text
        if isinstance(s, Param):
            return f"{storage(s)} {symbol(s.name)};"
        self._position = s.position
        try:
            return self.code(s)
        except PtxError as error:
            raise PtxError(f"{error} (in {short_name(self._function.name)})") from error
