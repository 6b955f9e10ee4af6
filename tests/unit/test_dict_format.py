from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ContactLaw, Material, ModelBuilder, ModelError, Transform
from gpusim.control import Diagram, files
from gpusim.scene import list_scenes, load_scene
from tests.message_snapshot import naming
from tests.unit.helpers import bits, simulate

LARGE = ("biped_walk", "excavator", "rtk_m")


def copied(builder: ModelBuilder) -> ModelBuilder:
    text = json.dumps(builder.to_dict(), allow_nan=False)
    return ModelBuilder.from_dict(json.loads(text))


def assert_same(a: Any, b: Any, path: str) -> None:
    assert type(a) is type(b) or np.isscalar(a) and np.isscalar(b), path
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), path
    elif isinstance(a, dict):
        assert list(a) == list(b), path
        for key in a:
            assert_same(a[key], b[key], f"{path}[{key}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), path
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}[{k}]")
    elif isinstance(a, Transform):
        assert_same(a.position, b.position, path)
        assert_same(a.rotation, b.rotation, path)
    elif isinstance(a, Diagram):
        assert files.layout(a) == files.layout(b), path
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes(), path
    elif hasattr(a, "__dict__") and not isinstance(a, type) and not callable(a):
        assert_same(vars(a), vars(b), f"{path}.{type(a).__name__}")
    elif not callable(a):
        assert a == b, path


def everything() -> ModelBuilder:
    b = ModelBuilder(gravity=(0.1, -0.0, -9.7))
    b.add_shape_plane(-1, group="ground")
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.2, -0.1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    a = b.add_body(label="a", xform=Transform.from_rpy((0.1, 0.2, 1.0), (0.3, 0.2, 0.1)))
    hull = b.add_shape_hull(a, corners, material=Material(density=700.0))
    b.add_visual(a, "mesh", (corners, faces), color="#e0a818")
    c = b.add_body(3.0, (0.1, 0.2, 0.25), label="c", xform=Transform((1, 0, 1)), linear_velocity=(0.1, 1 / 3, 0))
    law = ContactLaw(normal="spring", stiffness=1e5, damping="linear", damping_coefficient=10.0)
    box = b.add_shape_box(c, (0.1, 0.2, 0.3), group="boxes", material=Material(law=law, priority=2, combine="max"))
    b.add_shape_height_field(-1, np.arange(12.0).reshape(3, 4) / 7, spacing=(0.5, 0.5), xform=Transform((0, 0, -9)))
    b.set_group_collision("boxes", "ground", False)
    b.set_group_collision("boxes", None, True)
    b.add_collision_pair(hull, box, Material(friction=0.25))
    hinge = b.add_joint_revolute(-1, a, at=(0, 0, 1), axis=(0, 1, 0), limit_upper=1.0, label="hinge")
    slide = b.add_joint_prismatic(-1, c, at=(1, 0, 1), axis=(0, 0, 1), label="slide", solver="direct")
    b.add_mimic(slide, hinge, multiplier=0.3, label="mimic")
    rope = b.add_tendon([(hinge, 0.2), (slide, 1.0)], limit_upper=3.0, label="rope")
    b.add_brake(rope, torque=100.0, label="brake")
    b.add_servo(hinge, stiffness=10.0, damping=1.0, label="servo")
    b.add_joint_force(hinge, label="push", delay=0.01)
    b.add_bushing(-1, c, stiffness=1e3, damping=10.0, label="bush")
    site = b.add_site(c, Transform((0, 0, 0.1)), label="tip")
    b.add_ray_sensor(site, gpusim.Rays.fan(1.0, 5), 10.0, label="lidar", groups=["ground"])
    b.add_contact_sensor(c, label="touch")
    gpusim.sensors.add_imu(b, "tip", "imu", rate=200.0, acceleration_noise=0.1, seed=3)
    oil = b.add_hydraulic_circuit()
    tank = oil.add_node(pressure=1e5, fixed=True, label="tank")
    ends: dict[str, Any] = {"at_a": (1.0, 0.0, 0.0), "at_b": (1.0, 0.0, 0.9), "stroke_min": 0.5, "stroke_max": 2.0}
    ram = oil.add_cylinder(-1, c, area_a=1e-3, area_b=5e-4, dead_volume=1e-4, pressure=(1e6, 2e6), label="ram", **ends)
    oil.add_leak(ram.node_a, tank, 1e-10, label="leak")
    d = Diagram("lift", rate=100.0)
    d.add("input", "height", lower=-1.0, upper=1.0)
    d.connect("height", "command:servo")
    b.add_diagram(d)
    b.set_operator_commands(["brake"])
    return b


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.nightly) if n in LARGE else n for n in list_scenes()]
)
def test_scenes_keep_every_bit(name: str) -> None:
    scene = load_scene(name)
    again = copied(scene.builder)
    assert_same(vars(scene.builder), vars(again), name)
    model, model_again = scene.builder.finalize(), again.finalize()
    assert_same(vars(model), vars(model_again), name)
    assert model_again.digest == model.digest


