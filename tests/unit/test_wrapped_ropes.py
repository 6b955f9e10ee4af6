from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Model, ModelBuilder, ModelError, Pulley, Simulation, SolverConfig, Transform, Wrap
from gpusim.machine_files import load_machine
from gpusim.reference.joints.wrapping import find_paths, polyline
from gpusim.rotations import matrix_from_quaternion
from tests.backends import FASTEST
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, G, ball_body, both_backends, simulate

ACROSS = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * np.pi)
ABOVE = (0.0, 0.0, 50.0)
RADIUS = 0.3


def near(value: Any, expected: Any, **within: float) -> None:
    assert np.asarray(value)[0] == pytest.approx(expected, **within)


def atwood(shape: str = "cylinder", masses: tuple[float, float] = (2.0, 3.0)) -> ModelBuilder:
    """Two weights on a rope over a drum in the world."""
    b = ModelBuilder()
    ends = [
        (ball_body(b, m, xform=Transform((x, 0, -1.0)), label=name), (0, 0, 0))
        for m, x, name in zip(masses, (-RADIUS, RADIUS), ("left", "right"), strict=True)
    ]
    drum = Wrap(-1, RADIUS, ACROSS, shape, side=ABOVE)
    b.add_spatial_tendon([ends[0], drum, ends[1]], limit_upper=2.0 + np.pi * RADIUS, label="rope")
    return b


@pytest.mark.slow_numpy
@both_backends
@pytest.mark.parametrize("shape", ["cylinder", "sphere"])
def test_atwood_machine(backend: str, shape: str) -> None:
    """Closed form: a = g (m2 - m1)/(m1 + m2), tension 2 m1 m2 g/(m1 + m2)."""
    sim = simulate(atwood(shape), backend=backend, dt=2e-3)
    near(sim.read("joint.rope.position"), 2.0 + np.pi * RADIUS, abs=1e-12)
    sim.step(100)
    near(sim.read("body.right.linear_velocity")[:, 2], -G / 5.0 * 0.2, rel=1e-9)
    near(sim.read("body.left.linear_velocity")[:, 2], G / 5.0 * 0.2, rel=1e-9)
    near(sim.read("joint.rope.tension"), 2.0 * 2.0 * 3.0 * G / 5.0, rel=1e-9)
    near(sim.read("joint.rope_part0.tension"), 2.0 * 2.0 * 3.0 * G / 5.0, rel=1e-9)


@pytest.mark.parametrize("solver", ["direct", pytest.param("colored", marks=pytest.mark.nightly)])
def test_rope_unwinds_from_a_drum(solver: str) -> None:
    """Without gravity, the speed v stays, and the free length is s^2 = s0^2 + 2 r v t (involute of the drum)."""
    b, free, speed = ModelBuilder(gravity=NO_GRAVITY), 0.5, 2.0
    mass = ball_body(b, 1.0, xform=Transform((RADIUS, 0, -free)), label="mass", linear_velocity=(speed, 0, 0))
    path = [(-1, (-RADIUS, 0, -3.0)), Wrap(-1, RADIUS, ACROSS, side=ABOVE), (mass, (0, 0, 0))]
    b.add_spatial_tendon(path, limit_upper=3.0 + np.pi * RADIUS + free, label="rope")
    sim = simulate(b, backend=FASTEST, dt=1e-3, joint_solver=solver)
    sim.step(200)
    place, velocity = (sim.read(f"body.mass.{name}", numpy=True)[0] for name in ("position", "linear_velocity"))
    expected = free**2 + 2.0 * RADIUS * speed * 0.2
    assert place @ place - RADIUS**2 == pytest.approx(expected, rel=2e-6)
    assert np.linalg.norm(velocity) == pytest.approx(speed, rel=2e-6)


def test_hook_block_hangs_on_two_lines() -> None:
    b = ModelBuilder()
    load = ball_body(b, 10.0, xform=Transform((0, 0, -2.0)), label="load")
    b.add_joint_prismatic(-1, load, axis=(0, 0, 1), label="guide")
    sheave = Wrap(load, RADIUS, ACROSS, side=(0, 0, -50.0))
    rope = b.add_joint_wrapped_rope(
        -1, -1, sheave, (-RADIUS, 0, 0), (RADIUS, 0, 0), max_length=4.0 + np.pi * RADIUS, label="rope"
    )
    assert b.joints[rope].child == load
    sim = simulate(b, backend=FASTEST, dt=2e-3)
    sim.step(20)
    near(sim.read("joint.rope.tension"), 5.0 * G, rel=1e-6)
    for k in range(50):
        sim.write("joint.rope.limit_upper", 4.0 + np.pi * RADIUS - 0.002 * (k + 1))
        sim.step()
    near(sim.read("body.load.position")[:, 2], -1.95, abs=1e-6)
    near(sim.read("body.load.linear_velocity")[:, 2], 0.5, rel=1e-6)


