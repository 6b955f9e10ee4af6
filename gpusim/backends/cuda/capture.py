"""Capture of steps in a CUDA graph of the user."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from gpusim import validate
from gpusim.backends.cuda.builds import CudaBuilds
from gpusim.backends.cuda.parameters import CudaParameters


class CudaCapture(CudaParameters):
    """A simulation whose steps the user can capture in a graph. The GPU replays the graph without the host.

    Attributes:
        replays: whether replays may change the state. If True, every read copies from the device.
    """

    builds: CudaBuilds

    def _open(self, device: int | None) -> None:
        super()._open(device)
        self.replays = self._capturing = False

    @abstractmethod
    def _take_builds(self) -> None:
        """Use the full builds if they are ready."""

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Finish all work of the host before the capture.

        Inside the ``with`` block, calls that need the host raise an error. See ``Simulation.capture``.
        """
        if self.staged:
            rule = "launch = 'staged' reads numbers on the host in each step"
            raise validate.fail("Simulation.capture", rule, "give Simulation(launch='fused')")
        self.builds.wait()
        self._take_builds()
        self._push()
        self._control_lent = False
        self.invalidate()
        self._capturing = self.replays = True
        try:
            yield
        finally:
            self._capturing = False
            self._replayed()

    def _replayed(self) -> None:
        """Copy host writes to the device, and mark the device as newer."""
        self._push()
        self._control_lent = False
        self._device_newer = self._commands_newer = True

    def _refuse(self) -> None:
        if self._capturing:
            rule = "a call inside needs the host"
            raise validate.fail("Simulation.capture", rule, "capture step, Observation.read and Command.write only")

    def _pull(self) -> None:
        self._refuse()
        super()._pull()

    def _push(self) -> None:
        if not self._capturing:
            super()._push()
        elif self._host_newer or self._control_newer or self._overriding:
            self._refuse()

    def _follow_stream(self) -> None:
        if not self._capturing:  # during a capture, a stream must not wait for an event of another stream
            super()._follow_stream()
