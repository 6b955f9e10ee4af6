"""Run every command and every Python block of README, CONTRIBUTING and docs."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer.main

import gpusim
from gpusim.cli.main import app
from gpusim.cli.options import RunOptions, check
from gpusim.cli.targets import load_target
from gpusim.scene import load_scene
from gpusim.viewer.operator import Operator
from tests.cli.conftest import SWINGING_ARM
from tests.cli.pages import (
    PAGES,
    ROOT,
    arguments,
    gallery_commands,
    mentioned_commands,
    python_blocks,
    run_block,
    text_of,
    typed_commands,
    yaml_blocks,
)
from tests.unit.sdf_text import joint, link, model, sdf
from tests.unit.viewer.drawing import require_egl

PARSED = {
    "gpusim view": "opens a window (tests/cli/test_view.py)",
    "gpusim bench": "takes minutes (tests/cli/test_bench.py)",
    "gpusim render hydraulic_lift --policy lift.npz": "needs a policy (tests/unit/envs/test_policies.py)",
    "gpusim render chain --out chain.mp4": "a film of 10 s (the other films are drawn)",
}
OTHERS = {
    "pip install": "installs",
    "python3 -m venv": "makes an environment",
    ". .venv/bin/activate": "changes the shell",
    "pytest": "runs these tests",
    "GPUSIM_UPDATE_PICTURES=1 pytest": "rewrites pictures of these tests",
    "ci/run_tests.sh": "runs these tests",
    "python ci/peers": "takes minutes (tests/unit/ci/test_peers.py)",
    "python ci/ptx/check.py": "takes minutes (tests/unit/ci)",
    "python ci/state_hashes.py": "takes minutes; rewrites the bits",
    "python ci/docs/make_film.py": "takes minutes; rewrites the film",
    "python ci/docs/make_chart.py": "rewrites the chart",
    "python ci/docs/docs_reference.py": "rewrites pages (tests/unit/test_docs_site.py)",
    "python docs/examples/learning/ppo.py": "trains for a minute (tests/unit/envs/test_learning.py)",
    "python -m mkdocs build": "builds the site (ci/run_tests.sh)",
    "python ci/mutants.py": "runs tests in a copy (tests/unit/test_mutants.py)",
}
SMALL = ["--size", "64x36", "--quality", "software"]
FEW_FRAMES = [*SMALL, "--fps", "2"]
SHORTER = {"gpusim run chain": "1", "gpusim run pile": "0.3", "gpusim render pile --duration": "0.5"}
ELSEWHERE = {
    "docs/architecture.md": "tests/unit/test_architecture_page.py",
    "docs/own_actuator.md": "tests/unit/test_own_actuator.py",
}
NOT_RUN = {
    'backend="cuda"': "needs a GPU and PyTorch",
    "torch.cuda.": "needs a GPU and PyTorch",
    "with Window(": "opens a window",
    'arrays="torch"': "needs PyTorch (tests/unit/envs/test_vector_env.py)",
    "RecordVideo(": "draws (tests/unit/envs/test_films.py)",
    **({} if find_spec("torch") else {"import torch": "needs PyTorch"}),
}
PICTURES = ("Offscreen(", "gpusim render")


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(SWINGING_ARM)
    hinge = joint("pin", "revolute", "world", "rod")
    Path("robot.sdf").write_text(sdf(model(link("rod"), hinge)))
    Path("robot.xml").write_text(python_blocks("docs/guides/import_models.md")[0].split('"""')[1])
    Path("robot.usda").write_text(python_blocks("docs/guides/import_usd.md")[0].split('"""')[1])
    Path("cover.stl").write_text(
        "solid cover\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 100 0 0\nvertex 0 100 0\nendloop\nendfacet\n"
        "endsolid\n"
    )
    Path("machine.yaml").write_text(yaml_blocks("docs/guides/machine_files.md")[0])
    (build,) = (block for block in python_blocks("docs/guides/machine_files.md") if "def build" in block)
    Path("machine.py").write_text(build)
    scene = load_scene("hydraulic_lift")
    sim = gpusim.Simulation(scene.builder.finalize(), config=scene.config)
    operator = Operator(sim, scene)
    for name in ("operator.jsonl", "drive.jsonl"):
        sim.reset(), operator.reset()
        operator.record(name)
        operator.set("lift", 0.5)
        for _ in range(100):
            operator.before_steps(sim.time)
            sim.step()
        operator.stop_recording()
    return tmp_path


