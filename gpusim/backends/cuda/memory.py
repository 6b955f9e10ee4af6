"""Memory of the CUDA backend: arrays on the device, and host copies of the state and the commands.

The simulation runs on device arrays. The memory updates its host copies (``state``, ``control``) on access, and copies
host writes to the device before the next launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device
from gpusim.backends.codegen.header import kept_fields
from gpusim.backends.cuda.device import load_cupy
from gpusim.backends.memory import KernelMemory
from gpusim.model.model import Model
from gpusim.model.state import OVERRIDE, State
from gpusim.typing import Array


class CudaMemory(KernelMemory):
    """State, commands and parameters of a simulation on one GPU.

    Args:
        model, state: model and initial state of the simulation.
        device: number of the GPU, 0 by default.

    Attributes:
        arrays: device arrays by the name given to :meth:`bind_array`.
        added: names of additional state arrays (:meth:`register_array`).
        host_newer, device_newer: True if the newest state is only on the host, or only on the device.
        control_newer, commands_newer: True if the newest commands are only on the host, or only on the device.
        control_lent: True if the user may still write to the array from :meth:`host_control`.
        substep: duration of the last substep (s), or 0 right after a reset. Valid only if ``device_newer`` is True.
        overriding: True if a world may be in an emergency stop.
        replays: True if replays of a captured CUDA graph may change the state. Every read then copies from the device.
        capturing: True during the capture of a CUDA graph. Calls that need the host then raise an error.
        pull_written: function that updates the host copies of parameters.

    Raises:
        ModelError: CuPy is missing, or the GPU does not exist.
    """

    def __init__(self, model: Model, state: State, device: int | None) -> None:
        super().__init__(model, state)
        self.device = device or 0
        self.cupy = load_cupy(self.device)
        self.arrays: dict[str, Any] = {}
        self.added: list[str] = []
        self.host_newer = self.device_newer = self.control_newer = False
        self.commands_newer = self.control_lent = self.overriding = False
        self.replays = self.capturing = False
        self.pull_written: Callable[[], None] = lambda: None
        self.substep = 0.0
        with self.here():
            self._last_stream: Any = self.cupy.cuda.get_current_stream()

    def here(self) -> Any:
        """Return a context manager that makes this GPU the current device."""
        return self.cupy.cuda.Device(self.device)

    def bind_array(self, name: str, array: Array, worlds: Array | None = None) -> int:
        """Copy an array to the device, and return its device address."""
        with self.here():
            self.follow_stream()
            old, contiguous = self.arrays.get(name), np.ascontiguousarray(array)
            if old is not None and old.shape == contiguous.shape and old.dtype == contiguous.dtype:
                if worlds is not None and worlds.size < old.shape[0]:
                    old[self.cupy.asarray(worlds)] = self.cupy.asarray(contiguous[worlds])
                elif contiguous.size:
                    old.set(contiguous)
            else:
                self.arrays[name] = self.cupy.asarray(contiguous)
            return int(self.arrays[name].data.ptr)

    def _kept(self) -> list[tuple[Array, Any]]:
        """Return the pairs (host array, device array) of all state arrays."""
        pairs = []
        for f in kept_fields(self.kinds):
            host = self.kept_array(f.name)
            if host.size:
                pairs.append((host, self.arrays[f"kept_{f.name}"]))
        pairs += [(self._state.arrays[name], self.arrays[f"kept_{name}"]) for name in self.added]
        return pairs

    def pull(self) -> None:
        """Update the state and the parameters on the host if the device has newer values."""
        self._refuse()
        if self.device_newer:
            with self.here():
                self.follow_stream()
                for host, device in self._kept():
                    device.get(out=host)
            self.device_newer = False
        self.pull_written()

    def is_mask(self, worlds: Any) -> bool:
        """Return whether ``worlds`` is a world mask on the device. Return False for indices on the device.

        Raises:
            ModelError: the shape of the mask is not (num_worlds,).
        """
        if not is_on_device(worlds):
            return False
        with self.here():
            given = self.cupy.from_dlpack(worlds)
        if given.dtype == bool and given.shape != (self.num_worlds,):
            rule = f"a mask of shape {given.shape} does not fit {self.num_worlds} worlds"
            raise validate.fail("Simulation.reset", rule, "give (num_worlds,)")
        return bool(given.dtype == bool)

    def pull_parameters(self) -> None:
        """Update the host copies of parameters that the user has written on the device."""
        self.pull_written()

    def _refuse(self) -> None:
        """Raise ModelError during the capture of a CUDA graph."""
        if self.capturing:
            rule = "a call inside needs the host"
            raise validate.fail("Simulation.capture", rule, "capture step, Observation.read and Command.write only")

    def push(self) -> None:
        """Copy host writes to the device."""
        if self.capturing:
            if self.host_newer or self.control_newer or self.overriding:
                self._refuse()
            return
        with self.here():
            self.follow_stream()
            if self.host_newer:
                self.substep = float(self._state.arrays["step_before"].max())
                for host, device in self._kept():
                    device.set(host)
                self.overriding = self.holds_override(self._state)
                self.host_newer = False
            if self.control_newer:
                if self.control.size:
                    self.arrays["control"].set(self.control)
                self.control_newer = False

    @staticmethod
    def holds_override(state: State) -> bool:
        """Return whether ``state`` contains an emergency stop that overrides commands."""
        return OVERRIDE in state.arrays and bool(state.arrays[OVERRIDE].any())

    def follow_stream(self) -> None:
        """Make a new current stream wait for the previous stream."""
        if self.capturing:  # during a capture, a stream must not wait for an event of another stream
            return
        stream, last = self.cupy.cuda.get_current_stream(), self._last_stream
        if last.ptr != stream.ptr:
            stream.wait_event(last.record())
        self._last_stream = stream

    @property
    def state(self) -> State:
        """Return the state on the host for reading and writing. The next launch copies it to the device."""
        self.pull()
        self.host_newer = True
        return self._state

    def read_state(self) -> State:
        """Return the state on the host for reading only."""
        self.pull()
        return self._state

    def host_control(self) -> Array:
        """Return the commands on the host for reading and writing, (num_worlds, controls)."""
        self.control_newer = self.control_lent = True
        return self.read_control()

    def read_control(self) -> Array:
        """Return the commands on the host for reading only, (num_worlds, controls)."""
        if self.commands_newer:
            with self.here():
                self.follow_stream()
                self.arrays["control"].get(out=self.control)
            self.commands_newer = False
        return self.control

    def hold_overridden(self) -> None:
        """Copy the values in the state array OVERRIDE to the commands that an emergency stop overrides."""
        with self.here():
            self.push()
            if self.overriding and self.control.size:
                held, control = self.arrays[f"kept_{OVERRIDE}"], self.arrays["control"]
                count = control.shape[1]
                control[...] = self.cupy.where(held[:, :count] != 0.0, held[:, count:], control)
                self.commands_changed()

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write n commands of all worlds on the device. ``values`` is (num_worlds, n).

        ``columns`` selects the commands, as a slice or as n indices. ``values`` can be on the host or on the device.
        """
        with self.here():
            array = self.cupy.from_dlpack(values) if is_on_device(values) else self.cupy.asarray(np.array(values))
            chosen = np.arange(self.control.shape[1])[columns]
            width = chosen.size
            if array.shape != (self.num_worlds, width) and array.shape != (self.num_worlds,) * (width == 1):
                rule = f"an array of shape {array.shape} does not fit {self.num_worlds} worlds"
                wanted = "(num_worlds,)" if width == 1 else f"(num_worlds, {width})"
                raise validate.fail(self._reported_commands(chosen), rule, f"give {wanted}")
            self.push()
            self.arrays["control"][:, columns] = array.reshape(self.num_worlds, width)
        self.commands_changed()

    def _reported_commands(self, columns: Array) -> str:
        names = [name for name, column in self.model.controls.items() if column in columns]
        return f"command '{names[0]}'" if len(names) == 1 else f"commands {' '.join(names[:1])} ..."

    def register_array(self, name: str) -> None:
        """Copy an additional state array to the device. The step does not use this array."""
        self.added.append(name)
        self.overriding = self.overriding or self.holds_override(self._state)
        self.bind_array(f"kept_{name}", self._state.arrays[name])

    def replayed(self) -> None:
        """Copy host writes to the device, and mark the host copies as outdated after a possible graph replay."""
        self.push()
        self.control_lent = False
        self.device_newer = self.commands_newer = True

    def commands_changed(self) -> None:
        """Mark the commands on the device as newer than the commands on the host."""
        self.commands_newer, self.control_lent = True, False

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return some columns of a registered state array on the device, (num_worlds, len(columns))."""
        with self.here():
            self.push()
            return self.arrays[f"kept_{name}"][:, list(columns)]

    def device_rows(self, worlds: Any) -> Any:
        """Return the result of :meth:`rows_of` on the device. ``worlds`` can also be a device mask."""
        cupy = self.cupy
        if not is_on_device(worlds):
            return cupy.asarray(self.rows_of(worlds))
        return cupy.where(cupy.from_dlpack(worlds), cupy.arange(self.num_worlds, dtype=np.int32), np.int32(-1))

    def side_by_side(self, parts: list[Any], count: int) -> Any:
        """Join the columns of several arrays in one float64 device array with ``count`` rows, one row per world."""
        cupy = self.cupy
        columns = [cupy.from_dlpack(x) if is_on_device(x) else cupy.asarray(x) for x in parts]
        return cupy.concatenate([cupy.broadcast_to(x, (count, x.shape[1])) for x in columns], axis=1).astype(np.float64)

    def to_device(self, array: Array) -> Any:
        """Return ``array`` on the device."""
        with self.here():
            self.follow_stream()
            return self.cupy.asarray(array)

    def read_array(self, name: str) -> Array:
        """Return a copy of a device array on the host."""
        with self.here():
            self.follow_stream()
            return np.asarray(self.arrays[name].get())
