"""Axis rows (constraint rows of joint coordinates) that gpusim adds when the user first writes a joint parameter.

A joint coordinate without limits, damping, friction, armature or actuator has no axis row. When the user first writes
one of these joint parameters, gpusim rebuilds the model with an additional axis row. The simulation continues with the
new model. The state and all other parameters do not change.
"""

from __future__ import annotations

import itertools
from collections.abc import Set

import numpy as np

from gpusim import validate
from gpusim.builder.finalize import LENGTH, with_axes
from gpusim.model import fields
from gpusim.model.coordinates import coordinates
from gpusim.model.model import Model
from gpusim.model.parameters import check_length, check_parameter
from gpusim.model.ropes import rope_table
from gpusim.model.state import State
from gpusim.reference.signals.state_reader import StateReader
from gpusim.signals.runtime import Runtime
from gpusim.typing import Array


def add_row(runtime: Runtime, joint: int, coordinate: int, name: str, worlds: Array, value: Array) -> None:
    """Add an axis row for a joint coordinate, and write a parameter of this row.

    Args:
        runtime: runtime of a simulation. The coordinate must not have an axis row yet.
        joint, coordinate: index of the joint, and index of its coordinate.
        name: name of the parameter (model/fields.py).
        worlds: indices of n worlds (n,).
        value: values of the parameter in these worlds (n,).

    Raises:
        ModelError: a value is invalid. After an error, the simulation is unchanged.
    """
    if np.all(value == runtime.model.joints[joint].params[name][coordinate]):
        return
    old, new = runtime.model, with_axes(runtime.model, [(joint, coordinate)])
    added = new.axis_of[joint, coordinate]
    parameters = converted_parameters(runtime.parameters, old, new)
    written = np.array(np.broadcast_to(parameters[name], (runtime.num_worlds, len(new.axes))))
    written[worlds, added] = value
    check_parameter(new, parameters, name, written, added)
    parameters[name] = written
    runtime.rebind(new, parameters, *(converted_state(state, runtime, old, new) for state in runtime.states()))


def write_length(runtime: Runtime, joint: int, worlds: Array, value: Array) -> None:
    """Set the length of a rod. The first call replaces the equality constraint of the rod by two equal limits."""
    key, element = (joint, LENGTH), runtime.model.joints[joint].element
    check_length(element, "length", value)
    if not np.all(np.isfinite(value)):
        raise validate.fail(element, f"length {value.max():g} of a rod is not finite", "write its length, m")
    if key not in row_keys(runtime.model):
        if np.all(value == runtime.model.joints[joint].params["rod"]):
            return
        set_rows(runtime, row_keys(runtime.model) | {key})
    axis = runtime.model.axis_of[joint, 0]
    above = runtime.parameter("limit_upper")[worlds, axis]
    runtime.write_parameter("limit_lower", axis, worlds, np.minimum(value, above))
    runtime.write_parameter("limit_upper", axis, worlds, value)
    if np.any(value > above):
        runtime.write_parameter("limit_lower", axis, worlds, value)


def row_keys(model: Model) -> frozenset[tuple[int, int]]:
    """Return the pairs (joint, coordinate) with an axis row, and (joint, LENGTH) for each rod of variable length."""
    return frozenset(model.axis_of) | {(joint, LENGTH) for joint in _adjustable_rods(model)}


def set_rows(runtime: Runtime, rows: Set[tuple[int, int]]) -> None:
    """Rebuild the model from the builder, with additional axis rows for ``rows``. See :func:`row_keys`."""
    old, new = runtime.model, with_axes(runtime.built, rows)
    parameters = converted_parameters(runtime.parameters, old, new)
    runtime.rebind(new, parameters, *(converted_state(state, runtime, old, new) for state in runtime.states()))


def _axis_keys(model: Model) -> list[tuple[int, int]]:
    """Return a key for each axis row: (joint, coordinate), or (-1, index) for a row without a joint."""
    numbers = itertools.count()
    return [(a.joint, a.coordinate if a.joint >= 0 else next(numbers)) for a in model.axes]


def _common_axes(old: Model, new: Model) -> tuple[Array, Array, Array]:
    """Return the indices of common axis rows in ``old`` and in ``new``, and the indices in ``new`` of added rows."""
    index_of, keys = {key: k for k, key in enumerate(_axis_keys(old))}, _axis_keys(new)
    common = [(index_of[key], k) for k, key in enumerate(keys) if key in index_of]
    before, after = np.array(common, dtype=np.int64).reshape(-1, 2).T
    return before, after, np.setdiff1d(np.arange(len(keys)), after)


