from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

from .circuits import CASES, LIFT, G, load, measured, reference, step, two_on_one_pump

# Greatest stroke (m) or angle (rad) error at 10 ms, and mean error of a pressure over its range; what is measured is
# about two thirds. The load-sensing loop of flow_sharing rings at 25 Hz, which implicit Euler damps.
MOST = {
    "two_on_one_pump": (7e-4, 0.016),
    "flow_sharing": (3e-4, 0.1),
    "holding_valve": (1.6e-3, 0.018),
    "motor_with_relief": (9e-3, 0.012),
    "pulled_rod": (4.5e-3, 0.016),
    "motor_outruns_pump": (2e-2, 0.06),
}
# What is left of the pressures' error at 1 ms: a loop that rings, a pressure that rises within a sample of the table.
LEFT = {"flow_sharing": 0.75, "pulled_rod": 0.9}


@cache
def errors(name: str, dt: float, backend: str = "auto") -> tuple[float, float]:
    exact, found = reference(name), measured(name, dt, backend)
    motion = max(np.abs(found[c] - exact[c]).max() for c in exact if c.startswith("x_"))
    return motion, max(np.abs(found[c] - exact[c]).mean() / np.ptp(exact[c]) for c in exact if c.startswith("p_"))


@pytest.mark.parametrize("name", CASES)
def test_steps_of_ten_milliseconds_follow_the_reference(name: str) -> None:
    motion, pressure = errors(name, 1e-2)
    assert motion < MOST[name][0]
    assert pressure < MOST[name][1]


@pytest.mark.parametrize("name", CASES)
def test_errors_fall_with_the_step(name: str) -> None:
    motion, pressure = errors(name, 1e-3)
    assert motion < 0.3 * errors(name, 1e-2)[0]
    assert pressure < LEFT.get(name, 0.3) * errors(name, 1e-2)[1]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", CASES)
def test_numpy_and_kernels_agree(name: str) -> None:
    numpy, native = (measured(name, 1e-2, backend) for backend in ("numpy", "native"))
    for column, values in numpy.items():
        assert native[column] == pytest.approx(values, rel=1e-8, abs=1e-8 * np.ptp(values)), column


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_a_world_among_others_has_the_same_bits(solver: str) -> None:
    alone = measured("two_on_one_pump", 1e-2, "native", joint_solver=solver)
    many = measured("two_on_one_pump", 1e-2, "native", 3, joint_solver=solver)
    assert all(np.array_equal(alone[c], many[c]) for c in alone)


def test_sweeps_follow_too() -> None:
    exact, found = reference("two_on_one_pump"), measured("two_on_one_pump", 5e-3, joint_solver="colored")
    assert max(np.abs(found[c] - exact[c]).max() for c in ("x_heavy", "x_light")) < 2e-3


def lift(circuit: bool, orifice: str = "smooth") -> ModelBuilder:
    b = ModelBuilder()
    body, numbers = load(b, "load", 1000.0, 0.0), LIFT | {"piston_mass": 2.0, "length_offset": 0.9}
    if not circuit:
        b.add_hydraulic_cylinder(
            -1, body, (0, 0, -1), (0, 0, 0), volume_a=1e-4, volume_b=1e-4 + 1.2e-3 * 0.6, flow_gain=3e-7, label="valve",
            **numbers,
        )  # fmt: skip
        return b
    c = b.add_hydraulic_circuit(label="oil")
    supply = c.add_node(pressure=1e7, fixed=True, label="supply")
    cylinder = c.add_cylinder(-1, body, (0, 0, -1), (0, 0, 0), label="ram", **numbers)
    c.add_valve(
        supply, cylinder.node_a, cylinder.node_b, 3e-7, overlap_supply=0.0, overlap_drain=0.0, load_check=False,
        frequency=157.0, label="valve",
    )  # fmt: skip
    c.add_check_valve(c.tank, cylinder.node_b, 1e-12, cracking_pressure=1e9, label="way")  # stays shut
    return b


