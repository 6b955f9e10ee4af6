"""Every scene runs at 2, 5 and 10 ms: no world fails, no joint comes apart."""

from __future__ import annotations

import pytest

import gpusim
from gpusim.scene import list_scenes, load_scene

DURATION = 0.3


@pytest.mark.parametrize("dt", [2e-3, 5e-3, 1e-2])
@pytest.mark.parametrize("name", sorted(list_scenes()))
def test_a_scene_stays_whole(name: str, dt: float) -> None:
    """Gaps stay below 5 mm (slender bodies turn far in 10 ms), and the run is healthy."""
    scene = load_scene(name)
    sim = gpusim.Simulation(scene.builder.finalize(), config=gpusim.SolverConfig(dt=dt))
    for _ in range(round(DURATION / dt)):
        if scene.schedule:
            scene.schedule(sim, sim.time)
        sim.step()
        assert sim.read("sim.joint_drift")[0] < 5e-3
    assert sim.health().all(), sim.health_report()
