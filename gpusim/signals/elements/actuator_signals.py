"""Signals of actuators: measured values, commands, state variables and parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpusim.arrays import as_slice
from gpusim.builder.commands import applied_names
from gpusim.description.actuator_kinds import ON_TRAVELS, ActuatorType, Group
from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import ActuatorSpec
from gpusim.reference.signals.quantities import readings
from gpusim.signals.control_map import check_free
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SharedWriter, SignalTable
from gpusim.typing import Array

Reader = Callable[[], Array]
Writer = Callable[[Array, Array], None]
Units = Callable[[str, str], str]

BRAKE_SIGNALS = (
    ("force", "N m", "force on the coordinate (N on a translation)"),
    ("heat", "W", "power that becomes heat"),
)
"""Signals that every brake has, as (name, unit, description)."""


def add_actuator_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the signals of all actuators, such as ``motor.<label>.speed`` and ``cylinder.<label>.pressure_a``."""
    groups = {group.type.name: group for group in runtime.backend.memory.read_state().groups}
    for group in groups.values():
        kind = group.type
        for k, spec in enumerate(group.specs):
            prefix, unit = f"{kind.prefix}.{spec.label}.", _units(runtime, group, spec)
            for quantity in readings(kind):
                writer = _writer(runtime, group, quantity.name, k)
                table.observe(prefix + quantity.name, quantity, (k,), writer, unit=unit(quantity.name, quantity.unit))
            shared = _parameter_writer(runtime, groups, group, k)
            for row, p in enumerate(kind.parameters):
                if p.signal and prefix + p.name not in table.by_name:
                    table.add(
                        prefix + p.name, (), unit(p.name, p.unit), f"{p.doc}; may differ per world",
                        _parameter_reader(runtime, group, p.name, k), _alone(shared, p.name), shared=(shared, p.name),
                        parameter=(f"{kind.name}_parameters", (row, k)),
                    )  # fmt: skip
            if kind.brakes:
                _add_brake_signals(runtime, table, group, k, unit)


def _units(runtime: Runtime, group: Group, spec: ActuatorSpec) -> Units:
    """Return a function that maps the name and the declared unit of a signal to the unit for this actuator."""
    kind, joints = group.type, runtime.model.joints
    travels = False
    if kind.rotational:
        joint = joints[int(spec.params["joint"])]
        travels = joint_type(joint.kind).unit_of(joint, int(spec.params["axis"])) == "m"

    def unit(name: str, stated: str) -> str:
        given = kind.ui_hints(runtime.model, spec, name).unit if name in kind.commands else "-"
        return given if given != "-" else ON_TRAVELS.get(stated, stated) if travels else stated

    return unit


def _add_brake_signals(runtime: Runtime, table: SignalTable, group: Group, k: int, unit: Units) -> None:
    """Add the signals of a brake: its force, and its dissipated power (W)."""
    name, axis, prefix = group.type.name, int(group.axis[k]), f"{group.type.prefix}.{group.labels[k]}."

    def force() -> Array:
        return np.array(runtime.forward().term_forces[name][:, k], dtype=float)

    def heat() -> Array:
        work = runtime.forward()
        return -force() * 0.5 * (work.rate[:, axis] + work.rate_next[:, axis])

    for (signal, stated, doc), read in zip(BRAKE_SIGNALS, (force, heat), strict=True):
        table.add(prefix + signal, (), unit(signal, stated), doc, read, forward=True)


def _writer(runtime: Runtime, group: Group, name: str, k: int) -> Writer | None:
    """Return the function that writes a command or state variable. Return None for signals that are not writable."""
    kind = group.type.name
    if name in group.control:
        column = int(group.control[name][k])
        label = applied_names(group.specs[k])[list(group.control).index(name)]
        _, _, factor, offset = runtime.model.control_map[:, column]

        def write_control(worlds: Array, value: Array) -> None:
            check_free(runtime, label)
            runtime.backend.memory.host_control()[worlds, column] = (
                value - offset
            ) / factor  # inverse of the command map
            runtime.invalidate()

        return write_control
    if name in group.state:

        def write_state(worlds: Array, value: Array) -> None:
            index = next(n for n, g in enumerate(runtime.state.groups) if g.type.name == kind)
            runtime.state.groups[index].state[name][worlds, k] = value
            runtime.invalidate()

        return write_state
    return None


def _parameter_reader(runtime: Runtime, group: Group, name: str, k: int) -> Reader:
    def read() -> Array:
        runtime.backend.memory.pull_parameters()
        params = group.params[name][:, k]
        return np.array(np.broadcast_to(params, (runtime.num_worlds,)))

    return read


def _parameter_writer(runtime: Runtime, groups: dict[str, Group], group: Group, k: int) -> SharedWriter:
    together = type(group.type).check_together is not ActuatorType.check_together

    def write(worlds: Array, values: dict[str, Array]) -> None:
        runtime.backend.memory.pull_parameters()
        chosen = group.alone(k, as_slice(worlds))  # check the rules only for the written worlds
        for name, value in values.items():
            chosen.params[name] = value[:, None]
        group.type.check(chosen)
        if together:
            written = {
                name: np.repeat(group.params[name], runtime.num_worlds // len(group.params[name]), axis=0)
                for name in values
            }
            for name, value in values.items():
                written[name][worlds, k] = value
            group.type.check_together(groups | {group.type.name: replace(group, params=group.params | written)})
        for name, value in values.items():
            if group.params[name].shape[0] != runtime.num_worlds:
                group.params[name] = np.repeat(group.params[name], runtime.num_worlds, axis=0)
            group.params[name][worlds, k] = value
        runtime.backend.written(values, worlds, group.type.name)
        group.derived.clear()
        runtime.invalidate()

    return write


def _alone(write: SharedWriter, name: str) -> Writer:
    return lambda worlds, value: write(worlds, {name: value})
