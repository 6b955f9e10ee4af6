from __future__ import annotations

import warnings

import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.model.model import Model
from gpusim.reference.accuracy import constraint_of
from gpusim.reference.limits import accuracy_limits
from tests.message_snapshot import naming

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
FIGURES = ("joint_drift_peak", "joint_tilt_peak", "contact_residual", "not_converged")


def heavy_end(mass: float, links: int = 5, solver: str | None = None) -> Model:
    b = ModelBuilder()
    before = -1
    for k in range(links + 1):
        m = mass if k == links else 1.0
        link = b.add_body(mass=m, inertia=(0.01 * m,) * 3, xform=Transform((0.2 * (k + 0.5), 0, 2)))
        place = Transform((0, 0, 2)) if before < 0 else Transform((0.1, 0, 0))
        end = Transform((-0.1, 0, 0))
        b.add_joint_revolute(before, link, place, end, axis=(0, 1, 0), label=f"link{k}", solver=solver)
        before = link
    return b.finalize()


def wall(boxes: int = 12, joints: bool = False) -> Model:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(boxes):
        body = b.add_body(
            mass=100.0 if k == boxes - 1 else 1.0, inertia=(0.01,) * 3, xform=Transform((0, 0, 0.1 + 0.2 * k))
        )
        b.add_shape_box(body, half_extents=(0.1, 0.1, 0.1))
    if joints:
        door = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((2, 0, 1)))
        b.add_joint_revolute(-1, door, Transform((1.9, 0, 1)), Transform((-0.1, 0, 0)), axis=(0, 0, 1))
    return b.finalize()


def run(sim: Simulation, steps: int, piece: int = 50) -> list[str]:
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        for _ in range(steps // piece):
            sim.step(piece)
    return [str(w.message) for w in reported]


@pytest.mark.parametrize(("step", "solver"), [(5e-3, "direct"), (1e-3, "colored")])
@pytest.mark.native
def test_joints_that_part_are_reported_once(step: float, solver: str) -> None:
    sim = Simulation(heavy_end(2e4), backend="native", config=SolverConfig(dt=step, joint_solver=solver))
    reported = run(sim, round(1.0 / step))
    assert len(reported) == 1, reported
    assert "world 0: joint 'link" in reported[0] and " m apart, more than 0.001 m; give SolverConfig(" in reported[0]
    assert ("substeps=4" if solver == "direct" else 'joint_solver="direct"), or iterations=32') in reported[0]
    peak = sim.read("sim.joint_drift_peak")[0]
    assert sim.health()[0] and peak > 1e-3
    assert f"was {peak:.3g} m apart" in sim.health_report() and "all worlds are fine" not in sim.health_report()
    assert sim.read("sim.health")[0] == 8
    sim.reset()
    assert sim.health_report() == "all worlds are fine" and sim.read("sim.health")[0] == 0


@pytest.mark.native
def test_the_number_that_the_warning_gives_serves() -> None:
    sim = Simulation(heavy_end(2e4), backend="native", config=SolverConfig(dt=5e-3, substeps=4))
    assert run(sim, 200) == [] and sim.read("sim.joint_drift_peak")[0] < 1e-4


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_peak_is_the_gap_at_the_ends_of_steps(backend: str) -> None:
    sim = Simulation(heavy_end(30.0), backend=backend, config=SolverConfig(joint_solver="colored", dt=4e-3))
    seen = []
    for _ in range(40):
        sim.step()
        seen.append(sim.read("sim.joint_drift")[0])
    peak = sim.read("sim.joint_drift_peak")[0]
    assert peak == pytest.approx(max(seen[:-1]), rel=1e-7) and peak > 1e-5
    assert 0 <= constraint_of(peak) < 6


def test_poses_that_were_given_are_nothings_work() -> None:
    b = ModelBuilder()
    arm = b.add_body(mass=1.0, inertia=(0.01,) * 3, xform=Transform((0.5, 0, 0)))
    b.add_joint_revolute(-1, arm, Transform((0, 0, 0)), Transform((-0.49, 0, 0)), axis=(0, 1, 0))
    sim = Simulation(b.finalize(), backend="numpy")
    assert sim.read("sim.joint_drift")[0] == pytest.approx(0.01)
    assert run(sim, 20, 1) == [] and sim.read("sim.joint_drift_peak")[0] < 1e-4


@pytest.mark.native
def test_the_worse_of_two_worlds_is_named() -> None:
    model = heavy_end(1.0)
    sim = Simulation(model, 2, backend="native", threads=1)
    end = f"body.{model.bodies[-1].label}"
    sim.write(f"{end}.mass", 1e5, worlds=1)
    reported = run(sim, 1000)
    assert len(reported) == 1 and reported[0].startswith("world 1: joint 'link")
    assert [line.split(":")[0] for line in sim.health_report().splitlines()] == ["world 1"]
    assert sim.read("sim.health").tolist() == [0, 8]
    peak = sim.read("sim.joint_drift_peak")
    assert peak[0] < 1e-9 and peak[1] > 1e-3


@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.native
def test_contacts_that_do_not_converge_are_reported(solver: str) -> None:
    config = SolverConfig(dt=5e-3, iterations=1, joint_solver=solver)
    sim = Simulation(wall(joints=solver == "colored"), backend="native", config=config)
    reported = [line for line in run(sim, 200, 10) if "contacts" in line]
    assert len(reported) == 1 and "give SolverConfig(iterations=2)" in reported[0]
    assert int(sim.read("sim.health")[0]) & 16 and "sweep over contacts" in sim.health_report()


@pytest.mark.parametrize("backend", BACKENDS)
def test_solves_that_end_early_are_reported(backend: str) -> None:
    config = SolverConfig(joint_solver="colored", iterations=1, impulse_tolerance=1e-12)
    sim = Simulation(heavy_end(1.0), backend=backend, config=config)
    reported = run(sim, 20, 5)
    assert len(reported) == 1 and "world 0: 5 substeps ended before the solve converged" in reported[0]
    assert "SolverConfig(iterations=2)" in reported[0] and sim.read("sim.health")[0] == 4
    assert sim.health_report().startswith("world 0: 20 substeps")


def thrown(links: int, iterations: int) -> Simulation:
    b = ModelBuilder()
    for k in range(links):
        mass = 0.01 if k == links - 1 else 1.0
        link = b.add_body(mass, (0.003 * mass,) * 3, xform=Transform((0.2 * (k + 0.5), 0, 2)), label=f"link{k}")
        place = Transform((0.1, 0, 0)) if k else Transform((0, 0, 2))
        limits = {"limit_lower": -0.01, "limit_upper": 0.01}
        b.add_joint_revolute(k - 1, link, place, Transform((-0.1, 0, 0)), axis=(0, 1, 0), friction=0.1, **limits)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-2, iterations=iterations))
    sim.write(f"body.link{links - 1}.linear_velocity", (0, 0, 20.0))
    return sim


