from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim import EnergyAudit, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.command_schedule import Path, follow_paths
from gpusim.control import Diagram
from tests.message_snapshot import naming

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
GRAVITY = 9.81


def elevator(friction: float = 0.0) -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, -GRAVITY))
    cabin = b.add_body(1000, (100, 100, 100), label="cabin")
    b.add_shape_box(cabin, (1, 1, 0.1))
    rail = b.add_joint_prismatic(-1, cabin, axis=(0, 0, 1), at=(0, 0, 0), label="rail", friction=friction)
    b.add_motion(rail, label="lift")
    box = b.add_body(10, (0.1, 0.1, 0.1), xform=Transform((0, 0, 0.2)), label="box")
    b.add_shape_box(box, (0.1, 0.1, 0.1))
    b.add_contact_sensor(box, label="scale")
    b.add_site(box, label="imu")
    b.add_site(cabin, label="cabin_imu")
    return b


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("dt", "substeps", "solver", "friction"),
    [(2e-3, 1, "direct", 0.0), (5e-3, 4, "direct", 0.0), (5e-3, 2, "direct", 500.0), (5e-3, 2, "colored", 0.0)],
)
def test_sensors_on_an_elevator(backend: str, dt: float, substeps: int, solver: str, friction: float) -> None:
    config = SolverConfig(dt=dt, substeps=substeps, joint_solver=solver)
    sim, a = Simulation(elevator(friction).finalize(), backend=backend, config=config), 3.0
    sim.step(int(0.05 / dt))
    for k in range(int(0.15 / dt)):
        t = k * dt
        sim.control["lift"], sim.control["lift.velocity"], sim.control["lift.acceleration"] = 0.5 * a * t * t, a * t, a
        sim.step()
    end, felt = t + dt, GRAVITY + a
    read = {n: sim.read(n, numpy=True)[0] for n in sim.signals() if n.startswith(("s", "b", "m", "j"))}
    assert read["sensor.scale.force"][2] == pytest.approx(10 * felt, rel=1e-6)
    assert read["body.box.contact_force"][2] == pytest.approx(10 * felt, rel=1e-5)
    assert read["site.imu.acceleration"][2] == pytest.approx(felt, rel=1e-5)
    assert read["site.cabin_imu.acceleration"][2] == pytest.approx(felt, rel=1e-5)
    assert read["motion.lift.force"] == pytest.approx(1010 * felt + friction, rel=1e-5)
    assert read["joint.rail.position"] == pytest.approx(0.5 * a * end * end, abs=1e-9)
    assert read["joint.rail.velocity"] == pytest.approx(a * end, abs=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("substeps", [1, 2, 4])
def test_accelerometers_follow_a_smooth_path(backend: str, substeps: int) -> None:
    dt, size, rate = 5e-3, 0.3, 5.0
    sim = Simulation(elevator(0.0).finalize(), backend=backend, config=SolverConfig(dt=dt, substeps=substeps))
    errors = []
    for k in range(200):
        t = k * dt
        sim.control["lift"] = size * (1.0 - math.cos(rate * t))
        sim.control["lift.velocity"] = size * rate * math.sin(rate * t)
        sim.control["lift.acceleration"] = size * rate**2 * math.cos(rate * t)
        sim.step()
        felt = GRAVITY + size * rate**2 * math.cos(rate * (t + dt))
        errors.append(abs(sim.read("site.cabin_imu.acceleration", numpy=True)[0][2] - felt))
    assert np.mean(errors[5:]) < 6e-3


def crank(backend: str, dt: float, substeps: int) -> tuple[float, float, float]:
    b = ModelBuilder(gravity=(0, 0, -GRAVITY))
    body = b.add_body(2.0, (0.1, 0.3, 0.2), xform=Transform((0.5, 0, 0)), label="x")
    joint = b.add_joint_revolute(-1, body, axis=(0, 1, 0), at=(0, 0, 0), label="hinge")
    b.add_motion(joint, label="turn")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=dt, substeps=substeps))
    assert [sim.signals()[f"motion.turn.{x}"].unit for x in ("target", "force")] == ["rad", "N m"]
    torques, rate = [], 5.0

    def path(t: float) -> tuple[float, float, float]:
        return 1 - np.cos(rate * t), rate * np.sin(rate * t), rate**2 * np.cos(rate * t)

    for k in range(round(0.6 / dt)):
        sim.control["turn"], sim.control["turn.velocity"], sim.control["turn.acceleration"] = path(k * dt)
        sim.step()
        torques.append(sim.read("motion.turn.force", numpy=True)[0])
    end = 0.6
    angle, velocity, _ = path(end)
    # The last kicks stand around a time (dt + h)/2 before the end.
    mean = path(end - 0.5 * (dt + dt / substeps))
    torque = (0.3 + 2.0 * 0.25) * mean[2] - 2.0 * GRAVITY * 0.5 * np.cos(mean[0])
    now = (sim.read(f"joint.hinge.{n}", numpy=True)[0] for n in ("position", "velocity"))
    return tuple(abs(x - y) for x, y in zip((*now, torques[-1]), (angle, velocity, torque), strict=True))


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("substeps", [1, 3])
def test_a_path_is_followed_at_second_order(backend: str, substeps: int) -> None:
    coarse, fine = crank(backend, 1e-2, substeps), crank(backend, 5e-3, substeps)
    assert coarse[0] < 5e-5 and fine[0] < coarse[0] / 3.5
    assert coarse[1] < 1e-2 and fine[1] < coarse[1] / 3.0
    assert coarse[2] < 0.2 and fine[2] < coarse[2] / 3.0


