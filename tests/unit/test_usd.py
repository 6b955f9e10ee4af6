from __future__ import annotations

import math

import numpy as np
import pytest

import gpusim
from gpusim import ModelError
from gpusim.importers import load_usd
from tests.backends import FASTEST
from tests.unit.test_usd_shapes import colliding
from tests.unit.usd_text import body, joint, prim, usd

pytest.importorskip("pxr")

HINGE = 'uniform token physics:axis = "Y"'


def bodies(builder):
    return {spec.label: spec for spec in builder.bodies}


def joints(builder):
    return {spec.label: spec for spec in builder.joints}


def simulate(builder, seconds, dt=5e-3):
    config = gpusim.SolverConfig(dt=dt)
    sim = gpusim.Simulation(builder.finalize(), backend=FASTEST, dtype="float64", config=config)
    sim.step(round(seconds / dt))
    return sim


def said(report, words):
    return any(words in finding.sentence for finding in report.findings)


def pendulum(**units):
    scale = 1.0 / units.get("meters", 1.0)
    kilo = 1.0 / units.get("kilograms", 1.0)
    up = units.get("up", "Z")
    arm = (0.3 * scale, 0, 0)
    axis = "Y" if up == "Z" else "Z"
    inertia = [0.02 * kilo * scale**2] * 3
    return usd(
        body("rod", mass=2.0 * kilo, inertia=inertia, at=arm),
        joint("Revolute", "pin", "", "rod", f'uniform token physics:axis = "{axis}"', at1=(-arm[0], 0, 0)),
        **units,
    )


def by_hand():
    b = gpusim.ModelBuilder()
    rod = b.add_body(mass=2.0, inertia=(0.02,) * 3, xform=gpusim.Transform((0.3, 0, 0)))
    b.add_joint_revolute(-1, rod, child_xform=gpusim.Transform((-0.3, 0, 0)), axis=(0, 1, 0), label="pin")
    return b


@pytest.mark.parametrize("units", [{}, {"meters": 0.01}, {"kilograms": 0.001, "meters": 0.5}, {"up": "Y"}], ids=str)
def test_a_pendulum_in_any_unit_swings_like_one_that_the_builder_made(units):
    builder, report = load_usd(pendulum(**units))
    expected = simulate(by_hand(), 0.1).read("joint.pin.position")
    sign = 1.0 if units.get("up", "Z") == "Z" else -1.0
    assert np.allclose(sign * simulate(builder, 0.1).read("joint.pin.position"), expected, atol=1e-6)
    assert np.allclose(builder.gravity, (0, 0, -9.81), atol=1e-12)
    assert report.total_mass == pytest.approx(2.0, rel=1e-6)
    assert report.exact and report.fixed_base


def test_gravity_of_the_file_and_of_the_caller():
    text = usd(
        body("a", mass=1, inertia=(1, 1, 1)),
        gravity="float physics:gravityMagnitude = 300\nvector3f physics:gravityDirection = (0, 2, 0)",
        meters=0.01,
    )
    assert np.allclose(load_usd(text)[0].gravity, (0, 3, 0), atol=1e-6)
    assert np.array_equal(load_usd(text, gravity=(0, 0, -1.62))[0].gravity, (0, 0, -1.62))


def test_masses_come_from_the_body_the_collider_and_the_material():
    cube = prim("Cube", "c", "double size = 2", apis="PhysicsCollisionAPI", scale=(0.1, 0.05, 0.02))
    heavy = prim("Cube", "c", "double size = 0.2", "float physics:mass = 3", apis="PhysicsCollisionAPI PhysicsMassAPI")
    stuff = prim("Material", "stuff", "float physics:density = 2500", apis="PhysicsMaterialAPI")
    bound = "rel material:binding:physics = </World/stuff>"
    apis = "PhysicsCollisionAPI MaterialBindingAPI"
    sphere = prim("Sphere", "s", "double radius = 0.1", bound, apis=apis, at=(0, 0, 0.2))
    text = usd(stuff, body("plain", cube), body("own", cube, mass=5), body("part", heavy), body("ball", sphere))
    found = bodies(load_usd(text)[0])
    volume = 0.2 * 0.1 * 0.04
    assert found["plain"].mass == pytest.approx(1000 * volume, rel=1e-6)
    expected = np.diag([0.1**2 + 0.04**2, 0.2**2 + 0.04**2, 0.2**2 + 0.1**2]) / 12
    assert np.allclose(found["plain"].inertia, 1000 * volume * expected, rtol=1e-5, atol=1e-9)
    assert np.allclose(found["own"].inertia, 5 * expected, rtol=1e-5, atol=1e-8)
    assert found["part"].mass == pytest.approx(3.0) and np.allclose(found["part"].inertia, 0.02 * np.eye(3), atol=1e-7)
    assert found["ball"].mass == pytest.approx(2500 * 4 / 3 * math.pi * 1e-3, rel=1e-6)
    assert np.allclose(found["ball"].com, (0, 0, 0.2), atol=1e-7)


