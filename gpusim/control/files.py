"""YAML files of diagrams. A file contains only non-default parameters. Each wire is [source, target].

    label: lift
    rate: 200.0
    blocks:
      height: {kind: input, lower: 0.0, upper: 0.4, unit: m}
      pid: {kind: pid, kp: 20.0}
      ...
    wires:
      - [height, error.a]
      - [signal:joint.rail.position, error.b]

A subsystem is a block with ``kind: subsystem``, ``blocks`` and ``wires``.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.control import yaml_text
from gpusim.control.block import Block, block_kinds
from gpusim.control.parameters import check_type
from gpusim.control.yaml_text import line as line_of
from gpusim.errors import ModelError, unknown_name
from gpusim.input_files import bounded_text
from gpusim.output_files import atomic_file, check_output_file

SUFFIXES = (".yaml", ".yml")
SUBSYSTEM = "subsystem"
"""Block kind of a subsystem."""
_KEYS = ("label", "rate", "max_rate", "blocks", "wires")


# Writing.


def save(diagram: Any, path: str | os.PathLike[str]) -> None:
    """Write a diagram. See :meth:`gpusim.control.Diagram.save`."""
    target = check_output_file(path, SUFFIXES, f"file of {diagram.element}")
    text = yaml_text.written(layout(diagram))
    with atomic_file(target) as stream:
        stream.write(text.encode("utf-8"))


def layout(diagram: Any) -> dict[str, Any]:
    """Convert a diagram to plain dicts, lists and values, as the YAML file stores them.

    Raises:
        ModelError: a block runs Python, or a parameter has an unknown type.
    """
    return {"label": diagram.label, **_layout(diagram)}


def _layout(diagram: Any) -> dict[str, Any]:
    rates = {"rate": diagram.rate, "max_rate": diagram.max_rate}
    out: dict[str, Any] = {name: value for name, value in rates.items() if value is not None}
    out["blocks"] = {name: _block(diagram, name, found) for name, found in diagram.blocks.items()}
    if diagram.wires:
        out["wires"] = [
            [_short(diagram, source, output=True), _short(diagram, target, output=False)]
            for target, source in diagram.wires.items()
        ]
    return out


def _short(diagram: Any, port: tuple[str, str], output: bool) -> str:
    """Return the shortest text for a port: "block" if the port is the default, else "block.port"."""
    try:
        alone = diagram.port(port[0], output) == port
    except ModelError:
        alone = False
    return port[0] if alone else ".".join(port)


def _block(diagram: Any, name: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, Block):
        label = {} if found.diagram.label == name else {"label": found.diagram.label}
        return {"kind": SUBSYSTEM, **label, **_layout(found.diagram)}
    element = f"{diagram.element} block '{name}'"
    if found.host:
        rule = f"a block '{found.kind}' contains a Python function, which a file cannot store"
        raise validate.fail(element, rule, "use a block 'expression', or add the block after Diagram.load")
    out: dict[str, Any] = {"kind": found.kind}
    for parameter, field in found.parameters().items():
        value = _plain(element, parameter, getattr(found, parameter))
        default = _default(field)
        if default is dataclasses.MISSING or value != _plain(element, parameter, default):
            out[parameter] = value
    return out


def _default(field: dataclasses.Field[Any]) -> Any:
    """Return the default of a parameter, or MISSING if it has none."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _plain(element: str, name: str, value: Any) -> Any:
    """Convert a value to the plain types that a file can store."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(element, name, item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(element, name, item) for key, item in value.items()}
    raise validate.fail(
        element, f"{name} = {value!r} cannot be stored in a file", "give numbers, texts or lists of them"
    )


# Reading.


def load(make: Any, path: str | os.PathLike[str]) -> Any:
    """Read a diagram from a file. See :meth:`gpusim.control.Diagram.load`.

    The function ``make(label, rate, max_rate)`` makes an empty diagram.
    """
    file = validate.path("Diagram.load", "path", path)
    name = f"diagram file {str(file)!r}"
    try:
        text = bounded_text(file)
    except UnicodeDecodeError:
        raise validate.fail(name, "is not UTF-8 text", "name a YAML file that Diagram.save wrote") from None
    except OSError as error:
        raise validate.fail(name, f"can't be read ({error.strerror or error})", "check the path") from None
    return from_layout(make, yaml_text.parse(text, name), name)


def from_layout(make: Any, found: Any, name: str) -> Any:
    """Build a diagram from the plain dicts and lists of :func:`layout`.

    Args:
        make: function ``make(label, rate, max_rate)`` that makes an empty diagram.
        found: content of a file, or result of :func:`layout`.
        name: name of the file, for messages.

    Raises:
        ModelError: the content is invalid.
    """
    if not isinstance(found, dict):
        rule = "is empty" if found is None else "is not a mapping"
        raise validate.fail(name, rule, "begin with label, blocks and wires, each with a colon")
    if "label" not in found:
        raise validate.fail(_location(name, line_of(found)), "has no label", "add a line such as 'label: lift'")
    return _Loader(make, name).diagram(found, "")


def _location(name: str, line: int) -> str:
    return f"{name} line {line}" if line else name


class _Loader:
    """Loader that builds a diagram from the content of one file."""

    def __init__(self, make: Any, name: str) -> None:
        self._make, self._name = make, name

    def _at(self, line: int, path: str = "") -> str:
        return _location(self._name, line) + (f", block '{path}'" if path else "")

    def diagram(self, found: Any, path: str) -> Any:
        """Build a diagram, or the subsystem at ``path``."""
        known = (*_KEYS, "kind") if path else _KEYS
        for key in found:
            if key not in known:
                raise ModelError(f"{self._at(line_of(found, key), path)}: {unknown_name('entry', key, known)}")
        blocks = found.get("blocks")
        if not isinstance(blocks, dict):
            rule = "has no blocks" if "blocks" not in found else f"blocks = {blocks!r} is not a mapping"
            line = line_of(found, "blocks")
            raise validate.fail(self._at(line, path), rule, "give 'blocks:' with a line 'name: {kind: ...}' each")
        label = found.get("label", path.rpartition("/")[2])
        line = line_of(found, "label" if "label" in found else "rate")
        made = self._with_location(line, path, lambda: self._make(label, found.get("rate"), found.get("max_rate")))
        for name, given in blocks.items():
            self._block(made, name, given, line_of(blocks, name), path)
        self._wires(made, found, path)
        return made

    def _with_location(self, line: int, path: str, act: Any) -> Any:
        """Call ``act``, and add the position in the file to the message of a ModelError."""
        try:
            return act()
        except ModelError as error:
            raise ModelError(f"{self._at(line, path)}: {error}") from None

    def _block(self, made: Any, name: str, given: Any, line: int, above: str) -> None:
        path = f"{above}/{name}" if above else name
        if not isinstance(given, dict):
            rule = f"is {given!r}, which is not a mapping"
            raise validate.fail(self._at(line, path), rule, f"write '{name}: {{kind: ...}}'")
        if "kind" not in given:
            raise validate.fail(self._at(line, path), "has no kind", f"write '{name}: {{kind: gain, ...}}'")
        kind, kinds = given["kind"], block_kinds()
        if kind == SUBSYSTEM:
            inner = self.diagram(given, path)
            self._with_location(line, "", lambda: made.add_subsystem(name, inner))
            return
        if not isinstance(kind, str) or kind not in kinds:
            error = unknown_name("kind of block", str(kind), (*kinds, SUBSYSTEM))
            raise ModelError(f"{self._at(line_of(given, 'kind'), path)}: {error}")
        if kinds[kind].host:
            rule = f"a block '{kind}' contains a Python function, which a file cannot store"
            raise validate.fail(
                self._at(line, path), rule, "use a block 'expression', or add the block after Diagram.load"
            )
        parameters = {key: _to_plain(value) for key, value in given.items() if key != "kind"}
        for key, field in kinds[kind].parameters().items():
            if key in parameters:
                check_type(self._at(line_of(given, key), path), key, str(field.type), parameters[key])
        self._with_location(line, "", lambda: made.add(kind, name, **parameters))

    def _wires(self, made: Any, found: Any, path: str) -> None:
        wires = found.get("wires")
        if wires is None:
            return
        if not isinstance(wires, list):
            rule = f"wires = {wires!r} is not a list"
            raise validate.fail(self._at(line_of(found, "wires"), path), rule, "give lines '- [source, target]'")
        for number, wire in enumerate(wires):
            line = line_of(wires, number)
            good = isinstance(wire, list) and len(wire) == 2 and isinstance(wire[1], str)
            if not good or isinstance(wire[0], bool) or not isinstance(wire[0], str | int | float):
                rule = f"the wire {_to_plain(wire)!r} is not a pair of a source and a target"
                raise validate.fail(self._at(line, path), rule, "write '- [pid.out, valve.in]'")
            self._with_location(line, "", lambda wire=wire: made.connect(wire[0], wire[1]))


def _to_plain(value: Any) -> Any:
    """Copy a value to plain dicts and lists, without line numbers."""
    if isinstance(value, dict):
        return {key: _to_plain(item) for key, item in value.items()}
    return [_to_plain(item) for item in value] if isinstance(value, list) else value
