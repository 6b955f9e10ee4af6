"""The same bits of heaps, whose contacts are solved side by side (bits.py)."""

from __future__ import annotations

import pytest

from .bits import HEAPS, LARGE, cases, check_64_worlds, check_neighbors

pytestmark = pytest.mark.slow


@pytest.mark.native
@pytest.mark.parametrize(("name", "dtype", "solver"), cases((*HEAPS, *LARGE)))
def test_neighbors_places_launches_and_threads(name: str, dtype: str, solver: str) -> None:
    check_neighbors(name, dtype, solver)


@pytest.mark.native
@pytest.mark.parametrize("name", HEAPS)
def test_64_worlds_and_run_to_run(name: str) -> None:
    check_64_worlds(name)
