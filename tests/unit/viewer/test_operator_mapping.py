from __future__ import annotations

import math
from typing import Any

import pytest

from gpusim import ModelError, UnknownNameError
from gpusim.description.operator_names import KEYS
from gpusim.viewer.operator import Binding, GamepadState, GlfwGamepad, Input, InputMapping, Operator, choose_mapping
from gpusim.viewer.operator.drive import Drive, limited, shaped
from gpusim.viewer.operator.gamepad import named
from tests.message_snapshot import naming
from tests.unit.viewer.operators import FRAME, Pad, machine

# Keys and sticks.


def test_dead_zone_and_expo() -> None:
    assert shaped(0.1, 0.1, 0.5) == 0.0 and shaped(-0.09, 0.1, 0.5) == 0.0
    assert shaped(1.0, 0.1, 0.5) == 1.0 and shaped(-1.0, 0.2, 1.0) == -1.0
    # half way behind the dead zone: (1 - 0.4) 0.5 + 0.4 0.125
    assert shaped(0.6, 0.2, 0.4) == pytest.approx(0.35, abs=1e-12)
    assert shaped(-0.6, 0.2, 0.4) == pytest.approx(-0.35, abs=1e-12)
    assert shaped(1.7, 0.1, 0.0) == 1.0
    assert limited(0.0, 1.0, 0.1) == 0.1 and limited(0.5, 0.45, 0.1) == 0.45


def drive(target: Input, **settings: Any) -> Drive:
    return Drive(Binding("x", keys=("1", "2"), axis="left_y", **settings), target)


def test_a_stick_springs_back_and_its_rate_is_limited() -> None:
    stick = drive(Input(-2.0, 2.0, name="x"), rate_limit=4.0, dead_zone=0.0, expo=0.0)
    full = GamepadState({"left_y": 1.0})
    values = [stick.update(set(), full, 0.0, 0.1) for _ in range(4)]
    assert values == [pytest.approx(0.8), pytest.approx(1.6), 2.0, None]
    back = [stick.update(set(), GamepadState(), 0.0, 0.1) for _ in range(4)]
    assert back == [pytest.approx(1.2), pytest.approx(0.4), 0.0, None]


def test_a_stick_inside_its_dead_zone_touches_nothing() -> None:
    stick = drive(Input(name="x"), dead_zone=0.2, rate_limit=math.inf)
    assert stick.update(set(), GamepadState({"left_y": 0.19}), 0.0, FRAME) is None
    assert stick.update(set(), GamepadState({"left_y": 0.25}), 0.0, FRAME) is not None


def test_positions_go_on_while_a_key_is_held_and_stay() -> None:
    held = drive(Input(0.0, 2.0, springs=False, name="x"), speed=0.5, rate_limit=math.inf)
    assert held.update({"2"}, GamepadState(), 1.0, 0.1) == pytest.approx(1.1)
    assert held.update({"2"}, GamepadState(), 1.95, 0.1) == 2.0
    assert held.update(set(), GamepadState(), 1.1, 0.1) is None
    assert held.update({"1", "2"}, GamepadState(), 1.1, 0.1) is None


def test_scale_turns_a_stick_round() -> None:
    turned = drive(Input(name="x"), scale=-0.5, rate_limit=math.inf, expo=0.0)
    assert turned.update(set(), GamepadState({"left_y": 1.0}), 0.0, FRAME) == -0.5


def test_keys_move_commands_of_any_scene() -> None:
    operator = Operator(machine("a", "b", brake_force=50.0))
    assert operator.key(KEYS["4"], True)
    assert not operator.key(KEYS["W"], True)
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value("b") == 1.0 and operator.source("b") == "keyboard" and operator.source("a") == ""
    operator.key(KEYS["4"], False)
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value("b") == 0.0
    operator.key(KEYS["F5"], True)
    operator.poll(FRAME)
    operator.poll(FRAME)
    assert operator.value("jack.brake") == 1.0
    operator.key(KEYS["1"], True)
    operator.let_go()
    operator.poll(FRAME)
    assert operator.source("a") == ""


