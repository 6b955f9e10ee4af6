"""Checks and repairs of inertia tensors from files, and mass properties of rigidly connected parts.

A physically possible inertia tensor has positive principal moments, and no moment exceeds the sum of the other two
moments. A principal moment counts as zero if it is below a millionth of the moment of an osmium ball with the same mass
(see :func:`gpusim.validate.min_moment`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpusim.validate import min_moment

# Round-off can break the triangle inequality for a flat plate. The builder's tolerance is larger, so the builder
# accepts every tensor that the importer accepts.
TRIANGLE_TOLERANCE = 5e-7
# Principal moments below this fraction of the largest moment count as zero.
POSITIVE_TOLERANCE = 1e-12
# Repairs raise principal moments to at least this fraction of the largest moment.
REPAIRED_FRACTION = 1e-3
# Repairs keep this relative margin to the limit of the triangle inequality, because of round-off.
TRIANGLE_MARGIN = 1e-6
# Tensors below this value (kg m2) count as zero, since their products underflow.
TINY = 1e-200
# Tensors at or above this value (kg m2) count as infinite, since their products overflow.
HUGE = 1e200
WATER_DENSITY = 1000.0
MASSLESS_FRACTION = 0.01
"""Mass that a massless body gets, as a fraction of the mean mass of all bodies with mass."""
LIGHT_FRACTION = 2e-7
"""Mass of a light intermediate body between two joints, as a fraction of the mass of the next body in the tree."""


@dataclass(frozen=True)
class MassProperties:
    """Mass, center of mass and inertia of a body, in one frame.

    Attributes:
        mass: mass (kg).
        com: center of mass (3,), m.
        inertia: inertia about the center of mass (3, 3), kg m2.
    """

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def moved(self, frame: np.ndarray) -> MassProperties:
        """Return the mass properties in a new frame. ``frame`` (4, 4) is the current frame's pose in the new frame."""
        rotation = frame[:3, :3]
        return MassProperties(self.mass, rotation @ self.com + frame[:3, 3], rotation @ self.inertia @ rotation.T)


def inertia_fault(inertia: np.ndarray, mass: float = 0.0, *, allow_zero: bool = False) -> str | None:
    """Return the reason why the tensor ``inertia`` (3, 3) is physically impossible, or None if it is possible.

    Args:
        inertia: inertia tensor (kg m2) about the center of mass.
        mass: mass (kg). Principal moments that are too small for this mass count as zero.
        allow_zero: True accepts principal moments of zero, as for a point mass.
    """
    if not np.all(np.abs(inertia) < HUGE):  # also for NaN
        return "not finite"
    min_principal, scale = min_moment(mass), float(np.abs(inertia).max())
    if scale < max(TINY, min_principal):
        if allow_zero:
            return None
        return "zero" if scale < TINY else f"zero except for round-off ({scale:.2g} kg m2 for {mass:.3g} kg)"
    moments = np.linalg.eigvalsh(inertia)
    smallest, middle, largest = (float(moment) for moment in moments)
    threshold = (-1.0 if allow_zero else 1.0) * POSITIVE_TOLERANCE * largest
    if largest <= 0.0 or smallest < threshold:
        return f"not positive definite (principal moments {_numbers(moments)})"
    if largest > (smallest + middle) * (1.0 + TRIANGLE_TOLERANCE):
        return f"breaks the triangle rule (principal moments {_numbers(moments)}, the largest exceeds the others' sum)"
    if smallest < min_principal and not allow_zero:
        return f"with a principal moment that is round-off (principal moments {_numbers(moments)}, {mass:.3g} kg)"
    return None


def repair_inertia(inertia: np.ndarray, mass: float) -> np.ndarray:
    """Return a physically possible tensor close to ``inertia`` (3, 3).

    The repair keeps the principal axes and the largest moment. A physically possible tensor is returned unchanged. A
    tensor that is infinite, NaN or almost zero becomes the inertia of a sphere of water with ``mass`` (kg).
    """
    if inertia_fault(inertia, mass) is None:
        return inertia
    scale = float(np.abs(inertia).max())
    if not TINY <= scale < HUGE:  # also for NaN
        return sphere_inertia(mass)
    moments, axes = np.linalg.eigh(inertia / scale)
    if moments[2] <= POSITIVE_TOLERANCE or moments[2] * scale < max(10.0 * TINY, min_moment(mass)):
        return sphere_inertia(mass)
    # Twice the minimum moment, so that round-off in rotations cannot lower a moment below the limit.
    moments = np.maximum(moments, max(REPAIRED_FRACTION * moments[2], 2.0 * min_moment(mass) / scale))
    deficit = moments[2] * (1.0 + TRIANGLE_MARGIN) - moments[0] - moments[1]
    if deficit > 0.0:
        moments[:2] += 0.5 * deficit
    repaired = (axes * moments) @ axes.T * scale
    return 0.5 * (repaired + repaired.T)


def sphere_inertia(mass: float) -> np.ndarray:
    """Return the inertia (3, 3) of a sphere of water with ``mass`` (kg)."""
    radius = (3.0 * mass / (4.0 * math.pi * WATER_DENSITY)) ** (1.0 / 3.0)
    return np.eye(3) * (0.4 * mass * radius * radius)


def light_link(mass: float, inertia: np.ndarray) -> tuple[float, float]:
    """Return the mass (kg) and the moment of inertia (kg m2) of a light body between two joints.

    ``mass`` (kg) and ``inertia`` (kg m2) are those of the next body in the kinematic chain.
    """
    light = LIGHT_FRACTION * mass
    return light, max(LIGHT_FRACTION * float(np.trace(inertia)) / 3.0, 4.0 * min_moment(light))


def combine(parts: Iterable[MassProperties]) -> MassProperties:
    """Combine the mass properties of rigidly connected ``parts`` in a common frame (parallel axis theorem)."""
    all_parts = list(parts)
    heavy = [part for part in all_parts if part.mass > 0.0 or np.any(part.inertia)]
    if len(heavy) == 1:
        return heavy[0]
    mass = math.fsum(part.mass for part in heavy)
    if mass == 0.0:
        first = all_parts[0].com if all_parts else np.zeros(3)
        return MassProperties(0.0, first, sum((part.inertia for part in heavy), np.zeros((3, 3))))
    com = sum((part.mass * part.com for part in heavy), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for part in heavy:
        inertia += part.inertia + part.mass * parallel_axis(part.com - com)
    return MassProperties(mass, com, inertia)


def parallel_axis(offset: np.ndarray) -> np.ndarray:
    """Return the inertia (3, 3) of a point mass of 1 kg at ``offset`` (3,), about the origin."""
    return float(offset @ offset) * np.eye(3) - np.outer(offset, offset)


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
