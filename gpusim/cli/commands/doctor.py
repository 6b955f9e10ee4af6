"""``gpusim doctor``: report the computer's setup and which backends work."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text

from gpusim import __version__
from gpusim.backends import WIDE_PAIRS, why_not, worlds_for_gpu
from gpusim.cli.console import out_console
from gpusim.cli.exit_codes import DONE, FAILED
from gpusim.cli.probes import Finding, probe_computer, probe_readers, probe_viewer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

BACKENDS = {
    "cuda": "runs the CUDA kernels on an NVIDIA GPU",
    "native": "runs the same kernels on the CPU, built by a C++ compiler",
    "numpy": "runs the stages in NumPy on the CPU; needs no compiler and no GPU",
}
"""Description of each backend. ``--backend auto`` tries the backends in this order."""


def doctor() -> int:
    """Print the setup of this computer, and simulate a falling body on every backend.

    Returns:
        Exit code: 0 if at least one backend works, otherwise 1.
    """
    console = out_console()
    console.print(Text(f"gpusim {__version__} on {platform.platform()}"))
    _print_findings(console, "Computer", probe_computer())
    _print_findings(console, "Readers of files", probe_readers())
    _print_findings(console, "Viewer", probe_viewer())
    backends = [try_backend(name) for name in BACKENDS]
    _print_findings(console, "Backends", backends)
    working = [finding.name for finding in backends if finding.good]
    if not working:
        console.print("No backend works. Install the missing parts above.")
        return FAILED
    console.print(f"'gpusim run' works; --backend auto selects {_automatic(working)}.")
    return DONE


def _automatic(working: list[str]) -> str:
    """Describe how ``--backend auto`` chooses a backend."""
    order = ", ".join(BACKENDS)
    if working[:2] != ["cuda", "native"]:
        return f"{working[0]!r} (the first that works of {order})"
    wide = f"contacts of {WIDE_PAIRS} pairs or more"
    return f"'cuda' from {worlds_for_gpu()} worlds on and for one world with {wide} and no direct joints, else 'native'"


def print_headers(folder: Path) -> int:
    """Write the generated kernel sources into a folder, and print how to use them with clangd.

    Returns:
        Exit code 0.

    Raises:
        ModelError: the folder cannot be written.
    """
    from gpusim.backends.codegen.editor_headers import write_headers

    console = out_console()
    for file in write_headers(folder):
        console.print(Text(str(file)), soft_wrap=True)
    note = f"clangd --compile-commands-dir={folder.absolute()} follows cuda_kernels/ with them"
    console.print(Text(note), soft_wrap=True)
    return DONE


def try_backend(name: str) -> Finding:
    """Simulate a fall of 0.1 s on the backend ``name``, and compare the distance with g t^2 / 2."""
    does = BACKENDS[name]
    if missing := why_not(name):
        return Finding(name, False, f"{does}: {missing}")
    try:
        fallen = _fall(name)
    except Exception as error:  # a broken installation can fail in any way
        return Finding(name, False, f"{does}: {type(error).__name__}: {error}")
    expected = 0.5 * 9.81 * 0.1**2
    if not np.isclose(fallen, expected, rtol=1e-3):
        return Finding(name, False, f"{does}: gives wrong results (fell {fallen:g} m, not {expected:g} m)")
    return Finding(name, True, does)


def _fall(backend: str) -> float:
    """Return the distance (m) that a body falls in 0.1 s."""
    import gpusim

    builder = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    builder.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0), label="ball")
    sim = gpusim.Simulation(builder.finalize(), backend=backend, config=gpusim.SolverConfig(dt=0.01))
    sim.step(10)
    return -float(sim.read("body.ball.position", numpy=True)[0, 2])


def _print_findings(console: Console, title: str, findings: list[Finding]) -> None:
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in findings:
        mark = Text("works", style="green") if finding.good else Text("missing", style="yellow")
        detail = " ".join(finding.detail.split()) + (f"; fix: {finding.hint}" if finding.hint else "")
        table.add_row(finding.name, mark, Text(detail))
    console.print(table)