def test_the_last_touch_wins() -> None:
    pad = Pad()
    operator = Operator(machine("a"), gamepad=pad)
    pad.axes["left_y"] = 1.0
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value("a") == 1.0 and operator.source("a") == "gamepad"
    operator.set("a", 0.3)
    operator.poll(FRAME)
    assert operator.value("a") == 0.3
    pad.connected = False
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value("a") == 0.0 and not operator.devices.connected


def test_a_gamepad_speaks_in_names() -> None:
    state = named([0.1, -1.0, 0.0, 0.5, -1.0, 1.0], [1, 0, 0, 0, 0, 0, 1])
    assert state.axes["left_y"] == 1.0 and state.axes["right_y"] == -0.5
    assert state.axes["left_trigger"] == 0.0 and state.axes["right_trigger"] == 1.0
    assert state.buttons == {"a", "back"}


def test_glfw_gamepads_and_plain_joysticks() -> None:
    class Glfw:
        gamepad = True

        def joystick_present(self, number: int) -> bool:
            return number == 2

        def joystick_is_gamepad(self, number: int) -> bool:
            return self.gamepad

        def get_gamepad_state(self, number: int) -> Any:
            return type("State", (), {"axes": [0.0, -0.5, 0.0, 0.0, -1.0, -1.0], "buttons": [0] * 15})()

        def get_joystick_axes(self, number: int) -> Any:
            return [0.25, -0.75, 9.0], 2

        def get_joystick_buttons(self, number: int) -> Any:
            return [0, 1], 2

    pad = GlfwGamepad(Glfw())
    state = pad.read()
    assert state is not None and state.axes["left_y"] == 0.5
    Glfw.gamepad = False
    raw = pad.read()
    assert raw == GamepadState({"axis_0": 0.25, "axis_1": -0.75}, frozenset({"button_1"}))


# Patterns.

EXCAVATOR = ("swing", "boom", "arm_cylinder", "bucket", "left_track")


@pytest.mark.parametrize(
    "pattern, stick, command",
    [
        ("iso", "left_x", "swing"),
        ("iso", "left_y", "arm_cylinder"),
        ("iso", "right_y", "boom"),
        ("iso", "right_x", "bucket"),
        ("sae", "left_x", "swing"),
        ("sae", "left_y", "boom"),
        ("sae", "right_y", "arm_cylinder"),
        ("sae", "right_x", "bucket"),
    ],
)
def test_excavator_patterns(pattern: str, stick: str, command: str) -> None:
    pad = Pad()
    operator = Operator(machine(*EXCAVATOR), mapping=pattern, gamepad=pad)
    pad.axes[stick] = 1.0
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value(command) == -1.0
    assert [name for name in EXCAVATOR if operator.source(name)] == [command]


def test_patterns_are_found_by_names_and_leave_keys_for_the_rest() -> None:
    operator = Operator(machine(*EXCAVATOR))
    assert operator.mapping.name == "ISO"
    operator.key(KEYS["W"], True)
    operator.key(KEYS["2"], True)
    for _ in range(30):
        operator.poll(FRAME)
    assert operator.value("arm_cylinder") == -1.0 and operator.value("left_track") == 1.0
    operator.use_mapping("sae")
    assert operator.mapping.name == "SAE"


def test_a_pattern_needs_its_commands() -> None:
    with pytest.raises(ModelError, match=naming("mapping 'iso'")):
        Operator(machine("lift"), mapping="iso")
    with pytest.raises(UnknownNameError, match=naming("'cat'")):
        Operator(machine("lift"), mapping="cat")
    with pytest.raises(ModelError, match=naming("mapping 'sae'")):
        Operator(machine("boom", "bucket"), mapping="sae")


def test_two_arms_are_no_excavator() -> None:
    inputs = Operator(machine("boom", "left_arm", "right_arm", "bucket")).inputs
    assert choose_mapping(inputs).name == "automatic"