def test_everything_else_keeps_every_bit() -> None:
    b = everything()
    again = copied(b)
    assert_same(vars(b), vars(again), "builder")
    one, other = simulate(b, backend="numpy", dt=1e-3), simulate(again, backend="numpy", dt=1e-3)
    for sim in (one, other):
        sim.control["height"] = 0.5
        sim.step(50)
    assert bits(one, 0) == bits(other, 0)
    assert copied(again).to_dict() == b.to_dict()


@pytest.mark.native
@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=pytest.mark.nightly) for n in ("biped_walk", "omni_vehicle")), "biped_valve"]
)
def test_diagrams_move_in_the_same_way(name: str) -> None:
    scene = load_scene(name)
    found = []
    for builder in (scene.builder, copied(scene.builder)):
        sim = gpusim.Simulation(builder.finalize(), backend="native", config=scene.config)
        sim.step(50)
        found.append(bits(sim, 0))
    assert found[0] == found[1]


def test_copies_can_be_extended() -> None:
    b = copied(everything())
    with pytest.raises(ModelError, match=naming("body 'a'")):
        b.add_body(1.0, (1, 1, 1), label="a")
    assert b.add_body(1.0, (1, 1, 1), label="new") == 2


def test_shared_meshes_are_written_once() -> None:
    rng = np.random.default_rng(1)
    corners, faces = rng.uniform(size=(40, 3)), rng.integers(0, 40, size=(60, 3))
    b = ModelBuilder()
    body = b.add_body(1.0, (1, 1, 1))
    one = b.add_visual(body, "mesh", (corners, faces))
    b.add_visual(body, "mesh", b.visuals[one].params["pieces"], xform=Transform((1, 0, 0)))
    data = b.to_dict()
    assert len(data["arrays"]) == 2
    first, second = ModelBuilder.from_dict(data).visuals
    assert first.params["pieces"][0].vertices is second.params["pieces"][0].vertices
    assert not first.params["pieces"][0].vertices.flags.writeable


def test_large_arrays_are_compressed() -> None:
    rng = np.random.default_rng(2)
    corners, faces = rng.uniform(size=(4000, 3)), rng.integers(0, 4000, size=(9000, 3))
    b = ModelBuilder()
    b.add_visual(b.add_body(1.0, (1, 1, 1)), "mesh", (corners, faces))
    b.add_shape_height_field(-1, rng.uniform(size=(50, 60)))
    data = b.to_dict()
    assert all(isinstance(array["$array"], str) for array in data["arrays"])
    assert_same(vars(b), vars(copied(b)), "builder")
    for broken in ("", "abc", data["arrays"][0]["$array"][:-400]):
        data["arrays"][0]["$array"] = broken
        with pytest.raises(ModelError, match=naming("arrays number 0")):
            ModelBuilder.from_dict(data)


def test_python_blocks_are_refused() -> None:
    b = ModelBuilder()
    b.add_body(1.0, (1, 1, 1))
    d = Diagram("lift")
    d.add("python", "own", function=lambda t, given: t, names=[])
    b.add_diagram(d)
    with pytest.raises(ModelError, match=naming("block 'own' python")):
        b.to_dict()


