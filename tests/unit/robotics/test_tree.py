from __future__ import annotations

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform, UnknownNameError, rotations
from gpusim.robotics import Tree
from tests.message_snapshot import naming
from tests.parity.machines import SEVERAL_AXES, random_machine
from tests.unit.helpers import FRAME_A, FRAME_B, both_backends, slider
from tests.unit.machine import machine

from .models import arm, floating_chain, four_bar


@pytest.mark.nightly
@both_backends
def test_postures_and_velocities_are_those_of_the_simulation(backend):
    for build in (machine, lambda: floating_chain(1)):
        sim = Simulation(build().finalize(), 2, backend=backend, config=SolverConfig(dt=2e-4))
        sim.write("joint.revolute.velocity" if "revolute" in sim.model.labels("joint") else "joint.hinge.velocity", 1.0)
        sim.step(100)
        tree = Tree(sim.model)
        q, v = tree.posture(sim), tree.velocity(sim)
        assert q.shape == (2, tree.size) and v.shape == (2, tree.freedoms) and np.abs(v).max() > 0.05
        for i, label in enumerate(tree.bodies):
            pose = tree.pose(q, label)
            np.testing.assert_allclose(pose[:, :3], sim.read(f"body.{label}.position"), atol=2e-7)
            rate = rotations.matvec(tree.jacobian(q, label, tree.inertias.com[i]), v)
            np.testing.assert_allclose(rate[:, :3], sim.read(f"body.{label}.linear_velocity"), atol=3e-5)
            np.testing.assert_allclose(rate[:, 3:], sim.read(f"body.{label}.angular_velocity"), atol=3e-5)
        for site in sim.model.labels("site"):
            np.testing.assert_allclose(tree.pose(q, site)[:, :3], sim.read(f"site.{site}.position"), atol=2e-7)
            turned, reported = tree.pose(q, site)[:, 3:], sim.read(f"site.{site}.orientation")
            np.testing.assert_allclose(np.abs(np.sum(turned * reported, axis=1)), 1.0, atol=1e-12)
        masses = tree.inertias.mass[0]
        centers = np.stack([sim.read(f"body.{b}.center_of_mass") for b in tree.bodies], axis=1)
        np.testing.assert_allclose(tree.com(q), masses @ centers / masses.sum(), atol=2e-7)
        sim.step(1)
        assert np.abs(tree.posture(sim) - q).max() > 1e-6


def test_the_start_is_the_posture_as_built():
    for seed in (*range(6), *SEVERAL_AXES):
        model = random_machine(seed, curved=False).finalize()
        tree = Tree(model)
        np.testing.assert_allclose(tree.start, tree.posture(Simulation(model, backend="numpy")), atol=1e-15)
        for label, pose in zip(tree.bodies, tree.pose(tree.start, tree.bodies)[0], strict=True):
            np.testing.assert_allclose(pose[:3], model.bodies[model.index("body", label)].xform.position, atol=1e-14)


def test_names_slices_and_limits():
    b = ModelBuilder()
    base = b.add_body(1.0, (0.1, 0.1, 0.1), label="base")
    for k, kind in enumerate(("revolute", "ball", "universal")):
        b.add_body(1.0, (0.1, 0.1, 0.1), label=f"link{k}")
        limits = {} if kind == "ball" else {"limit_lower": -0.5, "limit_upper": 0.7}
        getattr(b, f"add_joint_{kind}")(base + k, base + k + 1, label=kind, **limits)
    tree = Tree(b.finalize(), base="base")
    assert tree.bodies == ["base", "link0", "link1", "link2"]
    assert tree.names[:8] == ["base_x", "base_y", "base_z", "base_qx", "base_qy", "base_qz", "base_qw", "revolute"]
    assert tree.names[8:] == ["ball_qx", "ball_qy", "ball_qz", "ball_qw", "universal_0", "universal_1"]
    assert tree.rates == [
        "base_vx", "base_vy", "base_vz", "base_wx", "base_wy", "base_wz", "revolute", "ball_wx", "ball_wy", "ball_wz",
        "universal_0", "universal_1",
    ]  # fmt: skip
    assert (tree.size, tree.freedoms) == (14, 12)
    assert tree.slice("ball") == slice(8, 12) and tree.rate_slice("ball") == slice(7, 10)
    assert tree.slice("base") == slice(0, 7) and tree.rate_slice("universal") == slice(10, 12)
    inf = np.inf
    np.testing.assert_array_equal(tree.lower, [-inf] * 6 + [-0.5] + [-inf] * 3 + [-0.5] * 2)
    np.testing.assert_array_equal(tree.upper, [inf] * 6 + [0.7] + [inf] * 3 + [0.7] * 2)


