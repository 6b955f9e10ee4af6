"""Block diagrams ("functional schemes"): blocks, wires between ports, and subsystems."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.control import blocks as _all_kinds  # noqa: F401 (registers the kinds)
from gpusim.control import files
from gpusim.control.block import Block, make_block
from gpusim.control.compile import check, compile_flat
from gpusim.control.flat import CLOCK, SEPARATOR, Flat, Port
from gpusim.description.program import OperatorInput, Program
from gpusim.errors import ModelError, unknown_name
from gpusim.renamed import NamesMoved, checks_old_names


@dataclass(frozen=True)
class Handle:
    """Handle of a block for :meth:`Diagram.connect`: ``d.connect(a, b)`` or ``d.connect(a["velocity"], b["rate"])``."""

    diagram: Diagram
    name: str

    def __getitem__(self, port: str) -> str:
        return f"{self.name}.{port}"

    def __str__(self) -> str:
        return self.name

    def wire(self, *sources: Handle | str | float, **by_port: Handle | str | float) -> Handle:
        """Connect the inputs of the block, and return the handle.

        ``d.add("sum", "error", signs="+-").wire("height", "position")`` adds and connects a block.

        Args:
            *sources: outputs that drive the first inputs, in the order of the ports. See :meth:`Diagram.connect`.
            **by_port: outputs by the name of the input that they drive.

        Raises:
            ModelError: a block or port is unknown, an input already has a wire, or there are more sources than inputs.
        """
        ports = self.diagram.ports(self.name)[0]
        if len(sources) > len(ports):
            rule = f"has {len(ports)} inputs, and {len(sources)} sources are given"
            raise validate.fail(f"{self.diagram.element} block '{self.name}'", rule, f"give at most {len(ports)}")
        for port, source in (dict(zip(ports, sources, strict=False)) | by_port).items():
            self.diagram.connect(source, self[port])
        return self


@dataclass
class Subsystem:
    """A block that contains another diagram. Its ports are the inner diagram's ``inport`` and ``outport`` blocks."""

    diagram: Diagram


