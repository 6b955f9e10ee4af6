"""The check of all kernels, ci/check_kernels.py."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gpusim.backends.codegen.variants import kernel_variants
from gpusim.backends.cuda.nvrtc import Nvrtc, NvrtcMissingError, load_nvrtc

from .gpu_kernel import GPU_KERNEL, OFFSET, WRONG

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture(scope="module")
def check_kernels() -> ModuleType:
    path = Path(__file__).parents[2] / "ci" / "check_kernels.py"
    spec = importlib.util.spec_from_file_location("check_kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_kernels"] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def test_the_check_reads_what_kernels_take(check_kernels: ModuleType) -> None:
    log = (
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'step' for 'sm_90'\n"
        "ptxas info    : Function properties for step\n"
        "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size, 1024 bytes smem\n"
        "ptxas info    : Function properties for called\n"
        "ptxas         .     16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Compiling entry function 'reset' for 'sm_90'\n"
        "ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]\n"
    )
    step, reset = check_kernels.read_resources(log)
    assert (step.name, step.registers, step.shared, step.stack, step.spills) == ("step", 40, 1024, 8, 16)
    assert (reset.name, reset.registers, reset.shared, reset.stack, reset.spills) == ("reset", 8, 0, 0, 0)


def variant(name: str, **sources: Any) -> SimpleNamespace:
    return SimpleNamespace(name=name, main="twice.cu", generated=GPU_KERNEL | sources, defines=OFFSET)


def test_the_check_prints_a_table(
    check_kernels: ModuleType, nvrtc_12: Nvrtc, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_kernels.main(["--jobs", "1"], [variant("plain")]) == 0
    out = capsys.readouterr().out
    for arch in ("sm_70", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120"):
        assert re.search(rf"{arch} +[\d.]+  twice +\d+ +0 +0 +0 +0 +0\n", out), out
    assert "7 of 7 compiled" in out, "compute_100 too, which has no kernels"


def test_a_build_is_compiled_once(check_kernels: ModuleType, nvrtc_12: Nvrtc, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    plain = check_kernels.compile_cubin

    def compile_cubin(*given: Any, **options: Any) -> Any:
        seen.append(given[1])
        return plain(*given, **options)

    monkeypatch.setattr(check_kernels, "compile_cubin", compile_cubin)
    first, again = (check_kernels.compile_all([variant("plain")], ["sm_80", "sm_90"], 1) for _ in range(2))
    assert first == again and first[0].kernels and len(seen) == 2
    others = [variant("plain"), variant("plain", **{"part/offset.cuh": GPU_KERNEL["part/offset.cuh"] + "\n"})]
    others[0].defines = {name: "7" for name in OFFSET}
    assert len(check_kernels.compile_all(others, ["sm_90"], 1)) == 2 and len(seen) == 4
    check_kernels.compile_all([variant("plain")], ["sm_90"], 1, full=True)
    assert len(seen) == 5
    for count in (6, 7):
        (result,) = check_kernels.compile_all([variant("wrong", **{"part/offset.cuh": WRONG})], ["sm_90"], 1)
        assert result.error and len(seen) == count


def test_the_ptx_of_newer_cards_is_looked_at(
    check_kernels: ModuleType, nvrtc_12: Nvrtc, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        'extern "C" __global__ void twice(double* x) {\n'
        "#if __CUDA_ARCH__ >= 1000\n    x[0] = fmax(x[0], x[1]);\n#else\n    x[0] = x[1];\n#endif\n}"
    )
    assert check_kernels.main(["--jobs", "1"], [variant("zeros", **{"twice.cu": text})]) == 1
    out = capsys.readouterr().out
    assert "6 of 7 compiled" in out and "zeros compute_100: kernel twice, twice.cu:3, in twice: `max.f64" in out


def test_the_ptx_of_the_next_nvrtc_is_looked_at(
    check_kernels: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [v.name for v in check_kernels._chosen(None, check_kernels.NEXT_VARIANTS)]
    assert sorted(names) == sorted(check_kernels.NEXT_VARIANTS)
    scale = GPU_KERNEL["part/scale.cuh"].replace("2.0", "__fma_rn(x[2], x[1], 1.0)")
    named = [variant(names[0]), variant(names[1], **{"part/scale.cuh": scale}), variant("another")]
    options = Namespace(jobs=1, allow_missing=False)
    try:
        load_nvrtc(check_kernels.NEXT_MAJOR)
    except NvrtcMissingError:
        assert check_kernels._reported_next(named, options) == 1
        pytest.skip('NVRTC 13 is not installed; pip install "nvidia-cuda-nvrtc==13.0.*"')
    assert check_kernels._reported_next(named, options) == 1
    out = capsys.readouterr().out
    assert "PTX of 2 variants for compute_90: 1 with faults" in out and "`fma.rn.f64" in out
    monkeypatch.setattr(check_kernels, "NEXT_MAJOR", 11)
    assert check_kernels._reported_next(named, options) == 1
    assert check_kernels._reported_next(named, Namespace(jobs=1, allow_missing=True)) == 0


def test_ptxas_alone_is_hurried(check_kernels: ModuleType, nvrtc_12: Nvrtc, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(check_kernels, "reported_forms", lambda ptx, outer: seen.append(str(ptx)) or "")
    for full in (False, True):
        (result,) = check_kernels.compile_all([variant("plain")], ["sm_90"], 1, full)
        assert not result.error
    assert seen[0] == seen[1]


def test_the_check_fails_where_a_variant_does(
    check_kernels: ModuleType, nvrtc_12: Nvrtc, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = variant("wrong", **{"part/offset.cuh": WRONG})
    empty = variant("empty", **{"twice.cu": "static __device__ int x;\n"})
    assert check_kernels.main(["--jobs", "1", "--arch", "sm_80"], [wrong, variant("plain"), empty]) == 1
    out = capsys.readouterr().out
    assert "part/offset.cuh:3: error" in out and "contains no kernel" in out and "1 of 3 compiled" in out


def test_the_check_fails_on_instructions_that_are_not_allowed(
    check_kernels: ModuleType, nvrtc_12: Nvrtc, capsys: pytest.CaptureFixture[str]
) -> None:
    scale = GPU_KERNEL["part/scale.cuh"].replace("2.0", "__fma_rn(x[2], x[1], 1.0)")
    fused = variant("fused", **{"part/scale.cuh": scale})
    assert check_kernels.main(["--jobs", "1", "--arch", "sm_80", "--arch", "sm_90"], [fused]) == 1
    out = capsys.readouterr().out
    assert "fused sm_90: kernel twice, twice.cu:2, in twice: `fma.rn.f64" in out
    assert "fused sm_80:" not in out and "1 of 2 compiled" in out


def test_the_check_of_nothing_fails(
    check_kernels: ModuleType, nvrtc_12: Nvrtc, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_kernels.main([], []) == 1
    assert "no variant to compile" in capsys.readouterr().err
    assert check_kernels.main(["--variant", "plain", "--variant", "plane"], [variant("plain")]) == 1
    assert "unknown variant 'plane'" in capsys.readouterr().err


def test_the_check_without_nvrtc(
    check_kernels: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_kernels, "NVRTC_MAJOR", 11)
    assert check_kernels.main(["--allow-missing"], []) == 0
    assert capsys.readouterr().out.startswith("skipped: NVRTC 11 is not installed")
    assert check_kernels.main([], []) == 1
    assert "NVRTC 11 is not installed" in capsys.readouterr().err


def test_the_check_fails_where_a_variant_takes_more(check_kernels: ModuleType, nvrtc_12: Nvrtc) -> None:
    text = (
        'extern "C" __global__ void k(float* x, int n) {\n    float own[16];\n'
        "    for (int i = 0; i < 16; ++i) own[i] = x[i];\n    x[0] = own[n];\n}\n"
    )
    (result,) = check_kernels.compile_all([variant("plain", **{"twice.cu": text})], ["sm_90"], 1)
    figures = result.figures()
    assert figures["local"] > 1 and figures["spills"] == 0
    assert result.kernels[0].local == figures["local"] and result.kernels[0].generic == figures["generic"]
    limits = check_kernels.limits_of(result)
    assert limits["local"] == check_kernels.ROUNDED["local"] and limits["spills"] == 0 and limits["registers"] % 8 == 0
    assert check_kernels.over_limits([result], {"plain": limits}) == []
    (reported,) = check_kernels.over_limits([result], {"plain": limits | {"local": 1}})
    assert f"plain: local {figures['local']} > 1; " in reported
    (reported,) = check_kernels.over_limits([result], {})
    assert "plain: has no limits" in reported


def test_spills_of_functions_count_wherever_the_log_has_them(check_kernels: ModuleType, nvrtc_12: Nvrtc) -> None:
    spilling = (
        "static __device__ __noinline__ double work(const double* x, int n) {\n    double a[40], sum = 0.0;\n"
        "    for (int k = 0; k < 40; ++k) a[k] = x[k * n];\n    __syncthreads();\n"
        "    for (int k = 0; k < 40; ++k) sum += a[k] * a[(k * 7) % 40];\n    return sum;\n}\n"
        'extern "C" __global__ __launch_bounds__(1024) void k(double* x, int n) { x[0] = work(x + 1, n); }\n'
    )
    options = ("--maxrregcount=32", "--relocatable-device-code=true")
    kernel = SimpleNamespace(**vars(variant("kernel", **{"twice.cu": spilling})) | {"options": options})
    part = spilling[: spilling.index('extern "C"')].replace("static __device__", 'extern "C" __device__')
    alone = SimpleNamespace(**vars(kernel) | {"name": "part", "generated": {"twice.cu": part}})
    whole, outer = check_kernels.compile_all([kernel, alone], ["sm_90"], 1)
    assert whole.figures()["spills"] > 100 and outer.figures()["spills"] > 100


def test_every_variant_has_limits(check_kernels: ModuleType) -> None:
    limits = json.loads(check_kernels.LIMITS.read_text())["variants"]
    own = check_kernels.diagram_variant(), *check_kernels.sized_variants()
    assert set(limits) == {v.name for v in (*kernel_variants(), *own)}


def test_builds_that_repeat_code_are_left_out(check_kernels: ModuleType) -> None:
    usual, every = ({v.name for v in check_kernels._chosen(None, (), more)} for more in (False, True))
    assert len(every - usual) == 7 and not any("float32 in float64" in name for name in usual if "staged" in name)
    for name in every - usual:
        repeated = check_kernels._chosen(None, [name])[0].defines
        stored = [v.defines for v in kernel_variants() if v.name in usual]
        assert any({**d, "GPUSIM_STORED": ""} == {**repeated, "GPUSIM_STORED": ""} for d in stored), name


PARTS = {
    "half.cu": '#if HALVES\nextern "C" __device__ double half(double x) { return 0.5 * x; }\n#endif\n',
    "user.cu": 'extern "C" __device__ double half(double x);\n'
    'extern "C" __global__ void k(double* x) { x[0] = half(x[0]); }\n',
}


def parted(halves: int) -> list[SimpleNamespace]:
    defines, options = {"HALVES": str(halves)}, ("--relocatable-device-code=true",)
    half = SimpleNamespace(name="half", main="half.cu", generated=PARTS, defines=defines, options=options)
    return [half, SimpleNamespace(**vars(half) | {"name": "user", "main": "user.cu", "linked": (half,)})]


@pytest.mark.parametrize("halves", [1, 0])
def test_parts_are_linked_where_the_tool_is(
    check_kernels: ModuleType,
    nvrtc_12: Nvrtc,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    halves: int,
) -> None:
    monkeypatch.setattr(check_kernels, "OUTER", ("half",))
    if shutil.which(check_kernels.LINKER) is None:
        pytest.skip(f"{check_kernels.LINKER} is not installed; it comes with the CUDA toolkit")
    assert check_kernels.main(["--jobs", "1", "--arch", "sm_90"], parted(halves)) == 1 - halves
    out = capsys.readouterr().out
    assert "2 of 2 compiled" in out
    assert re.search("user sm_90: linked, 1 kernels with at most" if halves else "Undefined reference to 'half'", out)


def test_the_check_goes_on_without_a_linker(
    check_kernels: ModuleType, nvrtc_12: Nvrtc, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_kernels, "OUTER", ("half",))
    monkeypatch.setattr(check_kernels, "LINKER", "no-such-linker")
    assert check_kernels.main(["--jobs", "1", "--arch", "sm_90"], parted(1)) == 0
    assert "parts are not linked: no-such-linker is not installed" in capsys.readouterr().out
