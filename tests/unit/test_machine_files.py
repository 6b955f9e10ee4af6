from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Material, ModelBuilder, ModelError, Tire, Transform, machines
from gpusim.machine_files import load_machine, machine_schema
from gpusim.machine_files.expressions import evaluate
from gpusim.machine_files.loader import machine_from_text
from gpusim.scene import Scene
from tests.cli.conftest import SWINGING_ARM
from tests.cli.pages import yaml_blocks
from tests.message_snapshot import names, naming

from .helpers import bits
from .urdf_text import joint, link, robot

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "machines").glob("*.yaml"))
MACHINES = [file for file in EXAMPLES if not file.stem.endswith("_cab")]
GUIDE = "docs/guides/machine_files.md"
LIFT = """\
name: lift
description: a cage on a rail
values:
  mass: 80.0
  tire: {Tire: {slip_stiffness: 1e5, relaxation_length: 0.3, radial_stiffness: 2e5, radial_damping: 2e3}}
  rubber: {Material: {friction: 0.9, law: = tire}}
add:
  - shape_plane: {body: world, label: ground}
  - body: {label: cage, mass: = 2 * mass, inertia: [10, 10, 10], xform: {position: [0, 0, 1], rpy: [0, 0, 0.1]}}
  - shape_box: {body: cage, half_extents: [0.4, 0.3, 0.1], xform: [0, 0, 0.5], material: {friction: 0.3}}
  - for: {n: [left, right], y: [0.5, -0.5]}
    add:
      - wheel: {hub: cage, xform: [0, = y, -0.65], radius: 0.35, width: 0.1, mass: 12, material: = rubber, label: "{n}"}
        as: "wheel_{n}"
  - if: = mass > 1000
    add:
      - body: {label: never, mass: 1, inertia: [1, 1, 1]}
  - body: {label: arm, mass: 5, inertia: [1, 1, 1], xform: {position: [0.5, 0, 1.5], axis: [0, 1, 0], angle: = pi / 6}}
  - joint_revolute: {parent: cage, child: arm, axis: [0, 1, 0], at: [0.5, 0, 1.5], label: elbow, limit_upper: = pi / 2}
  - servo: {joint: elbow, stiffness: 1e3, damping: 100, label: elbow}
  - hydraulic_circuit: {}
    as: oil
  - oil.node: {pressure: 1e5, fixed: true, label: tank}
    as: tank
  - oil.cylinder:
      {body_a: cage, body_b: arm, at_a: [0, 0, 1.2], at_b: [1.0, 0, 1.3], stroke_min: 0.5, stroke_max: 2,
       area_a: 1e-3, area_b: 5e-4, dead_volume: 1e-4, pressure: [2e6, 2e6], label: ram}
    as: ram
  - oil.leak: {a: = ram.node_a, b: tank, gain: 1e-10, label: leak}
  - tendon: {terms: [[elbow, 0.2], [= wheel_left.spin, 0.1]], limit_upper: 3, label: rope}
  - site: {body: arm, xform: [1, 0, 0], label: tip}
  - imu: {site: tip, label: imu, rate: 100}
  - set_group_collision: {group_a: boxes, group_b: null, collide: true}
diagrams:
  - label: cab
    blocks:
      lever: {kind: input, lower: -1, upper: 1, keys: [A, D]}
      gain: {kind: gain, gain: = 0.5 * mass}
    wires:
      - [lever, gain]
operator_commands: [elbow]
commands: {elbow: [[0, 0], [1, 0.5]]}
config: {dt: 0.002, iterations: 6}
duration: 3
gravity: [0, 0, -9.8]
camera: {position: [3, -4, 2], target: [0, 0, 1]}
plots:
  - {title: elbow, unit: rad, signals: [joint.elbow.position], scale: 1}
""".replace("  - set_group_collision: {group_a: boxes, group_b: null, collide: true}\n", "")


def loaded(tmp_path: Path, text: str, **values: Any) -> Scene:
    return machine_from_text(text, "machine file 'lift.yaml'", tmp_path, values=values)


