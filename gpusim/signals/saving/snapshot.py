"""Snapshots: everything that affects the next steps of a simulation (``sim.snapshot()`` and ``sim.restore``).

A snapshot contains the state, parameters, commands, failed worlds, parameters of diagrams, and the reset state. The
user can restore a snapshot in any simulation with an equal model. The simulation then continues with bit-identical
results.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.builder.finalize import with_axes
from gpusim.description.actuator_kinds import Group
from gpusim.model import fields
from gpusim.model.digest import different_parts
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.signals.added_rows import converted_parameters, converted_state, row_keys, set_rows
from gpusim.signals.runtime import Runtime
from gpusim.signals.writing import chosen_worlds
from gpusim.typing import Array

_FIRST = ("position", "orientation", "linear_velocity", "angular_momentum", "angle")
_BY_ROWS = {"constraints", "block", "axes", "couplings", "ropes"}
"""Dimensions of arrays that change when a write adds constraint rows (added_rows.py)."""
ELEMENT = "Simulation.restore"


@dataclass(repr=False)
class Snapshot(State):
    """Saved state from ``sim.snapshot()``. Snapshots can be pickled.

    Attributes:
        digest: hashes of the parts of the model from the builder, by part name.
        rows: pairs (joint, coordinate) of the joint coordinates with an axis row.
        scheme: time-stepping scheme, which determines the time of the stored velocities.
        parameters: parameters of bodies, joints and shapes. ``groups`` contains the parameters of actuators.
        commands: commands (num_worlds, commands).
        programs: parameters of diagrams and delays, by label.
        failed: reasons for the failures of worlds, by world index.
        first: arrays of the reset state.
    """

    digest: dict[str, str] = field(kw_only=True)
    rows: frozenset[tuple[int, int]] = field(kw_only=True)
    scheme: str = field(kw_only=True)
    parameters: dict[str, Array] = field(kw_only=True)
    commands: Array = field(kw_only=True)
    programs: dict[str, Array] = field(kw_only=True)
    failed: dict[int, str] = field(kw_only=True)
    first: dict[str, Array] = field(kw_only=True)

    def __repr__(self) -> str:
        return f"<Snapshot: {self.num_worlds} worlds at {np.max(on_host(self.arrays['time'])):g} s>"

    def copy(self) -> Snapshot:
        """Return an independent copy of the snapshot."""
        return copy.deepcopy(self)


@dataclass
class LiveState(State):
    """State of a running simulation (``sim.state``)."""

    runtime: Runtime = field(kw_only=True, repr=False)

    def copy(self) -> Snapshot:
        """Return a snapshot of the state, parameters, commands, failed worlds and diagrams. See :meth:`restore`."""
        runtime = self.runtime
        return Snapshot(
            self.num_worlds, _copies(self.arrays), [_copied_group(group) for group in self.groups],
            digest=runtime.built.digest, rows=row_keys(runtime.model), scheme=runtime.config.scheme,
            parameters=_copies(runtime.parameters), commands=np.array(runtime.backend.memory.read_control()),
            programs={program.program.label: program.parameters.copy() for program in runtime.running},
            failed=runtime.quarantine.reasons(),
            first=_copies(_first(runtime)),
        )  # fmt: skip

    def restore(self, other: State, worlds: Any = None, source: Any = None) -> None:
        """Restore ``worlds`` from a snapshot. See :meth:`Simulation.restore`."""
        snapshot = other.copy() if isinstance(other, LiveState) else other
        if not isinstance(snapshot, Snapshot):
            raise validate.fail(ELEMENT, f"{_named(snapshot)} is not a snapshot", "give the result of sim.snapshot()")
        chosen = chosen_worlds(ELEMENT, worlds, self.num_worlds)
        if source is not None:
            snapshot = _from_worlds(snapshot, source, chosen, self.num_worlds)
        _check(self, snapshot)
        _restore(self.runtime, snapshot, chosen)

    def __reduce__(self) -> Any:
        return Snapshot.copy, (self.copy(),)


def _named(value: Any) -> str:
    return "a state without parameters and commands" if isinstance(value, State) else f"{value!r}"


def _copies(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in arrays.items()}


def _first(runtime: Runtime) -> dict[str, Array]:
    """Return the arrays of the reset state that can differ from the initial state of the model."""
    first = runtime.states()[1]
    return {name: array for name, array in first.variables().items() if name in _FIRST or name not in first.arrays}


def _copied_group(group: Group) -> Group:
    copied = copy.copy(group)
    copied.params, copied.state, copied.derived = _copies(group.params), _copies(group.state), {}
    return copied


def _from_worlds(snapshot: Snapshot, source: Any, worlds: Array, num_worlds: int) -> Snapshot:
    """Return a copy of a snapshot for ``num_worlds`` worlds, with the worlds ``source`` copied to ``worlds`` (n,)."""
    taken = chosen_worlds(f"{ELEMENT}: source", source, snapshot.num_worlds)
    if taken.size not in (1, worlds.size):
        rule = f"source = {source!r} has {taken.size} worlds, and {worlds.size} worlds are to be restored"
        raise validate.fail(ELEMENT, rule, "give one world, or one for each")
    sources = np.zeros(num_worlds, np.int64)
    sources[worlds] = taken

    def moved(arrays: dict[str, Array]) -> dict[str, Array]:
        return {name: array[sources] if len(array) == snapshot.num_worlds else array for name, array in arrays.items()}

    failed, groups = snapshot.failed, [copy.copy(group) for group in snapshot.groups]
    for group in groups:
        group.params, group.state = moved(group.params), moved(group.state)
    return replace(
        snapshot, num_worlds=num_worlds, arrays=moved(snapshot.arrays), groups=groups,
        parameters=moved(snapshot.parameters),
        commands=snapshot.commands[sources], programs=moved(snapshot.programs), first=moved(snapshot.first),
        failed={int(w): failed[sources[w]] for w in worlds if sources[w] in failed} if failed else {},
    )  # fmt: skip


def check_model(element: str, model: Model, digest: Mapping[str, str]) -> None:
    """Raise a ModelError if a model does not have the digests ``digest``. The message starts with ``element``."""
    parts = different_parts(model.digest, digest)
    if parts:
        others = f"its {' and '.join(parts)} differ" if len(parts) < 3 else f"its {', '.join(parts)} differ"
        rule = f"the snapshot belongs to another model: {others}"
        raise validate.fail(element, rule, "give a snapshot of the same model")


def _check(live: LiveState, snapshot: Snapshot) -> None:
    """Raise a ModelError if the snapshot does not belong to an equal simulation."""
    runtime = live.runtime
    check_model(ELEMENT, runtime.built, snapshot.digest)
    if snapshot.num_worlds != live.num_worlds:
        rule = f"the snapshot has {snapshot.num_worlds} worlds, the simulation {live.num_worlds}"
        hint = f"give Simulation(num_worlds={snapshot.num_worlds}), or source= with worlds of the snapshot"
        raise validate.fail(ELEMENT, rule, hint)
    if snapshot.scheme != runtime.config.scheme:
        rule = f"the snapshot has scheme={snapshot.scheme!r}, and the simulation has {runtime.config.scheme!r}"
        raise validate.fail(ELEMENT, rule, f"give SolverConfig(scheme={snapshot.scheme!r})")
    ours, theirs = (_kinds_of_arrays(state) for state in (live, snapshot))
    for name in sorted({*ours, *theirs}):
        if ours.get(name) != theirs.get(name):
            rule = f"array '{name}' is {theirs.get(name)} in the snapshot and {ours.get(name)} in the simulation"
            hint = "give a simulation with the same dtype, max_pairs and dt of diagrams"
            raise validate.fail(ELEMENT, rule, hint)


def _kinds_of_arrays(state: State) -> dict[str, str]:
    """Return the number type and shape of each array of a state."""
    by_rows = {f.name for f in fields.STATE_FIELDS if _BY_ROWS & {str(d) for d in f.dims}}
    arrays = state.variables()
    return {
        name: f"{array.dtype}" if name in by_rows else f"{array.dtype} {array.shape}" for name, array in arrays.items()
    }


def _restore(runtime: Runtime, snapshot: Snapshot, worlds: Array) -> None:
    """Restore the worlds with the indices ``worlds`` from a checked snapshot."""
    rows = row_keys(runtime.model)
    target_rows = snapshot.rows if worlds.size == runtime.num_worlds else snapshot.rows | rows
    if target_rows != rows:
        set_rows(runtime, target_rows)
    state, parameters = _fitted(runtime, snapshot, runtime.model)
    runtime.backend.memory.state.restore(state, worlds)
    _restore_parameters(runtime, parameters, worlds)
    _restore_actuators(runtime, snapshot, worlds)
    for running in runtime.running:
        given = snapshot.programs[running.program.label]
        running.parameters = _written(running.parameters, given, worlds, runtime.num_worlds)
    runtime.backend.memory.host_control()[worlds] = snapshot.commands[worlds]
    for name, array in _first(runtime).items():
        array[worlds] = snapshot.first[name][worlds]
    runtime.quarantine.resume(snapshot.failed, worlds)
    runtime.capacity.resume(worlds)
    runtime.accuracy.resume(worlds)
    runtime.invalidate()


def _fitted(runtime: Runtime, snapshot: Snapshot, model: Model) -> tuple[State, dict[str, Array]]:
    """Return the state and parameters of a snapshot, converted to the axis rows of ``model``."""
    if snapshot.rows == row_keys(model):
        return State(snapshot.num_worlds, snapshot.arrays, snapshot.groups), snapshot.parameters
    before = with_axes(runtime.built, snapshot.rows)
    return converted_state(snapshot, runtime, before, model), converted_parameters(snapshot.parameters, before, model)


def _restore_parameters(runtime: Runtime, snapshot: dict[str, Array], worlds: Array) -> None:
    for name, current in runtime.parameters.items():
        written = _written(current, snapshot[name], worlds, runtime.num_worlds)
        if written is not current:
            runtime.parameters[name] = written
            runtime.backend.written([name], worlds)


def _restore_actuators(runtime: Runtime, snapshot: Snapshot, worlds: Array) -> None:
    for group, saved_group in zip(runtime.backend.memory.read_state().groups, snapshot.groups, strict=True):
        for name, current in group.params.items():
            written = _written(current, saved_group.params[name], worlds, runtime.num_worlds)
            if written is not current:
                group.params[name] = written
                group.derived.clear()
                runtime.backend.written([name], worlds, group.type.name)


def _written(current: Array, values: Array, worlds: Array, num_worlds: int) -> Array:
    """Return a copy of ``current`` with ``values`` in the worlds ``worlds``."""
    wide, saved = (np.broadcast_to(x, (num_worlds, *x.shape[1:])) for x in (current, values))
    if np.array_equal(wide[worlds], saved[worlds], equal_nan=True):
        return current
    written = np.array(wide, order="C")  # kernels read diagrams' parameters from this memory
    written[worlds] = saved[worlds]
    return written
