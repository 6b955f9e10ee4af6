from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder

POSES = 10
PUSH_SPEED = 1.0
CORNERS = np.random.default_rng(5).normal(size=(12, 3))
CORNERS *= 0.3 / np.linalg.norm(CORNERS, axis=1, keepdims=True)
HEIGHTS = 0.1 * np.random.default_rng(6).random((12, 12))

GROUND: dict[str, Callable[[ModelBuilder], int]] = {
    "plane": lambda b: b.add_shape_plane(-1),
    "height_field": lambda b: b.add_shape_height_field(-1, HEIGHTS, spacing=(0.2, 0.2)),
}
MOVABLE: dict[str, Callable[[ModelBuilder, int], int]] = {
    "sphere": lambda b, k: b.add_shape_sphere(k, 0.3),
    "capsule": lambda b, k: b.add_shape_capsule(k, 0.2, 0.2),
    "box": lambda b, k: b.add_shape_box(k, (0.3, 0.25, 0.2)),
    "cylinder": lambda b, k: b.add_shape_cylinder(k, 0.25, 0.25),
    "cone": lambda b, k: b.add_shape_cone(k, 0.3, 0.3),
    "ellipsoid": lambda b, k: b.add_shape_ellipsoid(k, (0.3, 0.25, 0.2)),
    "superellipsoid": lambda b, k: b.add_shape_superellipsoid(k, (0.3, 0.25, 0.2), (0.5, 0.7)),
    "hull": lambda b, k: b.add_shape_hull(k, CORNERS),
    "wheel": lambda b, k: b.add_shape_wheel(k, 0.3, 0.1),
    "barrel": lambda b, k: b.add_shape_barrel(k, 0.25, 0.5, 0.25),
}
PAIRS = [*itertools.product(GROUND, MOVABLE), *itertools.combinations_with_replacement(MOVABLE, 2)]


def _overlapping(first: str, second: str, backend: str, poses: int) -> gpusim.Simulation:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    if first in GROUND:
        GROUND[first](b)
    else:
        MOVABLE[first](b, b.add_body(mass=1.0, inertia=(0.03,) * 3, label="a"))
    MOVABLE[second](b, b.add_body(mass=1.0, inertia=(0.03,) * 3, label="b"))
    config = gpusim.SolverConfig(dt=1.0 / 60.0, substeps=4, max_depenetration_speed=PUSH_SPEED)
    options: dict[str, Any] = {"threads": 1} if backend == "native" else {}
    sim = gpusim.Simulation(b.finalize(), num_worlds=poses, backend=backend, config=config, **options)
    random = np.random.default_rng(PAIRS.index((first, second)))
    for body in b.bodies:
        turns = random.normal(size=(poses, 4))
        sim.write(f"body.{body.label}.orientation", turns / np.linalg.norm(turns, axis=1, keepdims=True))
    sim.write("body.b.position", random.uniform(-0.1, 0.1, (poses, 3)))
    return sim


def _penetration(sim: gpusim.Simulation) -> np.ndarray:
    return np.asarray(sim.read("sim.penetration", numpy=True))


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_deep_overlaps_are_taken_back(first, second):
    sim = _overlapping(first, second, "native", POSES)
    assert _penetration(sim).min() > 0.05
    before, fastest = np.array(sim.read_state()["position"]), 0.0
    for _ in range(120):
        sim.step()
        now = np.array(sim.read_state()["position"])
        fastest = max(fastest, float(np.linalg.norm(now - before, axis=2).max()) / sim.config.dt)
        before = now
    assert sim.health().all(), sim.health_report()
    assert _penetration(sim).max() < 1e-3
    # The cap holds at the points that are pushed, not for a center that turns about them (1.13 for the hull), and
    # several faces of a height field push at once (1.29).
    assert fastest < PUSH_SPEED * (1.5 if first == "height_field" else 1.2)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("first", "second"), PAIRS[::7], ids=["-".join(pair) for pair in PAIRS[::7]])
def test_taking_back_leaves_no_speed(first, second):
    sim = _overlapping(first, second, "native", POSES)
    sim.step(120)
    # Boxes and cones that tip over an edge on their way out keep some of it.
    assert np.linalg.norm(sim.read_state()["linear_velocity"], axis=2).max() < 0.1


@pytest.mark.parametrize(("first", "second"), [("plane", "box"), ("capsule", "box"), ("ellipsoid", "hull")])
def test_numpy_takes_overlaps_back(first, second):
    sim = _overlapping(first, second, "numpy", 1)
    deep = _penetration(sim)[0]
    sim.step(6)
    assert _penetration(sim)[0] < deep - 0.05


def test_every_pair_of_kinds_is_here():
    from gpusim.description.shape_kinds import shape_kinds

    # A sheet of triangles has no inside. tests/analytic/contact/test_triangle_meshes.py tests it.
    kinds = {kind.name for kind in shape_kinds() if not kind.two_sided}
    assert kinds == {*GROUND, *MOVABLE}
    wanted = {frozenset(pair) for pair in itertools.product(kinds, repeat=2) if not {*pair} <= {*GROUND}}
    assert {frozenset(pair) for pair in PAIRS} == wanted
