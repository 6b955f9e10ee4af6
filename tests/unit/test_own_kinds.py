"""Actuator kinds from outside the package: what a build knows of them, their kernels, and what they may not break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.actuators.base import _KINDS, ActuatorType, Parameter, register


@pytest.fixture
def known() -> Iterator[Callable[[type[ActuatorType]], None]]:
    """Registers kinds, and forgets them after the test."""
    names: list[str] = []

    def add(kind: type[ActuatorType]) -> None:
        register(kind)
        names.append(kind.name)

    yield add
    for name in names:
        _KINDS.forget(name)


def servo_hinge() -> Simulation:
    """A position servo on a hinge, on its way to 0.5 rad."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    arm = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), label="arm")
    hinge = b.add_joint_revolute(-1, arm, label="hinge")
    b.add_servo(hinge, stiffness=20.0, damping=1.0, target=0.5, label="servo")
    return Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3))


def state_bits(sim: Simulation) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in sim.state.variables().items()}


@pytest.mark.native
def test_a_kind_that_no_actuator_is_of_changes_nothing(known: Callable[[type[ActuatorType]], None]) -> None:
    """Registered after the first build, before all others by its name: the same bits."""
    before = servo_hinge()
    before.step(500)
    rate, decay = np.sqrt(200.0 - 25.0), np.exp(-5.0 * 0.5)
    expected = 0.5 - 0.5 * decay * (np.cos(0.5 * rate) + 5.0 / rate * np.sin(0.5 * rate))
    assert before.read("joint.hinge.position")[0] == pytest.approx(expected, abs=1e-4)

    class Aaa(ActuatorType):
        name: ClassVar[str] = "aaa"
        prefix: ClassVar[str] = "aaa"
        parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("strength", "N", "of nothing"),)

    known(Aaa)
    after = servo_hinge()
    after.step(500)
    assert after.read("joint.hinge.position") == before.read("joint.hinge.position")
    assert state_bits(after) == state_bits(before)