@pytest.mark.parametrize(("dt", "apart"), [(1e-3, 1e-6), (5e-3, 2e-5)])
def test_a_circuit_of_one_cylinder_is_the_one_cylinder_element(dt: float, apart: float) -> None:
    sims = [Simulation(lift(c).finalize(), config=SolverConfig(dt=dt)) for c in (False, True)]
    for k in range(round(1.0 / dt)):
        for sim in sims:
            sim.control["valve"] = np.sin(3.0 * k * dt)
            sim.step()
        x = [sim.read("joint.x_load.position")[0] for sim in sims]
        assert abs(x[0] - x[1]) < apart
    assert sims[1].read("cylinder.ram.pressure_a")[0] == pytest.approx(
        sims[0].read("cylinder.valve.pressure_a")[0], rel=2e-3
    )


def lifted(lowest: float) -> list[float]:
    b = ModelBuilder()
    c = b.add_hydraulic_circuit(label="oil")
    line = c.add_node(pressure=2e7, fixed=True)
    ram = c.add_cylinder(
        -1, load(b, "load", 100.0, 0.0), (0, 0, -1), (0, 0, 0), length_offset=0.8 - lowest, area_a=2e-3, area_b=1e-3,
        stroke_min=lowest, stroke_max=lowest + 0.5, label="ram", pressure=(1e6, 1e6),
    )  # fmt: skip
    c.add_valve(line, ram.node_a, ram.node_b, 1e-7, label="v")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=2e-3))
    sim.control["v"] = 0.5
    sim.step(100)
    at, pressure = (float(sim.read(f"cylinder.ram.{name}")[0]) for name in ("position", "pressure_a"))
    return [at - lowest, pressure]


@pytest.mark.parametrize("lowest", [-0.5, 0.5, 20.0])
def test_a_stroke_may_begin_anywhere(lowest: float) -> None:
    assert lifted(lowest) == pytest.approx(lifted(0.0), rel=1e-9)


def test_a_node_without_oil_is_refused() -> None:
    b = ModelBuilder()
    c = b.add_hydraulic_circuit(label="oil")
    ram = c.add_cylinder(
        -1, load(b, "load", 100.0, 0.0), (0, 0, -1), (0, 0, 0), length_offset=0.8, area_a=2e-3, area_b=1e-3,
        stroke_min=0.0, stroke_max=0.5, label="ram",
    )  # fmt: skip
    b.actuators[ram.node_b].params["volume"] = 5e-4
    with pytest.raises(ModelError, match=naming("oil_node 'ram_b'")):
        b.finalize()


@pytest.mark.parametrize(("circuit", "name", "value"), [
    (True, "valve.valve.overlap_supply", 1.0), (True, "valve.valve.overlap_drain", -1.0),
    (True, "valve.valve.compensator_pressure", 0.0), (True, "cylinder.ram.cushion_stiffness", -1.0),
    (True, "node.ram_b.volume", 1e-4), (True, "cylinder.ram.area_b", 2e-3), (True, "node.supply.volume", 0.0),
    (True, "edge.way.set_pressure", -1.0), (True, "node.supply.initial_pressure", -1.0),
    (False, "cylinder.valve.overlap_supply", 1.0), (False, "cylinder.valve.valve_frequency", 0.0),
    (False, "cylinder.valve.dry_friction", -1.0), (False, "cylinder.valve.piston_mass", -1.0),
])  # fmt: skip
def test_written_values_keep_the_rules_of_the_builder(circuit: bool, name: str, value: float) -> None:
    sim = Simulation(lift(circuit).finalize(), 2)
    named = "oil_node" if name.endswith(("volume", "area_b")) else ""
    before = sim.read(name)
    with pytest.raises(ModelError, match=naming(named or name.rpartition(".")[2])):
        sim.write(name, value, worlds=1)
    np.testing.assert_array_equal(sim.read(name), before)


def test_a_limit_can_be_taken_away() -> None:
    sim = Simulation(two_on_one_pump()[0].finalize())
    for name in ("valve.v_heavy.compensator_pressure", "pump.feed.power", "edge.relief.flow_limit"):
        sim.write(name, 1e4)
        sim.write(name, np.inf)
        assert np.isinf(sim.read(name)).all()


