"""Signals of actuators: their readings, commands, variables and parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gpusim.model.actuator_kinds import Group
from gpusim.sensors.signal import SignalTable
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

Reader = Callable[[], Array]
Writer = Callable[[Array, Array], None]


def add_actuator_signals(sim: Simulation, table: SignalTable) -> None:
    """``motor.<label>.speed``, ``cylinder.<label>.pressure_a`` and so on."""
    for group in sim.state.groups:
        kind = group.type
        for k, label in enumerate(group.labels):
            prefix = f"{kind.prefix}.{label}."
            for reading in kind.readings:
                reader = _reader(sim, kind.name, reading.name, k)
                table.add(
                    prefix + reading.name, (), reading.unit, reading.doc, reader, _writer(sim, group, reading.name, k)
                )
            for p in kind.parameters:
                if prefix + p.name not in table.by_name:
                    table.add(
                        prefix + p.name, (), p.unit, f"{p.doc}; may differ per world",
                        _parameter_reader(sim, kind.name, p.name, k), _parameter_writer(sim, kind.name, p.name, k),
                    )  # fmt: skip


def _reader(sim: Simulation, kind: str, name: str, k: int) -> Reader:
    def read() -> Array:
        w = sim.sensed()
        group = w.groups[kind]
        reading = next(r for r in group.type.readings if r.name == name)
        return np.asarray(reading.read(group, w)[:, k]).copy()

    return read


def _writer(sim: Simulation, group: Group, name: str, k: int) -> Writer | None:
    """Commands and state variables can be written."""
    kind = group.type.name
    if name in group.control:
        column = int(group.control[name][k])

        def write_control(worlds: Array, value: Array) -> None:
            sim.control.array[worlds, column] = value
            sim.changed()

        return write_control
    if name in group.state:

        def write_state(worlds: Array, value: Array) -> None:
            place = next(n for n, g in enumerate(sim.state.groups) if g.type.name == kind)
            sim.state.groups[place].state[name][worlds, k] = value
            sim.changed()

        return write_state
    return None


def _parameter_reader(sim: Simulation, kind: str, name: str, k: int) -> Reader:
    def read() -> Array:
        w = sim.backend.work
        return np.asarray(w.broadcast(w.groups[kind].params[name])[:, k]).copy()

    return read


def _parameter_writer(sim: Simulation, kind: str, name: str, k: int) -> Writer:
    def write(worlds: Array, value: Array) -> None:
        group = sim.backend.work.groups[kind]
        before = group.params[name]
        group.params[name] = np.array(np.broadcast_to(before, (sim.num_worlds, before.shape[1])))
        group.params[name][worlds, k] = value
        group.derived.clear()
        try:
            group.type.check(group)
        except Exception:
            group.params[name] = before
            raise
        sim.backend.refresh_parameters()
        sim.changed()

    return write
