"""Test passes that end early because bodies with joints are in contact (CONTACTS_SETTLED)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np

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