def test_holding_valve_holds_and_pipe_break_valve_catches() -> None:
    def drop(guarded: bool) -> float:
        b = ModelBuilder()
        body = load(b, "load", 2000.0, 0.0)
        c = b.add_hydraulic_circuit(label="oil")
        start = (2000.0 * G / 3e-3 + 0.5e5, 1e5)
        ram = c.add_cylinder(
            -1, body, (0, 0, -1), (0, 0, 0), length_offset=0.55, area_a=3e-3, area_b=1.5e-3, stroke_min=0.0,
            stroke_max=0.6, pressure=start, label="ram",
        )  # fmt: skip
        line = c.add_node(3e-4, start[0], label="line")
        if guarded:
            c.add_pipe_break_valve(ram.node_a, line, 4e-7, flow_limit=2e-4, label="guard")
        else:
            c.add_orifice(ram.node_a, line, 4e-7)
        c.add_orifice(line, c.tank, 1e-6, opening=0.0, label="break")
        c.add_check_valve(c.tank, ram.node_b, 1e-6)
        sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
        sim.step(20)
        rest = sim.read("joint.x_load.position")[0]
        assert abs(rest) < 2e-4
        sim.control["break"] = 1.0
        sim.step(200)
        return float(rest - sim.read("joint.x_load.position")[0])

    assert drop(False) > 0.3
    assert drop(True) < 0.01


def fall(dt: float, backend: str = "auto", seconds: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    b = ModelBuilder()
    body, gain = load(b, "load", 600.0, 0.0), 8e-7
    c = b.add_hydraulic_circuit(label="oil")
    start = 600.0 * G / 2e-3 + 0.6e5
    ram = c.add_cylinder(
        -1, body, (0, 0, -1), (0, 0, 0), length_offset=0.4, area_a=2e-3, area_b=1.2e-3, stroke_min=0.0, stroke_max=1.2,
        pressure=(start, 1e5), label="ram",
    )  # fmt: skip
    line = c.add_node(3e-4, start, label="line")
    c.add_pipe_break_valve(ram.node_a, line, 6e-7, flow_limit=5e-4, label="guard")
    hose = c.add_hose(line, 4e-4, gain, label="hose")
    c.add_orifice(hose, c.tank, gain, opening=0.0, label="break")
    c.add_orifice(ram.node_b, c.tank, 5e-7)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=dt), backend=backend)
    sim.step(round(1.0 / dt))
    rest = float(sim.read("joint.x_load.position")[0])
    sim.control["break"] = 1.0
    found = []
    for _ in range(round(seconds / dt)):
        sim.step()
        found.append((rest - sim.read("joint.x_load.position")[0], sim.read("edge.guard.poppet")[0]))
    return tuple(np.array(found).T)


@pytest.mark.parametrize("dt", [1e-2, 5e-3, 2e-3, 5e-4])
def test_a_pipe_break_valve_stays_shut_while_the_load_bounces(dt: float) -> None:
    down, poppet = fall(dt)
    assert down.max() == pytest.approx(12.90e-3, rel=0.15)
    assert down[-1] < down.max()
    shut = int(np.argmax(poppet < 0.05))
    assert dt * (shut + 1) == pytest.approx(0.0706, abs=0.6 * dt + 1.4e-3)
    assert 0 < shut and poppet[shut:].max() < 0.3


@pytest.mark.nightly
@pytest.mark.native
def test_pipe_break_valves_agree_in_numpy_and_kernels() -> None:
    numpy, native = (fall(2e-3, backend, 0.4) for backend in ("numpy", "native"))
    for one, other in zip(numpy, native, strict=True):
        assert other == pytest.approx(one, rel=1e-8, abs=1e-10)


