"""UDP packets with poses, and conversion of poses to the axes of other programs."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array

MAGIC, VERSION = b"GPSM", 1
POSES, LABELS = 0, 1
"""Kinds of packets."""
_HEADER = struct.Struct("<4sBBBBIHHHHId")
"""Header of a packet (32 bytes).

The fields are magic, version, kind, frame, bytes per number, sequence, first, count, total, world, 0, time.
"""
_MAX_SIZE = 1400
"""Maximum size of a packet in bytes. A packet of this size fits into one Ethernet frame."""
_LENGTH = struct.Struct("<H")
_LONGEST_LABEL = _MAX_SIZE - _HEADER.size - _LENGTH.size


@dataclass(frozen=True)
class Frame:
    """Axes and length unit of another program.

    Attributes:
        number: code of the frame in packet headers.
        axes: rotation or reflection (3, 3). ``axes @ p`` converts a point p to the axes of the program.
        unit: the program's length units per meter.
    """

    number: int
    axes: Array
    unit: float = 1.0

    def converted(self, poses: Array) -> Array:
        """Convert n poses (n, 7) to the axes of the program. A pose is a position and a quaternion xyzw.

        In left-handed axes, the vector part of the quaternion gets an additional factor of -1, because it is an axial
        vector.
        """
        sign = round(float(np.linalg.det(self.axes)))
        positions, vectors = (poses[:, k : k + 3] @ self.axes.T for k in (0, 3))
        return np.hstack([self.unit * positions, sign * vectors, poses[:, 6:]])


FRAMES = {
    "gpusim": Frame(0, np.eye(3)),
    "unity": Frame(1, np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])),
    "unreal": Frame(2, np.diag([1.0, -1.0, 1.0]), 100.0),
}
"""Frames of the supported programs by name. In gpusim, x is forward."""


@dataclass(frozen=True)
class PacketFormat:
    """Header fields that do not change within a stream of packets.

    Attributes:
        frame: code of the frame (``Frame.number``).
        dtype: type of the numbers, "<f4" or "<f8".
        world: index of the world.
        total: number of bodies.
    """

    frame: int
    dtype: str
    world: int
    total: int

    def poses(self, poses: Array, sequence: int, time: float) -> Iterator[bytes]:
        """Yield the packets for one sample of poses (total, 7)."""
        numbers = poses.astype(self.dtype)
        bodies_per_packet = (_MAX_SIZE - _HEADER.size) // (7 * numbers.itemsize)
        for first in range(0, self.total, bodies_per_packet):
            part = numbers[first : first + bodies_per_packet]
            yield self._header(POSES, sequence, first, len(part), time) + part.tobytes()

    def labels(self, labels: Sequence[str], sequence: int, time: float) -> Iterator[bytes]:
        """Yield the packets with the labels of all bodies, in the order of the poses."""
        packed, first, count = b"", 0, 0
        for number, label in enumerate(labels):
            text = label.encode()[:_LONGEST_LABEL]
            entry = _LENGTH.pack(len(text)) + text
            if _HEADER.size + len(packed) + len(entry) > _MAX_SIZE:
                yield self._header(LABELS, sequence, first, count, time) + packed
                packed, first, count = b"", number, 0
            packed, count = packed + entry, count + 1
        yield self._header(LABELS, sequence, first, count, time) + packed

    def _header(self, kind: int, sequence: int, first: int, count: int, time: float) -> bytes:
        size = np.dtype(self.dtype).itemsize
        return _HEADER.pack(
            MAGIC, VERSION, kind, self.frame, size, sequence & 0xFFFFFFFF, first, count, self.total, self.world, 0,
            time,
        )  # fmt: skip
