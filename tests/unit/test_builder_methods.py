from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import gpusim
from gpusim import ModelBuilder
from gpusim.builder.builder_methods import BuilderMethods, builder_method

ROOT = Path(__file__).parents[2]

USERS_FILE = """\
from gpusim import Material, ModelBuilder, Transform

b = ModelBuilder()
arm = b.add_body(1.0, (0.1, 0.1, 0.1))
hinge: int = b.add_joint_revolute(-1, arm, Transform((0, 0, 1)), axis=(0, 1, 0), damping=0.1, label="hinge")
b.add_shape_box(arm, (0.1, 0.1, 0.1), material=Material(friction=0.5))
b.add_dc_motor(hinge, stall_torque=1.0, no_load_speed=10.0, mechanical_time_constant=0.1)
b.add_visual(arm, "box", (0.1, 0.1, 0.1), color="#ff0000")
b.add_jiont_revolute(-1, arm)
b.add_joint_revolute(-1, arm, dampnig=0.1)
b.add_joint_revolute("world", arm)
b.add_shape_sphere(arm)
"""
WRONG = {
    9: 'has no attribute "add_jiont_revolute"',
    10: 'Unexpected keyword argument "dampnig"',
    11: 'incompatible type "str"; expected "int"',
    12: 'Missing positional argument "radius"',
}
_PATHS = ("PYTHONPATH", "MYPYPATH")


@pytest.fixture(scope="module")
def builder_stub() -> ModuleType:
    spec = importlib.util.spec_from_file_location("builder_stub", ROOT / "ci" / "docs" / "builder_stub.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def own_method() -> Iterator[str]:
    """A method of a kind outside the package."""

    @builder_method
    def add_joint_of_mine(self: ModelBuilder, parent: int, child: int) -> int:
        """Add a joint of mine."""
        return self.add_joint_ball(parent, child, label="mine")

    yield "add_joint_of_mine"
    del BuilderMethods.add_joint_of_mine  # type: ignore[attr-defined]


def test_the_stub_is_what_the_code_gives(builder_stub: ModuleType) -> None:
    assert builder_stub.PATH.read_text(encoding="utf-8") == builder_stub.stub()


def test_a_new_method_makes_the_stub_stale(builder_stub: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def add_novelty(self: ModelBuilder, size: float = float("inf"), *, label: str | None = None) -> int:
        """Add a novelty."""
        return 0

    monkeypatch.setattr(BuilderMethods, "add_novelty", add_novelty, raising=False)
    assert "add_novelty" not in builder_stub.stub()
    monkeypatch.setattr(add_novelty, "__module__", "gpusim.novelty")
    expected = 'def add_novelty(self, size: float = float("inf"), *, label: str | None = None) -> int:'
    assert f'    {expected}\n        """Add a novelty."""\n' in builder_stub.stub()


@pytest.fixture
def editable(tmp_path: Path) -> Path:
    pytest.importorskip("setuptools", minversion="77")
    checkout, wheels, home = (tmp_path / name for name in ("checkout", "wheels", "home"))
    checkout.mkdir()
    wheels.mkdir()
    for name in ("gpusim", "cuda_kernels", "scenes", "viewer"):
        shutil.copytree(ROOT / name, checkout / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    build = f"import setuptools.build_meta as build; build.build_editable({str(wheels)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=checkout, check=True, capture_output=True)
    venv.create(home)
    [wheel], [packages] = wheels.glob("*.whl"), home.glob("[Ll]ib/**/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    [python] = (home / name for name in ("bin/python", "Scripts/python.exe") if (home / name).exists())
    return python


@pytest.mark.nightly
def test_mypy_knows_the_methods(tmp_path: Path, editable: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USERS_FILE)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", "--follow-imports=silent",
         f"--cache-dir={tmp_path / 'cache'}", f"--python-executable={editable}", "--hide-error-context", "user.py"],
        cwd=tmp_path, env={k: v for k, v in os.environ.items() if k not in _PATHS}, capture_output=True, text=True,
    )  # fmt: skip
    errors = {int(line.split(":")[1]): line for line in run.stdout.splitlines() if ": error: " in line}
    assert sorted(errors) == sorted(WRONG), run.stdout + run.stderr
    for line, words in WRONG.items():
        assert words in errors[line], errors[line]


def test_help_shows_the_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    help(ModelBuilder().add_joint_revolute)
    shown = capsys.readouterr().out
    assert "Add a revolute joint." in shown and "limit_restitution: " in shown


def test_kinds_outside_the_package_attach_methods_too(own_method: str) -> None:
    b = ModelBuilder()
    body = b.add_body(1.0, (0.1, 0.1, 0.1))
    assert getattr(b, own_method)(-1, body) == 0
    assert b.finalize().labels("joint") == ["mine"]


def test_the_stub_is_packaged() -> None:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    data = project["tool"]["setuptools"]["package-data"]
    assert "py.typed" in data["gpusim"] and "*.pyi" in data["gpusim.builder"]
    assert (Path(gpusim.__file__).parent / "builder" / "builder_methods.pyi").is_file()
