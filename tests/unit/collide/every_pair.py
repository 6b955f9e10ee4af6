from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.description.shape_kinds import shape_kinds
from gpusim.typing import Array

KINDS = [kind.name for kind in shape_kinds()]
FIXED = [kind.name for kind in shape_kinds() if not kind.movable]
PAIRS = [(low, high) for low, high in itertools.combinations_with_replacement(KINDS, 2) if {low, high} - set(FIXED)]
GAPS = (-1e-3, 2e-3, 0.1)
OVERLAPPING, NEAR, FAR = range(3)
DT, PUSH_SPEED = 1.0 / 120.0, 0.01
_CELL = 5.0
_FRUSTUM = [(x * s, y * s, z) for z, s in ((-0.1, 0.2), (0.2, 0.1)) for x in (-1, 1) for y in (-1, 1)]
_FIELD = np.pad(np.zeros((5, 5)), 1, constant_values=-0.2)
_GRID = np.meshgrid(*[np.linspace(-0.75, 0.75, 7)] * 2)
_MESH = (np.column_stack([x.ravel() for x in (*_GRID, _FIELD)]), [
    (i + a, i + b, i + c) for i in range(41) if i % 7 < 6 for a, b, c in ((0, 1, 8), (0, 8, 7))
])  # fmt: skip
_LYING = Rotation.from_euler("y", 90, degrees=True)
_SIZES: dict[str, dict[str, Any]] = {
    "plane": {},
    "sphere": {"radius": 0.2},
    "capsule": {"radius": 0.1, "half_length": 0.2},
    "box": {"half_extents": (0.2, 0.15, 0.1)},
    "cylinder": {"radius": 0.2, "half_length": 0.15},
    "cone": {"radius": 0.2, "half_length": 0.15},
    "ellipsoid": {"semi_axes": (0.3, 0.2, 0.1)},
    "superellipsoid": {"semi_axes": (0.3, 0.2, 0.1), "exponents": (0.8, 1.2)},
    "hull": {"vertices": _FRUSTUM},
    "height_field": {"heights": _FIELD, "spacing": (0.25, 0.25)},
    "wheel": {"radius": 0.2, "edge_radius": 0.05},
    "barrel": {"radius": 0.2, "arc_radius": 0.5, "half_length": 0.15},
    "triangle_mesh": {"mesh": _MESH},
}
_REACH = dict(zip(KINDS, (0.0, 0.2, 0.1, 0.1, 0.15, 0.15, 0.1, 0.1, 0.1, 0.0, 0.2, 0.15, 0.0), strict=True))


@dataclass(frozen=True)
class Case:
    """A pair of shapes. Shape A was added first.

    Attributes:
        kind_a, kind_b: kinds of shapes A and B.
        shape_a, shape_b: indices of shapes A and B.
        axis: unit vector (3,) from A to B.
        bodies: index of the bodies of A and B, or -1 for the world.
        upper: shape with a different height in each world: 0 for A, 1 for B.
    """

    kind_a: str
    kind_b: str
    shape_a: int
    shape_b: int
    axis: Array
    bodies: list[int]
    upper: int


def _add(b: ModelBuilder, kind: str, place: Array, turn: Rotation, upper: bool, label: str) -> int:
    add: Callable[..., int] = getattr(b, f"add_shape_{kind}")
    if kind in FIXED:
        return add(-1, **_SIZES[kind], xform=Transform(place, turn.as_quat()), label=label, mask=0)
    if not upper:
        turn = turn * Rotation.from_euler("x", 180, degrees=True)
    body = b.add_body(1.0, (0.01, 0.01, 0.01), xform=Transform(place, turn.as_quat()), label=label)
    level = Transform((0, 0, 0), _LYING.as_quat()) if kind in ("capsule", "wheel") else Transform()
    return add(body, **_SIZES[kind], xform=level, label=label, mask=0)


def build() -> tuple[ModelBuilder, list[Case]]:
    rng = np.random.default_rng(4)
    b, cases = ModelBuilder(gravity=(0, 0, 0)), []
    ordered = list(dict.fromkeys(order for pair in PAIRS for order in (pair, pair[::-1])))
    for n, kinds in enumerate(ordered):
        upper = 0 if kinds[1] in FIXED else 1
        turn = Rotation.from_quat(rng.normal(size=4))
        up = turn.apply((0, 0, 1))
        middle = _CELL * np.array([n % 11, n // 11, 0.0])
        shapes = []
        for side, kind in enumerate(kinds):
            place = middle + (1 if side == upper else -1) * _REACH[kind] * up
            shapes.append(_add(b, kind, place, turn, side == upper, f"{'ab'[side]}{n}"))
        b.add_collision_pair(*shapes)
        bodies = [b.shapes[s].body for s in shapes]
        cases.append(Case(*kinds, *shapes, up if upper else -up, bodies, upper))
    return b, cases


def simulation(b: ModelBuilder, cases: list[Case], backend: str, gaps: Sequence[float] = GAPS) -> Simulation:
    """A simulation with one world for each gap."""
    config = SolverConfig(dt=DT, max_depenetration_speed=PUSH_SPEED, iterations=20)
    sim = Simulation(b.finalize(), len(gaps), backend=backend, config=config)
    place = sim.state.arrays["position"]
    for case in cases:
        up = case.axis if case.upper else -case.axis
        place[:, case.bodies[case.upper]] += np.outer(gaps, up)
    sim.invalidate()
    return sim
