"""Compile diagrams to programs: sort and trace the blocks, and find the shapes and units of wires."""

from __future__ import annotations

import graphlib
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim import exact_math, validate
from gpusim.control import noise, units
from gpusim.control.block import Block, Context, Kind, Wire
from gpusim.control.blocks.ports import Inport
from gpusim.control.blocks.sources import Command, Input, Signal
from gpusim.control.flat import CLOCK, SEPARATOR, Flat, Port, input_label
from gpusim.control.trace import Number, Trace
from gpusim.description.program import Program, Tuned, WireInfo
from gpusim.description.program_clock import HEAD
from gpusim.errors import ModelError, unknown_name
from gpusim.typing import Array

MAX_PASSES = 64
"""Maximum number of passes that propagate shapes and units through loops of wires."""


def check(flat: Flat) -> None:
    """Check for inputs without wires, algebraic loops, and duplicate commands and labels. See :meth:`Diagram.check`."""
    if not flat.blocks:
        raise validate.fail(flat.element, "has no block", "add blocks with add()")
    for name, block in flat.blocks.items():
        for port in block.inputs:
            if (name, port) not in flat.wires and port not in block.optional:
                rule = f"its input '{name}.{port}' is open"
                raise validate.fail(flat.of(name), rule, f"connect something to '{flat.open_ports[name, port]}'")
    sort_blocks(flat)
    writers: dict[str, str] = {}
    for name, block in flat.blocks.items():
        for label in block.names if isinstance(block, Command) else ():
            if label in writers:
                rule = f"blocks '{writers[label]}' and '{name}' both write the command '{label}'"
                raise validate.fail(flat.element, rule, "combine the two outputs with a sum or a switch")
            writers[label] = name
    labels = [block.label for block in flat.operator_inputs]
    for label in labels:
        if labels.count(label) > 1:
            rule = f"two inputs have the label '{label}'"
            raise validate.fail(flat.element, rule, "give them different labels")


def sort_blocks(flat: Flat) -> list[str]:
    """Return the names of the blocks in execution order.

    Raises:
        ModelError: the diagram has an algebraic loop (a loop without a delay, integrator or filter).
    """
    before: dict[str, dict[str, None]] = {name: {} for name in flat.blocks}
    for (name, port), (source, _) in flat.wires.items():
        if port not in flat.blocks[name].waits:
            before[name][source] = None
    try:
        return list(graphlib.TopologicalSorter(before).static_order())
    except graphlib.CycleError as error:
        rule = f"the loop {' -> '.join(error.args[1])} is algebraic: each output depends on the same sample"
        raise validate.fail(flat.element, rule, "insert a delay, an integrator or a filter") from None


def _kinds(flat: Flat, order: list[str], signals: Mapping[str, Any], period: float) -> dict[Port, Kind]:
    """Return the shape and unit of every output."""
    known: dict[Port, Kind] = {}
    for _ in range(MAX_PASSES):
        before = dict(known)
        for name in order:
            known |= {(name, port): kind for port, kind in _outputs(flat, name, known, signals, period).items()}
        if known == before:
            return known
    raise validate.fail(flat.element, "a loop makes its wires longer and longer", "remove a block 'mux' from the loop")


def _input_kinds(flat: Flat, name: str, known: dict[Port, Kind]) -> dict[str, Kind]:
    """Return the known shapes and units of a block's inputs."""
    block, given = flat.blocks[name], {}
    for port in block.inputs:
        source = flat.wires.get((name, port))
        if source is None:
            given[port] = Kind()
        elif source in known:
            given[port] = known[source]
    return given


def _outputs(
    flat: Flat, name: str, known: dict[Port, Kind], signals: Mapping[str, Any], period: float
) -> dict[str, Kind]:
    block, element = flat.blocks[name], flat.of(name)
    if isinstance(block, Signal):
        for signal in block.names:
            if signal not in signals and signal.startswith(f"{Flat.prefix}."):
                rule = f"signal '{signal}' is not a wire of a diagram added before this one"
                raise validate.fail(element, rule, "add that diagram first, or correct the name")
            if signal not in signals:
                raise ModelError(f"{element}: {unknown_name('signal', signal, signals)}")
        infos = [signals[signal] for signal in block.names]
        size = sum(int(np.prod(info.shape)) for info in infos)
        one = isinstance(block.signal, str) and not infos[0].shape
        parsed = {units.parse(info.unit) for info in infos}
        return {"out": Kind(() if one else (size,), parsed.pop() if len(parsed) == 1 else None)}
    try:
        return block.wires(_input_kinds(flat, name, known), period)
    except ModelError as error:
        raise ModelError(f"{element}: {error}") from None


