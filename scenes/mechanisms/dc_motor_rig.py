"""A DC motor with a gearbox turns a loaded shaft.

The scene covers the reference cases 2a, 2b (constant load torque) and 2d (pendulum) in ``tests/reference/hydraulics``.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from scipy.linalg import expm

import gpusim
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Positive, Range, Scene
from gpusim.scenes._bodies import PLANE_AXIS
from gpusim.scenes._checks import Recording, at, near

NAME = "dc_motor_rig"
COMMANDS = ((0.0, 1.0), (0.6, -0.5), (1.0, 0.0))


def build(
    load: Literal["torque", "pendulum"] = "torque",
    stall_torque: float = 2.0,
    no_load_speed: float = 400.0,
    mechanical_time_constant: float = 0.008,
    electrical_time_constant: float = 0.001,
    gear_ratio: float = 100.0,
    load_torque: float = 20.0,
    load_inertia: Positive = 1.5,
    pendulum_mass: Positive = 10.0,
    pendulum_length: float = 0.5,
    command: Annotated[float, Range(-1.0, 1.0)] = 1.0,
) -> Scene:
    """Build the scene.

    Args:
        load: "torque" (a flywheel under a constant opposing torque) or "pendulum".
        stall_torque: stall torque of the motor, N m.
        no_load_speed: no-load speed of the motor, rad/s.
        mechanical_time_constant: mechanical time constant of the unloaded motor, s.
        electrical_time_constant: electrical time constant of the winding, s.
        gear_ratio: rotation of the motor divided by rotation of the shaft.
        load_torque: torque against the shaft's positive direction, N m.
        load_inertia: inertia of the flywheel about the shaft, kg m2, above 0.
        pendulum_mass: mass of the pendulum, kg, above 0.
        pendulum_length: distance from the shaft to the pendulum's center of mass, m.
        command: scale factor of the schedule's motor commands, -1 to 1.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    if load == "pendulum":
        com = (0.0, 0.0, -pendulum_length)
        shaft = b.add_body(mass=pendulum_mass, inertia=(0.1, 0.1, 0.1), com=com, label="shaft")
    else:
        shaft = b.add_body(mass=10.0, inertia=(load_inertia,) * 3, label="shaft")
    hinge = b.add_joint_revolute(-1, shaft, axis=PLANE_AXIS, label="hinge")
    b.add_dc_motor(
        hinge,
        stall_torque=stall_torque,
        no_load_speed=no_load_speed,
        mechanical_time_constant=mechanical_time_constant,
        electrical_time_constant=electrical_time_constant,
        gear_ratio=gear_ratio,
        label="motor",
    )
    if load == "torque":
        torque = (-load_torque * PLANE_AXIS[0], -load_torque * PLANE_AXIS[1], -load_torque * PLANE_AXIS[2])
        b.add_torque(shaft, torque, label="load")
    table = Schedule([(t, command * u) for t, u in COMMANDS], kind="constant")
    return Scene(
        name=NAME,
        description="A DC motor with a gearbox turns a loaded shaft.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=1.5,
        plots=[
            Plot("Shaft angle", "rad", ["joint.hinge.position"]),
            Plot("Motor speed", "rad/s", ["motor.motor.speed"]),
            Plot("Motor torque", "N m", ["motor.motor.torque"]),
            Plot("Command", "fraction of maximum voltage", ["motor.motor.command"]),
        ],
        camera=Camera((0.5, -3.0, 0.5), (0.0, 0.0, 0.0)),
        schedule=drive({"motor": table}),
        checks=_CHECKS,
    )


def _follows_the_closed_form(run: Recording) -> bool:
    """Check shaft angle, speed and torque against the solution of the motor's linear equations."""
    inertia = 2.0 * 0.008 / 400.0 + 1.5 / 100.0**2
    a = np.array([[-1000.0, -2.0 / 400.0 * 1000.0, 0.0], [1.0 / inertia, 0.0, 0.0], [0.0, 0.01, 0.0]])
    time, state, expected = run["time"], np.zeros(5), [np.zeros(3)]
    augmented = np.zeros((5, 5))
    augmented[:3, :3], augmented[0, 3], augmented[1, 4] = a, 2000.0, -0.2 / inertia
    step, table = expm(augmented * (time[1] - time[0])), Schedule(COMMANDS, kind="constant")
    for t in time[:-1]:
        state[3:] = table(t + 1e-9), 1.0
        state = step @ state
        expected.append(state[:3])
    torque, speed, angle = np.array(expected).T[..., None]
    # T_e is one step, so speeds differ after a command change. The check compares torques between command changes.
    settled = np.all([(time < start) | (time > start + 0.0095) for start, _ in COMMANDS], axis=0)
    speeds_follow = near(run["motor.motor.speed"][settled], speed[settled], 0.4)
    follows = near(run["joint.hinge.position"], angle, 2e-3) and speeds_follow
    return follows and near(at(run, "motor.motor.torque", 0.5), 0.2, 2e-3) and near(torque[-1], 0.2, 2e-3)


_CHECKS = (Check("angle, speed and torque agree with the linear equations", _follows_the_closed_form),)