def test_a_base_chooses_what_hangs_together_with_it():
    b = ModelBuilder()
    b.add_builder(floating_chain(0), label_prefix="one_")
    b.add_builder(floating_chain(1), Transform((3, 0, 0)), label_prefix="two_")
    slider(b, label="apart")
    model = b.finalize()
    whole, one, two = Tree(model), Tree(model, "one_root"), Tree(model, "two_link6")
    assert set(one.bodies).isdisjoint(two.bodies) and len(one.bodies) == len(two.bodies) == 8
    assert set(whole.bodies) == {"apart", *one.bodies, *two.bodies}
    assert whole.freedoms == one.freedoms + two.freedoms + 1 and two.bodies[0] == "two_link6"
    assert Tree(model, "apart").names == ["apart"]


def test_another_base_reports_the_same_motion():
    model = floating_chain(2).finalize()
    rng = np.random.default_rng(4)
    there, back = Tree(model, "root"), Tree(model, "link6")
    q = there.integrate(there.start, 0.5 * rng.normal(size=there.freedoms))
    v = rng.normal(size=there.freedoms)
    # The other posture is that of the same poses, its velocities those of the same twists.
    other, rate = np.zeros((1, back.size)), np.zeros((1, back.freedoms))
    for node in back.forest.nodes:
        if node.joint < 0:
            other[:, :7] = there.pose(q, "link6")
            rate[:, :6] = rotations.matvec(there.jacobian(q, "link6"), v)
            continue
        label = model.joints[node.joint].label
        other[:, back.slice(label)] = q[:, there.slice(label)]
        rate[:, back.rate_slice(label)] = v[there.rate_slice(label)]
    for label in there.bodies:
        a, b = there.pose(q, label), back.pose(other, label)
        np.testing.assert_allclose(a[:, :3], b[:, :3], atol=1e-14)
        np.testing.assert_allclose(np.abs(np.sum(a[:, 3:] * b[:, 3:], axis=1)), 1.0, atol=1e-14)
    np.testing.assert_allclose(there.com(q), back.com(other), atol=1e-14)
    np.testing.assert_allclose(there.centroidal(q, v), back.centroidal(other, rate), atol=1e-12)
    energies = [x @ t.mass_matrix(p)[0] @ x for t, p, x in ((there, q, v), (back, other, rate[0]))]
    assert energies[0] == pytest.approx(energies[1], rel=1e-12)


def test_far_from_the_origin_digits_stay():
    near, far = floating_chain(3), ModelBuilder(gravity=(0.3, -0.2, -9.7))
    far.add_builder(near, Transform((1e5, -2e5, 1e4)))
    trees = [Tree(b.finalize(), "root") for b in (near, far)]
    v, a = np.random.default_rng(1).normal(size=(2, trees[0].freedoms))
    (m0, f0), (m1, f1) = ((t.mass_matrix(t.start), t.inverse_dynamics(t.start, v, a)) for t in trees)
    np.testing.assert_allclose(m1, m0, atol=1e-9)
    np.testing.assert_allclose(f1, f0, atol=1e-8)


