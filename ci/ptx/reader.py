"""Reader of PTX modules: functions with parameters, registers, local memory and statements.

The reader accepts the PTX of NVRTC, and rejects unknown forms. All other checks are left to ptxas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from gpusim.errors import GpusimError


class PtxError(GpusimError):
    """Error for PTX that the reader or the translator does not know."""


class Param(NamedTuple):
    """Size and alignment (bytes) of a parameter, result, call argument or local array."""

    name: str
    size: int
    align: int


class SourcePosition(NamedTuple):
    """Source position of an instruction, and of the call that inlined it. Unknown numbers are 0."""

    file: int = 0
    line: int = 0
    outer_file: int = 0
    outer_line: int = 0

    def with_file_offset(self, files: int) -> SourcePosition:
        """Return the same position, with file numbers increased by ``files``."""
        return SourcePosition(self.file + files, self.line, self.outer_file + files, self.outer_line)


class Label(NamedTuple):
    """Label that branches can jump to."""

    name: str


class Brace(NamedTuple):
    """Beginning or end of a block of declarations."""

    text: str


class Instruction(NamedTuple):
    """An instruction.

    Attributes:
        name: name with all modifiers, e.g. ``"add.rn.f64"``.
        operands: text after the name.
        guard: condition of the instruction, ``"%p1"`` or ``"!%p1"``. Empty without a condition.
        position: position in the sources.
    """

    name: str
    operands: str
    guard: str
    position: SourcePosition

    @property
    def text(self) -> str:
        """PTX text of the instruction, without the guard."""
        return f"{self.name} {self.operands}".strip()


@dataclass
class Function:
    """A function with a body. An entry is a kernel.

    Attributes:
        registers: types of registers by prefix, such as ``{"%fd": "f64"}``, or by name, such as ``{"%SP": "b64"}``.
        locals: local arrays.
    """

    name: str
    entry: bool
    results: list[Param]
    params: list[Param]
    registers: dict[str, str] = field(default_factory=dict)
    locals: list[Param] = field(default_factory=list)
    body: list[Label | Brace | Param | Instruction] = field(default_factory=list)

    def instructions(self) -> Iterator[Instruction]:
        """Return the instructions of the function in order."""
        return (s for s in self.body if isinstance(s, Instruction))


@dataclass
class Module:
    """A PTX module.

    Attributes:
        shared: names of arrays in dynamic shared memory.
        files: names of the sources by number.
        tables: bytes of initialized arrays in global memory.
    """

    functions: dict[str, Function]
    shared: list[str]
    files: dict[int, str]
    tables: dict[str, bytes] = field(default_factory=dict)

    def where(self, position: SourcePosition) -> str:
        """Describe a position, as in ``"rows.cuh:12, inlined at factor.cuh:29"``."""
        if not position.line:
            return "no line"
        inner = f"{Path(self.files.get(position.file, '?')).name}:{position.line}"
        if not position.outer_line:
            return inner
        return f"{inner}, inlined at {Path(self.files.get(position.outer_file, '?')).name}:{position.outer_line}"

    def reached(self, name: str) -> set[str]:
        """Return the names of a function and of all functions that it calls, directly or indirectly."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            function = self.functions.get(todo.pop())
            if function is None or function.name in seen:
                continue
            seen.add(function.name)
            todo += [call_parts(s)[1] for s in function.instructions() if s.name.startswith("call")]
        return seen


# Since sm_100, ``.ptr`` and an alignment after the type describe the target of a pointer.
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z](\d+)\s+(?:\.ptr\s+(?:\.align\s+\d+\s+)?)?([\w$]+)(?:\[(\d+)\])?$"
)
_LOCAL = re.compile(r"\.local\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]$")
_TABLE = re.compile(
    r"^(?:\.visible\s+)?\.global\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d+)\]\s*=\s*\{([\d,\s]*)\};", re.MULTILINE
)
_REGISTER = re.compile(r"\.reg\s+\.(\w+)\s+(%?[\w$]+)(?:<\d+>)?$")
_HEAD = re.compile(
    r"^(?:\.visible\s+|\.weak\s+)?\.(func|entry)\s*(?:\(([^()]*)\)\s*)?([\w$]+)\s*\(([^()]*)\)[^;{]*([;{])",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"""\s*(?:
        \.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+\d+
            (?:[^\n]*inlined_at\s+(?P<outer_file>\d+)\s+(?P<outer_line>\d+))?[^\n]*(?=\n)
      | (?P<label>[\w$]+):
      | (?P<brace>[{}])
      | (?:@(?P<guard>!?%\w+)\s+)?(?P<name>[a-z][\w.:]*)(?P<operands>[^;]*);
      | (?P<directive>\.[^;]*);
    )""",
    re.VERBOSE,
)
_CALL = re.compile(r"(?:\(\s*([\w$, ]*?)\s*\)\s*,\s*)?([\w$%]+)(?:\s*,\s*\(\s*([\w$, ]*?)\s*\))?(\s*,\s*[\w$]+)?$")


