"""Parameters in GPU memory. Writes from arrays on the device do not wait for the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.backends.cuda.memory import CudaMemory
from gpusim.backends.kernel_backend import BOUNCING
from gpusim.model.parameters import DERIVED_FROM, derive, refresh_derived

_SOURCES = ("mass",)
"""Parameters that the kernels read only through derived values."""


class CudaParameters(CudaMemory):
    """Parameters of a simulation on a GPU. The host copies parameters from the GPU when the host needs the values."""

    def _open(self, device: int | None) -> None:
        super()._open(device)
        self._parameters_newer: set[str] = set()

    def write_columns(self, name: str, at: tuple[Any, ...], values: Any, worlds: Any) -> None:
        """Write numbers of a parameter in chosen worlds on the device, without a check of the values.

        Args:
            name: field of PARAMETER_FIELDS, or ``<kind>_parameters`` for an actuator kind.
            at: indices in the array of one world.
            values: array (1 or worlds, n).
            worlds: indices (n,), or a mask (num_worlds,) on the device.
        """
        with self._here():
            cupy, own = self._cupy, self._own_rows(name)
            rows = self.device_rows(worlds)
            cell = own[(slice(None), *at)]
            given = self.side_by_side([values], len(worlds))[rows]  # unchosen worlds get the last row
            chosen = (rows >= 0).reshape(-1, *(1,) * (cell.ndim - 1))
            cell[...] = cupy.where(chosen, given.reshape(cell.shape), cell)
            self._parameters_newer.add(name)
            self._refresh_derived(name)
            before = self.arguments.tobytes()
            if name in BOUNCING and not self.arguments["bounces"]:
                self.arguments["bounces"] = 1
                self.make_plan()
            self._pass_on(before)

    def _own_rows(self, name: str) -> Any:
        """Return the array of a parameter on the device, with one row for each world."""
        before = self.arguments.tobytes()
        kind = name.removesuffix("_parameters")
        if kind in self._packed_parameters:
            group = self._groups()[kind]
            if self._packed_parameters[kind].shape[0] != self.num_worlds:
                first = group.type.parameters[0].name
                group.params[first] = np.repeat(group.params[first], self.num_worlds, axis=0)
                self._upload_actuators(group)
        elif self._parameters[name].shape[0] != self.num_worlds:
            self._parameters[name] = np.repeat(self._parameters[name], self.num_worlds, axis=0)
            self.parameter_written(name, np.arange(self.num_worlds))
        if name in _SOURCES and name not in self._parameters_newer:
            self.bind_array(name, self._parameters[name])
        self._pass_on(before)
        return self._arrays[name]

    def _refresh_derived(self, name: str) -> None:
        """Recompute on the device the values that depend on a parameter."""
        for field, sources in DERIVED_FROM.items():
            if name in sources:
                given = {source: self._arrays[source] for source in sources}
                self._arrays[field][...] = derive(field, self.model.topology, given, self.real, self._cupy)

    def pull_parameters(self) -> None:
        """Copy parameters that were written on the device to the host."""
        for name in sorted(self._parameters_newer):
            with self._here():
                self._follow_stream()
                values = self._arrays[name].get()
            kind = name.removesuffix("_parameters")
            if kind in self._packed_parameters:
                group = self._groups()[kind]
                self._packed_parameters[kind] = values
                group.params.update({p.name: values[:, k].copy() for k, p in enumerate(group.type.parameters)})
                group.derived.clear()
            else:
                self._parameters[name][...] = values
                every = np.arange(self.num_worlds)
                refresh_derived(self._derived, name, every, self.model.topology, self._parameters, self.real)
        self._parameters_newer.clear()

    def _pull(self) -> None:
        super()._pull()
        self.pull_parameters()
