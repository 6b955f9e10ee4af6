from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.scene import load_scene
from gpusim.scenes.machines.rtk_m import ARM_OUT, LOADED, tilt

pytestmark = pytest.mark.nightly

#: Load, N; middle lines of the tracks and feet on the side that it reaches to, m, and half of their widths.
LOAD = 4000.0
EDGES = {False: 0.55 + 0.12, True: 1.05 + 0.15}
#: When the runs begin, s: with outriggers before they go down, else just before the arm rises.
BEGIN = {False: 7.9, True: 6.3}
STRIDE = 5


def moments(sim: gpusim.Simulation, edge: float) -> tuple[float, float]:
    weights = 0.0
    for body in sim.model.bodies:
        center = sim.read(f"body.{body.label}.center_of_mass")[0]
        weights += 9.81 * float(sim.read(f"body.{body.label}.mass")[0]) * (edge - center[1])
    place = gpusim.Transform(sim.read("body.bucket.position")[0], sim.read("body.bucket.orientation")[0])
    return weights, LOAD * float(place.apply((0.3, 0.0, 0.05))[1] - edge)


@pytest.mark.native
@pytest.mark.nightly
@pytest.mark.usefixtures("long_run")
@pytest.mark.parametrize("outriggers", [False, True])
def test_tips_without_outriggers_and_stands_with_them(outriggers: bool) -> None:
    scene = load_scene("rtk_m", step=0.0, load=LOAD, outriggers=outriggers)
    assert scene.schedule is not None
    sim = gpusim.Simulation(scene.builder.finalize(), backend="native", config=scene.config)
    begin, weighed, tilts, gaps = BEGIN[outriggers], False, [], []
    while begin + sim.time < LOADED + 1.0:
        scene.schedule(sim, begin + sim.time)
        sim.step()
        if begin + sim.time > ARM_OUT and not weighed:
            weighed = True
            righting, tipping = moments(sim, EDGES[outriggers])
            assert (tipping < 0.8 * righting) if outriggers else (tipping > 1.2 * righting)
        if weighed:
            tilts.append(float(tilt(sim.read("body.chassis.orientation", numpy=True)[0])))
        if round(sim.time / scene.config.dt) % STRIDE == 1:
            gaps.append(float(sim.read("sim.joint_drift")[0]))
    assert len(gaps) > 300 and max(gaps) < 1e-4 and sim.health()[0]
    assert (np.max(tilts) < np.radians(1.0)) if outriggers else (tilts[-1] > np.radians(10.0))
