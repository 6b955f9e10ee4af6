from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mutants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "ci" / "mutants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_every_text_stands_once(mutants: ModuleType) -> None:
    assert len({m.name for m in mutants.MUTANTS}) == len(mutants.MUTANTS) >= 12
    for mutant in mutants.MUTANTS:
        assert (ROOT / mutant.tests).is_file()
        for name, old, new in mutant.changes:
            assert (ROOT / name).read_text("utf-8").count(old) == 1, (mutant.name, name)
            assert old != new


@pytest.mark.parametrize(("codes", "verdict", "end"), [
    ([0, 1], "killed", 0), ([0, 0], "SURVIVED", 1), ([0, 4], "NOT TRIED", 2), ([1], "NOT TRIED", 2),
])  # fmt: skip
def test_exit_code_reports_survivors(mutants: ModuleType, monkeypatch, capsys, codes, verdict, end) -> None:
    seen: list[str] = []
    (name, old, _), *_ = mutants.MUTANTS[0].changes
    whole = (ROOT / name).read_text("utf-8")

    def run(copy: Path, mutant: object) -> int:
        seen.append((copy / name).read_text("utf-8"))
        return codes[len(seen) - 1]

    monkeypatch.setattr(mutants, "run_tests", run)
    monkeypatch.setattr(mutants, "copy_of_checkout", lambda folder: _copy(folder, mutants.MUTANTS[0]))
    assert mutants.main(["--only", mutants.MUTANTS[0].name]) == end
    assert verdict in capsys.readouterr().out
    assert [old in text for text in seen] == [True, False][: len(codes)]
    assert (ROOT / name).read_text("utf-8") == whole


def _copy(folder: Path, mutant: object) -> Path:
    for name, _, _ in mutant.changes:  # type: ignore[attr-defined]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    return folder
