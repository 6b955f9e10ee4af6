from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, UnknownNameError
from gpusim.control import Diagram
from tests.message_snapshot import naming

DT = 0.01


def machine(*diagrams: Diagram) -> Simulation:
    """A cart with a servo "push" and a motor "turn" on a rail, and diagrams."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (1, 1, 1), label="cart")
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    b.add_servo(rail, "velocity", damping=5.0, label="speed")
    for d in diagrams:
        b.add_diagram(d)
    return Simulation(b.finalize(), config=SolverConfig(dt=DT))


class Cases(dict[str, tuple[Callable[[], Any], str]]):
    def wrong(self, named: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        def noted(case: Callable[[], Any]) -> Callable[[], Any]:
            assert case.__name__ not in self
            self[case.__name__] = case, named
            return case

        return noted

    def check(self, name: str) -> None:
        case, named = self[name]
        with pytest.raises((ModelError, UnknownNameError), match=naming(named)) as caught:
            case()
        assert "\n" not in str(caught.value)
