"""Wrong diagrams: each gives one sentence that names the diagram, the block, the rule and the mend."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, UnknownNameError
from gpusim.control import Diagram

DT = 0.01


def machine(*diagrams: Diagram) -> Simulation:
    """A cart with a servo "push" and a motor "turn" on a rail, and diagrams."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (1, 1, 1), label="cart")
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    b.add_servo(rail, "velocity", damping=5.0, label="speed")
    for d in diagrams:
        b.add_diagram(d)
    return Simulation(b.finalize(), config=SolverConfig(dt=DT))


WRONG: dict[str, tuple[Callable[[], Any], str]] = {}
"""By what is wrong: a function that does it, and the whole message, a regular expression."""


def wrong(message: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorator: note a case."""

    def noted(case: Callable[[], Any]) -> Callable[[], Any]:
        assert case.__name__ not in WRONG
        WRONG[case.__name__] = case, message
        return case

    return noted


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


# The simulation around it.


@wrong(r"diagram 'd' block 'joint_rial_position': unknown signal 'joint\.rial\.position'; did you mean .*")
def unknown_signal() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rial.position", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'speed': its wire is in m, and command 'speed' takes m/s; put a gain with a unit between")
def command_in_another_unit() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.position", "command:speed")
    machine(d)


@wrong(r"diagram 'd' block 'both': its wire is in s, and command 'push' takes m; put a gain with a unit between")
def commands_in_another_unit() -> None:
    d = Diagram("d")
    d.add("command", "both", command=["push", "speed"])
    p = d.add("pack", "p")
    d.connect(d.add("constant", "c", value=1.0, unit="s"), p["a"], p["b"])
    d.connect(p, "both")
    machine(d)


@wrong(r"diagram 'd': unknown command 'pussh'; did you mean 'push'\?")
def unknown_command() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:pussh")
    machine(d)


@wrong(r"diagram 'd' block '.*': signal 'joint\.rail\.reaction' is found by a trial of the next step; read one .*")
def signal_that_needs_a_trial_step() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.reaction", d.add("component", "c"))
    d.connect("c", "command:push")
    machine(d)


@wrong(r"diagram 'd': blocks 'push' and 'push_2' both give the command 'push'; give it once; join what comes by .*")
def command_twice_in_a_diagram() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:push", "command:push")
    machine(d)


@wrong(r"diagram 'b': gives the command 'push', as diagram 'a' does; give it by one of them")
def command_twice_in_two_diagrams() -> None:
    both = [Diagram("a"), Diagram("b")]
    for d in both:
        d.connect(1.0, "command:push")
    machine(*both)


@wrong(r"diagram 'd': its input 'push' has the label of another command; give the block another name, or a label")
def input_with_the_label_of_an_actuator() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "push"), "command:speed")
    machine(d)


@wrong(r"diagram 'd': two inputs have the label 'stick'; give them different labels")
def inputs_with_one_label() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "a", label="stick"), "command:push")
    d.connect(d.add("input", "b", label="stick"), "command:speed")
    machine(d)


@wrong(r"diagram 'b': its input 'stick' has the label of another command; give the block another name, or a label")
def inputs_of_two_diagrams_with_one_label() -> None:
    a, b = Diagram("a"), Diagram("b")
    a.connect(a.add("input", "stick"), "command:push")
    b.connect(b.add("input", "stick"), "command:speed")
    machine(a, b)


@wrong(r"diagram 'd' block 'stick_2': 'stick' is an input of the diagram itself; give another command")
def input_as_a_command() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "stick"), "command:stick")
    machine(d)


@wrong(r"diagram 'd': its period of 0\.005 s is shorter than the step of 0\.01 s; give a rate of 100 at most, or .*")
def faster_than_the_simulation() -> None:
    d = Diagram("d", rate=200.0)
    d.connect(1.0, "command:push")
    machine(d)


@wrong(r"diagram 'd': rate = -1 must be above zero; give a positive rate")
def negative_rate() -> None:
    Diagram("d", rate=-1.0)


@wrong(r"Diagram: label = 'two words' is no name; give one word, as 'lift'")
def label_of_two_words() -> None:
    Diagram("two words")


@wrong(r"diagram 'd': there is one of this label already; give another label")
def label_twice() -> None:
    both = [Diagram("d"), Diagram("d")]
    both[0].connect(1.0, "command:push")
    both[1].connect(1.0, "command:speed")
    machine(*both)


@wrong(r"ModelBuilder\.add_diagram: 'lift' is no diagram; give a gpusim\.control\.Diagram")
def diagram_by_name() -> None:
    machine("lift")  # type: ignore[arg-type]


@wrong(r"diagram 'd' block 'z': time = 0\.001 s is less than half of a period of 0\.01 s; give a longer one")
def delay_shorter_than_a_period() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("delay", "z", time=0.001))
    d.connect("z", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'z': time = 1e\+09 s is more than 100000 periods of 0\.01 s; give a shorter one, or .*")
def delay_of_years() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("delay", "z", time=1e9))
    d.connect("z", "command:push")
    machine(d)


@wrong(r"diagram 'd' block 'p': its function has returned shape \(7,\), not \(1,\); return one value for each world")
def python_of_a_wrong_shape() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("python", "p", function=lambda t, x: np.zeros(7)))
    d.connect("p", "command:push")
    machine(d).step()


@wrong(r"command 'push': diagram 'd' gives it before each sample; write an input of the diagram")
def command_by_hand() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:push")
    sim = machine(d)
    sim.control["push"] = 1.0


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    case, message = WRONG[name]
    with pytest.raises((ModelError, UnknownNameError)) as caught:
        case()
    assert re.fullmatch(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)