def lift() -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, -9.8))
    b.add_shape_plane(-1, label="ground")
    cage = b.add_body(2 * 80.0, (10, 10, 10), xform=Transform.from_rpy((0, 0, 1), (0, 0, 0.1)), label="cage")
    b.add_shape_box(cage, (0.4, 0.3, 0.1), xform=Transform((0, 0, 0.5)), material=Material(friction=0.3))
    rubber = Material(friction=0.9, law=Tire(1e5, 0.3, radial_stiffness=2e5, radial_damping=2e3))
    wheels = [
        machines.add_wheel(
            b, cage, Transform((0, y, -0.65)), radius=0.35, width=0.1, mass=12, material=rubber, label=name
        )
        for name, y in (("left", 0.5), ("right", -0.5))
    ]
    place = Transform.from_axis_angle((0.5, 0, 1.5), (0, 1, 0), np.pi / 6)
    arm = b.add_body(5, (1, 1, 1), xform=place, label="arm")
    elbow = b.add_joint_revolute(cage, arm, axis=(0, 1, 0), at=(0.5, 0, 1.5), label="elbow", limit_upper=np.pi / 2)
    b.add_servo(elbow, stiffness=1e3, damping=100, label="elbow")
    oil = b.add_hydraulic_circuit()
    tank = oil.add_node(pressure=1e5, fixed=True, label="tank")
    ends: dict[str, Any] = {"at_a": (0, 0, 1.2), "at_b": (1.0, 0, 1.3), "stroke_min": 0.5, "stroke_max": 2}
    areas: dict[str, Any] = {"area_a": 1e-3, "area_b": 5e-4, "dead_volume": 1e-4, "pressure": (2e6, 2e6)}
    ram = oil.add_cylinder(cage, arm, label="ram", **ends, **areas)
    oil.add_leak(ram.node_a, tank, 1e-10, label="leak")
    b.add_tendon([(elbow, 0.2), (wheels[0].spin, 0.1)], limit_upper=3, label="rope")
    b.add_site(arm, Transform((1, 0, 0)), label="tip")
    gpusim.sensors.add_imu(b, "tip", "imu", rate=100)
    d = gpusim.control.Diagram("cab")
    d.add("input", "lever", lower=-1, upper=1, keys=["A", "D"])
    d.add("gain", "gain", gain=0.5 * 80.0)
    d.connect("lever", "gain")
    b.add_diagram(d)
    b.set_operator_commands(["elbow"])
    return b


def test_a_file_makes_the_same_builder_as_python(tmp_path: Path) -> None:
    scene = loaded(tmp_path, LIFT)
    assert scene.builder.to_dict() == lift().to_dict()
    assert (scene.name, scene.duration, scene.config.dt, scene.config.iterations) == ("lift", 3.0, 0.002, 6)
    assert scene.camera.position == (3.0, -4.0, 2.0)
    assert scene.signals() == ["joint.elbow.position"]
    found = []
    for builder in (scene.builder, lift()):
        sim = gpusim.Simulation(builder.finalize(), backend="numpy", config=scene.config)
        for k in range(20):
            scene.schedule(sim, k * 0.002)
            sim.step()
        found.append(bits(sim, 0))
    assert found[0] == found[1]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("file", MACHINES, ids=lambda file: file.stem)
def test_examples_run(file: Path) -> None:
    scene = load_machine(file)
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    sim.step(round(0.2 / scene.config.dt))
    assert sim.health().all(), sim.health_report()
    assert sim.read("sim.joint_drift_peak").max() < 1e-4
    assert set(scene.signals()) <= set(sim.signals())


