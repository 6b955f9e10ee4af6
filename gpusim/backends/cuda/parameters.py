"""Parameters in GPU memory. Writes from device arrays do not wait for the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.backends.cuda.memory import CudaMemory
from gpusim.backends.parameters import KernelParameters
from gpusim.model.model import Model
from gpusim.model.parameters import DERIVED_FROM, derive, refresh_derived
from gpusim.typing import Array

_SOURCES = ("mass",)
"""Parameters that the kernels read only through derived values."""


class CudaParameters(KernelParameters):
    """Parameters of a simulation on a GPU. The host copies values from the GPU on access."""

    memory: CudaMemory

    def __init__(self, model: Model, memory: CudaMemory, values: dict[str, Array], real: Any, arguments: Any) -> None:
        super().__init__(model, memory, values, real, arguments)
        self._newer: set[str] = set()
        memory.pull_written = self._pull

    def write_columns(self, name: str, at: tuple[Any, ...], values: Any, worlds: Any) -> None:
        """Write values of a parameter in chosen worlds on the device. The values are not checked.

        Args:
            name: field of PARAMETER_FIELDS, or ``<kind>_parameters`` for an actuator kind.
            at: indices of the n values in the parameter array of one world.
            values: device array (1 or worlds, n).
            worlds: indices (n,), or a mask (num_worlds,) on the device.
        """
        memory = self.memory
        with memory.here():
            own, rows = self._own_rows(name), memory.device_rows(worlds)
            cell = own[(slice(None), *at)]
            given = memory.side_by_side([values], len(worlds))[rows]  # unchosen worlds get the last row
            chosen = (rows >= 0).reshape(-1, *(1,) * (cell.ndim - 1))
            cell[...] = memory.cupy.where(chosen, given.reshape(cell.shape), cell)
            self._newer.add(name)
            self._refresh_derived(name)

    def _own_rows(self, name: str) -> Any:
        """Return the device array of a parameter, expanded to one row per world."""
        count, kind = self.memory.num_worlds, name.removesuffix("_parameters")
        if kind in self.packed:
            group = self.groups[kind]
            if self.packed[kind].shape[0] != count:
                first = group.type.parameters[0].name
                group.params[first] = np.repeat(group.params[first], count, axis=0)
                self.upload_actuators(group)
        elif self.values[name].shape[0] != count:
            self.values[name] = np.repeat(self.values[name], count, axis=0)
            self.written([name], np.arange(count), None)
        if name in _SOURCES and name not in self._newer:
            self.memory.bind_array(name, self.values[name])
        return self.memory.arrays[name]

    def _refresh_derived(self, name: str) -> None:
        """Recompute the values that depend on parameter ``name`` on the device."""
        arrays, topology = self.memory.arrays, self.model.topology
        for field, sources in DERIVED_FROM.items():
            if name in sources:
                given = {source: arrays[source] for source in sources}
                arrays[field][...] = derive(field, topology, given, self.real, self.memory.cupy)

    def _pull(self) -> None:
        """Update the host copies of parameters that the user has written on the device."""
        every = np.arange(self.memory.num_worlds)
        for name in sorted(self._newer):
            values, kind = self.memory.read_array(name), name.removesuffix("_parameters")
            if kind in self.packed:
                group = self.groups[kind]
                self.packed[kind] = values
                group.params.update({p.name: values[:, k].copy() for k, p in enumerate(group.type.parameters)})
                group.derived.clear()
            else:
                self.values[name][...] = values
                refresh_derived(self.derived, name, every, self.model.topology, self.values, self.real)
        self._newer.clear()
