"""Rules that compute the values of the file's sensors from signals of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim import rotations
from gpusim.transform import Transform
from gpusim.typing import Array


@dataclass(frozen=True)
class SensorInfo:
    """Rule that converts a signal of the model to the value of a sensor of the file.

    Attributes:
        signal: name of the signal. Empty for ``SubtreeInfo``, which sums over bodies.
        index: index of the signal component to use, or -1 for all components.
        form: conversion of the signal to the value. "" (none), "wxyz" (quaternion with w first), "local" (vector in the
            frame of the signal ``axes``), "x", "y" or "z" (axis of an orientation), "size" (length of a vector) or
            "range" (distance, -1 for no hit).
        axes: name of the orientation signal, for ``form`` = "local".
        offset: number that is added to the signal, m or rad.
        reference: label of the reference site of a frame sensor, or empty for the world. The value is relative to the
            reference site, in the axes of the reference site.
        lower, upper: range of the value, infinite if unlimited.
        noise: standard deviation of the noise of each component, in the unit of the value.
    """

    signal: str
    index: int = -1
    form: str = ""
    axes: str = ""
    offset: float = 0.0
    reference: str = ""
    lower: float = -math.inf
    upper: float = math.inf
    noise: float = 0.0

    def read(self, sim: Any, rng: np.random.Generator | None = None) -> np.ndarray:
        """Return the sensor's value in every world: (num_worlds,), or (num_worlds, n) for n components.

        Args:
            sim: the simulation of the model.
            rng: random generator for the noise, or None for no noise (like MuJoCo's ``sensordata``).
        """
        value = np.clip(self._value(sim), self.lower, self.upper)
        return value if rng is None else value + self.noise * rng.standard_normal(value.shape)

    def moved(self, prefix: str, pose: Transform) -> SensorInfo:
        """Return the sensor for a model moved by ``pose``, with ``prefix`` before all labels."""
        reference = self.reference and prefix + self.reference
        return replace(self, signal=_named(prefix, self.signal), axes=_named(prefix, self.axes), reference=reference)

    def _value(self, sim: Any) -> Array:
        value = _read(sim, self.signal) + self.offset
        if self.reference:
            value = self._relative(sim, value)
        if self.index >= 0 and value.ndim > 1:
            value = value[:, self.index]
        if self.form == "range":
            return np.where(_read(sim, f"{self.signal}.shape")[:, self.index] < 0, -1.0, value)
        if self.form == "wxyz":
            return value[:, [3, 0, 1, 2]]
        if self.form == "local":
            return _to_local(_read(sim, self.axes), value)
        if self.form in ("x", "y", "z"):
            return rotations.matrix_from_quaternion(value)[..., "xyz".index(self.form)]
        return np.asarray(np.linalg.norm(value, axis=-1)) if self.form == "size" else value

    def _relative(self, sim: Any, value: Array) -> Array:
        """Return a site's position, orientation or velocity relative to the reference site."""
        site, quantity = self.signal.rsplit(".", 1)

        def of_reference(name: str) -> Array:
            return _read(sim, f"site.{self.reference}.{name}")

        orientation = of_reference("orientation")
        if quantity == "orientation":
            return rotations.quaternion_product(rotations.quaternion_conjugate(orientation), value)
        difference = value - of_reference(quantity)
        if quantity == "linear_velocity":
            arm = _read(sim, f"{site}.position") - of_reference("position")
            difference = difference - rotations.cross(of_reference("angular_velocity"), arm)
        return _to_local(orientation, difference)


@dataclass(frozen=True)
class Part:
    """A body of the file. The importer may have merged it into another body of the model.

    Attributes:
        body: label of the model's body, or empty for the world.
        mass: mass (kg) of the file's body.
        center: center of mass (m) of the file's body, in the frame of the model's body.
        inertia: inertia of the file's body about its center of mass, in the axes of the model's body (rows of the
            matrix, kg m2).
        com: center of mass (m) of the model's body, in the frame of that body.
    """

    body: str
    mass: float
    center: tuple[float, ...]
    inertia: tuple[tuple[float, ...], ...]
    com: tuple[float, ...] = (0.0, 0.0, 0.0)

    def moved(self, prefix: str, pose: Transform) -> Part:
        """Return the part for a model moved by ``pose``, with ``prefix`` before all labels."""
        if self.body:
            return replace(self, body=prefix + self.body)
        return replace(self, center=tuple(float(x) for x in pose.apply(self.center)))  # the inertia has no effect


@dataclass(frozen=True)
class SubtreeInfo(SensorInfo):
    """Mass-weighted sum over the subtree of a body, with the masses in the file.

    Attributes:
        quantity: "center_of_mass" (m), "linear_velocity" of the center of mass (m/s), or "angular_momentum" about the
            center of mass (kg m2/s), all in the world frame.
        parts: bodies of the subtree with mass > 0.
    """

    quantity: str = ""
    parts: tuple[Part, ...] = ()

    def moved(self, prefix: str, pose: Transform) -> SensorInfo:
        """Return the sensor for a model moved by ``pose``, with ``prefix`` before all labels."""
        return replace(self, parts=tuple(part.moved(prefix, pose) for part in self.parts))

    def _value(self, sim: Any) -> Array:
        states = [_state(sim, part) for part in self.parts]
        mass = math.fsum(part.mass for part in self.parts)
        center, velocity = (
            np.sum([part.mass * state[k] for part, state in zip(self.parts, states, strict=True)], axis=0) / mass
            for k in (0, 1)
        )
        if self.quantity != "angular_momentum":
            return np.asarray(center if self.quantity == "center_of_mass" else velocity)
        total = np.zeros_like(center)
        for part, (position, speed, rotation, rate) in zip(self.parts, states, strict=True):
            spin = rotations.matvec(np.array(part.inertia), rotations.matvec(rotation.swapaxes(-1, -2), rate))
            total += rotations.matvec(rotation, spin) + part.mass * rotations.cross(position - center, speed - velocity)
        return total


def _state(sim: Any, part: Part) -> tuple[Array, Array, Array, Array]:
    """Return a body's center of mass, linear velocity, rotation matrix and angular velocity (world frame)."""
    center = np.array(part.center)
    if not part.body:
        zeros = np.zeros((sim.num_worlds, 3))
        return zeros + center, zeros, np.broadcast_to(np.eye(3), (sim.num_worlds, 3, 3)), zeros
    position, orientation, velocity, rate = (
        _read(sim, f"body.{part.body}.{name}")
        for name in ("position", "orientation", "linear_velocity", "angular_velocity")
    )
    rotation = rotations.matrix_from_quaternion(orientation)
    arm = rotations.matvec(rotation, center - np.array(part.com))
    return position + rotations.matvec(rotation, center), velocity + rotations.cross(rate, arm), rotation, rate


def _named(prefix: str, signal: str) -> str:
    """Return the name of the signal. The label in the name gets the prefix."""
    kind, _, rest = signal.partition(".")
    return signal if kind in ("", "sim") else f"{kind}.{prefix}{rest}"


def _read(sim: Any, signal: str) -> Array:
    return np.asarray(sim.read(signal, numpy=True))


def _to_local(orientation: Array, vector: Array) -> Array:
    """Convert world vectors to the axes of ``orientation``."""
    rotation = rotations.matrix_from_quaternion(orientation)
    return np.asarray(rotations.matvec(rotation.swapaxes(-1, -2), vector))
