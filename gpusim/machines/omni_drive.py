"""Tendons for a platform on omni or mecanum wheels, one each for forward, left and yaw motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.machines.omni_wheel import OmniWheel

NAMES = ("forward", "left", "turn")
SINGULAR = 1e-6
"""Minimum ratio of the smallest to the largest singular value of the matrix B (see ``add_omni_drive``)."""


@dataclass(frozen=True)
class OmniDrive:
    """Tendons of a platform, from :func:`add_omni_drive`.

    Attributes:
        forward, left: tendons. Without slip, their rates are the platform's velocities (m/s) along its x and y axes.
        turn: tendon whose rate is the platform's yaw rate (rad/s).
    """

    forward: int
    left: int
    turn: int


def add_omni_drive(builder: ModelBuilder, wheels: Sequence[OmniWheel], label: str = "") -> OmniDrive:
    """Add three tendons to a platform: forward, left, yaw. An actuator on a tendon drives all wheels together.

    The wheel speeds w are linear in the platform velocity v: w = B v (see :meth:`OmniWheel.ideal`).

    Args:
        builder: builder that contains the wheels.
        wheels: all wheels of one platform, at least three.
        label: prefix of the labels ``forward``, ``left``, ``turn``.

    Raises:
        ModelError: the platform has fewer than three wheels, or the wheels cannot produce all three motions.
    """
    element = f"omni drive '{label}'" if label else "omni drive"
    validate.instance(element, "wheels", wheels, Sequence, "give results of add_omni_wheel")
    if len(wheels) < 3 or not all(isinstance(wheel, OmniWheel) for wheel in wheels):
        raise validate.fail(
            element, f"wheels (length {len(wheels)}) are not three or more OmniWheels", "give results of add_omni_wheel"
        )
    speeds = np.array([[wheel.ideal(motion) for motion in np.eye(3)] for wheel in wheels])
    size = np.linalg.svd(speeds, compute_uv=False)
    if size[-1] < SINGULAR * size[0]:
        rule = "the wheels cannot drive all motions of the platform"
        raise validate.fail(element, rule, "change the direction of an axle or the roller angles, or add a wheel")
    tendons = [
        builder.add_tendon(
            [(wheel.spin, float(x)) for wheel, x in zip(wheels, factors, strict=True) if abs(x) > 1e-12],
            label=f"{label}{name}",
        )
        for name, factors in zip(NAMES, np.linalg.pinv(speeds), strict=True)
    ]
    return OmniDrive(*tendons)