@pytest.mark.parametrize("falls", [1.0, 2.0])
def test_rope_that_a_winch_holds_reads_its_tension(falls: float) -> None:
    """The limit of the tendon ``falls * rope + radius * drum`` bears the load, and the rope has no limit."""
    b = ModelBuilder()
    load = ball_body(b, 10.0, xform=Transform((RADIUS, 0, -2.0)), label="load")
    axle = b.add_joint_revolute(-1, ball_body(b, 10.0, label="drum"), axis=(0, 1, 0), label="axle")
    b.add_brake(axle, torque=100.0, command=1.0)
    path = [(-1, (-RADIUS, 0, -3.0)), Wrap(-1, RADIUS, ACROSS, side=ABOVE), (load, (0, 0, 0))]
    rope = b.add_spatial_tendon(path, label="rope")
    b.add_tendon([(rope, falls), (axle, 0.2)], limit_upper=falls * (5.0 + np.pi * RADIUS), label="hoist")
    sim = simulate(b, backend=FASTEST, dt=2e-3)
    sim.step(20)
    near(sim.read("joint.rope.tension"), 10.0 * G / falls, rel=1e-6)
    near(sim.read("joint.hoist.tension"), 10.0 * G / falls, rel=1e-6)


@pytest.mark.slow_numpy
@both_backends
def test_servo_on_a_wrapped_rope_holds_its_length(backend: str) -> None:
    b = atwood(masses=(2.0, 2.0))
    b.add_servo(b.joints.index(next(j for j in b.joints if j.label == "rope")), "position", stiffness=1e5, damping=1e3,
                target=2.5, label="winch")  # fmt: skip
    sim = simulate(b, backend=backend, dt=1e-2)
    sim.step(100)
    near(sim.read("joint.rope.position"), 2.5, abs=1e-3)
    near(sim.read("joint.rope.velocity"), 0.0, abs=1e-3)


def swinging(shape: str, tight: bool) -> Model:
    """Two loads on a rope over a drum that turns and slides on an oblique axis."""
    b = ModelBuilder()
    tilted = Transform((0, 0, 2), (0.1, 0.05, 0, 0.99))
    drum = b.add_body(2.0, (0.05, 0.06, 0.07), xform=tilted, label="drum")
    b.add_joint_cylindrical(-1, drum, at=tilted, axis=(0.3, 0.1, 1.0))
    b.add_spring(-1, drum, point_a=(0.05, 0, 3.0), stiffness=400.0, rest_length=0.7)
    left = b.add_body(1.0, (0.01,) * 3, xform=Transform((0.45, 0.1, 1.2)), label="left")
    right = b.add_body(1.5, (0.01, 0.02, 0.03), xform=Transform((-0.5, 0.05, 1.0)), linear_velocity=(0.1, 0.3, 0))
    around = Wrap(drum, RADIUS, Transform((0, 0.02, 0.01), (0.7, 0, 0, 0.714)), shape, ABOVE, side_body=-1)
    rope = b.add_spatial_tendon([(left, (0, 0, 0.05)), around, (right, (0.01, 0, 0.05))], label="rope")
    if tight:
        b.add_linear_coupling([(rope, 1.0)], label="tight")
    else:
        b.add_torsion_spring(rope, 40.0, rest_angle=2.6)
    return b.finalize()


@pytest.mark.native
@pytest.mark.parametrize(("shape", "tight"), [("cylinder", True), ("sphere", True), ("sphere", False)])
def test_steps_are_of_second_order(shape: str, tight: bool) -> None:
    model = swinging(shape, tight)

    def run(dt: float) -> np.ndarray:
        sim = Simulation(model, backend="native", config=SolverConfig(dt=dt))
        sim.step(round(0.3 / dt))
        state = sim.state.arrays
        paths = find_paths(model.topology.wrap, state["position"], matrix_from_quaternion(state["orientation"]))
        assert paths.arc[0, 0] > 0.1
        return np.concatenate([state["position"][0].ravel(), state["orientation"][0].ravel()])

    exact = run(1.25e-4)
    errors = [float(np.abs(run(dt) - exact).max()) for dt in (4e-3, 2e-3, 1e-3)]
    assert errors[0] < 5e-4
    for coarse, fine in zip(errors[:-1], errors[1:], strict=True):
        assert 3.5 < coarse / fine < 4.6


