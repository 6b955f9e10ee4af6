from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.codegen.header import C_TYPES, slab_fields
from gpusim.backends.codegen.kernel_sources import reachable_sources
from gpusim.backends.codegen.variants import make_variant
from gpusim.backends.native.compile import _command, _flags
from gpusim.solver.nodes import Phase
from gpusim.solver.phases import PHASES

pytestmark = pytest.mark.nightly

FLOAT64 = np.dtype(np.float64)
MAIN = "access.cu"
# What a launch alone calls, with numbers that are no item.
ELSEWHERE = {"set_forward", "conclude", "publish_active"}


def _read_only(phase: Phase) -> Iterable[str]:
    written = set(phase.writes.split())
    own = {f.name: "actuator_scratch" for kind in PACKAGE_KINDS for f in kind.kernel_fields}
    for f in slab_fields(PACKAGE_KINDS):
        if own.get(f.name, f.name) not in written:
            yield _const(f"{C_TYPES[f.kind]}*", f.name, "", "")
    for kind in PACKAGE_KINDS:
        parts = {"actuator_state": ("stored&", [v.name for v in kind.variables])}
        parts["actuator_scratch"] = ("double&", list(kind.kernel_scratch))
        for array in parts.keys() - written:
            yield from (_const(parts[array][0], f"{kind.name}_{name}", "int k", "k") for name in parts[array][1])


def _const(type_: str, name: str, arguments: str, given: str) -> str:
    return f"    MEMBER const {type_} {name}({arguments}) const {{ return World::{name}({given}); }}"


def _source(phases: Iterable[Phase]) -> str:
    out, calls = ['#include "world.cuh"'], []
    for phase in phases:
        out += [f"struct Of_{phase.name} : World {{", *_read_only(phase), "};"]
        calls += [f"    call(Of_{phase.name}(), [](const auto& w, auto... at) -> decltype({phase.name}(w, at...)) {{"]
        calls += [f"        return {phase.name}(w, at...);", "    });"]
    out += ["#define World auto", '#include "step.cuh"', '#include "kinds.cuh"', "#undef World"]
    # A phase takes its item, some a level or list before it, some nothing.
    out += ["template <class W, class F> void call(const W& w, F phase) {"]
    out += ["    if constexpr (requires { phase(w, 0, 0); }) phase(w, 0, 0);"]
    out += ["    else if constexpr (requires { phase(w, 0); }) phase(w, 0);", "    else phase(w);", "}"]
    return "\n".join([*out, "void all() {", *calls, "}", ""])


def _errors(folder: Path, direct: bool, phases: Iterable[Phase]) -> str:
    variant = make_variant("fused.cu", FLOAT64, FLOAT64, direct, shapes=2, kinds=PACKAGE_KINDS, coupled=True)
    generated = variant.generated | {MAIN: _source(phases)}
    for name, text in reachable_sources(MAIN, generated).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    macros = [f"-D{name}={value}" for name, value in variant.defines.items()]
    flags = [flag for flag in _flags() if not flag.startswith(("-std", "-O"))]
    command = [*_command(), *flags, "-std=c++20", "-w", "-fsyntax-only", "-I", str(folder), *macros, "-x", "c++"]
    done = subprocess.run([*command, str(folder / MAIN)], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode == 0) == (not re.search("error:", done.stderr)), done.stderr
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "colored"])
def test_phases_write_what_the_table_reports(direct: bool, tmp_path: Path) -> None:
    errors = _errors(tmp_path, direct, [p for name, p in PHASES.items() if name not in ELSEWHERE])
    assert not errors, errors[:4000]


def test_an_array_that_the_table_does_not_report_is_an_error(tmp_path: Path) -> None:
    poor = Phase("kick_body", "bodies", reads=PHASES["kick_body"].reads, writes="momentum_kicked twist_kicked")
    errors = _errors(tmp_path, True, [poor])
    assert "Of_kick_body" in errors and "const" in errors, errors[:4000]
