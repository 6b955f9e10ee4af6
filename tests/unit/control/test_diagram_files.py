from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML

from gpusim import ModelError
from gpusim.control import Diagram, block_kinds
from tests.message_snapshot import naming
from tests.unit.control.plants import everything
from tests.unit.control.test_diagrams import cart


def compiled(d: Diagram) -> tuple[str, str, list[float], list[float], list[str]]:
    sim = cart([d])
    made = sim.runtime.running[0].program
    wires = [f"{wire.name} {wire.unit} {wire.at}" for wire in made.wires]
    return made.cpp, made.helpers, made.initial.tolist(), made.parameters.tolist(), [*wires, *made.tuned, *made.drives]


def load(tmp_path: Path, text: str) -> Diagram:
    path = tmp_path / "d.yaml"
    path.write_text(text, encoding="utf-8")
    return Diagram.load(path)


def test_every_kind_of_block_loads_as_the_same_program(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    d = everything()
    d.save(path)
    again = Diagram.load(path)
    assert compiled(again) == compiled(d)
    again.save(tmp_path / "again.yaml")
    assert path.read_bytes() == (tmp_path / "again.yaml").read_bytes()
    assert list(tmp_path.glob(".*")) == []


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    numpy, plain = Diagram("d"), Diagram("d")
    for d, whole in ((numpy, np.int64), (plain, int)):
        d.add("delay", "delay", samples=whole(3))
        d.add("noise", "noise", seed=whole(5), size=whole(2))
        d.connect(whole(4), d.add("mux", "mux", count=whole(2))["a"])
        d.save(tmp_path / f"{whole.__name__}.yaml")
    assert (tmp_path / "int64.yaml").read_text() == (tmp_path / "int.yaml").read_text()


def test_a_file_is_short_and_readable(tmp_path: Path) -> None:
    d = Diagram("lift", rate=200.0)
    d.add("input", "height", lower=0.0, upper=0.4, unit="m")
    d.connect("height", d.add("sum", "error", signs="+-")["a"])
    d.connect("signal:joint.rail.position", "error.b")
    d.connect("error", d.add("pid", "pid", kp=20.0, kd=np.float64(1e-5)))
    d.connect("pid", "command:push")
    d.save(tmp_path / "lift.yaml")
    assert (tmp_path / "lift.yaml").read_text() == (
        "label: lift\n"
        "rate: 200.0\n"
        "blocks:\n"
        "  height: {kind: input, lower: 0.0, upper: 0.4, unit: m}\n"
        "  error: {kind: sum, signs: +-}\n"
        "  joint_rail_position: {kind: signal, signal: joint.rail.position}\n"
        "  pid: {kind: pid, kp: 20.0, kd: 1e-05}\n"
        "  push: {kind: command, command: push}\n"
        "wires:\n"
        "  - [height, error.a]\n"
        "  - [joint_rail_position, error.b]\n"
        "  - [error, pid]\n"
        "  - [pid, push]\n"
    )


def test_subsystems_are_nested_with_their_labels(tmp_path: Path) -> None:
    inner = Diagram("axis", rate=50.0)
    inner.connect(inner.add("inport", "x"), inner.add("gain", "g", gain=3.0))
    inner.connect("g", inner.add("outport", "y"))
    middle = Diagram("middle")
    middle.add_subsystem("one", inner)
    middle.connect(middle.add("inport", "in"), "one.x")
    middle.connect("one.y", middle.add("outport", "out"))
    d = Diagram("d")
    for name in ("left", "right"):
        d.connect(1.0, d.add_subsystem(name, middle)["in"])
    d.connect("left", d.add("sum", "both")["a"])
    d.connect("right", "both.b")
    d.connect("both", "command:push")
    d.save(tmp_path / "d.yml")
    again = Diagram.load(tmp_path / "d.yml")
    assert compiled(again) == compiled(d)
    assert "*" not in (tmp_path / "d.yml").read_text()
    one = again.blocks["left"].diagram.blocks["one"].diagram  # type: ignore[union-attr]
    assert (one.label, one.rate) == ("axis", 50.0)


def test_names_and_texts_that_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    d = Diagram("on")
    for name in ("on", "no", "1e5", "0x10", "null", "1:30", "2020-01-01", "~", "=", "ü"):
        if ":" not in name:
            d.add("input", name, label=f"label {name}")
    d.add("input", "x", label="1e5", keys=("A", "1"), unit="1")
    d.save(tmp_path / "d.yaml")
    again = Diagram.load(tmp_path / "d.yaml")
    assert list(again.blocks) == list(d.blocks)
    assert again.operator_inputs == d.operator_inputs
    assert list(YAML(typ="safe").load(tmp_path / "d.yaml")["blocks"]) == list(d.blocks)  # any reader of YAML 1.2


def test_what_a_person_writes(tmp_path: Path) -> None:
    d = load(tmp_path, """
label: d
blocks:
  g: &usual {kind: gain, gain: 1e-3}
  h: *usual
  s: {kind: switch}
  m: {kind: state_machine, states: [off, on], transitions: [[off, on, 010]]}
wires:
  - [signal:joint.rail.position, g]
  - [g, h.in]
  - [m.on, s.on]
  - [0.5, s.a]
  - [h, s.b]
  - [s, command:push]
""")  # fmt: skip
    assert d.blocks["h"].gain == 1e-3  # type: ignore[union-attr]
    assert d.blocks["m"].transitions == [["off", "on", 10]]  # type: ignore[union-attr]
    d.check()
    assert d.driven == ["push"]


def test_python_is_not_saved(tmp_path: Path) -> None:
    d = Diagram("d")
    d.add("python", "p", function=lambda t, x: t)
    with pytest.raises(ModelError, match=naming("diagram 'd' 'p' 'expression'")):
        d.save(tmp_path / "d.yaml")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ModelError, match=naming(".yaml .yml")):
        d.save(tmp_path / "d.json")