@pytest.mark.native
def test_energy_is_conserved() -> None:
    b = ModelBuilder()
    mass = ball_body(b, 1.0, xform=Transform((RADIUS + 0.6, 0, 0)), label="mass")
    path = [(-1, (-RADIUS, 0, -1.0)), Wrap(-1, RADIUS, ACROSS, side=ABOVE), (mass, (0, 0, 0))]
    rope = b.add_spatial_tendon(path, label="rope")
    b.add_linear_coupling([(rope, 1.0)])
    drift = []
    for dt in (2e-3, 1e-3):
        sim = simulate(b, backend="native", dt=dt)
        most = 0.0
        for _ in range(round(0.3 / dt) // 10):
            sim.step(10)
            v, z = (sim.read(f"body.mass.{n}", numpy=True)[0] for n in ("linear_velocity", "position"))
            most = max(most, abs(0.5 * float(v @ v) + G * float(z[2])))
        drift.append(most)
    assert drift[1] < 2e-4
    assert 3.0 < drift[0] / drift[1] < 5.0


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_backends_and_launches_agree(dtype: str) -> None:
    model, config = swinging("cylinder", True), SolverConfig(dt=2e-3)

    def run(worlds: int, backend: str, **launch: Any) -> dict[str, np.ndarray]:
        sim = Simulation(model, worlds, backend, dtype, config, **launch)
        sim.step(50)
        arrays = {name: sim.state.arrays[name][0] for name in ("position", "orientation", "linear_velocity", "impulse")}
        signals = {name: sim.read(f"joint.rope.{name}", numpy=True)[:1] for name in ("position", "velocity", "tension")}
        return arrays | signals

    ours, fused = run(1, "numpy"), run(1, "native")
    close = 1e-12 if dtype == "float64" else 2e-5
    for name, array in fused.items():
        assert array == pytest.approx(ours[name], rel=close, abs=close), name
    for other in (run(1, "native", launch="staged"), run(16, "native", launch="simd")):
        assert all((fused[name] == other[name]).all() for name in fused)


def test_pulleys_divide_and_constant_parts_are_left_out() -> None:
    b = ModelBuilder()
    load = ball_body(b, 1.0, xform=Transform((0, 0, -1.0)), label="load")
    path = [(-1, (3, 0, 0)), (-1, (0, 0, 0)), (load, (0, 0, 0)), Pulley(4.0), (-1, (0, 0, 1)), (load, (0, 0, 0))]
    b.add_spatial_tendon(path, label="rope")
    sim = simulate(b, backend="numpy")
    near(sim.read("joint.rope.position"), 1.0 + 2.0 / 4.0, abs=1e-14)


def test_copies_keep_the_path() -> None:
    part, host = atwood(), ModelBuilder()
    carrier = host.add_body(5.0, (1, 1, 1), xform=Transform((1, 2, 3), (0, 0, 0.6, 0.8)), label="carrier")
    host.add_builder(part, Transform((0, 0, 0.5), (0, 0.6, 0, 0.8)), "one_", parent=carrier)
    host.add_builder(part, label_prefix="two_")
    host = ModelBuilder.from_dict(json.loads(json.dumps(host.to_dict(), allow_nan=False)))
    sim = simulate(host, backend="numpy")
    for name in ("one_rope", "two_rope"):
        near(sim.read(f"joint.{name}.position"), 2.0 + np.pi * RADIUS, abs=1e-12)
    path = host.joints[0].params["path"]
    assert path.wrap.body == carrier and path.body_a == 1


def test_drawn_points_follow_the_arc() -> None:
    model = atwood().finalize()
    state = Simulation(model, backend="numpy").state.arrays
    paths = find_paths(model.topology.wrap, state["position"], matrix_from_quaternion(state["orientation"]))
    points = polyline(paths, 64)[0, 0]
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert lengths.sum() == pytest.approx(2.0 + np.pi * RADIUS, rel=1e-4)
    assert np.hypot(points[1:-1, 0], points[1:-1, 2]) == pytest.approx(RADIUS, rel=1e-12)
    assert points[1:-1, 2].min() > -1e-12


def test_velocities_are_projected_onto_a_locked_rope() -> None:
    b = atwood()
    b.add_linear_coupling([(len(b.joints) - 1, 1.0)], label="tight")
    sim = simulate(b, backend="numpy")
    sim.write("body.left.linear_velocity", (0.0, 0.0, 1.0))
    sim.project_velocities()
    near(sim.read("joint.rope.velocity"), 0.0, abs=1e-12)
    near(sim.read("body.left.linear_velocity")[:, 2], 0.4, abs=1e-9)


WRONG: list[tuple[str, Any]] = [
    ("around = 0.3 gpusim.Wrap", lambda b: b.add_joint_wrapped_rope(-1, 0, 0.3)),
    ("radius of its Wrap", lambda b: b.add_joint_wrapped_rope(-1, 0, Wrap(-1, 0.0))),
    ("'ring'", lambda b: b.add_joint_wrapped_rope(-1, 0, Wrap(-1, 0.1, shape="ring"))),
    ("side_body without", lambda b: b.add_joint_wrapped_rope(-1, 0, Wrap(-1, 0.1, side_body=0))),
    ("body of its Wrap", lambda b: b.add_joint_wrapped_rope(-1, 0, Wrap(7, 0.1))),
    ("constant", lambda b: b.add_joint_wrapped_rope(0, 0, Wrap(0, 0.1))),
    ("max_length = -1", lambda b: b.add_joint_wrapped_rope(-1, 0, Wrap(-1, 0.1), max_length=-1.0)),
    ("path = 0", lambda b: b.add_spatial_tendon(0)),
    ("(body, point)", lambda b: b.add_spatial_tendon([0, 1])),
    ("follows no point", lambda b: b.add_spatial_tendon([Wrap(-1, 0.1), (0, (0, 0, 0))])),
    ("another Wrap follows", lambda b: b.add_spatial_tendon([(-1, (0, 0, 0)), Wrap(-1, 0.1), Wrap(-1, 0.1)])),
    ("the end of the path", lambda b: b.add_spatial_tendon([(-1, (0, 0, 0)), Wrap(-1, 0.1)])),
    ("divisor", lambda b: b.add_spatial_tendon([(-1, (0, 0, 0)), Pulley(0.0), (0, (0, 0, 0))])),
    ("no segment", lambda b: b.add_spatial_tendon([(-1, (0, 0, 0)), (-1, (0, 0, 1))])),
]


@pytest.mark.parametrize(("words", "call"), WRONG)
def test_wrong_paths_are_refused(words: str, call: Any) -> None:
    b = ModelBuilder()
    ball_body(b, 1.0)
    with pytest.raises(ModelError, match=naming(words)):
        call(b)


def test_force_sensor_and_tree_inertia_are_refused() -> None:
    b = atwood()
    with pytest.raises(ModelError, match=naming("rope_part0")):
        b.add_force_sensor(0, label="cell")
    b.add_dc_motor(0, stall_torque=1.0, no_load_speed=1.0, mechanical_time_constant=0.1)
    with pytest.raises(ModelError, match=naming("rope_part0")):
        gpusim.robotics.Tree(b.finalize())


def test_machine_files_have_paths(tmp_path: Path) -> None:
    body = "{label: %s, mass: 2, inertia: [1, 1, 1], xform: {position: [%s, 0, -1]}}"
    drum = "{Wrap: {body: world, radius: 0.3, xform: {axis: [1, 0, 0], angle: = pi / 2}, side: [0, 0, 9]}}"
    more = "{Pulley: {divisor: 2}}, [world, [0, 0, 1]], [left, [0, 0, 0]]"
    path = f"[[left, [0, 0, 0]], {drum}, [right, [0, 0, 0]], {more}]"
    bodies = [f"  - body: {body % end}" for end in (("left", -0.3), ("right", 0.3))]
    lines = ["name: hoist", "description: a rope", "add:", *bodies]
    file = tmp_path / "hoist.yaml"
    file.write_text("\n".join([*lines, f"  - spatial_tendon: {{label: rope, path: {path}}}", ""]), encoding="utf-8")
    sim = simulate(load_machine(file).builder, backend="numpy")
    near(sim.read("joint.rope.position"), 2.0 + np.pi * RADIUS + 0.5 * np.hypot(0.3, 2.0), abs=1e-12)
