"""State: all values that change from step to step, as arrays of all worlds."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import as_slice
from gpusim.description.actuator_kinds import Group
from gpusim.description.config import SolverConfig
from gpusim.description.specs import CONTACT_SENSOR, JOINT_SENSOR
from gpusim.model import fields
from gpusim.model.euler_angles import wrapped
from gpusim.model.model import Model
from gpusim.model.ropes import pulling, rope_table
from gpusim.model.sensors import of_kind
from gpusim.typing import Array

OVERRIDE = "override"
"""Name of the state array for overridden commands, (num_worlds, 2 * commands). The first half marks the overridden
commands, and the second half contains their values."""


def apply_overrides(control: Array, state: State) -> None:
    """Replace the commands that an emergency stop overrides, in ``control`` (num_worlds, commands)."""
    override, count = state.arrays[OVERRIDE], control.shape[1]
    if np.count_nonzero(override):
        control[...] = np.where(override[:, :count] != 0.0, override[:, count:], control)


@dataclass
class State:
    """State of a simulation: ``arrays`` by name (``fields.state_fields``), and actuator variables in ``groups``."""

    num_worlds: int
    arrays: dict[str, Array]
    groups: list[Group]

    @classmethod
    def initial(cls, model: Model, num_worlds: int, real: Any, config: SolverConfig | None = None) -> State:
        """Return a state with the poses and velocities of the builder in every world.

        ``config`` determines the contact capacity.
        """
        t = model.topology
        sizes = {
            "worlds": num_worlds,
            "bodies": t.num_bodies + 1,
            "constraints": t.num_constraints,
            "block": t.block,
            "axes": t.axis_row.shape[0],
            "angles": t.angle.axis.shape[0],
            "couplings": t.coupling.row.size,
            "controls": len(model.controls),
            "joint_sensors": len(of_kind(model, JOINT_SENSOR)),
            "ropes": rope_table(model)["rope_axis"].size,
            "pulls": len(pulling(model)),
            "contact_sensors": len(of_kind(model, CONTACT_SENSOR)),
            **model.contact.sizes(config or SolverConfig(), t.dynamic),
            **{f"{group.type.name}_count": len(group.specs) for group in model.groups},
        }
        kinds = [group.type for group in model.groups]
        for kind in kinds:
            fields.check_fields(kind, kind.state_fields, sizes, first=("worlds",))
        arrays = fields.allocate(fields.state_fields(kinds), sizes, np.dtype(real))
        arrays["orientation"][..., 3] = 1.0
        arrays["coupling_offset"][:] = t.coupling.offset
        arrays["limit_now"][:] = np.nan
        for k, body in enumerate(model.bodies):
            arrays["position"][:, k] = body.xform.apply(body.com)
            arrays["orientation"][:, k] = body.xform.rotation
            arrays["linear_velocity"][:, k] = body.linear_velocity
            r = body.xform.matrix()
            inertia = model.parameters["inertia"][0, k]
            arrays["angular_momentum"][:, k] = r @ (inertia @ (r.T @ body.angular_velocity))
        state = cls(num_worlds, arrays, [copy.copy(g) for g in model.groups])
        for group in state.groups:
            group.params = {k: v.copy() for k, v in group.params.items()}
            group.derived = {}
            group.state = {k: np.repeat(v, num_worlds, axis=0).astype(real) for k, v in group.state.items()}
        state.reset_angles(model)
        return state

    def reset_angles(self, model: Model, worlds: Any = slice(None)) -> None:
        """Recompute the joint angles from the poses, within +-pi (rad)."""
        r = rotations.matrix_from_quaternion(self.arrays["orientation"])
        self.arrays["angle"][worlds] = wrapped_angles(model, r)[worlds]

    def variables(self) -> dict[str, Array]:
        """Return all arrays of the state by name. Actuator variables have names of the form ``kind.name``."""
        named = dict(self.arrays)
        for group in self.groups:
            named.update({f"{group.type.name}.{k}": v for k, v in group.state.items()})
        return named

    def copy(self) -> State:
        """Return a copy of the state with all variables. The copy shares the actuator parameters with the original."""
        groups = []
        for group in self.groups:
            new = copy.copy(group)
            new.state = {k: v.copy() for k, v in group.state.items()}
            groups.append(new)
        return State(self.num_worlds, {k: v.copy() for k, v in self.arrays.items()}, groups)

    def restore(self, other: State, worlds: Any = None) -> None:
        """Copy the variables of chosen worlds from another state of the same model.

        Args:
            other: state whose arrays have the same shapes.
            worlds: indices of the worlds, a mask (num_worlds,), or None for all worlds.

        Raises:
            ModelError: ``other`` belongs to a different model, or has a different number of worlds.
        """
        if _shapes(self) != _shapes(other):
            rule = "the arrays of the other state have different shapes"
            raise validate.fail("State.restore", rule, "give a state of the same model with the same number of worlds")
        self.copy_worlds(other, slice(None) if worlds is None else worlds)

    def copy_worlds(self, other: State, worlds: Any) -> None:
        """Copy the variables of chosen worlds from another state without checks. See :meth:`restore`."""
        worlds = as_slice(worlds)
        for name, array in self.arrays.items():
            if array.size:  # skip empty arrays, because indexing an empty array takes as long
                array[worlds] = other.arrays[name][worlds]
        for mine, theirs in zip(self.groups, other.groups, strict=True):
            for name, array in mine.state.items():
                array[worlds] = theirs.state[name][worlds]


def _shapes(state: State) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in state.variables().items()}


def wrapped_angles(model: Model, rotation: Array) -> Array:
    """Return the joint angles within +-pi (rad), (num_worlds, angles), for the rotation matrices of all bodies."""
    t = model.topology.angle
    axis = rotations.matvec(rotation[:, t.owner], t.axis)
    ref_a = rotations.matvec(rotation[:, t.body_a], t.ref_a)
    ref_b = rotations.matvec(rotation[:, t.body_b], t.ref_b)
    return wrapped(t, axis, ref_a, ref_b)
