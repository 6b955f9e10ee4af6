"""Zero-moment point, support polygon and margin against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform, UnknownNameError, rotations
from gpusim.robotics import Support, Tree, support, zmp, zmp_of_motion
from gpusim.robotics.balance import _hull
from tests.message_snapshot import naming
from tests.unit.helpers import both_backends

from .models import floating_chain

FEET = ["left", "right"]
G = 9.81


def table(
    slope: float = 0.0, com: tuple[float, float] = (0.0, 0.0), worlds: int = 1, backend: str = "auto"
) -> Simulation:
    """A body of 10 kg, 1 m above two box feet that are 30 cm apart."""
    b = ModelBuilder(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    b.add_shape_plane(-1)
    body = b.add_body(10.0, (1, 1, 1), com=(*com, 0.0), xform=Transform((0, 0, 1.0)), label="trunk")
    for label, y in (("left", 0.15), ("right", -0.15)):
        foot = b.add_body(1.0, (0.01, 0.01, 0.01), xform=Transform((0.0, y, 0.05)), label=label)
        b.add_shape_box(foot, (0.1, 0.05, 0.05), label=label)
        b.add_joint_fixed(body, foot, at=(0.0, y, 0.05))
    sim = Simulation(b.finalize(), worlds, backend, config=SolverConfig(dt=1e-3))
    sim.step(300)
    return sim


@pytest.mark.nightly
@both_backends
def test_at_rest_it_lies_below_the_center_of_mass(backend):
    sim = table(com=(0.05, -0.07), backend=backend)
    point, margin = zmp(sim, FEET)
    com = Tree(sim.model).com(Tree(sim.model).posture(sim))
    np.testing.assert_allclose(point[0], [com[0, 0], com[0, 1], 0.0], atol=2e-4)
    assert margin[0] == pytest.approx(0.1 - com[0, 0], abs=2e-4)


def test_the_polygon_is_the_hull_of_both_feet():
    found = support(table(), FEET)
    corners = found.polygon()
    assert found.count[0] == 4
    np.testing.assert_allclose(np.sort(corners[:, 0]), [-0.1, -0.1, 0.1, 0.1], atol=1e-4)
    np.testing.assert_allclose(np.sort(corners[:, 1]), [-0.2, -0.2, 0.2, 0.2], atol=1e-4)
    np.testing.assert_allclose(corners[:, 2], 0.0, atol=1e-4)
    area = 0.5 * np.sum(np.cross(corners, np.roll(corners, -1, axis=0))[:, 2])
    assert area == pytest.approx(0.08, abs=1e-4)
    one = support(table(), ["left"]).polygon()
    assert one[:, 1].min() == pytest.approx(0.1, abs=1e-4)


def test_on_a_slope_it_lies_where_gravity_points():
    slope = 0.06
    sim = table(slope)
    tree = Tree(sim.model)
    com = tree.com(tree.posture(sim))[0]
    down = np.array([np.sin(slope), 0, -np.cos(slope)])
    point, margin = zmp(sim, FEET)
    np.testing.assert_allclose(np.cross(point[0] - com, down), 0.0, atol=5e-4)
    # where that line meets the floor, seen along gravity
    foot = com - down * com[2] / down[2]
    assert margin[0] == pytest.approx((0.1 - foot[0]) * np.cos(slope), abs=5e-4)
    upright, _ = zmp(sim, FEET, up=(0, 0, 1))
    assert upright[0, 0] == pytest.approx(foot[0], abs=5e-4)


def test_a_push_shifts_it_by_its_moment():
    """dx = F h/(m g), with the height h of the force."""
    sim = table(worlds=3)
    before = zmp(sim, FEET).point
    sim.write("body.trunk.applied_force", np.array([[0, 0, 0], [4.0, 0, 0], [0, -5.0, 0]]))
    sim.step(100)
    shift = zmp(sim, FEET).point - before
    unit = 1.0 / (12.0 * G)  # the force acts at 1 m
    np.testing.assert_allclose(shift[:, :2], [[0, 0], [4.0 * unit, 0], [0, -5.0 * unit]], atol=3e-4)


def test_in_the_air_there_is_none():
    sim = table(worlds=2)
    sim.write("body.trunk.position", [0, 0, 3.0], worlds=1)
    for foot in FEET:
        sim.write(f"body.{foot}.position", [0, 0.15 if foot == "left" else -0.15, 2.05], worlds=1)
    point, margin = zmp(sim, FEET)
    assert np.isfinite(point[0]).all() and np.isnan(point[1]).all() and np.isnan(margin[1])
    assert support(sim, FEET).count.tolist() == [4, 0]
    with pytest.raises(UnknownNameError, match=naming("'lift' 'left'")):
        zmp(sim, ["lift"])


def flat(corners) -> Support:
    hull = _hull(np.array(corners, float))
    return Support(hull[None], np.array([len(hull)]), np.eye(3)[None], np.zeros(1))


def test_margins_of_polygons_lines_and_points():
    square = flat([(0, 0), (2, 0), (2, 2), (0, 2), (1, 1), (1, 0), (2, 2)])
    assert square.count[0] == 4
    for point, wanted in (((1, 1, 5), 1.0), ((0.5, 1, 0), 0.5), ((2, 1, 0), 0.0), ((3, 1, 0), -1.0), ((5, 6, 0), -5.0)):
        assert square.margin(point)[0] == pytest.approx(wanted, abs=1e-15)
    line = flat([(0, 0), (1, 0), (0.5, 0)])
    assert line.count[0] == 2
    assert line.margin((0.5, 0.0, 0))[0] == 0.0 and line.margin((0.5, -0.2, 0))[0] == pytest.approx(-0.2)
    assert flat([(3, 4)]).margin((0, 0, 0))[0] == pytest.approx(-5.0)


def test_hulls_of_random_points_hold_them_all():
    rng = np.random.default_rng(0)
    for count in (3, 10, 200):
        points = rng.normal(size=(count, 2))
        polygon = flat(points)
        inside = [polygon.margin((*p, 0.0))[0] for p in points]
        assert min(inside) > -1e-12
        corners = polygon.corners[0]
        assert sum(abs(m) < 1e-12 for m in inside) == len(corners)
        assert set(map(tuple, corners)) <= set(map(tuple, points))


def test_a_motion_asks_for_its_zero_moment_point():
    """Cart-table model: p = x - z x''/(z'' + g)."""
    b = ModelBuilder()
    b.add_body(3.0, (0.2, 0.3, 0.4), xform=Transform((0.1, 0.2, 0.8)), label="mass")
    tree = Tree(b.finalize())
    q, v = tree.start, np.zeros(6)
    a = np.array([1.5, -0.7, 2.0, 0.0, 0.0, 0.0])
    p = zmp_of_motion(tree, q, v, a, height=0.1)[0]
    np.testing.assert_allclose(p, [0.1 - 0.7 * 1.5 / (2.0 + G), 0.2 + 0.7 * 0.7 / (2.0 + G), 0.1], atol=1e-14)
    turning = zmp_of_motion(tree, q, v, [0, 0, 0, 0.5, -0.6, 9.0], height=0.1)[0]
    np.testing.assert_allclose(turning, [0.1 + 0.6 * 0.3 / (3.0 * G), 0.2 + 0.5 * 0.2 / (3.0 * G), 0.1], atol=1e-14)
    assert np.isnan(zmp_of_motion(tree, q, v, [0, 0, -12.0, 0, 0, 0])).all()


def test_the_wrench_from_outside_is_the_rate_of_momentum():
    tree = Tree(floating_chain(5).finalize(), "root")
    rng, h = np.random.default_rng(8), 1e-5
    q = tree.integrate(tree.start, rng.normal(size=tree.freedoms))
    v, a = rng.normal(size=(2, tree.freedoms))
    com, force, moment = tree.contact_wrench(q, v, a)
    sides = [tree.centroidal(tree.integrate(q, s * h * v), v + s * h * a) for s in (1.0, -1.0)]
    rate = ((sides[0] - sides[1]) / (2.0 * h))[0]
    weight = tree.inertias.mass.sum() * tree.inertias.gravity[0]
    np.testing.assert_allclose(force[0], rate[:3] - weight, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(moment[0], rate[3:], rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(com, tree.com(q), atol=1e-15)


def test_contacts_and_motion_agree():
    sim = table(com=(0.02, 0.03))
    tree = Tree(sim.model)
    q = tree.posture(sim)
    rest = zmp_of_motion(tree, q, np.zeros(tree.freedoms), np.zeros(tree.freedoms))
    np.testing.assert_allclose(zmp(sim, FEET).point[0, :2], rest[0, :2], atol=3e-4)
    r = rotations.matrix_from_quaternion(tree.pose(q, "trunk")[:, 3:])
    np.testing.assert_allclose(r, np.eye(3)[None], atol=1e-3)
