from __future__ import annotations

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, Simulation, SolverConfig, Transform

pytestmark = pytest.mark.nightly

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
GRAVITY = 9.81
CASES = [
    ("second_order", 1, 2e-3, 0.0), ("second_order", 4, 5e-3, 0.0), ("second_order", 1, 5e-3, 0.6),
    ("second_order", 3, 5e-3, 0.6), ("semi_implicit", 4, 5e-3, 0.0), ("semi_implicit", 2, 5e-3, 0.6),
]  # fmt: skip


def half_step_velocity(sim: Simulation, body: str) -> np.ndarray:
    return np.array(sim.read_state()["linear_velocity"][:, sim.model.index("body", body)])


def kicked(config: SolverConfig, steps: int) -> float:
    h = config.dt / config.substeps
    return steps * config.dt - (0.0 if config.scheme == "semi_implicit" else 0.5 * h)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize(("scheme", "substeps", "dt", "restitution"), CASES)
def test_sum_of_contact_forces_is_the_momentum(
    backend: str, solver: str, scheme: str, substeps: int, dt: float, restitution: float
) -> None:
    b = ModelBuilder(gravity=(0, 0, -GRAVITY))
    b.add_shape_plane(-1)
    for k in range(2):
        ball = b.add_body(10.0, (0.1, 0.1, 0.1), xform=Transform((3 * k, 0, 0.12)), label=f"ball{k}")
        b.add_shape_sphere(ball, 0.1, material=Material(restitution=restitution))
        b.add_contact_sensor(ball, label=f"touch{k}")
    twin = b.add_body(5.0, (0.1, 0.1, 0.1), xform=Transform((3, 0, 0.5)), label="twin")
    b.add_joint_fixed(ball, twin, at=(3, 0, 0.3))
    config = SolverConfig(dt=dt, substeps=substeps, scheme=scheme, joint_solver=solver, iterations=32)
    sim = Simulation(b.finalize(), backend=backend, config=config)
    steps, impulse = 40, np.zeros(2)
    h = dt / substeps
    for n in range(steps):
        sim.step()
        # The first kick after a start covers half a substep.
        span = dt - (0.5 * h if n == 0 and scheme == "second_order" else 0.0)
        impulse += [sim.read(f"sensor.touch{k}.force", numpy=True)[0, 2] * span for k in range(2)]
    momentum = [10.0 * half_step_velocity(sim, f"ball{k}")[0, 2] for k in range(2)]
    momentum[1] += 5.0 * half_step_velocity(sim, "twin")[0, 2]
    weight = np.array([10.0, 15.0]) * GRAVITY * kicked(config, steps)
    np.testing.assert_allclose(impulse, momentum + weight, atol=1e-6 if solver == "direct" else 1e-3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("scheme", "substeps", "restitution"), [(s, n, e) for s, n, _, e in CASES])
def test_sum_of_joint_forces_is_the_momentum(backend: str, scheme: str, substeps: int, restitution: float) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    slide = b.add_body(2.0, (1, 1, 1), linear_velocity=(1, 0, 0), label="slide")
    stops = {"limit_upper": 0.03, "limit_restitution": restitution}
    joint = b.add_joint_prismatic(-1, slide, axis=(1, 0, 0), at=(0, 0, 0), label="slide", **stops)
    b.add_force_sensor(joint, label="felt")
    config = SolverConfig(dt=5e-3, substeps=substeps, scheme=scheme)
    sim = Simulation(b.finalize(), backend=backend, config=config)
    impulse = 0.0
    for _ in range(12):
        sim.step()
        impulse += sim.read("sensor.felt.force", numpy=True)[0, 0] * config.dt
    lost = 2.0 * (1.0 - half_step_velocity(sim, "slide")[0, 0])
    assert lost > 1.5 and abs(impulse) == pytest.approx(lost, rel=1e-9)


def tumbler(material: Material) -> ModelBuilder:
    """Build a box and a cylinder that tumble on a plane."""
    b = ModelBuilder(gravity=(0, 0, -GRAVITY))
    b.add_shape_plane(-1, material=material)
    for k in range(2):
        throw = {"linear_velocity": (1, 0.5, -1), "angular_velocity": (3, 1, 20)}
        body = b.add_body(10.0, (0.1, 0.12, 0.14), xform=Transform((3 * k, 0, 0.3)), label=f"body{k}", **throw)
        b.add_contact_sensor(body, label=f"touch{k}")
    b.add_shape_box(0, (0.2, 0.24, 0.14), material=material)
    b.add_shape_cylinder(1, radius=0.1, half_length=0.07, material=material)
    return b


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "material",
    [
        Material(restitution=0.6, rolling_friction=0.01, spinning_friction=0.02),
        Material(restitution=0.6, law=ContactLaw(friction="contensou", patch_radius=0.02)),
    ],
    ids=["rolling and spinning", "contensou"],
)
@pytest.mark.parametrize(("scheme", "substeps"), [("second_order", 1), ("second_order", 3), ("semi_implicit", 1)])
def test_torque_of_contacts_is_the_angular_momentum(
    backend: str, material: Material, scheme: str, substeps: int
) -> None:
    config = SolverConfig(dt=2e-3, substeps=substeps, scheme=scheme)
    sim = Simulation(tumbler(material).finalize(), backend=backend, config=config)
    start, total = np.array(sim.read_state()["angular_momentum"][0, :2]), np.zeros((2, 3))
    for n in range(100):
        sim.step()
        span = config.dt - (0.5 * config.dt / substeps if n == 0 and scheme == "second_order" else 0.0)
        total += [sim.read(f"sensor.touch{k}.torque", numpy=True)[0] * span for k in range(2)]
    lost = np.array(sim.read_state()["angular_momentum"][0, :2]) - start
    assert np.abs(lost).max(axis=1).min() > 0.1
    np.testing.assert_allclose(total, lost, atol=1e-12)
