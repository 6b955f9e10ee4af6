"""Ctrl-C while the program is still importing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import builtins, sys
plain, (wanted, program) = builtins.__import__, sys.argv[1:]

def stop(name, *more, **options):
    if name == wanted:
        raise KeyboardInterrupt
    return plain(name, *more, **options)

builtins.__import__, sys.argv = stop, [program]
from gpusim.cli.main import main
"""


@pytest.mark.nightly
@pytest.mark.parametrize("module", ["numpy", "typer"])
@pytest.mark.parametrize("program", ["/usr/bin/gpusim", "script.py"])
def test_an_interrupt_while_it_imports_is_one_sentence(module: str, program: str) -> None:
    command = [sys.executable, "-c", BEGIN, module, program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    if program == "script.py":
        assert "KeyboardInterrupt" in done.stderr and "gpusim: interrupted" not in done.stderr
    else:
        assert (done.returncode, done.stderr) == (130, "gpusim: interrupted\n")


def test_python_m_gpusim_is_the_command_line() -> None:
    command = [sys.executable, "-m", "gpusim", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0 and done.stdout.startswith("gpusim 0.")


@pytest.mark.nightly
def test_subpackages_are_there_at_first_use() -> None:
    names = ("sensors.add_imu", "importers.load_urdf", "machines", "robotics", "scene", "viewer.Offscreen")
    code = "import gpusim; " + "; ".join(f"gpusim.{name}" for name in names)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    done = subprocess.run([sys.executable, "-c", "import gpusim; gpusim.nothing"], capture_output=True, text=True)
    assert "module 'gpusim' has no attribute 'nothing'" in done.stderr