@both_backends
def test_the_simulator_accelerates_as_the_tree_says(backend):
    """M a = -b, from rest and in motion."""
    b = arm(1)
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-6))
    tree = Tree(sim.model)
    v = 0.5 * np.random.default_rng(2).normal(size=tree.freedoms)
    for label in sim.model.labels("joint"):
        if (columns := tree.rate_slice(label)).stop > columns.start:
            sim.write(f"joint.{label}.velocity", v[columns] if columns.stop - columns.start > 1 else v[columns][0])
    q, v = tree.posture(sim), tree.velocity(sim)
    a = np.linalg.solve(tree.mass_matrix(q)[0], -tree.bias_forces(q, v)[0])
    sim.step(20)
    np.testing.assert_allclose((tree.velocity(sim) - v)[0] / 2e-5, a, rtol=1e-3, atol=1e-3 * np.abs(a).max())


@both_backends
def test_loops_and_forces_accelerate_as_the_simulator_does(backend):
    """M a + b = tau + J^T l and J a = -drift, with redundant rows."""
    b = four_bar()
    b.add_torque(0, (0.0, 1.0, 0.0), label="push")
    sim = Simulation(b.finalize(), backend=backend, config=SolverConfig(dt=1e-6))
    sim.control["push"] = 3.0
    tree = Tree(sim.model)
    q, v = tree.posture(sim), tree.velocity(sim)
    residual, rows, drift = tree.loops(q, v)
    assert tree.loop_rows == 5 and np.abs(residual).max() < 1e-12
    n = tree.freedoms
    system = np.block([[tree.mass_matrix(q)[0], rows[0].T], [rows[0], np.zeros((5, 5))]])
    push = rotations.matvec(tree.jacobian(q, "crank")[:, 3:].swapaxes(1, 2), np.array([0.0, 3.0, 0.0]))[0]
    right = np.concatenate([push - tree.bias_forces(q, v)[0], -drift[0]])
    a = np.linalg.lstsq(system, right, rcond=1e-12)[0][:n]
    sim.step(20)
    assert np.abs(a).max() > 1.0
    np.testing.assert_allclose((tree.velocity(sim) - v)[0] / 2e-5, a, rtol=1e-3, atol=1e-3 * np.abs(a).max())


def test_servos_hold_what_gravity_asks_for():
    b = ModelBuilder()
    parent = -1
    for k, axis in enumerate(((0, 1, 0), (1, 0, 0), (0, 1, 0))):
        place = Transform((0.4 * k, 0.0, 0.0))
        body = b.add_body(1.0 + k, (0.02, 0.03, 0.03), com=(0.2, 0.01, 0.02), xform=place)
        joint = b.add_joint_revolute(parent, body, at=(0.4 * k, 0, 0), axis=axis, damping=3.0, label=f"j{k}")
        b.add_servo(joint, stiffness=400.0, damping=20.0, target=0.2)
        parent = body
    sim = Simulation(b.finalize(), config=SolverConfig(dt=5e-3))
    sim.step(1500)
    tree = Tree(sim.model)
    wanted = tree.gravity_torques(tree.posture(sim))[0]
    drives = [float(sim.read(f"joint.j{k}.drive_force")[0]) for k in range(3)]
    np.testing.assert_allclose(drives, wanted, rtol=1e-6, atol=1e-6)
    assert np.abs(wanted).min() > 0.05


def test_couplings_are_loops_too():
    b = ModelBuilder()
    joints = [slider(b, label=label, y=float(k)) for k, label in enumerate("abc")]
    b.add_mimic(joints[1], joints[0], multiplier=2.0, offset=0.1, label="follow")
    b.add_gear(joints[0], joints[2], ratio=-3.0)
    tree = Tree(b.finalize())
    residual, rows, drift = tree.loops([1.0, 3.0, 0.5])
    np.testing.assert_allclose(residual, [[3.0 - 2.0 - 0.1, 0.5 + 3.0]], atol=1e-15)
    np.testing.assert_array_equal(rows, [[[-2.0, 1.0, 0.0], [3.0, 0.0, 1.0]]])
    assert not drift.any()


