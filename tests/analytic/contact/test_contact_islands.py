"""Newton's method for the contacts of each island (contact_islands.py, contact_islands.cuh)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.model import paths

SPACING = 2.0
STEPS = 40
ROUGH = Material(friction=0.6)
PATCH = Material(friction=0.6, law=ContactLaw(friction="contensou", patch_radius=0.02))


def add_robot(b: ModelBuilder, number: int, material: Material = ROUGH, at: float | None = None) -> None:
    """Add two box feet on a hinge with a servo. Each robot moves to another angle."""
    middle = SPACING * number if at is None else at
    feet = [
        b.add_body(xform=Transform((middle + 0.25 * side, 0.0, 0.031)), label=f"foot{number}{side}") for side in (-1, 1)
    ]
    for foot in feet:
        b.add_shape_box(foot, half_extents=(0.1, 0.06, 0.03), material=material)
    hinge = b.add_joint_revolute(*feet, Transform((0.25, 0.0, 0.2)), Transform((-0.25, 0.0, 0.2)), axis=(0, 1, 0))
    b.add_servo(hinge, stiffness=50.0, damping=1.0, target=0.03 * (number % 5 - 2), label=f"servo{number}")


def add_tripod(b: ModelBuilder, number: int) -> None:
    """Add a base on three balls, with an arm that swings sideways. Each arm starts at another speed."""
    x = SPACING * number
    base = b.add_body(4.0, (0.05, 0.05, 0.08), xform=Transform((x, 0.0, 0.1)), label=f"base{number}")
    for k in range(3):
        angle = 2.0 * math.pi * k / 3 + 0.1 * number
        foot = Transform((0.3 * math.cos(angle), 0.3 * math.sin(angle), -0.07))
        b.add_shape_sphere(base, 0.03, foot, material=ROUGH)
    arm = b.add_body(
        1.0, (0.01, 0.01, 0.002), xform=Transform((x, 0.0, 0.35)), angular_velocity=(0.0, 0.5 + 0.1 * number, 0.0),
        linear_velocity=(0.2 * (0.5 + 0.1 * number), 0.0, 0.0), label=f"arm{number}",
    )  # fmt: skip
    b.add_joint_revolute(base, arm, Transform((0, 0, 0.05)), Transform((0, 0, -0.2)), axis=(0, 1, 0), damping=0.1)


def tripods(count: int, first: int = 0) -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1, material=ROUGH)
    for number in range(first, first + count):
        add_tripod(b, number)
    return b


def two_in_contact() -> ModelBuilder:
    """Two robots side by side, whose inner feet press on each other, a third robot, and a free box in front of it."""
    b = ModelBuilder()
    b.add_shape_plane(-1, material=ROUGH)
    for number, middle in enumerate((0.0, 0.6999, 3.0)):
        add_robot(b, number + 1, at=middle)
    box = b.add_body(xform=Transform((3.0, 0.3, 0.05)), linear_velocity=(0.0, -0.5, 0.0), label="box")
    b.add_shape_box(box, half_extents=(0.4, 0.05, 0.05), material=ROUGH)
    return b


def with_a_swept_island() -> ModelBuilder:
    """Three robots. The soles of the second robot have patch friction, which Newton's method does not solve."""
    b = ModelBuilder()
    b.add_shape_plane(-1, material=ROUGH)
    for number in range(3):
        add_robot(b, number + 1, PATCH if number == 1 else ROUGH)
    return b


def simulate(
    b: ModelBuilder, backend: str = "native", steps: int = STEPS, **config: Any
) -> tuple[Simulation, list[int]]:
    """Run steps. Return the simulation, and the number of solved islands in each step (native backend)."""
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=2e-3, **config), threads=1)
    solved = []
    for _ in range(steps):
        sim.step()
        if backend == "native":
            slab: Any = sim.backend
            count = int(slab.slab_array("island_count")[0])
            failed = int(slab.slab_array("island_failed").ravel()[:count].sum())
            solved.append(count - failed if slab.slab_array("condensed_fits")[0] else 0)
    return sim, solved


def run_residuals(b: ModelBuilder, steps: int) -> list[float]:
    """Return the last impulse change of each step, divided by the greatest impulse."""
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=2e-3), threads=1)
    slab: Any = sim.backend
    found = []
    for _ in range(steps):
        sim.step()
        count = int(slab.slab_array("sweep_count")[0])
        found.append(slab.slab_array("sweep_change").ravel()[count - 1] / sim.state.arrays["contact_impulse"].max())
    return found


@pytest.mark.native
def test_robots_in_one_world_move_as_alone() -> None:
    together, solved = simulate(tripods(8))
    assert max(solved) == 8
    for number in range(8):
        alone, _ = simulate(tripods(1, first=number))
        for name in ("position", "orientation", "linear_velocity"):
            found = together.state.arrays[name][0, 2 * number : 2 * number + 2]
            np.testing.assert_allclose(found, alone.state.arrays[name][0, :2], rtol=0.0, atol=1e-9)


@pytest.mark.native
def test_the_contacts_of_many_robots_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.percentile(run_residuals(tripods(20), 100), 99) <= 1e-8
    monkeypatch.setattr(paths, "MAX_CONDENSED", 0)
    assert np.percentile(run_residuals(tripods(20), 100), 50) > 1e-8, "sweeps would do"


@pytest.mark.native
@pytest.mark.parametrize(("make", "islands"), [(two_in_contact, 3), (with_a_swept_island, 2)])
def test_the_motion_is_that_of_converged_sweeps(make: Any, islands: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found, solved = simulate(make())
    assert max(solved) == islands
    monkeypatch.setattr(paths, "MAX_CONDENSED", 0)
    swept, never = simulate(make(), iterations=400)
    assert set(never) == {0}
    # Points of free bodies are softer with fewer sweeps.
    atol = 2e-5 if make is two_in_contact else 2e-7
    np.testing.assert_allclose(found.state.arrays["position"], swept.state.arrays["position"], rtol=0.0, atol=atol)


@pytest.mark.native
def test_touching_robots_are_one_island() -> None:
    _, solved = simulate(two_in_contact(), steps=1)
    assert solved == [3], "two robots, the third robot, and the box"


@pytest.mark.native
@pytest.mark.parametrize("make", [lambda: tripods(3), two_in_contact, with_a_swept_island])
def test_both_backends_agree(make: Any) -> None:
    native, reference = (simulate(make(), backend, 8)[0] for backend in ("native", "numpy"))
    # The feet have redundant contact points, which amplify round-off.
    found, wanted = native.state.arrays["position"], reference.state.arrays["position"]
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-7)


@pytest.mark.native
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_robots_next_to_many_boxes(backend: str) -> None:
    """Newton's method solves the robots, and sweeps solve the boxes."""
    b = tripods(2)
    for k in range(60):
        box = b.add_body(xform=Transform((0.3 * (k % 10), 1.0 + 0.3 * (k // 10), 0.05)))
        b.add_shape_box(box, half_extents=(0.05, 0.05, 0.05))
    sim, solved = simulate(b, backend, steps=5)
    assert set(solved) <= {2}
    alone, _ = simulate(tripods(2), steps=5)
    found, wanted = sim.state.arrays["position"][0, :4], alone.state.arrays["position"][0, :4]
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-8)
