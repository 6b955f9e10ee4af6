from __future__ import annotations

import numpy as np
import pytest

from gpusim.control import Diagram
from tests.unit.control.wrong import Cases, machine

WRONG = Cases()
wrong = WRONG.wrong


@wrong("diagram 'd' 'joint_rial_position' 'joint.rial.position'")
def unknown_signal() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rial.position", "command:push")
    machine(d)


@wrong("diagram 'd' 'speed'")
def command_in_another_unit() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.position", "command:speed")
    machine(d)


@wrong("diagram 'd' 'both' 'push'")
def commands_in_another_unit() -> None:
    d = Diagram("d")
    d.add("command", "both", command=["push", "speed"])
    p = d.add("mux", "p")
    d.connect(d.add("constant", "c", value=1.0, unit="s"), p["a"], p["b"])
    d.connect(p, "both")
    machine(d)


@wrong("diagram 'd' 'pussh' 'push'")
def unknown_command() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:pussh")
    machine(d)


@wrong("diagram 'd' signal 'joint.rail.reaction'")
def signal_that_needs_a_trial_step() -> None:
    d = Diagram("d")
    d.connect("signal:joint.rail.reaction", d.add("select_element", "c"))
    d.connect("c", "command:push")
    machine(d)


@wrong("diagram 'd' blocks 'push' 'push_2'")
def command_twice_in_a_diagram() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:push", "command:push")
    machine(d)


@wrong("diagram 'b' 'push' 'a'")
def command_twice_in_two_diagrams() -> None:
    both = [Diagram("a"), Diagram("b")]
    for d in both:
        d.connect(1.0, "command:push")
    machine(*both)


@wrong("diagram 'd' 'push'")
def input_with_the_label_of_an_actuator() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "push"), "command:speed")
    machine(d)


@wrong("diagram 'd' 'stick'")
def inputs_with_one_label() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "a", label="stick"), "command:push")
    d.connect(d.add("input", "b", label="stick"), "command:speed")
    machine(d)


@wrong("diagram 'b' 'stick'")
def inputs_of_two_diagrams_with_one_label() -> None:
    a, b = Diagram("a"), Diagram("b")
    a.connect(a.add("input", "stick"), "command:push")
    b.connect(b.add("input", "stick"), "command:speed")
    machine(a, b)


@wrong("diagram 'd' 'stick_2' 'stick'")
def input_as_a_command() -> None:
    d = Diagram("d")
    d.connect(d.add("input", "stick"), "command:stick")
    machine(d)


@wrong("diagram 'd' 0.005 0.01")
def faster_than_the_simulation() -> None:
    d = Diagram("d", rate=200.0)
    d.connect(1.0, "command:push")
    machine(d)


@wrong("diagram 'd' rate -1")
def negative_rate() -> None:
    Diagram("d", rate=-1.0)


@wrong("label 'lift'")
def label_of_two_words() -> None:
    Diagram("two words")


@wrong("diagram 'd'")
def label_twice() -> None:
    both = [Diagram("d"), Diagram("d")]
    both[0].connect(1.0, "command:push")
    both[1].connect(1.0, "command:speed")
    machine(*both)


@wrong("ModelBuilder.add_diagram 'lift' gpusim.control.Diagram")
def diagram_by_name() -> None:
    machine("lift")  # type: ignore[arg-type]


@wrong("diagram 'd' 'z' time 0.001 0.01")
def delay_shorter_than_a_period() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("delay", "z", time=0.001))
    d.connect("z", "command:push")
    machine(d)


@wrong("diagram 'd' 'z' time 1e+09 100000 0.01")
def delay_of_years() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("delay", "z", time=1e9))
    d.connect("z", "command:push")
    machine(d)


@wrong("diagram 'd' 'p' 7 1")
def python_of_a_wrong_shape() -> None:
    d = Diagram("d")
    d.connect(1.0, d.add("python", "p", function=lambda t, x: np.zeros(7)))
    d.connect("p", "command:push")
    machine(d).step()


@wrong("command 'push' diagram 'd'")
def command_by_hand() -> None:
    d = Diagram("d")
    d.connect(1.0, "command:push")
    sim = machine(d)
    sim.control["push"] = 1.0


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    WRONG.check(name)
