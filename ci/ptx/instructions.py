"""Translate single PTX instructions to C++.

A register becomes a variable. A floating-point instruction becomes a C++ operation with the same IEEE result. Integer
operations use unsigned types.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from ci.ptx.reader import Instruction, Param, PtxError, call_parts

_SPECIAL = {"%tid.x": "t->tid", "%ntid.x": "t->ntid", "%ctaid.x": "t->ctaid", "%nctaid.x": "t->nctaid"}
_SPACES = ("global", "local", "shared", "param")
_ORDERED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# True if a number is NaN.
_UNORDERED = {
    "equ": "!({a} < {b} || {a} > {b})",
    "neu": "{a} != {b}",
    "ltu": "!({a} >= {b})",
    "leu": "!({a} > {b})",
    "gtu": "!({a} <= {b})",
    "geu": "!({a} < {b})",
    "num": "is_number({a}, {b})",
    "nan": "!is_number({a}, {b})",
}
_REGISTER = re.compile(r"%[A-Za-z_]+\d*$")
_NUMBER = re.compile(r"-?(0x[0-9A-Fa-f]+|\d+)U?$")
_ADDRESS = re.compile(r"\[([\w%$]+)(?:\+(-?\d+))?\]$")


def c_type(kind: str) -> str:
    """Return the C++ name of a PTX type."""
    return {"pred": "bool"}.get(kind, kind.replace("b", "u"))


def unsigned(kind: str) -> str:
    """Return the unsigned type of the same width."""
    return "u" + kind[1:]


def symbol(name: str) -> str:
    """Return a C++ name for a PTX name. Names of registers cannot collide with names of types."""
    return name.replace("$", "_").replace("%", "v_")


def storage(param: Param) -> str:
    """Return the C++ type that stores a parameter."""
    return {(4, 4): "u32", (8, 8): "u64"}.get((param.size, param.align), f"Bytes<{param.size}, {param.align}>")


def split_operands(text: str) -> list[str]:
    """Split operands at the commas outside of brackets."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text)]