def test_a_circuit_on_a_moved_copy_is_the_same() -> None:
    part, commands = CASES["two_on_one_pump"]()
    whole, _ = CASES["flow_sharing"]()
    whole.add_builder(part, Transform((3.0, 1.0, 0.0)), label_prefix="b_")
    sims = [Simulation(b.finalize(), config=SolverConfig(dt=5e-3)) for b in (part, whole)]
    for k in range(160):
        for sim, prefix in zip(sims, ("", "b_"), strict=True):
            for label, command in commands.items():
                sim.control[prefix + label] = command(5e-3 * k)
            sim.step()
    for name in ("x_heavy", "x_light"):
        one, other = sims[0].read(f"joint.{name}.position")[0], sims[1].read(f"joint.b_{name}.position")[0]
        assert other == pytest.approx(one, abs=1e-9)
    assert abs(sims[1].read("joint.x_heavy.position")[0]) < 1e-4


def test_signals_report_flows_and_pressures() -> None:
    b, commands = CASES["two_on_one_pump"]()
    sim = Simulation(b.finalize(), config=SolverConfig(dt=2e-3))
    for k in range(400):
        for label, command in commands.items():
            sim.control[label] = command(2e-3 * k)
        sim.step()
    before = sim.read("node.pump.pressure")[0]
    sim.step()
    stored = 2e-3 / 1.5e9 * (sim.read("node.pump.pressure")[0] - before) / 2e-3
    taken = sum(sim.read(f"valve.{v}.flow_a")[0] for v in ("v_heavy", "v_light"))
    given = sim.read("pump.feed.flow")[0] - sim.read("edge.relief.flow")[0]
    assert given == pytest.approx(taken + stored, rel=1e-6)
    assert sim.read("pump.feed.outlet_power")[0] == pytest.approx(
        sim.read("pump.feed.flow")[0] * (sim.read("node.pump.pressure")[0] - 1e5), rel=1e-12
    )
    force = 2e-3 * sim.read("node.heavy_a.pressure")[0] - 1.2e-3 * sim.read("node.heavy_b.pressure")[0]
    force -= 200.0 * sim.read("cylinder.heavy.velocity")[0]
    assert sim.read("cylinder.heavy.force")[0] == pytest.approx(force, rel=1e-9)


def _circuit() -> tuple[ModelBuilder, object, int]:
    b = ModelBuilder()
    return b, b.add_hydraulic_circuit(label="oil"), load(b, "load", 10.0, 0.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c, body: c.add_pump(99, 1e-3, 1e7), "'oil'"),
        (lambda c, body: c.add_pump(c.tank, -1e-3, 1e7), "flow"),
        (lambda c, body: c.add_pump(c.tank, 1e-3, 1e7, control="flow"), "load_sensing"),
        (lambda c, body: c.add_orifice(c.tank, c.tank, 1e-7), ""),
        (lambda c, body: c.add_orifice(c.tank, c.add_node(), 1e-7, opening=2.0), "opening 2"),
        (lambda c, body: c.add_node(volume=0.0), "volume"),
        (lambda c, body: c.add_pilot_line(c.tank, 0.0), "time_constant"),
        (lambda c, body: c.add_valve(c.tank, c.add_node(), c.add_node(), 1e-7, overlap_supply=1.0), "overlaps"),
        (lambda c, body: c.add_valve(c.add_node(), 1, 1, 1e-7), ""),
        (lambda c, body: c.add_valve(c.tank, c.add_node(), c.add_node(), 1e-7), ""),
        (
            lambda c, body: c.add_cylinder(-1, body, area_a=1e-3, area_b=1e-3, stroke_min=1.0, stroke_max=0.5),
            "",
        ),
        (lambda c, body: c.add_motor(7, 1e-5), "7"),
    ],
)
def test_wrong_parts_say_the_rule(call: object, words: str) -> None:
    _, c, body = _circuit()
    with pytest.raises(ModelError, match=naming(words)):
        call(c, body)  # type: ignore[operator]


def test_a_circuit_without_consumers_says_so() -> None:
    b, c, _ = _circuit()
    c.add_pump(c.add_node(), 1e-3, 1e7)  # type: ignore[attr-defined]
    with pytest.raises(ModelError):
        b.finalize()


