"""Make the report of ci/gpu_check.py: a JSON file and a short table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] | None = None) -> str:
    """Return a table in Markdown."""
    from gpusim.bench.report import LEFT

    bars = ["---" if name in (left or LEFT) else "---:" for name in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, bars, *rows))


def bench_table(records: Sequence[Any]) -> str:
    from gpusim.bench import report

    lines = [markdown_table(report.HEAD, [report.cells(record) for record in records])]
    return "\n\n".join([*lines, *report.notes(records)])


def bench_result(
    facts: dict[str, Any], records: Sequence[Any], peers: Sequence[Any], left: Sequence[str]
) -> dict[str, Any]:
    """Return the result of the step "bench": data for the JSON file, table for the report, and failed cases."""
    from ci.peers import report as peer_report
    from gpusim.bench.report import share_lines

    parts = [bench_table(records)]
    if piles := peer_report.pile_rows(records, peers):
        shares = "\n".join(f"- {line}" for line in [*share_lines(records), *peer_report.share_lines(peers)])
        parts += [markdown_table(peer_report.PILE_HEAD, piles), peer_report.PILE_LEGEND, shares]
    if peers:
        rows = [peer_report.peer_cells(peer) for peer in peers]
        parts.append(markdown_table(peer_report.PEER_HEAD, rows, peer_report.LEFT))
    if left:
        parts.append(f"Left out for lack of time or packages: {', '.join(left)}.")
    failed = [f"{r.workload} {r.case} {r.worlds}: {r.error}" for r in records if r.error]
    content, table = peer_report.as_json(facts, records, peers), "\n\n".join(filter(None, parts))
    return {"bench": content, "left_out": left, "table": table, "failed": "; ".join(failed)}


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """Return the short report."""
    lines = ["# GPU check", "", "| step | result | seconds | what |", "| --- | --- | ---: | --- |"]
    for name, result in results.items():
        verdict = "failed" if result["failed"] else "skipped" if result.get("skipped") else "passed"
        what = (
            (result["failed"] or result.get("skipped") or summary_of(name, result)).replace("|", "/").replace("\n", " ")
        )
        lines.append(f"| {name} | {verdict} | {result['seconds']} | {what[:400]} |")
    built = [v for name in ("compile", "compile_rest") for v in results.get(name, {}).get("variants", ())]
    if built:
        lines += [
            "",
            "| variant | seconds | kernels | most registers | spills B |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for v in built:
            lines.append(
                f"| {v['variant']} {v['arch']} | {v['seconds']} | {v['kernels']} | {v['registers']} | {v['spills']} |"
            )
    bench = results.get("bench", {})
    if "table" in bench:
        facts = bench["bench"]["machine"]
        lines += ["", ", ".join(f"{key} {value}" for key, value in facts.items() if value), "", bench["table"]]
    if "table" in results.get("profile", {}):
        lines += ["", "Time of a step by stage:", "", results["profile"]["table"]]
    return "\n".join(lines) + "\n"


def summary_of(name: str, result: dict[str, Any]) -> str:
    if name.startswith("compile"):
        built = f"{len(result['variants'])} of {result['builds']} builds for {result['arch'] or 'the CPU'}"
        late = f"; not in time for {len(result['unready'])} cases" if result["unready"] else ""
        return f"{built} {result['nvrtc'].partition(' (')[0]}{late}"
    if name == "launch":
        return f"{len(result['cases'])} cases"
    if name == "sanitize":
        return "; ".join(f"{tool}: {said}" for tool, said in result["said"].items())
    if name == "tests":
        return str(result["summary"])
    if name == "bits":
        skipped = sum(row["result"].startswith("skipped") for row in result["cases"])
        runs = f"{len(result['cases']) - skipped} runs of {result['steps']} steps in {result['worlds']} worlds"
        short = sum(row["result"].startswith("same in") for row in result["cases"])
        late = f"; {short} with fewer steps, for lack of time" if short else ""
        late += f"; {len(result['left_out'])} not compiled or no time" if result["left_out"] else ""
        return runs + (f"; {skipped} skipped for packages that are not installed" if skipped else "") + late
    if name == "profile":
        reported = result.get("nsight", {}).get("skipped", "with Nsight Compute's metrics")
        return f"{len(result['cases'])} cases; Nsight Compute: {reported}"
    return f"{len(result['bench']['results'])} cases, {len(result['bench']['peers'])} peers"


def write_report(out: Path, results: dict[str, dict[str, Any]]) -> None:
    (out / "gpu_check.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (out / "gpu_check.md").write_text(markdown(results), encoding="utf-8")