@pytest.mark.nightly
@pytest.mark.native
def test_the_truck_drives_over_bumps_and_pulls_its_trailer() -> None:
    scene = load_machine(ROOT / "docs" / "examples" / "machines" / "truck.yaml")
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    sim.control["selector"], sim.control["throttle"] = 1.0, 1.0
    rolls = [sim.step(40) or sim.read("joint.f_axle.position")[0, 1] for _ in range(25)]
    speeds = [sim.read(f"body.{body}.linear_velocity")[0, 0] for body in ("chassis", "trailer")]
    assert sim.read("diagram.cab.box.state")[0] >= 1.0 and 4.0 < speeds[0] == pytest.approx(speeds[1], abs=0.05)
    assert max(rolls) > 2e-3 and min(rolls) < -2e-3
    sim.control["throttle"], sim.control["selector"], sim.control["brake_pedal"] = 0.0, 0.0, 1.0
    sim.step(600)
    assert abs(sim.read("body.chassis.linear_velocity")[0, 0]) < 0.05
    assert np.abs(sim.read("joint.hitch.position")[0]).max() < 0.05


@pytest.mark.nightly
@pytest.mark.native
def test_the_wheel_loader_drives_steers_and_lifts() -> None:
    scene = load_machine(ROOT / "docs" / "examples" / "machines" / "wheel_loader.yaml", stones=1)
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    for command, value in (("direction", 1.0), ("throttle", 0.6), ("lift_lever", 0.6), ("steering_lever", 0.5)):
        sim.control[command] = value
    sim.step(1000)
    assert sim.health().all(), sim.health_report()
    assert sim.read("body.rear.position")[0, 0] > 0.5
    assert sim.read("joint.boom.position")[0] > 0.2 and abs(sim.read("joint.articulation.position")[0]) > 0.1


def test_paths(tmp_path: Path) -> None:
    file = tmp_path / "lift.yaml"
    with pytest.raises(ModelError, match="No such file"):
        load_machine(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="UTF-8"):
        load_machine(file)
    file.write_text(LIFT.replace("name: lift\n", ""), encoding="utf-8")
    assert load_machine(file).name == "lift"


def test_values_can_be_replaced(tmp_path: Path) -> None:
    assert loaded(tmp_path, LIFT, mass=10.0).builder.bodies[0].mass == 20.0
    assert loaded(tmp_path, LIFT, mass=2000.0).builder._labels["body"]["never"] > 0
    with pytest.raises(ModelError, match=naming("'mas' 'mass'")):
        loaded(tmp_path, LIFT, mas=1.0)


