from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpusim
from gpusim.scene import load_scene
from tests.unit.test_dict_format import everything

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = "\n".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "reference" / "api").glob("*.md")))
DOCUMENTED = set(re.findall(r"^::: ([\w.]+)$", API, re.MULTILINE))
PACKAGES = (
    *("gpusim", "gpusim.command_schedule", "gpusim.control", "gpusim.cosim", "gpusim.envs", "gpusim.exporters"),
    *("gpusim.importers", "gpusim.lint", "gpusim.machine_files", "gpusim.machines", "gpusim.robotics", "gpusim.scene"),
    *("gpusim.sensors", "gpusim.stage", "gpusim.viewer"),
)


@pytest.mark.nightly
def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "ci/docs/docs_reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    module = importlib.import_module(package)
    # a page may give the path of the module that defines the object
    documented = [pkgutil.resolve_name(path) for path in DOCUMENTED if path.endswith(tuple(module.__all__))]
    missing = [name for name in module.__all__ if not any(getattr(module, name) is found for found in documented)]
    assert missing == []


def test_names_that_guides_teach_are_in_the_reference() -> None:
    documented = [pkgutil.resolve_name(path) for path in DOCUMENTED]
    internal = {
        "architecture.md",
        "own_actuator.md",
        "glossary.md",
        *(f"develop/{p.name}" for p in DOCS.glob("develop/*")),
    }
    missing = []
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        if "reference" in path.parts or str(path.relative_to(ROOT)).removeprefix("docs/") in internal:
            continue
        text = path.read_text(encoding="utf-8")
        imported = re.findall(r"^from (gpusim[\w.]*) import ([\w, ]+)$", text, re.MULTILINE)
        names = {f"{module}.{name}" for module, some in imported for name in re.split(", | as .*", some) if name}
        for name in names | set(re.findall(r"\bgpusim(?:\.[A-Za-z_]\w*)+", text)):
            found, owner = pkgutil.resolve_name(name), pkgutil.resolve_name(name.rpartition(".")[0])
            if not inspect.ismodule(found) and not any(x is found or x is owner for x in documented):
                missing.append(f"{path.name}: {name}")
    assert missing == []


def test_every_member_of_a_simulation_is_on_a_page() -> None:
    pages = [path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md") if "reference" not in path.parts]
    mentioned = set(re.findall(r"\b(?:sim|Simulation)\.(\w+)", "\n".join(pages)))
    builder = gpusim.ModelBuilder()
    builder.add_body(1.0, (1, 1, 1))
    names = {name for name in dir(gpusim.Simulation(builder.finalize(), backend="numpy")) if name[0] != "_"}
    assert names - mentioned == set()


def test_every_method_of_the_builder_is_in_the_reference() -> None:
    last = {path.rpartition(".")[2] for path in DOCUMENTED}
    methods = [name for name in dir(gpusim.ModelBuilder) if name.startswith("add_")]
    assert len(methods) > 40 and [name for name in methods if name not in last] == []


@pytest.mark.parametrize("path", sorted(DOCUMENTED))
def test_names_of_the_reference_exist(path: str) -> None:
    assert pkgutil.resolve_name(path).__doc__


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"[\w/]+\.md", text.split("\nnav:", 1)[1]))
    assert listed == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def test_the_page_of_signals_lists_every_kind_of_signal() -> None:
    page = (DOCS / "reference" / "signals.md").read_text(encoding="utf-8")
    known = {kind_of(name) for name in re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)}
    b = everything()
    ball, lamp = (b.add_body(1.0, (1, 1, 1), label=name) for name in ("ball", "lamp"))
    b.add_latch(-1, ball)
    b.add_joint_ball(-1, lamp, cone_limit=1.0)
    b.set_command_map("push", time_constant=0.1)
    for model in (b, load_scene("excavator").builder, load_scene("suspension_rig").builder):
        names = gpusim.Simulation(model.finalize(), backend="numpy").signals()
        assert {kind_of(n) for n in names if not n.startswith(("diagram.", "sensor.imu."))} - known == set()


def kind_of(signal: str) -> str:
    first, _, rest = signal.partition(".")
    return f"{first}.{re.sub(r'_[0-9]$', '', rest.rpartition('.')[2]) if '.' in rest or first == 'sim' else ''}"
