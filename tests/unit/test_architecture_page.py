from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpusim
from gpusim.model.fields import STATE_FIELDS
from gpusim.solver import schedule
from gpusim.solver.nodes import Stage, phases

ROOT = Path(__file__).parents[2]
NAMES = ("docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md")
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
PAGE = PAGES["docs/architecture.md"]
STAGES = {stage.name: stage for stage in schedule.stages()}
STATE = {field.name for field in STATE_FIELDS} | {"actuator_state"}
INNER = [
    str(p.relative_to(ROOT)) + "/"
    for top in ("gpusim/reference", "cuda_kernels")
    for p in (ROOT / top).iterdir()
    if p.is_dir()
]
FOLDERS = ("", "gpusim/", "gpusim/reference/", "gpusim/backends/", "cuda_kernels/", *INNER)
MADE = {"order.cuh", "entries.cuh", "compile_commands.json"}


def table(head: str) -> dict[str, list[str]]:
    body = PAGE.split(head, 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body.splitlines()[2:]]
    return {cells[0].strip("`"): cells[1:] for cells in rows if cells[0]}


def touched(stage: Stage) -> tuple[set[str], set[str]]:
    found = [phase for phase, _ in phases(stage)]
    reads, writes = ({name for p in found for name in getattr(p, kind).split()} for kind in ("reads", "writes"))
    return reads - writes, writes


def hunks() -> list[tuple[str, str, str]]:
    found = []
    for block in re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL):
        for name, text in re.findall(r"^--- (\S+)\n(.*?)(?=^---|\Z)", block, re.DOTALL | re.MULTILINE):
            old, new = ("".join(x[1:] for x in text.splitlines(True) if x[0] in kept) for kept in (" -", " +"))
            found.append((name, old, new))
    return found


def section(example: str) -> str:
    return PAGE.split(f"\n### {example}\n", 1)[1].split("\n### ", 1)[0]


def test_every_stage_has_its_rows() -> None:
    for head in ("| stage | what it does |", "| stage | state that it reads |"):
        assert list(table(head)) == list(STAGES)
    assert table("| stage | equation |").keys() <= STAGES.keys()


@pytest.mark.parametrize("name", STAGES)
def test_arrays_of_a_stage_are_those_of_its_phases(name: str) -> None:
    read, written, work = (set(cell.split()) for cell in table("| stage | state that it reads |")[name])
    reads, writes = touched(STAGES[name])
    assert (read, written) == (reads & STATE, writes & STATE)
    assert work <= writes - STATE


@pytest.mark.parametrize("page", PAGES)
def test_files_are_there(page: str) -> None:
    text = PAGES[page]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    names = re.findall(r"`([\w./]+(?:\.(?:py|pyi|cuh|cu|md|sh|toml|json)|/))`", prose)
    names += re.findall(r"\]\(([\w./]+)\)", text)
    new = set(re.findall(r"^`([\w./]+)`:$", text, re.MULTILINE))
    places = (*FOLDERS, f"{Path(page).parent}/")
    assert names
    assert [n for n in names if n not in new | MADE and not any((ROOT / p / n).exists() for p in places)] == []


@pytest.mark.parametrize(("name", "old"), [hunk[:2] for hunk in hunks()])
def test_examples_stand_next_to_lines_that_are_there(name: str, old: str) -> None:
    assert old and (ROOT / name).read_text(encoding="utf-8").count(old) == 1


# The table of a stage is two files.
@pytest.mark.parametrize(
    ("example", "most"),
    [("A joint", 1), ("A shape", 3), ("A contact law", 3), ("A signal", 1), ("A sensor", 1), ("A stage", 4)],
)
def test_examples_change_few_files(example: str, most: int) -> None:
    text = section(example)
    assert (
        1
        <= len(set(re.findall(r"^`([\w./]+)`:$", text, re.MULTILINE) + re.findall(r"^--- (\S+)", text, re.MULTILINE)))
        <= most
    )


@pytest.mark.nightly
@pytest.mark.parametrize("example", ["A joint", "A shape", "A sensor", "A scene"])
def test_new_files_of_the_examples_run(example: str) -> None:
    [text] = re.findall(r"```python\n(.*?)```", section(example), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_example_of_a_sensor_measures() -> None:
    [text] = re.findall(r"```python\n(.*?)```", section("A sensor"), re.DOTALL)
    exec(text, sensor := {})
    b = gpusim.ModelBuilder(gravity=(0, 0, 0))
    b.add_site(b.add_body(1.0, (1, 1, 1), xform=gpusim.Transform((1, 2, 3))), label="antenna")
    sensor["add_altimeter"](b, "antenna", "altimeter", noise=0.1)
    sim = gpusim.Simulation(b.finalize(), num_worlds=2, backend="numpy")
    sim.write("sensor.altimeter.error.sigma", 0.0, worlds=1)
    sim.step()
    noisy, exact = sim.read("sensor.altimeter.height")
    assert exact == 3.0 and 0.0 < abs(noisy - 3.0) < 0.6


def test_words_of_the_glossary_are_in_the_code() -> None:
    folders = (ROOT / "gpusim", ROOT / "cuda_kernels")
    files = [f for folder in folders for f in folder.rglob("*") if f.suffix in (".py", ".cuh", ".cu")]
    known = {word for f in files for word in re.findall(r"\w+", f.read_text(encoding="utf-8"))}
    rows = re.findall(r"^\| (`[^|]*)\|", PAGES["docs/glossary.md"], re.MULTILINE)
    words = [word for row in rows for word in re.findall(r"`(\w+)`", row)]
    assert len(words) > 50
    assert [word for word in words if word not in known] == []