def test_a_body_without_a_mass_schema_has_the_mass_of_its_colliders():
    cube = prim("Cube", "c", "double size = 0.1", apis="PhysicsCollisionAPI")
    plain = prim("Xform", "a", cube, apis="PhysicsRigidBodyAPI")
    assert bodies(load_usd(usd(plain))[0])["a"].mass == pytest.approx(1.0, rel=1e-6)


def test_principal_axes_turn_the_inertia():
    half = math.sqrt(0.5)
    axes = f"quatf physics:principalAxes = ({half}, 0, 0, {half})"
    found = bodies(load_usd(usd(body("a", axes, mass=1, inertia=(1, 2, 2.5))))[0])["a"]
    assert np.allclose(found.inertia, np.diag([2, 1, 2.5]), atol=1e-6)


def test_a_body_without_mass_gets_one_with_a_warning():
    builder, report = load_usd(usd(body("a")))
    assert bodies(builder)["a"].mass == 1.0
    assert not report.exact and said(report, "no mass and no solid collider")
    with pytest.raises(ModelError, match="no mass"):
        load_usd(usd(body("a")), strict=True)


def test_joints_win_over_poses_and_loops_are_checked():
    parts = [body(name, mass=1, inertia=(1, 1, 1), at=at) for name, at in (("a", (0, 0, 0)), ("b", (0.5, 0.1, 0)))]
    closing = joint("Spherical", "close", "a", "b", "bool physics:excludeFromArticulation = 1", at0=(1, 0, 0.2))
    text = usd(*parts, joint("Revolute", "pin", "a", "b", HINGE, at0=(0.5, 0, 0)), closing)
    builder, report = load_usd(text)
    assert np.allclose(bodies(builder)["b"].xform.position, (0.5, 0, 0), atol=1e-7)
    assert said(report, "does not fit its joint by 0.1 m") and said(report, "open by 0.539 m")


def drive(kind, *lines):
    return [f"float drive:{kind}:physics:{line}" for line in lines]


def test_a_drive_holds_by_its_stiffness_per_degree():
    gains = drive("angular", "stiffness = 2", "damping = 0.1", "targetPosition = 10", "maxForce = 400")
    text = usd(
        body("rod", mass=2, inertia=(0.02,) * 3, at=(0.3, 0, 0)),
        joint("Revolute", "pin", "", "rod", HINGE, *gains, apis="PhysicsDriveAPI:angular", at1=(-0.3, 0, 0)),
    )
    builder, report = load_usd(text)
    sim = simulate(builder, 1.0)
    angle = float(sim.read("joint.pin.position")[0])
    torque = 2.0 * math.degrees(math.radians(10) - angle)
    assert torque == pytest.approx(-2.0 * 9.81 * 0.3 * math.cos(angle), rel=1e-3)
    info = report.commands["/World/pin:angular"]
    assert info.command == "pin" and info.value(90.0) == pytest.approx(math.pi / 2)
    params = builder.actuators[0].params
    assert (params["lower"], params["upper"]) == (-400.0, 400.0)


