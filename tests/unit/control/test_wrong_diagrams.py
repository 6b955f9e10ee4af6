"""Wrong diagrams: each gives one sentence that names the diagram, the block, the rule and the mend."""

from __future__ import annotations

import pytest

from gpusim.control import Diagram
from tests.unit.control.wrong import Cases, machine

WRONG = Cases()
wrong = WRONG.wrong


# Loops.


@wrong(r"diagram 'd': the loop (a -> b -> a|b -> a -> b) has no block that waits for the next sample; put a delay, .*")
def loop_of_two() -> None:
    d = Diagram("d")
    d.add("gain", "a")
    d.connect("a", d.add("abs", "b"))
    d.connect("b", "a")
    machine(d)


@wrong(r"diagram 'd': the loop a -> a has no block that waits for the next sample; put a delay, .*")
def loop_of_one() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("sum", "a")["a"])
    d.connect("a", "a.b")
    machine(d)


@wrong(r"diagram 'd': the loop .*sub/half.* has no block that waits for the next sample; put a delay, .*")
def loop_through_a_subsystem() -> None:
    inner = Diagram("inner")
    inner.connect(inner.add("inlet", "x"), inner.add("gain", "half", gain=0.5))
    inner.connect("half", inner.add("outlet", "y"))
    d = Diagram("d")
    d.add_subsystem("sub", inner)
    d.connect(1.0, d.add("sum", "a")["a"])
    d.connect("a", "sub.x")
    d.connect("sub.y", "a.b")
    machine(d)


@wrong(r"diagram 'd': the loop .*transfer.* has no block that waits for the next sample; put a delay, .*")
def loop_through_a_transfer_function_with_feedthrough() -> None:
    d = Diagram("d")
    d.add("transfer", "transfer", num=[1.0, 2.0], den=[1.0, 1.0])
    d.connect(1.0, d.add("sum", "a")["a"])
    d.connect("a", "transfer")
    d.connect("transfer", "a.b")
    machine(d)


@wrong(r"diagram 'd': shapes of wires grow around a loop; take a block 'pack' out of it")
def loop_that_grows() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("pack", "p")["a"])
    d.connect("p", d.add("delay", "z"))
    d.connect("z", "p.b")
    d.connect("p", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


# Ports and wires.


@wrong(r"diagram 'd' block 's': its input 's\.b' is open; connect something to 's\.b'")
def open_port() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("sum", "s")["a"])
    d.connect("s", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'sub/half': its input 'sub/half\.in' is open; connect something to 'sub\.x'")
def open_port_of_a_subsystem() -> None:
    inner = Diagram("inner")
    inner.connect(inner.add("inlet", "x"), inner.add("gain", "half", gain=0.5))
    inner.connect("half", inner.add("outlet", "y"))
    d = Diagram("d")
    d.connect(d.add_subsystem("sub", inner)["y"], "command:push")
    machine(d)


def nested() -> Diagram:
    """A diagram "mid" with input u and output v, through two subsystems A and B of one kind."""
    inner = Diagram("inner")
    inner.connect(inner.add("inlet", "x"), inner.add("gain", "f", gain=0.5))
    inner.connect("f", inner.add("outlet", "y"))
    mid = Diagram("mid")
    for name in ("A", "B"):
        mid.add_subsystem(name, inner)
    mid.connect(mid.add("inlet", "u"), "A.x")
    mid.connect("B.y", mid.add("outlet", "v"))
    return mid


@wrong(r"diagram 'd' block 'M/A/f': its input 'M/A/f\.in' is open; connect something to 'M\.u'")
def open_port_of_a_nested_subsystem() -> None:
    mid = nested()
    mid.connect("A.y", "B.x")
    d = Diagram("d")
    d.connect(d.add_subsystem("M", mid)["v"], "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'M/B/f': its input 'M/B/f\.in' is open; connect something to 'M/B\.x'")
def open_port_within_a_subsystem() -> None:
    d = Diagram("d")
    m = d.add_subsystem("M", nested())
    d.connect(1.0, m["u"])
    d.connect(m["v"], "command:push")
    machine(d)


@wrong(r"diagram 'd': 'g\.in' has a wire from 'constant\.out' already; join what comes by a block 'sum', or .*")
def two_wires_to_one_input() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("gain", "g"))
    d.connect(2.0, "g")


