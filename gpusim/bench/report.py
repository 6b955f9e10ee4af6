"""Tables and JSON of benchmark results."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpusim.bench import signals
from gpusim.bench.runner import Record
from gpusim.output_files import atomic_file

HEAD = ("workload", "case", "worlds", "how", "us/step", "+-", "world-steps/s")
LEFT = ("workload", "case", "how", "note")
"""Left-aligned columns."""
DROPPED_FIRST = ("+-", "how")
"""Columns that the table omits in a narrow window. The first column in this list disappears first."""
PILE_HEAD = ("case", "how", "ms/step", "manifolds", "points", "ns/point", "rms m/s", "max m/s", "overlap mm")
PILE_LEGEND = (
    "piles: ns/point: time of a step over contact points; rms, max: speeds of the settled objects; overlap: the "
    "maximum penetration. Times on one CPU thread are CPU times."
)
MIN_SHOWN_FRACTION = 0.003
"""The report lists a stage only if it takes at least this fraction of a step."""
MIN_KERNEL_FRACTION = 0.02
"""The report lists a kernel only if it takes at least this fraction of a step."""
LEGEND = "us/step: median time of a step of all worlds; +-: its interquartile range."


def cells(record: Record) -> tuple[str, ...]:
    """Return the table cells of one benchmark case."""
    first = (record.workload, record.case, str(record.worlds), f"{_how(record)} {record.solver}".strip())
    if record.error:
        return (*first, "failed", "", "")
    return (*first, f"{record.step_us:.4g}", f"{100.0 * record.spread:.0f}%", f"{record.world_steps:.3g}")


def notes(records: Sequence[Record]) -> list[str]:
    """Return lines about failed cases and the time per constraint row."""
    lines = []
    for record in records:
        if record.error:
            lines.append(f"{record.workload}, {record.case}, {record.worlds} worlds failed: {record.error}")
    rows = [r for r in records if "ns_per_row_sweep" in r.extra]
    if rows:
        last = rows[-1]
        time = last.extra["ns_per_row_sweep"]
        lines.append(f"rows: {time:.3g} ns per row and sweep ({last.extra['rows']:.0f} rows, {last.dtype}, one thread)")
    return lines


def pile_rows(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Return the table rows of all piles that ran."""
    return [
        pile_cells(record.case, _how(record), record.step_us, record.extra)
        for record in records
        if "ns_per_point" in record.extra and not record.error
    ]


def pile_cells(case: str, how: str, step_us: float, extra: dict[str, float]) -> tuple[str, ...]:
    """Return the table cells of one pile. ``extra`` is from :func:`gpusim.bench.piles.figures`."""
    return (
        case,
        how,
        f"{1e-3 * step_us:.3g}",
        f"{extra['manifolds']:.0f}",
        f"{extra['points']:.0f}",
        f"{extra['ns_per_point']:.4g}",
        f"{extra['rms_speed']:.1e}",
        f"{extra['greatest_speed']:.1e}",
        f"{1e3 * extra['overlap']:.3g}",
    )


def _how(record: Record) -> str:
    return " ".join(filter(None, (record.backend, record.launch, _threads(record.threads), record.dtype)))


def share_lines(records: Sequence[Record]) -> list[str]:
    """Return one line per profiled case, with the percentage of each stage in the time of a step."""
    lines = []
    for record in records:
        if record.stages:
            total = sum(record.stages.values())
            named = {k: v for k, v in record.kernels.items() if v > MIN_KERNEL_FRACTION * total}
            lines.append(f"{_case(record)}: {shares(record.stages, total)}; of it {shares(named, total)}")
        elif record.profiled:
            lines.append(f"{_case(record)}: {record.profiled}")
    return lines


def _case(record: Record) -> str:
    """Return a text with the name, worlds, dtype and profiled launch mode of a case."""
    worlds = f", {record.worlds} worlds" if record.worlds > 1 else ""
    return " ".join(filter(None, (f"{record.case}{worlds}", record.dtype, record.profiled if record.stages else "")))


def shares(times: dict[str, float], total: float) -> str:
    """Return the percentages of ``total``, largest first. Omit small percentages."""
    falling = sorted(times.items(), key=lambda item: -item[1])
    return ", ".join(
        f"{name} {100.0 * spent / total:.1f} %" for name, spent in falling if spent > MIN_SHOWN_FRACTION * total
    )


def show(records: Sequence[Record]) -> None:
    """Print the tables."""
    print_table(HEAD, [cells(record) for record in records])
    print(LEGEND)
    for line in [*notes(records), *signals.lines(records)]:
        print(line)
    piles = pile_rows(records)
    if piles:
        print_table(PILE_HEAD, piles)
        print(PILE_LEGEND)
    for line in share_lines(records):
        print(line)


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[str] = LEFT,
    dropped_first: Sequence[str] = DROPPED_FIRST,
) -> None:
    """Print a table.

    Args:
        head: names of the columns.
        rows: cells of each table row.
        left: left-aligned columns.
        dropped_first: columns to omit in a narrow window, in this order.
    """
    console = Console(width=None if sys.stdout.isatty() else max(200, 1 + sum(_widths(head, rows))), highlight=False)
    head, rows, dropped = narrowed(head, rows, console.width, dropped_first)
    table = Table()
    for name in head:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=name not in left, min_width=4)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    if dropped:
        print(f"A wider window, or --json, shows {', '.join(dropped)} too.")


def narrowed(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, dropped_first: Sequence[str] = DROPPED_FIRST
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the table without the columns that do not fit the width, and the names of the omitted columns."""
    kept, dropped = list(range(len(head))), []
    needed = _widths(head, rows)
    for name in dropped_first:
        if name in head and 1 + sum(needed[k] for k in kept) > width:
            kept.remove(head.index(name))
            dropped.append(name)
    return [head[k] for k in kept], [[row[k] for k in kept] for row in rows], dropped


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column, including the bar and the spaces."""
    return [3 + max(map(len, column)) for column in zip(head, *rows, strict=True)]


def as_json(machine: dict[str, Any], records: Sequence[Record]) -> dict[str, Any]:
    """Return all results for :func:`write_json`."""
    return {"machine": machine, "results": [record.as_dict() for record in records]}


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Write ``content`` to ``path``. If the write fails, no partial file remains.

    Raises:
        OSError: the folder is not writable.
    """
    with atomic_file(path) as stream:
        stream.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}" if count else ""