@pytest.mark.native
def test_switching_joints_are_advised_what_lets_them_settle() -> None:
    reported = run(sim := thrown(15, 8), 300)
    assert len(reported) == 1 and reported[0].endswith(
        "substep ended before the solve converged, because joints with limits or friction kept switching; "
        "give more iterations: SolverConfig(iterations=380)"
    )
    assert sim.read("sim.not_converged")[0] == 1
    assert run(thrown(15, 380), 300) == [] and run(thrown(15, 16), 300) != []


@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_joints_next_to_contacts_are_advised_a_smaller_step(solver: str) -> None:
    sim = Simulation(wall(2, joints=True), backend="numpy", config=SolverConfig(joint_solver=solver, substeps=3))
    for name, value in (("not_converged", 3), ("inexact", 4)):
        sim.state.arrays[name][:] = value
    still = "because joints with limits or friction kept switching together with contacts; give a smaller step"
    reported = {
        "direct": f", {still}, SolverConfig(substeps=6) or less dt: more iterations do not always help",
        "colored": "; give more iterations: SolverConfig(iterations=16)",
    }
    assert sim.health_report() == f"world 0: 3 substeps ended before the solve converged{reported[solver]}"


@pytest.mark.parametrize("launch", ["fused", pytest.param("staged", marks=pytest.mark.nightly)])
@pytest.mark.native
def test_backends_agree(launch: str) -> None:
    for model, config in (
        (heavy_end(300.0, 3), SolverConfig(joint_solver="colored", dt=2e-3)),
        (wall(2), SolverConfig(iterations=2, dt=2e-3)),
    ):
        sims = [
            Simulation(model, backend="numpy", config=config),
            Simulation(model, backend="native", config=config, launch=launch, threads=1),
        ]
        for sim in sims:
            run(sim, 20)
        for name in FIGURES:
            expected, got = (sim.read(f"sim.{name}")[0] for sim in sims)
            assert got == pytest.approx(expected, rel=1e-5, abs=1e-12), name


def test_limits_go_by_the_usual_lever() -> None:
    limits = accuracy_limits(heavy_end(1.0))
    assert limits["joint_drift_limit"] == pytest.approx(1e-3) and limits["joint_tilt_limit"] == 0.01
    b = ModelBuilder()
    b.add_joint_revolute(-1, b.add_body(mass=1.0, inertia=(1,) * 3), axis=(0, 1, 0))
    assert accuracy_limits(b.finalize())["joint_drift_limit"] == pytest.approx(1e-3)


@pytest.mark.native
def test_changes_that_move_nothing_are_no_residual() -> None:
    b = ModelBuilder()
    for side in (-0.2, 0.2):
        b.add_shape_box(-1, (0.1, 2.0, 0.5), xform=Transform((side, 0, 0.5)))
    bodies = [b.add_body(1.0, (0.01,) * 3, xform=Transform((0, 0.25 * k, 0.5))) for k in range(2)]
    for body in bodies:
        b.add_shape_box(body, (0.1005, 0.1, 0.1))
    b.add_joint_revolute(*bodies, Transform((0, 0.125, 0)), Transform((0, -0.125, 0)), axis=(1, 0, 0))
    b.add_joint_revolute(-1, bodies[0], Transform((0, -0.125, 0.5)), Transform((0, -0.125, 0)), axis=(1, 0, 0))
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(3000)
    assert sim.read("sim.health")[0] == 0


@pytest.mark.native
def test_swept_joints_are_advised_what_sweeps_need() -> None:
    for solver, advised in (("colored", True), ("direct", False)):
        sim = Simulation(heavy_end(1e4, solver=solver), backend="native", config=SolverConfig(dt=1e-2))
        with pytest.warns(UserWarning, match=naming("joint 0.001")) as reported:
            sim.step(100)
        text = " ".join(str(w.message) for w in reported if "'link" in str(w.message))
        assert ("joint_solver" in text and "iterations" in text) == advised, text
