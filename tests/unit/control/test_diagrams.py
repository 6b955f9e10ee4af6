from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram, block_kinds
from tests.message_snapshot import naming
from tests.unit.control.plants import everything, plant

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


def test_every_kind_is_in_the_diagrams_of_the_plant() -> None:
    used = {block.kind for d in plant().diagrams for block in d.flat().blocks.values()} | {"inport"}
    assert used == set(block_kinds()) - {"python"}


def test_wire_connects_ports_in_order_and_by_name() -> None:
    d = Diagram("d")
    d.add("input", "stick")
    d.add("switch", "drive").wire("stick", 1.0, b=d.add("constant", "rest", value=2.0))
    assert d.wires == {("drive", "on"): ("stick", "out"), ("drive", "a"): ("constant", "out"),
                       ("drive", "b"): ("rest", "out")}  # fmt: skip
    with pytest.raises(ModelError, match=naming("'d' 'abs' 1 2")):
        d.add("abs", "abs").wire("stick", "rest")


@pytest.mark.native
def test_native_has_the_bits_of_numpy() -> None:
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


def test_a_vector_of_one_number_drives_a_command() -> None:
    d = Diagram("d")
    d.connect(d.add("constant", "one", value=[0.25]), "command:push")
    sim = cart([d])
    sim.step()
    assert sim.control["push"].tolist() == [0.25]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("rate", [None, 30.0, 70.0])
def test_samples_are_due_at_the_same_times_on_native_as_on_numpy(rate: float | None) -> None:
    rng = np.random.default_rng(5)
    sizes = [*rng.uniform(1e-3, 0.07, 60), *([1.0 / 70.0] * 40), *([1.0 / 210.0] * 60)]
    counts = []
    for backend in ("numpy", "native"):
        d = Diagram("clock", rate=rate)
        d.add("timer", "timer")
        sim = cart([d], 2, backend)
        found = []
        for size in sizes:
            sim.step(dt=size)
            found.append(sim.read_state()["diagram.clock"].copy())
        counts.append(np.array(found))
    np.testing.assert_array_equal(counts[0], counts[1])
    number = counts[0][:, 0, 0]
    assert (np.diff(number) > 1.0).any() and (rate is None or (np.diff(number) == 0.0).any())


def test_state_is_reset_copied_and_restored_with_the_worlds() -> None:
    sim = cart([everything()], 2)
    sim.control["stick"] = 1.0
    sim.step(20)
    saved, commands = sim.state.copy(), sim.control.array.copy()
    sim.step(20)
    after = sim.read_state()["diagram.all"].copy()
    sim.state.restore(saved, np.arange(2))
    sim.control.array[:] = commands
    sim.invalidate()
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
    d.connect(d.add("ramp", "t"), "command:push")
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
    sim.write("diagram.d.g.gain", [5.0, 7.0], worlds=[0, 2])
    sim.step()
    np.testing.assert_array_equal(sim.read("diagram.d.g"), [5.0, 3.0, 7.0])
    np.testing.assert_array_equal(sim.read("diagram.d.g.gain"), [5.0, 3.0, 7.0])


def test_bounds_that_are_written_do_not_cross() -> None:
    d = Diagram("d")
    d.connect(0.5, d.add("limiter", "l", lower=0.0, upper=1.0))
    d.connect("l", "command:push")
    sim = cart([d], 3)
    with pytest.raises(ModelError, match=naming("signal 'diagram.d.l.lower' 2 upper 1")):
        sim.write("diagram.d.l.lower", [0.5, 2.0], worlds=[0, 2])
    with pytest.raises(ModelError, match=naming("upper -1 lower 0")):
        sim.write("diagram.d.l.upper", -1.0)
    np.testing.assert_array_equal(sim.read("diagram.d.l.lower"), 0.0)
    sim.write("diagram.d.l.upper", 3.0, worlds=[1])
    sim.write("diagram.d.l.lower", 2.0, worlds=[1])
    sim.step()
    np.testing.assert_array_equal(sim.read("diagram.d.l"), [0.5, 2.0, 0.5])


