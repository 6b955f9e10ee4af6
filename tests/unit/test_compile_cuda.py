from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpusim.backends.codegen.kernel_sources import reachable_sources
from gpusim.backends.cuda.compile import compile_cuda, nvrtc_options
from gpusim.backends.cuda.nvrtc import Compiled, CupyNvrtc, LibraryNvrtc, Nvrtc, NvrtcMissingError, load_nvrtc
from gpusim.compile_cache import CompileError
from tests.message_snapshot import naming

from .gpu_kernel import GPU_KERNEL, OFFSET, WRONG

pytestmark = pytest.mark.usefixtures("cache")


def _nvrtc() -> Nvrtc | None:
    try:
        return load_nvrtc()
    except NvrtcMissingError:
        return None


needs_nvrtc = pytest.mark.skipif(_nvrtc() is None, reason="NVRTC is not installed; pip install nvidia-cuda-nvrtc-cu12")


@needs_nvrtc
def test_cuda_gives_a_cubin_and_keeps_it(cache: Path) -> None:
    path = compile_cuda("twice.cu", GPU_KERNEL, OFFSET, "sm_90")
    assert path.read_bytes()[:4] == b"\x7fELF" and path.suffix == ".cubin" and path.is_relative_to(cache)
    first = path.stat().st_mtime_ns
    assert compile_cuda("twice.cu", GPU_KERNEL, OFFSET, "sm_90").stat().st_mtime_ns == first
    header = GPU_KERNEL["part/scale.cuh"].replace("2.0", "4.0")
    others = {
        compile_cuda("twice.cu", GPU_KERNEL | {"part/scale.cuh": header}, OFFSET, "sm_90"),
        compile_cuda("twice.cu", GPU_KERNEL, {"OFFSET": "1.0"}, "sm_90"),
        compile_cuda("twice.cu", GPU_KERNEL, OFFSET, "sm_80"),
        compile_cuda("twice.cu", GPU_KERNEL, OFFSET, "sm_90", fast=True),
    }
    assert len(others) == 4 and path not in others


@pytest.mark.messages_vary  # NVRTC's words
@needs_nvrtc
def test_cuda_error_names_file_and_line() -> None:
    wrong = WRONG.replace("static inline", "static __device__")
    with pytest.raises(CompileError, match=naming("sm_90 offset.cuh 3 not_there")):
        compile_cuda("twice.cu", GPU_KERNEL | {"part/offset.cuh": wrong}, {}, "sm_90")


@pytest.mark.messages_vary  # NVRTC's version
@needs_nvrtc
@pytest.mark.parametrize(("arch", "words"), [("90", "'sm_90'"), ("sm_20", "sm_20")])
def test_cuda_refuses_unknown_architectures(arch: str, words: str) -> None:
    with pytest.raises(CompileError, match=naming(words)):
        compile_cuda("twice.cu", GPU_KERNEL, OFFSET, arch)


@needs_nvrtc
def test_cuda_fuses_only_where_asked() -> None:
    assert "--fmad=false" in nvrtc_options({}, "sm_90") and "--fmad=true" in nvrtc_options({}, "sm_90", fast=True)
    source = {"k.cu": 'extern "C" __global__ void k(float* x) { x[0] = x[0] * x[1] + x[2]; }\n'}
    strict, fast = (compile_cuda("k.cu", source, {}, "sm_90", fast=fast).read_bytes() for fast in (False, True))
    assert strict != fast


@pytest.mark.messages_vary  # NVRTC's version
def test_a_missing_nvrtc_names_the_fix() -> None:
    with pytest.raises(NvrtcMissingError, match=naming("11")):
        load_nvrtc(11)


@needs_nvrtc
def test_the_library_alone_gives_the_same_cubin() -> None:
    from gpusim.backends.cuda import nvrtc as module

    found = module._wheel_libraries()
    if not found:
        pytest.skip("NVRTC's wheel is compared with CuPy's library here; pip install nvidia-cuda-nvrtc-cu12")
    alone, loaded = LibraryNvrtc(found[0]), load_nvrtc()
    if alone.version != loaded.version:
        pytest.skip("CuPy has loaded another version of NVRTC than the wheel's; their cubins differ")
    options = nvrtc_options(OFFSET, "sm_90")
    sources = reachable_sources("twice.cu", GPU_KERNEL)
    assert alone.archs == loaded.archs
    cubin = alone.compile("twice.cu", sources, options)[0]
    assert cubin is not None and cubin == loaded.compile("twice.cu", sources, options)[0]
    assert "invalid" in alone.compile("twice.cu", sources, ["--gpu-architecture=sm_1"])[1].lower()


class Binding:
    NVRTCError = RuntimeError

    def __init__(self, nvrtc: Nvrtc) -> None:
        self._nvrtc, self._compiled = nvrtc, Compiled(None, "")

    def getVersion(self) -> tuple[int, int]:
        return self._nvrtc.version

    def getSupportedArchs(self) -> list[int]:
        return list(self._nvrtc.archs)

    def createProgram(self, text: str, main: str, headers: list[bytes], names: list[bytes]) -> Any:
        included = {name.decode(): header.decode() for name, header in zip(names, headers, strict=True)}
        return main, included | {main: text}

    def compileProgram(self, program: Any, options: list[str]) -> None:
        self._compiled = self._nvrtc.compile(*program, options)
        if self._compiled.cubin is None:
            raise self.NVRTCError("NVRTC_ERROR_COMPILATION")

    def getProgramLog(self, program: Any) -> str:
        return self._compiled.log

    def getCUBIN(self, program: Any) -> bytes:
        if not self._compiled.cubin:
            raise RuntimeError("cubin is requested, but the real arch (sm_XX) is not provided")
        return self._compiled.cubin[:-1]

    def getPTX(self, program: Any) -> bytes:
        return self._compiled.ptx.encode()

    def destroyProgram(self, program: Any) -> None:
        pass


@needs_nvrtc
def test_a_virtual_architecture_gives_ptx_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, sources = load_nvrtc(), reachable_sources("twice.cu", GPU_KERNEL)
    nvrtc = SimpleNamespace(nvrtc=Binding(loaded))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(__version__="14.2.0", cuda=nvrtc))
    monkeypatch.setitem(sys.modules, "cupy.cuda", nvrtc)
    bound = CupyNvrtc()
    for arch in ("sm_90", "compute_90"):
        expected, given = (one.compile("twice.cu", sources, nvrtc_options(OFFSET, arch)) for one in (loaded, bound))
        assert given == expected and ".target sm_90" in given.ptx
        assert (given.cubin == b"") == (arch == "compute_90")
    wrong = bound.compile("twice.cu", sources, nvrtc_options({"OFFSET": "nothing"}, "compute_90"))
    assert wrong.cubin is None and "nothing" in wrong.log
