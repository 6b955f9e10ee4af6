"""USD import: files that are missing or broken."""

from __future__ import annotations

import sys

import pytest

from gpusim import ModelError, UnknownNameError
from gpusim.importers import load_usd
from tests.unit.test_usd import pendulum, said
from tests.unit.usd_text import body, joint, usd

pytest.importorskip("pxr")


def test_files_in_memory_and_their_search_path(tmp_path):
    part = usd(body("a", mass=1, inertia=(1, 1, 1)))
    whole = '#usda 1.0\ndef Xform "R"\n(\n references = @part.usda@</World>\n)\n{\n}\n'
    builder, _ = load_usd("whole.usda", assets={"whole.usda": whole.encode(), "part.usda": part.encode()})
    assert [spec.label for spec in builder.bodies] == ["a"]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "part.usda").write_text(part)
    (tmp_path / "whole.usda").write_text(whole)
    assert len(load_usd(tmp_path / "whole.usda", asset_dirs=[tmp_path / "lib"])[0].bodies) == 1


def test_a_missing_reference_is_a_finding():
    text = usd(body("a", mass=1, inertia=(1, 1, 1)), 'def Xform "R"\n(\n references = @nowhere.usda@\n)\n{\n}\n')
    assert said(load_usd(text)[1], "nowhere.usda")


BROKEN = {
    "missing": ("nothing.usda", "there is no file"),
    "text": ("#usda 1.0\ndef Xform {", "cannot read it"),
    "empty": ("", "load_usd: '' is"),
    "position": (usd(body("a", mass=1, at=("nan", 0, 0))).replace("'nan'", "nan"), "/World/a.: its .* is not finite"),
    "joint": (
        usd(body("a", mass=1), joint("Fixed", "j", "", "a").replace("(0, 0, 0)", "(inf, 0, 0)")),
        "/World/j.: its",
    ),
    "wrong type": (usd(body("a", "float2 physics:density = (1, 1)")), "another type than float"),
    "line": ("# usda\n" * 99, "begin it with"),
    "no physics": ('#usda 1.0\ndef Xform "a"\n{\n}\n', "no rigid body and no collider"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_bad_input_is_one_sentence(name):
    text, words = BROKEN[name]
    with pytest.raises(ModelError, match=words):
        load_usd(text)


def test_files_that_are_no_usd(tmp_path):
    (tmp_path / "a.usda").write_text("hello")
    (tmp_path / "a.xml").write_text("<mujoco/>")
    with pytest.raises(ModelError, match="cannot read it"):
        load_usd(tmp_path / "a.usda")
    with pytest.raises(ModelError, match="a.xml"):
        load_usd(tmp_path / "a.xml")
    with pytest.raises(ModelError, match="one of hull, decompose"):
        load_usd(pendulum(), meshes="concave")
    with pytest.raises(UnknownNameError, match="pose 'home'"):
        load_usd(pendulum(), pose="home")


def test_without_usd_core_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(ModelError, match=r'pip install "gpusim\[usd\]"'):
        load_usd(pendulum())
