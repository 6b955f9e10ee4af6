from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from tests.message_snapshot import naming

INERTIA = 0.5


def rotor(dt: float = 0.01, backend: str = "numpy", **drive: object) -> Simulation:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(1.0, (INERTIA,) * 3, label="rotor")
    joint = b.add_joint_revolute(-1, body, axis=(0, 0, 1), label="hinge")
    if "stiffness" in drive:
        b.add_tracking_servo(joint, label="drive", **drive)  # type: ignore[arg-type]
    else:
        b.add_joint_force(joint, label="drive", **drive)  # type: ignore[arg-type]
    return Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=dt))


def test_a_torque_turns_a_rotor_by_its_double_integral() -> None:
    """Closed forms: q = T t^2/(2 I) for a constant torque, and q = r t^3/(6 I) for a torque r t."""
    sim = rotor()
    sim.control["drive"] = 2.0
    sim.step(100)
    assert sim.read("joint.hinge.position")[0] == pytest.approx(2.0 / (2.0 * INERTIA), rel=1e-9)
    assert sim.read("joint.hinge.drive_force")[0] == pytest.approx(2.0, rel=1e-12)


@pytest.mark.nightly
@pytest.mark.parametrize(("command", "felt"), [(10.0, 4.0), (-10.0, -1.0), (3.0, 3.0)])
def test_limits_differ_by_sign(command: float, felt: float) -> None:
    sim = rotor(limit=(-1.0, 4.0))
    sim.control["drive"] = command
    sim.step(50)
    assert sim.read("force.drive.force")[0] == felt
    assert sim.read("joint.hinge.velocity")[0] == pytest.approx(felt * 0.5 / INERTIA, rel=1e-9)


@pytest.mark.nightly
def test_feed_forward_follows_a_motion_in_second_order() -> None:
    """The motion is q = sin 3t."""
    errors = []
    for dt in (0.02, 0.01, 0.005):
        sim = rotor(dt, stiffness=20.0, damping=2.0)
        worst = 0.0
        sim.write("joint.hinge.velocity", 3.0)
        for k in range(round(2.0 / dt)):
            t = (k + 0.5) * dt
            sim.control["drive"], sim.control["drive.velocity"] = math.sin(3 * t), 3 * math.cos(3 * t)
            sim.control["drive.effort"] = -INERTIA * 9 * math.sin(3 * t)
            sim.step()
            worst = max(worst, abs(float(sim.read("joint.hinge.position")[0]) - math.sin(3 * (k + 1) * dt)))
        errors.append(worst)
    assert errors[0] < 2e-3
    assert errors[1] / errors[0] < 0.3 > errors[2] / errors[1]


@pytest.mark.nightly
def test_a_stiff_servo_is_stable_and_holds_its_limit() -> None:
    sim = rotor(stiffness=1e7, damping=1e6, limit=(-5.0, 2.0), target=0.3)
    sim.step(1)
    assert sim.read("joint.hinge.velocity")[0] == pytest.approx(2.0 * 0.01 / INERTIA, rel=0.3)
    sim.step(400)
    assert sim.read("joint.hinge.position")[0] == pytest.approx(0.3, abs=1e-6)


@pytest.mark.native
def test_native_does_what_numpy_does() -> None:
    found = []
    for backend in ("numpy", "native"):
        sim = rotor(backend=backend, stiffness=50.0, damping=1.0, limit=(-3.0, 6.0))
        for k in range(40):
            sim.control["drive"], sim.control["drive.effort"] = math.sin(0.3 * k), 4.0 * math.cos(0.2 * k)
            sim.step()
        found.append([sim.read(n)[0] for n in ("joint.hinge.position", "servo.drive.force", "joint.hinge.velocity")])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "reported"),
    [({"limit": (3.0, 1.0)}, "joint_force 'drive' limit 3 1"), ({"limit": -1.0}, "limit"), ({"limit": (1.0,)}, "2"),
     ({"stiffness": -1.0, "damping": 0.0}, "stiffness")],
)  # fmt: skip
def test_wrong_numbers_are_reported(options: dict[str, object], reported: str) -> None:
    with pytest.raises(ModelError, match=naming(reported)):
        rotor(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [(1.0, 2.0), (-3.0, -0.5)])
def test_limits_hold_zero_for_an_emergency_stop(limit: tuple[float, float]) -> None:
    with pytest.raises(ModelError, match=naming("joint_force 'drive' limit")):
        rotor(limit=limit)
    sim = rotor(limit=(-1.0, 2.0))
    name, value = ("lower", 1.0) if limit[0] > 0.0 else ("upper", -0.5)
    with pytest.raises(ModelError, match=naming("joint_force 'drive'")):
        sim.write(f"force.drive.{name}", value)
    assert sim.read("force.drive.lower")[0] == -1.0 and sim.read("force.drive.upper")[0] == 2.0
