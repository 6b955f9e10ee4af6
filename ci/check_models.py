"""Load models of other projects, and compare them with MuJoCo.

    python ci/check_models.py --models DIR [DIR ...] [--only GLOB] [--write ci/bench/models.md] [--json FILE]

The script runs ``ci/check_one_model.py`` for each model file in the folders, one process at a time. It skips files with
the same content. The output is a table with a row for each folder, and a list of failures with reasons.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import hashlib
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

ONE = Path(__file__).with_name("check_one_model.py")
SUFFIXES = {".xml", ".urdf", ".sdf", ".world", ".usd", ".usda", ".usdc"}
FK, MASS_MATRIX, MASS, PASSIVE, GAP, HEIGHT, FALL = 1e-12, 1e-6, 1e-9, 1e-4, 1e-3, 0.02, 1e-3
REPEATS = 0.005
"""Maximum change of MuJoCo's height for models whose height repeats, m."""
COLUMNS = (
    *("folder", "files", "compiled", "loaded", "mass", "kinematics", "mass matrix", "exact", "smooth motion"),
    *("5 s fine", "gap < 1 mm", "height", "standing", "rigid", "us/step", "MuJoCo"),
)
REASONS = {
    "newton/tests/assets/constraints.xml": "the file starts with a weld open by 2 m, also in MuJoCo",
    "newton/tests/assets/mjc_schema_import.usda": "the file starts with a loop open by 0.37 m",
}
"""Known reasons of failures, by file."""
WALL = 10.0
"""Maximum wall time for one file, as a multiple of its processor time."""
TESTS = ("mujoco_warp/", "test_data/", "newton/tests/")
"""Parts of paths that identify files for tests of a simulator."""


def files(folders: list[Path], only: str) -> Iterator[tuple[Path, Path]]:
    """Yield (folder, file) of all models."""
    seen: set[str] = set()
    for folder in folders:
        found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        texts = {p: p.read_bytes() for p in found}
        included = {
            (path.parent / match.decode(errors="replace")).resolve()
            for path, text in texts.items()
            for match in re.findall(rb"""<include\s+file\s*=\s*["']([^"']+)["']""", text)
        }
        for path, text in texts.items():
            if path.suffix == ".xml" and not re.search(rb"<mujoco[\s>]", text):
                continue
            digest = hashlib.sha1(text).hexdigest()
            if digest in seen or path.resolve() in included or not fnmatch.fnmatch(str(path), only):
                continue
            seen.add(digest)
            yield folder, path


