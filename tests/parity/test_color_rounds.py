"""Coloring by many threads in rounds gives the colors, and so the bits, of one thread that colors in turn."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.native_backend import NativeBackend
from gpusim.model import contact_topology

pytestmark = pytest.mark.native


def heap(count: int, tray: bool) -> ModelBuilder:
    """Boxes on each other; on a tray that moves too, so that many share one body and colors run out."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    if tray:
        body = b.add_body(xform=Transform((0.2, 0.2, 0.05)), label="tray")
        b.add_shape_box(body, half_extents=(1.0, 1.0, 0.05))
    for k in range(count):
        place = (0.11 * (k % 5), 0.11 * (k // 5 % 5), 0.16 + 0.11 * (k // 25))
        body = b.add_body(xform=Transform.from_axis_angle(place, (1.0, 0.3, k), 0.2 * k), label=f"box{k}")
        b.add_shape_box(body, half_extents=(0.05, 0.05, 0.05), material=Material(friction=0.4))
    return b


@pytest.mark.parametrize(("count", "tray", "colors"), [(70, False, 32), (100, True, 4)])
def test_rounds(count: int, tray: bool, colors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_topology, "MOST_IN_TURN", 8)
    model = heap(count, tray).finalize()
    states = []
    at_rest = ~model.topology.dynamic
    assert at_rest.any()
    for rounds, threads in ((False, 1), (True, 1), (True, 2)):
        monkeypatch.setattr(NativeBackend, "colors_side_by_side", rounds)
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
