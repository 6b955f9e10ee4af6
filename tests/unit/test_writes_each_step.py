from __future__ import annotations

import warnings

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


def ball_and_arm(restitution: float = 0.8) -> ModelBuilder:
    """A kinematic and a free body, a falling ball and a damped double pendulum."""
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1), xform=Transform((50, 0, 0)), kinematic=True, label="far")
    b.add_body(1.0, (1, 1, 1), xform=Transform((60, 0, 5)), label="free")
    b.add_shape_plane(-1)
    ball = b.add_body(xform=Transform((0, 0, 0.3)), label="ball")
    b.add_shape_sphere(ball, 0.1, material=Material(restitution=restitution))
    at = 4.0
    for label in ("arm", "hand"):
        parent = -1 if label == "arm" else b.bodies.index(b.bodies[-1])
        body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((at + 0.5, 0, 3)), label=label)
        b.add_joint_revolute(parent, body, axis=(0, 1, 0), at=(at, 0, 3), damping=0.1, label=label)
        at += 1.0
    return b


def run(restitution: float, written: bool, steps: int, backend: str, **config: object) -> tuple[Simulation, np.ndarray]:
    sim = Simulation(ball_and_arm(restitution).finalize(), 2, backend, config=SolverConfig(**config))
    names = [f"body.{n}.{s}" for n in ("ball", "arm", "hand") for s in ("position", "linear_velocity")]
    seen = sim.observe([*names, "body.ball.contact_force", "joint.hand.velocity"])
    rows = []
    for k in range(steps):
        if written:
            sim.write("body.far.linear_velocity", (np.sin(k), 0, 0), worlds=1)
            sim.write_state({"body.free.linear_velocity": (1, 0, k), "body.free.position": (60, 0, 5)}, 1)
        sim.step()
        rows.append(np.array(seen.read()))
    return sim, np.array(rows)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize(("scheme", "substeps"), [("second_order", 1), ("second_order", 3), ("semi_implicit", 2)])
def test_a_write_leaves_all_other_bodies_as_they_are(backend: str, solver: str, scheme: str, substeps: int) -> None:
    config = {"dt": 5e-3, "scheme": scheme, "substeps": substeps, "joint_solver": solver}
    plain = run(0.8, False, 45, backend, **config)[1]
    np.testing.assert_array_equal(run(0.8, True, 45, backend, **config)[1], plain)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dt", [2e-3, 5e-3])