def check(path: Path, seconds: float, timeout: float) -> dict[str, Any]:
    """Check one file in a separate process, and return its results."""
    command = [sys.executable, str(ONE), str(path), str(seconds), str(timeout)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=WALL * timeout, cwd=os.environ.get("TMPDIR", "/tmp")
        )
    except subprocess.TimeoutExpired:
        return {"load_error": f"took more than {WALL * timeout:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"load_error": last[:300]}
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def faults(row: dict[str, Any]) -> list[str]:
    """Return the failures of one file as text."""
    found = [f"{key.partition('_')[0]}: {value}" for key, value in row.items() if key.endswith("_error")]
    if (
        "nv" in row
        and "mass" in row
        and abs(row["mass"] - row["file_mass"]) > MASS * max(row["file_mass"], 1e-12) + 2e-6 * row["file_mass"]
    ):
        found.append(f"mass {row['mass']:.6g} kg for {row['file_mass']:.6g} kg")
    if row.get("fk", 0.0) > FK:
        found.append(f"kinematics {row['fk']:.1e}")
    if row.get("mass_matrix", 0.0) > MASS_MATRIX:
        found.append(f"mass matrix {row['mass_matrix']:.1e}")
    if isinstance(row.get("passive"), float) and min(row["passive"], row["passive_4"]) > PASSIVE:
        found.append(f"smooth motion {row['passive']:.1e} m, with 4 substeps {row['passive_4']:.1e} m")
    if row.get("healthy") is False:
        found.append(f"failed after {row['ran_s']:g} s: {row.get('health', '')}")
    elif row.get("gap", 0.0) > GAP:
        found.append(f"joint gap {1e3 * row['gap']:.2g} mm")
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return a markdown table with a row for each folder."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " --- |" * len(COLUMNS)]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["folder"], []).append(row)
    for name, group in [*groups.items(), ("all", rows)]:
        lines.append("| " + " | ".join([name, *map(str, _cells(group))]) + " |")
    return lines


def _cells(rows: list[dict[str, Any]]) -> list[Any]:
    compiled = [r for r in rows if "not_compiled" not in r]
    loaded = [r for r in compiled if "healthy" in r]
    moving = [r for r in loaded if "fk" in r]
    passive = [r for r in moving if isinstance(r.get("passive"), float)]
    tall = [r for r in loaded if "height" in r]

    def ratio_text(part: list[Any], whole: list[Any]) -> str:
        return f"{len(part)}/{len(whole)}"

    def median(key: str) -> str:
        values = sorted(r[key] for r in loaded if key in r)
        return f"{values[len(values) // 2]:.0f}" if values else "-"

    good = {r["file"] for r in rows if not any("mass " in f and "matrix" not in f for f in faults(r))}
    return [
        len(rows),
        len(compiled),
        ratio_text(loaded, compiled),
        ratio_text([r for r in moving if r["file"] in good], moving),
        ratio_text([r for r in moving if r["fk"] <= FK], moving),
        ratio_text([r for r in moving if r["mass_matrix"] <= MASS_MATRIX], moving),
        ratio_text([r for r in loaded if r["exact"]], loaded),
        ratio_text([r for r in passive if min(r["passive"], r["passive_4"]) <= PASSIVE], passive),
        ratio_text([r for r in loaded if r["healthy"]], loaded),
        ratio_text([r for r in loaded if r["healthy"] and r["gap"] <= GAP], loaded),
        ratio_text(*_near(tall, "mujoco")),
        ratio_text(*_near([r for r in tall if r.get("mujoco_spread", math.inf) <= REPEATS], "mujoco")),
        ratio_text(*_near([r for r in tall if r.get("rigid_spread", math.inf) <= REPEATS], "rigid")),
        median("us_per_step"),
        median("mujoco_us"),
    ]


def _near(rows: list[dict[str, Any]], reference: str) -> tuple[list[Any], list[Any]]:
    near = [r for r in rows if abs(r["height"] - r[f"{reference}_height"]) <= max(HEIGHT, FALL * abs(r["height"]))]
    return near, rows


def _heights(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each final height that differs from MuJoCo's."""
    lines = ["| model | to MuJoCo | it repeats within | to rigid MuJoCo | it repeats within |", "|" + " --- |" * 5]
    for r in (r for r in rows if "height" in r):
        cells = []
        for name in ("mujoco", "rigid"):
            level, spread = r.get(f"{name}_height"), r.get(f"{name}_spread")
            cells += [f"{1e3 * (r['height'] - level):.1f}" if level is not None else "-"]
            cells += [f"{1e3 * spread:.2g}" if spread is not None else "-"]
        if not _near([r], "mujoco")[0]:
            lines.append(f"| {r['folder']}/{r['file']} | " + " | ".join(cells) + " |")
    return lines


def report(rows: list[dict[str, Any]]) -> str:
    """Return the whole page as Markdown."""
    lines = ["# Models of others", "", _introduction(), "", *table(rows), ""]
    real = [r for r in rows if "exact" in r and not any(part in f"{r['folder']}/{r['file']}" for part in TESTS)]
    exact = sum(r["exact"] for r in real)
    if real:
        ratio_text = f"{exact} of {len(real)} models ({100 * exact / len(real):.1f} %)"
        lines += [f"Without files that test a simulator, {ratio_text} are exact.", ""]
    lost: Counter[str] = Counter()
    for r in rows:
        facts = {
            re.sub(r"'[^']*'|[-+]?\d[\d.e+-]*", "_", s.partition(": ")[2] or s)
            for severity, s in r.get("findings", [])
            if severity == "motion"
        }
        lost.update(facts)
    lines += ["## What changes the motion", "", "| finding | models |", "| --- | --- |"]
    lines += [f"| {fact} | {count} |" for fact, count in lost.most_common()]
    lines += ["", "## Failures", ""]
    lines += [
        f"* {name}: {'; '.join(found)}" + (f". Reason: {REASONS[name]}" if name in REASONS else "")
        for r in rows
        if (found := faults(r)) and (name := f"{r['folder']}/{r['file']}")
    ] or ["None."]
    lines += ["", "## Heights that differ, mm", "", *_heights(rows)]
    # The path of a folder has no meaning on another machine.
    missing = [
        f"* {r['folder']}/{r['file']}: " + re.sub(r"/\S+/(?=[^/\s]+)", "", r["not_compiled"])
        for r in rows
        if "not_compiled" in r
    ]
    lines += ["", "## Not compiled by MuJoCo, or without a body that moves", "", *(missing or ["None."]), ""]
    return "\n".join(lines)


def _introduction() -> str:
    machine = platform.processor() or platform.machine()
    today, mujoco = datetime.date.today().isoformat(), metadata.version("mujoco")
    return (
        f"`python ci/check_models.py`, {today}, {machine}, {os.cpu_count()} cores, one thread, MuJoCo {mujoco}.\n\n"
        f"Kinematics: all poses within {FK:g} of MuJoCo's at 3 random postures. Mass matrix: within {MASS_MATRIX:g}. "
        f"Smooth motion: 0.5 s of exact models without contacts within {PASSIVE:g} m. 5 s fine: with contacts at 2 ms. "
        f"Height: mean height of all links after that within {HEIGHT:g} m of MuJoCo's. Times: median, microseconds.\n\n"
        "Standing: the same for models whose height repeats in MuJoCo. Half the step, and two starts with all "
        f"coordinates off by 1e-6, change it by at most {1e3 * REPEATS:g} mm. Rigid: the same, and MuJoCo is as rigid "
        "as gpusim: a step of 0.5 ms, solref 0.001 1, solimp 0.99 0.999 0.0001, elliptic cones, impratio 100. "
        "Models that take MuJoCo more than 0.5 s are in neither."
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", nargs="+", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", default="*", metavar="GLOB", help="paths to check")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as markdown")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="store the rows in this file, and skip files with rows"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="length of the run with contacts")
    parser.add_argument("--timeout", type=float, default=240.0, help="maximum processor time for one file, s")
    options = parser.parse_args()
    rows = []
    if options.json and options.json.exists():
        rows = [json.loads(line) for line in options.json.read_text().splitlines()]
    done = {(row["folder"], row["file"]) for row in rows}
    for folder, path in files(options.models, options.only):
        name = str(path.relative_to(folder))
        if (folder.name, name) in done:
            continue
        row = {"folder": folder.name, "file": name, **check(path.resolve(), options.seconds, options.timeout)}
        rows.append(row)
        print(f"{folder.name}/{name}: {'; '.join(faults(row)) or row.get('not_compiled') or 'fine'}", flush=True)
        if options.json:
            with options.json.open("a") as out:
                out.write(json.dumps(row) + "\n")
    text = report(rows)
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
