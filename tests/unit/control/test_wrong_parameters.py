from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelError
from gpusim.control import Diagram, block_kinds
from tests.message_snapshot import naming
from tests.unit.control.wrong import machine

HINGE = {"pose": [0, 0, 0.1, 0, 0, 0, 1], "axis": [0, 1, 0], "kind": "revolute"}
HEAVY = HINGE | {"mass": 1.0, "com": [0, 0, 0.1], "inertia": [0.1, 0.1, 0.1, 0, 0, 0], "armature": 0.0}
PARAMETERS = [
    ("gain", {"gain": "fast"}, "gain 'fast'"),
    ("gain", {"gain": float("nan")}, "gain nan"),
    ("gain", {"unit": 5}, "unit 5"),
    ("constant", {"value": []}, "value"),
    ("constant", {"value": [1.0, "x"]}, "value 1.0 'x' 2"),
    ("sum", {"signs": "+*"}, "signs '+*'"),
    ("sum", {"signs": 2}, "signs 2"),
    ("product", {"signs": ""}, "signs"),
    ("minmax", {"which": "middle"}, "which 'middle' 'min' 'max'"),
    ("minmax", {"count": 99}, "count 99 1 26"),
    ("minmax", {"count": 2.0}, "count 2.0"),
    (
        "trigonometry",
        {"function": "sinh"},
        "function 'sinh'",
    ),
    ("select_element", {"index": -1}, "index -1 0"),
    ("select_element", {"index": None}, "index None 0"),
    ("integrator", {"lower": 1.0, "upper": 0.0}, "lower 1 upper 0"),
    ("integrator", {"initial": 2.0, "upper": 1.0}, "initial 2"),
    ("lowpass", {"time": -0.1}, "time -0.1"),
    ("lowpass", {"time": None}, "time None"),
    ("lowpass2", {"frequency": 0.0}, "frequency 0"),
    ("transfer", {"num": [1, 0, 0], "den": [1, 1]}, "num 2 1"),
    ("transfer", {"num": [1], "den": [0, 1]}, "den"),
    ("transfer", {"num": 1.0, "den": [1, 1]}, "num 1.0 1 13"),
    ("delay", {"samples": 0}, "samples 0 1 100000"),
    ("delay", {"time": -1.0}, "time -1"),
    ("pid", {"lower": 1.0, "upper": -1.0}, "lower 1 upper -1"),
    ("pid", {"kp": [1.0]}, "kp 1.0"),
    ("rate_limiter", {"rise": 0.0}, "rise 0"),
    ("limiter", {}, "diagram 'd' 'b'"),
    ("dead_zone", {"lower": 1.0}, "lower 1 upper 0.1"),
    ("relay", {"lower": None}, "lower None"),
    ("lookup", {"x": [0, 2, 1], "y": [0, 1, 2]}, "x"),
    ("lookup", {"x": [0, 1], "y": [0, 1, 2]}, "y 3 2"),
    ("lookup", {"x": [0], "y": [1]}, "x 0 2"),
    (
        "lookup2d",
        {"x": [0, 1], "y": [0, 1], "z": [[1, 2]]},
        "z 1 2",
    ),
    ("step", {"time": -1.0}, "time -1"),
    ("ramp", {"slope": 1.0, "end": -2.0}, "slope 1 end -2"),
    ("ramp", {"slope": 0.0, "end": 2.0}, "slope 0 end 2"),
    ("sequence", {"times": [-1, 0], "values": [0, 1]}, "times -1 0"),
    ("sequence", {"times": [0, 1, 1], "values": [0, 1, 2]}, "times"),
    ("sequence", {"times": [0], "values": [1], "repeat": 1}, "repeat 1"),
    ("trajectory", {"times": [0, 1], "points": [1]}, "points 1 2"),
    ("point_to_point", {"order": 4}, "order 4 3 5"),
    ("input", {"lower": 1.0, "upper": 0.0}, "lower 1 upper 0"),
    ("input", {"default": 2.0}, "default 2 -1 1"),
    ("input", {"dead_zone": 1.0}, "dead_zone 1 0"),
    ("input", {"keys": "ab"}, "keys 'ab'"),
    ("signal", {"signal": ""}, "signal joint.hip.position"),
    ("command", {"command": "push", "lower": 1.0, "upper": 0.0}, "lower 1 upper 0"),
    ("compare", {"sign": "=>"}, "sign '=>'"),
    ("logic", {"operation": "if"}, "operation 'if'"),
    ("sr_latch", {"initial": "on"}, "initial 'on'"),
    ("edge_detector", {"which": "up"}, "which 'up' 'rising' 'falling' 'both'"),
    ("counter", {"modulo": 1}, "modulo 1 2"),
    ("state_machine", {"states": [], "transitions": []}, "states"),
    ("state_machine", {"states": ["a", "a"], "transitions": []}, "states 'a'"),
    (
        "state_machine",
        {"states": ["a"], "transitions": [["a", "b", "go"]]},
        "'a' 'b' 'go'",
    ),
    ("state_machine", {"states": ["a"], "transitions": [["a", "a", -1.0]]}, "transition -1"),
    ("state_machine", {"states": ["a"], "transitions": [["a"]]}, "'a'"),
    ("state_machine", {"states": ["a"], "transitions": None}, "transitions None"),
    (
        "state_machine",
        {"states": ["a"], "transitions": [], "initial": "b"},
        "initial 'b'",
    ),
    ("expression", {"text": "a +"}, "text"),
    ("expression", {"text": "sinh(a)"}, "'sinh(a)' 'sinh'"),
    ("expression", {"text": "math.sin(a)"}, "'math.sin'"),
    ("expression", {"text": "max(a, b, key=a)"}, "'key='"),
    ("expression", {"text": "atan2(a)"}, "'atan2(a)' 2 1"),
    ("expression", {"text": "a + b", "names": ["a"]}, "'b'"),
    ("expression", {"text": "[a]"}, "'[a]'"),
    ("expression", {"text": "a // 2"}, "2"),
    ("expression", {"text": "a.b"}, "'a.b'"),
    ("expression", {"text": "__import__('os')"}, "'__import__'"),
    ("ik", {"joints": [HINGE], "start": [0.0], "lever": -0.1}, "lever -0.1"),
    (
        "inverse_dynamics",
        {"joints": [HINGE]},
        "gpusim.control.heavy_chain",
    ),
    ("inverse_dynamics", {"joints": [HEAVY | {"mass": -1.0}]}, "mass -1"),
    (
        "inverse_dynamics",
        {"joints": [HEAVY], "gravity": 9.81},
        "gravity 3",
    ),
    ("python", {"function": 5}, "function 5"),
    ("python", {"function": abs, "size": 0}, "size 0 1 4096"),
]


