from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.native.backend import NativeBackend
from gpusim.scene import load_scene
from gpusim.typing import Array

from .bits import differing
from .harness import WORLDS, Walk
from .test_stages import check, difference, scale

pytestmark = pytest.mark.native

STEPS = {"alone": 1.0125e-3, "ball": 1.0125e-3, "wall": 0.91e-3}
AMPLIFIED = 1e-5


def four_bar(name: str) -> Model:
    b: ModelBuilder = load_scene("four_bar").builder
    if name == "ball":
        b.add_shape_plane(xform=Transform((0.0, 0.0, -3.0)))
        b.add_shape_sphere(b.add_body(1.0, (0.1,) * 3, xform=Transform((0.0, 0.0, -2.9))), radius=0.1)
    if name == "wall":
        smooth = Material(friction=0.0)
        b.add_shape_sphere(0, radius=0.1, xform=Transform((0.0, 0.0, 1.0)), material=smooth)
        face = Transform.from_axis_angle((1.1 + 1e-5, 0.0, 0.0), (0.0, 1.0, 0.0), -0.5 * np.pi)
        b.add_shape_plane(xform=face, material=smooth)
    return b.finalize()


def simulate(model: Model, name: str, backend: str, worlds: int = WORLDS, **options: Any) -> Simulation:
    config = SolverConfig(dt=STEPS[name])
    sim = Simulation(model, worlds, backend=backend, config=config, **options)  # type: ignore[arg-type]
    gravity = np.zeros((worlds, 3))
    gravity[:, 2] = -9.81 - 0.01 * np.arange(worlds)
    sim.write("sim.gravity", gravity)
    return sim


def damping(sim: Simulation) -> Array:
    backend = sim.backend
    if isinstance(backend, NativeBackend):
        return np.array(backend.slab_array("factor_damping"))
    return np.array(backend.work.factor_damping)  # type: ignore[attr-defined]


def before_damping(model: Model, name: str) -> tuple[Simulation, int]:
    alone = simulate(model, name, "native", 1, launch="fused", threads=1)
    steps = 0
    while not damping(alone).any():
        alone.step()
        steps += 1
        assert steps < 1300
    sim = simulate(model, name, "native", launch="staged", threads=1)
    sim.step(steps - 1)
    return sim, steps


@pytest.mark.nightly
@pytest.mark.parametrize("name", STEPS)
def test_every_backend_damps(name: str) -> None:
    model = four_bar(name)
    staged, steps = before_damping(model, name)
    reference = simulate(model, name, "numpy")
    reference.backend.memory.state.restore(staged.state, np.arange(WORLDS))
    reference.invalidate()
    for sim in (staged, reference):
        sim.step()
    found, expected = damping(staged), damping(reference)
    assert found[0] > 0.0
    assert not found.all()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    mine, theirs = staged.state.variables(), reference.state.variables()
    for variable in ("position", "orientation", "linear_velocity", "angular_momentum"):
        np.testing.assert_allclose(mine[variable], theirs[variable], atol=AMPLIFIED, err_msg=variable)
    for worlds in (1, WORLDS):
        fused = simulate(model, name, "native", worlds, launch="fused", threads=1)
        fused.step(steps)
        order = np.arange(worlds)
        assert differing(fused.state.variables(), mine, order, order) == []


def test_every_stage_where_a_world_is_damped() -> None:
    model = four_bar("alone")
    native, _ = before_damping(model, "alone")
    reference = simulate(model, "alone", "numpy")
    reference.backend.memory.state.restore(native.state, np.arange(WORLDS))
    reference.invalidate()
    walk = Walk(reference, native, STEPS["alone"])
    list(walk.start())
    outcomes = [o for stage in walk.stages() for o in walk.stage(stage) if o.expected.size]
    far = [o for o in outcomes if not np.all(difference(o) <= AMPLIFIED * scale(o))]
    faults = [check(outcome, walk, "float64") for outcome in far]
    assert damping(reference)[0] > 0.0
    assert not any(faults), "\n".join(f for f in faults if f)