def test_model_files_are_composed(tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    (tmp_path / "arm.urdf").write_text(robot(link("a"), link("b"), joint("j", "a", "b")), encoding="utf-8")
    text = """
add:
  - body: {label: base, mass: 5, inertia: [1, 1, 1]}
models:
  - {file: arm.urdf, label_prefix: a_, xform: {position: [0, 0, 1]}}
  - {file: arm.urdf, label_prefix: b_, fixed_base: false}
"""
    builder = loaded(tmp_path, text).builder
    labels = [body.label for body in builder.bodies]
    assert labels[-1] == "base"
    assert {label[:2] for label in labels[:-1]} == {"a_", "b_"}
    with pytest.raises(ModelError, match=naming("line 5 fixed_bas")):
        loaded(tmp_path, text.replace("a_, xform: {position: [0, 0, 1]}", "a_, fixed_bas: false"))
    with pytest.raises(ModelError, match=naming("line 5 robot.doc")):
        loaded(tmp_path, text.replace("arm.urdf, label_prefix: a_", "robot.doc, label_prefix: a_"))


ERRORS = [
    ("cage, mass: = 2 * mass", "cage, mas: 80", "line 9 'mas' 'mass'"),
    ("body: cage, half", "body: cge, half", "line 10 'cge' 'cage'"),
    ("  - servo:", "  - servos:", "line 20 'servos' 'servo'"),
    ("stiffness: 1e3, damping: 100", "stiffness: -1, damping: 100", "line 20 stiffness -1"),
    ("stiffness: 1e3, damping: 100", "stiffness: strong, damping: 100", "line 20 stiffness"),
    ("= 2 * mass", "= 2 * mas", "line 9 'mas' 'mass'"),
    ("= 2 * mass", "= 2 * (mass", "line 9 valid"),
    ("= 2 * mass", "= __import__('os')", "line 9 __import__"),
    ("= 2 * mass", "= mass.real", "line 9 attribute 'real'"),
    ("= 2 * mass", "= 1 / 0", "line 9 zero"),
    ("= 2 * mass", "= 9 ** 9 ** 9", "line 9 large"),
    ("= ram.node_a", "= ram.nod_a", "line 29 'nod_a' 'node_a'"),
    ("= ram.node_a", "= ram.__class__", "line 29 '__class__'"),
    ("oil.leak", "oil.leek", "line 29 'leek' 'leak'"),
    ("oil.leak", "oli.leak", "line 29 'oli' 'oil'"),
    ("{friction: 0.3}", "{friktion: 0.3}", "line 10 'friktion' 'friction'"),
    ("rpy: [0, 0, 0.1]", "rpy: [0, 0]", "line 9 rpy"),
    ("rpy: [0, 0, 0.1]", "rpi: [0, 0, 0.1]", "line 9 'rpi' 'rpy'"),
    ("y: [0.5, -0.5]", "y: [0.5]", "line 11 length"),
    ("config: {dt: 0.002", "config: {dz: 0.002", "'dz'"),
    ("duration: 3", "duration: -3", "duration -3"),
    ("duration: 3", "durations: 3", "'durations' 'duration'"),
    ("kind: gain", "kind: gian", "gian gain"),
    ("commands: {elbow: [[0, 0], [1, 0.5]]}", "commands: {elbow: [[0, 0], [1]]}", "elbow pairs"),
    ("plots:\n  - {title", "plots:\n  - {titel", "'titel' 'title'"),
    ("signals: [joint.elbow.position]", "signals: 3", "text"),
    ("{label: arm, mass: 5", "{label: cage, mass: 5", "line 18 'cage' taken"),
    ("name: lift\n", "name: [1]\n", "name"),
    ("name: lift\n", "name: *other\n", "YAML"),
    ("as: oil", "as: __oil", "line 21 __oil"),
    ("  - servo:", "   - servo:", "line 20 YAML indent"),
    ("  - servo:", "  servo:", "line 20 YAML indent"),
    ("  mass: 80.0", "\tmass: 80.0", "line 4 YAML tab spaces"),
    ("values:\n", "values\n", "line 4 YAML ':'"),
    ("axis: [0, 1, 0], at", "axis: [0, 1, 0, at", "line 19 YAML bracket"),
    ("{label: arm, mass: 5", "{label: arm, label: rod, mass: 5", "line 18 YAML 'label' twice"),
    ("{label: arm, mass: 5", "{label: arm, mass: 5.5 kg", "line 18 arm mass 5.5 unit"),
    ("axis: [0, 1, 0], at", "axis: [0, 1], at", "line 19 elbow axis 3"),
    ("  - servo:", "  - model: {path: arm.urdf}\n  - servo:", "line 20 model source 'path'"),
]


@pytest.mark.parametrize(("old", "new", "named"), ERRORS)
def test_errors_name_line_value_and_fix(old: str, new: str, named: str, tmp_path: Path) -> None:
    assert old in LIFT
    with pytest.raises(ModelError) as caught:
        loaded(tmp_path, LIFT.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith("machine file 'lift.yaml'")
    assert len(message) < 500
    assert names(message, named), message


def test_billions_of_aliases_are_refused(tmp_path: Path) -> None:
    lines = ["values:", "  a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"  a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 10)]
    with pytest.raises(ModelError, match="entries"):
        loaded(tmp_path, "\n".join(lines))


def test_deep_nesting_and_diagram_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=naming("nested levels")) as caught:
        loaded(tmp_path, f"add: {'[' * 200}{']' * 200}")
    assert "wires" not in str(caught.value)
    with pytest.raises(ModelError, match=naming("block diagram gpusim diagram")):
        loaded(tmp_path, (EXAMPLES[0].parent / "crane_cab.yaml").read_text())


def test_long_loops_are_refused_before_they_run(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=naming("for calls loops")):
        loaded(tmp_path, "add:\n  - {for: {k: 1000000000}, add: [{bodies: {}}]}\n")


