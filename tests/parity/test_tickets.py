from __future__ import annotations

import warnings

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.native.backend import NativeBackend
from gpusim.compiler import contact_topology
from gpusim.solver.launch_plan import Launch, LaunchPlan
from gpusim.solver.nodes import Phase

pytestmark = pytest.mark.native


def heap(count: int, tray: bool, bare: int = 0) -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for _ in range(bare):  # more bodies than shapes
        b.add_body(kinematic=True)
    if tray:
        body = b.add_body(xform=Transform((0.2, 0.2, 0.05)), label="tray")
        b.add_shape_box(body, half_extents=(1.0, 1.0, 0.05))
    for k in range(count):
        place = (0.11 * (k % 5), 0.11 * (k // 5 % 5), 0.16 + 0.11 * (k // 25))
        body = b.add_body(xform=Transform.from_axis_angle(place, (1.0, 0.3, k), 0.2 * k), label=f"box{k}")
        b.add_shape_box(body, half_extents=(0.05, 0.05, 0.05), material=Material(friction=0.4))
    return b


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("count", "tray", "colors", "bare"), [(70, False, 32, 0), (100, True, 4, 0), (30, False, 32, 60)]
)
def test_coloring_in_turns(count: int, tray: bool, colors: int, bare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_topology, "MAX_SEQUENTIAL", 8)
    model = heap(count, tray, bare).finalize()
    states = []
    at_rest = ~model.topology.dynamic
    assert at_rest.any()
    for turns, threads in ((False, 1), (True, 1), (True, 2), (True, 5)):
        monkeypatch.setattr(NativeBackend, "colors_side_by_side", turns)
        config = SolverConfig(dt=1 / 120, substeps=2, iterations=3, max_colors=colors)
        sim = Simulation(model, 2, backend="native", launch="staged", threads=threads, config=config)
        sim.step(40)
        backend = sim.backend
        assert isinstance(backend, NativeBackend)
        colored = [backend.slab_array(name)[:, : sim.read_state()["pair_count"].min()].copy()
                   for name in ("manifold_color", "color_member")]  # fmt: skip
        # The mask of a body at rest would be written by many manifolds at once, so none writes it.
        assert not backend.slab_array("body_colors")[:, at_rest].any()
        states.append((sim.state.variables(), colored))
    assert (states[0][1][0] >= 0).any()
    assert (states[0][1][0] == -1).any() == tray  # overflow
    for state, colored in states[1:]:
        for mine, other in zip(colored, states[0][1], strict=True):
            np.testing.assert_array_equal(mine, other)
        for name, array in state.items():
            np.testing.assert_array_equal(array, states[0][0][name], err_msg=name)


@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_partners_of_large_shapes_are_found_in_parts(launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    b = heap(90, tray=True)
    plank = b.add_body(xform=Transform((0.2, 0.2, 0.9)), label="plank")
    b.add_shape_box(plank, half_extents=(0.6, 0.4, 0.02))
    model = b.finalize()
    for places in (None, 60):
        states = []
        for most in (1000, 40):
            monkeypatch.setattr(contact_topology, "MAX_WALKED", most)
            config = SolverConfig(dt=1 / 120, substeps=2, iterations=3, max_pairs=places)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                sim = Simulation(model, 2, backend="native", launch=launch, threads=1, config=config)
                sim.step(40)
            assert (sim.backend.sizes["large_parts"] > 0) == (most == 40)
            states.append(sim.state.variables())
        assert (states[0]["pair_overflow"] > 0).any() == (places is not None)
        for name, array in states[1].items():
            np.testing.assert_array_equal(array, states[0][name], err_msg=name)


def _launches(plan: LaunchPlan) -> list[Launch]:
    parts = (*plan.begin, *plan.substep, *plan.end)
    return [one for part in parts if isinstance(part, list) for one in part]


@pytest.mark.nightly
def test_launches_are_as_large_as_their_work() -> None:
    sizes = {"bodies": 7, "PARTS": 256}
    assert [Phase("x", items).max_items(sizes) for items in ("1", "bodies", "bodies * 6", "PARTS")] == [1, 7, 42, 256]
    assert Phase("x", "count(w)").max_items(sizes) is None
    assert Phase("x", "count(w)", room="bodies").max_items(sizes) == 7
    assert Phase("x", "count(w)", room="room(w)", bound="bodies * 6").max_items(sizes) == 42
    assert Phase("x", "count(w)", bound="rows").idle({"rows": 0}) and not Phase("x", "count(w)").idle({"rows": 0})
    sim = Simulation(heap(90, False).finalize(), backend="native", launch="staged")
    backend = sim.backend
    assert isinstance(backend, NativeBackend)
    found = {one.phase: one.items for part in backend.plan.substep if isinstance(part, list) for one in part}
    assert found["sweep_contact"] == backend.sizes["pairs"]
    in_turns = {one.phase for part in backend.plan.substep if isinstance(part, list) for one in part if one.tickets}
    assert in_turns == {"sweep_contact", "push_contact", "warm_contact"}
    assert found["drift_body"] == backend.sizes["bodies"]
    assert None not in found.values()
    # rare work is one launch, where blocks work side by side, unless joints are swept in it level by level
    joined = {"search_joined", "push_out_joined", "resolve_joined"}
    assert not joined & {one.phase for one in _launches(backend.plan)}
    sizes = backend.plan.sizes | {"incident_slots": 1}
    assert joined == joined & {one.phase for one in _launches(LaunchPlan(sizes))}
    # one sweep in each of four substeps, as a pile has them
    pile = LaunchPlan(sizes | {"iterations": 1, "substeps": 4, "direct": 0, "rolling_shapes": 1})
    count = [sum(len(part) for part in half if isinstance(part, list)) for half in (pile.begin, pile.substep, pile.end)]
    assert count[0] + 4 * count[1] + count[2] <= 143
    swept = _launches(LaunchPlan(sizes | {"constraints": 1, "colors": 2, "rows": 6, "direct": 0}))
    assert joined & {one.phase for one in swept} == {"search_joined"}
    assert {"push_contact", "sweep_color"} <= {one.phase for one in swept}
    # what is for joints alone is not launched
    started = {one.phase for part in backend.plan.begin if isinstance(part, list) for one in part}
    assert not {"evaluate_element", "stiffen_body", "clear_rows"} & (found.keys() | started)
