"""A row of N four-bar linkages (windows) passes through its singular position and keeps its links parallel.

With N = 2, the scene is reference case A02 in ``tests/reference/multibody`` (IFToMM benchmark). All motion is in the
x-z plane.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, Plot, Positive, Range, Scene
from gpusim.scenes._bodies import PLANE_AXIS, in_plane, thin_rod_inertia
from gpusim.scenes._checks import GAPS, Recording, joints_stay_closed, keeps_energy, near

NAME = "four_bar"
MAX_WINDOWS = 10_000


def build(
    windows: Annotated[int, Range(1, MAX_WINDOWS)] = 2,
    length: Positive = 1.0,
    mass: Positive = 1.0,
    speed: float = 1.0,
) -> Scene:
    """Build the scene with vertical links on pivots and horizontal links on top.

    The frame of a vertical link is at its pivot, with the link along +z. The frame of a horizontal link is at its left
    end.

    Args:
        windows: number of windows N, 1 to 10000. The mechanism has N+1 vertical and N horizontal links.
        length: length of every link, m, above 0.
        mass: mass of every link, kg, above 0.
        speed: initial speed of the upper ends along +x, m/s.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    verticals = [_add_vertical(b, i, length, mass, speed) for i in range(windows + 1)]
    horizontals = [_add_horizontal(b, i, length, mass, speed) for i in range(windows)]
    top, right = gpusim.Transform((0.0, 0.0, length)), gpusim.Transform((length, 0.0, 0.0))
    for i, vertical in enumerate(verticals):
        pivot = in_plane(i * length, 0.0)
        b.add_joint_revolute(-1, vertical, parent_xform=pivot, axis=PLANE_AXIS, label=f"pivot{i}")
    for i, horizontal in enumerate(horizontals):
        b.add_joint_revolute(verticals[i], horizontal, parent_xform=top, axis=PLANE_AXIS, label=f"left{i}")
        b.add_joint_revolute(
            horizontal, verticals[i + 1], parent_xform=right, child_xform=top, axis=PLANE_AXIS, label=f"right{i}"
        )
    return Scene(
        name=NAME,
        description="N four-bar windows pass through their singular position without branching.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=10.0,
        plots=[
            Plot("Upper left corner", "m", ["body.horizontal0.position"]),
            Plot("Rate of the first link", "rad/s", ["joint.pivot0.velocity"]),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
            Plot("Largest joint gap", "m", ["sim.joint_drift", "sim.joint_drift_peak"], labels=GAPS),
        ],
        camera=Camera((0.5 * windows * length, -5.0 * length, 0.0), (0.5 * windows * length, 0.0, 0.0)),
        checks=[
            keeps_energy(6e-4),
            joints_stay_closed(1e-6),
            Check("the windows stay parallelograms through singular poses", lambda run: _keeps_parallel(run, windows)),
        ],
    )


def _add_vertical(b: gpusim.ModelBuilder, i: int, length: float, mass: float, speed: float) -> int:
    return b.add_body(
        mass=mass,
        inertia=thin_rod_inertia(mass, length, "z"),
        com=(0.0, 0.0, 0.5 * length),
        xform=in_plane(i * length, 0.0),
        linear_velocity=(0.5 * speed, 0.0, 0.0),
        angular_velocity=(0.0, speed / length, 0.0),
        label=f"vertical{i}",
    )


def _add_horizontal(b: gpusim.ModelBuilder, i: int, length: float, mass: float, speed: float) -> int:
    return b.add_body(
        mass=mass,
        inertia=thin_rod_inertia(mass, length, "x"),
        com=(0.5 * length, 0.0, 0.0),
        xform=in_plane(i * length, length),
        linear_velocity=(speed, 0.0, 0.0),
        label=f"horizontal{i}",
    )


def _keeps_parallel(run: Recording, windows: int) -> bool:
    """Check that a corner moves on a circle, and that the first bar's velocity agrees with energy conservation."""
    corner, rate = run["body.horizontal0.position"], run["joint.pivot0.velocity"]
    inertia, weight = (windows + 1) / 3.0 + windows, 9.81 * ((windows + 1) / 2.0 + windows)
    square = rate[0] ** 2 + 2.0 * weight * (1.0 - corner[..., 2]) / inertia
    return near(np.hypot(corner[..., 0], corner[..., 2]), 1.0, 1e-6) and near(rate**2, square, 1e-3)
