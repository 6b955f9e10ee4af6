"""Diagrams that do not fit the simulation around them: signals, commands, inputs, rates, labels; one sentence each."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim.control import Diagram
from tests.unit.control.wrong import Cases, machine

WRONG = Cases()
wrong = WRONG.wrong


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
    WRONG.check(name)
