"""Small models that, together, reach most of the kernels: joints, actuators, contacts, and those on jointed bodies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ci.state_hashes import robot
from gpusim import ModelBuilder, Rays, Transform
from gpusim.scene import load_scene
from tests.parity.contact_models import tiled
from tests.unit.control.plants import plant

# Shapes from which on pairs are looked for in a grid.
GRID_SHAPES = 65
_BALL, _FLOOR = 0.1, -50.0


def machine(name: str) -> ModelBuilder:
    """A scene's machine, and far below it a ball that falls onto a plane: the build is one with contacts."""
    b = load_scene(name).builder
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, _FLOOR)))
    ball = b.add_body(xform=Transform((0.1, 0.2, _FLOOR + _BALL)), linear_velocity=(0.3, 0.0, -0.5), label="ball")
    b.add_shape_sphere(ball, radius=_BALL)
    return b


def pile() -> ModelBuilder:
    """Tilted boxes that fall onto each other and onto the ground."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(8):
        place = (0.09 * (k % 2), 0.1 * (k // 2 % 2), 0.055 + 0.11 * (k // 4))
        body = b.add_body(xform=Transform.from_axis_angle(place, (1.0, 2.0, k), 0.05 * k))
        b.add_shape_box(body, half_extents=(0.05, 0.04, 0.06))
    return b


def grid() -> ModelBuilder:
    """As many balls as it takes for the grid, few of which meet, so that a world fits into shared memory."""
    b = ModelBuilder()
    for k in range(GRID_SHAPES):
        apart = 0.19 if k < 6 else 0.5
        body = b.add_body(xform=Transform((apart * (k % 8), 0.5 * (k // 8), 0.1)), linear_velocity=(0.2, 0.0, -0.1))
        b.add_shape_sphere(body, radius=0.1)
    return b


def rays() -> ModelBuilder:
    """A sensor that falls with one of every shape around it, which its rays see."""
    b = ModelBuilder()
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, -1.0)))
    b.add_shape_height_field(-1, [[0.0, 0.1, 0.0], [0.2, 0.0, 0.1]], spacing=(2.0, 4.0), xform=Transform((0, 0, -0.8)))
    sizes: dict[str, dict[str, Any]] = {
        "sphere": {"radius": 0.1}, "capsule": {"radius": 0.1, "half_length": 0.1}, "box": {"half_extents": (0.1,) * 3},
        "cylinder": {"radius": 0.1, "half_length": 0.1}, "cone": {"radius": 0.1, "half_length": 0.1},
        "ellipsoid": {"semi_axes": (0.1, 0.2, 0.1)}, "wheel": {"radius": 0.1, "edge_radius": 0.03},
        "superellipsoid": {"semi_axes": (0.1, 0.2, 0.1), "exponents": (0.5, 1.5)},
        "hull": {"vertices": [(0.1, 0, 0), (-0.1, 0.1, 0), (-0.1, -0.1, 0), (0, 0, 0.2)]},
        "barrel": {"radius": 0.1, "arc_radius": 0.3, "half_length": 0.1},
    }  # fmt: skip
    eye = b.add_body(1.0, (0.1, 0.1, 0.1), angular_velocity=(0.2, 0.3, 0.5), label="eye")
    for k, (kind, params) in enumerate(sizes.items()):
        turn = 2.0 * math.pi * k / len(sizes)
        place = (math.cos(turn), math.sin(turn), 0.0)
        body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform.from_axis_angle(place, (1.0, 1.0, k), 0.5))
        getattr(b, f"add_shape_{kind}")(body, **params)
    site = b.add_site(eye, label="lens")
    b.add_ray_sensor(site, Rays.lidar(2.0 * math.pi, 60, 0.4, 3), max_range=3.0, label="around")
    b.add_ray_sensor(site, Rays.grid((2.0, 2.0), (5, 5)), label="below")
    return b


@dataclass(frozen=True)
class Run:
    """A model and how it is run.

    Attributes:
        dt: step in seconds.
        max_pairs: its places for pairs of shapes.
        builds: launches, solvers and types that are run without ``--all``; the usual ones where None.
        reaches: flags of worlds that must have been set in the last step, so that it is seen that the part of the
            schedule behind them has run; by the direct solver.
    """

    build: Callable[[], ModelBuilder]
    dt: float
    steps: int
    max_pairs: int | None = None
    builds: tuple[tuple[str, str, str], ...] | None = None
    reaches: tuple[str, ...] = ()


MODELS = {
    "robot": Run(robot, 5e-3, 6),
    # Nothing but its feet touches: sweeps go on in the contacts' own space, in both launches by one block a world.
    "walker": Run(
        lambda: robot(ball=False), 5e-3, 6, reaches=("condensed_fits",),
        builds=(("fused", "direct", "float32"), ("staged", "direct", "float32")),
    ),
    "hydraulic_lift": Run(lambda: machine("hydraulic_lift"), 2e-3, 6),
    "dc_motor_rig": Run(lambda: machine("dc_motor_rig"), 2e-3, 6),
    "boom_crane": Run(lambda: machine("boom_crane"), 2e-3, 6),
    "pile": Run(pile, 1e-2, 6),
    "tiles": Run(lambda: tiled()[0], 5e-3, 6),
    "diagrams": Run(plant, 5e-3, 12),
    "grid": Run(grid, 1e-2, 6, max_pairs=12),
    "rays": Run(rays, 5e-3, 6),
}
