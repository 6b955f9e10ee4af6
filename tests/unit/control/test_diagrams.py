"""Diagrams: the same bits on NumPy and native, state that resets and copies, order, errors; one plant of two poles."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram, block_kinds

DT = 0.01


def cart(diagrams: list[Diagram], worlds: int = 1, backend: str = "numpy", **config: object) -> Simulation:
    """A mass of 2 kg on a rail with a force by command, and diagrams."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (1, 1, 1), label="cart")
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    for d in diagrams:
        b.add_diagram(d)
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=DT, **config))  # type: ignore[arg-type]


def everything() -> Diagram:
    """A diagram with every kind of block but Python's and those of kinematics."""
    d = Diagram("all", rate=50.0)
    d.add("input", "stick", lower=-2.0, upper=2.0, dead_zone=0.1, curve=2.0, unit="m")
    d.connect("signal:joint.rail.position", d.add("sum", "error", signs="-+")["a"])
    d.connect("stick", "error.b")
    d.connect("error", d.add("pid", "pid", kp=2.0, ki=1.0, kd=0.1, lower=-1.0, upper=1.0))
    sources = {
        "noise": {"seed": 3, "size": 2},
        "constant": {"value": 0.3}, "timer": {}, "step": {"time": 0.1}, "ramp": {"slope": 0.2, "end": 0.5},
        "sequence": {"times": [0, 0.1, 0.3], "values": [0, 1, -1], "interpolate": True, "repeat": True},
        "sine": {"frequency": 3.0}, "trajectory": {"times": [0, 0.2, 0.5], "points": [[0, 1], [1, 0], [2, 2]]},
    }  # fmt: skip
    for kind, parameters in sources.items():
        d.add(kind, kind, **parameters)
    through = {
        "gain": {"gain": 0.7}, "abs": {}, "sign": {}, "integrator": {"upper": 3.0}, "filter": {"time": 0.05},
        "filter2": {"frequency": 4.0}, "transfer": {"num": [1.0, 2.0], "den": [1.0, 0.5, 3.0]},
        "delay": {"samples": 3}, "derivative": {"time": 0.02}, "rate_limiter": {"rise": 1.0, "fall": 2.0},
        "limiter": {"lower": -0.5, "upper": 0.5}, "dead_zone": {}, "backlash": {"width": 0.2},
        "quantiser": {"step": 0.1}, "relay": {}, "table": {"x": [-1, 0, 2], "y": [0, 1, 5]}, "edge": {},
        "move": {"duration": 0.1}, "norm": {}, "component": {"index": 0},
    }  # fmt: skip
    for kind, parameters in through.items():
        d.add(kind, kind, **parameters)
        d.connect("sine", d.ports(kind)[0][0] and f"{kind}.{d.ports(kind)[0][0]}")
    for name in ("sin", "cos", "tan", "asin", "acos", "atan"):
        d.connect("sine", d.add("trigonometry", name, function=name))
    pairs = {"product": {}, "division": {}, "extreme": {"which": "min"}, "atan2": {}, "pack": {}, "dot": {},
             "table2": {"x": [-1, 1], "y": [-1, 0, 1], "z": [[0, 1], [2, 3], [5, 8]]}, "compare": {}, "logic": {},
             "latch": {}, "hold": {}}  # fmt: skip
    for kind, parameters in pairs.items():
        d.add(kind, kind, **parameters)
        first, second = d.ports(kind)[0][:2]
        d.connect("sine", f"{kind}.{first}")
        d.connect("ramp", f"{kind}.{second}")
    d.connect("sine", d.add("switch", "switch")["on"])
    d.connect("ramp", "switch.a", d.add("select", "select")["index"], "select.a")
    d.connect("timer", "switch.b")
    d.connect("sine", "select.b")
    d.connect("compare", d.add("counter", "counter", modulo=3)["up"])
    transitions = [["rest", "run", "go"], ["run", "rest", 0.07]]
    d.add("state_machine", "machine", states=["rest", "run"], transitions=transitions)
    d.connect("compare", "machine.go")
    d.add("constant", "z", value=[0.0, 0.6, 0.8])
    d.add("constant", "v", value=[1.0, 2.0, 3.0])
    d.connect("v", d.add("along", "along")["in"])
    d.connect("z", "along.direction")
    formula = "a ** 3 - 2 * b if abs(a) > 0.2 and not b > 1 else sqrt(exp(a)) + log(2 + a) ** 0.5 + a % 0.3 + max(a, b)"
    d.connect("sine", d.add("expression", "formula", text=formula)["a"])
    d.connect("ramp", "formula.b")
    inner = Diagram("inner")
    inner.connect(inner.add("inlet", "x"), inner.add("gain", "twice", gain=2.0))
    inner.connect("twice", inner.add("outlet", "y"))
    d.connect("sine", d.add_subsystem("sub", inner)["x"])
    d.connect("sub.y", d.add("abs", "outside"))
    d.connect("pid", "command:push")
    return d


