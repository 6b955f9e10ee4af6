from __future__ import annotations

import numpy as np

from gpusim import ModelBuilder, Transform, orifice_gain


def machine() -> ModelBuilder:
    b = ModelBuilder()
    y = (0.0, 1.0, 0.0)
    boom = b.add_body(20.0, (0.5, 2.0, 2.0), com=(0.6, 0, 0), label="boom")
    b.add_joint_revolute(-1, boom, axis=y, limit_lower=-0.6, limit_upper=0.4, damping=5.0, label="hinge")
    b.add_hydraulic_cylinder(
        -1, boom, (0.4, 0, -0.5), (0.4, 0, 0), length_offset=0.3, label="lift",
        area_a=2e-3, area_b=1.2e-3, volume_a=5e-4, volume_b=9e-4, stroke_min=0.0, stroke_max=0.5,
        flow_gain=orifice_gain(0.7, 0.005, 5e-4, 870.0), viscous_friction=50.0, dry_friction=20.0, brake_force=1e3,
        pressure_a=5e5,
    )  # fmt: skip
    # A four-bar linkage on the boom: crank, coupler, rocker; its last joint closes the loop.
    tip = Transform((0.3, 0, 0))
    for label, x, z in (("crank", 0.6, 0.0), ("coupler", 0.6, 0.2), ("rocker", 1.0, 0.0)):
        length = 0.4 if label == "coupler" else 0.2
        com = (0.5 * length, 0, 0) if label == "coupler" else (0, 0, 0.5 * length)
        b.add_body(1.5, (0.02, 0.02, 0.02), com=com, xform=Transform((x, 0, z)), label=label)
    crank = b.add_joint_revolute(boom, 1, Transform((0.6, 0, 0)), axis=y, armature=0.01, label="crank")
    b.add_joint_revolute(1, 2, Transform((0, 0, 0.2)), axis=y, friction=0.05, label="coupler")
    b.add_joint_revolute(boom, 3, Transform((1.0, 0, 0)), axis=y, damping=0.1, label="rocker")
    b.add_joint_revolute(2, 3, Transform((0.4, 0, 0)), Transform((0, 0, 0.2)), axis=y, label="closing")
    b.add_dc_motor(crank, 0.5, 300.0, 0.02, 2e-3, gear_ratio=30.0, label="motor")
    bucket = b.add_body(3.0, (0.05, 0.04, 0.03), com=(0.1, 0.02, -0.3), xform=Transform((1.2, 0, 0)), label="bucket")
    swing = b.add_joint_universal(
        boom, bucket, Transform((1.2, 0, 0)), limit_lower=(-0.3, -0.5), limit_upper=(0.3, 0.5), friction=(0.4, 0.2),
        label="swing",
    )  # fmt: skip
    b.add_servo(swing, stiffness=30.0, damping=2.0, effort_limit=4.0, target=0.1, axis=1, label="servo")
    b.add_spring(
        -1, bucket, (1.5, 0.2, 0.8), tip.position, stiffness=100.0, damping=2.0, rest_length=0.6, label="spring"
    )
    b.add_force(bucket, (0.0, 3.0, 0.0), frame="body", label="push")
    b.add_site(bucket, Transform.from_rpy((0.2, -0.1, -0.4), (0.3, -0.5, 1.2)), label="lip")
    b.add_site(-1, Transform((1.5, 0.2, 0.8)), label="mast")
    return b


def scatter(num_worlds: int, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "body.bucket.mass": rng.uniform(1.0, 6.0, num_worlds),
        "joint.hinge.damping": rng.uniform(0.0, 20.0, num_worlds),
        "joint.swing.friction_0": rng.uniform(0.0, 1.0, num_worlds),
        "motor.motor.stall_torque": rng.uniform(0.2, 1.0, num_worlds),
        "cylinder.lift.supply_pressure": rng.uniform(5e6, 2e7, num_worlds),
        "sim.gravity": np.stack(
            [0.1 * rng.normal(size=num_worlds), np.zeros(num_worlds), rng.uniform(-12, -8, num_worlds)], 1
        ),
        "joint.hinge.position": rng.uniform(-0.5, 0.3, num_worlds),
        "joint.swing.position": rng.uniform(-0.25, 0.25, (num_worlds, 2)),
        "joint.swing.velocity": rng.uniform(-2.0, 2.0, (num_worlds, 2)),
        "motor.motor.command": rng.uniform(-1.0, 1.0, num_worlds),
        "cylinder.lift.command": rng.uniform(-1.0, 1.0, num_worlds),
    }
