"""What a GPU's block does, on the CPU: items of a phase in another order, and by threads that meet at barriers.

A missing barrier, or two items of one phase that touch the same number, would show as other bits.
"""

from __future__ import annotations

import dataclasses

import pytest

from gpusim import Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends import native_backend, why_not
from gpusim.scene import load_scene

pytestmark = pytest.mark.skipif(bool(why_not("native")), reason=f"no native backend: {why_not('native')}")
SCENES = ("hydraulic_lift", "slider_crank", "dc_motor_rig", "flyball")
# Number of threads and defines of the build.
TEAMS = {"plain": ({}, 1), "reversed": ({"GPUSIM_REVERSED": "1"}, 1), "team": ({"GPUSIM_TEAM": "1"}, 3)}


def run(model: Model, team: str, monkeypatch: pytest.MonkeyPatch, steps: int, **config: object) -> dict[str, bytes]:
    """State after some steps of a build with the team's defines."""
    defines, threads = TEAMS[team]
    plain = native_backend.model_variant

    def with_defines(*args: object) -> object:
        variant = plain(*args)  # type: ignore[arg-type]
        return dataclasses.replace(variant, defines=variant.defines | defines)

    monkeypatch.setattr(native_backend, "model_variant", with_defines)
    sim = Simulation(
        model, backend="native", threads=threads, launch="fused", config=SolverConfig(dt=1e-3, **config)  # type: ignore[arg-type]
    )
    # What a kernel reads it must have written: in shared memory anything may lie there before.
    sim.backend._slab[:] = 0xFF  # type: ignore[union-attr]
    monkeypatch.undo()
    for command in sim.control:
        sim.control[command] = 0.6
    sim.step(steps)
    assert sim.health().all()
    return {name: array.tobytes() for name, array in sim.state.variables().items()}


@pytest.mark.parametrize("scheme", ["second_order", "papers"])
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("scene", SCENES)
def test_scenes(scene: str, solver: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stage of both solvers and schemes."""
    model = load_scene(scene).builder.finalize()
    ends = [run(model, team, monkeypatch, 15, joint_solver=solver, scheme=scheme) for team in TEAMS]
    assert ends[0] == ends[1], "the order of items matters"
    assert ends[0] == ends[2], "threads of a block step on each other"


def star(arms: int) -> Model:
    """A hub with many arms, so that few colors leave an overflow."""
    b = ModelBuilder()
    hub = b.add_body(mass=5.0, inertia=(1.0, 1.0, 1.0), label="hub")
    for k in range(arms):
        arm = b.add_body(mass=0.1, inertia=(0.01, 0.01, 0.01), xform=Transform((1.0, 0.1 * k, 0.0)), label=f"arm{k}")
        pins = Transform((0.5, 0.1 * k, 0.0)), Transform((-0.5, 0.0, 0.0))
        b.add_joint_revolute(
            hub, arm, *pins, axis=(0.0, 1.0, 0.0), label=f"pin{k}", friction=0.01 * k, limit_lower=-0.1, limit_upper=0.2
        )
    return b.finalize()


@pytest.mark.parametrize("scheme", ["second_order", "papers"])
def test_overflow(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mass splitting sums over bodies."""
    with pytest.warns(UserWarning, match="max_colors"):
        ends = [
            run(star(9), team, monkeypatch, 15, joint_solver="colored", max_colors=3, scheme=scheme) for team in TEAMS
        ]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_sizes_as_constants(solver: str) -> None:
    """A build for the model's own sizes gives the same bits."""
    ends = []
    for specialize in (False, True):
        model = load_scene("slider_crank").builder.finalize()
        config = SolverConfig(dt=1e-3, joint_solver=solver)
        sim = Simulation(model, 3, "native", config=config, specialize=specialize)
        sim.step(20)
        ends.append({name: array.tobytes() for name, array in sim.state.variables().items()})
    assert ends[0] == ends[1]
