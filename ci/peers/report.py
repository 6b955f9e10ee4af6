"""Tables and JSON that show gpusim's results next to the results of peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ci.peers.peer_case import PeerRecord
from gpusim.bench import report
from gpusim.bench.runner import Record

PEER_HEAD = ("peer", "version", "case", "worlds", "us/step", "+-", "world-steps/s", "note")
LEFT = ("peer", "version", "case", "note")
PILE_HEAD = (*report.PILE_HEAD, "ratio")
PILE_LEGEND = f"{report.PILE_LEGEND} ratio: time divided by the time of the first peer with the same boxes."


def peer_cells(record: PeerRecord) -> tuple[str, ...]:
    """Return a row of the table of peers."""
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


def pile_rows(records: Sequence[Record], peers: Sequence[PeerRecord]) -> list[tuple[str, ...]]:
    """Return the rows of the table of piles, for gpusim and for peers."""
    first: dict[str, float] = {}
    for peer in peers:
        if peer.extra:
            first.setdefault(_boxes(peer.case), peer.step_us)

    def with_ratio(cells: tuple[str, ...], step_us: float) -> tuple[str, ...]:
        other = first.get(_boxes(cells[0]))
        return (*cells, f"{step_us / other:.2f}" if other else "-")

    rows = [with_ratio(cells, record.step_us) for record in records for cells in report.pile_rows([record])]
    for peer in peers:
        if peer.extra:
            cells = report.pile_cells(peer.case, f"{peer.peer} {peer.note}", peer.step_us, peer.extra)
            rows.append(with_ratio(cells, peer.step_us))
    return rows


def _boxes(case: str) -> str:
    return case.partition(",")[0]


def share_lines(peers: Sequence[PeerRecord]) -> list[str]:
    """Return one line for each peer that reports the fractions of a step."""
    lines = []
    for peer in peers:
        parts = {name: peer.extra.get(f"{name}_share", 0.0) for name in ("collide", "solve")}
        if any(parts.values()):
            lines.append(f"{peer.case} {peer.peer}: {report.shares(parts, 1.0)}")
    return lines


def show(records: Sequence[Record], peers: Sequence[PeerRecord]) -> None:
    """Print gpusim's tables, then the tables of the peers."""
    report.show(records)
    if any(peer.extra for peer in peers):
        report.print_table(PILE_HEAD, pile_rows(records, peers))
        print(PILE_LEGEND)
    for line in share_lines(peers):
        print(line)
    if peers:
        report.print_table(PEER_HEAD, [peer_cells(record) for record in peers], LEFT)


def as_json(machine: dict[str, Any], records: Sequence[Record], peers: Sequence[PeerRecord]) -> dict[str, Any]:
    """Return all results for :func:`gpusim.bench.report.write_json`."""
    return report.as_json(machine, records) | {"peers": [record.as_dict() for record in peers]}