@pytest.mark.nightly
def test_its_work_is_booked() -> None:
    """The work is m g x + m v^2/2."""
    sim = Simulation(elevator().finalize(), backend="numpy", config=SolverConfig(dt=5e-3))
    audit, write = EnergyAudit(sim), follow_paths({"lift": Path([(0.0, 0.0), (0.3, 0.2)])})
    for k in range(30):
        write(sim, k * 5e-3)
        audit.step()
    found = audit.balance()
    work = found.works["motion.lift"][0]
    x, v = (sim.read(f"joint.rail.{n}", numpy=True)[0] for n in ("position", "velocity"))
    assert work == pytest.approx(1010 * (GRAVITY * x + 0.5 * v * v), rel=5e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_diagram_drives_it(backend: str) -> None:
    d = Diagram("plan")
    d.add("trajectory", "path", times=[0.0, 0.1, 0.2], points=[0.0, 0.3, 0.4], unit="m")
    for out, command in (("out", "lift"), ("velocity", "lift.velocity"), ("acceleration", "lift.acceleration")):
        d.connect(f"path.{out}", f"command:{command}")
    b = elevator()
    b.add_diagram(d)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=5e-3))
    path = Path([(0.0, 0.0), (0.1, 0.3), (0.2, 0.4)])
    for steps, t in ((20, 0.1), (21, 0.205)):
        sim.step(steps)
        assert sim.read("joint.rail.position", numpy=True)[0] == pytest.approx(path.at(t)[0], abs=2e-4)


def test_paths_rest_beyond_their_ends_and_refuse_what_is_no_path() -> None:
    path = Path([(1.0, 2.0), (2.0, 3.0)])
    assert path.at(0.0) == (2.0, 0.0, 0.0) and path.at(5.0) == (3.0, 0.0, 0.0)
    assert path.at(1.5)[0] == pytest.approx(2.5)
    for points in ([(0.0, 1.0)], [(0.0, 1.0), (0.0, 2.0)], [(0.0, 1.0), (1.0, np.nan)]):
        with pytest.raises(ModelError, match=naming("path")):
            Path(points)


def test_a_part_of_a_rotation_vector_and_a_second_motion_are_refused() -> None:
    b = ModelBuilder()
    ball = b.add_joint_ball(-1, b.add_body(1.0, (1, 1, 1)), label="ball")
    with pytest.raises(ModelError, match=naming("motion 'turn' 0 'ball' add_joint_d6")):
        b.add_motion(ball, label="turn")
    hinge = b.add_joint_revolute(-1, b.add_body(1.0, (1, 1, 1)), label="hinge")
    b.add_motion(hinge, label="first")
    with pytest.raises(ModelError, match=naming("'first'")):
        b.add_motion(hinge, label="second")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("substeps", [1, 3])
def test_a_start_off_the_path_is_warned_of_once(backend: str, substeps: int) -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    joints = [b.add_joint_prismatic(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), label=f"slide{k}") for k in range(2)]
    for joint, label in zip(joints, ("first", "second"), strict=True):
        b.add_motion(joint, label=label)
    sim = Simulation(b.finalize(), 3, backend=backend, config=SolverConfig(dt=1e-3, substeps=substeps))
    for k in range(5):
        sim.control["first"] = 18e-3 * k
        sim.step()
    assert not sim.read("sim.health").any()
    sim.control["second"] = [0.0, 1.0, 0.5]
    with pytest.warns(UserWarning, match=naming("1 'second' 'slide1' 20")):
        sim.step()
    assert sim.read("sim.health").tolist() == [0, 64, 64] and "world 2: motion 'second'" in sim.health_report()
    sim.control["second"] = 5.0
    sim.step()
    sim.reset()
    assert not sim.read("sim.health").any()


@pytest.mark.parametrize("substeps", [1, 4])
def test_first_step_from_rest_in_the_semi_implicit_scheme(substeps: int) -> None:
    b, a, dt = ModelBuilder(), 3.6, 2e-3
    b.add_motion(b.add_joint_prismatic(-1, b.add_body(2.0, (0.1, 0.1, 0.1)), label="rail"), label="lift")
    config = SolverConfig(dt=dt, substeps=substeps, scheme="semi_implicit")
    sim, forces = Simulation(b.finalize(), backend="numpy", config=config), []
    for k in range(3):
        t = k * dt
        sim.control["lift"], sim.control["lift.velocity"], sim.control["lift.acceleration"] = 0.5 * a * t * t, a * t, a
        sim.step()
        forces.append(sim.read("motion.lift.force")[0])
        assert sim.read("joint.rail.position")[0] == pytest.approx(0.5 * a * (t + dt) ** 2, rel=1e-5)
        assert sim.read("joint.rail.velocity")[0] == pytest.approx(a * (t + dt - 0.5 * dt / substeps), rel=1e-5)
    full = 2.0 * (GRAVITY + a)
    assert forces == pytest.approx([full - a / substeps, full, full], rel=1e-6)
