from __future__ import annotations

import numpy as np
import pytest

from .bits import HEAPS, LARGE, Runner, cases, check_64_worlds, check_neighbors, differing, make_room

pytestmark = [pytest.mark.nightly, pytest.mark.native]
ROOM = {"slots": 8, "coupled": True}
GUEST = "mecanum_vehicle"


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "dtype", "solver"), cases((*HEAPS, *LARGE)))
def test_neighbors_places_launches_and_threads(
    name: str, dtype: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if solver == "colored" or name == GUEST:
        make_room(monkeypatch, **ROOM)
    check_neighbors(name, dtype, solver)


@pytest.mark.nightly
@pytest.mark.parametrize("name", HEAPS)
def test_64_worlds_and_run_to_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in (GUEST, "pile"):
        make_room(monkeypatch, **ROOM)
    check_64_worlds(name)


@pytest.mark.parametrize("name", ["omni_vehicle", "pile"])
def test_room_changes_no_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, order = Runner(name, "float64", "direct"), np.arange(2)
    own = runner.state(order, 30, launch="staged", threads=1)
    make_room(monkeypatch, **ROOM)
    assert differing(own, runner.state(order, 30, launch="staged", threads=1), order, order) == []
