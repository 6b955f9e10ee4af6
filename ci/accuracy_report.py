"""Format the accuracy table as Markdown."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.analytic import bars


def machine() -> dict[str, str]:
    """Return the machine and software of the measurement."""
    import numpy

    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    return {
        "platform": platform.platform(),
        "cpu": cpu,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
    }


def markdown(jobs: Sequence[Any], record: dict[str, Any]) -> str:
    """Return the whole report."""
    about = record["machine"]
    lines = [
        "# Accuracy",
        "",
        f"{about['cpu']}, {about['platform']}, Python {about['python']}, NumPy {about['numpy']}; "
        f"{record['wall_time']:.0f} s in all"
        + (f", the first {record['horizon']:g} s of each case only" if record["horizon"] else "")
        + ".",
        "Maximum error over the run at the times of the reference. **Bold**: above the limit.",
    ]
    for section in dict.fromkeys(job.section for job in jobs):
        group = [job for job in jobs if job.section == section]
        lines += ["", f"## {section}", ""]
        lines += _order_table(group) if section == "Order" else _section_table(group)
    if record["command_time"] is not None:
        limit = bars.COMMAND_TIME
        verdict = "" if record["command_time"] < limit else ", **not met**"
        lines += ["", "## Command line", ""]
        lines.append(
            f"`gpusim run hydraulic_lift`, caches warm: {record['command_time']:.1f} s (bar {limit:g} s{verdict})."
        )
    return "\n".join(lines) + "\n"


# Limits for a float32 run: factor over the error of float64, and absolute error (m, rad or fraction).
FLOAT32_FACTOR, FLOAT32_ERROR = 3.0, 1e-5
# Maximum difference between the errors of native float64 and NumPy: five equal digits, or round-off.
SAME_FRACTION, SAME_ERROR = 1e-5, 1e-10


def native_markdown(jobs: Sequence[Any], record: dict[str, Any]) -> str:
    """Return the report that compares the native backend (float64 and float32) with NumPy (float64)."""
    about, failures = record["machine"], native_failures(jobs)
    lines = [
        "# Accuracy of the native backend",
        "",
        f"{about['cpu']}, {about['platform']}, Python {about['python']}, NumPy {about['numpy']}; "
        f"{record['wall_time']:.0f} s in all"
        + (f", the first {record['horizon']:g} s of each case only" if record["horizon"] else "")
        + ".",
        "Maximum error over the run at the times of the reference. Digits: number of digits of NumPy's "
        "error that native float64 repeats. Ratio: error of float32 divided by error of float64.",
        f"**Bold**: native float64 differs from NumPy by more than {SAME_FRACTION:g} of the error, or float32 is worse "
        f"than {FLOAT32_FACTOR:g} times float64 and than {FLOAT32_ERROR:g}.",
    ]
    for section in dict.fromkeys(job.section for job in jobs):
        titles = ["case", "bar", "numpy float64", "native float64", "digits", "native float32", "ratio", "wall time, s"]
        lines += ["", f"## {section}", "", _line(titles), _line(["---"] * len(titles))]
        for row in dict.fromkeys(job.row for job in jobs if job.section == section):
            lines.append(_native_row({job.column: job for job in jobs if job.row == row}, failures))
    return "\n".join(lines) + "\n"


def _native_row(cells: dict[str, Any], failures: dict[str, list[str]]) -> str:
    first = next(iter(cells.values()))
    texts = {}
    for column in ("numpy64", "native64", "native32"):
        text = _cell(cells[column]).strip("*") if column in cells else ""
        texts[column] = f"**{text}**" if column in failures.get(first.row, []) else text
    errors = {column: job.result["max_error"] for column, job in cells.items()}
    digits, ratio = "", ""
    if {"numpy64", "native64"} <= cells.keys():
        digits = _digits(errors["native64"], errors["numpy64"])
    if {"native32", "native64"} <= cells.keys() and errors["native64"] and errors["native32"] is not None:
        ratio = _number(errors["native32"] / errors["native64"])
    times = " / ".join(f"{job.result['wall_time']:.3g}" for job in cells.values())
    return _line([first.row, _bar(first), texts["numpy64"], texts["native64"], digits, texts["native32"], ratio, times])


def _digits(found: float, expected: float) -> str:
    if found == expected or max(found, expected) < SAME_ERROR:
        return "all"
    return f"{-math.log10(abs(found - expected) / expected):.1f}" if expected else "0"


def native_failures(jobs: Sequence[Any]) -> dict[str, list[str]]:
    """Return a dict: case (row of the native table) -> columns with errors above the limits."""
    failures: dict[str, list[str]] = {}
    for row in dict.fromkeys(job.row for job in jobs):
        cells = {job.column: job for job in jobs if job.row == row}
        errors = {column: _error(job) for column, job in cells.items()}
        if {"numpy64", "native64"} <= cells.keys():
            difference = abs(errors["native64"] - errors["numpy64"])
            if not difference <= max(SAME_FRACTION * errors["numpy64"], SAME_ERROR):
                failures.setdefault(row, []).append("native64")
        if {"native32", "native64"} <= cells.keys():
            if not errors["native32"] <= max(FLOAT32_FACTOR * errors["native64"], FLOAT32_ERROR):
                failures.setdefault(row, []).append("native32")
    return failures


def _error(job: Any) -> float:
    return float(job.result["max_error"]) if job.result["finished"] else math.inf


def _section_table(jobs: Sequence[Any]) -> list[str]:
    columns = list(dict.fromkeys(job.column for job in jobs))
    lines = [_line(["case", "bar", *columns]), _line(["---"] * (len(columns) + 2))]
    for row in dict.fromkeys(job.row for job in jobs):
        cells = {job.column: job for job in jobs if job.row == row}
        first = next(iter(cells.values()))
        lines.append(_line([row, _bar(first), *(_cell(cells[c]) if c in cells else "" for c in columns)]))
    return lines


def _bar(job: Any) -> str:
    if not job.judged:
        return ""
    parts = [] if job.bar.error is None else [_with_unit(job.bar.error, job.result["unit"])]
    parts += [] if job.bar.energy is None else [f"{job.bar.energy:g} J"]
    parts += [f"{name} {limit:g}" for name, limit in job.bar.extra.items() if not name.startswith("steady")]
    parts += ["steady 0.1 %"] * any(name.startswith("steady") for name in job.bar.extra)
    return ", ".join(parts)


def _cell(job: Any) -> str:
    result = job.result
    if not result["finished"]:
        return f"**{result['failure'] or 'not finite'}**"
    parts = [_with_unit(result["max_error"], result["unit"])]
    if result["energy_error"] is not None:
        parts.append(f"{_number(result['energy_error'])} J")
    parts.append(f"gap {_number(result['joint_gap'])}")
    parts += [f"{name} {_number(result['extra'][name])}" for name in job.bar.extra if not name.startswith("steady")]
    steady = [value for name, value in result["extra"].items() if name.startswith("steady")]
    parts += [f"steady {100.0 * max(steady):.2g} %"] if steady else []
    text = ", ".join(parts)
    return f"**{text}**" if job.broken else text


def orders(jobs: Sequence[Any]) -> dict[str, float]:
    """Return the orders of convergence of all cases in the section "Order"."""
    found = {}
    for case in dict.fromkeys(job.case for job in jobs if job.section == "Order"):
        cells = [job for job in jobs if job.section == "Order" and job.case == case]
        errors = [job.result["max_error"] for job in cells]
        known = len(errors) > 1 and all(0.0 < error < math.inf for error in errors)
        found[case] = bars.order(tuple(job.settings["dt"] for job in cells), errors) if known else math.nan
    return found


def _order_table(jobs: Sequence[Any]) -> list[str]:
    columns = list(dict.fromkeys(job.column for job in jobs))
    lines = [_line(["case", *columns, "order", "bar"]), _line(["---"] * (len(columns) + 3))]
    for case, slope in orders(jobs).items():
        cells = {job.column: job for job in jobs if job.case == case}
        text = f"{slope:.2f}" if slope >= bars.MIN_ORDER else f"**{slope:.2f}**"
        figures = [_number(cells[c].result["max_error"]) if c in cells else "" for c in columns]
        lines.append(_line([case, *figures, text, f"{bars.MIN_ORDER}"]))
    return lines


def _with_unit(value: float, unit: str) -> str:
    if unit.startswith("of "):
        return f"{100.0 * value:.2g} % {unit}"
    return f"{_number(value)} {unit}"


def _number(value: float) -> str:
    return f"{value:.2g}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
