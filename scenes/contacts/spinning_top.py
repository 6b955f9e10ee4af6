"""A heavy top spins, precesses and nutates on its tip, or a free body flips (Dzhanibekov effect).

The scene is reference case C03 (Lagrange top) in ``tests/reference/multibody``. With ``free=true``, the scene is case
C01 (free body).
"""

from __future__ import annotations

import math

import numpy as np

import gpusim
from gpusim import rotations
from gpusim.scene import Camera, Check, Plot, Positive, Scene
from gpusim.scenes._checks import Recording, keeps_energy, near

NAME = "spinning_top"
FREE_INERTIA = (1.0, 2.0, 3.0)
DEFAULTS = {"spin": "100, 5 if free"}


def build(
    free: bool = False,
    spin: float | None = None,
    tilt: float = math.pi / 6.0,
    mass: Positive = 1.0,
    radius: Positive = 0.1,
    height: Positive = 0.1,
    wobble: float = 0.01,
) -> Scene:
    """Build the scene.

    Args:
        free: True for a free body without gravity (principal moments 1, 2, 3 kg m2). False for a disc on a tip.
        spin: initial rate, rad/s, about the disc's axis (default 100) or a free body's intermediate principal axis
            (default 5).
        tilt: angle of the disc's axis from the vertical, rad. Not used with ``free``.
        mass: mass of the body, kg, above 0.
        radius: radius of the disc, m, above 0. Not used with ``free``.
        height: height of the disc's center above the tip, m, above 0. Not used with ``free``.
        wobble: initial angular rate of a free body about its first and third axes, rad/s.
    """
    if free:
        b = gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
        rate = (wobble, 5.0 if spin is None else spin, wobble)
        b.add_body(mass=mass, inertia=FREE_INERTIA, angular_velocity=rate, label="top")
        duration = 20.0
    else:
        b = _lagrange_top(100.0 if spin is None else spin, tilt, mass, radius, height)
        duration = 5.0
    return Scene(
        name=NAME,
        description="A heavy top precesses on its tip, or a free body flips.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=duration,
        plots=[
            Plot("Angular velocity", "rad/s", ["body.top.angular_velocity"]),
            Plot("Orientation", "quaternion", ["body.top.orientation"]),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
        ],
        camera=Camera((0.3, -0.6, 0.3), (0.0, 0.0, 0.05)) if not free else Camera((0.0, -8.0, 3.0), (0.0, 0.0, 0.0)),
        checks=[keeps_energy(2e-4)] if free else [keeps_energy(2e-4), *_CHECKS],
    )


def _lagrange_top(spin: float, tilt: float, mass: float, radius: float, height: float) -> gpusim.ModelBuilder:
    """Return a thin disc on a massless stem."""
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    pose = gpusim.Transform.from_axis_angle((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), tilt)
    transverse = 0.25 * mass * radius**2
    top = b.add_body(
        mass=mass,
        inertia=(transverse, transverse, 2.0 * transverse),
        com=(0.0, 0.0, height),
        xform=pose,
        angular_velocity=(0.0, -spin * math.sin(tilt), spin * math.cos(tilt)),
        label="top",
    )
    b.add_joint_ball(-1, top, label="tip")
    return b


def _keeps_momentum(run: Recording) -> bool:
    """Check that the angular momentum about the vertical and the rate about the disc's axis are constant."""
    rotation = rotations.matrix_from_quaternion(run["body.top.orientation"])
    rate = rotations.matvec(rotation.swapaxes(-1, -2), run["body.top.angular_velocity"])
    vertical = rotations.matvec(rotation, rate * np.array([0.0125, 0.0125, 0.005]))[..., 2]
    return near(rate[..., 2], 100.0, 1e-3) and near(vertical, 0.5 * math.cos(math.pi / 6.0), 5e-5)


def _nods(run: Recording) -> bool:
    """Check that the tilt ranges from 30 to 33.219 degrees (elliptic functions), with a tolerance of 0.01 degrees."""
    x, y = run["body.top.orientation"][..., 0], run["body.top.orientation"][..., 1]
    tilt = np.degrees(np.arccos(1.0 - 2.0 * (x**2 + y**2)))
    return near(tilt.min(axis=0), 30.0, 0.01) and near(tilt.max(axis=0), 33.218997431261, 0.01)


_CHECKS = (
    Check("angular momentum about the vertical and rate about the axis are constant", _keeps_momentum),
    Check("the range of the nutation agrees with theory", _nods),
)
