"""URDF import: every broken file gets one sentence with the file, the element, the rule and the mend."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.errors import ModelError
from gpusim.importers import load_urdf
from tests.unit.urdf_text import DATA, LIMIT, SOLID, arm, inertial, joint, link, robot

pytest.importorskip("yourdfpy")

MIMIC = LIMIT + '<mimic joint="{}"/>'
TWO = (link("a"), link("b"))
THREE = (*TWO, link("c"))

BROKEN = {
    "not XML": ("<robot", "well-formed"),
    "unclosed": ('<robot name="a"><link name="b"></robot>', "well-formed"),
    "unbound prefix": ('<robot name="a"><x:y/></robot>', "well-formed"),
    "plain text after": ("<robot/>hello", "well-formed"),
    "lone surrogate": ("<robot name='\ud800'/>", "well-formed"),
    "no robot": ("<model/>", "<model>.*one <robot>"),
    "SDF": ('<sdf version="1.6"/>', "SDF"),
    "MJCF": ("<mujoco/>", "MJCF"),
    "no links": ('<robot name="a"/>', "no <link>"),
    "xacro element": (
        '<robot name="a" xmlns:xacro="http://ros.org/xacro"><xacro:property name="m" value="1"/></robot>', "xacro",
    ),
    "xacro value": (arm('<limit lower="${-pi}" upper="1"/>'), "xacro"),
    "link without a name": (robot("<link/>"), "<link> has no name"),
    "link twice": (robot(link("a"), link("a")), "link 'a' exists already.*rename"),
    "joint without a name": (robot(*TWO, "<joint type='fixed'/>"), "<joint> has no name"),
    "joint twice": (robot(*THREE, joint("j", "a", "b"), joint("j", "b", "c")), "joint 'j' exists already"),
    "no type": (robot(*TWO, '<joint name="j"/>'), "joint 'j' has no type.*revolute"),
    "unknown type": (arm(kind="hinge"), "joint 'elbow' has type 'hinge'.*revolute"),
    "no parent": (robot(*TWO, '<joint name="j" type="fixed"><child link="b"/></joint>'), "no parent link"),
    "no child": (robot(*TWO, '<joint name="j" type="fixed"><parent link="b"/></joint>'), "no child link"),
    "empty parent": (robot(*TWO, '<joint name="j" type="fixed"><parent/></joint>'), "no parent link"),
    "unknown parent": (robot(link("base"), joint("j", "bass", "base")), "joint 'j': parent.*'bass'.*'base'"),
    "unknown child": (robot(link("base"), joint("j", "base", "bass")), "joint 'j': child.*'bass'"),
    "to itself": (robot(link("a"), joint("j", "a", "a")), "link 'a' to itself"),
    "several roots": (robot(*THREE, joint("j", "a", "b")), r"2 root links \('a', 'c'\)"),
    "two parents": (
        robot(*THREE, joint("ac", "a", "c"), joint("bc", "b", "c"), joint("ab", "a", "b")), "'ac' and 'bc'",
    ),
    "cycle": (robot(*TWO, joint("ab", "a", "b"), joint("ba", "b", "a")), "in a circle.*root"),
    "cycle apart": (robot(*THREE, joint("bc", "b", "c"), joint("cb", "c", "b")), "in a circle, apart from root 'a'"),
    "zero axis": (arm('<axis xyz="0 0 0"/>' + LIMIT), "joint 'elbow': axis.*zero.*direction"),
    "two numbers": (arm('<axis xyz="0 1"/>' + LIMIT), 'xyz="0 1" must be 3 numbers'),
    "word as a number": (arm('<origin xyz="0 0 up"/>' + LIMIT), "must be 3 numbers"),
    "NaN origin": (arm('<origin rpy="0 0 nan"/>' + LIMIT), "must be finite"),
    "semicolons": (arm('<origin xyz="0; 0; 1"/>' + LIMIT), "separated by spaces"),
    "decimal commas": (arm('<origin xyz="0,5 0 1"/>' + LIMIT), 'xyz="0,5 0 1" must be 3 numbers'),
    "no limit": (arm("", "revolute"), "joint 'elbow': a revolute joint needs <limit>.*continuous"),
    "no limit, sliding": (arm("", "prismatic"), "a prismatic joint needs <limit>"),
    "limits swapped": (arm('<limit lower="1" upper="-1" effort="1" velocity="1"/>'), "lower 1 exceeds upper -1.*swap"),
    "NaN limit": (arm('<limit lower="nan" upper="1" effort="1" velocity="1"/>'), "must not be NaN"),
    "limit a word": (arm('<limit lower="-1" upper="pi" effort="1" velocity="1"/>'), 'upper="pi" must be one number'),
    "no position left": (arm('<limit lower="inf" upper="inf" effort="1" velocity="1"/>'), "leave no position"),
    "effort a word": (arm('<limit lower="-1" upper="1" effort="big" velocity="1"/>'), 'effort="big"'),
    "negative damping": (arm(LIMIT + '<dynamics damping="-1"/>'), "damping -1 must not be negative"),
    "negative friction": (arm(LIMIT + '<dynamics friction="-1"/>'), "friction -1 must not be negative"),
    "damping a word": (arm(LIMIT + '<dynamics damping=""/>'), "must be one number"),
    "unknown leader": (arm(MIMIC.format("elbo")), "joint 'elbow': <mimic>.*'elbo'.*'elbow'"),
    "no leader": (arm(LIMIT + "<mimic/>"), "<mimic> names no joint"),
    "own leader": (arm(MIMIC.format("elbow")), "circle through 'elbow'"),
    "leaders in a circle": (
        robot(
            *THREE,
            joint("ab", "a", "b", content=MIMIC.format("bc")),
            joint("bc", "b", "c", content=MIMIC.format("ab")),
        ),
        "circle through",
    ),
    "floating leader": (
        robot(*THREE, joint("ab", "a", "b", "floating", ""), joint("bc", "b", "c", content=MIMIC.format("ab"))),
        "joint 'ab' is floating",
    ),
    "planar follower": (
        robot(*THREE, joint("ab", "a", "b"), joint("bc", "b", "c", "planar", MIMIC.format("ab"))), "'bc' is planar",
    ),
    "multiplier a word": (arm(LIMIT + '<mimic joint="elbow" multiplier="twice"/>'), "must be one number"),
    "negative mass": (arm(tip=inertial("-1", ("1",) * 6)), "link 'tip': mass -1 kg must not be negative"),
    "mass a word": (arm(tip=inertial("heavy", ("1",) * 6)), 'value="heavy" must be one number'),
    "inertia a word": (arm(tip=inertial("1", ("x",) * 6)), 'ixx="x" must be one number'),
    "two inertials": (arm(tip=SOLID + SOLID), "link 'tip' has 2 <inertial>; keep one"),
    "two limits": (arm(LIMIT + LIMIT), "joint 'elbow' has 2 <limit>"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_text(text, words):
    with pytest.raises(ModelError) as caught:
        load_urdf(text)
    check_sentence(caught.value, words)
    assert str(caught.value).startswith("URDF text")


def check_sentence(error, words):
    message = str(error)
    assert re.search(words, message), message
    assert "\n" not in message
    assert "Traceback" not in message and "lxml" not in message and "yourdfpy" not in message
    # the cause must not bring another library's traceback along
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_messages_name_file_and_line(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(arm('<axis xyz="0 0 0"/>' + LIMIT))
    with pytest.raises(ModelError, match=r"robot\.urdf' line 4: .*axis"):
        load_urdf(path)


def test_files_that_cannot_be_read(tmp_path):
    for path, words in [
        (tmp_path / "nowhere.urdf", "nowhere.*no such file"),
        (str(tmp_path / "nowhere.urdf"), "no such file"),
        (tmp_path, "folder"),
        ("bad\0name", "cannot be read"),
        ("x" * 5000, "cannot be read"),
        ("", "empty"),
        ("  \n", "empty"),
        (None, "NoneType is no path"),
        (3.0, "float is no path"),
    ]:
        with pytest.raises(ModelError) as caught:
            load_urdf(path)
        check_sentence(caught.value, words)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"PK\x03\x04", "<robot/>".encode("utf-16")[:9]])
def test_files_that_are_no_xml(tmp_path, content):
    path = tmp_path / "robot.urdf"
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load_urdf(path)
    check_sentence(caught.value, "well-formed")


def test_without_yourdfpy_the_mend_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "yourdfpy", None)
    with pytest.raises(ModelError, match=r'pip install "gpusim\[urdf\]"'):
        load_urdf(arm())


def test_entities_are_not_expanded(tmp_path):
    (tmp_path / "secret").write_text("1")
    text = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{(tmp_path / "secret").as_uri()}">]>' + arm(tip=f"&x;{SOLID}")
    assert len(load_urdf(text)[0].bodies) == 2


PIECES = (DATA / "all_joints.urdf").read_text()


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(PIECES) - 1), st.integers(0, 40), st.text(max_size=6))
def test_a_damaged_file_is_read_or_refused_with_a_sentence(start, length, filling):
    """Whatever is cut out or put in: a model or a ModelError, never another exception."""
    text = PIECES[:start] + filling + PIECES[start + length :]
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        return
    try:
        load_urdf(text)[0]
    except ModelError as error:
        assert "\n" not in str(error)


def test_names_and_attributes_in_any_script(caplog):
    text = arm().replace('"tip"', '"наконечник"').replace("upper=", 'верх="2" upper=')
    builder, _ = load_urdf(text)
    assert builder.bodies[1].label == "наконечник"
    assert not caplog.records
