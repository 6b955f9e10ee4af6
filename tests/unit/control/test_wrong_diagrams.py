from __future__ import annotations

import pytest

from gpusim.control import Diagram
from tests.unit.control.wrong import Cases, machine

WRONG = Cases()
wrong = WRONG.wrong


# Loops.


@wrong("diagram 'd'")
def loop_of_two() -> None:
    d = Diagram("d")
    d.add("gain", "a")
    d.connect("a", d.add("abs", "b"))
    d.connect("b", "a")
    machine(d)


@wrong("diagram 'd'")
def loop_of_one() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("sum", "a")["a"])
    d.connect("a", "a.b")
    machine(d)


@wrong("diagram 'd'")
def loop_through_a_subsystem() -> None:
    inner = Diagram("inner")
    inner.connect(inner.add("inport", "x"), inner.add("gain", "half", gain=0.5))
    inner.connect("half", inner.add("outport", "y"))
    d = Diagram("d")
    d.add_subsystem("sub", inner)
    d.connect(1.0, d.add("sum", "a")["a"])
    d.connect("a", "sub.x")
    d.connect("sub.y", "a.b")
    machine(d)


@wrong("diagram 'd'")
def loop_through_a_transfer_function_with_feedthrough() -> None:
    d = Diagram("d")
    d.add("transfer", "transfer", num=[1.0, 2.0], den=[1.0, 1.0])
    d.connect(1.0, d.add("sum", "a")["a"])
    d.connect("a", "transfer")
    d.connect("transfer", "a.b")
    machine(d)


@wrong("diagram 'd' 'mux'")
def loop_that_grows() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("mux", "p")["a"])
    d.connect("p", d.add("delay", "z"))
    d.connect("z", "p.b")
    d.connect("p", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


# Ports and wires.


@wrong("diagram 'd' 's' 's.b'")
def open_port() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("sum", "s")["a"])
    d.connect("s", "command:push")
    machine(d)


@wrong("diagram 'd' 'sub/half' 'sub/half.in' 'sub.x'")
def open_port_of_a_subsystem() -> None:
    inner = Diagram("inner")
    inner.connect(inner.add("inport", "x"), inner.add("gain", "half", gain=0.5))
    inner.connect("half", inner.add("outport", "y"))
    d = Diagram("d")
    d.connect(d.add_subsystem("sub", inner)["y"], "command:push")
    machine(d)


def nested() -> Diagram:
    inner = Diagram("inner")
    inner.connect(inner.add("inport", "x"), inner.add("gain", "f", gain=0.5))
    inner.connect("f", inner.add("outport", "y"))
    mid = Diagram("mid")
    for name in ("A", "B"):
        mid.add_subsystem(name, inner)
    mid.connect(mid.add("inport", "u"), "A.x")
    mid.connect("B.y", mid.add("outport", "v"))
    return mid


@wrong("diagram 'd' 'M/A/f' 'M/A/f.in' 'M.u'")
def open_port_of_a_nested_subsystem() -> None:
    mid = nested()
    mid.connect("A.y", "B.x")
    d = Diagram("d")
    d.connect(d.add_subsystem("M", mid)["v"], "command:push")
    machine(d)


@wrong("diagram 'd' 'M/B/f' 'M/B/f.in' 'M/B.x'")
def open_port_within_a_subsystem() -> None:
    d = Diagram("d")
    m = d.add_subsystem("M", nested())
    d.connect(1.0, m["u"])
    d.connect(m["v"], "command:push")
    machine(d)


@wrong("diagram 'd' 'g.in' 'constant.out' 'sum'")
def two_wires_to_one_input() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("gain", "g"))
    d.connect(2.0, "g")


@wrong("diagram 'd' 's' 's.a' 's.b'")
def which_input() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("sum", "s"))


@wrong("diagram 'd' 'w' 'w.along' 'w.across'")
def which_output() -> None:
    d = Diagram("d")
    d.add("project", "w")
    d.connect("w", d.add("gain", "g"))


@wrong("diagram 'd' 'c'")
def wire_into_a_source() -> None:
    d = Diagram("d")
    d.add("constant", "c")
    d.connect(1.0, "c")


@wrong("diagram 'd' 'push'")
def wire_out_of_a_command() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:push")
    d.connect("push", "command:speed")


@wrong("diagram 'd' 'g' 'inn' 'in'")
def unknown_port() -> None:
    d = Diagram("d")
    d.add("gain", "g")
    d.connect(1.0, "g.inn")


@wrong("diagram 'd' 'gian' 'gain'")
def unknown_block() -> None:
    d = Diagram("d")
    d.add("gain", "gain")
    d.connect("gian", "command:push")


@wrong("diagram 'd' 'a' 'integrater' 'integrator'")
def unknown_kind() -> None:
    Diagram("d").add("integrater", "a")


@wrong("diagram 'd' 'a' 5")
def kind_that_is_no_name() -> None:
    Diagram("d").add(5, "a")  # type: ignore[arg-type]


@wrong("diagram 'd' 'a' 'again' 'gain'")
def unknown_parameter() -> None:
    Diagram("d").add("gain", "a", again=2.0)


@wrong("diagram 'd' 'a' 'lowpass' time")
def missing_parameter() -> None:
    Diagram("d").add("lowpass", "a")


@wrong("diagram 'd' 'a'")
def name_twice() -> None:
    d = Diagram("d")
    d.add("gain", "a")
    d.add("abs", "a")


@wrong("diagram 'd' 'a.b'")
def name_with_a_dot() -> None:
    Diagram("d").add("gain", "a.b")