def test_endless_loops_are_refused(tmp_path: Path) -> None:
    inner = "{for: {c: 1000}, add: []}"
    text = f"add:\n  - {{for: {{a: 1000}}, add: [{{for: {{b: 1000}}, add: [{inner}]}}]}}\n"
    with pytest.raises(ModelError, match=naming("calls loops")):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("2**0.5", 2**0.5),
        ("w if w > 2 else 0", 3.0),
        ("[1, 2, 3][1]", 2.0),
        ("norm(v - [0, 0, 1])", 5.0),
        ("max(1, -w)", 1),
        ("not (w > 2 and w < 4)", False),
    ],
)
def test_expressions(text: str, value: Any) -> None:
    assert evaluate(text, {"w": 3.0, "v": [3.0, 4.0, 1.0]}) == value


@pytest.mark.parametrize(
    "text",
    ["().__class__", "open('x')", "lambda: 1", "[x for x in v]", "'a' * 10", "v.tobytes()", "f'{w}'", "w(1)", "{1: 2}"],
)
def test_expressions_cannot_reach_python(text: str) -> None:
    with pytest.raises(ModelError):
        evaluate(text, {"w": 3.0, "v": np.ones(3)})


@pytest.mark.parametrize(("text", "shown"), [("'x' * 2", "text 'x' * 2"), ("v + 'x'", "a vector + text 'x'")])
def test_expressions_without_a_value_are_shown_as_written(text: str, shown: str) -> None:
    with pytest.raises(ModelError, match=naming("numbers vectors")) as caught:
        evaluate(text, {"v": np.ones(3)})
    assert shown in str(caught.value)


def test_the_schema_accepts_what_the_loader_accepts(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("ruamel.yaml").YAML(typ="safe", pure=True)
    checker = jsonschema.Draft202012Validator(machine_schema())
    for text in [LIFT, *(file.read_text(encoding="utf-8") for file in MACHINES)]:
        checker.validate(yaml.load(text))
    for old, new in (("mass: = 2", "mas: = 2"), ("- servo:", "- servos:"), ("duration", "durations")):
        assert not checker.is_valid(yaml.load(LIFT.replace(old, new)))


def test_the_published_schema_is_current() -> None:
    spec = importlib.util.spec_from_file_location("machine_schema", ROOT / "ci" / "docs" / "machine_schema.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert json.loads(module.FILE.read_text(encoding="utf-8")) == machine_schema()


@pytest.mark.parametrize("number", range(len(yaml_blocks(GUIDE))))
def test_blocks_of_the_guide_load(number: int, tmp_path: Path) -> None:
    pytest.importorskip("yourdfpy")
    (tmp_path / "robot.urdf").write_text(SWINGING_ARM, encoding="utf-8")
    builder = loaded(tmp_path, yaml_blocks(GUIDE)[number]).builder
    assert builder.finalize().bodies


def mutated(text: str, rng: random.Random) -> str:
    """The text with a few letters, words or lines changed."""
    for _ in range(rng.randint(1, 2)):
        at, kind = rng.randrange(len(text)), rng.randrange(6)
        if kind == 0:
            text = text[:at] + rng.choice("{}[]:,-&*!|>#'\"= 0eé\t\n") + text[at + 1 :]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 30) :]
        elif kind == 2:
            words = text.split(" ")
            words[rng.randrange(len(words))] = rng.choice(["-1", "null", "1e400", "[]", "{}", "= mass", "true", "x"])
            text = " ".join(words)
        elif kind == 3:
            lines = text.split("\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            text = "\n".join(lines)
        elif kind == 4:
            digits = [k for k, letter in enumerate(text) if letter.isdigit()]
            k = rng.choice(digits)
            text = text[:k] + rng.choice("0123456789.") + text[k + 1 :]
        else:
            text = text[:at] + text[rng.randrange(len(text)) :][: rng.randint(1, 40)] + text[at:]
    return text


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_broken_files_give_one_sentence(tmp_path: Path) -> None:
    rng, loads = random.Random(7), 0
    for _ in range(300):
        try:
            loaded(tmp_path, mutated(LIFT, rng)).builder.finalize()
            loads += 1
        except ModelError as error:
            assert "\n" not in str(error)
        except gpusim.UnknownNameError:
            pass  # finalize
    assert 10 < loads < 290