def test_a_velocity_drive_turns_at_its_speed_from_the_start():
    gains = drive("angular", "damping = 50", "targetVelocity = 90")
    text = usd(
        body("disk", mass=1, inertia=(0.01,) * 3),
        joint("Revolute", "pin", "", "disk", HINGE, *gains, apis="PhysicsDriveAPI:angular"),
    )
    builder, report = load_usd(text)
    assert np.allclose(simulate(builder, 0.1).read("joint.pin.velocity"), math.pi / 2, rtol=1e-3)
    assert report.commands["/World/pin:angular"].command == "pin.velocity"


def test_a_drive_of_type_acceleration_has_its_frequency_at_any_mass():
    gains = [
        *drive("linear", "stiffness = 100", "targetPosition = 0.1"),
        'uniform token drive:linear:physics:type = "acceleration"',
    ]
    text = usd(
        body("cart", mass=7, inertia=(1,) * 3),
        joint("Prismatic", "rail", "", "cart", *gains, apis="PhysicsDriveAPI:linear"),
    )
    builder, report = load_usd(text)
    moved = simulate(builder, math.pi / 10, dt=math.pi / 1000).read("joint.rail.position")  # half a period of 10 rad/s
    assert np.allclose(moved, 0.2, atol=1e-3)
    assert said(report, "acceleration") and not report.exact


def test_a_drive_without_gains_takes_efforts():
    text = usd(
        body("cart", mass=2, inertia=(1,) * 3),
        joint("Prismatic", "rail", "", "cart", apis="PhysicsDriveAPI:linear"),
    )
    builder, report = load_usd(text)
    info = report.commands["/World/rail:linear"]
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    sim.control[info.command] = info.value(4.0)
    sim.step(20)
    assert np.allclose(sim.read("joint.rail.velocity"), 2.0 * sim.time, rtol=1e-3)
    assert not load_usd(text, actuators=False)[0].actuators