def test_valves_and_brakes_of_a_drive_leave_its_lever_the_name() -> None:
    words = ("swing", "boom", "stick", "bucket")
    inputs = {name: Input(-1.0, 1.0, name=name) for name in words}
    inputs |= {f"{name}_relief": Input(0.0, 1.0, idle=True, name=f"{name}_relief") for name in words}
    inputs["swing_brake"] = Input(0.0, 1.0, name="swing_brake")
    mapping = choose_mapping(inputs)
    assert mapping.name == "ISO"
    assert [binding.command for binding in mapping.bindings][:4] == ["swing", "stick", "boom", "bucket"]


# Mapping files.

GOOD = """
name = "mine"
stop_button = "guide"
[[binding]]
command = "a"
keys = ["LEFT", "RIGHT"]
axis = "axis_3"
dead_zone = 0.2
scale = -1.0
mode = "rate"
"""


def test_mapping_files(tmp_path: Any) -> None:
    pytest.importorskip("tomllib", reason="TOML needs Python 3.11")
    (tmp_path / "mine.toml").write_text(GOOD)
    operator = Operator(machine("a"), mapping=str(tmp_path / "mine.toml"))
    assert operator.mapping == InputMapping(
        "mine", (Binding("a", ("LEFT", "RIGHT"), "axis_3", mode="rate", dead_zone=0.2, scale=-1.0),), "guide"
    )
    json = '{"binding": [{"command": "a", "keys": ["LEFT", "RIGHT"], "rate_limit": 0}]}'
    (tmp_path / "other.json").write_text(json)
    operator.use_mapping(str(tmp_path / "other.json"))
    assert operator.mapping.name == "other" and operator.mapping.bindings[0].rate_limit == math.inf


@pytest.mark.parametrize(
    "entry, words",
    [
        ('{"command": "b", "axis": "left_x"}', "'b'"),
        ('{"axis": "left_x"}', "1"),
        ('{"command": "a"}', "'a'"),
        ('{"command": "a", "axis": "left_z"}', "'left_z'"),
        ('{"command": "a", "keys": ["Q", "CTRL"]}', "'CTRL'"),
        ('{"command": "a", "keys": ["Q", "E"]}', "key 'E'"),
        ('{"command": "a", "keys": "QW"}', "1 keys 'QW'"),
        ('{"command": "a", "keys": ["Q"]}', "'a'"),
        ('{"command": "jack.brake", "keys": ["Q", "W"]}', "'jack.brake'"),
        ('{"command": "a", "axis": "left_x", "dead_zone": 1.5}', "dead_zone 1.5 0 0.95"),
        ('{"command": "a", "axis": "left_x", "expo": "much"}', "expo 'much'"),
        ('{"command": "a", "axis": "left_x", "mode": "fast"}', "mode 'fast'"),
        ('{"command": "a", "axis": "left_x", "deadzone": 0.1}', "'deadzone' 'dead_zone'"),
        (
            '{"command": "a", "axis": "left_x"}, {"command": "a", "axis": "left_y"}',
            "command 'a'",
        ),
        ('{"command": "jack.brake", "button": "back"}', "'back'"),
    ],
)
def test_bad_mappings_are_reported(tmp_path: Any, entry: str, words: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(f'{{"binding": [{entry}]}}')
    with pytest.raises(ModelError, match=naming(words)):
        Operator(machine("a", brake_force=10.0), mapping=str(file))


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("gone.json", None, ""),
        ("broken.json", "{", ""),
        ("list.json", "[]", ""),
        ("odd.json", '{"bindings": []}', "'bindings' 'binding'"),
        ("one.json", '{"binding": {}}', "'binding'"),
    ],
)
def test_bad_mapping_files_are_reported(tmp_path: Any, name: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=naming(f"{name} {words}")):
        Operator(machine("a"), mapping=str(tmp_path / name))
