from __future__ import annotations

import warnings

import numpy as np
import pytest

import gpusim
from gpusim.scene import load_scene
from tests.message_snapshot import naming

SCENES = {"slider_crank": {}, "pile": {"count": 4}, "hydraulic_lift": {}}


def run(scene: str, worlds: int) -> gpusim.Simulation:
    loaded = load_scene(scene, **SCENES[scene])
    sim = gpusim.Simulation(loaded.builder.finalize(), worlds, backend="numpy", config=loaded.config)
    sim.step(3)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("scene", ["slider_crank", "pile", "hydraulic_lift"])
def test_any_array_may_be_poisoned(scene: str, value: float) -> None:
    sim, alone = run(scene, 2), run(scene, 1)
    kept = sim.state.copy()
    alone.step(2)
    state = sim.state
    arrays = [*state.arrays.items(), *((n, a) for group in state.groups for n, a in group.state.items())]
    for name, array in arrays:
        if array.dtype.kind != "f" or not array[1].size or name in ("time", "override"):
            continue
        sim.reset()
        sim.state.restore(kept)
        sim.invalidate()
        array = sim.state.arrays.get(name, array)
        array[1] = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            sim.step(2)
        assert sim.health()[0], name
        assert sim.read("sim.time")[0] == alone.read("sim.time")[0], name
        for body in sim.model.labels("body")[:3]:
            signal = f"body.{body}.position"
            assert np.array_equal(sim.read(signal)[0], alone.read(signal)[0]), name


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_spinning_pendulum_under_tension(value: float) -> None:
    b = gpusim.ModelBuilder()
    arm = b.add_body(1.0, (0.1, 0.1, 0.1), label="arm")
    b.add_joint_revolute(-1, arm, child_xform=gpusim.Transform((-1, 0, 0)), axis=(0, 0, 1), label="hinge")
    end = b.add_body(1.0, (0.001, 0.001, 0.001), xform=gpusim.Transform((2, 0, 0)), label="end")
    frames = {"parent_xform": gpusim.Transform((1, 0, 0)), "child_xform": gpusim.Transform((-0.5, 0, 0))}
    b.add_joint_ball(arm, end, **frames, label="ball")
    sim = gpusim.Simulation(b.finalize(), 2, backend="numpy", config=gpusim.SolverConfig(dt=5e-3))
    sim.write("joint.hinge.velocity", 60.0)
    sim.step(3)
    sim.state.arrays["tension_stiffness"][1] = value
    sim.invalidate()
    with pytest.warns(UserWarning, match=naming("1 tension_stiffness")):
        sim.read("sim.kinetic_energy"), sim.step(2)
    assert list(sim.health()) == [True, False] and sim.read("sim.time")[0] == pytest.approx(0.025)
