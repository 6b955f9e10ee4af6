"""Rows that joints get while a simulation runs, at the first write of a parameter that needs one.

A joint coordinate without limits, damping, friction, armature or actuator has no axis row, which costs nothing. When
one of these is written, the model is compiled again with the row that it would have been built with, and the
simulation goes on with it: what has a row, an axis or a world of its own is carried over, the rest is the same.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from gpusim.model import fields
from gpusim.model.coordinates import coordinates
from gpusim.model.finalize import with_axes
from gpusim.model.model import Model
from gpusim.model.parameters import check_parameter
from gpusim.model.ropes import rope_table
from gpusim.model.state import State
from gpusim.reference.now import Now
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def add_row(sim: Simulation, joint: int, coordinate: int, name: str, worlds: Array, value: Array) -> None:
    """Give a joint coordinate an axis row and write one of its parameters; what is written already needs none.

    Args:
        sim: of a model where the coordinate has no row.
        joint, coordinate: which.
        name: of a parameter of the table in model/fields.py over axes.
        worlds: indices (n,).
        value: for these worlds, (n,).

    Raises:
        ModelError: the value breaks a rule; nothing is changed then.
    """
    if np.all(value == sim.model.joints[joint].params[name][coordinate]):
        return
    old, new = sim.model, with_axes(sim.model, [(joint, coordinate)])
    axes = _places(_axis_keys(new), _axis_keys(old))
    added = int(np.setdiff1d(np.arange(len(new.axes)), axes)[0])
    parameters = _parameters(sim.parameters, new, axes)
    written = np.array(np.broadcast_to(parameters[name], (sim.num_worlds, len(new.axes))))
    written[worlds, added] = value
    check_parameter(new, parameters, name, written, added)
    parameters[name] = written
    states = [_carried(state, sim, new, axes, added) for state in sim.states()]
    sim.adopt(new, parameters, *states)


def _axis_keys(model: Model) -> list[tuple[int, int]]:
    """Which axis is which: (joint, coordinate), or (-1, number) of those without a joint, in their order."""
    numbers = itertools.count()
    return [(a.joint, a.coordinate if a.joint >= 0 else next(numbers)) for a in model.axes]


def _places(new: list[tuple[int, int]], old: list[tuple[int, int]]) -> Array:
    place = {key: k for k, key in enumerate(new)}
    return np.array([place[key] for key in old], dtype=np.int64)


def _parameters(old: dict[str, Array], model: Model, axes: Array) -> dict[str, Array]:
    """Current parameters, with the built ones of the new axis."""
    parameters = dict(old)
    for field in fields.PARAMETER_FIELDS:
        if "axes" in field.dims:
            built, current = model.parameters[field.name], old[field.name]
            wide = np.array(np.broadcast_to(built, (current.shape[0], built.shape[1])))
            wide[:, axes] = current
            parameters[field.name] = wide
    return parameters


def _carried(old: State, sim: Simulation, model: Model, axes: Array, added: int) -> State:
    """A state of the model as it is, for one with a further axis."""
    new = State.initial(model, sim.num_worlds, old.arrays["impulse"].dtype, sim.config)
    rows = [np.concatenate([m.topology.rigid_row, m.topology.axis_row[own], m.topology.coupling.rigid_row])
            for m, own in ((model, axes), (sim.model, slice(None)))]  # fmt: skip
    for field in fields.STATE_FIELDS:
        array, before = new.arrays[field.name], old.arrays[field.name]
        if "constraints" in field.dims:
            flat, flat_before = (x.reshape(sim.num_worlds, -1) for x in (array, before))
            flat[:, rows[0]] = flat_before[:, rows[1]]
        elif "axes" in field.dims:
            array[:, axes] = before
        elif "ropes" in field.dims:
            array[:, rope_table(model)["axis_rope"][axes[rope_table(sim.model)["rope_axis"]]]] = before
        elif "couplings" in field.dims:
            rigid = model.topology.coupling.rigid  # the others are sums without an offset
            array[:, :rigid] = before[:, :rigid]
        else:
            array[:] = before
    # What the step does not know, as the numbers of diagrams.
    new.arrays |= {name: array.copy() for name, array in old.arrays.items() if name not in new.arrays}
    rate = _rate(sim, model, added, old)
    for name in ("axis_velocity", "axis_velocity_before"):
        new.arrays[name][:, added] = rate
    for group, group_before in zip(new.groups, old.groups, strict=True):
        group.params, group.state = group_before.params, {k: v.copy() for k, v in group_before.state.items()}
    return new


def _rate(sim: Simulation, model: Model, axis: int, state: State) -> Array:
    """Rate of a joint coordinate at the half step that the state's velocities belong to, m/s or rad/s."""
    table = coordinates(model)
    # Velocities as they are in the state, which is how the papers' scheme reads them.
    then = Now(model, table, True, lambda: state, sim.parameters, sim.backend.read_control)
    return then.rate(table.of_axis[axis : axis + 1])[:, 0]
