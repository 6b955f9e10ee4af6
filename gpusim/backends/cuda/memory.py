"""Memory of the CUDA backend: arrays on the device, and host copies of the state and the commands.

Poses, velocities and commands are on the device. The backend updates the host copies (``state``, ``control``) on
access, and copies host writes to the device before the next launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import is_on_device
from gpusim.backends.codegen.header import kept_fields
from gpusim.backends.cuda.device import load_cupy
from gpusim.backends.kernel_backend import KernelBackend
from gpusim.model.state import OVERRIDE, State
from gpusim.typing import Array


class CudaMemory(KernelBackend):
    """GPU memory of a simulation. :meth:`_open` selects the GPU."""

    def _open(self, device: int | None) -> None:
        """Select the GPU with the number ``device``, by default 0.

        Raises:
            ModelError: CuPy is missing, or the GPU does not exist.
        """
        self.device = device or 0
        self._cupy = load_cupy(self.device)
        self._arrays: dict[str, Any] = {}
        self._along: list[str] = []
        self._host_newer = self._device_newer = self._control_newer = False
        self._commands_newer = self._control_lent = False
        self._substep = 0.0
        self._overriding = False  # whether a world may be in an emergency stop
        with self._here():
            self._last_stream: Any = self._cupy.cuda.get_current_stream()

    def _here(self) -> Any:
        return self._cupy.cuda.Device(self.device)

    def bind_array(self, name: str, array: Array, worlds: Array | None = None) -> int:
        """Copy an array to the device and return the address."""
        with self._here():
            self._follow_stream()
            old, contiguous = self._arrays.get(name), np.ascontiguousarray(array)
            if old is not None and old.shape == contiguous.shape and old.dtype == contiguous.dtype:
                if worlds is not None and worlds.size < old.shape[0]:
                    old[self._cupy.asarray(worlds)] = self._cupy.asarray(contiguous[worlds])
                elif contiguous.size:
                    old.set(contiguous)
            else:
                self._arrays[name] = self._cupy.asarray(contiguous)
            return int(self._arrays[name].data.ptr)

    def sync_arguments(self) -> None:
        """Copy the kernel arguments to the device."""
        self.bind_array("arguments", np.frombuffer(self.arguments.tobytes(), np.uint8))

    def _kept(self) -> list[tuple[Array, Any]]:
        """Return pairs of host and device arrays of the state."""
        pairs = []
        for f in kept_fields(self.kinds):
            host = self.kept_array(f.name)
            if host.size:
                pairs.append((host, self._arrays[f"kept_{f.name}"]))
        pairs += [(self._state.arrays[name], self._arrays[f"kept_{name}"]) for name in self._along]
        return pairs

    def _pull(self) -> None:
        if self._device_newer:
            with self._here():
                self._follow_stream()
                for host, device in self._kept():
                    device.get(out=host)
            self._device_newer = False

    def _push(self) -> None:
        """Copy host writes to the device."""
        with self._here():
            self._follow_stream()
            if self._host_newer:
                self._substep = super().last_substep()
                for host, device in self._kept():
                    device.set(host)
                self._overriding = self._holds_override(self._state)
                self._host_newer = False
            if self._control_newer:
                if self.control.size:
                    self._arrays["control"].set(self.control)
                self._control_newer = False

    @staticmethod
    def _holds_override(state: State) -> bool:
        """Return whether a host state overrides a command."""
        return OVERRIDE in state.arrays and bool(state.arrays[OVERRIDE].any())

    def _follow_stream(self) -> None:
        """If the current stream has changed, let the new stream wait for the previous stream."""
        stream, last = self._cupy.cuda.get_current_stream(), self._last_stream
        if last.ptr != stream.ptr:
            stream.wait_event(last.record())
        self._last_stream = stream

    @property
    def state(self) -> State:
        """Return the state on the host.

        The caller may change the state. The next launch copies the state to the device.
        """
        self._pull()
        self._host_newer = True
        return self._state

    def read_state(self) -> State:
        """Return the state on the host for reading only."""
        self._pull()
        return self._state

    def host_control(self) -> Array:
        """Return writable commands on the host (num_worlds, controls)."""
        self._control_newer = self._control_lent = True
        return self.read_control()

    def read_control(self) -> Array:
        """Return the commands on the host for reading only (num_worlds, controls)."""
        if self._commands_newer:
            with self._here():
                self._follow_stream()
                self._arrays["control"].get(out=self.control)
            self._commands_newer = False
        return self.control

    def hold_overridden(self) -> None:
        """Set overridden commands on the device to the values in the state array OVERRIDE."""
        with self._here():
            self._push()
            if self._overriding and self.control.size:
                held, control = self._arrays[f"kept_{OVERRIDE}"], self._arrays["control"]
                count = control.shape[1]
                control[...] = self._cupy.where(held[:, :count] != 0.0, held[:, count:], control)
                self._commands_changed()

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write commands of all worlds from ``values`` (num_worlds, n). ``columns`` is a slice or indices.

        The function copies values on the host to the device.
        """
        with self._here():
            array = self._cupy.from_dlpack(values) if is_on_device(values) else self._cupy.asarray(np.array(values))
            chosen = np.arange(self.control.shape[1])[columns]
            width = chosen.size
            if array.shape != (self.num_worlds, width) and array.shape != (self.num_worlds,) * (width == 1):
                rule = f"an array of shape {array.shape} does not fit {self.num_worlds} worlds"
                wanted = "(num_worlds,)" if width == 1 else f"(num_worlds, {width})"
                raise validate.fail(self._reported_commands(chosen), rule, f"give {wanted}")
            self._push()
            self._arrays["control"][:, columns] = array.reshape(self.num_worlds, width)
        self._commands_changed()

    def _reported_commands(self, columns: Array) -> str:
        names = [name for name, column in self.model.controls.items() if column in columns]
        return f"command '{names[0]}'" if len(names) == 1 else f"commands {' '.join(names[:1])} ..."

    def last_substep(self) -> float:
        """Return the size of the last substep (s), or 0 right after a reset. Do not wait for the device."""
        return self._substep if self._device_newer else super().last_substep()

    def register_array(self, name: str) -> None:
        """Register an additional state array that the step does not use. Copy the array to the device."""
        self._along.append(name)
        self._overriding = self._overriding or self._holds_override(self._state)
        self.bind_array(f"kept_{name}", self._state.arrays[name])

    def device_array(self, name: str) -> Any:
        """Return the device array that :meth:`bind_array` created for this name."""
        return self._arrays[name]

    def _commands_changed(self) -> None:
        """Mark the commands on the device as newer than the commands on the host."""
        self._commands_newer, self._control_lent = True, False

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return columns of an additional state array on the device (worlds, n)."""
        with self._here():
            self._push()
            return self._arrays[f"kept_{name}"][:, list(columns)]

    def device_rows(self, worlds: Any) -> Any:
        """Return the result of :meth:`rows_of` on the device. ``worlds`` may be a mask on the device."""
        cupy = self._cupy
        if not is_on_device(worlds):
            return cupy.asarray(self.rows_of(worlds))
        return cupy.where(cupy.from_dlpack(worlds), cupy.arange(self.num_worlds, dtype=np.int32), np.int32(-1))

    def side_by_side(self, parts: list[Any], count: int) -> Any:
        """Join arrays of ``count`` worlds as columns of one float64 array on the device."""
        cupy = self._cupy
        columns = [cupy.from_dlpack(x) if is_on_device(x) else cupy.asarray(x) for x in parts]
        return cupy.concatenate([cupy.broadcast_to(x, (count, x.shape[1])) for x in columns], axis=1).astype(np.float64)

    def to_device(self, array: Array) -> Any:
        """Return a copy of ``array`` on the device."""
        with self._here():
            self._follow_stream()
            return self._cupy.asarray(array)

    def read_health(self) -> Array:
        """Return the health word of every world (num_worlds,)."""
        with self._here():
            self._follow_stream()
            return np.asarray(self._arrays["health"].get())

    def read_health_value(self) -> Array:
        """Return the invalid value of each failed world (num_worlds,)."""
        with self._here():
            self._follow_stream()
            return np.asarray(self._arrays["health_value"].get())