def read_module(text: str) -> Module:
    """Read a PTX text.

    Raises:
        PtxError: the text has an unknown form.
    """
    files = {int(n): name for n, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.MULTILINE)}
    text = re.sub(r"//[^\n]*", "", text)
    module = Module({}, re.findall(r"^\.extern\s+\.shared\s+.*?([\w$]+)\[\];", text, re.MULTILINE), files)
    for name, size, values in _TABLE.findall(text):
        module.tables[name] = bytes(int(x) for x in values.split(",")).ljust(int(size), b"\0")
    offset = 0
    while head := _HEAD.search(text, offset):
        offset = head.end()
        if head[5] == "{":
            function = Function(head[3], head[1] == "entry", _params(head[2]), _params(head[4]))
            offset = _read_body(function, text, offset)
            module.functions[function.name] = function
    return module


def join(modules: Sequence[Module]) -> Module:
    """Link modules into one. Functions call each other by name.

    Raises:
        PtxError: a function is in two modules.
    """
    whole, first = Module({}, [], {}), 0
    for module in modules:
        for name, function in module.functions.items():
            if name in whole.functions:
                raise PtxError(f"{name} is in two modules")
            body = [
                s._replace(position=s.position.with_file_offset(first)) if isinstance(s, Instruction) else s
                for s in function.body
            ]
            whole.functions[name] = replace(function, body=body)
        whole.shared += [name for name in module.shared if name not in whole.shared]
        whole.files |= {first + number: name for number, name in module.files.items()}
        whole.tables |= module.tables
        first = max(whole.files, default=0)
    return whole


def read_param(text: str) -> Param:
    """Read a declaration such as ``.param .align 8 .b8 x[16]``."""
    match = _PARAM.match(" ".join(text.split()))
    if match is None:
        raise PtxError(f"parameter {text!r}: add its form to ci/ptx/reader.py")
    width = int(match[2]) // 8
    return Param(match[3], width * int(match[4] or 1), int(match[1] or width))


def _params(text: str | None) -> list[Param]:
    return [read_param(part) for part in (text or "").split(",") if part.strip()]


def _read_body(function: Function, text: str, offset: int) -> int:
    """Read the statements of a function, and return the offset in the text after the last statement."""
    position, depth = SourcePosition(), 1
    while True:
        token = _TOKEN.match(text, offset)
        if token is None:
            raise PtxError(f"{text[offset : offset + 80]!r} in {function.name}: add its form to ci/ptx/reader.py")
        offset = token.end()
        if token["line"]:
            position = SourcePosition(*(int(token[key] or 0) for key in ("file", "line", "outer_file", "outer_line")))
        elif token["label"]:
            function.body.append(Label(token["label"]))
        elif token["brace"]:
            depth += 1 if token["brace"] == "{" else -1
            if not depth:
                return offset
            function.body.append(Brace(token["brace"]))
        elif token["name"]:
            operands = " ".join(token["operands"].split())
            function.body.append(Instruction(token["name"], operands, token["guard"] or "", position))
        else:
            _read_directive(function, " ".join(token["directive"].split()))


def _read_directive(function: Function, text: str) -> None:
    if text.startswith(".pragma"):
        return
    if text.startswith(".param"):
        function.body.append(read_param(text))
    elif match := _LOCAL.match(text):
        function.locals.append(Param(match[2], int(match[3]), int(match[1])))
    elif match := _REGISTER.match(text):
        function.registers[match[2]] = match[1]
    else:
        raise PtxError(f"directive {text!r} in {function.name}: add its form to ci/ptx/reader.py")


def call_parts(s: Instruction) -> tuple[list[str], str, list[str]]:
    """Return the results, the target and the arguments of a call. The target of an indirect call is a register.

    Raises:
        PtxError: the call has an unknown form.
    """
    match = _CALL.match(s.operands)
    if match is None:
        raise PtxError(f"call {s.text!r}: add its form to ci/ptx/reader.py")
    results, arguments = ([x.strip() for x in (match[k] or "").split(",") if x.strip()] for k in (1, 3))
    return results, match[2], arguments


def short_name(name: str) -> str:
    """Return a mangled function name without its module name."""
    demangled = name.split("_cu_", 1)[-1][8:] if "_INTERNAL_" in name else name
    return demangled.lstrip("0123456789")