def test_a_curve_is_a_loop_with_a_drift():
    b = ModelBuilder()
    joints = [slider(b, label=label, y=float(k)) for k, label in enumerate("ab")]
    b.add_mimic(joints[1], joints[0], multiplier=2.0, offset=0.1, curve=(0.3, -0.4, 0.5))
    residual, rows, drift = Tree(b.finalize()).loops([[1.0, 3.0], [-2.0, 0.5]], [[0.7, 0.2], [-0.5, 1.0]])
    q, v = np.array([1.0, -2.0]), np.array([0.7, -0.5])
    p = np.polynomial.Polynomial((0.1, 2.0, 0.3, -0.4, 0.5))
    np.testing.assert_allclose(residual[:, 0], [3.0, 0.5] - p(q), rtol=1e-14)
    np.testing.assert_allclose(rows[:, 0], np.stack([-p.deriv()(q), [1.0, 1.0]], axis=1), rtol=1e-14)
    np.testing.assert_allclose(drift[:, 0], -p.deriv(2)(q) * v**2, rtol=1e-14)


def test_parameters_of_worlds():
    b = floating_chain(0)
    sim = Simulation(b.finalize(), 3, backend="numpy")
    sim.write("body.link2.mass", np.array([1.0, 2.0, 3.0]))
    sim.write("sim.gravity", np.array([[0, 0, -1.0], [0, 0, -2.0], [0, 0, 0.0]]))
    sim.write("joint.revolute.armature", np.array([0.0, 0.1, 0.5]))
    plain = Tree(sim.model, "root")
    tree = plain.with_parameters(sim)
    q, v = tree.start, np.zeros(tree.freedoms)
    for world, mass in enumerate((1.0, 2.0, 3.0)):
        own = floating_chain(0)
        own.bodies[3].mass = mass
        for joint in own.joints:
            if joint.label == "revolute":
                joint.params["armature"][:] = (0.0, 0.1, 0.5)[world]
        own.gravity = np.array([0, 0, -1.0 * (world + 1) if world < 2 else 0.0])
        alone = Tree(own.finalize(), "root")
        np.testing.assert_allclose(tree.mass_matrix(q)[world], alone.mass_matrix(q)[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(tree.com(q)[world], alone.com(q)[0], rtol=1e-12)
        wanted = alone.bias_forces(q, v)[0]
        np.testing.assert_allclose(tree.bias_forces(np.repeat(q, 3, axis=0), v)[world], wanted, rtol=1e-12, atol=1e-12)
    assert plain.mass_matrix(q).shape[0] == 1


def test_rotors_count_as_armature():
    """The motor's inertia at the joint is r^2 M_s t/w."""
    plain, geared = four_bar(), four_bar()
    geared.add_dc_motor(1, stall_torque=0.5, no_load_speed=300.0, mechanical_time_constant=0.02, gear_ratio=30.0)
    m = [Tree(b.finalize()).mass_matrix(np.zeros(3))[0] for b in (plain, geared)]
    wanted = np.zeros((3, 3))
    wanted[1, 1] = 900.0 * 0.5 * 0.02 / 300.0
    np.testing.assert_allclose(m[1] - m[0], wanted, atol=1e-12)


def test_a_body_that_forces_do_not_move_floats_without_mass():
    b = ModelBuilder()
    cart = b.add_body(7.0, (1, 1, 1), label="cart", kinematic=True, linear_velocity=(1, 0, 0))
    pole = b.add_body(1.0, (0.1, 0.1, 0.1), com=(0, 0, 0.5), label="pole")
    b.add_joint_revolute(cart, pole, at=(0, 0, 0.1), axis=(0, 1, 0), label="hinge")
    sim = Simulation(b.finalize(), backend="numpy", config=SolverConfig(dt=1e-2))
    sim.step(10)
    tree = Tree(sim.model)
    assert tree.bodies == ["cart", "pole"] and tree.freedoms == 7 and tree.inertias.mass.sum() == 1.0
    q = tree.posture(sim)
    np.testing.assert_allclose(tree.pose(q, "pole")[:, :3], sim.read("body.pole.position"), atol=1e-9)
    np.testing.assert_allclose(tree.com(q), sim.read("body.pole.center_of_mass"), atol=1e-9)


def test_sites_and_bodies_by_name():
    b = floating_chain(0)
    b.add_site(0, FRAME_A, label="link3")
    b.add_site(-1, FRAME_B, label="world_mark")
    tree = Tree(b.finalize(), "root")
    q = tree.start
    with pytest.raises(ModelError, match=naming("'link3' 'body.link3' 'site.link3'")):
        tree.pose(q, "link3")
    apart = tree.pose(q, ["body.link3", "site.link3"])[0, :, :3]
    wanted = tree.pose(q, "root")[0]
    r = rotations.matrix_from_quaternion(wanted[3:])
    np.testing.assert_allclose(apart[1], wanted[:3] + r @ FRAME_A.position, atol=1e-15)
    assert np.linalg.norm(apart[0] - apart[1]) > 0.1
    np.testing.assert_allclose(tree.pose(q, "world_mark")[0], [*FRAME_B.position, *FRAME_B.rotation], atol=1e-15)
    assert not tree.jacobian(q, "world_mark").any()
    # A point of a site is that point of its body.
    local = FRAME_A.apply((0.1, 0.2, 0.3))
    at_site = tree.jacobian(q, "site.link3", (0.1, 0.2, 0.3))
    np.testing.assert_allclose(at_site, tree.jacobian(q, "root", local), atol=1e-14)


def test_worlds_do_not_feel_each_other():
    tree = Tree(floating_chain(0).finalize())
    rng = np.random.default_rng(0)
    q = tree.integrate(np.repeat(tree.start, 5, axis=0), rng.normal(size=(5, tree.freedoms)))
    v, a = rng.normal(size=(2, 5, tree.freedoms))
    whole = tree.inverse_dynamics(q, v, a)
    for world in range(5):
        alone = tree.inverse_dynamics(q[world], v[world], a[world])[0]
        np.testing.assert_allclose(alone, whole[world], rtol=1e-12, atol=1e-12)


def test_errors_name_what_is_wrong():
    b = floating_chain(0)
    model = b.finalize()
    tree = Tree(model, "root")
    with pytest.raises(ModelError, match=naming("ModelBuilder.finalize")):
        Tree(b)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=naming("'rot' 'root'")):
        Tree(model, "rot")
    with pytest.raises(UnknownNameError, match=naming("'tap' 'tip'")):
        tree.pose(tree.start, "tap")
    with pytest.raises(ModelError, match=naming("3")):
        tree.pose(tree.start, [3])  # type: ignore[list-item]
    with pytest.raises(ModelError, match=naming("posture 3")):
        tree.com([1, 2, 3])
    with pytest.raises(ModelError, match=naming("2 3")):
        tree.centroidal(np.repeat(tree.start, 2, axis=0), np.zeros((3, tree.freedoms)))
    with pytest.raises(UnknownNameError, match=naming("'hinge'")):
        tree.slice("hinge")
    other = ModelBuilder()
    slider(other, label="apart")
    other.add_site(0, label="there")
    other.add_builder(b)
    with pytest.raises(UnknownNameError, match=naming("site 'there' 'apart'")):
        Tree(other.finalize(), "root").pose(tree.start, "there")
    with pytest.raises(ModelError, match=naming("Tree.with_parameters")):
        tree.with_parameters(Simulation(four_bar().finalize(), backend="numpy"))
    gear = four_bar()
    gear.add_gear(0, 3, 2.0, label="cross")
    with pytest.raises(ModelError, match=naming("coupling 'cross' 'closing'")):
        Tree(gear.finalize())
