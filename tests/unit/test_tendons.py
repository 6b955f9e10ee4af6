from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, Transform
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, G, ball_body, bits, both_backends, different, history, simulate, slider, wheel

both_solvers = pytest.mark.parametrize("solver", SOLVERS)
SWEEPS = {"direct": 8, "colored": 60}
LEFT, RIGHT, SHAFT, RATIO, TORQUE = 0.2, 0.3, 0.05, 4.0, 3.0


def within(solver: str) -> float:
    return 1e-9 if solver == "direct" else 1e-5


def axle(shaft: bool, **options: object) -> tuple[ModelBuilder, dict[str, int]]:
    """Two wheels with a differential."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints = {"left": wheel(b, LEFT, "left"), "right": wheel(b, RIGHT, "right", y=1.0)}
    if shaft:
        joints["shaft"] = wheel(b, SHAFT, "shaft", y=2.0)
    drive = b.add_differential(
        joints["left"], joints["right"], joints.get("shaft"), ratio=RATIO, label="drive", **options
    )
    b.add_servo(drive.input, "velocity", damping=1e9, target=1e3, effort_limit=TORQUE, label="engine")
    return b, joints | {"input": drive.input, "slip": drive.slip}


def run(b: ModelBuilder, solver: str, seconds: float = 0.1) -> Simulation:
    sim = simulate(b, dt=5e-3, joint_solver=solver, iterations=SWEEPS[solver])
    sim.step(round(seconds / 5e-3))
    return sim


@pytest.mark.parametrize("shaft", [True, False])
@both_solvers
def test_open_differential_halves_the_torque(solver: str, shaft: bool) -> None:
    """M a = T ratio/2 (1, 1) with M = diag(I) + I_s ratio^2/4 (1, 1)(1, 1)^T."""
    sim = run(axle(shaft)[0], solver)
    half = 0.5 * RATIO
    mass = np.diag([LEFT, RIGHT]) + (SHAFT * half**2 if shaft else 0.0) * np.ones((2, 2))
    speed = 0.1 * np.linalg.solve(mass, np.full(2, TORQUE * half))
    measured = [sim.read(f"joint.{name}.velocity")[0] for name in ("left", "right")]
    assert measured == pytest.approx(speed, rel=within(solver))
    name = "shaft" if shaft else "drive_input"
    assert sim.read(f"joint.{name}.velocity")[0] == pytest.approx(half * sum(speed), rel=within(solver))
    assert sim.read("joint.drive_slip.velocity")[0] == pytest.approx(speed[0] - speed[1], rel=within(solver))
    assert sim.read("joint.drive_slip.position")[0] == pytest.approx(
        sim.read("joint.left.position")[0] - sim.read("joint.right.position")[0], abs=1e-14
    )


@both_solvers
def test_locked_differential_turns_both_sides_alike(solver: str) -> None:
    """One inertia: (I_l + I_r + ratio^2 I_s) a = ratio T."""
    sim = run(axle(True, kind="locked")[0], solver)
    speed = 0.1 * RATIO * TORQUE / (LEFT + RIGHT + RATIO**2 * SHAFT)
    for name in ("left", "right"):
        assert sim.read(f"joint.{name}.velocity")[0] == pytest.approx(speed, rel=within(solver))


@pytest.mark.parametrize("held", [True, False])
@both_solvers
def test_limited_slip_gives_the_slower_side_its_preload(solver: str, held: bool) -> None:
    """While slipping: I_l a = T r/2 - F, I_r a = T r/2 + F."""
    preload = 2.0 if held else 0.5
    sim = run(axle(False, kind="limited_slip", preload=preload)[0], solver)
    load = 0.5 * RATIO * TORQUE
    together = 2.0 * load / (LEFT + RIGHT)
    expected = (together, together) if held else ((load - preload) / LEFT, (load + preload) / RIGHT)
    for name, acceleration in zip(("left", "right"), expected, strict=True):
        assert sim.read(f"joint.{name}.velocity")[0] == pytest.approx(0.1 * acceleration, rel=within(solver))
    if held:
        assert abs(sim.read("joint.drive_slip.velocity")[0]) < 1e-12 if solver == "direct" else 1e-6


@both_solvers
def test_anti_roll_bar_stiffens_roll_and_not_heave(solver: str) -> None:
    """Heave oscillates with sqrt(k/m), roll with sqrt((k + 2 bar)/m)."""
    mass, k, bar = 2.0, 800.0, 600.0

    def travel(other: float) -> np.ndarray:
        b = ModelBuilder(gravity=NO_GRAVITY)
        joints = [slider(b, mass, name, y) for name, y in (("left", 0.0), ("right", 1.0))]
        for joint in joints:
            b.add_torsion_spring(joint, k)
        b.add_anti_roll_bar(*joints, stiffness=bar, label="bar")
        sim = simulate(b, dt=1e-3, joint_solver=solver, iterations=SWEEPS[solver])
        sim.write("joint.left.position", 0.01)
        sim.write("joint.right.position", other)
        return history(sim, "joint.left.position", 500)[:, 0]

    time = 1e-3 * np.arange(501)
    for other, stiffness in ((0.01, k), (-0.01, k + 2.0 * bar)):
        error = travel(other) - 0.01 * np.cos(np.sqrt(stiffness / mass) * time)
        assert np.abs(error).max() < 2e-5


@both_solvers
def test_tendon_stops_at_the_limits_of_its_sum(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints = [slider(b, 1.0, name, y) for name, y in (("a", 0.0), ("b", 1.0))]
    b.add_tendon([(joints[0], 1.0), (joints[1], 2.0)], limit_upper=0.05, label="rope")
    for joint, force in zip(joints, (1.0, 2.0), strict=True):
        b.add_servo(joint, "velocity", damping=1e9, target=1e3, effort_limit=force)
    sim = run(b, solver, 2.0)
    assert sim.read("joint.rope.position")[0] == pytest.approx(0.05, abs=1e-6)
    assert abs(sim.read("joint.a.velocity")[0]) < 1e-6 and abs(sim.read("joint.b.velocity")[0]) < 1e-6
    assert sim.signals()["joint.rope.position"].unit == "m"


def test_tendon_of_a_tendon_is_the_sum_of_its_terms() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    left, right = wheel(b, LEFT, "left"), wheel(b, RIGHT, "right", y=1.0)
    inner = b.add_tendon([(left, 2.0), (right, -1.0)])
    outer = b.add_tendon([(inner, 3.0), (right, 4.0)])
    assert b.joints[outer].params["terms"] == [(left, 0, 6.0), (right, 0, 1.0)]
    with pytest.raises(ModelError, match=naming("'joint4'")):
        b.add_tendon([(inner, 1.0), (left, -2.0)])


def test_copied_builders_keep_their_own_joints() -> None:
    part, joints = axle(True)
    whole = ModelBuilder(gravity=NO_GRAVITY)
    slider(whole, 1.0, "other")
    whole.add_builder(part, Transform((0.0, 0.0, 2.0)), label_prefix="a_")
    assert [t[0] for t in whole.joints[joints["slip"] + 1].params["terms"]] == [joints["left"] + 1, joints["right"] + 1]
    assert [t[0] for t in whole.couplings[0].terms] == [joints[k] + 1 for k in ("shaft", "left", "right")]
    alone, moved = (simulate(x, dt=5e-3) for x in (part, whole))
    for sim in (alone, moved):
        sim.step(20)
    assert moved.read("joint.a_left.velocity") == pytest.approx(alone.read("joint.left.velocity"), rel=1e-12)


def test_parameters_of_a_tendon_without_a_row_can_be_written() -> None:
    b, _ = axle(True)
    sim = simulate(b, num_worlds=2, dt=5e-3)
    sim.step(5)
    sim.write("joint.drive_slip.damping", 1e6, worlds=1)
    before = sim.read("joint.drive_slip.velocity")
    sim.step(40)
    after = sim.read("joint.drive_slip.velocity")
    assert abs(after[0]) > abs(before[0]) and abs(after[1]) < 1e-4


@both_solvers
def test_brake_stops_a_flywheel_and_holds_it(solver: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = wheel(b, 0.1, "wheel")
    b.add_brake(joint, torque=4.0, label="brake")
    b.add_torque(0, (0.0, 1.0, 0.0), label="load")
    sim = simulate(b, dt=5e-3, joint_solver=solver)
    sim.write("joint.wheel.velocity", 2.0)
    sim.control["load"], sim.control["brake"] = 0.0, 0.5
    sim.step(10)
    assert sim.read("joint.wheel.velocity")[0] == pytest.approx(2.0 - 2.0 / 0.1 * 0.05, abs=1e-9)
    sim.step(20)
    rest = sim.read("joint.wheel.position")[0]
    assert rest == pytest.approx(2.0**2 / (2.0 * 20.0), rel=0.02)
    sim.control["load"] = 1.99
    sim.step(2000)
    assert sim.read("joint.wheel.position")[0] == pytest.approx(rest, abs=1e-10)
    sim.control["load"] = 3.0
    sim.step(4)
    speed = sim.read("joint.wheel.velocity")[0]
    sim.step(20)
    assert sim.read("joint.wheel.velocity")[0] - speed == pytest.approx((3.0 - 2.0) / 0.1 * 0.1, rel=1e-9)
    assert sim.read("brake.brake.command")[0] == 0.5


@both_solvers
def test_brake_holds_a_load_on_a_travel(solver: str) -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, -G))
    body = ball_body(b, 10.0, label="load")
    joint = b.add_joint_prismatic(-1, body, axis=(0, 0, 1), label="guide")
    b.add_brake(joint, torque=99.0, command=1.0, label="brake")
    sim = simulate(b, dt=1e-2, joint_solver=solver)
    sim.step(6000)
    assert abs(sim.read("joint.guide.position")[0]) < 1e-10


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("solver", SOLVERS)
def test_backends_and_worlds_agree(solver: str) -> None:
    def build(n: int, backend: str) -> Simulation:
        b, joints = axle(True, kind="limited_slip", preload=0.5)
        b.add_brake(joints["left"], 1.0, command=0.3, label="pad")
        return simulate(b, n, backend=backend, dt=2e-3, joint_solver=solver)

    sims = [build(1, "numpy"), build(1, "native"), build(5, "native")]
    for sim in sims:
        sim.step(100)
    for name in ("joint.left.velocity", "joint.drive_slip.position", "joint.shaft.position"):
        assert sims[1].read(name) == pytest.approx(sims[0].read(name), rel=1e-9)
    assert not different(bits(sims[1], 0), bits(sims[2], 3))


@both_backends
def test_sums_are_read_alike(backend: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints = wheel(b, LEFT, "left"), slider(b, 1.0, "slide", 1.0)
    b.add_tendon([(joints[0], 0.5), (joints[1], -2.0)], label="sum")
    sim = simulate(b, 3, backend=backend)
    sim.write("joint.left.position", [0.1, 0.2, 0.3])
    sim.write("joint.slide.velocity", [1.0, 2.0, 3.0])
    assert sim.read("joint.sum.position") == pytest.approx([0.05, 0.1, 0.15])
    assert sim.read("joint.sum.velocity") == pytest.approx([-2.0, -4.0, -6.0])
    assert sim.signals()["joint.sum.position"].unit == "m, rad"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b, j: b.add_tendon([]), "'joint2'"),
        (lambda b, j: b.add_tendon([(j[0], 0.0)]), "factor 0"),
        (lambda b, j: b.add_tendon([(9, 1.0)]), "9"),
        (lambda b, j: b.add_tendon([(j[0], 1, 1.0)]), "1"),
        (lambda b, j: b.add_tendon(3), "'joint2' terms 3"),
        (lambda b, j: b.add_differential(j[0], j[0]), "coupling 'coupling0' 'left'"),
        (
            lambda b, j: b.add_differential(j[0], j[1], j[1]),
            "coupling 'coupling0' 'right'",
        ),
        (lambda b, j: b.add_brake(j[0], 1.0, axis=1), "1 axis"),
        (lambda b, j: b.add_differential(*j, kind="torsen"), "coupling 'coupling0' kind 'torsen'"),
        (lambda b, j: b.add_differential(*j, preload=1.0), "limited_slip"),
        (lambda b, j: b.add_differential(*j, kind="limited_slip"), "coupling 'coupling0'"),
        (lambda b, j: b.add_anti_roll_bar(j[0], j[0], 1.0), "anti_roll_bar 'anti_roll_bar0'"),
        (lambda b, j: b.add_brake(j[0], -1.0), "torque -1"),
        (lambda b, j: b.add_brake(j[0], 1.0, command=2.0), "0 1"),
        (lambda b, j: b.add_linear_coupling([(j[0], 1.0)], offset="x"), "offset"),
    ],
)
def test_wrong_calls_say_the_rule(call: object, words: str) -> None:
    b = ModelBuilder()
    joints = wheel(b, LEFT, "left"), wheel(b, RIGHT, "right", y=1.0)
    with pytest.raises(ModelError, match=naming(words)):
        call(b, joints)  # type: ignore[operator]
