from __future__ import annotations

import pytest

import gpusim
from gpusim.scene import list_scenes, load_scene

pytestmark = pytest.mark.nightly

DURATION = 0.3
STEPS = (2e-3, 5e-3, 1e-2)
LARGE = ("excavator", "rtk_m")
#: Of what shapes overlap by, m: boxes of the pile land with 2 m/s, cards are 1 mm thin, tires and settling stones are
#: soft.
DEEPEST = {"pile": 1e-2, "krt100m": 1e-2, "excavator": 1e-2}
DEEP = 1.2e-3
#: Gaps of joints, m, by scene and step: the pins of tracks want steps of 5 ms or less.
WIDEST = {("excavator", 1e-2): 1.5e-2}
WIDE = 5e-3
CASES = [(name, dt) for name in sorted(list_scenes()) for dt in (STEPS[::2] if name in LARGE else STEPS)]


@pytest.mark.parametrize(("name", "dt"), CASES)
def test_a_scene_stays_whole(name: str, dt: float) -> None:
    scene = load_scene(name)
    touching = bool(scene.builder.shapes)
    sim = gpusim.Simulation(scene.builder.finalize(), config=gpusim.SolverConfig(dt=dt))
    kinetic, energy = [], []
    for _ in range(round(DURATION / dt / (2 if name in LARGE else 1))):
        kinetic.append(float(sim.read("sim.kinetic_energy")[0]))
        energy.append(kinetic[-1] + float(sim.read("sim.potential_energy")[0]))
        if scene.schedule:
            scene.schedule(sim, sim.time)
        sim.step()
        assert sim.read("sim.joint_drift")[0] < WIDEST.get((name, dt), WIDE)
        if touching:
            assert sim.read("sim.penetration")[0] < DEEPEST.get(name, DEEP)
    assert sim.health().all(), sim.health_report()
    assert not touching or sim.read("sim.contacts")[0] > 0
    if scene.schedule is None:
        assert max(energy) - energy[0] < (1e-3 if touching else 0.1) * max(kinetic) + 1e-4
