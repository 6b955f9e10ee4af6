"""Tables and JSON of benchmark results. Without rich, tables are plain text."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpusim.bench import signals
from gpusim.bench.peer_case import PeerRecord
from gpusim.bench.runner import Record
from gpusim.output_files import atomic_file

HEAD = (
    "workload", "case", "worlds", "how", "us/step", "+-", "world-steps/s", "bytes", "flops 32", "flops 64",
    "floor us", "of floor", "bound by",
)  # fmt: skip
LEFT = ("workload", "case", "how", "bound by", "peer", "version", "note", "ESTIMATE", "work in")
# Columns that are dropped in a narrow window, in this order.
DROPPED_FIRST = (
    "flops 32", "flops 64", "bytes", "floor us", "+-", "of floor", "how",
    "at 32 lanes", "slab kB", "touched kB", "phases", "warp ops", "issue ns", "latency ns", "memory ns", "work in",
)  # fmt: skip
PEER_HEAD = ("peer", "version", "case", "worlds", "us/step", "+-", "world-steps/s", "note")
PILE_HEAD = (
    "case", "how", "ms/step", "manifolds", "points", "ns/point", "rms m/s", "most m/s", "overlap mm", "ratio",
)  # fmt: skip
PILE_LEGEND = (
    "piles: ns/point: time of a step over contact points; rms, most: speeds of the settled things; overlap: the "
    "deepest; ratio: time over that of the first peer with the same boxes. Times on one CPU thread are CPU time."
)
SHOWN_SHARE = 0.003
"""Minimum share of a step for a stage in the report. Stages below it only took clock overhead."""
LEAST_SHARE = 0.02
"""Minimum share of a step for a kernel to be named."""
LEGEND = (
    "us/step: median time of a step of all worlds; +-: its interquartile range; bytes, flops: least traffic and "
    "counted operations of a world-step; of floor: what the machine's bandwidth or arithmetic explains of it."
)


def cells(record: Record) -> tuple[str, ...]:
    """Return one line of the table."""
    how = " ".join(filter(None, (record.backend, record.launch, _threads(record.threads), record.dtype, record.solver)))
    first = (record.workload, record.case, str(record.worlds), how)
    if record.error:
        return (*first, "failed", *[""] * (len(HEAD) - len(first) - 1))
    figures = (f"{record.step_us:.4g}", f"{100.0 * record.spread:.0f}%", f"{record.world_steps:.3g}")
    floor = record.floor
    if floor is None:
        return (*first, *figures, *["-"] * (len(HEAD) - len(first) - len(figures)))
    return (
        *first,
        *figures,
        f"{floor.bytes:.0f}",
        f"{floor.operations32:.0f}",
        f"{floor.operations64:.0f}",
        f"{floor.us:.3g}",
        f"{100.0 * floor.share(record.step_us):.2g}%",
        floor.bound(record.step_us),
    )


def peer_cells(record: PeerRecord) -> tuple[str, ...]:
    """Return one line of the table of peers."""
    first = (record.peer, record.version, record.case, str(record.worlds) if record.worlds else "")
    if not record.step_us:
        return (*first, "", "", "", record.note)
    return (
        *first,
        f"{record.step_us:.4g}",
        f"{100.0 * record.spread:.0f}%",
        f"{record.world_steps:.3g}",
        record.note,
    )


def notes(records: Sequence[Record]) -> list[str]:
    """Return what the table leaves out: row times and errors, one line each."""
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


def pile_rows(records: Sequence[Record], peers: Sequence[PeerRecord] = ()) -> list[tuple[str, ...]]:
    """Return the lines of the table of piles, gpusim's and its peers'. The result is empty if no pile ran."""
    first: dict[str, float] = {}
    for peer in peers:
        if peer.extra:
            first.setdefault(_boxes(peer.case), peer.step_us)
    rows = []
    for record in records:
        if "ns_per_point" in record.extra and not record.error:
            how = " ".join(filter(None, (record.backend, record.launch, _threads(record.threads), record.dtype)))
            rows.append(_pile_cells(record.case, how, record.step_us, record.extra, first))
    for peer in peers:
        if peer.extra:
            rows.append(_pile_cells(peer.case, f"{peer.peer} {peer.note}", peer.step_us, peer.extra, first))
    return rows


def _boxes(case: str) -> str:
    return case.partition(",")[0]


def _pile_cells(
    case: str, how: str, step_us: float, extra: dict[str, float], first: dict[str, float]
) -> tuple[str, ...]:
    peer = first.get(_boxes(case))
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
        f"{step_us / peer:.2f}" if peer else "-",
    )


def share_lines(records: Sequence[Record], peers: Sequence[PeerRecord] = ()) -> list[str]:
    """Return a line on the time shares of a step for each profiled case."""
    lines = []
    for record in records:
        if record.stages:
            total = sum(record.stages.values())
            named = {k: v for k, v in record.kernels.items() if v > LEAST_SHARE * total}
            lines.append(f"{_case(record)}: {_shares(record.stages, total)}; of it {_shares(named, total)}")
        elif record.profiled:
            lines.append(f"{_case(record)}: {record.profiled}")
    for peer in peers:
        parts = {name: peer.extra.get(f"{name}_share", 0.0) for name in ("collide", "solve")}
        if any(parts.values()):
            lines.append(f"{peer.case} {peer.peer}: {_shares(parts, 1.0)}")
    return lines


def _case(record: Record) -> str:
    """Describe a case, with the launch of its profile."""
    worlds = f", {record.worlds} worlds" if record.worlds > 1 else ""
    return " ".join(filter(None, (f"{record.case}{worlds}", record.dtype, record.profiled if record.stages else "")))


def _shares(times: dict[str, float], total: float) -> str:
    falling = sorted(times.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {100.0 * spent / total:.1f} %" for name, spent in falling if spent > SHOWN_SHARE * total)


def show(records: Sequence[Record], peers: Sequence[PeerRecord] = ()) -> None:
    """Print the tables."""
    print_table(HEAD, [cells(record) for record in records])
    print(LEGEND)
    for line in [*notes(records), *signals.lines(records)]:
        print(line)
    piles = pile_rows(records, peers)
    if piles:
        print_table(PILE_HEAD, piles)
        print(PILE_LEGEND)
    for line in share_lines(records, peers):
        print(line)
    if peers:
        print_table(PEER_HEAD, [peer_cells(record) for record in peers])


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with rich, or as plain text without it. A pipe or a file gets the full width."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print(plain_table(head, rows))
        return
    console = Console(width=None if sys.stdout.isatty() else max(200, 1 + sum(_widths(head, rows))), highlight=False)
    head, rows, dropped = narrowed(head, rows, console.width)
    table = Table()
    for name in head:
        table.add_column(name, justify="left" if name in LEFT else "right", no_wrap=name not in LEFT, min_width=4)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    if dropped:
        print(f"A wider window, or --json, shows {', '.join(dropped)} too.")


def narrowed(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the table without less important columns that do not fit the width, and the dropped names."""
    kept, dropped = list(range(len(head))), []
    needed = _widths(head, rows)
    for name in DROPPED_FIRST:
        if name in head and 1 + sum(needed[k] for k in kept) > width:
            kept.remove(head.index(name))
            dropped.append(name)
    return [head[k] for k in kept], [[row[k] for k in kept] for row in rows], dropped


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column in a line, including its bar and spaces."""
    return [3 + max(map(len, column)) for column in zip(head, *rows, strict=True)]


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as aligned text."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        aligned = (
            text.ljust(w) if name in LEFT else text.rjust(w) for name, text, w in zip(head, row, widths, strict=True)
        )
        lines.append("  ".join(aligned).rstrip())
    return "\n".join(lines)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    bars = ["---" if name in LEFT else "---:" for name in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, bars, *rows))


def as_json(machine: dict[str, Any], records: Sequence[Record], peers: Sequence[PeerRecord] = ()) -> dict[str, Any]:
    """Return all results for :func:`write_json`."""
    return {
        "machine": machine,
        "results": [record.as_dict() for record in records],
        "peers": [record.as_dict() for record in peers],
    }


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Write ``content`` to ``path``, whole or not at all.

    Raises:
        OSError: the folder can't be written.
    """
    with atomic_file(path) as stream:
        stream.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}" if count else ""