def test_a_ball_bounces_as_high_as_it_should(backend: str, dt: float) -> None:
    """The ball bounces to e^2 h."""
    sim, rows = run(0.5, True, int(0.5 / dt), backend, dt=dt)
    after = rows[int(0.25 / dt) :, :, 2].max(axis=0) - 0.1
    np.testing.assert_allclose(after, 0.25 * 0.2, atol=2e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_written_is_read_and_goes_on_from_t(backend: str) -> None:
    """A free body flies to x + v t + g t^2/2."""
    sim, _ = run(0.0, False, 20, backend, dt=5e-3)
    start = sim.read("body.free.position", numpy=True)
    sim.write("body.free.linear_velocity", (1.0, 0.5, 2.0))
    np.testing.assert_allclose(sim.read("body.free.linear_velocity", numpy=True), [(1.0, 0.5, 2.0)] * 2, atol=1e-14)
    sim.step(40)
    t = 0.2
    np.testing.assert_allclose(
        sim.read("body.free.position", numpy=True) - start, [(t, 0.5 * t, 2 * t - 0.5 * 9.81 * t * t)] * 2, atol=1e-12
    )


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_velocities_written_as_they_are_change_nothing_but_rounding(backend: str) -> None:
    swung = []
    for written in (True, False):
        sim = Simulation(ball_and_arm().finalize(), backend=backend, config=SolverConfig(dt=5e-3))
        for _ in range(40):
            if written:
                sim.write_state({n: sim.read(n, numpy=True) for n in ("joint.arm.velocity", "joint.hand.velocity")})
            sim.step()
        swung.append(sim.read("joint.hand.position", numpy=True)[0])
    assert abs(swung[0] - swung[1]) < 1e-9


def test_a_kinematic_body_whose_velocity_jumps_step_after_step_is_warned_of() -> None:
    for site, speeds, warned in ((True, "rising", 1), (True, "constant", 0), (False, "rising", 0)):
        b = ModelBuilder()
        cabin = b.add_body(1.0, (1, 1, 1), kinematic=True, label="cabin")
        if site:
            b.add_site(cabin, label="imu")
        sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for k in range(8):
                sim.write("body.cabin.linear_velocity", (0, 0, k if speeds == "rising" else 1.0))
                sim.step()
        assert ["add_motion" in str(w.message) for w in caught] == [True] * warned


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_other_joints_keep_their_turns(backend: str) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    wheel = b.add_body(1.0, (0.1, 0.1, 0.1), angular_velocity=(0, 50, 0))
    b.add_joint_revolute(-1, wheel, axis=(0, 1, 0), label="wheel")
    b.add_body(1.0, (0.1, 0.1, 0.1), xform=Transform((5, 0, 0)), label="other")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    sim.step(300)
    sim.write("body.other.orientation", (0, 0, 1, 0))
    assert sim.read("joint.wheel.position", numpy=True)[0] == pytest.approx(15.0, abs=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("substeps", [1, 4])
def test_start_velocities_that_joints_forbid_are_not_mirrored(backend: str, solver: str, substeps: int) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    x = b.add_body(1.0, (0.1, 0.1, 0.1), angular_velocity=(5, 2, 0), linear_velocity=(1, 0, 0), label="x")
    b.add_joint_revolute(-1, x, axis=(0, 1, 0), at=(0, 0, 0))
    config = SolverConfig(dt=1e-3, substeps=substeps, joint_solver=solver, iterations=64)
    sim = Simulation(b.finalize(), backend=backend, config=config)
    for _ in range(2):
        sim.step()
        # Swept joints keep the curvature of the forbidden turn for one step: h 5 (rad/s) 2 (rad/s) / 2.
        near = 1e-6 if solver == "direct" else 0.006
        np.testing.assert_allclose(sim.read("body.x.angular_velocity", numpy=True)[0], (0, 2, 0), atol=near)
        np.testing.assert_allclose(sim.read("body.x.linear_velocity", numpy=True)[0], (0, 0, 0), atol=near)


@pytest.mark.parametrize("backend", BACKENDS)
def test_first_readings_after_an_impact_at_the_start(backend: str) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    ball = b.add_body(xform=Transform((0, 0, 0.1)), linear_velocity=(0, 0, -1), label="ball")
    b.add_shape_sphere(ball, 0.1)
    slide = b.add_body(1.0, (1, 1, 1), xform=Transform((5, 0, 1)), linear_velocity=(2, 0, 0), label="slide")
    b.add_joint_prismatic(-1, slide, axis=(1, 0, 0), at=(5, 0, 1), limit_upper=0.0)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-3))
    sim.step()
    assert abs(sim.read("body.ball.linear_velocity", numpy=True)[0, 2]) < 0.02
    assert abs(sim.read("body.slide.linear_velocity", numpy=True)[0, 0]) < 1e-9


def bouncing(jointed: bool, alone: bool) -> ModelBuilder:
    """An elastic ball, perhaps on a vertical guide with an elastic stop instead of the ground."""
    b = ModelBuilder()
    if not alone:
        b.add_body(1.0, (1, 1, 1), xform=Transform((60, 0, 5)), label="free")
    ball = b.add_body(1.0, (0.1,) * 3, xform=Transform((0, 0, 0.5)), label="ball")
    if jointed:
        b.add_joint_prismatic(-1, ball, axis=(0, 0, 1), limit_lower=-0.4, limit_restitution=1.0, label="guide")
    else:
        b.add_shape_plane(-1)
        b.add_shape_sphere(ball, 0.1, material=Material(restitution=1.0))
    return b


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("jointed", "alone"), [(False, True), (False, False), (True, True), (True, False)])
@pytest.mark.parametrize(("dt", "substeps"), [(1e-2, 1), (5e-3, 1), (1e-2, 4)])
def test_positions_written_in_every_step_add_no_energy(
    backend: str, jointed: bool, alone: bool, dt: float, substeps: int
) -> None:
    config, tracks = SolverConfig(dt=dt, substeps=substeps), []
    name = "joint.guide.position" if jointed else "body.ball.position"
    for written in (False, True):
        sim = Simulation(bouncing(jointed, alone).finalize(), 1, backend, config=config)
        track = []
        for _ in range(round(0.9 / dt)):
            if written:
                sim.write(name, sim.read(name))
            sim.step()
            track.append(sim.read("body.ball.position")[0, 2])
        tracks.append(track)
    np.testing.assert_allclose(tracks[1], tracks[0], atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_into_no_world_change_nothing(backend: str) -> None:
    sim = Simulation(ball_and_arm().finalize(), 2, backend)
    before = {name: array.copy() for name, array in sim.read_state().items()}
    for none in (np.zeros(2, bool), []):
        sim.write("joint.arm.position", 0.1, none)
        sim.write("body.ball.mass", 2.0, none)
        sim.write_state({"joint.*.position": 0.1, "body.ball.linear_velocity": (0, 0, 1)}, none)
    for name, array in sim.read_state().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)
    assert np.all(sim.read("body.ball.mass") != 2.0)
