"""Piles for contact benchmarks: layers of boxes and spheres that settle on each other.

Every object is 1 m wide and weighs 1 kg. Every second layer is shifted by 0.3 m. Small random rotations and shifts with
a fixed seed break the symmetry. Benchmarks of other simulators use the same poses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import gpusim
from gpusim import ModelBuilder, rotations
from gpusim.errors import ModelError
from gpusim.transform import Transform
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

HALF = 0.5
"""Half width of a box, and radius of a sphere, m."""
MASS = 1.0
FRICTION = 0.5
GRAVITY = 9.81
DT = 1.0 / 120.0
SETTLE = 240
"""Number of steps (2 s) after which the pile is at rest."""
PITCH = 1.2
GAP = 0.05
OFFSET = 0.3
JITTER, MAX_ANGLE = 0.03, 0.1  # m, rad
SEED = 1
BOX_INERTIA = MASS * (2.0 * HALF) ** 2 / 6.0
BALL_INERTIA = 0.4 * MASS * HALF**2


@dataclass(frozen=True)
class Heap:
    """Initial poses of the objects of a pile. z is up, and the ground is at z = 0.

    Attributes:
        position: positions of the centers (n, 3), m.
        angle: rotation angles about z (n,), rad.
        ball: True for spheres, False for boxes (n,).
        half_width: half width of the pile (m).
    """

    position: Array
    angle: Array
    ball: Array
    half_width: float

    def orientation(self) -> Array:
        """Return the orientations as quaternions xyzw (n, 4)."""
        q = np.zeros((self.angle.size, 4))
        q[:, 2], q[:, 3] = np.sin(0.5 * self.angle), np.cos(0.5 * self.angle)
        return q


def heap(columns: int, layers: int, spheres: bool = False) -> Heap:
    """Return ``layers`` layers of ``columns`` x ``columns`` boxes. With ``spheres``, every second object is a sphere.

    Raises:
        ModelError: there is no column or no layer.
    """
    if columns < 1 or layers < 1:
        raise ModelError(f"heap: {columns} columns and {layers} layers are too few; give at least 1 of each")
    rng = np.random.default_rng(SEED)
    layer, x, y = (a.ravel() for a in np.meshgrid(*map(np.arange, (layers, columns, columns)), indexing="ij"))
    shift = OFFSET * (layer % 2 - 0.5)
    middle = 0.5 * (columns - 1)
    position = np.stack([(x - middle) * PITCH + shift, (y - middle) * PITCH + shift, np.zeros(x.size)], axis=1)
    position[:, :2] += rng.uniform(-JITTER, JITTER, (x.size, 2))
    position[:, 2] = HALF + 0.5 * GAP + layer * (2.0 * HALF + GAP)
    ball = (x + y + layer) % 2 == 1 if spheres else np.zeros(x.size, bool)
    return Heap(position, rng.uniform(-MAX_ANGLE, MAX_ANGLE, x.size), ball, (middle + 0.5) * PITCH + OFFSET)


def pile(columns: int, layers: int, spheres: bool = False) -> ModelBuilder:
    """Return the pile of :func:`heap` on a ground plane. With ``spheres``, four walls enclose the pile.

    Raises:
        ModelError: there is no column or no layer.
    """
    objects = heap(columns, layers, spheres)
    b = gpusim.ModelBuilder()
    material = gpusim.Material(friction=FRICTION)
    b.add_shape_plane(-1, material=material, label="ground")
    if spheres:
        _add_walls(b, objects.half_width, material)
    for k, (position, rotation, ball) in enumerate(
        zip(objects.position, objects.orientation(), objects.ball, strict=True)
    ):
        inertia = (BALL_INERTIA,) * 3 if ball else (BOX_INERTIA,) * 3
        pose = Transform(tuple(position), tuple(rotation))
        body = b.add_body(mass=MASS, inertia=inertia, xform=pose, label=f"thing{k}")
        if ball:
            b.add_shape_sphere(body, radius=HALF, material=material)
        else:
            b.add_shape_box(body, half_extents=(HALF,) * 3, material=material)
    return b


def _add_walls(b: ModelBuilder, half_width: float, material: gpusim.Material) -> None:
    """Add four planes that face the center, at the distance ``half_width`` from the center."""
    half = np.sqrt(0.5)
    for k, (x, y) in enumerate(((-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0))):
        # this rotation by 90 degrees turns the z axis to (-x, -y, 0)
        pose = Transform((x * half_width, y * half_width, 0.0), (y * half, -x * half, 0.0, half))
        b.add_shape_plane(-1, xform=pose, material=material, label=f"wall{k}")


def figures(sim: Simulation, step_us: float) -> dict[str, float]:
    """Return the results of a settled pile: contacts, time per contact, and residual motion.

    Args:
        sim: one world of a pile.
        step_us: time of a step (microseconds).

    Returns:
        Dict of results. ``manifolds`` and ``points`` are the numbers of contact manifolds and contact points.
        ``ns_per_point`` is the time per contact point (ns). ``rms_speed`` and ``greatest_speed`` are speeds of the
        centers of mass (m/s). ``overlap`` is the maximum penetration (m).
    """
    state = sim.read_state()
    count = int(state["pair_count"][0])
    points = np.asarray(state["pair_points"][0, :count])
    velocity = np.asarray(state["linear_velocity"][0, : len(sim.model.bodies)])
    found = motion_figures(int(np.count_nonzero(points)), int(points.sum()), step_us, velocity)
    return found | {"overlap": overlap(sim)}


def overlap(sim: Simulation) -> float:
    """Return the maximum penetration over all contact points of the last step (m)."""
    state = sim.read_state()
    count = int(state["pair_count"][0])
    pair, point = np.nonzero(np.arange(4) < np.asarray(state["pair_points"][0, :count])[:, None])
    body = sim.model.contact.body[np.asarray(state["pair_shapes"][0, :count])][pair]
    anchor = np.asarray(state["contact_anchor"][0, :count], float)[pair, point].reshape(-1, 2, 3)
    rotation = rotations.matrix_from_quaternion(np.asarray(state["orientation"][0], float))[body]
    points = np.asarray(state["position"][0], float)[body] + np.einsum("nsij,nsj->nsi", rotation, anchor)
    normal = np.asarray(state["pair_normal"][0, :count], float)[pair]
    gap = np.einsum("ni,ni->n", normal, points[:, 1] - points[:, 0])
    return float(max(0.0, -gap.min(initial=0.0)))


def motion_figures(manifolds: int, points: int, step_us: float, velocity: Any) -> dict[str, float]:
    """Return the results of :func:`figures` without ``overlap``. ``velocity`` (n, 3) is for n centers of mass."""
    speed = np.linalg.norm(np.asarray(velocity, float), axis=1)
    return {
        "manifolds": float(manifolds),
        "points": float(points),
        "ns_per_point": 1e3 * step_us / max(points, 1),
        "rms_speed": float(np.sqrt(np.mean(speed**2))),
        "greatest_speed": float(speed.max()),
    }