@pytest.mark.parametrize("kind, parameters, named", PARAMETERS, ids=[f"{k}-{p}" for k, p, _ in PARAMETERS])
def test_wrong_parameters(kind: str, parameters: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelError, match=naming(f"diagram 'd' block 'b' {named}")):
        Diagram("d").add(kind, "b", **parameters)


UNITS: dict[str, tuple[str, str]] = {
    "mm": ("m", "0.001"), "kN": ("N", "1000"), "MPa": ("Pa", "1e6"),
    "µm": ("m", "1e-6"), "rpm": ("rad/s", "0.10472"),
    "RPM": ("rad/s", "0.10472"), "%": ("-", "0.01"),
    "N/mm": ("N/m", "1000"), "mm2": ("m2", "1e-6"),
    "l/min": ("l/s", "0.0166667"),
    "km/h": ("m/s", "0.277778"), "cm3/rev": ("m3/rad", "1.59155e-7"),
    "Nm": ("N m", ""), "kgm2": ("kg m2", ""), "Nmm": ("N m", "0.001"), "m/s^2": ("m/s2", ""),
    "kg/m³": ("kg/m3", ""), "N·m": ("N m", ""), "°/s": ("deg/s", ""), "degrees": ("deg", ""),
    "rad/sec": ("rad/s", ""), "m/s/s": ("m/s s", ""), "N m/rpm": ("N m s/rad", "9.5493"),
    **dict.fromkeys(
        ("furlong", "T", "kkg", "rpm2", "1e-3 m", "?", "m furlong", "furlong/mm"),
        ("", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_unknown_units_are_reported_what_to_write(unit: str) -> None:
    known, gain = UNITS[unit]
    with pytest.raises(ModelError, match=naming(f"diagram 'd' block 'b' unit {gain}")) as caught:
        Diagram("d").add("gain", "b", unit=unit)
    assert repr(unit) in str(caught.value)
    if known:
        assert f'"{known}"' in str(caught.value)
        Diagram("d").add("gain", "b", unit=known)


NEEDED: dict[str, dict[str, Any]] = {
    "chain": {"joints": [HINGE]}, "ik": {"joints": [HINGE]},
    "inverse_dynamics": {"joints": [HEAVY]},
    "lowpass": {"time": 0.1}, "derivative": {"time": 0.1}, "transfer": {"num": [1.0], "den": [1.0, 1.0]},
    "rate_limiter": {"rise": 1.0}, "limiter": {"lower": -1.0, "upper": 1.0}, "backlash": {"width": 0.1},
    "quantizer": {"step": 0.1}, "lookup": {"x": [0, 1], "y": [0, 1]}, "sequence": {"times": [0, 1], "values": [0, 1]},
    "lookup2d": {"x": [0, 1], "y": [0, 1], "z": [[0, 1], [2, 3]]}, "trajectory": {"times": [0, 1], "points": [0, 1]},
    "state_machine": {"states": ["a", "b"], "transitions": [["a", "b", "go"]]}, "expression": {"text": "a + b"},
    "python": {"function": lambda time, given: time}, "signal": {"signal": "joint.rail.position"},
    "command": {"command": "push"},
}  # fmt: skip
ODD = (None, "x", "", b"x", [], (), {}, [None], [1, "a"], [[1, 2], [3, 4]], object(), float("nan"), float("inf"), -1, 0,
       2.5, True, 10**20, lambda *given: 0.0)  # fmt: skip
EVERY = [(kind, name) for kind, cls in block_kinds().items() for name in cls.parameters()]


@pytest.mark.nightly
@pytest.mark.parametrize("kind, name", EVERY, ids=[f"{kind}.{name}" for kind, name in EVERY])
def test_odd_parameters_are_refused_by_a_sentence_or_work(kind: str, name: str) -> None:
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
            assert "diagram 'd'" in str(error) and "\n" not in str(error)
            continue
        program.run(np.zeros((1, 1)), program.parameters[None], program.initial[None].copy(), np.zeros((1, 2)))
    assert refused > 0