class Diagram(NamesMoved):
    """Blocks and wires that drive the commands of a simulation.

        d = gpusim.control.Diagram("lift", rate=200.0)
        d.add("input", "height", lower=0.0, upper=0.4, unit="m")
        d.add("signal", "position", signal="joint.rail.position")
        d.add("sum", "error", signs="+-").wire("height", "position")
        d.add("pid", "pid", kp=20.0, ki=5.0, lower=-1.0, upper=1.0).wire("error")
        d.connect("pid", "command:valve")
        builder.add_diagram(d)

    Args:
        label: name of the diagram. Each output is a signal ``diagram.<label>.<block>.<port>``, or
            ``diagram.<label>.<block>`` for the port ``out``.
        rate: samples per second, or None for one sample every ``SolverConfig.dt``. Commands are constant between
            samples. Samples follow simulated time, not the number of steps. After a long step (``step(dt=...)``), the
            diagram runs at most the last 1000 samples that were due during the step.
        max_rate: maximum rate. The rate becomes the parameter ``diagram.<label>.clock.rate``, and each world may set a
            different value. With ``max_rate``, ``rate`` is the initial value, by default ``max_rate``. With
            ``max_rate``, the diagram cannot contain filters, transfer functions, or delays with a fixed ``time``.

    Raises:
        ModelError: the label is invalid, or the rate is not positive or above ``max_rate``.
    """

    prefix = "diagram"
    """Prefix of the signal names."""
    senses = False
    """Whether the diagram models a sensor, whose outputs other diagrams can read."""

    @checks_old_names
    def __init__(self, label: str = "control", rate: float | None = None, max_rate: float | None = None) -> None:
        if not isinstance(label, str) or not label.isprintable() or not label or any(s in label for s in "./: *?["):
            raise validate.fail("Diagram", f"label = {label!r} is not a valid name", "give one word, such as 'lift'")
        self.label = label
        self.element = f"{self.prefix} '{label}'"
        self.rate = None if rate is None else validate.positive(self.element, "rate", rate)
        self.max_rate = None if max_rate is None else validate.positive(self.element, "max_rate", max_rate)
        if self.rate is not None and self.max_rate is not None:
            validate.up_to(self.element, "rate", self.rate, "max_rate", self.max_rate)
        self.blocks: dict[str, Block | Subsystem] = {}
        self.wires: dict[Port, Port] = {}

    # Construction.

    def add(self, kind: str, name: str, **parameters: Any) -> Handle:
        """Add a block.

        Args:
            kind: block type, see :func:`gpusim.control.block_kinds`.
            name: name of the block, unique in the diagram.
            **parameters: parameters of the block type.

        Raises:
            ModelError: the name is already used or invalid, or the block type or a parameter is unknown or invalid.
        """
        self._check_name(name)
        self.blocks[name] = make_block(self._of(name), kind, parameters)
        return Handle(self, name)

    def add_subsystem(self, name: str, diagram: Diagram) -> Handle:
        """Add a diagram as a block. The ``inport`` and ``outport`` blocks of the diagram are the ports.

        Raises:
            ModelError: the argument is not a diagram or contains this diagram, or the name is already used.
        """
        self._check_name(name)
        if not isinstance(diagram, Diagram):
            raise validate.fail(self._of(name), f"{diagram!r} is not a Diagram", "give a gpusim.control.Diagram")
        if diagram is self or diagram.holds(self):
            rule = f"diagram '{diagram.label}' would contain itself"
            raise validate.fail(self._of(name), rule, "give a diagram that does not contain this diagram")
        self.blocks[name] = Subsystem(diagram)
        return Handle(self, name)

    def holds(self, other: Diagram) -> bool:
        """Return whether the diagram ``other`` is a subsystem of this diagram, at any depth."""
        inner = [b.diagram for b in self.blocks.values() if isinstance(b, Subsystem)]
        return any(d is other or d.holds(other) for d in inner)

    def connect(self, source: Handle | str | float, *targets: Handle | str) -> None:
        """Connect an output to one or more inputs.

        Args:
            source: "block.port", or "block" if the port is ``out`` or the only output. "signal:NAME" adds a block that
                reads a signal. A number adds a constant block.
            *targets: "block.port", or "block" if only one input needs a wire. "command:LABEL" adds a block that sets a
                command.

        Raises:
            ModelError: a block or port is unknown, or an input already has a wire.
        """
        begin = self._output(source)
        if not targets:
            raise validate.fail(self.element, f"connect({source!s}) names no target", "give at least one input")
        for target in targets:
            end = self._input(target)
            if end in self.wires:
                driver = ".".join(self.wires[end])
                rule = f"'{'.'.join(end)}' has a wire from '{driver}' already"
                raise validate.fail(self.element, rule, "combine the outputs with a block 'sum', or use another port")
            self.wires[end] = begin

    def disconnect(self, target: Handle | str) -> None:
        """Remove the wire of an input.

        Raises:
            ModelError: the input has no wire.
        """
        end = self._input(target)
        if end not in self.wires:
            raise validate.fail(self.element, f"'{'.'.join(end)}' has no wire", "name an input that has one")
        del self.wires[end]

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or not name.isprintable() or not name or any(s in name for s in ".:/ *?["):
            rule = f"{name!r} is not a valid block name"
            raise validate.fail(self.element, rule, "give one word without . : / * ? [ and spaces")
        if name in self.blocks:
            raise validate.fail(self.element, f"block '{name}' exists already", "give another name")
        if name == CLOCK and self.max_rate is not None:
            rule = f"'{CLOCK}' is the name of the clock of a diagram with max_rate"
            raise validate.fail(self.element, rule, "give the block another name")

    def _of(self, name: str) -> str:
        return f"{self.element} block '{name}'"

    def _output(self, source: Handle | str | float) -> Port:
        if isinstance(source, int | float | np.number):
            name = self._unused("constant")
            given = float(source) if isinstance(source, bool) else source
            self.add("constant", name, value=validate.number(self.element, "constant", given))
            return name, "out"
        text = self._text(source)
        if text.startswith("signal:"):
            name = self._unused(text.removeprefix("signal:").replace(".", "_"))
            self.add("signal", name, signal=text.removeprefix("signal:"))
            return name, "out"
        return self._port(text, output=True)

    def _input(self, target: Handle | str) -> Port:
        text = self._text(target)
        if text.startswith("command:"):
            label = text.removeprefix("command:")
            name = self._unused(label.replace(".", "_"))
            self.add("command", name, command=label)
            return name, "in"
        return self._port(text, output=False)

    def _text(self, given: Handle | str) -> str:
        if isinstance(given, Handle):
            if given.diagram is not self:
                rule = f"block '{given.name}' belongs to diagram '{given.diagram.label}'"
                raise validate.fail(self.element, rule, "connect blocks of one diagram")
            return given.name
        if not isinstance(given, str):
            raise validate.fail(self.element, f"{given!r} is not a port", 'give "block" or "block.port"')
        return given

    def _unused(self, name: str) -> str:
        if name not in self.blocks:
            return name
        return next(f"{name}_{k}" for k in range(2, len(self.blocks) + 3) if f"{name}_{k}" not in self.blocks)

    def _port(self, text: str, output: bool) -> Port:
        name, dot, port = text.partition(".")
        if name not in self.blocks:
            raise ModelError(f"{self.element}: {unknown_name('block', name, self.blocks)}")
        ports = self.ports(name)[output]
        what = "output" if output else "input"
        if not ports:
            raise validate.fail(self._of(name), f"has no {what}", "connect another block")
        if not dot:
            port = self._only(name, ports, what)
        if port not in ports:
            raise ModelError(f"{self._of(name)}: {unknown_name(what, port, ports)}")
        return name, port

    def _only(self, name: str, ports: tuple[str, ...], what: str) -> str:
        """Return the default port of a block."""
        block = self.blocks[name]
        needed = ports
        if what == "input" and isinstance(block, Block):
            needed = tuple(p for p in ports if p not in block.optional) or ports
        if len(needed) > 1 and not (what == "output" and "out" in ports):
            listed = ", ".join(f"'{name}.{port}'" for port in ports)
            raise validate.fail(self._of(name), f"has several {what}s: {listed}", "name one")
        return "out" if what == "output" and "out" in ports else needed[0]

    def ports(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the inputs and outputs of a block or subsystem."""
        found = self.blocks[name]
        if isinstance(found, Block):
            return found.inputs, found.outputs
        inner = found.diagram.blocks.items()
        inports = tuple(n for n, b in inner if isinstance(b, Block) and b.kind == "inport")
        return inports, tuple(n for n, b in inner if isinstance(b, Block) and b.kind == "outport")

    def port(self, name: str, output: bool) -> Port:
        """Convert the text "block.port" or "block" to a port, as :meth:`connect` does.

        Raises:
            ModelError: the block or port does not exist, or the block has several ports and no default.
        """
        return self._port(name, output)

    # Files.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the diagram to a YAML file. After an error, an existing file is unchanged.

        Raises:
            ModelError: a block runs Python, or the path does not end in .yaml or .yml, or cannot be written.
            OSError: the disk fails while writing.
        """
        files.save(self, path)

    def digest_parts(self) -> Any:
        """Return the file content for a model's digest (hash), or the diagram if a block runs Python."""
        try:
            return files.layout(self)
        except ModelError:
            return self

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Diagram:
        """Read a diagram from a YAML file in the format of :meth:`save`.

        Raises:
            ModelError: the file cannot be read or is invalid. The message names the file, the line and the block.
        """
        made: Diagram = files.load(cls, path)
        return made

    # Queries.

    @property
    def operator_inputs(self) -> list[OperatorInput]:
        """Operator inputs of the diagram, with the labels of their commands in the simulation."""
        return self.flat().operator_inputs

    @property
    def driven(self) -> list[str]:
        """Labels of the commands that the diagram writes."""
        return self.flat().driven

    def flat(self) -> Flat:
        """Return the diagram with all subsystems flattened."""
        out = Flat(self.label, self.rate, self.max_rate, self.prefix)
        self._flatten("", out, {}, {})
        return out

    def _flatten(self, prefix: str, out: Flat, outer: dict[str, Port | None], names: dict[str, str]) -> None:
        """Add all blocks and wires of the diagram to ``out``, with subsystems flattened."""

        def driver(end: Port) -> Port | None:
            """Return the output that drives an input, or None for an input without a wire."""
            source = self.wires.get(end)
            if source is None:
                return None
            found = self.blocks[source[0]]
            if isinstance(found, Subsystem):
                return prefix + source[0] + SEPARATOR + source[1], "out"
            return outer.get(source[0]) if found.kind == "inport" and prefix else (prefix + source[0], source[1])

        def open_port(end: Port) -> str:
            """Return the port whose wire is missing for the input ``end``. The port can be in an enclosing diagram."""
            source = self.wires.get(end)
            return f"{prefix}{end[0]}.{end[1]}" if source is None else names[source[0]]

        for name, found in self.blocks.items():
            given = {port: driver((name, port)) for port in self.ports(name)[0]}
            open_ports = {port: open_port((name, port)) for port, source in given.items() if source is None}
            if isinstance(found, Subsystem):
                found.diagram._flatten(prefix + name + SEPARATOR, out, given, open_ports)
            elif found.kind != "inport" or not prefix:
                out.blocks[prefix + name] = found
                out.open_ports |= {(prefix + name, port): outer_port for port, outer_port in open_ports.items()}
                out.wires |= {(prefix + name, port): source for port, source in given.items() if source is not None}

    def check(self) -> None:
        """Check for inputs without wires, algebraic loops, and duplicate commands and labels.

        Raises:
            ModelError: a check fails.
        """
        check(self.flat())

    def compile(
        self, signals: Mapping[str, Any], controls: Mapping[str, int], dt: float,
        commands: Mapping[str, str] | None = None,
    ) -> Program:  # fmt: skip
        """Compile the diagram to a program for a simulation.

        Args:
            signals: the signals of the simulation by name.
            controls: columns of the commands in the control array, by label.
            dt: step size (s) of the simulation.
            commands: dict from the label of a command to its unit. Commands with an unknown unit are absent.

        Raises:
            ModelError: a signal or command is unknown, shapes or units do not match, or the sample period is shorter
                than a step.
        """
        return compile_flat(self.flat(), signals, controls, dt, commands)
