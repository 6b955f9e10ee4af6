"""Boxes slide over seams between other boxes as over one floor."""

from __future__ import annotations

import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform


@pytest.mark.native
@pytest.mark.parametrize(("speed", "dt"), [(2.0, 1 / 60), (2.0, 1e-3), (0.05, 1e-3)])
def test_a_box_slides_over_tiles(speed: float, dt: float) -> None:
    """Without friction nothing slows it, though it has sunk into the tiles by some 1e-5 m."""
    b = ModelBuilder()
    smooth = Material(friction=0.0)
    for k in range(6):
        tile = Transform((0.2 * k, 0.0, -0.05))
        b.add_shape_box(-1, half_extents=(0.1, 0.5, 0.05), xform=tile, material=smooth)
    box = b.add_body(xform=Transform((0.0, 0.0, 0.05)), linear_velocity=(speed, 0.0, 0.0), label="box")
    b.add_shape_box(box, half_extents=(0.05, 0.05, 0.05), material=smooth)
    sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt, substeps=4 if dt > 0.01 else 1))
    sim.step(round(min(0.8 / speed, 4.0) / dt))
    velocity = sim.read("body.box.linear_velocity")[0]
    assert velocity[0] == pytest.approx(speed, rel=1e-6)
    assert abs(velocity[2]) < 1e-3
    assert abs(sim.read("body.box.position")[0, 2] - 0.05) < 1e-3