def _adjustable_rods(model: Model) -> set[int]:
    """Return the joint indices of all rods with variable length."""
    return {index for index, joint in enumerate(model.joints) if "moves" in joint.params}


def _rigid_rows(model: Model, without: set[int]) -> Array:
    """Return the rigid constraint rows of all joints except the joints ``without``."""
    t = model.topology
    return t.rigid_row[~np.isin(t.constraint_joint[t.rigid_row // t.block], list(without))]


def _freed_axes(old: Model, new: Model) -> list[int]:
    """Return the new axis rows of rods whose length is constant in ``old`` and variable in ``new``."""
    return [new.axis_of[joint, 0] for joint in sorted(_adjustable_rods(new) - _adjustable_rods(old))]


def converted_parameters(current: dict[str, Array], old: Model, new: Model) -> dict[str, Array]:
    """Convert the parameters ``current`` from model ``old`` to model ``new``, which has different axis rows."""
    parameters = dict(current)
    before, after, _ = _common_axes(old, new)
    freed = _freed_axes(old, new)
    for field in fields.PARAMETER_FIELDS:
        if "axes" in field.dims:
            built, values = new.parameters[field.name], current[field.name]
            wide = np.array(np.broadcast_to(built, (values.shape[0], built.shape[1])))
            wide[:, after] = values[:, before]
            if field.name in ("limit_lower", "limit_upper"):
                wide[:, freed] = built[:, freed]
            parameters[field.name] = wide
    return parameters


def converted_state(old: State, runtime: Runtime, before: Model, model: Model) -> State:
    """Convert the state ``old`` from model ``before`` to ``model``, which differs only in the axis rows."""
    new = State.initial(model, runtime.num_worlds, old.arrays["impulse"].dtype, runtime.config)
    common_before, common, added = _common_axes(before, model)
    joints = _adjustable_rods(before) ^ _adjustable_rods(model)
    rows = [np.concatenate([_rigid_rows(m, joints), m.topology.axis_row[axes], m.topology.coupling.rigid_row])
            for m, axes in ((model, common), (before, common_before))]  # fmt: skip
    for field in fields.STATE_FIELDS:
        array, values = new.arrays[field.name], old.arrays[field.name]
        if "constraints" in field.dims:
            flat, flat_before = (x.reshape(runtime.num_worlds, -1) for x in (array, values))
            flat[:, rows[0]] = flat_before[:, rows[1]]
        elif "axes" in field.dims:
            array[:, common] = values[:, common_before]
        elif "ropes" in field.dims:
            number, former = rope_table(model)["axis_rope"][common], rope_table(before)["axis_rope"][common_before]
            both = (number >= 0) & (former >= 0)
            array[:, number[both]] = values[:, former[both]]
        elif "couplings" in field.dims:
            rigid = model.topology.coupling.rigid  # all other couplings are sums without an offset
            array[:, :rigid] = values[:, :rigid]
        else:
            array[:] = values
    _hold_lengths(new, before, model)
    # Copy arrays that the step does not use, such as the variables of diagrams.
    new.arrays |= {name: array.copy() for name, array in old.arrays.items() if name not in new.arrays}
    if added.size:
        rates = _rates(runtime, model, added, old)
        for name in ("axis_velocity", "axis_velocity_before"):
            new.arrays[name][:, added] = rates
    for group, group_before in zip(new.groups, old.groups, strict=True):
        group.params, group.state = group_before.params, {k: v.copy() for k, v in group_before.state.items()}
    return new


def _hold_lengths(new: State, before: Model, model: Model) -> None:
    """Set the current limits of rods with constant length in ``before`` to their lengths in the builder."""
    axes = np.array(_freed_axes(before, model), np.int64)
    length = np.stack([model.parameters[name][0, axes] for name in ("limit_lower", "limit_upper")], axis=-1)
    began = new.arrays["step_before"][:, None, None] > 0.0
    new.arrays["limit_now"][:, rope_table(model)["axis_rope"][axes]] = np.where(began, length, np.nan)


def _rates(runtime: Runtime, model: Model, axes: Array, state: State) -> Array:
    """Return the rates of the joint axes ``axes`` (m/s or rad/s), computed from the stored velocities of bodies."""
    table = coordinates(model)
    # The flag True (semi-implicit scheme) reads the stored velocities without a kick to the current time.
    then = StateReader(model, table, True, lambda: state, runtime.parameters, runtime.backend.memory.read_control)
    return np.concatenate([then.rate(table.of_axis[k : k + 1])[:, :1] for k in axes], axis=1)
