"""Parameters of a model and its actuators, in the memory of a backend with kernels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpusim.backends.codegen.header import READ_PARAMETERS
from gpusim.backends.memory import KernelMemory
from gpusim.description.actuator_kinds import Group
from gpusim.model.fields import DERIVED_FIELDS
from gpusim.model.model import Model
from gpusim.model.parameters import derived_parameters, refresh_derived
from gpusim.typing import Array

_READ = frozenset(f.name for f in READ_PARAMETERS)
BOUNCING = ("limit_restitution", "shape_restitution")


class KernelParameters:
    """Parameters of all worlds, and derived values. The kernel arguments contain the addresses of these arrays.

    Args:
        model: model of the simulation.
        memory: memory that the kernels read.
        values: parameter arrays of the model by name. Parameter writes change these arrays.
        real: number type of the computations in a substep.
        arguments: kernel arguments. This class updates the addresses and strides in the arguments.

    Attributes:
        derived: values that depend on parameters, by name.
        packed: parameters of the n actuators of each kind, (1 or num_worlds, parameters, n).
    """

    def __init__(self, model: Model, memory: KernelMemory, values: dict[str, Array], real: Any, arguments: Any) -> None:
        self.model, self.memory, self.values, self.real, self.arguments = model, memory, values, real, arguments
        self.packed: dict[str, Array] = {}
        self.derived: dict[str, Array] = {}

    @property
    def groups(self) -> dict[str, Group]:
        """Return the actuator groups by kind."""
        return {g.type.name: g for g in self.memory.groups}

    def bounces(self) -> bool:
        """Return whether a position limit or shape has a positive coefficient of restitution in any world."""
        return any(bool(np.any(self.values[name] > 0.0)) for name in BOUNCING)

    def upload(self) -> None:
        """Pass all parameters and derived values to the kernels."""
        self.derived = derived_parameters(self.model.topology, self.values, self.real)
        for f in READ_PARAMETERS:
            self._bind(f.name, np.asarray(self.values[f.name], np.float64))
        for f in DERIVED_FIELDS:
            self._bind(f.name, self.derived[f.name])
        for group in self.memory.groups:
            self.upload_actuators(group)

    def written(self, names: Iterable[str], worlds: Array, kind: str | None) -> None:
        """Pass the changed parameters ``names`` of ``worlds`` to the kernels."""
        if kind is not None:
            self._actuators_written(kind, names, worlds)
            return
        for name in names:
            if name in _READ:
                self._bind(name, self.values[name], worlds)
            for field in refresh_derived(self.derived, name, worlds, self.model.topology, self.values, self.real):
                self._bind(field, self.derived[field], worlds)

    def _actuators_written(self, kind: str, names: Iterable[str], worlds: Array) -> None:
        group, packed = self.groups[kind], self.packed[kind]
        if packed.shape[0] != self.memory.num_worlds:
            self.upload_actuators(group)
            return
        known = [p.name for p in group.type.parameters]
        for name in names:
            packed[worlds, known.index(name)] = group.params[name][worlds]
        self.memory.bind_array(f"{kind}_parameters", packed, worlds)

    def upload_actuators(self, group: Group) -> None:
        """Pass all parameters of an actuator kind to the kernels."""
        if not group.type.parameters:
            return
        arrays, name = [group.params[p.name] for p in group.type.parameters], group.type.name
        rows = max(x.shape[0] for x in arrays)
        wide = [np.broadcast_to(x, (rows, x.shape[1])) for x in arrays]
        packed = self.packed[name] = np.ascontiguousarray(np.stack(wide, axis=1), np.float64)
        self.arguments[f"{name}_parameters"] = self.memory.bind_array(f"{name}_parameters", packed)
        self.arguments[f"stride_{name}"] = 0 if rows == 1 else packed[0].size

    def _bind(self, name: str, array: Array, worlds: Array | None = None) -> None:
        self.arguments[name] = self.memory.bind_array(name, np.ascontiguousarray(array), worlds)
        self.arguments[f"stride_{name}"] = 0 if array.shape[0] == 1 else array[0].size
