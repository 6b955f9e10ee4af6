"""The check of the kernels' PTX, ci/ptx/check.py."""

from __future__ import annotations

import pytest

from ci.ptx import check
from ci.ptx.check import Case, main, run_case
from ci.ptx.executor import why_not
from ci.ptx.models import MODELS, Run
from gpusim.scene import load_scene

needed = pytest.mark.skipif(bool(why_not()), reason=why_not())
CHAIN = Case("chain", "fused", "direct", "float32")


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "chain", Run(lambda: load_scene("chain").builder, 2e-3, 4))
    # a build with the sizes of the chain compiles in half the time
    monkeypatch.setattr(check, "SIZED", ("chain",))


@needed
@pytest.mark.nightly
def test_joints_alone(chain: None) -> None:
    result = run_case(CHAIN)
    assert not result.failed() and not result.differing and not result.findings


@needed
@pytest.mark.nightly
def test_a_missing_barrier_is_found(chain: None, capsys: pytest.CaptureFixture[str]) -> None:
    phase = "RUN(w.rows(), scale_right(w, i));"
    alone = "for (int i = w.tid; i < w.rows(); i += w.threads) scale_right(w, i);"
    result = run_case(CHAIN, seed=0, fault=("order.cuh", phase, alone))
    races = [f for f in result.faults() if f.kind == "race between threads"]
    assert races and not result.differing
    assert all("scale_right" in f.position + f.other and "factor.cuh:" in f.other for f in races)
    check.print_result(result)
    assert "FAULT race between threads: " in capsys.readouterr().out


@needed
@pytest.mark.nightly
def test_other_bits_are_found(chain: None) -> None:
    right = "GPUSIM_FN void forget_search(const World w) {"
    wrong = f"{right} if (w.tid == 0) w.a->kept_time[w.id] += 1e-9;"
    result = run_case(CHAIN, fault=("fused.cu", right, wrong))
    assert "time" in result.differing and result.failed()


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--list", "--only", "pile"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["pile fused direct float32", "pile staged colored float32"]
    assert main(["--list", "--all"]) == 0
    assert len(capsys.readouterr().out.split("\n")) - 1 == 8 * len(MODELS)
    assert main(["--only", "nothing"]) == 1
    assert "no case contains 'nothing'" in capsys.readouterr().err
    monkeypatch.setattr(check, "why_not", lambda *_: "NVRTC 12 is not installed")
    assert main([]) == 1
    assert "NVRTC 12 is not installed" in capsys.readouterr().err
    assert main(["--allow-missing"]) == 0
    assert capsys.readouterr().out.startswith("skipped: NVRTC 12")
