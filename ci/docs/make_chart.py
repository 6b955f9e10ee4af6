"""Draw the speed chart of the README, docs/gallery/speed.png, from the table of docs/validation/benchmarks.md.

python ci/docs/make_chart.py [--out FILE.png]
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "validation" / "benchmarks.md"
SECTION = "## Machines, one thread"
LABELS = {
    "excavator": "excavator on two tracks, digging",
    "rtk_m": "rescue robot on four tracks",
    "krt100m": "wheeled robot with trailer and tires",
    "omni_vehicle": "platform on omni wheels",
    "mecanum_vehicle": "mecanum platform, each roller is a body",
    "suspension_rig": "wheel suspension on a test rig",
}
"""Names of the scenes in the chart."""


def read_table(page: str) -> list[tuple[str, int, float]]:
    """Return the scene, the number of bodies and the real-time factor of each row of the table."""
    section = page.split(SECTION)[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (\d+) \|.*?\| ([\d.]+) \| [^|]+ \|$", section, re.MULTILINE)
    return sorted(((name, int(bodies), float(factor)) for name, bodies, factor in rows), key=lambda row: row[2])


def draw(rows: list[tuple[str, int, float]], date: str) -> Figure:
    """Return a chart with one bar per machine on a logarithmic axis."""
    figure = Figure(figsize=(8.0, 0.38 * len(rows) + 0.9), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    names = [f"{LABELS[name]}, {bodies} bodies" for name, bodies, _ in rows]
    bars = axes.barh(names, [factor for *_, factor in rows], color="#3b6ea5")
    axes.bar_label(bars, [f"{factor:g}" for *_, factor in rows], padding=4)
    axes.set_xscale("log")
    axes.set_xlim(1.0, 300.0)
    axes.xaxis.set_major_formatter("{x:g}")
    figure.supxlabel(f"real-time factor, one thread of a shared AMD EPYC, float64, {date}", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> int:
    """Draw the chart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "gallery" / "speed.png")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    date = re.search(r"\d{4}-\d{2}-\d{2}", page.split(SECTION)[1])
    rows = read_table(page)
    if date is None or not rows:
        print(f"{PAGE} has no table with a date below '{SECTION}'")
        return 1
    draw(rows, date[0]).savefig(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