def _set(data: dict[str, Any], path: list[Any], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["format"], "mjcf", "ModelBuilder.from_dict"),
        (["version"], 99, "version = 99"),
        (["bodys"], [], "bodies"),
        (["gravity"], "down", "gravity"),
        (["bodies", 0], 7, "bodies"),
        (["bodies", 0, "$type"], "description.specs.BodySpek", "BodySpek"),
        (["bodies", 0, "mas"], 1.0, "mass"),
        (["bodies", 0, "mass"], "heavy", "mass = 'heavy'"),
        (["bodies", 1, "label"], "a", "body 'a'"),
        (["bodies", 0, "com"], {"$array": [[1.0], [1.0, 2.0]], "dtype": "float64", "shape": [3]}, "$array"),
        (["bodies", 0, "com"], {"$array": [1.0], "dtype": "object", "shape": [1]}, "$array"),
        (["bodies", 0, "com"], {"$shared": 99}, "$shared"),
        (["bodies", 0, "com"], {"$python": "import os"}, "$python"),
        (["joints", 0, "kind"], "hinge", "hinge"),
        (["joints", 0, "child"], 99, "child = 99"),
        (["shapes", 0, "body"], 99, "body = 99"),
        (["actuators", 0, "kind"], "servos", "servo"),
        (["joints", 0, "solver"], "fast", "joint 'hinge' solver 'fast'"),
        (["joints", 0, "params", "dampng"], 1.0, "joint 'hinge' dampng damping"),
        (["joints", 0, "params", "damping"], 1.0, "joint 'hinge' damping"),
        (["joints", 2, "params", "terms"], [{"$tuple": [99, 0, 1.0]}], "joint 'rope' joint = 99"),
        (["shapes", 2, "params", "half"], 1.0, "shape 'shape2' half half_extents"),
        (["visuals", 0, "params", "piece"], 1.0, "visual 'visual0' piece pieces"),
        (["actuators", 1, "params", "stifness"], 1.0, "servo 'servo' stifness stiffness"),
        (["actuators", 1, "params", "drag"], 1.0, "servo 'servo' drag damping"),
        (["actuators", 1, "params", "stiffness"], "high", "servo 'servo' stiffness = 'high'"),
        (["actuators", 1, "params", "joint"], 99, "servo 'servo' joint = 99"),
        (["actuators", 1, "params", "axis"], 9, "servo 'servo' joint 'hinge' coordinate 9"),
        (["pairs", 0, "shape_a"], 99, "shape_a = 99"),
        (["couplings", 0, "terms"], [{"$tuple": [99, 0, 1.0]}], "coupling 'mimic' joint = 99"),
        (["sensors", 0, "site"], 99, "sensor 'lidar' site = 99"),
        (["sensors", 1, "element_index"], 99, "sensor 'touch' body = 99"),
        (["sensors", 0, "kind"], "rays", "sensor 'lidar' kind = 'rays'"),
        (["bodies", 1, "mass"], -1.0, "body 'c' mass = -1"),
        (["num_worlds"], 0, "num_worlds = 0"),
        (["arrays"], 3, "arrays"),
    ],
)
@pytest.mark.messages_vary
def test_broken_data(path: list[Any], value: Any, named: str) -> None:
    data = copy.deepcopy(everything().to_dict())
    _set(data, path, value)
    with pytest.raises(ModelError, match=naming(named)):
        ModelBuilder.from_dict(data)


@pytest.mark.parametrize(
    ("section", "index", "name"),
    [
        ("joints", 0, "columns"),
        ("joints", 0, "damping"),
        ("shapes", 2, "half_extents"),
        ("visuals", 0, "pieces"),
        ("actuators", 0, "safe"),
        ("actuators", 1, "stiffness"),
        ("actuators", 1, "joint"),
    ],
)
def test_missing_parameters(section: str, index: int, name: str) -> None:
    data = everything().to_dict()
    element = data[section][index]
    del element["params"][name]
    with pytest.raises(ModelError, match=naming(f"'{element['label']}' {name}")):
        ModelBuilder.from_dict(data)


def test_missing_fields_take_their_defaults() -> None:
    data = everything().to_dict()
    del data["joints"][0]["solver"], data["shapes"][0]["color"], data["sensors"]
    made = ModelBuilder.from_dict(data)
    assert made.joints[0].solver is None
    assert not made.sensors
    del data["bodies"][0]["mass"]
    with pytest.raises(ModelError, match=naming("BodySpec has no mass")):
        ModelBuilder.from_dict(data)


def test_numbers_that_json_lacks() -> None:
    b = everything()
    data = b.to_dict()
    assert data["bodies"][0]["mass"] == {"$float": "nan"}
    assert math.isnan(ModelBuilder.from_dict(data).bodies[0].mass)