def parse(command: str) -> None:
    """Parse the options of a command and build its scene, without a run."""
    name, *given = arguments(command)
    group: Any = typer.main.get_command(app)
    context = group.commands[name].make_context(name, given)
    target = context.params.get("target", "")
    if name in ("run", "view", "render") and not target.endswith((".npz", ".urdf")):
        options = RunOptions(target, settings=tuple(context.params["settings"] or ()))
        check(options)
        load_target(options, visuals=False)


def begins(command: str, known: dict[str, str]) -> bool:
    return any(command == start or command.startswith(start + " ") for start in known)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("page", [page for page in PAGES if typed_commands(page)])
def test_commands_as_they_are_typed(page: str, cli, reader: Path) -> None:
    commands = typed_commands(page)
    if any(command.startswith(PICTURES) for command in commands):
        require_egl()
    for command in commands:
        if not command.startswith("gpusim "):
            assert begins(command, OTHERS), command
            named = re.findall(r"(?:^| )((?:ci|tests)/[\w./]*)", command)
            assert all((ROOT / name).exists() for name in named), command
        elif begins(command, PARSED):
            parse(command)
        else:
            cut = [time for start, time in SHORTER.items() if begins(command, {start: ""})]
            more = ["--duration", *cut] if cut else []
            more += FEW_FRAMES if ".mp4" in command else SMALL if command.startswith("gpusim render") else []
            result = cli(*arguments(command), *more)
            assert result.exit_code == 0 and not result.exception, f"{command}\n{result.output}"
            assert "checks  " not in result.output or "not met" not in result.output, result.output
            for file in re.findall(r"--(?:out|plot) (\S+)", command):
                assert Path(file).stat().st_size > 0, command


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_commands_within_sentences_can_be_typed(page: str, reader: Path) -> None:
    for command in [*mentioned_commands(page), *(gallery_commands() if page == "README.md" else [])]:
        parse(command)


def test_the_gallery_is_that_of_its_script() -> None:
    script = (ROOT / "ci" / "docs" / "make_gallery.sh").read_text(encoding="utf-8").split("<<'SCENES'\n", 1)[1]
    lines = [line.strip() for line in script.split("SCENES", 1)[0].splitlines() if line.strip()]
    drawn = {f"gpusim render {line} --quality high --out {line.split()[0]}.png" for line in lines}
    assert len(gallery_commands()) == 6 and set(gallery_commands()) <= drawn
    assert drawn <= set(mentioned_commands("docs/reference/scenes.md"))


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page) and page not in ELSEWHERE])
def test_python_blocks_run_and_print_what_they_say(page: str, reader: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    blocks = python_blocks(page)
    if any("Offscreen(" in code for code in blocks):
        require_egl()
    for number, code in enumerate(blocks):
        where = f"{page}, block {number + 1}"
        compile(code, where, "exec")
        if not any(words in code for words in NOT_RUN):
            run_block(code, where, names)


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items())
def test_other_pages_are_run_by_their_own_tests(page: str, test: str) -> None:
    assert Path(page).name in (ROOT / test).read_text(encoding="utf-8") and python_blocks(page)


def test_nothing_is_left_out_that_is_no_longer_there() -> None:
    commands = [command for page in PAGES for command in typed_commands(page)]
    assert [start for start in {**PARSED, **OTHERS} if not any(begins(c, {start: ""}) for c in commands)] == []
    code = "".join("".join(python_blocks(page)) for page in PAGES)
    assert [words for words in NOT_RUN if words not in code] == []
    assert "pip install" in text_of("README.md")


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("print(0.2799)  # 0.280 rad", True),
        ("print(0.2789)  # 0.280 rad", False),
        ("print([1.0, -2.04])  # 1, -2.0 m/s2: two of them, 9 in all", True),
        ("print(1.0, 2.0)  # 1 m", False),
        ("print(5624569.7)  # 5.6e6 Pa", True),
        ("print(5.2e6)  # 5.6e6 Pa", False),
        ("print(3)  # free text", True),
    ],
)
def test_numbers_behind_prints_are_compared(line: str, fits: bool) -> None:
    if fits:
        run_block(line, "line", {})
    else:
        with pytest.raises(AssertionError):
            run_block(line, "line", {})