@wrong(r"diagram 'd' block 's': has several inputs: 's\.a', 's\.b'; name one")
def which_input() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("sum", "s"))


@wrong(r"diagram 'd' block 'w': has several outputs: 'w\.along', 'w\.across'; name one")
def which_output() -> None:
    d = Diagram("d")
    d.add("along", "w")
    d.connect("w", d.add("gain", "g"))


@wrong(r"diagram 'd' block 'c': has no input; join another block")
def wire_into_a_source() -> None:
    d = Diagram("d")
    d.add("constant", "c")
    d.connect(1.0, "c")


@wrong(r"diagram 'd' block 'push': has no output; join another block")
def wire_out_of_a_command() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:push")
    d.connect("push", "command:speed")


@wrong(r"diagram 'd' block 'g': unknown input 'inn'; did you mean 'in'\?")
def unknown_port() -> None:
    d = Diagram("d")
    d.add("gain", "g")
    d.connect(1.0, "g.inn")


@wrong(r"diagram 'd': unknown block 'gian'; did you mean 'gain'\?")
def unknown_block() -> None:
    d = Diagram("d")
    d.add("gain", "gain")
    d.connect("gian", "command:push")


@wrong(r"diagram 'd' block 'a': unknown kind of block 'integrater'; did you mean 'integrator'.*\?")
def unknown_kind() -> None:
    Diagram("d").add("integrater", "a")


@wrong(r"diagram 'd' block 'a': unknown kind of block 5; known: .*")
def kind_that_is_no_name() -> None:
    Diagram("d").add(5, "a")  # type: ignore[arg-type]


@wrong(r"diagram 'd' block 'a': unknown parameter of gain 'again'; did you mean 'gain'\?")
def unknown_parameter() -> None:
    Diagram("d").add("gain", "a", again=2.0)


@wrong(r"diagram 'd' block 'a': a block 'filter' needs time; give time=\.\.\.")
def missing_parameter() -> None:
    Diagram("d").add("filter", "a")


@wrong(r"diagram 'd': there is a block 'a' already; give another name")
def name_twice() -> None:
    d = Diagram("d")
    d.add("gain", "a")
    d.add("abs", "a")


@wrong(r"diagram 'd': 'a\.b' is no name of a block; give one word without .*")
def name_with_a_dot() -> None:
    Diagram("d").add("gain", "a.b")


@wrong(r"diagram 'd': 7 is no name of a block; give one word without .*")
def name_that_is_a_number() -> None:
    Diagram("d").add("gain", 7)  # type: ignore[arg-type]


@wrong(r"diagram 'd': 'g\.in' has no wire; name an input that has one")
def disconnect_nothing() -> None:
    d = Diagram("d")
    d.add("gain", "g")
    d.disconnect("g")


@wrong(r"diagram 'd': connect\(g\) names no target; give one input at least")
def connect_to_nothing() -> None:
    d = Diagram("d")
    d.connect(d.add("gain", "g"))


@wrong(r"diagram 'd': block 'g' belongs to diagram 'other'; join blocks of one diagram")
def block_of_another_diagram() -> None:
    Diagram("d").connect(Diagram("other").add("gain", "g"), "command:push")


@wrong(r"diagram 'd': \[1\] is no port; give \"block\" or \"block\.port\"")
def port_that_is_a_list() -> None:
    Diagram("d").connect([1], "command:push")  # type: ignore[arg-type]


@wrong(r"diagram 'd': has no block; add some, with add\(\)")
def nothing_in_it() -> None:
    machine(Diagram("d"))


# Subsystems.


