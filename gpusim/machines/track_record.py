"""Data of a track: indices of its parts, and measurements during a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import rotations, validate
from gpusim.simulation import Simulation
from gpusim.transform import Transform
from gpusim.typing import Array

SLOWEST = 1e-3
"""Speed of the track (m/s) below which the slip is zero by definition."""


@dataclass(frozen=True)
class Track:
    """A track, from :func:`add_track`. ``add_builder`` does not update the indices and labels of a track.

    Attributes:
        label: prefix of all labels.
        chassis: body index.
        xform: pose of the track's frame in the chassis frame.
        pitch: distance (m) between two pins of a shoe.
        teeth: number of teeth of the sprocket.
        count: number of shoes. With ``surface_speed``, the number of shoes that would fit.
        shoes: body indices of the shoes in order, with labels ``<label>_shoe0``, ... The list is empty with
            ``surface_speed``.
        pins: joint indices of the pins. ``<label>_pin0`` is between the first two shoes.
        sprocket, idler: body indices.
        drive: joint of the sprocket, ``<label>_drive``. Positive speeds drive forward.
        tension_joint: prismatic joint of the idler, ``<label>_tension``, or None with ``surface_speed``. The coordinate
            increases away from the sprocket.
        road: body indices of the road wheels.
        arms: joints of the road wheels' arms, ``<label>_arm0`` ... The joint coordinate increases when the wheel rises.
        rollers: body indices.
        lowest: z coordinate (m) of the lowest point of all shoes in the initial pose, in the track's frame. A shoe at a
            small end wheel can be lower than the lower run of the track.
        strand_share: initial ratio of the spring force on the idler to the tension of the track.
        chassis_label: label of the chassis.
    """

    label: str
    chassis: int
    xform: Transform
    pitch: float
    teeth: int
    count: int
    shoes: tuple[int, ...]
    pins: tuple[int, ...]
    sprocket: int
    drive: int
    idler: int
    tension_joint: int | None
    road: tuple[int, ...]
    arms: tuple[int, ...]
    rollers: tuple[int, ...]
    lowest: float
    strand_share: float = field(repr=False)
    chassis_label: str = field(repr=False)

    @property
    def advance(self) -> float:
        """Displacement of the track per sprocket angle (m/rad): teeth * pitch / (2 pi)."""
        return self.teeth * self.pitch / (2.0 * math.pi)

    def drive_speed(self, speed: float) -> float:
        """Return the sprocket speed (rad/s) for a track speed (m/s)."""
        return speed / self.advance

    def speed(self, sim: Simulation) -> Array:
        """Return the mean speed (m/s) of the shoes relative to the chassis, from the sprocket speed, (num_worlds,)."""
        return self.advance * _read(sim, f"joint.{self.label}_drive.velocity")

    def ground_speed(self, sim: Simulation) -> Array:
        """Return the velocity (m/s) of the track's origin in the world, along the track's x axis, (num_worlds,)."""
        if self.chassis < 0:
            return np.zeros(sim.num_worlds)
        body = f"body.{self.chassis_label}"
        origin, rotation = self._pose(sim)
        center = _read(sim, f"{body}.center_of_mass")
        spin = np.cross(_read(sim, f"{body}.angular_velocity"), origin - center)
        velocity = _read(sim, f"{body}.linear_velocity") + spin
        forward = rotations.matvec(rotation, self.xform.rotate((1.0, 0.0, 0.0)))
        forward_speed: Array = np.sum(velocity * forward, axis=-1)
        return forward_speed

    def slip(self, sim: Simulation) -> Array:
        """Return the slip 1 - ground_speed/speed, (num_worlds,), or 0 if the track is slower than 1 mm/s.

        The slip has a ripple, because links enter the sprocket and the chassis oscillates. For the mean slip, average
        ``speed`` and ``ground_speed`` while several links pass the sprocket.
        """
        speed = self.speed(sim)
        moving = np.abs(speed) > SLOWEST
        lag: Array = np.where(moving, 1.0 - self.ground_speed(sim) / np.where(moving, speed, 1.0), 0.0)
        return lag

    def tension(self, sim: Simulation) -> Array:
        """Return the mean tension (N) of the two runs at the idler, from the spring force, (num_worlds,)."""
        self._needs_shoes("tension")
        return _read(sim, f"spring.{self.label}_tension.force") / self.strand_share

    def gap(self, sim: Simulation) -> Array:
        """Return the maximum gap (m) between the two points of a pin joint, over all pins, (num_worlds,)."""
        ends, starts = self._pin_points(sim)
        widest: Array = np.linalg.norm(np.roll(starts, -1, axis=1) - ends, axis=-1).max(axis=1)
        return widest

    def length_drift(self, sim: Simulation) -> Array:
        """Return the relative elongation of the loop of pins, (num_worlds,)."""
        ends, starts = self._pin_points(sim)
        middles = 0.5 * (ends + np.roll(starts, -1, axis=1))
        lengths = np.linalg.norm(middles - np.roll(middles, 1, axis=1), axis=-1)
        drift: Array = lengths.sum(axis=1) / (self.count * self.pitch) - 1.0
        return drift

    def _pose(self, sim: Simulation) -> tuple[Array, Array]:
        """Return the track's origin in the world (num_worlds, 3), and the rotation matrices of the chassis."""
        rotation = rotations.matrix_from_quaternion(_read(sim, f"body.{self.chassis_label}.orientation"))
        position = _read(sim, f"body.{self.chassis_label}.position")
        return position + rotations.matvec(rotation, self.xform.position), rotation

    def _pin_points(self, sim: Simulation) -> tuple[Array, Array]:
        """Return the positions (m) of all front pins and of all rear pins, each (num_worlds, shoes, 3)."""
        self._needs_shoes("pins")
        names = [f"body.{self.label}_shoe{k}.{part}" for k in range(self.count) for part in ("position", "orientation")]
        seen = _host(sim.observe(names).read()).reshape(sim.num_worlds, self.count, 7)
        half = rotations.matvec(rotations.matrix_from_quaternion(seen[..., 3:]), np.array([0.5 * self.pitch, 0.0, 0.0]))
        return seen[..., :3] + half, seen[..., :3] - half

    def _needs_shoes(self, quantity: str) -> None:
        if not self.shoes:
            rule = f"a track with surface_speed = True has no {quantity}"
            raise validate.fail(f"track '{self.label}'", rule, "build it with shoes")


def _read(sim: Simulation, name: str) -> Array:
    return np.asarray(sim.read(name, numpy=True), float)


def _host(array: Any) -> Array:
    return np.array(array.get() if hasattr(array, "get") else array, float)
