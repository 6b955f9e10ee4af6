"""Memory of a backend on the host: the state and the commands of all worlds."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.arrays import on_host
from gpusim.backends.kinds import kinds_of
from gpusim.description.actuator_kinds import Group
from gpusim.model.model import Model
from gpusim.model.state import State, apply_overrides
from gpusim.typing import Array


class HostMemory:
    """State and commands in host memory. The commands start with their default values.

    Attributes:
        control: commands (num_worlds, controls).
    """

    def __init__(self, model: Model, state: State) -> None:
        self.model, self._state, self.num_worlds = model, state, state.num_worlds
        self.control: Array = np.repeat(model.default_controls[None], state.num_worlds, axis=0)

    @property
    def state(self) -> State:
        """Return the state for reading and writing."""
        return self._state

    def read_state(self) -> State:
        """Return the state for reading only."""
        return self._state

    def host_control(self) -> Array:
        """Return the commands for reading and writing, (num_worlds, controls)."""
        return self.control

    def read_control(self) -> Array:
        """Return the commands for reading only, (num_worlds, controls)."""
        return self.control

    def hold_overridden(self) -> None:
        """Copy the values in the state array OVERRIDE to the commands that an emergency stop overrides."""
        apply_overrides(self.control, self._state)

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write ``values`` (num_worlds, n) to n commands. ``columns`` is a slice or an array of indices."""
        given = values if type(values) is np.ndarray else on_host(values).reshape(self.num_worlds, -1)
        self.control[:, columns] = given

    def is_mask(self, worlds: Any) -> bool:
        """Return False, because this memory is not on a device."""
        return False

    def pull_parameters(self) -> None:
        """Do nothing: the parameters are on the host."""

    def register_array(self, name: str) -> None:
        """Do nothing: the state already contains the array."""

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return the given columns of a state array, (num_worlds, len(columns))."""
        return self._state.arrays[name][:, list(columns)]

    def to_device(self, array: Array) -> Any:
        """Return ``array``, because this memory is not on a device."""
        return array


class KernelMemory(HostMemory):
    """Host memory for kernels. The kernels access the arrays by address.

    Attributes:
        kinds: actuator kinds in the build of the model.
        packed_state: state variables of the n actuators of each kind, (num_worlds, variables, n).
    """

    def __init__(self, model: Model, state: State) -> None:
        super().__init__(model, state)
        self.kinds = kinds_of(model)
        self.stored = state.arrays["impulse"].dtype
        self._bound: dict[str, tuple[Array, int]] = {}
        self.packed_state: dict[str, Array] = {}
        for group in state.groups:
            if group.type.variables:
                self._pack(group)

    @property
    def groups(self) -> list[Group]:
        """Return the actuator groups of the state, one group per actuator kind."""
        return self._state.groups

    def _pack(self, group: Group) -> None:
        """Pack the state variables of an actuator group into one array, and make each variable a view of this array."""
        variables = group.type.variables
        packed = np.stack([group.state[v.name] for v in variables], axis=1).astype(self.stored)
        own = self.packed_state[group.type.name] = np.ascontiguousarray(packed)
        group.state = {v.name: own[:, k] for k, v in enumerate(variables)}

    def kept_array(self, name: str) -> Array:
        """Return the state array with the field name ``name`` on the host."""
        if name in self._state.arrays:
            return self._state.arrays[name]
        return self.packed_state.get(name.removesuffix("_state"), np.zeros(0))

    def bind_array(self, name: str, array: Array, worlds: Array | None = None) -> int:
        """Pass an array to the kernels under a name, and return its address.

        ``worlds`` contains the worlds whose rows have changed since the last call with this name.
        """
        if name not in self._bound or self._bound[name][0] is not array:
            kept = np.ascontiguousarray(array)
            self._bound[name] = kept, kept.ctypes.data
        return self._bound[name][1]

    def read_array(self, name: str) -> Array:
        """Return the array that :meth:`bind_array` has passed to the kernels as ``name``."""
        return self._bound[name][0]

    def rows_of(self, worlds: Array) -> Array:
        """Return the position of each world in the list ``worlds``, or -1 for all other worlds, (num_worlds,)."""
        rows = np.full(self.num_worlds, -1, np.int32)
        rows[worlds] = np.arange(len(worlds))
        return rows
