"""Drive the robot krt100m in a circle in real time, and print a report in Markdown.

python ci/bench/clock.py [--seconds 60] [--dt 1e-3] [--overrun catch_up] [--out clock.md]
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
from pathlib import Path

import gpusim
from gpusim.bench.machine import describe
from gpusim.scene import load_scene


def measured(seconds: float, dt: float, overrun: str) -> gpusim.cosim.ClockReport:
    """Drive for ``seconds``."""
    scene = load_scene("krt100m")
    config = dataclasses.replace(scene.config, dt=dt)
    sim = gpusim.Simulation(scene.builder.finalize(), config=config, threads=1, specialize=True)
    seen, command = sim.observe(scene.signals()[:8]), sim.command(sim.model.operator_commands)

    def exchange(sim: gpusim.Simulation, time: float) -> None:
        seen.read()
        command.array[:] = 0.3 * math.sin(time)
        command.write()

    for _ in range(3):  # this run compiles, and fills caches
        exchange(sim, 0.0)
        sim.step()
    return gpusim.run_clock(sim, exchange, duration=seconds, overrun=overrun)


def main() -> None:
    """Print or write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--dt", type=float, default=1e-3)
    parser.add_argument("--overrun", default="catch_up")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    before = os.getloadavg()[0]
    report = measured(options.seconds, options.dt, options.overrun)
    facts = describe()
    text = (
        f"# krt100m in real time\n\n`python ci/bench/clock.py`, {facts['date']}, {facts['cores']} cores of "
        f"{facts['cpu']}, {facts['system']}, load {before:.1f} before and {os.getloadavg()[0]:.1f} after, "
        f"policy {options.overrun}.\n\n```text\n{report}\n```\n"
    )
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