class Instructions(ABC):
    """Generator of C++ for the instructions of one function.

    Args:
        registers: types of registers by prefix and by name, as in ``reader.Function``.
        locals_: names of local arrays.
        shared: names of arrays in shared memory.
        tables: names of arrays in global memory.
    """

    def __init__(self, registers: dict[str, str], locals_: set[str], shared: list[str], tables: set[str]) -> None:
        self._registers, self._locals, self._shared, self._tables = registers, locals_, shared, tables
        self.used: dict[str, str] = {}

    @abstractmethod
    def site(self) -> int:
        """Return the number (site) that identifies the instruction's source line."""

    @abstractmethod
    def param_address(self, name: str) -> str:
        """Return the address of a parameter."""

    def code(self, s: Instruction) -> str:
        """Return the C++ statement of an instruction.

        Raises:
            PtxError: the instruction has no translation.
        """
        opcode, *modifiers = s.name.split(".")
        method = getattr(self, f"op_{opcode}", None)
        if method is None:
            raise PtxError(f"instruction {s.text!r}: add it to ci/ptx/instructions.py")
        try:
            if opcode == "call":
                code = self.op_call(s)
            else:
                code = method(modifiers, *split_operands(s.operands))
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise PtxError(f"instruction {s.text!r}: add its form to ci/ptx/instructions.py") from error
        if not s.guard:
            return str(code)
        return f"if ({'!' if s.guard[0] == '!' else ''}{self.operand(s.guard.lstrip('!'), 'pred')}) {{ {code} }}"

    # Operands.

    def register(self, name: str) -> tuple[str, str]:
        """Return the C++ name and type of a register."""
        kind = self._registers.get(name) or self._registers[name.rstrip("0123456789")]
        self.used[symbol(name)] = c_type(kind)
        return symbol(name), c_type(kind)

    def operand(self, text: str, kind: str) -> str:
        """Return a C++ expression that reads an operand as the PTX type ``kind``."""
        wanted_type = c_type(kind)
        if text in _SPECIAL:
            return f"({wanted_type}){_SPECIAL[text]}"
        if _REGISTER.match(text):
            name, have = self.register(text)
            return name if have == wanted_type else f"as<{wanted_type}>({name})"
        if text.lower().startswith(("0d", "0f")):
            suffix = {"d": "f64_of(0x{}ull)", "f": "f32_of(0x{}u)"}[text[1].lower()]
            return suffix.format(text[2:])
        if _NUMBER.match(text):
            number = int(text.rstrip("U"), 0)
            return (
                ("false", "true")[number != 0] if kind == "pred" else f"({wanted_type})0x{number & (1 << 64) - 1:x}ull"
            )
        if text in self._shared:
            return f"({wanted_type})t->shared"
        if text in self._tables:
            return f"({wanted_type}){symbol(text)}"
        if text in self._locals:
            return f"({wanted_type}){symbol(text)}.address"
        raise ValueError(text)

    def assign(self, target: str, value: str, kind: str) -> str:
        """Return ``target = value``, where the value has the PTX type ``kind``. The target "_" discards the value."""
        if target == "_":
            return f"(void)({value});"
        name, have = self.register(target)
        return f"{name} = {value};" if have == c_type(kind) else f"{name} = as<{have}>(({c_type(kind)})({value}));"

    def address(self, text: str) -> tuple[str, str]:
        """Split an address in brackets into base and offset."""
        match = _ADDRESS.match(text)
        if match is None:
            raise ValueError(text)
        return match[1], match[2] or "0"

    # Moves and memory.

    def op_mov(self, m: list[str], to: str, source: str) -> str:
        kind, half = m[0], f"b{int(m[0][1:]) // 2}" if m[0] != "pred" else ""
        if source.startswith("{"):
            low, high = (self.operand(x, half) for x in split_operands(source[1:-1]))
            return self.assign(to, f"pack<{c_type(kind)}>({low}, {high})", kind)
        if to.startswith("{"):
            whole = self.operand(source, kind)
            low, high = split_operands(to[1:-1])
            return (
                f"{{ const {c_type(kind)} whole = {whole}; {self.assign(low, f'({c_type(half)})whole', half)} "
                f"{self.assign(high, f'({c_type(half)})(whole >> {half[1:]})', half)} }}"
            )
        return self.assign(to, self.operand(source, kind), kind)

    def op_cvta(self, m: list[str], to: str, source: str) -> str:
        return self.assign(to, self.operand(source, "u64"), "u64")

    def _space(self, m: list[str]) -> tuple[str, int, str]:
        """Return memory space, number of elements and type of a load or store."""
        space = m[0] if m[0] in _SPACES else "generic"
        return space, next((int(x[1:]) for x in m if x in ("v2", "v4")), 1), m[-1]

    def _at(self, text: str) -> str:
        base, offset = self.address(text)
        return f"{self.operand(base, 'u64')} + {offset}"

    def op_ld(self, m: list[str], to: str, source: str) -> str:
        if m[0] == "volatile":
            return self.assign(to, f"polled_load<{c_type(m[-1])}>(t, {self._at(source)}, {self.site()})", m[-1])
        space, count, kind = self._space(m)
        if space == "param":
            base, offset = self.address(source)
            address, size = f"{self.param_address(base)} + {offset}", int(kind[1:]) // 8
            parts = [to] if count == 1 else split_operands(to[1:-1])
            return " ".join(
                self.assign(r, f"read<{c_type(kind)}>({address} + {k * size})", kind) for k, r in enumerate(parts)
            )
        what = c_type(kind) if count == 1 else f"Vector<{c_type(kind)}, {count}>"
        value = f"load<{what}, {space.upper()}>(t, {self._at(source)}, {self.site()})"
        if count == 1:
            return self.assign(to, value, kind)
        sets = (self.assign(r, f"v.x[{k}]", kind) for k, r in enumerate(split_operands(to[1:-1])))
        return f"{{ const auto v = {value}; {' '.join(sets)} }}"

    def op_st(self, m: list[str], to: str, source: str) -> str:
        if m[0] == "volatile":
            value = self.operand(source, m[-1])
            return f"polled_store<{c_type(m[-1])}>(t, {self._at(to)}, {value}, {self.site()});"
        space, count, kind = self._space(m)
        if space == "param":
            base, offset = self.address(to)
            address, size = f"{self.param_address(base)} + {offset}", int(kind[1:]) // 8
            values = [source] if count == 1 else split_operands(source[1:-1])
            return " ".join(
                f"write<{c_type(kind)}>({address} + {k * size}, {self.operand(x, kind)});" for k, x in enumerate(values)
            )
        what, value = c_type(kind), self.operand(source, kind) if count == 1 else ""
        if count > 1:
            what = f"Vector<{what}, {count}>"
            value = f"{{{{{', '.join(self.operand(x, kind) for x in split_operands(source[1:-1]))}}}}}"
        return f"store<{what}, {space.upper()}>(t, {self._at(to)}, {value}, {self.site()});"

    def op_atom(self, m: list[str], to: str, at: str, value: str) -> str:
        name, kind = m[-2:]
        return self.assign(
            to, f"atomic_{name}<{c_type(kind)}>(t, {self._at(at)}, {self.operand(value, kind)}, {self.site()})", kind
        )

    def op_red(self, m: list[str], at: str, value: str) -> str:
        return self.op_atom(m, "_", at, value)

    # Control.

    def op_bra(self, m: list[str], to: str) -> str:
        return f"goto {symbol(to)};"

    def op_ret(self, m: list[str]) -> str:
        return "return;"

    def op_trap(self, m: list[str]) -> str:
        return f"ptx_note(t, HANG, {self.site()}); return;"  # tickets.cuh traps after a long wait

    def op_bar(self, m: list[str], which: str) -> str:
        if m[0] == "warp":
            return f"ptx_tile_barrier(t, {self.operand(which, 'b32')}, {self.site()});"
        if which != "0":
            raise ValueError(which)
        return f"ptx_barrier(t, {self.site()});"

    def op_membar(self, m: list[str]) -> str:
        return ";"  # threads immediately see writes of other threads

    def op_call(self, s: Instruction) -> str:
        results, name, arguments = call_parts(s)
        words = ["t", *(f"&{symbol(x)}" for x in results), *(symbol(x) for x in arguments)]
        return f"{symbol(name)}({', '.join(words)});"

    # Comparisons and choices.

    def op_setp(self, m: list[str], to: str, a: str, b: str) -> str:
        compare, kind = m
        a, b = self.operand(a, kind), self.operand(b, kind)
        if compare in _ORDERED:
            value = f"{a} {_ORDERED[compare]} {b}"
        elif compare == "ne":
            value = f"({a} < {b} || {a} > {b})" if kind[0] == "f" else f"{a} != {b}"
        else:
            value = _UNORDERED[compare].format(a=a, b=b)
        return self.assign(to, value, "pred")

    def op_selp(self, m: list[str], to: str, a: str, b: str, which: str) -> str:
        return self.assign(
            to, f"{self.operand(which, 'pred')} ? {self.operand(a, m[0])} : {self.operand(b, m[0])}", m[0]
        )

    # Arithmetic.

    def _binary(self, m: list[str], to: str, a: str, b: str, sign: str) -> str:
        kind = m[-1] if m[-1][0] == "f" else unsigned(m[-1])
        return self.assign(to, f"({c_type(kind)})({self.operand(a, kind)} {sign} {self.operand(b, kind)})", kind)

    def op_add(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._binary(m, to, a, b, "+")

    def op_sub(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._binary(m, to, a, b, "-")

    def op_mul(self, m: list[str], to: str, a: str, b: str) -> str:
        if m[0] not in ("wide", "hi"):
            return self._binary(m, to, a, b, "*")
        if m in (["hi", "s64"], ["hi", "u64"]):
            return self.assign(to, f"product_high({self.operand(a, m[1])}, {self.operand(b, m[1])})", m[1])
        kind, double = m[1], f"{m[1][0]}{2 * int(m[1][1:])}"
        product = f"(({c_type(double)}){self.operand(a, kind)} * ({c_type(double)}){self.operand(b, kind)})"
        if m[0] == "wide":
            return self.assign(to, product, double)
        return self.assign(to, f"({c_type(kind)})({product} >> {kind[1:]})", kind)

    def op_mad(self, m: list[str], to: str, a: str, b: str, c: str) -> str:
        if m[0] == "lo":
            kind = unsigned(m[1])
            x, y, z = (self.operand(o, kind) for o in (a, b, c))
            return self.assign(to, f"({kind})({x} * {y} + {z})", kind)
        wide = f"{m[1][0]}64"
        x, y = (f"({wide}){self.operand(o, m[1])}" for o in (a, b))
        return self.assign(to, f"(u64)({x} * {y}) + {self.operand(c, 'u64')}", "u64")

    def op_div(self, m: list[str], to: str, a: str, b: str) -> str:
        if m[-1][0] == "f":
            return self._binary(m, to, a, b, "/")
        return self._whole("integer_div", m[-1], to, a, b)

    def op_rem(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._whole("integer_rem", m[-1], to, a, b)

    def _whole(self, name: str, kind: str, to: str, a: str, b: str) -> str:
        value = f"{name}<{kind}>(t, {self.operand(a, kind)}, {self.operand(b, kind)}, {self.site()})"
        return self.assign(to, value, kind)

    def op_rcp(self, m: list[str], to: str, a: str) -> str:
        return self.assign(to, f"({m[-1]})1 / {self.operand(a, m[-1])}", m[-1])

    def op_sqrt(self, m: list[str], to: str, a: str) -> str:
        return self.assign(to, f"sqrt_({self.operand(a, m[-1])})", m[-1])

    def op_neg(self, m: list[str], to: str, a: str) -> str:
        kind = m[0] if m[0][0] == "f" else unsigned(m[0])
        return self.assign(to, f"{'' if kind[0] == 'f' else f'({kind})0 '}-{self.operand(a, kind)}", kind)

    def op_abs(self, m: list[str], to: str, a: str) -> str:
        return self.assign(to, f"abs_({self.operand(a, m[0])})", m[0])

    def _extreme(self, m: list[str], to: str, a: str, b: str, name: str, sign: str) -> str:
        kind = m[0]
        a, b = self.operand(a, kind), self.operand(b, kind)
        if kind[0] == "f":
            return self.assign(to, f"{name}(t, {a}, {b}, {self.site()})", kind)
        return self.assign(to, f"{a} {sign} {b} ? {a} : {b}", kind)

    def op_min(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._extreme(m, to, a, b, "min_number", "<")

    def op_max(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._extreme(m, to, a, b, "max_number", ">")

    # Bits.

    def _logic(self, kind: str, to: str, a: str, b: str, sign: str) -> str:
        return self.assign(to, f"({c_type(kind)})({self.operand(a, kind)} {sign} {self.operand(b, kind)})", kind)

    def op_and(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._logic(m[0], to, a, b, "&")

    def op_or(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._logic(m[0], to, a, b, "|")

    def op_xor(self, m: list[str], to: str, a: str, b: str) -> str:
        return self._logic(m[0], to, a, b, "^")

    def op_not(self, m: list[str], to: str, a: str) -> str:
        value = self.operand(a, m[0])
        return self.assign(to, f"!{value}" if m[0] == "pred" else f"({c_type(m[0])})~{value}", m[0])

    def op_shl(self, m: list[str], to: str, a: str, by: str) -> str:
        return self.assign(to, f"shift_left({self.operand(a, m[0])}, {self.operand(by, 'u32')})", m[0])

    def op_shr(self, m: list[str], to: str, a: str, by: str) -> str:
        return self.assign(to, f"shift_right({self.operand(a, m[0])}, {self.operand(by, 'u32')})", m[0])

    def op_shf(self, m: list[str], to: str, low: str, high: str, by: str) -> str:
        operands = ", ".join(self.operand(x, "b32") for x in (low, high, by))
        return self.assign(to, f"funnel_{m[0]}({operands})", "b32")

    def op_bfi(self, m: list[str], to: str, bits: str, into: str, at: str, size: str) -> str:
        operands = ", ".join(self.operand(x, "b32") for x in (bits, into, at, size))
        return self.assign(to, f"insert_bits({operands})", "b32")

    def op_bfe(self, m: list[str], to: str, bits: str, at: str, size: str) -> str:
        where = ", ".join(self.operand(x, "u32") for x in (at, size))
        return self.assign(to, f"extract_bits({self.operand(bits, m[0])}, {where})", m[0])

    def op_prmt(self, m: list[str], to: str, low: str, high: str, choice: str) -> str:
        operands = ", ".join(self.operand(x, "b32") for x in (low, high, choice))
        return self.assign(to, f"choose_bytes({operands})", "b32")

    def op_cvt(self, m: list[str], to: str, source: str) -> str:
        target, kind = m[-2:]
        value = self.operand(source, kind)
        if m[0] == "rzi":
            return self.assign(to, f"to_integer<{target}>(t, {value}, {self.site()})", target)
        return self.assign(to, f"({target}){value}", target)
