"""The ``gpusim`` command from a shell: exit codes, streams, start-up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "gpusim.cli.main"]
SCENE = "double_pendulum"


def shell(checkout: Path, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=checkout, timeout=120, **options)  # type: ignore


@pytest.mark.nightly
def test_run_writes_its_files_and_exits_with_0(checkout, tmp_path) -> None:
    out, plot = tmp_path / "run.npz", tmp_path / "run.png"
    done = shell(checkout, "run", SCENE, "--duration", "0.05", "--out", out, "--plot", plot)
    assert done.returncode == 0, done.stderr
    assert out.exists() and plot.exists()
    assert "real-time factor" in done.stdout
    assert done.stderr == ""


@pytest.mark.nightly
@pytest.mark.parametrize("arguments", [["run", "nowhere"], ["run", SCENE, "--dt", "0"], ["run", SCENE, "--bad"]])
def test_bad_input_exits_with_2_and_one_sentence(checkout, arguments: list[str]) -> None:
    done = shell(checkout, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("gpusim: ")


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell that closes the output streams of a command")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("arguments", [["run", SCENE, "--duration", "0.01"], ["list"], ["run", "nowhere"]])
def test_closed_streams_are_no_traceback(checkout, closed: str, arguments: list[str]) -> None:
    command = " ".join(["exec", *COMMAND, *arguments, closed])
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=checkout, timeout=120)
    assert done.returncode == (2 if "nowhere" in arguments else 0)
    assert "Traceback" not in done.stderr


def test_reader_that_leaves_early_is_no_error(checkout) -> None:
    command = " ".join(["exec", *COMMAND, "list"])
    done = subprocess.run(["sh", "-c", f"({command}) | true"], capture_output=True, text=True, cwd=checkout)
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_usage_errors_come_without_the_heavy_packages(checkout) -> None:
    code = (
        "import sys\n"
        "sys.argv = ['gpusim', 'run', 'x', '--dt', '0']\n"
        "from gpusim.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as leave:\n    assert leave.code == 2\n"
        "heavy = {'scipy', 'matplotlib', 'yourdfpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=checkout, capture_output=True)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminal (pty) to run the command in")
def test_terminal_shows_a_progress_bar(checkout) -> None:
    import pty

    leader, follower = pty.openpty()
    arguments = [*COMMAND, "run", SCENE, "--duration", "0.5"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=follower, cwd=checkout, env=environment) as run:
        os.close(follower)
        shown = _read_all(leader)
        assert run.wait(60) == 0
    assert SCENE in shown and "%" in shown


def _read_all(descriptor: int) -> str:
    parts = []
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            part = os.read(descriptor, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")
