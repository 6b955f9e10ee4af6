"""``gpusim run --clock``."""

from __future__ import annotations

import re

from gpusim.cosim import StepClock


def test_a_run_in_real_time_waits_before_each_step_and_reports(cli, monkeypatch) -> None:
    waits: list[int] = []
    wait = StepClock.wait
    monkeypatch.setattr(StepClock, "wait", lambda clock: waits.append(1) or wait(clock))
    arguments = ("run", "double_pendulum", "--duration", 0.02, "--dt", 0.002, "--backend", "numpy")
    result = cli(*arguments, "--clock")
    assert result.exit_code == 0, result.output
    assert len(waits) == 10 and re.search(r"10 cycles of 2 ms in .*, 0 lost\nlate .*\nwork ", result.stdout)
    assert "0.02 s in 10 steps" in result.stdout
    waits.clear()
    assert "cycles" not in cli(*arguments).stdout and not waits