def test_every_kind_is_in_the_diagram_of_all() -> None:
    used = {block.kind for block in everything().flat().blocks.values()} | {"inlet"}
    assert used == set(block_kinds()) - {
        "python", "chain", "ik", "inverse_dynamics", "to_frame", "from_frame", "turned",
    }  # fmt: skip


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
    """Two worlds with inputs of their own; numbers that live on, commands and poses."""
    found = []
    for backend in ("numpy", "native"):
        sim = cart([everything()], 2, backend)
        for k in range(100):
            sim.control["stick"] = [np.sin(0.1 * k), 1.5 * np.cos(0.07 * k)]
            sim.step()
        arrays = {k: v.copy() for k, v in sim.state.arrays.items() if k in ("diagram.all", "position")}
        found.append(arrays | {"control": sim.control.array.copy()})
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name], err_msg=name)
    assert np.isfinite(found[0]["diagram.all"]).all()


def test_state_is_reset_copied_and_restored_with_the_worlds() -> None:
    sim = cart([everything()], 2)
    sim.control["stick"] = 1.0
    sim.step(20)
    saved, commands = sim.state.copy(), sim.control.array.copy()
    sim.step(20)
    after = sim.read_state()["diagram.all"].copy()
    sim.state.restore(saved, np.arange(2))
    sim.control.array[:] = commands
    sim.changed()
    sim.step(20)
    np.testing.assert_array_equal(sim.read_state()["diagram.all"], after)
    sim.reset([1])
    assert sim.read("diagram.all.timer")[1] == 0.0 != sim.read("diagram.all.timer")[0]
    fresh = cart([everything()], 2)
    for s in (sim, fresh):
        s.control["stick"] = 1.0
        s.step(7)
    np.testing.assert_array_equal(sim.read_state()["diagram.all"][1], fresh.read_state()["diagram.all"][1])


def test_a_slower_rate_holds_its_commands() -> None:
    d = Diagram("slow", rate=25.0)
    d.connect(d.add("timer", "t"), "command:push")
    sim = cart([d])
    seen = []
    for _ in range(9):
        sim.step()
        seen.append(float(sim.control["push"][0]))
    np.testing.assert_allclose(seen, [0.0] * 4 + [0.04] * 4 + [0.08], atol=1e-15)


def test_parameters_differ_by_world() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("gain", "g", gain=3.0))
    d.connect("g", "command:push")
    sim = cart([d], 3)
    sim.write("diagram.d.g.gain", [5.0, 7.0], world=[0, 2])
    sim.step()
    np.testing.assert_array_equal(sim.read("diagram.d.g"), [5.0, 3.0, 7.0])
    np.testing.assert_array_equal(sim.read("diagram.d.g.gain"), [5.0, 3.0, 7.0])


def test_python_runs_on_the_host_over_all_worlds() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.position", d.add("python", "p", function=lambda t, x: 1.0 + t + x["in"]))
    d.connect("p", "command:push")
    sim = cart([d], 2, "auto")
    sim.step(3)
    assert sim.read("diagram.d.p")[0] == pytest.approx(1.02, abs=2e-2)
    assert sim.read("joint.rail.position")[0] > 0.0


def test_a_diagram_goes_on_where_a_joint_gets_a_row() -> None:
    """Friction of a joint without any makes the row, and the simulation goes on with another backend."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body, other = (b.add_body(1.0, (1, 1, 1), label=label) for label in ("cart", "wheel"))
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_joint_revolute(body, other, axis=(0, 0, 1), label="pin")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    d = Diagram("d")
    d.connect(d.add("timer", "t"), "command:push")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), 2, config=SolverConfig(dt=DT))
    sim.step(5)
    sim.write("joint.pin.friction", 1.0)
    sim.step(5)
    np.testing.assert_allclose(sim.read("diagram.d.t"), 0.09)
    sim.reset([1])
    sim.step(2)
    np.testing.assert_allclose(sim.control["push"], [0.11, 0.01])


def test_driven_commands_are_the_diagrams() -> None:
    d = Diagram("d")
    d.connect(0.5, "command:push")
    sim = cart([d])
    with pytest.raises(ModelError, match="diagram 'd' gives it"):
        sim.control["push"] = 1.0
    with pytest.raises(ModelError, match="diagram 'd' gives it"):
        sim.command("push")
    sim.step()
    assert float(sim.control["push"][0]) == 0.5


def test_loops_open_ports_and_names_are_told() -> None:
    d = Diagram("d")
    d.add("sum", "a")
    d.add("gain", "b")
    d.connect("a", "b")
    d.connect("b", "a.a")
    with pytest.raises(ModelError, match=r"input 'a\.b' is open"):
        d.check()
    d.connect(1.0, "a.b")
    with pytest.raises(ModelError, match=r"the loop (a -> b -> a|b -> a -> b) has no block that waits"):
        d.check()
    d.disconnect("a.a")
    d.connect(d.add("delay", "z"), "a.a")
    d.connect("b", "z")
    d.check()
    with pytest.raises(ModelError, match="did you mean 'gain'"):
        d.add("gian", "c")
    with pytest.raises(ModelError, match="did you mean 'joint.rail.position'"):
        d.connect("signal:joint.rial.position", "command:push")
        cart([d])
