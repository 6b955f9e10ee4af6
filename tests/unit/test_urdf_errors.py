from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim.errors import ModelError
from gpusim.importers import load_urdf
from tests.message_snapshot import names, naming
from tests.unit.urdf_text import DATA, LIMIT, SOLID, arm, inertial, joint, link, robot

pytest.importorskip("yourdfpy")

MIMIC = LIMIT + '<mimic joint="{}"/>'
TWO = (link("a"), link("b"))
THREE = (*TWO, link("c"))

BROKEN = {
    "not XML": ("<robot", ""),
    "unclosed": ('<robot name="a"><link name="b"></robot>', ""),
    "unbound prefix": ('<robot name="a"><x:y/></robot>', "<robot> <link>"),
    "plain text after": ("<robot/>hello", "<robot> <link>"),
    "lone surrogate": ("<robot name='\ud800'/>", ""),
    "no robot": ("<model/>", "<model> <robot>"),
    "SDF": ('<sdf version="1.6"/>', "SDF"),
    "MJCF": ("<mujoco/>", "MJCF"),
    "no links": ('<robot name="a"/>', "<link>"),
    "link without a name": (robot("<link/>"), "<link>"),
    "link twice": (robot(link("a"), link("a")), "link 'a'"),
    "joint without a name": (robot(*TWO, "<joint type='fixed'/>"), "<joint>"),
    "joint twice": (robot(*THREE, joint("j", "a", "b"), joint("j", "b", "c")), "'j'"),
    "no type": (robot(*TWO, '<joint name="j"/>'), "'j'"),
    "unknown type": (arm(kind="hinge"), "'elbow' 'hinge'"),
    "no parent": (robot(*TWO, '<joint name="j" type="fixed"><child link="b"/></joint>'), "4 'j'"),
    "no child": (robot(*TWO, '<joint name="j" type="fixed"><parent link="b"/></joint>'), "4 'j'"),
    "empty parent": (robot(*TWO, '<joint name="j" type="fixed"><parent/></joint>'), "4 'j'"),
    "unknown parent": (robot(link("base"), joint("j", "bass", "base")), "'j' 'bass' 'base'"),
    "unknown child": (robot(link("base"), joint("j", "base", "bass")), "'j' 'bass'"),
    "to itself": (robot(link("a"), joint("j", "a", "a")), "link 'a'"),
    "several roots": (robot(*THREE, joint("j", "a", "b")), "2 'a' 'c'"),
    "two parents": (
        robot(*THREE, joint("ac", "a", "c"), joint("bc", "b", "c"), joint("ab", "a", "b")), "'ac' 'bc'",
    ),
    "cycle": (robot(*TWO, joint("ab", "a", "b"), joint("ba", "b", "a")), "links 'a' 'b'"),
    "cycle apart": (robot(*THREE, joint("bc", "b", "c"), joint("cb", "c", "b")), "'a'"),
    "zero axis": (arm('<axis xyz="0 0 0"/>' + LIMIT), "'elbow'"),
    "two numbers": (arm('<axis xyz="0 1"/>' + LIMIT), "xyz 0 1 3"),
    "word as a number": (arm('<origin xyz="0 0 up"/>' + LIMIT), "3"),
    "NaN origin": (arm('<origin rpy="0 0 nan"/>' + LIMIT), "4 <origin> 'elbow' rpy 0"),
    "rpy and a quaternion": (arm('<origin rpy="0 0 1" quat_xyzw="0 0 0 1"/>' + LIMIT), "<origin> rpy quat_xyzw"),
    "zero quaternion": (arm('<origin quat_xyzw="0 0 0 0"/>' + LIMIT), "<origin> quat_xyzw"),
    "semicolons": (arm('<origin xyz="0; 0; 1"/>' + LIMIT), "4 <origin> 'elbow' xyz 0"),
    "decimal commas": (arm('<origin xyz="0,5 0 1"/>' + LIMIT), "xyz 0 5 1 3"),
    "no limit": (arm("", "revolute"), "'elbow' <limit>"),
    "no limit, sliding": (arm("", "prismatic"), "<limit>"),
    "limits swapped": (arm('<limit lower="1" upper="-1" effort="1" velocity="1"/>'), "1"),
    "NaN limit": (arm('<limit lower="nan" upper="1" effort="1" velocity="1"/>'), "4 'elbow' limits"),
    "limit a word": (arm('<limit lower="-1" upper="pi" effort="1" velocity="1"/>'), "upper"),
    "no position left": (arm('<limit lower="inf" upper="inf" effort="1" velocity="1"/>'), "4 'elbow'"),
    "effort a word": (arm('<limit lower="-1" upper="1" effort="big" velocity="1"/>'), "effort"),
    "negative damping": (arm(LIMIT + '<dynamics damping="-1"/>'), "-1"),
    "negative friction": (arm(LIMIT + '<dynamics friction="-1"/>'), "-1"),
    "damping a word": (arm(LIMIT + '<dynamics damping=""/>'), "4 <dynamics> 'elbow' damping"),
    "unknown leader": (arm(MIMIC.format("elbo")), "'elbow' <mimic> 'elbo'"),
    "no leader": (arm(LIMIT + "<mimic/>"), "<mimic>"),
    "own leader": (arm(MIMIC.format("elbow")), "'elbow'"),
    "leaders in a circle": (
        robot(
            *THREE,
            joint("ab", "a", "b", content=MIMIC.format("bc")),
            joint("bc", "b", "c", content=MIMIC.format("ab")),
        ),
        "'ab' <mimic> 'bc'",
    ),
    "floating leader": (
        robot(*THREE, joint("ab", "a", "b", "floating", ""), joint("bc", "b", "c", content=MIMIC.format("ab"))),
        "'ab'",
    ),
    "planar follower": (
        robot(*THREE, joint("ab", "a", "b"), joint("bc", "b", "c", "planar", MIMIC.format("ab"))), "'bc'",
    ),
    "multiplier a word": (arm(LIMIT + '<mimic joint="elbow" multiplier="twice"/>'), "4 <mimic> 'elbow' multiplier"),
    "negative mass": (arm(tip=inertial("-1", ("1",) * 6)), "link 'tip' -1"),
    "mass a word": (arm(tip=inertial("heavy", ("1",) * 6)), "value"),
    "inertia a word": (arm(tip=inertial("1", ("x",) * 6)), "ixx"),
    "two inertials": (arm(tip=SOLID + SOLID), "link 'tip' 2 <inertial>"),
    "two limits": (arm(LIMIT + LIMIT), "'elbow' 2 <limit>"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_text(text, words):
    with pytest.raises(ModelError) as caught:
        load_urdf(text)
    check_sentence(caught.value, words)
    assert str(caught.value).startswith("URDF text")


def check_sentence(error, words):
    message = str(error)
    assert names(message, words), message
    assert "\n" not in message
    assert "Traceback" not in message and "lxml" not in message and "yourdfpy" not in message
    # the cause must not bring another library's traceback along
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def test_messages_name_file_and_line(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(arm('<axis xyz="0 0 0"/>' + LIMIT))
    with pytest.raises(ModelError, match=naming("robot.urdf 4")):
        load_urdf(path)


def test_files_that_cannot_be_read(tmp_path):
    for path, words in [
        (tmp_path / "nowhere.urdf", ""),
        (str(tmp_path / "nowhere.urdf"), ""),
        (tmp_path, "folder"),
        ("bad\0name", ""),
        ("x" * 5000, ""),
        ("", ""),
        ("  \n", ""),
        (None, ""),
        (3.0, ""),
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
    check_sentence(caught.value, "")


def test_without_yourdfpy_the_fix_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "yourdfpy", None)
    with pytest.raises(ModelError):
        load_urdf(arm())


def test_entities_are_not_expanded(tmp_path):
    (tmp_path / "secret").write_text("1")
    text = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{(tmp_path / "secret").as_uri()}">]>' + arm(tip=f"&x;{SOLID}")
    assert len(load_urdf(text)[0].bodies) == 2


PIECES = (DATA / "all_joints.urdf").read_text()


@pytest.mark.nightly
@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(PIECES) - 1), st.integers(0, 40), st.text(max_size=6))
def test_a_damaged_file_is_read_or_refused_with_a_sentence(start, length, filling):
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
