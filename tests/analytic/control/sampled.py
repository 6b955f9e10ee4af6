from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal

from gpusim.control import Diagram


def respond(
    kind: str, rate: float, inputs: dict[str, Any], length: int = 0, **parameters: Any
) -> dict[str, np.ndarray]:
    d = Diagram("d", rate=rate)
    block = d.add(kind, "block", **parameters)
    for port in inputs:
        d.connect(d.add("input", f"in_{port}", lower=-1e9, upper=1e9), block[port])
    columns = {f"in_{port}": k for k, port in enumerate(inputs)}
    program = d.compile({}, columns, 1.0 / rate)
    numbers, control = program.initial[None].copy(), np.zeros((1, len(columns)))
    series = [np.asarray(values, float) for values in inputs.values()]
    wires = {w.name.removeprefix("diagram.d.block"): w for w in program.wires if w.name.startswith("diagram.d.block")}
    out: dict[str, list[np.ndarray]] = {name: [] for name in wires}
    for k in range(len(series[0]) if series else length):
        control[0] = [values[k] for values in series]
        program.run(np.zeros((1, 0)), program.parameters[None], numbers, control)
        numbers[:, 0] += 1.0
        for name, wire in wires.items():
            out[name].append(numbers[0, list(wire.at)].reshape(wire.shape))
    return {name.removeprefix(".") or "out": np.array(values) for name, values in out.items()}


def step_response(num: list[float], den: list[float], t: np.ndarray) -> np.ndarray:
    """Return the step response of num/den by partial fractions."""
    residues, poles, direct = signal.residue(num, [*den, 0.0])
    assert not np.any(direct)
    out, power, before = np.zeros(len(t), complex), 0, None
    for r, p in zip(residues, poles, strict=True):
        power = power + 1 if before is not None and abs(p - before) < 1e-3 * max(1.0, abs(p)) else 0
        before = p
        out += r * t**power * np.exp(p * t) / np.prod(np.arange(1, power + 1))
    return np.where(t >= 0.0, out.real, 0.0)


def held_response(num: list[float], den: list[float], u: np.ndarray, period: float) -> np.ndarray:
    times = period * np.arange(len(u))
    rises = np.diff(u, prepend=0.0)
    whole = step_response(num, den, times)
    return np.array([float(rises[: k + 1] @ whole[k::-1]) for k in range(len(u))])
