"""Sites: named frames on bodies, and their signals on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform, rotations
from tests.message_snapshot import naming

from .helpers import FRAME_A, NO_GRAVITY, PLACE, ball_body, both_backends, simulate

I3 = (0.02, 0.03, 0.04)


def spinning(**site: object) -> ModelBuilder:
    """A free body off its center of mass that flies and turns, with a site."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    body = ball_body(
        b, com=(0.1, -0.2, 0.3), xform=PLACE, label="x", linear_velocity=(1, 2, -1), angular_velocity=(0.5, -1.0, 2.0)
    )
    b.add_site(body, label="tip", **site)  # type: ignore[arg-type]
    return b


@both_backends
def test_signals_are_those_of_a_point_fixed_in_the_body(backend: str) -> None:
    sim = simulate(spinning(xform=FRAME_A), backend=backend, dt=1e-3)
    sim.step(7)
    origin, q = sim.read("body.x.position")[0], sim.read("body.x.orientation")[0]
    r = rotations.matrix_from_quaternion(q)
    np.testing.assert_allclose(sim.read("site.tip.position")[0], origin + r @ FRAME_A.position, rtol=0, atol=1e-14)
    turned = rotations.quaternion_product(q, FRAME_A.rotation)
    np.testing.assert_allclose(sim.read("site.tip.orientation")[0], turned, rtol=0, atol=1e-15)
    spin = sim.read("body.x.angular_velocity")[0]
    arm = sim.read("site.tip.position")[0] - sim.read("body.x.center_of_mass")[0]
    wanted = sim.read("body.x.linear_velocity")[0] + np.cross(spin, arm)
    np.testing.assert_allclose(sim.read("site.tip.linear_velocity")[0], wanted, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(sim.read("site.tip.angular_velocity")[0], spin)
    assert not sim.signals()["site.tip.position"].forward and sim.signals()["site.tip.position"].device


@both_backends
def test_the_velocity_is_the_rate_of_the_position(backend: str) -> None:
    sim = simulate(spinning(xform=FRAME_A), backend=backend, dt=1e-4)
    positions, velocities = [], []
    for _ in range(3):
        sim.step(1)
        positions.append(sim.read("site.tip.position")[0])
        velocities.append(sim.read("site.tip.linear_velocity")[0])
    np.testing.assert_allclose(velocities[1], (positions[2] - positions[0]) / 2e-4, rtol=0, atol=1e-7)


def test_a_site_in_the_world_stands() -> None:
    b = spinning()
    b.add_site(-1, PLACE, label="mark")
    sim = simulate(b)
    sim.step(3)
    np.testing.assert_allclose(sim.read("site.mark.position")[0], PLACE.position, atol=1e-16)
    np.testing.assert_allclose(sim.read("site.mark.orientation")[0], PLACE.rotation, atol=1e-16)
    for name in ("linear_velocity", "angular_velocity"):
        assert not sim.read(f"site.mark.{name}").any()


def test_a_place_in_the_world_is_the_same_site() -> None:
    at = Transform((0.4, 0.5, 0.6), (0.1, 0.2, 0.3, 0.9))
    sim = simulate(spinning(at=at))
    np.testing.assert_allclose(sim.read("site.tip.position")[0], at.position, atol=1e-15)
    np.testing.assert_allclose(sim.read("site.tip.orientation")[0], at.rotation, atol=1e-15)


def test_sites_change_no_bits() -> None:
    with_sites, without = spinning(), spinning()
    without.sites.clear()
    sims = [Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-3)) for b in (with_sites, without)]
    for sim in sims:
        sim.step(20)
    for name, array in sims[0].state.arrays.items():
        np.testing.assert_array_equal(array, sims[1].state.arrays[name], err_msg=name)


def test_copies_of_a_builder_keep_their_sites() -> None:
    part = spinning(xform=FRAME_A)
    part.add_site(-1, FRAME_A, label="mark")
    b = ModelBuilder()
    base = b.add_body(1.0, I3, xform=PLACE, label="base", kinematic=True)
    b.add_builder(part, PLACE, "a_", parent=base)
    b.add_builder(part, label_prefix="b_")
    model = b.finalize()
    assert model.labels("site") == ["a_tip", "a_mark", "b_tip", "b_mark"]
    assert [s.body for s in model.sites] == [1, 0, 2, -1]
    assert model.sites[1].xform == PLACE * FRAME_A and model.sites[3].xform == FRAME_A
    assert model.index("site", "b_tip") == 2
    many = ModelBuilder()
    many.replicate(b, 3)
    sim = Simulation(many.finalize(), backend="numpy")
    assert sim.read("site.a_tip.position").shape == (3, 3)
    wanted = sim.read("body.base.position") + (PLACE.rotate((PLACE * FRAME_A).position))
    np.testing.assert_allclose(sim.read("site.a_mark.position"), wanted, atol=1e-14)


def test_errors_name_the_site_and_the_fix() -> None:
    b = spinning()
    with pytest.raises(ModelError, match=naming("site 'tip'")):
        b.add_site(0, label="tip")
    with pytest.raises(ModelError, match=naming("site 'far' body 3 1 add_body")):
        b.add_site(3, label="far")
    with pytest.raises(ModelError, match=naming("site 'two'")):
        b.add_site(0, FRAME_A, label="two", at=(0, 0, 1))
    with pytest.raises(ModelError, match=naming("site 'word'")):
        b.add_site(0, (0, 0, 1), label="word")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=naming("ModelBuilder.replicate")):
        copy = ModelBuilder()
        copy.add_site(-1)
        copy.replicate(b, 2)
    assert b.finalize().labels("site") == ["tip"]