@wrong(r"diagram 'inner' block 'again': diagram 'd' would hold itself; give a diagram that does not .*")
def cycle_of_subsystems() -> None:
    d, middle, inner = Diagram("d"), Diagram("middle"), Diagram("inner")
    d.add_subsystem("m", middle)
    middle.add_subsystem("i", inner)
    inner.add_subsystem("again", d)


@wrong(r"diagram 'd' block 'self': diagram 'd' would hold itself; give a diagram that does not .*")
def subsystem_of_itself() -> None:
    d = Diagram("d")
    d.add_subsystem("self", d)


@wrong(r"diagram 'd' block 's': 'inner' is no Diagram; give one")
def subsystem_by_name() -> None:
    Diagram("d").add_subsystem("s", "inner")  # type: ignore[arg-type]


@wrong(r"diagram 'd' block 'x': is an input of a subsystem, and the diagram is used alone; put an 'input' or .*")
def inlet_of_a_diagram_alone() -> None:
    d = Diagram("d")
    d.connect(d.add("inlet", "x"), "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'sub': unknown output 'z'; known: y")
def unknown_port_of_a_subsystem() -> None:
    inner = Diagram("inner")
    inner.connect(1.0, inner.add("outlet", "y"))
    d = Diagram("d")
    d.add_subsystem("sub", inner)
    d.connect("sub.z", "command:push")


# Units and shapes.


@wrong(
    r"diagram 'd' block 's': its inputs have different units \(a in kg m/s2, b in m\); put a gain with a unit between"
)
def newtons_and_meters() -> None:
    d = Diagram("d")
    d.connect(d.add("constant", "force", unit="N"), d.add("sum", "s")["a"])
    d.connect("signal:joint.rail.position", "s.b")
    d.connect("s", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 't': its input is in m, not in rad; put a gain with a unit between")
def sine_of_a_length() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.position", d.add("trigonometry", "t"))
    d.connect("t", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'p': rate is in m, not in m/s as the error is; join the rate of the same quantity")
def rate_that_is_none() -> None:
    d = Diagram("d")
    p = d.add("pid", "p", measured_rate=True)
    d.connect("signal:joint.rail.position", p["in"], p["rate"])
    d.connect("p", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'g': unit = 'furlong' is unknown; make it of m, kg, s, .*")
def unknown_unit() -> None:
    Diagram("d").add("gain", "g", unit="furlong")


@wrong(
    r"diagram 'd' block 's': its inputs have different shapes \(a \(2,\), b \(3,\)\); join vectors of one length, or .*"
)
def vectors_of_different_lengths() -> None:
    d = Diagram("d")
    d.connect(d.add("constant", "two", value=[1.0, 2.0]), d.add("sum", "s")["a"])
    d.connect(d.add("constant", "three", value=[1.0, 2.0, 3.0]), "s.b")
    d.connect("s", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'push': a command takes a number, and the wire has 3; choose one by a block 'component'")
def vector_as_a_command() -> None:
    d = Diagram("d")
    d.connect("signal:body.cart.position", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'c': index = 3 is not within a wire of 3; give a smaller one")
def component_that_is_not_there() -> None:
    d = Diagram("d")
    d.connect("signal:body.cart.position", d.add("component", "c", index=3))
    d.connect("c", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'w': in is a vector of three, and the wire has 1; choose three by 'component'")
def along_a_number() -> None:
    d = Diagram("d")
    w = d.add("along", "w")
    d.connect(1.0, w["in"], w["direction"])
    d.connect("w.along", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'i': initial has 2 numbers, its input 3; give as many")
def integrator_of_another_length() -> None:
    d = Diagram("d")
    d.connect("signal:body.cart.position", d.add("integrator", "i", initial=[0.0, 0.0]))
    d.connect("i", d.add("norm", "n"))
    d.connect("n", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'm': its inputs take numbers, not vectors; choose one by 'component'")
def state_machine_of_vectors() -> None:
    d = Diagram("d")
    d.add("state_machine", "m", states=["a", "b"], transitions=[["a", "b", "go"]])
    d.connect("signal:body.cart.position", "m.go")
    d.connect("m.state", "command:push")
    machine(d)


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    WRONG.check(name)
