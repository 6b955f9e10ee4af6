"""Send poses over UDP, for game engines and motion platforms."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.closing import Closing
from gpusim.cosim.pose_packets import FRAMES, PacketFormat
from gpusim.errors import ModelError, unknown_name
from gpusim.signals.step_samplers import RegularSampler
from gpusim.signals.writing import chosen_worlds
from gpusim.validate import matching

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

_DTYPES = {"float32": "<f4", "float64": "<f8"}
_LABELS_EVERY = 1.0 - 1e-6
"""Simulated time between two transmissions of the body labels, s."""
_MAX_NUMBER = 65535


class UdpPoses(Closing):
    """Sender of body poses over UDP.

    Each ``sim.step(n)`` sends all samples that are due. Use the sender in a ``with`` statement, or call :meth:`close`.

    Args:
        sim: the simulation.
        address: address of the receiver, "HOST:PORT".
        bodies: labels or wildcards of bodies, in the order of the packets.
        rate: samples per second of simulated time, or None for a sample at every step. If a sample is due between two
            steps, the sender uses the nearer step.
        frame: axes and length unit: "gpusim" (z up, right-handed, m), "unity" (y up, left-handed, m) or "unreal" (z up,
            left-handed, cm).
        dtype: type of the numbers, "float32" or "float64".
        world: index of the world.

    Attributes:
        labels: labels of the bodies, in the order of the packets.
        sent: number of samples so far, including samples that the network rejected.
        dropped: number of samples that the network rejected.

    Raises:
        UnknownNameError: a body, frame or dtype does not exist.
        ModelError: the address or rate is invalid, the world does not exist, or the host name cannot be resolved.
    """

    def __init__(
        self,
        sim: Simulation,
        address: str,
        bodies: str | Sequence[str] = "*",
        *,
        rate: float | None = 60.0,
        frame: str = "gpusim",
        dtype: str = "float32",
        world: int = 0,
    ) -> None:
        for name, value, known in (("frame", frame, FRAMES), ("dtype of poses", dtype, _DTYPES)):
            if not isinstance(value, str) or value not in known:
                raise unknown_name(name, str(value), known)
        validate.simulation("UDP", sim)
        self._sampler = RegularSampler("UDP", rate, sim.config.dt, self.sample)
        self._world = int(chosen_worlds("UDP", [world], sim.num_worlds)[0])
        self.labels = matching("body", bodies, [body.label for body in sim.model.bodies])
        if max(self._world, len(self.labels)) > _MAX_NUMBER:
            raise validate.fail(
                "UDP", f"a packet supports up to {_MAX_NUMBER} bodies and worlds", "choose fewer bodies"
            )
        self._observation = sim.observe(["sim.time", *(f"body.{body}.{x}" for body in self.labels for x in _PARTS)])
        self._frame = FRAMES[frame]
        self._format = PacketFormat(self._frame.number, _DTYPES[dtype], self._world, len(self.labels))
        self._socket, self._address = _open_socket(address)
        self.sent = self.dropped = 0
        self._last_labels = -np.inf
        self._samplers = sim.runtime.samplers
        self.sample()
        self._samplers.append(self._sampler)

    def sample(self) -> None:
        """Send the current poses. If the network rejects a packet, drop the sample and continue."""
        state = on_host(self._observation.read())[self._world]
        time, poses = float(state[0]), self._frame.converted(state[1:].reshape(-1, 7))
        packets = list(self._format.poses(poses, self.sent, time))
        if not self._last_labels <= time < self._last_labels + _LABELS_EVERY:  # a reset decreases the time
            self._last_labels = time
            packets = [*self._format.labels(self.labels, self.sent, time), *packets]
        self.sent += 1
        try:
            for packet in packets:
                self._socket.sendto(packet, self._address)
        except OSError:
            self.dropped += 1

    def close(self) -> None:
        """Stop sending. A second call does nothing."""
        if self._sampler in self._samplers:
            self._samplers.remove(self._sampler)
        self._socket.close()


_PARTS = ("position", "orientation")


def _open_socket(address: str) -> tuple[socket.socket, tuple[object, ...]]:
    """Return a socket and the address of the receiver."""
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ModelError(f"UDP: address {address!r} is not HOST:PORT; give e.g. '127.0.0.1:9870'")
    try:
        info = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
    except OSError as error:
        raise ModelError(f"UDP: host {host!r} is not known ({error.strerror}); check the name") from None
    sender = socket.socket(info[0], info[1])
    sender.setblocking(False)  # a full buffer drops a sample instead of delaying the simulation
    return sender, info[4]
