from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.reference.rotors import rotors
from tests.message_snapshot import naming

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
DISC, BALL, ROD = (0.01, 0.01, 0.02), (0.02, 0.02, 0.02), (0.02, 0.02, 0.002)


def carried(inertia: tuple[float, float, float], rotor_first: bool = False) -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, 0))
    carrier = b.add_body(10.0, (1.0, 1.0, 1.0), label="carrier")
    b.add_joint_revolute(-1, carrier, axis=(0, 1, 0), at=(0, 0, 0), label="hinge")
    rotor = b.add_body(1.0, inertia, label="rotor")
    ends = (rotor, carrier) if rotor_first else (carrier, rotor)
    b.add_joint_revolute(*ends, axis=(0, 0, 1), at=(0, 0, 0), label="spin")
    return b


def spun(builder: ModelBuilder, spin: float, turn: float, dt: float, backend: str = "native") -> Simulation:
    sim = Simulation(builder.finalize(), backend=backend, config=SolverConfig(dt=dt))
    sim.write("body.carrier.angular_velocity", (0.0, turn, 0.0))
    sim.write("body.rotor.angular_velocity", (0.0, turn, spin))
    return sim


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rotor_first", [False, True])
@pytest.mark.parametrize("inertia", [DISC, BALL, ROD])
def test_spin_and_energy_stay(inertia: tuple[float, float, float], rotor_first: bool, backend: str) -> None:
    sim = spun(carried(inertia, rotor_first), 100.0, 3.0, 5e-3, backend)
    energy = sim.read("sim.kinetic_energy")[0]
    sim.step(200 if backend == "numpy" else 4000)
    assert abs(sim.read("joint.spin.velocity")[0]) == pytest.approx(100.0, rel=2e-4)
    assert sim.read("joint.hinge.velocity")[0] == pytest.approx(3.0, rel=1e-3)
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(energy, rel=3e-4)
    assert sim.status_flags().tolist() == [0]


@pytest.mark.native
def test_the_rotors_of_a_drone() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    frame = b.add_body(1.0, (0.01, 0.01, 0.02), label="frame")
    places = ((0.2, 0.2, 1), (-0.2, -0.2, 1), (0.2, -0.2, -1), (-0.2, 0.2, -1))
    for k, (x, y, _) in enumerate(places):
        rotor = b.add_body(0.02, (2e-5, 2e-5, 4e-5), xform=Transform((x, y, 0.02)), label=f"rotor{k}")
        b.add_joint_revolute(frame, rotor, axis=(0, 0, 1), at=(x, y, 0.02), label=f"rotor{k}")
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3))
    sim.write("body.frame.angular_velocity", (2.0, 1.0, 0.5))
    for k, (*_, sign) in enumerate(places):
        sim.write(f"joint.rotor{k}.velocity", sign * 800.0)
    sim.project_velocities()
    energy = sim.read("sim.kinetic_energy")[0]
    sim.step(10_000)
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(energy, rel=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_disc_on_a_parallel_axis_does_not_brake_its_arm(backend: str) -> None:
    """The disc rotates by 5 rad a step. No torque acts, so both rates stay."""
    b = ModelBuilder(gravity=(0, 0, 0))
    arm, disc = b.add_body(1.0, (0.1, 0.1, 0.2)), b.add_body(1.0, DISC, xform=Transform((0.5, 0, 0)))
    b.add_joint_revolute(-1, arm, axis=(0, 0, 1), at=(0, 0, 0), label="arm")
    b.add_joint_revolute(arm, disc, axis=(0, 0, 1), at=(0.5, 0, 0), label="disc")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=2e-3))
    sim.write_state({"joint.arm.velocity": 30.0, "joint.disc.velocity": 2500.0})
    sim.step(100 if backend == "numpy" else 500)
    assert sim.read("joint.arm.velocity")[0] == pytest.approx(30.0, rel=1e-3)
    assert sim.status_flags().tolist() == [0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 1, 0)])
def test_geared_rotors_keep_the_energy_of_an_arm(axis: tuple[float, float, float], backend: str) -> None:
    """The rotor of the elbow's motor rotates by 1 rad a step. It lost 0.7 % of the energy in 1 s."""
    b = ModelBuilder(gravity=(0, 0, 0))
    upper = b.add_body(2.0, (0.02, 0.05, 0.05), xform=Transform((0.25, 0, 0)))
    lower = b.add_body(1.0, (0.01, 0.03, 0.03), xform=Transform((0.75, 0, 0)))
    rotor = b.add_body(0.5, np.where(axis, 2e-6, 4e-6), xform=Transform((0.4, 0, 0)))
    b.add_joint_revolute(-1, upper, axis=(0, 0, 1), at=(0, 0, 0), label="shoulder")
    elbow = b.add_joint_revolute(upper, lower, axis=axis, at=(0.5, 0, 0), label="elbow")
    motor = b.add_joint_revolute(upper, rotor, axis=axis, at=(0.4, 0, 0), label="motor")
    b.add_gear(elbow, motor, ratio=100.0)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=2e-3))
    sim.write_state({"joint.shoulder.velocity": 15.0, "joint.elbow.velocity": 5.0, "joint.motor.velocity": 500.0})
    energy = sim.read("sim.kinetic_energy")[0]
    sim.step(50 if backend == "numpy" else 500)
    assert sim.read("sim.kinetic_energy")[0] == pytest.approx(energy, rel=3e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rotor_too_fast_for_the_step_warns(backend: str) -> None:
    sim = spun(carried(DISC), 500.0, 3.0, 5e-3, backend)
    with pytest.warns(UserWarning, match=naming("rotor 2.5 substeps=3")):
        sim.step(5)
    assert sim.status_flags().tolist() == [128]
    at_rest = spun(carried(DISC), 500.0, 0.0, 5e-3, backend)
    at_rest.step(5)
    assert at_rest.status_flags().tolist() == [0]


def test_what_counts_as_a_rotor() -> None:
    config = SolverConfig(dt=1e-3)
    model = carried(DISC).finalize()
    assert rotors(model, config)[1] == pytest.approx([0.0, 0.0, 1.0, 1.0])
    assert not rotors(model, SolverConfig(dt=1e-3, joint_solver="colored")).any()
    assert not rotors(carried((0.01, 0.011, 0.02)).finalize(), config)[1].any()
    held = carried(DISC)
    held.add_joint_ball(0, 1, at=(0, 0, 0))
    assert not rotors(held.finalize(), config)[1].any()
    off = ModelBuilder()
    body = off.add_body(1.0, DISC, xform=Transform((0.1, 0.0, 0.0)))
    off.add_joint_revolute(-1, body, axis=(0, 0, 1), at=(0.0, 0.0, 0.0))
    assert not np.any(rotors(off.finalize(), config))
