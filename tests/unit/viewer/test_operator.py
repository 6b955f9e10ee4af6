"""The operator: ranges, last touch, keys and sticks, patterns, emergency stop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, ModelError, Simulation, Transform, UnknownNameError
from gpusim.scene import Scene, load_scene
from gpusim.viewer.operator import Binding, GamepadState, GlfwGamepad, Input, InputMapping, Operator, choose_mapping
from gpusim.viewer.operator.drive import Drive, limited, shaped
from gpusim.viewer.operator.gamepad import named
from gpusim.viewer.operator.keys import KEYS

FRAME = 1.0 / 60.0


def arm(servos: int = 1, mode: str = "position", num_worlds: int = 1) -> Simulation:
    """Links on hinges with servos that are called s0, s1, ..."""
    b = ModelBuilder()
    for k in range(servos):
        link = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, k, 1.0)), label=f"link{k}")
        joint = b.add_joint_revolute(
            -1, link, parent_xform=Transform((0.0, k, 1.0)), axis=(0, 1, 0), limit_lower=-0.5, limit_upper=1.5,
            label=f"hinge{k}",
        )  # fmt: skip
        b.add_servo(joint, mode=mode, stiffness=50.0, damping=5.0, target=0.2, label=f"s{k}")
    return Simulation(b.finalize(), num_worlds, backend="numpy", config=gpusim.SolverConfig(dt=0.01))


def machine(*labels: str, brake_force: float = 0.0) -> Simulation:
    """Motors with these labels, and a cylinder "jack" with a brake if it has a force."""
    b = ModelBuilder()
    for k, label in enumerate(labels):
        shaft = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, k, 1.0)), label=f"shaft_{label}")
        joint = b.add_joint_revolute(-1, shaft, parent_xform=Transform((0.0, k, 1.0)), axis=(0, 1, 0))
        b.add_dc_motor(joint, stall_torque=2.0, no_load_speed=50.0, mechanical_time_constant=0.01, label=label)
    if brake_force:
        load = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, -1.0, 1.0)), label="load")
        b.add_joint_prismatic(-1, load, parent_xform=Transform((0.0, -1.0, 1.0)), axis=(0, 0, 1))
        b.add_hydraulic_cylinder(
            -1, load, (0, -1, 0), (0, 0, 0), length_offset=0.8, area_a=1e-3, area_b=8e-4, volume_a=1e-4, volume_b=6e-4,
            stroke_min=0.0, stroke_max=0.5, supply_pressure=1e7, tank_pressure=1e5, flow_gain=1e-8,
            brake_force=brake_force, label="jack",
        )  # fmt: skip
    return Simulation(b.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=0.01))


class Pad:
    """A gamepad that does as it is told."""

    def __init__(self) -> None:
        self.axes: dict[str, float] = {}
        self.buttons: set[str] = set()
        self.connected = True

    def read(self) -> GamepadState | None:
        return GamepadState(dict(self.axes), frozenset(self.buttons)) if self.connected else None


def step(operator: Operator, count: int = 1) -> None:
    for _ in range(count):
        operator.before_steps(operator.sim.time)
        operator.sim.step()


# Inputs.


def test_ranges_follow_from_the_actuators() -> None:
    inputs = Operator(machine("drive", brake_force=100.0)).inputs
    assert (inputs["drive"].lower, inputs["drive"].upper, inputs["drive"].safe) == (-1.0, 1.0, 0.0)
    assert inputs["drive"].springs and not inputs["drive"].switch
    brake = inputs["jack.brake"]
    assert (brake.lower, brake.upper, brake.safe, brake.switch, brake.idle) == (0.0, 1.0, 1.0, True, False)


def test_a_brake_without_force_is_idle() -> None:
    sim = Simulation(load_scene("boom_crane").builder.finalize(), backend="numpy")
    operator = Operator(sim)
    assert operator.inputs["lift.brake"].idle and not operator.inputs["lift"].idle
    assert [binding.command for binding in operator.mapping.bindings] == ["lift"]


def test_position_servos_have_their_joints_limits_and_are_safe_where_they_are() -> None:
    (item,) = Operator(arm()).inputs.values()
    assert (item.lower, item.upper, item.initial, item.unit) == (-0.5, 1.5, 0.2, "rad")
    assert item.safe is None and not item.springs
    (fast,) = Operator(arm(mode="velocity")).inputs.values()
    assert fast.lower == -fast.upper and fast.unit == "rad/s" and fast.safe == 0.0


def test_a_scale_of_a_force_stays_where_it_is_put() -> None:
    sim = Simulation(load_scene("dc_motor_rig").builder.finalize(), backend="numpy")
    load = Operator(sim).inputs["load"]
    assert (load.lower, load.upper, load.initial, load.springs) == (0.0, 1.0, 1.0, False)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"lower": 1.0, "upper": 1.0}, "not below upper"),
        ({"initial": 2.0}, "initial = 2 lies outside -1 to 1"),
        ({"safe": -3.0}, "safe = -3 lies outside"),
        ({"upper": math.nan}, "not finite"),
        ({"safe": None}, "nothing is measured"),
    ],
)
def test_bad_inputs_are_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=f"input 'x': .*{words}"):
        Input("x", **changes)


def test_deflections_become_values() -> None:
    lopsided = Input("x", -2.0, 4.0)
    assert [lopsided.at(u) for u in (-1.0, -0.5, 0.0, 0.5, 1.0)] == [-2.0, -1.0, 0.0, 2.0, 4.0]
    throttle = Input("x", 10.0, 20.0, initial=10.0, safe=10.0)
    assert [throttle.at(u) for u in (-1.0, 0.0, 0.5, 1.0)] == [10.0, 10.0, 15.0, 20.0]


# Touching.


def test_a_touch_reaches_the_simulation_and_holds_against_the_schedule() -> None:
    scene = load_scene("dc_motor_rig")
    sim = Simulation(scene.builder.finalize(), backend="numpy", config=scene.config)
    operator = Operator(sim, scene)
    step(operator)
    assert sim.control["motor"][0] == 1.0 and operator.value("motor") == 1.0 and operator.source("motor") == ""
    operator.set("motor", -0.25)
    step(operator, 3)
    assert sim.control["motor"][0] == -0.25 and operator.source("motor") == "panel"
    assert operator.free_steps() == 1
    operator.release("motor")
    step(operator)
    assert sim.control["motor"][0] == 1.0 and operator.source("motor") == ""


def test_without_a_schedule_a_released_input_has_its_first_value() -> None:
    operator = Operator(arm(num_worlds=2))
    operator.set("s0", 1.0)
    step(operator)
    assert operator.sim.control["s0"].tolist() == [1.0, 1.0]
    operator.release("s0")
    step(operator)
    assert operator.sim.control["s0"].tolist() == [0.2, 0.2]
    assert operator.free_steps() > 1000


def test_values_stay_in_their_range_and_must_be_finite() -> None:
    operator = Operator(machine("a"))
    operator.set("a", 7.0)
    assert operator.value("a") == 1.0
    with pytest.raises(ModelError, match="input 'a'"):
        operator.set("a", math.nan)
    with pytest.raises(UnknownNameError, match="unknown input 'b'"):
        operator.set("b", 0.0)


def test_a_reset_gives_everything_back() -> None:
    operator = Operator(machine("a"))
    operator.set("a", 0.5)
    step(operator)
    operator.sim.reset()
    operator.reset()
    step(operator)
    assert operator.sim.control["a"][0] == 0.0 and operator.source("a") == ""


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
    stick = drive(Input("x", -2.0, 2.0), rate_limit=4.0, dead_zone=0.0, expo=0.0)
    full = GamepadState({"left_y": 1.0})
    values = [stick.update(set(), full, 0.0, 0.1) for _ in range(4)]
    assert values == [pytest.approx(0.8), pytest.approx(1.6), 2.0, None]
    back = [stick.update(set(), GamepadState(), 0.0, 0.1) for _ in range(4)]
    assert back == [pytest.approx(1.2), pytest.approx(0.4), 0.0, None]


def test_a_stick_inside_its_dead_zone_touches_nothing() -> None:
    stick = drive(Input("x"), dead_zone=0.2, rate_limit=math.inf)
    assert stick.update(set(), GamepadState({"left_y": 0.19}), 0.0, FRAME) is None
    assert stick.update(set(), GamepadState({"left_y": 0.25}), 0.0, FRAME) is not None


def test_positions_go_on_while_a_key_is_held_and_stay() -> None:
    held = drive(Input("x", 0.0, 2.0, springs=False), speed=0.5, rate_limit=math.inf)
    assert held.update({"2"}, GamepadState(), 1.0, 0.1) == pytest.approx(1.1)
    assert held.update({"2"}, GamepadState(), 1.95, 0.1) == 2.0
    assert held.update(set(), GamepadState(), 1.1, 0.1) is None
    assert held.update({"1", "2"}, GamepadState(), 1.1, 0.1) is None


def test_scale_turns_a_stick_round() -> None:
    turned = drive(Input("x"), scale=-0.5, rate_limit=math.inf, expo=0.0)
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
    assert operator.value("a") == 0.3  # the stick has not moved since
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
    pad.axes[stick] = 1.0  # forward or right: boom down, stick out, bucket out, swing right: cylinders retract
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
    with pytest.raises(ModelError, match="mapping 'iso': no command of this scene has a label with boom in it; take"):
        Operator(machine("lift"), mapping="iso")
    with pytest.raises(UnknownNameError, match="unknown mapping 'cat'"):
        Operator(machine("lift"), mapping="cat")
    with pytest.raises(ModelError, match="mapping 'sae': no command .* stick or arm or dipper"):
        Operator(machine("boom", "bucket"), mapping="sae")


def test_two_arms_are_no_excavator() -> None:
    inputs = Operator(machine("boom", "left_arm", "right_arm", "bucket")).inputs
    assert choose_mapping(inputs).name == "automatic"


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
        ('{"command": "b", "axis": "left_x"}', "unknown command 'b'.*name a command of this scene"),
        ('{"axis": "left_x"}', "binding 1: it names no command; give e.g."),
        ('{"command": "a"}', "binding of 'a': it has no keys, axis or button; give at least one"),
        ('{"command": "a", "axis": "left_z"}', "unknown axis 'left_z'; did you mean 'left_"),
        ('{"command": "a", "keys": ["Q", "CTRL"]}', "unknown key 'CTRL'"),
        ('{"command": "a", "keys": ["Q", "E"]}', "key 'E' has a meaning of its own in the window; take another key"),
        ('{"command": "a", "keys": "QW"}', "binding 1: keys = 'QW' are no list; give e.g."),
        ('{"command": "a", "keys": ["Q"]}', "'a' is no switch, and it has one key or a button; give two keys"),
        ('{"command": "jack.brake", "keys": ["Q", "W"]}', "'jack.brake' is a switch, and it has two keys or an axis"),
        ('{"command": "a", "axis": "left_x", "dead_zone": 1.5}', "dead_zone = 1.5 is not within 0 to 0.95"),
        ('{"command": "a", "axis": "left_x", "expo": "much"}', "expo = 'much' is not a number"),
        ('{"command": "a", "axis": "left_x", "mode": "fast"}', "mode = 'fast' is unknown; give one of spring"),
        ('{"command": "a", "axis": "left_x", "deadzone": 0.1}', "unknown entry 'deadzone'; did you mean 'dead_zone'"),
        (
            '{"command": "a", "axis": "left_x"}, {"command": "a", "axis": "left_y"}',
            "command 'a' is bound twice",
        ),
        ('{"command": "jack.brake", "button": "back"}', "button 'back' is bound twice, by the emergency stop"),
    ],
)
def test_bad_mappings_are_told(tmp_path: Any, entry: str, words: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(f'{{"binding": [{entry}]}}')
    with pytest.raises(ModelError, match=words):
        Operator(machine("a", brake_force=10.0), mapping=str(file))


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("gone.json", None, "cannot be read"),
        ("broken.json", "{", "it is broken"),
        ("list.json", "[]", "holds no table"),
        ("odd.json", '{"bindings": []}', "unknown entry 'bindings'; did you mean 'binding'"),
        ("one.json", '{"binding": {}}', "'binding' is no list of tables"),
    ],
)
def test_bad_mapping_files_are_told(tmp_path: Any, name: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=f"mapping file .*{name}.*{words}"):
        Operator(machine("a"), mapping=str(tmp_path / name))


# Emergency stop.


def test_the_emergency_stop_latches() -> None:
    pad = Pad()
    operator = Operator(machine("a", brake_force=50.0), gamepad=pad)
    operator.set("a", 0.8)
    step(operator)
    assert operator.key(KEYS["E"], True)
    pad.axes["left_y"] = 1.0
    operator.set("a", 0.5)
    operator.release("a")
    for _ in range(10):
        operator.poll(FRAME)
        step(operator)
    control = operator.sim.control
    assert operator.stopped and control["a"][0] == 0.0 and control["jack"][0] == 0.0 and control["jack.brake"][0] == 1.0
    operator.sim.reset()
    operator.reset()
    step(operator)
    assert operator.stopped and control["jack.brake"][0] == 1.0
    operator.key(KEYS["E"], True, shift=True)
    for _ in range(10):
        operator.poll(FRAME)
    assert not operator.stopped and operator.value("a") == 0.0  # the stick is still held: it must be let go first
    pad.axes["left_y"] = 0.0
    operator.poll(FRAME)
    pad.axes["left_y"] = -1.0
    operator.poll(FRAME)
    assert operator.value("a") < 0.0


def test_the_emergency_stop_is_on_the_gamepad_too() -> None:
    pad = Pad()
    operator = Operator(machine("a"), gamepad=pad)
    pad.buttons.add("back")
    operator.poll(FRAME)
    assert operator.stopped
    operator.release_stop()
    operator.poll(FRAME)
    assert not operator.stopped  # it is still the same press
    pad.buttons.clear()
    operator.poll(FRAME)
    pad.buttons.add("back")
    operator.poll(FRAME)
    assert operator.stopped


def test_the_stop_overrides_the_schedule() -> None:
    scene = load_scene("dc_motor_rig")
    sim = Simulation(scene.builder.finalize(), backend="numpy", config=scene.config)
    operator = Operator(sim, scene)
    step(operator, 5)
    operator.emergency_stop()
    step(operator, 5)
    assert sim.control["motor"][0] == 0.0 and sim.control["load"][0] == 0.0
    operator.release_stop()
    operator.release("motor")
    step(operator)
    assert sim.control["motor"][0] == 1.0


def test_servos_stop_where_each_world_is() -> None:
    sim = arm(num_worlds=2)
    sim.write("joint.hinge0.position", 0.9, world=1)
    operator = Operator(sim)
    operator.emergency_stop()
    step(operator)
    assert np.allclose(sim.control["s0"], [0.0, 0.9], atol=1e-9)
    sim.write("joint.hinge0.position", 0.3)
    operator.emergency_stop()  # again, or a key that repeats: it stays where it was latched
    step(operator)
    assert np.allclose(sim.control["s0"], [0.0, 0.9], atol=1e-9)


def test_the_stop_survives_a_restart() -> None:
    operator = Operator(machine("a"))
    operator.emergency_stop()
    other = machine("b", brake_force=1.0)
    operator.attach(other)
    step(operator)
    assert operator.stopped and other.control["jack.brake"][0] == 1.0 and set(operator.inputs) >= {"b", "jack"}


def test_a_mapping_that_fits_no_more_gives_way(tmp_path: Any) -> None:
    (tmp_path / "mine.json").write_text('{"binding": [{"command": "a", "axis": "left_x"}]}')
    operator = Operator(machine("a"), mapping=str(tmp_path / "mine.json"))
    operator.attach(machine("b"))
    assert operator.mapping.name == "automatic" and "unknown command 'a'" in operator.note


# Inputs of others.


def test_diagrams_add_inputs() -> None:
    operator = Operator(machine("a"))
    operator.add_input("target height", 0.0, 3.0, initial=1.0, safe=0.5, unit="m", springs=False)
    assert operator.value("target height") == 1.0
    bound = {binding.command: binding.keys for binding in operator.mapping.bindings}
    assert bound["target height"] == ("3", "4")
    operator.set("target height", 2.0)
    step(operator)  # not a command of the simulation: nothing is written there
    assert operator.value("target height") == 2.0
    operator.emergency_stop()
    assert operator.value("target height") == 0.5
    operator.attach(machine("b"))
    assert "target height" in operator.inputs
    with pytest.raises(ModelError, match="input 'b': there is one of this name already"):
        operator.add_input("b")


def test_a_scene_without_commands_has_no_inputs() -> None:
    scene: Scene = load_scene("four_bar")
    operator = Operator(Simulation(scene.builder.finalize(), backend="numpy"), scene)
    operator.emergency_stop()
    operator.poll(FRAME)
    step(operator)
    assert operator.inputs == {} and operator.stopped
