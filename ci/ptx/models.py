"""Small models that together use most of the kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ci.state_hashes import robot
from gpusim import ModelBuilder, Pulley, Rays, Transform, Wrap
from gpusim.scene import load_scene
from tests.parity.contact_models import rocks, tiled
from tests.parity.hub_models import octopod
from tests.unit.control.plants import plant

# Minimum number of shapes for which a grid finds the pairs.
GRID_SHAPES = 65
_BALL, _FLOOR = 0.1, -50.0


def walkers() -> ModelBuilder:
    """Return two robots. Shapes of the second robot touch both grounds."""
    b = robot(ball=False)
    b.add_builder(robot(ball=False), Transform((1.0, 0.0, 0.0)), label_prefix="second_")
    return b


def machine(name: str) -> ModelBuilder:
    """Return a scene's machine."""
    b = load_scene(name).builder
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, _FLOOR)))
    ball = b.add_body(xform=Transform((0.1, 0.2, _FLOOR + _BALL)), linear_velocity=(0.3, 0.0, -0.5), label="ball")
    b.add_shape_sphere(ball, radius=_BALL)
    return b


def muscles() -> ModelBuilder:
    """Return a robot with two muscles, a servo with a rate as command, and an ankle that follows the knee."""
    b = robot(ball=False)
    joint, ankle = [k for k, spec in enumerate(b.joints) if spec.kind == "revolute"][:2]
    b.add_mimic(ankle, joint, curve=(0.3, 0.1, 0.05))
    b.add_force(0, (1.0, 0.0, 0.0), torque=(0.0, 0.1, 0.2), frame="body")
    b.add_muscle(joint, 200.0, (-0.1, 0.1), gear=0.05, activation=0.8, label="flexor")
    b.add_muscle(joint, 200.0, (-0.1, 0.1), gear=-0.05, tausmooth=0.2, activation=0.2, label="extensor")
    b.add_tracking_servo(joint, 5.0, 0.5, label="creep")
    b.set_command_map("creep", integrate=True, activation_range=(-1.0, 0.01), initial=1.0)
    return b