def test_python_runs_on_the_host_over_all_worlds() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.position", d.add("python", "p", function=lambda t, x: 1.0 + t + x["in"]))
    d.connect("p", "command:push")
    sim = cart([d], 2, "auto")
    sim.step(3)
    assert sim.read("diagram.d.p")[0] == pytest.approx(1.02, abs=2e-2)
    assert sim.read("joint.rail.position")[0] > 0.0


def test_a_python_function_that_fails_is_reported_with_its_block() -> None:
    def function(time: np.ndarray, inputs: dict[str, np.ndarray]) -> np.ndarray:
        return inputs["a"]

    d = Diagram("d")
    d.connect(1.0, d.add("python", "p", function=function))
    d.connect("p", "command:push")
    with pytest.raises(ModelError, match=naming("diagram 'd' 'p' 'a'")) as caught:
        cart([d]).step()
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_diagram_goes_on_where_a_joint_gets_a_row() -> None:
    b = ModelBuilder(gravity=(0, 0, 0))
    body, other = (b.add_body(1.0, (1, 1, 1), label=label) for label in ("cart", "wheel"))
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_joint_revolute(body, other, axis=(0, 0, 1), label="pin")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    d = Diagram("d")
    d.connect(d.add("ramp", "t"), "command:push")
    b.add_diagram(d)
    sim = Simulation(b.finalize(), 2, config=SolverConfig(dt=DT))
    sim.step(5)
    sim.write("joint.pin.friction", 1.0)
    sim.step(5)
    np.testing.assert_allclose(sim.read("diagram.d.t"), 0.09)
    sim.reset([1])
    sim.step(2)
    np.testing.assert_allclose(sim.control["push"], [0.11, 0.01])


def test_a_ramp_follows_the_sign_of_a_written_slope() -> None:
    d = Diagram("d")
    d.connect(d.add("ramp", "t", slope=20.0, end=0.5), "command:push")
    sim = cart([d], 2)
    sim.write("diagram.d.t.slope", -20.0, worlds=1)
    sim.write("diagram.d.t.end", -0.3, worlds=1)
    sim.step(2)
    np.testing.assert_allclose(sim.control["push"], [20.0 * DT, -20.0 * DT])
    sim.step(8)
    np.testing.assert_allclose(sim.control["push"], [0.5, -0.3])


def test_a_written_duration_applies_from_the_next_move_on() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "goal", upper=2.0), d.add("point_to_point", "move", duration=0.2, order=3))
    d.connect("move.out", "command:push")
    sim = cart([d])
    sim.control["goal"] = 1.0
    sim.step(11)
    assert sim.read("diagram.d.move")[0] == pytest.approx(0.5)
    sim.write("diagram.d.move.duration", 0.4)
    sim.step(10)
    assert sim.read("diagram.d.move")[0] == pytest.approx(1.0)
    sim.control["goal"] = 2.0
    sim.step(21)
    assert sim.read("diagram.d.move")[0] == pytest.approx(1.5)


def test_driven_commands_are_the_diagrams() -> None:
    d = Diagram("d")
    d.connect(0.5, "command:push")
    sim = cart([d])
    with pytest.raises(ModelError, match=naming("diagram 'd'")):
        sim.control["push"] = 1.0
    with pytest.raises(ModelError, match=naming("diagram 'd'")):
        sim.command("push")
    sim.step()
    assert float(sim.control["push"][0]) == 0.5


def test_loops_open_ports_and_names_are_reported() -> None:
    d = Diagram("d")
    d.add("sum", "a")
    d.add("gain", "b")
    d.connect("a", "b")
    d.connect("b", "a.a")
    with pytest.raises(ModelError, match=naming("input 'a.b'")):
        d.check()
    d.connect(1.0, "a.b")
    with pytest.raises(ModelError, match=naming("diagram 'd'")):
        d.check()
    d.disconnect("a.a")
    d.connect(d.add("delay", "z"), "a.a")
    d.connect("b", "z")
    d.check()
    with pytest.raises(ModelError, match=naming("'gain'")):
        d.add("gian", "c")
    with pytest.raises(ModelError, match=naming("'joint.rail.position'")):
        d.connect("signal:joint.rial.position", "command:push")
        cart([d])
