import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform

on_backends = pytest.mark.parametrize("backend", ["numpy", "native"])
MU, G = 0.4, 9.81


def _belt(shape, **belt):
    """Return a body on a belt whose top is at height 0."""
    b = ModelBuilder()
    body = b.add_body(xform=Transform((0, 0, -0.1)), kinematic=True, conveyor=True, label="belt", **belt)
    b.add_shape_box(body, (5.0, 5.0, 0.1), material=Material(friction=MU), density=1000.0)
    shape(b)
    return b


def _box(b):
    body = b.add_body(2.0, xform=Transform((0, 0, 0.1)), label="part")
    b.add_shape_box(body, (0.2, 0.2, 0.1), material=Material(friction=MU))


def _rim(b):
    body = b.add_body(
        2.0, (0.05, 0.05, 0.05), xform=Transform((1.0, 0, 0.1)), linear_velocity=(0, 1.0, 0),
        angular_velocity=(0, 0, 1.0), label="part",
    )  # fmt: skip
    b.add_shape_box(body, (0.2, 0.2, 0.1), material=Material(friction=MU))


def _run(b, backend, seconds, worlds=1):
    sim = Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=2e-3))
    return sim


@pytest.mark.nightly
def test_box_is_taken_along():
    sim = _run(_belt(_box, linear_velocity=(1.5, 0, 0)), "native", 1.0)
    sim.step(500)
    # It slides for v / (mu g) seconds, then moves with the belt.
    assert np.allclose(sim.read("body.part.linear_velocity")[0], (1.5, 0, 0), atol=1e-4)
    assert np.allclose(sim.read("body.part.position")[0, 0], 1.5 * 1.0 - 1.5**2 / (2 * MU * G), atol=2e-3)
    assert np.allclose(sim.read("body.belt.position"), (0, 0, -0.1), atol=1e-12)


@pytest.mark.nightly
@on_backends
def test_belts_start_stop_and_differ_by_world(backend):
    sim = _run(_belt(_box), backend, 1.0, worlds=2)
    sim.write("body.belt.linear_velocity", [(0.0, 0.0, 0.0), (0.0, -0.5, 0.0)])
    sim.step(250)
    assert np.allclose(sim.read("body.part.linear_velocity"), [(0, 0, 0), (0, -0.5, 0)], atol=1e-4)
    sim.write("body.belt.linear_velocity", (0.0, 0.0, 0.0))
    sim.step(250)
    assert np.allclose(sim.read("body.part.linear_velocity"), 0.0, atol=1e-4)


@pytest.mark.nightly
@on_backends
def test_ball_on_a_belt_reaches_two_sevenths(backend):
    def ball(b):
        body = b.add_body(1.0, xform=Transform((0, 0, 0.1)), label="part")
        b.add_shape_sphere(body, 0.1, material=Material(friction=MU))

    sim = _run(_belt(ball, linear_velocity=(1.4, 0, 0)), backend, 1.0)
    sim.step(500)
    # Rolling without slip, and the angular momentum about the contact is kept: v = 2/7 of the belt's speed.
    assert np.allclose(sim.read("body.part.linear_velocity")[0, 0], 1.4 * 2 / 7, rtol=2e-3)


@pytest.mark.nightly
def test_turntable_carries_a_box_around():
    sim = _run(_belt(_rim, angular_velocity=(0, 0, 1.0)), "native", 1.0)
    sim.step(500)
    position = sim.read("body.part.position")[0]
    assert np.allclose(np.hypot(*position[:2]), 1.0, atol=5e-3)
    assert np.allclose(np.arctan2(position[1], position[0]), 1.0, atol=5e-3)
    assert np.allclose(sim.read("body.belt.orientation")[0], (0, 0, 0, 1), atol=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("shape", "belt"), [(_box, {"linear_velocity": (1.5, 0, 0)}), (_rim, {"angular_velocity": (0, 0, 1.0)})]
)
def test_numpy_moves_parts_as_the_kernels_do(shape, belt):
    ends = []
    for backend in ("numpy", "native"):
        sim = _run(_belt(shape, **belt), backend, 0.1)
        sim.step(20)
        ends.append([sim.read(f"body.part.{name}") for name in ("position", "linear_velocity", "angular_velocity")])
    assert np.allclose(*ends, rtol=0, atol=1e-6)


def test_a_conveyor_is_kinematic():
    with pytest.raises(ModelError, match="kinematic"):
        ModelBuilder().add_body(1.0, conveyor=True)
    with pytest.raises(ModelError, match="conveyor"):
        ModelBuilder().add_body(1.0, kinematic=True, conveyor=2)
