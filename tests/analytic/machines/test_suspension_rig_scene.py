from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusim import EnergyAudit, ModelBuilder, ModelError, Simulation
from gpusim import machines as m
from gpusim.scene import Scene, load_scene
from gpusim.scenes.mechanisms import suspension_rig
from tests.analytic.machines.rig_motion import heaves, shakes
from tests.message_snapshot import naming

pytestmark = pytest.mark.native


def record(scene: Scene, dt: float) -> dict[str, np.ndarray]:
    sim = Simulation(scene.builder.finalize(), backend="native", config=replace(scene.config, dt=dt))
    found: dict[str, list[np.ndarray]] = {name: [] for name in scene.signals()}
    times = []
    assert scene.schedule is not None
    for step in range(round(scene.duration / dt) + 1):
        if step % round(1e-2 / dt) == 0:
            times.append(sim.time)
            for name, values in found.items():
                values.append(np.array(sim.read(name)))
        scene.schedule(sim, sim.time)
        sim.step()
    assert sim.health().all(), sim.health_report()
    return {"time": np.array(times)} | {name: np.stack(values) for name, values in found.items()}


def rest_of(
    kind: str = "double_wishbone", spring: str = "coil", steered: bool = False, load: float = 2500.0,
    payload: float = 1.02, stiffness: float = 30e3, damping: float = 2500.0,
) -> m.Static:  # fmt: skip
    given = suspension_rig.parts(kind, spring, load, stiffness, damping, (-0.08, 0.07))
    b = ModelBuilder(gravity=(0.0, 0.0, -suspension_rig.GRAVITY))
    return suspension_rig.ADD[kind](b, -1, steered, given).static(payload * load)


@pytest.mark.nightly
@pytest.mark.parametrize("spring", ["coil", "torsion"])
@pytest.mark.parametrize("steered", [False, True])
@pytest.mark.parametrize("kind", suspension_rig.ADD)
def test_every_suspension_passes_the_checks(kind: str, spring: str, steered: bool) -> None:
    if (kind, spring) == ("sliding_pillar", "torsion"):
        with pytest.raises(ModelError, match=naming("'spring' 'torsion'")):
            load_scene("suspension_rig", kind=kind, spring=spring, steered=steered)
        return
    scene = load_scene("suspension_rig", kind=kind, spring=spring, steered=steered)
    run = record(scene, 5e-3)
    assert not [check.statement for check in scene.checks if not check.passes(run)]
    rest = rest_of(kind, spring, steered)
    assert heaves(run, rest) and shakes(run, rest)


@pytest.mark.nightly
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("kind", suspension_rig.ADD)
def test_travel_ends_at_its_limits_at_other_steps(kind: str, dt: float) -> None:
    scene = load_scene("suspension_rig", kind=kind, travel_up=0.05, travel_down=0.06)
    scene.duration = 4.5
    run = record(scene, dt)
    travel = suspension_rig.travel_of(run)[run["time"] > 3.0]
    assert travel.max() == pytest.approx(0.05, abs=1e-5)
    assert travel.min() == pytest.approx(-0.06, abs=1e-5)
    assert run["sim.joint_drift"].max() < 1e-6


HARD = {"load": 6000.0, "stiffness": 80e3, "damping": 6000.0, "payload": 1.1}


@pytest.mark.nightly
@pytest.mark.parametrize("change", [HARD, {"payload": 1.15}, {"damping": 300.0, "kind": "sliding_pillar"}])
@pytest.mark.parametrize("dt", [2e-3, 1e-2])
def test_it_moves_as_the_linear_model_of_other_parameters(change: dict[str, Any], dt: float) -> None:
    run, rest = record(load_scene("suspension_rig", **change), dt), rest_of(**change)
    assert heaves(run, rest) and shakes(run, rest)
    other = rest_of(**change | {"damping": 1.5 * change.get("damping", 2500.0) + 1500.0})
    assert not (heaves(run, other) and shakes(run, other))


@pytest.mark.nightly
def test_its_energy_account_closes() -> None:
    scene = load_scene("suspension_rig")
    sim = Simulation(scene.builder.finalize(), backend="native", config=replace(scene.config, dt=5e-3))
    audit = EnergyAudit(sim)
    assert scene.schedule is not None
    for _ in range(round(7.0 / 5e-3)):
        scene.schedule(sim, sim.time)
        audit.step()
    balance = audit.balance()
    assert balance.works["applied"][0] > 1000.0 and balance.works["spring.susp_coil"][0] < -100.0
    assert abs(float(balance.relative_error[0])) < 2e-3 < 1e-2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"load": 10.0}, "'load' 500 10.0"),
        ({"payload": 3.0}, "'payload' 0.5 2"),
        ({"stiffness": 0.0}, "'stiffness' 0"),
        ({"travel_up": 0.6}, "travel 0.6"),
        ({"kind": "rigid"}, "'swing_axle'"),
    ],
)
def test_bad_parameters_are_reported(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=naming(message)):
        load_scene("suspension_rig", **change)
