from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.contact.material import combine
from tests.message_snapshot import naming

G = 9.81
RULES: list[tuple[dict[str, Any], dict[str, Any], float]] = [
    ({}, {}, 0.4),
    ({}, {"combine": "min"}, 0.2),
    ({"combine": "multiply"}, {"combine": "min"}, 0.16),
    ({"combine": "max"}, {"combine": "multiply"}, 0.8),
    ({"priority": 1}, {"combine": "max"}, 0.2),
    ({"priority": -1}, {"combine": "min"}, 0.8),
    ({"priority": 2, "combine": "multiply"}, {"priority": 3, "combine": "multiply"}, 0.8),
]


def sliding_box(ground: Material, box: Material, pair: Material | None = None) -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1, material=ground, label="ground")
    body = b.add_body(xform=Transform((0, 0, 0.1)), linear_velocity=(5.0, 0, 0), label="box")
    b.add_shape_box(body, (0.1, 0.1, 0.1), material=box, label="skin")
    if pair is not None:
        b.add_collision_pair(0, 1, pair)
    return b


def simulated(b: ModelBuilder, backend: str = "native", worlds: int = 1) -> Simulation:
    return Simulation(b.finalize(), worlds, backend=backend, config=SolverConfig(dt=5e-3))


def rubbing(sim: Simulation) -> Any:
    sim.step(20)
    return (5.0 - sim.read("body.box.linear_velocity")[:, 0]) / (20 * 5e-3 * G)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize(("ground", "box", "friction"), RULES)
def test_frictions_of_a_pair_follow_rule_and_priority(backend, ground, box, friction) -> None:
    a, b = Material(friction=0.2, **ground), Material(friction=0.8, **box)
    assert combine(a, b) == combine(b, a)
    assert combine(a, b).friction == pytest.approx(friction)
    assert rubbing(simulated(sliding_box(a, b), backend))[0] == pytest.approx(friction, rel=0.02)


ARMS: list[tuple[dict[str, Any], dict[str, Any], float]] = [
    ({}, {"rolling_friction": 0.01}, 0.01),
    ({"rolling_friction": 0.04}, {"rolling_friction": 0.01}, 0.02),
    ({"rolling_friction": 0.04, "combine": "max"}, {"rolling_friction": 0.01}, 0.04),
    ({"combine": "min"}, {"rolling_friction": 0.01}, 0.01),
    ({"rolling_friction": 0.04, "combine": "multiply"}, {"rolling_friction": 0.01}, 0.02),
    ({"priority": 1}, {"rolling_friction": 0.01}, 0.0),
]


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize(("ground", "stone", "arm"), ARMS)
def test_a_default_ground_leaves_rolling_friction_to_the_stone(backend, ground, stone, arm) -> None:
    a, s = Material(friction=0.8, **ground), Material(friction=0.8, **stone)
    assert combine(a, s).rolling_friction == combine(s, a).rolling_friction == pytest.approx(arm)
    b = ModelBuilder()
    b.add_shape_plane(-1, material=a)
    body = b.add_body(xform=Transform((0, 0, 0.1)), linear_velocity=(2, 0, 0), angular_velocity=(0, 20, 0), label="s")
    b.add_shape_sphere(body, 0.1, material=s)
    sim = simulated(b, backend)
    sim.step(40)
    slower = 2.0 - sim.read("body.s.linear_velocity")[0, 0]
    assert slower == pytest.approx(0.2 * G * arm / 0.1 / 1.4, rel=0.01, abs=1e-5)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_spinning_friction_of_one_side_holds(backend) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    body = b.add_body(1.0, (0.004,) * 3, xform=Transform((0, 0, 0.1)), angular_velocity=(0, 0, 8.0), label="ball")
    b.add_shape_sphere(body, 0.1, material=Material(spinning_friction=2e-3))
    sim = simulated(b, backend)
    sim.step(20)
    slower = 8.0 - sim.read("body.ball.angular_velocity")[0, 2]
    assert slower == pytest.approx(0.1 * 2e-3 * G / 0.004, rel=1e-2)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_materials_of_pairs_may_differ_per_world(backend) -> None:
    b = sliding_box(Material(friction=0.9), Material(friction=0.9, combine="max"), Material(friction=0.3))
    sim = simulated(b, backend, 3)
    sim.write("pair.ground.skin.friction", 0.6, worlds=1)
    sim.write("shape.skin.friction", 0.1)
    np.testing.assert_allclose(rubbing(sim), (0.3, 0.6, 0.3), rtol=0.02)
    np.testing.assert_allclose(sim.read("pair.ground.skin.friction"), (0.3, 0.6, 0.3))
    sim.write("pair.skin.ground.friction", 0.4, worlds=2)
    for name in ("pair.ground.skin.friction", "pair.skin.ground.friction"):
        np.testing.assert_allclose(sim.read(name), (0.3, 0.6, 0.4))
    assert "pair.skin.ground.friction" not in sim.signals()
    with pytest.raises(ModelError, match=naming("shape 'ground' 'skin' friction")):
        sim.write("pair.ground.skin.friction", -0.1)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_pair_alone_may_bounce(backend) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    ball = b.add_body(xform=Transform((0, 0, 0.11)), linear_velocity=(0, 0, -1.0), label="ball")
    b.add_collision_pair(0, b.add_shape_sphere(ball, 0.1), Material(restitution=1.0))
    sim = simulated(b, backend)
    sim.step(4)
    assert sim.read("body.ball.linear_velocity")[0, 2] > 0.9


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"combine": "average"}, "combine 'average'"),
        ({"priority": 0.5}, "priority 0.5"),
    ],
)
def test_bad_rules(given, words) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        Material(**given)