def _check_commands(flat: Flat, kinds: dict[Port, Kind], commands: Mapping[str, str]) -> None:
    """Check that wires to commands have the unit of the command.

    Raises:
        ModelError: the units differ.
    """
    for name, block in flat.blocks.items():
        wire = _input_kinds(flat, name, kinds)["in"].unit if isinstance(block, Command) else None
        for label in block.names if isinstance(block, Command) and wire else ():
            if not units.fits(wire, units.parse(commands.get(label))):
                takes = commands[label] if commands[label] != "-" else "a fraction"
                rule = f"its wire is in {units.shown(wire)}, and command '{label}' takes {takes}"
                raise validate.fail(flat.of(name), rule, "insert a gain with a unit")


def compile_flat(
    flat: Flat, signals: Mapping[str, Any], controls: Mapping[str, int], dt: float,
    commands: Mapping[str, str] | None = None,
) -> Program:  # fmt: skip
    """Compile a flat diagram. See :meth:`Diagram.compile`."""
    check(flat)
    for name, block in flat.blocks.items():
        if isinstance(block, Inport):
            rule = "works only in a subsystem"
            raise validate.fail(flat.of(name), rule, "use an 'input' or a 'signal' instead")
    fastest = flat.rate if flat.max_rate is None else flat.max_rate
    period = dt if fastest is None else 1.0 / fastest
    if period < dt * (1.0 - 1e-9):
        rule = f"its period of {period:g} s is shorter than the step of {dt:g} s"
        raise validate.fail(flat.element, rule, f"give a rate of at most {1.0 / dt:g} Hz, or a smaller step")
    order = sort_blocks(flat)
    kinds = _kinds(flat, order, signals, period)
    _check_commands(flat, kinds, commands or {})
    # Diagrams with equal seeds must have different noise. The seeds of sensors already depend on their labels.
    streams = 0 if flat.prefix == "sensor" else zlib.crc32(flat.label.encode())
    trace = Trace(initial=[0.0] * HEAD, streams=streams)
    sample_period: Number = period
    if flat.max_rate is not None:
        sample_period = 1.0 / trace.parameter(flat.rate or flat.max_rate)
    labels = {id(b): input_label(path, b) for path, b in flat.blocks.items() if isinstance(b, Input)}
    read: dict[str, list[int]] = {}
    contexts: dict[str, Context] = {}
    values: dict[Port, Wire] = {}
    wires: list[WireInfo] = []
    for name in order:
        block, element = flat.blocks[name], flat.of(name)
        port_kinds = _input_kinds(flat, name, kinds) | {port: kinds[name, port] for port in block.outputs}
        c = contexts[name] = Context(trace, element, sample_period, period, port_kinds)
        _assign_columns(c, block, element, signals, controls, read, labels)
        outputs = block.run(c, _wire_values(trace, flat, name, values, waiting=False))
        for port in block.outputs:
            values[name, port] = outputs[port]
            wires.append(_store_wire(flat, trace, name, port, kinds[name, port], outputs[port]))
    for name in order:
        flat.blocks[name].update(contexts[name], _wire_values(trace, flat, name, values, waiting=True))
    return _program(flat, trace, period, list(read), contexts, wires, sum(map(len, read.values())))


