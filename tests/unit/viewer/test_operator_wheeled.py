from __future__ import annotations

import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.description.operator_names import KEYS
from gpusim.viewer.operator import Operator
from gpusim.viewer.operator.inputs import command_inputs
from gpusim.viewer.operator.mapping import Binding, InputMapping
from tests.message_snapshot import naming
from tests.unit.viewer.operators import FRAME, Pad, machine

WHEELS = ("left", "right")


def vehicle(*drives: str) -> Simulation:
    b = ModelBuilder()

    def hinge(label: str) -> int:
        shaft = b.add_body(1.0, (0.1,) * 3, xform=Transform((0, len(b.bodies), 0)), label=label)
        return b.add_joint_revolute(-1, shaft, axis=(0, 1, 0), at=(0, 0, 0))

    for name in drives:
        b.add_dc_motor(hinge(f"shaft_{name}"), 2.0, 50.0, 0.01, label=name)
    rack = b.add_body(1.0, (0.1,) * 3, label="rack")
    travel = b.add_joint_prismatic(-1, rack, axis=(0, 1, 0), limit_lower=-0.05, limit_upper=0.05)
    b.add_servo(travel, stiffness=1e5, damping=1e3, label="steer")
    for side in WHEELS:
        b.add_brake(hinge(f"{side}_wheel"), 10.0, label=f"{side}_brake")
    return Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=0.01))


def hold(operator: Operator, *keys: str) -> None:
    for key in keys:
        operator.key(KEYS[key], True)
    for _ in range(60):
        operator.poll(FRAME)
    for key in keys:
        operator.key(KEYS[key], False)


@pytest.mark.parametrize("drives", [("drive",), ("drive", "turn"), ("left_drive", "right_drive")])
def test_keys_drive_steer_and_brake(drives: tuple[str, ...]) -> None:
    operator = Operator(vehicle(*drives))
    assert operator.mapping.name == "Wheeled"
    hold(operator, "W", "A", "J")
    for name in drives:
        assert operator.value(name) == 1.0, name
    assert operator.value("steer") == pytest.approx(0.05)
    hold(operator)
    assert operator.value("steer") == 0.0 and operator.value(drives[0]) == 0.0
    hold(operator, "D")
    assert operator.value("steer") == pytest.approx(-0.05)
    for pressed in (1.0, 0.0):
        hold(operator, "B")
        hold(operator)
        assert [operator.value(f"{side}_brake") for side in WHEELS] == [pressed, pressed]


def test_sticks_and_buttons() -> None:
    pad = Pad()
    operator = Operator(vehicle("drive"), gamepad=pad)
    pad.axes.update(left_y=1.0, right_x=1.0)
    pad.buttons.add("a")
    for _ in range(60):
        operator.poll(FRAME)
    assert operator.value("drive") == 1.0 and operator.value("steer") == pytest.approx(-0.05)
    assert operator.value("right_brake") == 1.0
    lines = {line.what: line.keys for group in operator.key_groups() for line in group.lines}
    assert lines["*_brake"] == "B, a" and lines["steer"] == "A D, right x"


def test_what_does_not_steer_is_not_wheeled() -> None:
    assert Operator(machine("drive")).mapping.name == "automatic"
    with pytest.raises(ModelError, match=naming("mapping 'wheeled' 'steer' 'drive'")):
        Operator(machine("drive"), mapping="wheeled")
    assert Operator(vehicle("drive"), mapping="wheeled").mapping.name == "Wheeled"


def test_a_star_must_fit_and_leaves_no_input_bound_twice() -> None:
    inputs = command_inputs(vehicle("drive").model)
    with pytest.raises(ModelError, match=naming("mapping 'm'")):
        InputMapping("m", (Binding("*_pump", keys=("1", "2")),)).check(inputs)
    twice = (Binding("*_brake", keys=("1",), mode="switch"), Binding("left_brake", keys=("2",), mode="switch"))
    with pytest.raises(ModelError, match=naming("command 'left_brake' '*_brake'")):
        InputMapping("m", twice).check(inputs)
