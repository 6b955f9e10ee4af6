from __future__ import annotations

from typing import Annotated, Literal

import pytest

from gpusim import ModelBuilder, SolverConfig
from gpusim.errors import ModelError, UnknownNameError
from gpusim.scene import Range, Scene, convert, list_scenes, load_scene, require, scene_parameters
from tests.message_snapshot import naming

SCENES = (
    "biped_valve biped_walk boom_crane bricard card_house chain chrono_crane dc_motor_rig double_pendulum excavator "
    "four_bar flyball hydraulic_lift krt100m pile pyramid quarter_car rattleback robot_arm slider_crank slope "
    "spinning_top suspension_rig tippe_top"
).split()


def test_every_scene_is_listed_with_one_line():
    listed = list_scenes()
    assert set(SCENES) <= set(listed)
    assert list(listed) == sorted(listed)
    for description in listed.values():
        assert description.endswith(".") or ":" in description
        assert "\n" not in description and 10 < len(description) < 120


@pytest.mark.parametrize("name", SCENES)
def test_every_parameter_is_documented(name):
    parameters = scene_parameters(name)
    assert parameters
    for parameter in parameters:
        assert parameter.doc, f"{name}: {parameter.name} is not in the docstring"
        assert parameter.type


@pytest.mark.nightly
@pytest.mark.parametrize("name", SCENES)
def test_every_scene_builds(name):
    scene = load_scene(name)
    assert scene.name == name
    assert scene.duration > 0.0 and scene.plots and scene.description
    assert len(scene.signals()) == len(set(scene.signals()))
    scene.builder.finalize()


def test_values_from_a_command_line_are_converted():
    scene = load_scene("chain", links="3", mass_ratio="0", horizontal="yes", joint="ball")
    assert [body.label for body in scene.builder.bodies] == ["link0", "link1", "link2"]
    assert {joint.kind for joint in scene.builder.joints} == {"ball"}


def test_config_and_duration_of_a_scene_have_defaults():
    scene = Scene("ball", "a ball", ModelBuilder())
    assert scene.config == SolverConfig() and scene.duration > 0.0


def test_unknown_scene_names_the_known_ones():
    with pytest.raises(UnknownNameError, match=naming("'hydraulic_lift'")):
        load_scene("hydraulic_lit")


def test_unknown_parameter_names_the_known_ones():
    with pytest.raises(UnknownNameError, match=naming("'mass'")):
        load_scene("hydraulic_lift", maas="3")


@pytest.mark.parametrize(
    ("scene", "parameter", "value"),
    [
        ("hydraulic_lift", "mass", "heavy"),
        ("hydraulic_lift", "mass", "-1"),
        ("hydraulic_lift", "mass", "nan"),
        ("hydraulic_lift", "variant", "sideways"),
        ("hydraulic_lift", "command", "2"),
        ("hydraulic_lift", "position", "3"),
        ("chain", "links", "0"),
        ("chain", "links", "2.5"),
        ("chain", "horizontal", "maybe"),
        ("four_bar", "windows", "0"),
        ("slider_crank", "rod_length", "0.05"),
        ("boom_crane", "angle", "2"),
        ("boom_crane", "length", "0.5"),
        ("quarter_car", "spring_stiffness", "0"),
        ("spinning_top", "radius", "0"),
        ("bricard", "mass", "0"),
        ("flyball", "ball_mass", "-1"),
        ("double_pendulum", "mass2", "-2"),
        ("dc_motor_rig", "load", "brick"),
        ("dc_motor_rig", "command", "1.5"),
        ("chrono_crane", "ball_mass", "0"),
        ("pile", "count", "0"),
        ("pile", "balls", "1.5"),
        ("pyramid", "height", "0"),
        ("card_house", "angle", "45"),
        ("slope", "angle", "80"),
        ("tippe_top", "offset", "0.02"),
        ("rattleback", "skew", "1"),
    ],
)
def test_bad_values_are_named(scene, parameter, value):
    with pytest.raises(ModelError, match=naming(parameter)) as caught:
        load_scene(scene, **{parameter: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        ("1e3", float, 1000.0),
        (3, float, 3.0),
        ("7", int, 7),
        ("no", bool, False),
        ("On", bool, True),
        ("none", float | None, None),
        ("2.5", float | None, 2.5),
        ("a", Literal["a", "b"], "a"),
        ("word", str, "word"),
    ],
)
def test_convert(value, hint, expected):
    assert convert(value, hint, "it") == expected


@pytest.mark.parametrize(
    ("value", "hint"), [(True, float), ("inf", float), (1.5, int), ([1], float), ("c", Literal["a"])]
)
def test_convert_refuses(value, hint):
    with pytest.raises(ModelError):
        convert(value, hint, "it")


def test_require():
    require(True, "s", "p", 1, "must be 1")
    with pytest.raises(ModelError, match=naming("scene 's' parameter 'p' 1 2")):
        require(False, "s", "p", 2, "must be 1")


@pytest.mark.parametrize(
    ("allowed", "fits", "misses", "rule"),
    [
        (Range(0.0, 1.0), (0.0, 1.0), (-0.1, 1.1), "must be at least 0 and at most 1"),
        (Range(above=0.0), (1e-9,), (0.0, -1.0), "must be above 0"),
        (Range(minimum=0.0, below=0.5), (0.0, 0.49), (-0.1, 0.5), "must be at least 0 and below 0.5"),
    ],
)
def test_ranges(allowed: Range, fits: tuple[float, ...], misses: tuple[float, ...], rule: str) -> None:
    for value in fits:
        assert convert(str(value), Annotated[float, allowed], "it") == value
    for value in misses:
        with pytest.raises(ModelError, match=naming(f"it {rule} {value}")):
            convert(value, Annotated[float, allowed] | None, "it")
    assert convert("none", Annotated[float, allowed] | None, "it") is None


@pytest.mark.parametrize("word", ["closed_center", "closed_centre"])
def test_the_old_word_for_a_closed_center_is_taken(word: str) -> None:
    assert load_scene("hydraulic_lift", variant=word).duration == 2.0