HEAD = "label: d\nblocks:\n"
GOOD = HEAD + "  a: {kind: gain}\n  b: {kind: gain}\n"
WRONG = {
    "empty": ("", "d.yaml"),
    "list": ("- 1\n", "d.yaml"),
    "text": ("hello\n", ""),
    "syntax": ("label: d\nblocks: [a\nwires: []\n", ""),
    "tab": ("label: d\nblocks:\n\ta: {kind: gain}\n", "3"),
    "two documents": ("label: d\n---\nlabel: e\n", "2"),
    "no label": ("blocks: {a: {kind: timer}}\n", "1"),
    "bad label": ("label: a b\nblocks: {a: {kind: timer}}\n", "1"),
    "label is no text": ("blocks: {}\nlabel: 3\n", "2 3"),
    "no blocks": ("label: d\n", "1 'blocks:'"),
    "blocks as a list": ("label: d\nblocks: [a]\n", "2 blocks 'a'"),
    "unknown entry": (GOOD + "wire:\n", "5 'wire' 'wires'"),
    "rate is text": ("label: d\nrate: fast\nblocks: {}\n", "1 rate 'fast'"),
    "rate is zero": ("rate: 0\nlabel: d\nblocks: {}\n", "rate 0"),
    "two names": (HEAD + "  a: {kind: gain}\n  a: {kind: abs}\n", "4 a"),
    "two parameters": (HEAD + "  a: {kind: gain, gain: 1, gain: 2}\n", "3 gain"),
    "a name that is a number": (HEAD + "  1: {kind: gain}\n", "3 1"),
    "a name with a point": (HEAD + "  a.b: {kind: gain}\n", "3 'a.b'"),
    "a block that is text": (HEAD + "  a: gain\n", "3 'a' 'gain'"),
    "no kind": (HEAD + "  a: {gain: 2}\n", "3 'a'"),
    "unknown kind": (HEAD + "  a: {kind: gian}\n", "3 'a' 'gian'"),
    "kind is a list": (HEAD + "  a: {kind: [gain]}\n", "3 'a'"),
    "python": (HEAD + "  a: {kind: python}\n", "3 'a'"),
    "unknown parameter": (HEAD + "  a: {kind: gain, gian: 2}\n", "3 'gian'"),
    "a parameter too few": (HEAD + "  a: {kind: lowpass}\n", "3 time"),
    "number as text": (HEAD + "  a:\n    kind: gain\n    gain: fast\n", "5 'a' gain 'fast'"),
    "list for a number": (HEAD + "  a: {kind: lowpass, time: [1]}\n", "time 1"),
    "truth for a number": (HEAD + "  a: {kind: lowpass, time: true}\n", "time True"),
    "number for a text": (HEAD + "  a: {kind: input, unit: 5}\n", "unit 5"),
    "texts in a list": (HEAD + "  a: {kind: lookup, x: [0, one], y: [0, 1]}\n", "x 0 'one'"),
    "a rule of a block": (HEAD + "  a: {kind: lowpass, time: -1}\n", "3 'a' time -1"),
    "not finite": (HEAD + "  a: {kind: lowpass, time: .nan}\n", "time nan"),
    "wires as text": (GOOD + "wires: a, b\n", "5 wires"),
    "three ends": (GOOD + "wires:\n  - [a, b]\n  - [a, b, a]\n", "7"),
    "a wire as text": (GOOD + "wires: [a b]\n", "5"),
    "a wire as mapping": (GOOD + "wires: [{a: b}]\n", "'a' 'b'"),
    "an unknown end": (GOOD + "wires:\n  - [a, c]\n", "6 diagram 'd' 'c'"),
    "an unknown port": (GOOD + "wires:\n  - [a, b.on]\n", "6 'b' 'on' 'in'"),
    "two into one": (GOOD + "wires:\n  - [a, b]\n  - [b, b]\n", "7 'b.in' 'a.out'"),
    "it holds itself": (
        HEAD + "  a: &x\n    kind: subsystem\n    blocks:\n      b: *x\n",
        "6 'a/b'",
    ),
    "inside": (
        HEAD + "  s:\n    kind: subsystem\n    blocks:\n      g: {kind: gain}\n    wires:\n      - [g, h]\n",
        "8 diagram 's' 'h'",
    ),
    "an entry inside": (HEAD + "  s: {kind: subsystem, gain: 3, blocks: {}}\n", "block 's' 'gain'"),
    "no ports inside": (
        HEAD + "  s: {kind: subsystem, blocks: {g: {kind: timer}}}\n  a: {kind: gain}\nwires: [[s, a]]\n",
        "5 's'",
    ),
    "too many digits": (HEAD + "  a: {kind: gain, gain: " + "9" * 5000 + "}\n", ""),
    "a wrong tag": (HEAD + "  a: {kind: gain, gain: !!bool x}\n", ""),
    "a huge number": (HEAD + "  a: {kind: gain, gain: " + "9" * 400 + "}\n", "3 gain 1e308"),
    "merged": (HEAD + "  <<: {a: {kind: gian}}\n", "3 'a' 'gian'"),
    "a tag": (HEAD + "  a: {kind: gain, gain: !!python/name:os.system x}\n", "3"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_get_one_sentence(case: str, tmp_path: Path) -> None:
    text, message = WRONG[case]
    with pytest.raises(ModelError, match=naming(message)) as caught:
        load(tmp_path, text)
    said = str(caught.value)
    assert repr(str(tmp_path / "d.yaml")) in said and "\n" not in said


@pytest.mark.nightly
def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=naming("no.yaml")):
        Diagram.load(tmp_path / "no.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match=naming("b.yaml")):
        Diagram.load(tmp_path / "b.yaml")
    with pytest.raises(ModelError, match=naming("d.yaml")):
        load(tmp_path, "[" * 100000)
    bomb = "".join(f"x{k}: &x{k} [{', '.join([f'*x{k - 1}'] * 10) if k else '1'}]\n" for k in range(12))
    with pytest.raises(ModelError, match=naming("1000000")):
        load(tmp_path, bomb)


@pytest.mark.nightly
def test_any_value_of_any_parameter_loads_or_is_reported(tmp_path: Path) -> None:
    values = ["fast", "''", "[]", "[1]", "[[1, 2], [3]]", "{a: 1}", "null", "true", "-1", "0", "1.5", "9" * 400, ".inf"]
    tried = 0
    for kind, cls in block_kinds().items():
        needed = {
            name: "[0, 1]" if "Sequence" in str(f.type) else "x" if f.type == "str" else "1"
            for name, f in cls.parameters().items()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        }
        for name, value in itertools.product(cls.parameters(), values):
            listed = ", ".join(f"{k}: {v}" for k, v in (needed | {name: value}).items())
            tried += 1
            try:
                d = load(tmp_path, f"label: d\nblocks:\n  a: {{kind: {kind}, {listed}}}\n")
                d.save(tmp_path / "again.yaml")
                again = Diagram.load(tmp_path / "again.yaml").blocks["a"]
                assert type(again) is type(d.blocks["a"])
            except ModelError as error:
                assert "d.yaml" in str(error), (kind, name, value, error)
    assert tried > 1000
