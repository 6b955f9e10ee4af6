"""Test passes that end early because each mechanism is in contact (CONTACTS_SETTLED)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest

import gpusim
from gpusim.bench.humanoid import humanoid
from gpusim.reference.solve import direct_solve
from gpusim.scene import load_scene
from gpusim.typing import Array

DT, STEPS = 3e-3, 40


@contextmanager
def counted_passes(limit: float) -> Iterator[list[int]]:
    """Run with another value of CONTACTS_SETTLED, and count the passes."""
    passes = [0]
    correct = direct_solve._correct

    def counting(*given: object) -> Array:
        passes[0] += 1
        return correct(*given)  # type: ignore[arg-type]

    with (
        mock.patch.object(direct_solve, "_correct", counting),
        mock.patch.object(direct_solve, "CONTACTS_SETTLED", limit),
    ):
        yield passes


def motion(builder: gpusim.ModelBuilder, limit: float) -> tuple[Array, int]:
    """Return the body positions after STEPS steps, and the number of passes."""
    sim = gpusim.Simulation(builder.finalize(), 1, "numpy", config=gpusim.SolverConfig(dt=DT))
    with counted_passes(limit) as passes:
        sim.step(STEPS)
    return sim.state.arrays["position"].copy(), passes[0]


def test_fewer_passes_change_positions_less_than_contacts_do() -> None:
    found, passes = motion(humanoid(lying=True), direct_solve.CONTACTS_SETTLED)
    exact, all_passes = motion(humanoid(lying=True), 0.0)
    assert passes < 0.9 * all_passes
    changed = np.abs(found - exact).max()
    # a contact that starts one step later moves a body by g dt^2 / 2
    assert 0.0 < changed < 1e-2 * 0.5 * 9.81 * DT**2


def test_without_contacts_no_bit_changes() -> None:
    found, passes = motion(load_scene("chain").builder, direct_solve.CONTACTS_SETTLED)
    exact, all_passes = motion(load_scene("chain").builder, 0.0)
    assert (passes, found.tobytes()) == (all_passes, exact.tobytes())


def test_a_mechanism_without_contact_keeps_the_limit_of_the_world() -> None:
    builder = humanoid(lying=True)
    arm = builder.add_body(1.0, (0.01, 0.02, 0.02), xform=gpusim.Transform((5.0, 0.0, 2.0)), label="arm")
    builder.add_joint_revolute(-1, arm, gpusim.Transform((5.5, 0.0, 2.0)), gpusim.Transform((0.5, 0.0, 0.0)), (0, 1, 0))
    found, passes = motion(builder, direct_solve.CONTACTS_SETTLED)
    exact, all_passes = motion(builder, 0.0)
    assert (passes, found.tobytes()) == (all_passes, exact.tobytes())


@pytest.mark.native
@pytest.mark.parametrize("count", [1, 2])
def test_native_uses_the_same_limit(count: int) -> None:
    sims = [
        gpusim.Simulation(humanoid(True, count).finalize(), 1, backend, config=gpusim.SolverConfig(dt=DT))
        for backend in ("numpy", "native")
    ]
    for sim in sims:
        sim.step(STEPS)
    difference = np.abs(sims[0].state.arrays["position"] - sims[1].state.arrays["position"]).max()
    assert difference < 1e-9  # other limits change positions by 2e-7 m