def _assign_columns(
    c: Context, block: Block, element: str, signals: Mapping[str, Any], controls: Mapping[str, int],
    read: dict[str, list[int]], labels: dict[int, str],
) -> None:  # fmt: skip
    """Assign array columns to the signals and commands that a block reads or writes."""
    if isinstance(block, Signal):
        c.signals["out"] = []
        for signal in block.names:
            info = signals[signal]
            if info.forward:
                rule = f"signal '{signal}' needs a trial of the next step"
                raise validate.fail(element, rule, "read a signal of the state or of a sensor")
            if signal not in read:
                first = sum(map(len, read.values()))
                read[signal] = list(range(first, first + int(np.prod(info.shape))))
            c.signals["out"] += read[signal]
    elif isinstance(block, Input):
        c.commands["out"] = controls[labels[id(block)]]
    elif isinstance(block, Command):
        for label in block.names:
            if label not in controls:
                raise ModelError(f"{element}: {unknown_name('command', label, controls)}")
            if label in labels.values():
                rule = f"'{label}' is an input of the diagram itself"
                raise validate.fail(element, rule, "give another command")
            c.commands[label] = controls[label]


def _wire_values(trace: Trace, flat: Flat, name: str, values: dict[Port, Wire], waiting: bool) -> dict[str, Wire]:
    """Return the traced values of a block's inputs. Include the inputs in ``waits`` only if ``waiting`` is True."""
    block, given = flat.blocks[name], {}
    for port in block.inputs:
        source = flat.wires.get((name, port))
        if source is None:
            given[port] = [trace.constant(block.optional[port])]
        elif waiting or port not in block.waits:
            given[port] = values[source]
    return given


def _store_wire(flat: Flat, trace: Trace, name: str, port: str, kind: Kind, values: Wire) -> WireInfo:
    """Store the value of a wire in new state variables, and return the description of its signal."""
    slots = [trace.add_state(0.0) for _ in values]
    for slot, value in zip(slots, values, strict=True):
        trace.write_state(slot, value)
    full = f"{flat.prefix}.{flat.label}.{name.replace(SEPARATOR, '.')}" + (f".{port}" if port != "out" else "")
    unit = units.shown(kind.unit)
    return WireInfo(full, kind.shape, unit, f"{port} of block {name}, last sample", tuple(slot.index for slot in slots))


def _program(
    flat: Flat, trace: Trace, period: float, read: list[str], contexts: dict[str, Context],
    wires: list[WireInfo], width: int,
) -> Program:  # fmt: skip
    tuned = {
        f"{flat.prefix}.{flat.label}.{name.replace(SEPARATOR, '.')}.{parameter}": spec
        for name, c in contexts.items()
        for parameter, spec in c.tuned.items()
    }
    rate_at = None if flat.max_rate is None else 0  # the first parameter that compile_flat makes
    if flat.max_rate is not None:
        doc = "samples per second"
        rate = Tuned(0, 0.0, flat.max_rate, above=True, unit="Hz", doc=doc)
        tuned[f"{flat.prefix}.{flat.label}.{CLOCK}.rate"] = rate
    tables = {name: np.array(values) for name, values in trace.tables.items()}
    body = "\n".join(f"    {line}" for line in ["rows = np.arange(len(s))", *trace.numpy])
    source = f"def run(given, par, s, control):\n{body}\n"
    names: dict[str, Any] = {
        "np": np,
        "exact_math": exact_math,
        "noise": noise,
        "INFINITE": np.inf,
        "NOT_A_NUMBER": np.nan,
        **tables,
    }
    names |= {name: python for name, (_, python) in trace.calls.items()}
    exec(compile(source, f"<{flat.element}>", "exec"), names)  # noqa: S102 (trace.py generates the source)
    run = names["run"]

    def run_quietly(given: Array, par: Array, s: Array, control: Array, last: Array | None = None) -> None:
        with np.errstate(all="ignore"):
            run(given, par, s, control)

    table_lines = [
        f"GPUSIM_TABLE double {name}[] = {{{', '.join(trace._text(x) for x in values.tolist())}}};"
        for name, values in tables.items()
    ]
    helpers = [text for text, _ in trace.calls.values() if text]
    host = any(block.host for block in flat.blocks.values())
    return Program(
        label=flat.label, period=period, signals=read, initial=np.array(trace.initial),
        parameters=np.array(trace.parameters), tuned=tuned, wires=wires, inputs=flat.operator_inputs,
        drives=flat.driven, cpp="\n".join(trace.cpp), helpers="\n".join([*table_lines, *helpers]), run=run_quietly,
        numpy=source, host=host, operations=len(trace.cpp), rate_at=rate_at, rings=trace.rings,
        width=width,
    )  # fmt: skip
