"""Accuracy limits of the simulator, by case and settings.

Sources of the limits: ``tests/reference/multibody/README.md`` (column "our bar") and
``tests/reference/hydraulics/README.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bar:
    """Limits of the errors. None means no limit.

    Attributes:
        error: limit of the output's error, in the case's unit.
        energy: limit of |E - E0|, J.
        gap: limit of joint gaps, m.
        extra: limits of ``Result.extra`` by name.
    """

    error: float | None = None
    energy: float | None = None
    gap: float | None = 1e-6
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A case with its settings and limits."""

    case: str
    settings: dict[str, Any]
    bar: Bar
    note: str = ""


_STEADY = {"steady vp_mps": 1e-3, "steady pA_Pa": 1e-3, "steady pB_Pa": 1e-3}
#: Bars of one substep; where the bar with 8 substeps is tighter it is in ``EIGHT_SUBSTEPS``.
MULTIBODY: dict[str, Bar] = {
    "A01": Bar(1e-4, 5e-5),
    "A02": Bar(1.5e-4, 6e-4),
    "A04": Bar(5e-6, 6e-6),
    "A05": Bar(5e-5),
    "B01": Bar(1e-4, 1e-3),
    "B03": Bar(1e-9, extra={"tension": 1e-6}),
    "C01": Bar(5e-5),
    "C03": Bar(4e-4),
    "E01": Bar(0.1, 0.02),
}
EIGHT_SUBSTEPS: dict[str, Bar] = MULTIBODY | {"A05": Bar(1e-6), "C03": Bar(1e-5), "E01": Bar(2e-3, 0.02)}

TEST_HORIZON: dict[str, float] = {
    "A02": 3.0,
    "A04": 3.0,
    "A05": 3.0,
    "B03": 1.0,
    "E01": 3.0,
    "case3b": 1.0,
    "case4": 4.0,
    "case5": 3.0,
}
#: The same with 8 substeps; A02 needs to pass its singular position at 0.9 s.
TEST_HORIZON_EIGHT: dict[str, float] = {
    "A01": 0.5,
    "A02": 1.0,
    "A04": 0.5,
    "A05": 0.3,
    "B01": 0.5,
    "B03": 0.1,
    "C01": 1.0,
    "C03": 0.3,
    "E01": 0.4,
}

HYDRAULICS: tuple[Row, ...] = (
    Row("case1a", {"dt": 1e-3}, Bar(2e-4, extra=_STEADY)),
    Row("case1a", {"dt": 1e-2}, Bar(5e-4, extra=_STEADY)),
    Row("case1c", {"dt": 1e-3}, Bar(6e-4)),
    Row("case1c", {"dt": 1e-2}, Bar(6e-4)),
    Row("case1d", {"dt": 1e-3}, Bar(2e-4)),
    Row("case1d", {"dt": 1e-2}, Bar(2e-4)),
    Row("case4", {"dt": 1e-3}, Bar(6e-4)),
    Row("case4", {"dt": 1e-2}, Bar(6e-4)),
    Row("case5", {"dt": 1e-3}, Bar(1e-3)),
    Row("case5", {"dt": 1e-2}, Bar(1e-3)),
    Row("hold_lift", {"dt": 1e-3}, Bar(5e-5), "drift in 0.5 s"),
    Row("hold_lift", {"dt": 1e-2}, Bar(5e-5), "drift in 0.5 s"),
    Row("hold_boom", {"dt": 1e-3}, Bar(5e-5), "drift in 0.5 s"),
    Row("hold_boom", {"dt": 1e-2}, Bar(5e-5), "drift in 0.5 s"),
)

#: What "stable" means. A motor that blows up is off by many radians. Masses on passive springs, resolved by the step or
#: not, never move farther than physics lets them (1, and rounding); all of case 3a have come to the reference in the
#: end. (Case 3b rings on its tire through the whole run, so that its phase errors stay.)
STABLE_ANGLE = 0.2
STABLE = {"overshoot": 1.001}
SETTLED = {"overshoot": 1.001, "late": 0.05}

MOTORS: tuple[Row, ...] = (
    Row("case2a", {"dt": 1e-3}, Bar(2e-3)),
    Row("case2b", {"dt": 1e-3}, Bar(2e-3)),
    Row("case2d", {"dt": 1e-3}, Bar(2e-3)),
    Row("case2a", {"dt": 1e-2}, Bar(STABLE_ANGLE), "stable"),
    Row("case2b", {"dt": 1e-2}, Bar(STABLE_ANGLE), "stable"),
    Row("case2d", {"dt": 1e-2}, Bar(STABLE_ANGLE), "stable"),
)

SPRINGS: tuple[Row, ...] = (
    Row("case3a", {"dt": 1e-3}, Bar(0.01, extra=SETTLED), "period >= 50 ms"),
    Row("case3b", {"dt": 1e-3}, Bar(0.01, extra=STABLE), "period >= 50 ms"),
    Row("case3a", {"dt": 1e-2}, Bar(extra=SETTLED), "stable"),
    Row("case3b", {"dt": 1e-2}, Bar(extra=STABLE), "stable"),
)

#: Other solvers, reported in addition to "direct": no blow-up, gap below 1 mm (A05 may need more sweeps).
OTHERS: dict[str, dict[str, Any]] = {
    "colored 8x1": {"joint_solver": "colored", "substeps": 8, "iterations": 1},
    "colored 8x4": {"joint_solver": "colored", "substeps": 8, "iterations": 4},
    "float32": {"dtype": "float32"},
    "float32 x8": {"dtype": "float32", "substeps": 8},
    "semi_implicit": {"scheme": "semi_implicit"},
}
GAP_COLORED = 1e-3
GAP_FLOAT32 = 1e-4
B03_COLORED_STRETCH = 1e-3  # 8 substeps x 4 sweeps

ORDERS: dict[str, tuple[tuple[float, ...], float]] = {
    "A04": ((2e-3, 1e-3, 5e-4, 2.5e-4), 2.0),
    "A05": ((2e-3, 1e-3, 5e-4, 2.5e-4), 1.0),
    "B01": ((2e-3, 1e-3, 5e-4, 2.5e-4), 2.0),
    "C03": ((1e-3, 5e-4, 2.5e-4), 1.0),
    "E01": ((1e-3, 5e-4, 2.5e-4), 1.0),
}
MIN_ORDER = 1.8
#: `gpusim run hydraulic_lift` (4 s at 1 ms) from a shell with warm caches, s.
COMMAND_TIME = 10.0
#: Energy of an undamped chain over 60 s: bounded, and no trend above 0.1 % of the scale.
CHAIN = Row("free_chain", {"dt": 1e-3}, Bar(extra={"trend": 1e-3}), "60 s")


def failures(result: Any, bar: Bar) -> list[str]:
    if not result.finished:
        return [f"did not finish: {result.failure or 'not finite'}"]
    pairs = [("error", result.max_error, bar.error), ("energy", result.energy_error, bar.energy)]
    pairs += [("joint gap", result.joint_gap, bar.gap)]
    pairs += [(name, result.extra.get(name), limit) for name, limit in bar.extra.items()]
    return [
        f"{name} {value:.3g} > {limit:g}"
        for name, value, limit in pairs
        if limit is not None and value is not None and not value <= limit
    ]


def order(steps: tuple[float, ...], errors: list[float]) -> float:
    """Order of convergence: least-squares slope of the log error over the log step size."""
    import numpy as np

    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
