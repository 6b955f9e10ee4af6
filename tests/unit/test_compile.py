"""Compiling the CUDA C++ sources for CPU and GPU: cache, error texts, missing tools."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

import gpusim
from gpusim.backends.codegen import kernel_sources as sources_module
from gpusim.backends.codegen.kernel_sources import kernel_sources, reachable_sources
from gpusim.backends.cuda.compile import nvrtc_options
from gpusim.backends.native import backend as native_backend
from gpusim.backends.native import compile as compile_native
from gpusim.backends.native.compile import build_native, find_compiler
from gpusim.cli.main import app
from gpusim.compile_cache import BrokenCompilerError, CompileError, cache_folder, cached, compile_error, digest
from gpusim.errors import UnknownNameError
from tests.message_snapshot import names, naming

from .gpu_kernel import OFFSET, WRONG

pytestmark = pytest.mark.usefixtures("cache")
CPU_KERNEL = {
    "twice.cu": '#include "part/scale.cuh"\nextern "C" double twice(double x) { return SCALE * x + offset(); }\n',
    "part/scale.cuh": '#pragma once\n#include "offset.cuh"\n#define SCALE 2.0\n',
    "part/offset.cuh": "#pragma once\nstatic inline double offset() { return OFFSET; }\n",
}


def _compiler() -> str | None:
    try:
        return find_compiler()
    except CompileError:
        return None


COMPILER = _compiler()
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler on the path and none in CXX; install g++ or clang++"
)
needs_shell = pytest.mark.skipif(
    os.name != "posix", reason="the stand-in for a C++ compiler is a shell script, which this system cannot run"
)


def stand_in(path: Path, before: str) -> str:
    path.write_text(f'#!/bin/sh\n{before}\nexec "{COMPILER}" "$@"\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def unless_probed(command: str) -> str:
    return f'case "$*" in *probe.cpp*) ;; *) {command} ;; esac'


def counting(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    log = folder / "runs.txt"
    log.write_text("", encoding="utf-8")
    monkeypatch.setenv("CXX", stand_in(folder / "counting", unless_probed(f'echo run >> "{log}"')))
    return log


def result_of(library: Path, x: float) -> float:
    function = ctypes.CDLL(str(library)).twice
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return function(x)


# sources


def test_the_sources_of_the_package_are_found() -> None:
    sources = kernel_sources()
    assert "math/platform.cuh" in sources and "#pragma once" in sources["math/platform.cuh"]
    assert all(name.endswith((".cu", ".cuh")) for name in sources)


def test_sub_folders_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rows.cuh", "actuators/spring.cuh", "actuators/notes.txt", "__pycache__/old.cuh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"// {name}\n", encoding="utf-8")
    monkeypatch.setattr(sources_module.resources, "files", lambda package: tmp_path)
    assert kernel_sources() == {
        "actuators/spring.cuh": "// actuators/spring.cuh\n",
        "rows.cuh": "// rows.cuh\n",
    }


def test_includes_are_followed_and_named_from_the_root() -> None:
    generated = {
        "main.cu": '#include <cmath>\n  #  include "a/b.cuh"\n#include "nowhere.h"\n',
        "a/b.cuh": '#include "c.cuh"\n#include "../d.cuh"\n#include "a/b.cuh"\n',
        "a/c.cuh": "",
        "d.cuh": "",
        "unused.cuh": "",
    }
    reached = reachable_sources("main.cu", generated)
    assert set(reached) == {"main.cu", "a/b.cuh", "a/c.cuh", "d.cuh"}
    assert reached["main.cu"] == generated["main.cu"]
    assert reached["a/b.cuh"] == '#include "a/c.cuh"\n#include "d.cuh"\n#include "a/b.cuh"\n'


def test_an_include_by_macro_may_read_every_source() -> None:
    generated = {"main.cu": "#include LAYOUT\n", "some.cuh": ""}
    assert set(reachable_sources("main.cu", generated)) == {*kernel_sources(), *generated}


def test_an_unknown_main_names_the_near_ones() -> None:
    with pytest.raises(UnknownNameError, match=naming("'main.cu'")):
        reachable_sources("mian.cu", {"main.cu": ""})


@pytest.mark.parametrize("name", ["../up.cuh", "/root.cuh", "a//b.cuh", "./a.cuh", "a\\b.cuh", "C:a.cuh"])
def test_generated_names_stay_inside_the_folder(name: str) -> None:
    with pytest.raises(CompileError):
        reachable_sources("main.cu", {"main.cu": "", name: ""})


@pytest.mark.parametrize("defines", [{"A B": "1"}, {"A=1": "1"}, {"A": "1\n2"}])
def test_bad_defines_are_refused(defines: dict[str, str]) -> None:
    with pytest.raises(CompileError, match=naming("'A")):
        nvrtc_options(defines, "sm_90")


# cache


def test_the_digest_keeps_texts_apart() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"]) != digest(["abc"])


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("GPUSIM_CACHE")
    assert cache_folder() == tmp_path / "shared" / "gpusim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().is_relative_to(Path.home()) and "gpusim" in cache_folder().parts


def test_a_relative_cache_folder_is_taken_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUSIM_CACHE", "kept")
    assert cache_folder() == tmp_path / "kept"


def test_a_failed_build_leaves_nothing(cache: Path) -> None:
    def fail(scratch: Path) -> bytes:
        (scratch / "half.bin").write_bytes(b"ha")
        raise CompileError("no")

    with pytest.raises(CompileError):
        cached("cuda/half.bin", fail)
    assert not list((cache / "cuda").iterdir())


def test_others_wait_for_a_build(cache: Path) -> None:
    started, builds = threading.Event(), []

    def build(scratch: Path) -> bytes:
        builds.append(scratch)
        started.set()
        time.sleep(0.1)
        return b"whole"

    with ThreadPoolExecutor() as pool:
        first = pool.submit(cached, "cuda/k.cubin", build)
        started.wait()
        second = pool.submit(cached, "cuda/k.cubin", build)
        assert first.result().read_bytes() == second.result().read_bytes() == b"whole"
    assert len(builds) == 1


def test_a_file_system_without_locks_serves(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def acquire(self: FileLock, *_: object, **_options: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(FileLock, "acquire", acquire)
    assert cached("cuda/k.cubin", lambda scratch: b"whole").read_bytes() == b"whole"


@pytest.mark.parametrize("left", [b"", b"who", b"wh0le"])
def test_a_damaged_file_does_not_count(cache: Path, left: bytes) -> None:
    cached("cuda/k.cubin", lambda scratch: b"whole")
    (cache / "cuda" / "k.cubin").write_bytes(left)
    assert cached("cuda/k.cubin", lambda scratch: b"whole").read_bytes() == b"whole"


def test_what_killed_builds_left_is_removed(cache: Path) -> None:
    old, new = cache / "cuda" / "build-old", cache / "cuda" / "build-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    cached("cuda/k.cubin", lambda scratch: b"whole")
    assert not old.exists() and new.exists()


def test_a_cache_that_cannot_be_written_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("GPUSIM_CACHE", str(tmp_path / "file"))
    with pytest.raises(CompileError, match=naming("GPUSIM_CACHE")):
        cached("cuda/k.cubin", lambda scratch: b"whole")


# error texts


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("In file included from k.cu:1:\n./rows.cuh:12:3: error: no\n   12 | x", "rows.cuh:12: error: no"),
        ("k.cu:1:10: fatal error: none.h: No such file", "k.cu:1: error: none.h: No such file"),
        ('actuators/a.cuh(2): error: identifier "xx" is undefined\n', "actuators/a.cuh:2: error: identifier"),
        ('k.cu(2): catastrophic error: cannot open source file "x"', "k.cu:2: error: cannot open"),
        ("ptxas error   : Entry function 'k' uses too much shared data", "ptxas error   : Entry function 'k' uses"),
        ("g++: fatal error: Killed signal terminated program", "g++: fatal error: Killed signal"),
        ("ld: cannot find -lgomp\ncollect2: error: ld returned 1 exit status", "ld: cannot find -lgomp"),
        ("", "said nothing"),
    ],
)
def test_error_texts_of_the_compilers(output: str, expected: str) -> None:
    lines = str(compile_error("k.cu", "some compiler", output)).splitlines()
    assert lines[0] == "k.cu does not compile with some compiler:"
    assert lines[1].strip().startswith(expected) or expected in lines[1]
    assert "report it" in lines[-1]


def test_warnings_are_no_errors_and_long_lists_are_cut() -> None:
    output = "a.cuh(1): warning #177-D: error: not one\n" + "".join(f"a.cuh({i}): error: e{i}\n" for i in range(2, 12))
    lines = str(compile_error("k.cu", "NVRTC", output)).splitlines()
    assert [line.strip() for line in lines[1:7]] == [f"a.cuh:{i}: error: e{i}" for i in range(2, 7)] + [
        "... and 5 more errors"
    ]


# native


@needs_compiler
def test_native_builds_and_runs() -> None:
    assert result_of(build_native("twice.cu", CPU_KERNEL, OFFSET), 3.0) == 6.5


@pytest.mark.messages_vary
@needs_compiler
def test_native_error_names_file_and_line() -> None:
    with pytest.raises(CompileError, match=naming("offset.cuh 3 not_there")):
        build_native("twice.cu", CPU_KERNEL | {"part/offset.cuh": WRONG}, {})


@needs_compiler
@needs_shell
def test_native_compiles_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    log = counting(monkeypatch, tmp_path)
    library = build_native("twice.cu", CPU_KERNEL, OFFSET)
    assert build_native("twice.cu", CPU_KERNEL, OFFSET) == library
    assert log.read_text(encoding="utf-8").count("run") == 1
    assert list(cache.rglob("build-*")) == [] and library.is_relative_to(cache)


@needs_compiler
def test_libraries_share_a_linked_unit(cache: Path) -> None:
    half = "half.cu", {"half.cu": 'extern "C" double half(double x) { return FACTOR * x; }\n'}, {"FACTOR": "0.5"}
    source = 'extern "C" double half(double);\nextern "C" double twice(double x) { return half(x) + OFFSET; }\n'
    for offset in (1.0, 2.0):
        library = build_native("k.cu", {"k.cu": source}, {"OFFSET": str(offset)}, [half])
        assert result_of(library, 3.0) == 1.5 + offset
    assert len(list(cache.rglob("half-*.o"))) == 1
    library = build_native("k.cu", {"k.cu": source}, {"OFFSET": "1.0"}, [(*half[:2], {"FACTOR": "0.25"})])
    assert result_of(library, 3.0) == 0.75 + 1.0


@needs_compiler
def test_native_builds_again_where_a_header_or_a_define_changed() -> None:
    library = build_native("twice.cu", CPU_KERNEL, OFFSET)
    header = CPU_KERNEL["part/scale.cuh"].replace("2.0", "4.0")
    assert result_of(build_native("twice.cu", CPU_KERNEL | {"part/scale.cuh": header}, OFFSET), 3.0) == 12.5
    assert result_of(build_native("twice.cu", CPU_KERNEL, {"OFFSET": "1.0"}), 3.0) == 7.0
    assert result_of(library, 3.0) == 6.5


@needs_compiler
@needs_shell
def test_another_compiler_builds_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", stand_in(tmp_path / "first", ""))
    library = build_native("twice.cu", CPU_KERNEL, OFFSET)
    monkeypatch.setenv("CXX", stand_in(tmp_path / "first", "# a later version"))
    assert build_native("twice.cu", CPU_KERNEL, OFFSET) != library


@needs_compiler
def test_native_keeps_every_rounding() -> None:
    source = 'extern "C" double twice(double x) { volatile double y = 1.0; return x * x - y; }\n'
    x = 1.0 + 2.0**-30
    assert result_of(build_native("k.cu", {"k.cu": source}, {}), x) == x * x - 1.0


@needs_compiler
@needs_shell
def test_of_two_processes_one_compiles(tmp_path: Path, cache: Path) -> None:
    compilers, started = tmp_path / "compilers", tmp_path / "started"
    compilers.mkdir()
    started.mkdir()
    both_run = f'[ "$(ls "{started}" | wc -l)" -ge 2 ]'  # the compiler waits for this
    wait = f'touch "{compilers}/$$"; for n in $(seq 300); do {both_run} && break; sleep 0.05; done'
    environment = os.environ | {"CXX": stand_in(tmp_path / "waiting", unless_probed(wait))}
    code = (
        "import os, pathlib; from gpusim.backends.native.compile import build_native;"
        f"pathlib.Path({str(started)!r}, str(os.getpid())).touch();"
        f"print(build_native('twice.cu', {CPU_KERNEL}, {OFFSET}))"
    )
    command, root = [sys.executable, "-c", code], Path(__file__).parents[2]
    both = [subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=240)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(list(compilers.iterdir())) == 1
    (path,) = paths
    assert result_of(Path(path), 3.0) == 6.5
    names = {file.name for file in (cache / "native").iterdir()}
    assert names == {Path(path).name + end for end in ("", ".sha256")}


def test_no_compiler_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError, match=naming("backend 'numpy'")):
        build_native("twice.cu", CPU_KERNEL, OFFSET)


def test_a_wrong_cxx_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    with pytest.raises(CompileError, match=naming("CXX 'no-such-compiler'")):
        find_compiler()


@needs_compiler
@needs_shell
def test_cxx_may_hold_spaces_and_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.setenv("CXX", stand_in(folder / "compiler", ""))
    assert find_compiler() == str(folder / "compiler")
    monkeypatch.setenv("CXX", f"'{folder / 'compiler'}' -DOFFSET=0.5")
    assert result_of(build_native("twice.cu", CPU_KERNEL, {}), 3.0) == 6.5


NO_OPENMP = 'for a in "$@"; do if [ "$a" = -fopenmp ]; then echo "error: no -fopenmp here" >&2; exit 1; fi; done'


@needs_compiler
@needs_shell
def test_a_compiler_without_openmp_is_found_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "runs.txt"
    monkeypatch.setenv("CXX", stand_in(tmp_path / "plain", unless_probed(f'echo run >> "{log}"') + f"\n{NO_OPENMP}"))
    with pytest.warns(UserWarning):
        library = build_native("twice.cu", CPU_KERNEL, OFFSET)
    assert result_of(library, 3.0) == 6.5
    log.unlink()
    assert build_native("twice.cu", CPU_KERNEL, OFFSET) == library
    assert not log.exists(), "the compiler ran again"
    build_native("twice.cu", CPU_KERNEL, {"OFFSET": "1.0"})
    assert log.read_text(encoding="utf-8").count("run") == 1, "OpenMP was tried again"


@needs_compiler
@needs_shell
def test_an_error_is_not_taken_for_missing_openmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("CXX", stand_in(tmp_path / "broken", "echo 'error: out of order' >&2; exit 1"))
    with pytest.raises(CompileError):
        build_native("twice.cu", CPU_KERNEL, OFFSET)
    assert not list(cache.rglob("no-openmp*"))


def no_gpu(device: int) -> None:
    raise gpusim.ModelError("no GPU in this test; use a CPU")


BROKEN = {
    "fails": ("echo 'error: out of order' >&2; exit 1", ""),
    "makes nothing": ("exit 0", "0"),
    "dies": ("kill -9 $$", "-9"),
    "hangs, and its children": ("sleep 60 & wait", "1"),
}


@pytest.mark.nightly
@needs_shell
@pytest.mark.parametrize(("does", "words"), BROKEN.values(), ids=BROKEN)
def test_a_compiler_that_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], does: str, words: str
) -> None:
    monkeypatch.setenv("CXX", stand_in(tmp_path / "broken", does))
    monkeypatch.setattr(compile_native, "PROBE_LIMIT", 1.0)
    monkeypatch.setattr(native_backend, "_LIBRARIES", {})
    monkeypatch.setattr("gpusim.backends.load_cupy", no_gpu)
    start = time.monotonic()
    with pytest.raises(BrokenCompilerError, match=naming(words)) as error:
        build_native("twice.cu", CPU_KERNEL, OFFSET)
    assert "CXX" in str(error.value) and "backend='numpy'" in str(error.value)
    builder = gpusim.ModelBuilder()
    builder.add_body(1.0, (1.0, 1.0, 1.0))
    with pytest.raises(BrokenCompilerError):
        gpusim.Simulation(builder.finalize(), backend="native")
    with pytest.warns(UserWarning, match=naming(words)):
        sim = gpusim.Simulation(builder.finalize())
    assert sim.backend_name == "numpy"
    assert names(sim.backend_reason, words)
    sim.step()
    with pytest.raises(SystemExit) as left:
        app(["run", "double_pendulum", "--duration", "0.01"])
    assert left.value.code == 0
    assert names(capfd.readouterr().err, f"NumPy {words}")
    assert time.monotonic() - start < 30.0


@needs_compiler
@needs_shell
def test_a_compiler_that_is_killed_leaves_the_run_to_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", stand_in(tmp_path / "killed", unless_probed("kill -9 $$")))
    monkeypatch.setattr(native_backend, "_LIBRARIES", {})
    monkeypatch.setattr("gpusim.backends.load_cupy", no_gpu)
    with pytest.raises(BrokenCompilerError, match=naming("twice.cu")):
        build_native("twice.cu", CPU_KERNEL, OFFSET)
    builder = gpusim.ModelBuilder()
    builder.add_body(1.0, (1.0, 1.0, 1.0))
    sim = gpusim.Simulation(builder.finalize())
    assert sim.backend_name == "numpy" and "was killed" in sim.backend_reason


@pytest.mark.messages_vary
@needs_compiler
@needs_shell
@pytest.mark.parametrize("does", ["echo 'fatal error: x.s: No space left on device' >&2; exit 1", "junk"])
def test_a_full_disk_and_junk_are_not_the_fault_of_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path, does: str
) -> None:
    junk = 'for a; do [ "$p" = -o ] && echo junk > "$a"; p=$a; done; exit 0'
    monkeypatch.setenv("CXX", stand_in(tmp_path / "odd", unless_probed(junk if does == "junk" else does)))
    with pytest.raises(BrokenCompilerError):
        compile_native.load_native("twice.cu", CPU_KERNEL, OFFSET)
    assert not list(cache.rglob("*.so"))


@needs_compiler
def test_kept_kernels_need_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    library = build_native("twice.cu", CPU_KERNEL, OFFSET)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    compile_native.check_native()
    assert build_native("twice.cu", CPU_KERNEL, OFFSET) == library
    with pytest.raises(BrokenCompilerError, match=naming("CXX")):
        build_native("twice.cu", CPU_KERNEL, {"OFFSET": "1.0"})
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BrokenCompilerError, match=naming("CXX")):
        compile_native.check_native()


def test_a_cxx_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "g++ '")
    with pytest.raises(CompileError, match=naming("CXX")):
        find_compiler()


@pytest.mark.nightly
@needs_compiler
@needs_shell
def test_kernels_that_take_too_long_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", stand_in(tmp_path / "slow", unless_probed("sleep 60")))
    monkeypatch.setattr(compile_native, "BUILD_LIMIT", 1.0)
    with pytest.raises(BrokenCompilerError, match=naming("1")):
        build_native("twice.cu", CPU_KERNEL, OFFSET)


@needs_compiler
def test_native_in_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("GPUSIM_CACHE", str(tmp_path / "file" / "inside"))
    with pytest.raises(CompileError, match=naming("GPUSIM_CACHE")):
        build_native("twice.cu", CPU_KERNEL, OFFSET)