LIMITS = {
    "hinge": ("transX transY transZ rotX rotZ", "revolute"),
    "slider": ("transX transY rotX rotY rotZ", "prismatic"),
    "weld": ("transX transY transZ rotX rotY rotZ", "fixed"),
    "ball": ("transX transY transZ", "ball"),
    "two": ("transX transY transZ rotZ", "d6"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_locked_axes_of_a_d6_joint_choose_its_kind(name):
    locked, kind = LIMITS[name]
    lines = [
        f"float limit:{axis}:physics:{end} = {x}" for axis in locked.split() for end, x in (("low", 1), ("high", -1))
    ]
    apis = " ".join(f"PhysicsLimitAPI:{axis}" for axis in locked.split())
    text = usd(body("a", mass=1, inertia=(1, 1, 1)), joint("", "j", "", "a", *lines, apis=apis))
    assert joints(load_usd(text, merge_fixed=False)[0])["j"].kind == kind


def test_hinges_between_the_same_bodies_are_one_joint():
    parts = [body(name, mass=1, inertia=(1, 1, 1)) for name in ("a", "b")]
    hinges = [joint("Revolute", f"turn{axis}", "a", "b", f'uniform token physics:axis = "{axis}"') for axis in "ZX"]
    motor = prim(
        "MjcActuator", "m", "rel mjc:target = </World/turnX>", "uniform double[] mjc:gear = [3, 0, 0, 0, 0, 0]"
    )
    builder, report = load_usd(usd(*parts, *hinges, motor))
    assert [spec.kind for spec in builder.joints] == ["d6", "free"]
    assert np.allclose(builder.joints[0].params["angular"], [(0, 0, 1), (1, 0, 0)])
    assert builder.actuators[0].params["axis"] == 1 and report.commands["/World/m"].factor == 3.0


def test_mujoco_attributes_of_joints():
    lines = [
        "double mjc:damping = 0.3",
        "double mjc:armature = 0.1",
        "double mjc:frictionloss = 0.2",
        "double mjc:stiffness = 5",
    ]
    lines += [
        "double mjc:springref = 90",
        "double mjc:actuatorfrcrange:min = -2",
        "double mjc:actuatorfrcrange:max = 2",
    ]
    servo = prim(
        "MjcActuator", "s", "rel mjc:target = </World/pin>", 'token mjc:biasType = "affine"',
        "double[] mjc:gainPrm = [10]", "double[] mjc:biasPrm = [1, -20, -3]", "double mjc:ctrlRange:max = 0.5",
    )  # fmt: skip
    text = usd(body("a", mass=1, inertia=(1, 1, 1)), joint("Revolute", "pin", "", "a", HINGE, *lines), servo)
    builder, report = load_usd(text)
    params = builder.joints[0].params
    assert [float(params[key][0]) for key in ("damping", "armature", "friction")] == pytest.approx([0.3, 0.1, 0.2])
    spring, drive = builder.actuators
    assert float(spring.params["stiffness"]) == 5.0 and float(spring.params["rest_length"]) == pytest.approx(
        math.pi / 2
    )
    assert (drive.params["stiffness"], drive.params["damping"], drive.params["upper"]) == (20.0, 3.0, 2.0)
    info = report.commands["/World/s"]
    assert info.value(0.2) == pytest.approx((10 * 0.2 + 1) / 20) and info.value(9.0) == info.value(0.5)


def test_a_joint_that_starts_outside_its_limits_is_a_finding():
    for lower, count in ((0, 0), (30, 1)):
        lines = f"float physics:lowerLimit = {lower}", "float physics:upperLimit = 90"
        pin = joint("Revolute", "pin", "", "a", HINGE, *lines)
        _, report = load_usd(usd(body("a", mass=1, inertia=(1, 1, 1)), pin))
        assert len(report.findings) == count


def test_a_mujoco_servo_on_a_slide_in_centimeters_and_grams():
    servo = prim(
        "MjcActuator", "s", "rel mjc:target = </World/rail>", 'token mjc:biasType = "affine"',
        "double[] mjc:gainPrm = [10]", "double[] mjc:biasPrm = [0, -20, -3]",
    )  # fmt: skip
    slide = joint("Prismatic", "rail", "", "a", 'uniform token physics:axis = "Z"')
    text = usd(body("a", mass=1, inertia=(1, 1, 1)), slide, servo, meters=0.01, kilograms=0.001)
    builder, report = load_usd(text)
    (drive,) = builder.actuators
    # 20 g cm/s2 per cm, and a command of 3 cm moves the target by 1.5 cm
    assert (drive.params["stiffness"], drive.params["damping"]) == pytest.approx((0.02, 0.003))
    assert report.commands["/World/s"].value(3.0) == pytest.approx(0.015)


def test_followers():
    parts = [body(name, mass=1, inertia=(1, 1, 1)) for name in "abc"]
    rel = "rel newton:mimicJoint = </World/lead>"
    follow = joint(
        "Revolute", "follow", "", "b", HINGE, rel, "float newton:mimicCoef0 = 10", "float newton:mimicCoef1 = -2"
    )
    gear = "float physxMimicJoint:rotY:gearing = 3"
    geared = joint(
        "Revolute", "geared", "", "c", HINGE, "rel physxMimicJoint:rotY:referenceJoint = </World/lead>", gear
    )
    builder, report = load_usd(usd(*parts, joint("Revolute", "lead", "", "a", HINGE), follow, geared))
    assert report.joints["follow"].mimic == ("lead", -2.0, pytest.approx(math.radians(10)))
    assert report.joints["geared"].mimic == ("lead", -3.0, 0.0)
    assert [coupling.offset for coupling in builder.couplings] == pytest.approx([math.radians(10), 0.0])
    assert [dict((j, f) for j, _, f in c.terms)[0] for c in builder.couplings] == [2.0, 3.0]


@pytest.mark.parametrize("kind", ["Revolute", "Prismatic"])
def test_a_follower_of_mujoco_follows_a_polynomial_in_radians(kind):
    """q = 0.1 + 2 x + 3 x^2 - 4 x^3 + 5 x^4, x in rad, also if q is a slide."""
    parts = [body(name, mass=1, inertia=(1, 1, 1)) for name in "ab"]
    rel = "rel mjc:target = </World/lead>"
    numbers = [f"float mjc:coef{k} = {c}" for k, c in enumerate((0.1, 2, 3, -4, 5))]
    follow = joint(kind, "follow", "", "b", HINGE, rel, *numbers, apis="MjcEqualityJointAPI")
    builder, report = load_usd(usd(*parts, joint("Revolute", "lead", "", "a", HINGE), follow))
    (coupling,) = builder.couplings
    (_, _, x), (_, _, q) = coupling.terms
    found = np.array([coupling.offset, -x, *(-c for c in coupling.curve)]) / q
    assert report.exact and found == pytest.approx([0.1, 2, 3, -4, 5])


def arm():
    parts = [body(name, mass=1, inertia=(0.1, 0.1, 0.1), at=(k, 0, 0)) for k, name in enumerate("abc")]
    weld = joint("Fixed", "weld", "a", "b", at0=(1, 0, 0))
    return usd(*parts, weld, joint("Revolute", "pin", "b", "c", HINGE, at0=(1, 0, 0)))


def test_fixed_joints_merge_bodies_unless_they_are_kept():
    builder, report = load_usd(arm())
    assert [spec.label for spec in builder.bodies] == ["a", "c"] and report.merged == {"b": "a"}
    merged = bodies(builder)["a"]
    assert merged.mass == 2.0 and np.allclose(merged.com, (0.5, 0, 0))
    assert np.allclose(np.diag(merged.inertia), (0.2, 0.7, 0.7))
    assert np.allclose(joints(builder)["pin"].parent_xform.position, (2, 0, 0))
    for kept in (load_usd(arm(), keep=["b*"]), load_usd(arm(), merge_fixed=False)):
        assert [spec.label for spec in kept[0].bodies] == ["a", "b", "c"]


def test_a_merged_body_moves_as_its_parts():
    """The first part does not move, and the second one circles it. Bodies with and without gravity are not merged."""
    for line, count in (("", 1), ("bool physxRigidBody:disableGravity = 1", 2)):
        spin = "vector3f physics:angularVelocity = (0, 0, 90)"
        first = body("a", spin, mass=1, inertia=(0.1, 0.1, 0.1))
        second = body("b", line, spin, mass=3, inertia=(0.1, 0.1, 0.1), at=(1, 0, 0))
        builder, _ = load_usd(usd(first, second, joint("Fixed", "weld", "a", "b", at0=(1, 0, 0))))
        assert len(builder.bodies) == count
        if count == 1:
            (merged,) = builder.bodies
            assert merged.gravity_scale == 1.0
            assert np.allclose(merged.linear_velocity, (0, 0.75 * math.pi / 2, 0), atol=1e-6)
        else:
            assert [spec.gravity_scale for spec in builder.bodies] == [1.0, 0.0]


def test_a_hinge_is_no_base_joint():
    report = load_usd(pendulum())[1]
    assert report.base_joint is None and report.fixed_base and report.base_link == "rod"


def test_bases_are_as_in_the_file_or_as_asked():
    floating, report = load_usd(arm())
    assert joints(floating)["world_to_a"].kind == "free" and not report.fixed_base and report.base_joint == "world_to_a"
    fixed, report = load_usd(arm(), fixed_base=True)
    assert joints(fixed)["world_to_a"].kind == "fixed" and report.fixed_base
    tied = arm().rstrip()[:-1] + joint("Fixed", "root", "", "a", at0=(0, 0, 1)) + "\n}\n"
    assert np.allclose(bodies(load_usd(tied)[0])["c"].xform.position, (2, 0, 1))
    free = joints(load_usd(tied, fixed_base=False)[0])
    assert "root" not in free and free["world_to_a"].kind == "free"


def test_states_of_joints_and_velocities_of_bodies():
    state = ["float state:angular:physics:position = 90", "float state:angular:physics:velocity = 180"]
    spin = "vector3f physics:angularVelocity = (0, 0, 90)"
    text = usd(
        body("rod", mass=1, inertia=(1, 1, 1), at=(0.3, 0, 0)),
        joint("Revolute", "pin", "", "rod", HINGE, *state, apis="PhysicsJointStateAPI:angular", at1=(-0.3, 0, 0)),
        body("ball", "vector3f physics:velocity = (1, 2, 3)", spin, mass=1, inertia=(1, 1, 1)),
    )
    found = bodies(load_usd(text)[0])
    assert np.allclose(found["rod"].xform.position, (0, 0, -0.3), atol=1e-7)
    assert np.allclose(found["rod"].angular_velocity, (0, math.pi, 0))
    assert np.allclose(found["rod"].linear_velocity, np.cross((0, math.pi, 0), (0, 0, -0.3)), atol=1e-7)
    assert np.allclose(found["ball"].linear_velocity, (1, 2, 3))
    assert np.allclose(found["ball"].angular_velocity, (0, 0, math.pi / 2))


def spherical(first, second, axis="Y"):
    """Return a file with a bob on the parent's y axis, held by a spherical joint with these cone limits, degrees."""
    lines = [f"float physics:coneAngle{k}Limit = {angle}" for k, angle in enumerate((first, second))]
    pin = joint("Spherical", "pin", "", "bob", f'uniform token physics:axis = "{axis}"', *lines, at1=(0, -0.3, 0))
    return usd(body("bob", mass=2, inertia=(0.02, 0.02, 0.02), at=(0, 0.3, 0)), pin)


@pytest.mark.nightly
@pytest.mark.parametrize("limits", [(25, 25), (40, 25), (0, 30), (180, 180), (-1, 25)])
def test_cone_limits_hold_a_pendulum(limits):
    builder, report = load_usd(spherical(*limits))
    assert report.exact == (limits[0] == limits[1] or limits[0] < 0)
    assert said(report, "elliptic cone limit") == (not report.exact)
    assert builder.joints[0].kind == ("ball" if limits[0] else "revolute")
    sim = simulate(builder, 0.1, 1e-3)
    lowest = 0.0
    for _ in range(30):
        sim.step(20)
        y, z = np.asarray(sim.read("body.bob.position"))[0, 1:]
        lowest = max(lowest, math.degrees(math.atan2(-z, y)))
    expected = min(limits) if 0 <= min(limits) < 90 else 180.0
    assert lowest == pytest.approx(expected, abs=1e-3 if expected < 90 else 2.0)


@pytest.mark.parametrize("units", [{}, {"meters": 0.01, "kilograms": 0.001}], ids=str)
def test_a_fixed_joint_breaks_at_its_force(units):
    kilo, meter = 1.0 / units.get("kilograms", 1.0), 1.0 / units.get("meters", 1.0)
    parts = [
        body("rod", mass=2.0 * kilo, inertia=[0.02 * kilo * meter**2] * 3, at=(0, 0, -0.3 * meter)),
        joint("Fixed", "weld", "", "rod", f"float physics:breakForce = {25.0 * kilo * meter}", at1=(0, 0, 0.3 * meter)),
    ]
    builder, report = load_usd(usd(*parts, **units))
    assert report.exact and report.joints["weld"].kind == "fixed" and report.fixed_base
    sim = gpusim.Simulation(builder.finalize(), 2, FASTEST, "float64", gpusim.SolverConfig(dt=1e-3))
    sim.write("sim.gravity", [[0, 0, -9.81], [0, 0, -30.0]])
    sim.step(100)
    assert sim.read("joint.weld.attached").tolist() == [1.0, 0.0]
    assert np.allclose(sim.read("body.rod.position")[:, 2], [-0.3, -0.3 - 15.0 * 0.099**2], atol=4e-3)


@pytest.mark.parametrize("collide", [False, True])
def test_bodies_at_a_breaking_joint_collide_only_if_the_file_says_so(collide):
    cube = prim("Cube", "c", "double size = 0.2", apis="PhysicsCollisionAPI")
    lines = ["float physics:breakTorque = 3", f"bool physics:collisionEnabled = {int(collide)}"]
    parts = [body(name, cube, mass=1, inertia=(1, 1, 1), at=(x, 0, 0)) for name, x in (("a", 0), ("b", 0.1))]
    builder, report = load_usd(usd(*parts, joint("Fixed", "weld", "a", "b", *lines, at0=(0.1, 0, 0))))
    assert builder.joints[0].params["break_torque"] == pytest.approx(3.0) and report.exact
    assert math.isinf(builder.joints[0].params["break_force"])
    assert colliding(builder) == ({"ab"} if collide else set())


def test_what_has_no_word_here_is_a_finding():
    lines = ["float physics:coneAngle0Limit = 30", "float physics:coneAngle1Limit = 20", "float physics:breakForce = 5"]
    damped = "float physxRigidBody:angularDamping = 0.5"
    parts = [body("a", damped, mass=1, inertia=(1, 1, 1)), joint("Spherical", "j", "", "a", *lines)]
    _, report = load_usd(usd(*parts))
    for words in ("cone limit of 30 and 20 degrees", "breaks at 5 N", "angularDamping = 0.5"):
        assert said(report, words)
    assert not report.exact


IGNORED = {
    "drive": joint("Spherical", "j", "", "a", "float drive:rotX:physics:damping = 3", apis="PhysicsDriveAPI:rotX"),
    "limit": joint("Revolute", "j", "", "a", "float limit:rotX:physics:low = 0", apis="PhysicsLimitAPI:rotX"),
    "target": joint("Revolute", "j", "nothing", "a"),
    "copies": 'def PointInstancer "p"\n{\nrel prototypes = </World/a>\nint[] protoIndices = [0]\n}',
}


@pytest.mark.parametrize("name", IGNORED)
def test_physics_that_is_left_out_is_not_exact(name):
    _, report = load_usd(usd(body("a", mass=1, inertia=(1, 1, 1)), IGNORED[name]))
    assert not report.exact


def test_a_spring_of_a_ball_joint():
    ball = joint("Spherical", "j", "", "a", "double mjc:stiffness = 3")
    turn = (math.cos(0.05), math.sin(0.05), 0, 0)
    builder, report = load_usd(usd(body("a", mass=1, inertia=(1, 1, 1), turn=turn), ball))
    sim = gpusim.Simulation(builder.finalize())
    sim.step(1)
    # the torque of 3 N m/rad * 0.1 rad turns 1 kg m2 back
    speed = sim.read("body.a.angular_velocity")[0][0]
    assert report.exact and speed == pytest.approx(-0.3 * sim.config.dt, rel=1e-3)


def test_a_kinematic_body_and_a_disabled_one():
    still = body(
        "wall", "bool physics:rigidBodyEnabled = 0", prim("Cube", "c", apis="PhysicsCollisionAPI"), at=(0, 0, 5)
    )
    moving = body("lift", "bool physics:kinematicEnabled = 1", "vector3f physics:velocity = (0, 0, 2)", mass=1)
    builder, _ = load_usd(usd(still, moving))
    assert bodies(builder)["lift"].kinematic and "wall" not in bodies(builder)
    assert builder.shapes[0].body == -1 and np.allclose(builder.shapes[0].xform.position, (0, 0, 5))


def test_instances_are_read():
    leg = prim("Xform", "leg", body("foot", prim("Sphere", "s", apis="PhysicsCollisionAPI"), mass=1, inertia=(1, 1, 1)))
    copies = "".join(
        f'def Xform "{name}"\n(\n instanceable = true\n references = </World/leg>\n)\n'
        f"{{\ndouble3 xformOp:translate = (0, {y}, 0)\n"
        'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
        for name, y in (("one", 1), ("two", 2))
    )
    builder, _ = load_usd(usd(leg.replace("def Xform", "over Xform", 1), copies))
    assert sorted(spec.xform.position[1] for spec in builder.bodies) == [1.0, 2.0]
    assert len(builder.shapes) == 2


def test_bodies_without_gravity_and_with_damping():
    lines = ["bool physxRigidBody:disableGravity = 1", "float physxRigidBody:linearDamping = 2"]
    lines += ["float physxRigidBody:angularDamping = 1", "vector3f physics:velocity = (1, 0, 0)"]
    spin = "vector3f physics:angularVelocity = (0, 0, 90)"
    builder, report = load_usd(usd(body("a", *lines, spin, mass=3, inertia=(0.2, 0.2, 0.2))))
    sim = simulate(builder, 0.5, dt=1e-2)
    assert np.allclose(np.ravel(sim.read("body.a.linear_velocity")), (math.exp(-1.0), 0, 0), atol=2e-3)
    assert np.allclose(np.ravel(sim.read("body.a.angular_velocity"))[2], math.pi / 2 * math.exp(-0.5), rtol=2e-3)
    assert report.exact