@wrong("diagram 'd' 7")
def name_that_is_a_number() -> None:
    Diagram("d").add("gain", 7)  # type: ignore[arg-type]


@wrong("diagram 'd' 'g.in'")
def disconnect_nothing() -> None:
    d = Diagram("d")
    d.add("gain", "g")
    d.disconnect("g")


@wrong("diagram 'd'")
def connect_to_nothing() -> None:
    d = Diagram("d")
    d.connect(d.add("gain", "g"))


@wrong("diagram 'd' block 'g' 'other'")
def block_of_another_diagram() -> None:
    Diagram("d").connect(Diagram("other").add("gain", "g"), "command:push")


@wrong("diagram 'd' 1 block.port")
def port_that_is_a_list() -> None:
    Diagram("d").connect([1], "command:push")  # type: ignore[arg-type]


@wrong("diagram 'd'")
def nothing_in_it() -> None:
    machine(Diagram("d"))


# Subsystems.


@wrong("diagram 'inner' 'again' 'd'")
def cycle_of_subsystems() -> None:
    d, middle, inner = Diagram("d"), Diagram("middle"), Diagram("inner")
    d.add_subsystem("m", middle)
    middle.add_subsystem("i", inner)
    inner.add_subsystem("again", d)


@wrong("diagram 'd' 'self'")
def subsystem_of_itself() -> None:
    d = Diagram("d")
    d.add_subsystem("self", d)


@wrong("diagram 'd' 's' 'inner'")
def subsystem_by_name() -> None:
    Diagram("d").add_subsystem("s", "inner")  # type: ignore[arg-type]


@wrong("diagram 'd' 'x' 'input'")
def inlet_of_a_diagram_alone() -> None:
    d = Diagram("d")
    d.connect(d.add("inport", "x"), "command:push")
    machine(d)


@wrong("diagram 'd' 'sub' 'z'")
def unknown_port_of_a_subsystem() -> None:
    inner = Diagram("inner")
    inner.connect(1.0, inner.add("outport", "y"))
    d = Diagram("d")
    d.add_subsystem("sub", inner)
    d.connect("sub.z", "command:push")


# Units and shapes.


@wrong("diagram 'd' 's'")
def newtons_and_meters() -> None:
    d = Diagram("d")
    d.connect(d.add("constant", "force", unit="N"), d.add("sum", "s")["a"])
    d.connect("signal:joint.rail.position", "s.b")
    d.connect("s", "command:push")
    machine(d)


@wrong("diagram 'd' 't'")
def sine_of_a_length() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.position", d.add("trigonometry", "t"))
    d.connect("t", "command:push")
    machine(d)


@wrong("diagram 'd' 'p' rate")
def rate_that_is_none() -> None:
    d = Diagram("d")
    p = d.add("pid", "p", measured_rate=True)
    d.connect("signal:joint.rail.position", p["in"], p["rate"])
    d.connect("p", "command:push")
    machine(d)


@wrong("diagram 'd' 'g' unit 'furlong'")
def unknown_unit() -> None:
    Diagram("d").add("gain", "g", unit="furlong")


@wrong("diagram 'd' 's' 2 3")
def vectors_of_different_lengths() -> None:
    d = Diagram("d")
    d.connect(d.add("constant", "two", value=[1.0, 2.0]), d.add("sum", "s")["a"])
    d.connect(d.add("constant", "three", value=[1.0, 2.0, 3.0]), "s.b")
    d.connect("s", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


@wrong("diagram 'd' 'push' 3 'select_element'")
def vector_as_a_command() -> None:
    d = Diagram("d")
    d.connect("signal:body.cart.position", "command:push")
    machine(d)


@wrong("diagram 'd' 'c' index 3")
def component_that_is_not_there() -> None:
    d = Diagram("d")
    d.connect("signal:body.cart.position", d.add("select_element", "c", index=3))
    d.connect("c", "command:push")
    machine(d)


@wrong("diagram 'd' 'w' 3 1")
def along_a_number() -> None:
    d = Diagram("d")
    w = d.add("project", "w")
    d.connect(1.0, w["in"], w["direction"])
    d.connect("w.along", "command:push")
    machine(d)


@wrong("diagram 'd' 'i' initial 2 3")
def integrator_of_another_length() -> None:
    d = Diagram("d")
    d.connect("signal:body.cart.position", d.add("integrator", "i", initial=[0.0, 0.0]))
    d.connect("i", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


@wrong("diagram 'd' 'm' 'select_element'")
def state_machine_of_vectors() -> None:
    d = Diagram("d")
    d.add("state_machine", "m", states=["a", "b"], transitions=[["a", "b", "go"]])
    d.connect("signal:body.cart.position", "m.go")
    d.connect("m.state", "command:push")
    machine(d)


def vector_as_a_switch(kind: str, port: str) -> None:
    d = Diagram("d")
    b = d.add(kind, "b")
    d.connect("signal:body.cart.position", b["in"], b[port])
    d.connect("b", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


@wrong("diagram 'd' 'b' reset 3 'select_element'")
def integrator_with_a_vector_as_reset() -> None:
    vector_as_a_switch("integrator", "reset")


@wrong("diagram 'd' 'b' reset 3 'select_element'")
def pid_with_a_vector_as_reset() -> None:
    vector_as_a_switch("pid", "reset")


@wrong("diagram 'd' 'b' sample 3 'select_element'")
def hold_of_a_vector_as_sample() -> None:
    vector_as_a_switch("sample_hold", "sample")


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    WRONG.check(name)