def pile() -> ModelBuilder:
    """Return tilted boxes that fall onto each other and onto the ground."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(8):
        position = (0.09 * (k % 2), 0.1 * (k // 2 % 2), 0.055 + 0.11 * (k // 4))
        body = b.add_body(xform=Transform.from_axis_angle(position, (1.0, 2.0, k), 0.05 * k))
        b.add_shape_box(body, half_extents=(0.05, 0.04, 0.06))
    return b


def grid() -> ModelBuilder:
    """Return enough balls for the broad phase to use a grid."""
    b = ModelBuilder()
    for k in range(GRID_SHAPES):
        spacing = 0.19 if k < 6 else 0.5
        body = b.add_body(xform=Transform((spacing * (k % 8), 0.5 * (k // 8), 0.1)), linear_velocity=(0.2, 0.0, -0.1))
        b.add_shape_sphere(body, radius=0.1)
    return b


def rays() -> ModelBuilder:
    """Return a falling ray sensor that is surrounded by all types of shapes."""
    b = ModelBuilder()
    b.add_shape_plane(-1, xform=Transform((0.0, 0.0, -1.0)))
    b.add_shape_height_field(-1, [[0.0, 0.1, 0.0], [0.2, 0.0, 0.1]], spacing=(2.0, 4.0), xform=Transform((0, 0, -0.8)))
    corners = [(-2, -2, 0), (2, -2, 0.2), (2, 2, 0), (-2, 2, 0.1), (0, 0, -0.1)]
    b.add_shape_triangle_mesh(-1, (corners, [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]), xform=Transform((0, 0, 1)))
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
        angle = 2.0 * math.pi * k / len(sizes)
        position = (math.cos(angle), math.sin(angle), 0.0)
        body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform.from_axis_angle(position, (1.0, 1.0, k), 0.5))
        getattr(b, f"add_shape_{kind}")(body, **params)
    site = b.add_site(eye, label="lens")
    b.add_ray_sensor(site, Rays.lidar(2.0 * math.pi, 60, 0.4, 3), max_range=3.0, label="around")
    b.add_ray_sensor(site, Rays.grid((2.0, 2.0), (5, 5)), label="below")
    return b


def ropes() -> ModelBuilder:
    """Return two weights on a rope over a drum."""
    b = ModelBuilder()
    across = Transform.from_axis_angle((0.0, 0.0, 0.0), (1.0, 0.1, 0.0), 1.5)
    drum = b.add_body(2.0, (0.1, 0.2, 0.1), label="drum")
    b.add_joint_revolute(-1, drum, axis=(0.1, 1.0, 0.2), damping=0.1, label="axle")
    ends = [(b.add_body(1.0 + x, (0.1,) * 3, xform=Transform((x, 0.0, -1.0))), (0.0, 0.0, 0.1)) for x in (-0.3, 0.4)]
    over = Wrap(drum, 0.3, across, side=(0.0, 0.0, 9.0))
    b.add_spatial_tendon([ends[0], over, ends[1]], limit_upper=2.75, damping=0.3, label="rope")
    ring = Wrap(-1, 0.2, Transform((0.0, 0.0, -0.5)), "sphere", side=(0.0, 0.0, -0.5))
    pull = b.add_spatial_tendon([(-1, (0.9, 0.0, 0.0)), ring, ends[0], Pulley(2.0), (-1, (1.0, 0.0, 0.0)), ends[1]])
    b.add_torsion_spring(pull, 40.0, rest_angle=1.0)
    return b


@dataclass(frozen=True)
class Run:
    """Model with the settings of its runs.

    Attributes:
        dt: step size (s).
        max_pairs: capacity of the pair buffer.
        builds: launches, solvers and number types that run without ``--all``, or None for the usual builds.
        sets_flags: world flags that the last step must set with the direct solver. They prove that certain stages have
            run.
    """

    build: Callable[[], ModelBuilder]
    dt: float
    steps: int
    max_pairs: int | None = None
    builds: tuple[tuple[str, str, str], ...] | None = None
    sets_flags: tuple[str, ...] = ()


FLOAT64 = (("fused", "direct", "float64"), ("staged", "colored", "float32"))
MODELS = {
    "robot": Run(robot, 5e-3, 6),
    # Only the feet touch the ground. Newton's method solves the contacts of two islands, and one block solves a world.
    "walker": Run(
        walkers,
        5e-3,
        6,
        sets_flags=("condensed_fits",),
        builds=(("fused", "direct", "float32"), ("staged", "direct", "float32")),
    ),
    "muscles": Run(muscles, 5e-3, 6),
    "hydraulic_lift": Run(lambda: machine("hydraulic_lift"), 2e-3, 6),
    "dc_motor_rig": Run(lambda: machine("dc_motor_rig"), 2e-3, 6),
    # The model has loops. One block per world corrects the loops in both launches.
    "boom_crane": Run(
        lambda: machine("boom_crane"), 2e-3, 6, builds=(("fused", "direct", "float32"), ("staged", "direct", "float32"))
    ),
    # A hub with joints and loops around it. It touches the ground, and so do its feet.
    "octopod": Run(
        lambda: octopod(keel=True, bars=True),
        2e-3,
        4,
        builds=(("fused", "direct", "float32"), ("staged", "direct", "float32")),
    ),
    "pile": Run(pile, 1e-2, 6),
    "tiles": Run(lambda: tiled()[0], 5e-3, 6),
    "rocks": Run(lambda: rocks()[0], 5e-3, 6),
    # Diagrams and ropes share the two builds without contacts.
    "diagrams": Run(plant, 5e-3, 12, builds=FLOAT64),
    "grid": Run(grid, 1e-2, 6, max_pairs=12),
    "rays": Run(rays, 5e-3, 6),
    "ropes": Run(ropes, 5e-3, 6, builds=FLOAT64),
}
