"""Wrong parameters of blocks: a sentence that names diagram, block, rule and mend; odd values of any type."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gpusim import ModelError
from gpusim.control import Diagram, block_kinds
from tests.unit.control.wrong import machine

HINGE = {"place": [0, 0, 0.1, 0, 0, 0, 1], "axis": [0, 1, 0], "kind": "turn"}
HEAVY = HINGE | {"mass": 1.0, "com": [0, 0, 0.1], "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "armature": 0.0}
PARAMETERS = [
    ("gain", {"gain": "fast"}, r"gain = 'fast' is not a number; give a number for gain"),
    ("gain", {"gain": float("nan")}, r"gain = nan is not finite; give a finite gain"),
    ("gain", {"unit": 5}, r"unit = 5 is no text; give it in quotes, .*"),
    ("constant", {"value": []}, r"value has no numbers; give one at least"),
    ("constant", {"value": [1.0, "x"]}, r"value = \[1\.0, 'x'\] is not 2 numbers; give 2 numbers"),
    ("sum", {"signs": "+*"}, r"signs = '\+\*' are not some of \+ and -; give one each input, as \"\+-\""),
    ("sum", {"signs": 2}, r"signs = 2 is no text; .*"),
    ("product", {"signs": ""}, r"signs = '' are not some of \* and /; .*"),
    ("extreme", {"which": "middle"}, r"which = 'middle' is unknown; give 'min' or 'max'"),
    ("extreme", {"count": 99}, r"count = 99 is not within 1 to 26; give one that is"),
    ("extreme", {"count": 2.0}, r"count = 2\.0 is no whole number; give one"),
    (
        "trigonometry",
        {"function": "sinh"},
        r"function = 'sinh' is unknown; give one of sin, cos, tan, asin, acos, atan",
    ),
    ("component", {"index": -1}, r"index = -1 is no whole number of at least 0; give one"),
    ("component", {"index": None}, r"index = None is no whole number of at least 0; give one"),
    ("integrator", {"lower": 1.0, "upper": 0.0}, r"lower = 1 is not below upper = 0; swap them"),
    ("integrator", {"initial": 2.0, "upper": 1.0}, r"initial = 2 is beyond its bounds; give one within them"),
    ("filter", {"time": -0.1}, r"time = -0\.1 must be above zero; give a positive time"),
    ("filter", {"time": None}, r"time = None is not a number; give a number for time"),
    ("filter2", {"frequency": 0.0}, r"frequency = 0 must be above zero; give a positive frequency"),
    ("transfer", {"num": [1, 0, 0], "den": [1, 1]}, r"num has order 2, den 1: it looks ahead; give a den of .*"),
    ("transfer", {"num": [1], "den": [0, 1]}, r"den begins with zero; leave it out"),
    ("transfer", {"num": 1.0, "den": [1, 1]}, r"num = 1\.0 are not 1 to 13 numbers; give coefficients, .*"),
    ("delay", {"samples": 0}, r"samples = 0 is not within 1 to 100000; give one"),
    ("delay", {"time": -1.0}, r"time = -1 must be above zero; give a positive time"),
    ("pid", {"lower": 1.0, "upper": -1.0}, r"lower = 1 is not below upper = -1; swap them"),
    ("pid", {"kp": [1.0]}, r"kp = \[1\.0\] is not a number; give a number for kp"),
    ("rate_limiter", {"rise": 0.0}, r"rise = 0 must be above zero; give a positive rise"),
    ("limiter", {}, r"it has no bound; give lower, upper or both"),
    ("dead_zone", {"lower": 1.0}, r"lower = 1 is not below upper = 0\.1; swap them"),
    ("relay", {"lower": None}, r"lower = None is not a number; give a number for lower"),
    ("table", {"x": [0, 2, 1], "y": [0, 1, 2]}, r"x do not rise from each to the next; sort them, each once"),
    ("table", {"x": [0, 1], "y": [0, 1, 2]}, r"y has shape \(3,\), not \(2,\); give 2 numbers for y"),
    ("table", {"x": [0], "y": [1]}, r"x = \[0\] has not 2 numbers or more; give as many"),
    (
        "table2",
        {"x": [0, 1], "y": [0, 1], "z": [[1, 2]]},
        r"z has shape \(1, 2\), not 2 rows \(y\) of 2 \(x\); give .*",
    ),
    ("step", {"time": -1.0}, r"time = -1 must not be negative; give time >= 0"),
    ("ramp", {"slope": 1.0, "end": -2.0}, r"slope = 1 leads away from end = -2; turn its sign"),
    ("sequence", {"times": [-1, 0], "values": [0, 1]}, r"times begin at -1 s, not at 0; begin with the value at 0"),
    ("sequence", {"times": [0, 1, 1], "values": [0, 1, 2]}, r"times do not rise from each to the next; sort them, .*"),
    ("sequence", {"times": [0], "values": [1], "repeat": 1}, r"repeat = 1 is neither True nor False; give one of them"),
    ("trajectory", {"times": [0, 1], "points": [1]}, r"points have shape \(1,\), and there are 2 times; give one .*"),
    ("move", {"order": 4}, r"order = 4 is neither 3 nor 5; give 3 \(cubic\) or 5 \(quintic\)"),
    ("input", {"lower": 1.0, "upper": 0.0}, r"lower = 1 is not below upper = 0; swap them"),
    ("input", {"default": 2.0}, r"default = 2 is not within -1 to 1; give one that is"),
    ("input", {"dead_zone": 1.0}, r"dead_zone = 1 is not within 0 to 1; give a share below 1"),
    ("input", {"keys": "ab"}, r"keys = 'ab' are not one or two names; give \(\"A\", \"D\"\)"),
    ("signal", {"signal": ""}, r"signal = '' is no name; give one, as \"joint\.hip\.position\""),
    ("command", {"command": "push", "lower": 1.0, "upper": 0.0}, r"lower = 1 is not below upper = 0; swap them"),
    ("compare", {"sign": "=>"}, r"sign = '=>' is unknown; give one of < <= > >= == !="),
    ("logic", {"operation": "if"}, r"operation = 'if' is unknown; give one of and, or, xor, not, nand, nor"),
    ("latch", {"initial": "on"}, r"initial = 'on' is neither True nor False; give one of them"),
    ("edge", {"which": "up"}, r"which = 'up' is unknown; give 'rising', 'falling' or 'both'"),
    ("counter", {"modulo": 1}, r"modulo = 1 is below 2; give 2 or more"),
    ("state_machine", {"states": [], "transitions": []}, r"states = \[\] are no names; give names, .*"),
    ("state_machine", {"states": ["a", "a"], "transitions": []}, r"states has 'a' twice; give each name once"),
    (
        "state_machine",
        {"states": ["a"], "transitions": [["a", "b", "go"]]},
        r"transition \['a', 'b', 'go'\] names 'b', .*",
    ),
    ("state_machine", {"states": ["a"], "transitions": [["a", "a", -1.0]]}, r"seconds of a transition = -1 must be .*"),
    ("state_machine", {"states": ["a"], "transitions": [["a"]]}, r"transition \['a'\] is not \[from, to, port or .*"),
    ("state_machine", {"states": ["a"], "transitions": None}, r"transitions = None are no list; give one, as .*"),
    (
        "state_machine",
        {"states": ["a"], "transitions": [], "initial": "b"},
        r"initial = 'b' is no state; give one of a",
    ),
    ("expression", {"text": "a +"}, r"text = 'a \+' is no formula; correct it, as 'a \* \(b - 1\)'"),
    ("expression", {"text": "sinh(a)"}, r"in 'sinh\(a\)' the function 'sinh' is unknown; there are .*"),
    ("expression", {"text": "math.sin(a)"}, r"in .* the function 'math\.sin' is unknown; there are .*"),
    ("expression", {"text": "max(a, b, key=a)"}, r"in .* max takes its values without names; leave 'key=' out"),
    ("expression", {"text": "atan2(a)"}, r"in 'atan2\(a\)' atan2 takes 2 values, not 1; give as many"),
    ("expression", {"text": "a + b", "names": ["a"]}, r"in 'a \+ b' the name 'b' is no input; give it in names, .*"),
    ("expression", {"text": "[a]"}, r"in '\[a\]' '\[a\]' is no arithmetic; use numbers, names and functions"),
    ("expression", {"text": "a // 2"}, r"in 'a // 2' the sign of FloorDiv is unknown; use \+ - \* / % \*\*, .*"),
    ("expression", {"text": "a.b"}, r"in 'a\.b' 'a\.b' is no arithmetic; use numbers, names and functions"),
    ("expression", {"text": "__import__('os')"}, r"in .* the function '__import__' is unknown; there are .*"),
    ("ik", {"joints": [HINGE], "start": [0.0], "lever": -0.1}, r"lever = -0\.1 must not be negative; give lever >= 0"),
    (
        "inverse_dynamics",
        {"joints": [HINGE]},
        r"a joint has no com; take joints from gpusim\.control\.heavy_chain\(\.\.\.\)",
    ),
    ("inverse_dynamics", {"joints": [HEAVY | {"mass": -1.0}]}, r"mass = -1 must not be negative; give mass >= 0"),
    (
        "inverse_dynamics",
        {"joints": [HEAVY], "gravity": 9.81},
        r"gravity has shape \(\), not \(3,\); give 3 numbers .*",
    ),
    ("python", {"function": 5}, r"function = 5 can't be called; give a function"),
    ("python", {"function": abs, "size": 0}, r"size = 0 is not within 1 to 4096; give one that is"),
]


@pytest.mark.parametrize("kind, parameters, message", PARAMETERS, ids=[f"{k}-{p}" for k, p, _ in PARAMETERS])
def test_wrong_parameters(kind: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        Diagram("d").add(kind, "b", **parameters)
    assert re.fullmatch(r"diagram 'd' block 'b': " + message, str(caught.value)), str(caught.value)


UNITS = {
    "mm": 'write "m" and a gain of 0.001', "kN": 'write "N" and a gain of 1000', "MPa": 'write "Pa" and a gain of 1e6',
    "µm": 'write "m" and a gain of 1e-6', "rpm": 'write "rad/s" and a gain of 0.10472',
    "RPM": 'write "rad/s" and a gain of 0.10472', "%": 'write "-" and a gain of 0.01',
    "N/mm": 'write "N/m" and a gain of 1000', "mm2": 'write "m2" and a gain of 1e-6',
    "l/min": 'write "l/s" and a gain of 0.0166667',
    "km/h": 'write "m/s" and a gain of 0.277778', "cm3/rev": 'write "m3/rad" and a gain of 1.59155e-7',
    "Nm": 'write "N m"', "kgm2": 'write "kg m2"', "Nmm": 'write "N m" and a gain of 0.001', "m/s^2": 'write "m/s2"',
    "kg/m³": 'write "kg/m3"', "N·m": 'write "N m"', "°/s": 'write "deg/s"', "degrees": 'write "deg"',
    "rad/sec": 'write "rad/s"', "m/s/s": 'write "m/s s"', "N m/rpm": 'write "N m s/rad" and a gain of 9.5493',
    **dict.fromkeys(
        ("furlong", "T", "kkg", "rpm2", "1e-3 m", "?", "m furlong", "furlong/mm"),
        'make it of m, kg, s, A, K, deg, N, J, W, Pa, V, Hz ..., as "N m/s", or "-" for none',
    ),
}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_unknown_units_are_told_what_to_write(unit: str) -> None:
    """And that is known."""
    with pytest.raises(ModelError) as caught:
        Diagram("d").add("gain", "b", unit=unit)
    assert str(caught.value) == f"diagram 'd' block 'b': unit = {unit!r} is unknown; {UNITS[unit]}"
    if UNITS[unit].startswith("write"):
        Diagram("d").add("gain", "b", unit=UNITS[unit].split('"')[1])


NEEDED: dict[str, dict[str, Any]] = {
    "chain": {"joints": [HINGE]}, "ik": {"joints": [HINGE], "start": [0.0]},
    "inverse_dynamics": {"joints": [HEAVY]},
    "filter": {"time": 0.1}, "derivative": {"time": 0.1}, "transfer": {"num": [1.0], "den": [1.0, 1.0]},
    "rate_limiter": {"rise": 1.0}, "limiter": {"lower": -1.0, "upper": 1.0}, "backlash": {"width": 0.1},
    "quantiser": {"step": 0.1}, "table": {"x": [0, 1], "y": [0, 1]}, "sequence": {"times": [0, 1], "values": [0, 1]},
    "table2": {"x": [0, 1], "y": [0, 1], "z": [[0, 1], [2, 3]]}, "trajectory": {"times": [0, 1], "points": [0, 1]},
    "state_machine": {"states": ["a", "b"], "transitions": [["a", "b", "go"]]}, "expression": {"text": "a + b"},
    "python": {"function": lambda time, given: time}, "signal": {"signal": "joint.rail.position"},
    "command": {"command": "push"},
}  # fmt: skip
ODD = (None, "x", "", b"x", [], (), {}, [None], [1, "a"], [[1, 2], [3, 4]], object(), float("nan"), float("inf"), -1, 0,
       2.5, True, 10**20, lambda *given: 0.0)  # fmt: skip
EVERY = [(kind, name) for kind, cls in block_kinds().items() for name in cls.parameters()]


@pytest.mark.parametrize("kind, name", EVERY, ids=[f"{kind}.{name}" for kind, name in EVERY])
def test_odd_parameters_are_refused_by_a_sentence_or_work(kind: str, name: str) -> None:
    """Whatever a parameter is given: a ModelError, or a diagram that compiles and runs."""
    infos, refused = machine().signals(), 0
    for value in ODD:
        d = Diagram("d", rate=10.0)
        try:
            block = d.add(kind, "b", **{**NEEDED.get(kind, {}), name: value})
            for port in d.ports("b")[0]:
                d.connect(0.5, block[port])
            controls = {"push": 0} | {item.label: 1 for item in d.operator_inputs}
            program = d.compile(infos, controls, 0.1)
        except ModelError as error:
            refused += 1
            assert "diagram 'd'" in str(error) and "; " in str(error) and "\n" not in str(error)
            continue
        program.run(np.zeros((1, 1)), program.parameters[None], program.initial[None].copy(), np.zeros((1, 2)))
    assert refused > 0
