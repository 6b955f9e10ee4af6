from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
CASES = [("chain", "native"), ("chain", "numpy"), ("robot", "native")]


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("state_hashes", ROOT / "ci" / "state_hashes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = {"machine": "an abacus", "hashes": {" ".join(case): case[0] for case in CASES}}
    (tmp_path / "hashes.json").write_text(json.dumps(known))
    monkeypatch.setattr(module, "FILE", tmp_path / "hashes.json")
    monkeypatch.setattr(module, "cases", lambda: iter(CASES))
    monkeypatch.setattr(module, "state_hash", lambda case: case[0])
    return module


@pytest.mark.parametrize(("options", "end", "words"), [
    ([], 0, "2 cases, 0 differ\n1 cases of numpy skipped: their hashes are those of an abacus"),
    (["--only", "robot"], 0, "1 cases, 0 differ\n"),
    (["--backend", "numpy"], 2, "0 cases, 0 differ\n1 cases of numpy skipped"),
    (["--only", "hydraulik"], 2, "no case of --only 'hydraulik' --backend ''; scenes: chain robot"),
])  # fmt: skip
def test_nothing_compared_is_no_success(hashes, monkeypatch, capsys, options, end, words) -> None:
    monkeypatch.setattr(sys, "argv", ["state_hashes.py", "--check", *options])
    assert hashes.main() == end
    shown = capsys.readouterr()
    assert words in shown.out + shown.err


def test_a_difference_is_reported(hashes, monkeypatch, capsys) -> None:
    monkeypatch.setattr(hashes, "state_hash", lambda case: "other")
    monkeypatch.setattr(sys, "argv", ["state_hashes.py", "--check"])
    assert hashes.main() == 1
    assert "differs: chain native" in capsys.readouterr().out


def test_writing_nothing_leaves_the_file(hashes, monkeypatch) -> None:
    before = hashes.FILE.read_text()
    monkeypatch.setattr(sys, "argv", ["state_hashes.py", "--write", "--only", "nonsense"])
    assert hashes.main() == 2
    assert hashes.FILE.read_text() == before