def test_a_pump_that_feeds_nothing_says_so() -> None:
    b, c, body = _circuit()
    numbers = {"area_a": 1e-3, "area_b": 6e-4, "stroke_min": 0.0, "stroke_max": 0.6}
    lift = c.add_cylinder(-1, body, (0, 0, -1), (0, 0, 0), length_offset=0.8, **numbers)  # type: ignore[attr-defined]
    node = c.add_node(label="line")  # type: ignore[attr-defined]
    c.add_pump(node, 1e-3, 1e7, label="pump")  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=naming("pump 'pump' 'line'")):
        b.finalize()
    c.add_orifice(node, lift.node_a, 1e-7)  # type: ignore[attr-defined]
    b.finalize()


@pytest.mark.parametrize(("offset", "stroke"), [(0.1, "0.9"), (1.2, "-0.2")])
def test_a_cylinder_that_is_built_outside_its_stroke_says_so(offset: float, stroke: str) -> None:
    b, c, body = _circuit()
    numbers = {"area_a": 1e-3, "area_b": 6e-4, "stroke_min": 0.0, "stroke_max": 0.6}
    c.add_cylinder(-1, body, (0, 0, -1), (0, 0, 0), length_offset=offset, label="ram", **numbers)  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match=naming(f"'ram' {stroke}")):
        b.finalize()


def test_commands_step() -> None:
    assert step(0.2, 0.5)(0.2) == 0.5 and step(0.2, 0.5)(0.19) == 0.0


def test_a_joint_reports_what_a_circuit_does_to_it() -> None:
    b, _ = CASES["motor_with_relief"]()
    sim = Simulation(b.finalize(), config=SolverConfig(dt=1e-3))
    sim.control["v_swing"] = 1.0
    sim.step(100)
    torque = sim.read("hydraulic_motor.swing.torque")
    assert torque[0] > 1000.0
    np.testing.assert_allclose(sim.read("joint.x_swing.drive_force"), torque, rtol=2e-3)


@pytest.mark.parametrize(("dt", "error"), [(1e-3, 3e-3), (5e-3, 0.018), (1e-2, 0.04)])
def test_a_motor_behind_a_compensated_valve_turns_at_any_step(dt: float, error: float) -> None:
    found, exact = measured("motor_outruns_pump", dt), reference("motor_outruns_pump")
    assert found["x_wheel"][-1] == pytest.approx(exact["x_wheel"][-1], rel=error)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("first", [True, False])
def test_a_cylinder_between_bodies_that_cannot_move_shares_a_circuit(backend: str, solver: str, first: bool) -> None:
    def shut(kinds: str) -> tuple[float, float]:
        b = ModelBuilder()
        c = b.add_hydraulic_circuit(label="oil")
        size = {"area_a": 2e-3, "area_b": 1e-3, "stroke_min": 0.0, "stroke_max": 0.5, "length_offset": 0.75}
        lifted = b.add_body(1.0, (1, 1, 1), kinematic=True, xform=Transform((2, 0, 1)), label="lifted")
        for kind in kinds:
            body = load(b, "free", 30.0, 0.0) if kind == "f" else lifted
            at = ((0, 0, -1), (0, 0, 0)) if kind == "f" else ((2, 0, 0), (0, 0, 0))
            c.add_cylinder(-1, body, *at, label=kind, pressure=(50e5, 50e5), **size)
        config = SolverConfig(dt=5e-3, joint_solver=solver)
        sim = Simulation(b.finalize(), 1, backend, config=config)
        sim.write("body.lifted.linear_velocity", (0.0, 0.0, 0.002))
        sim.step(20)
        assert sim.health().all()
        return tuple(float(sim.read(f"cylinder.{k}.pressure_a")[0]) if k in kinds else 0.0 for k in "fk")

    both = shut("kf" if first else "fk")
    np.testing.assert_allclose(both, (shut("f")[0], shut("k")[1]), rtol=1e-6)
    volume = 1e-4 + 2e-3 * 0.25
    assert both[1] == pytest.approx(50e5 - 1.5e9 * np.log1p(2e-3 * 0.0002 / volume), rel=2e-3)
