"""The hydraulic crane of Project Chrono: a cylinder swings a crane with a hanging ball.

The scene is reference case 5 in ``tests/reference/hydraulics``, in the x-z plane. Parameters and equations are from
Chrono's ``demo_MBS_hydraulic_crane`` and ChHydraulicActuator2.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

import gpusim
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Positive, Range, Scene
from gpusim.scenes._bodies import PLANE_AXIS, cylinder_plots, in_plane
from gpusim.scenes._checks import Recording, at, near

NAME = "chrono_crane"
GRAVITY = 9.8
CRANE_LENGTH = 1.0
CRANE_ANGLE = math.pi / 6.0
PENDULUM_LENGTH = 0.3
GROUND_PIN = (math.sqrt(0.75), 0.0)
START_LENGTH = 0.5  # distance of the pins at piston position 0, m
CHAMBER_LENGTH = 0.221  # length of both chambers at piston position 0, m
END_LENGTH = 0.008  # length of each chamber in which the end dampers act, m
AREA_A = math.pi / 4.0 * 0.08**2
AREA_B = math.pi / 4.0 * (0.08**2 - 0.035**2)
OIL_MODULUS, HOSE_MODULUS, WALL_MODULUS = 1500e6, 150e6, 31500e6
COMMANDS = ((0.0, 0.0), (0.5, 0.0), (2.0, 0.6), (7.0, 0.6), (9.0, -1.0), (10.0, 0.0))


def build(
    crane_mass: Positive = 500.0,
    ball_mass: Positive = 100.0,
    command: Annotated[float, Range(-1.0, 1.0)] = 1.0,
    supply_pressure: float = 7.6e6,
    pressure_a: float = 4.163e6,
    pressure_b: float = 3.461e6,
    viscous_friction: float = 1e5,
    valve_time_constant: float = 0.004547284088339867,
) -> Scene:
    """Build the scene.

    Args:
        crane_mass: mass of the crane, kg, above 0.
        ball_mass: mass of the ball under the crane's tip, kg, above 0.
        command: scale factor of the schedule's valve commands, -1 to 1.
        supply_pressure: supply pressure, Pa.
        pressure_a: initial pressure in chamber A, Pa.
        pressure_b: initial pressure in chamber B, Pa.
        viscous_friction: viscous friction of the cylinder, N s/m.
        valve_time_constant: time constant of the first-order valve, s.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    crane = _add_bodies(b, crane_mass, ball_mass)
    # compliance of oil and wall in a chamber, of oil and hose in a hose
    oil = 1.0 / (1.0 / OIL_MODULUS + 1.0 / WALL_MODULUS)
    hose = 1.0 / (1.0 / OIL_MODULUS + 1.0 / HOSE_MODULUS)
    b.add_hydraulic_cylinder(
        -1,
        crane,
        (GROUND_PIN[0], 0.0, GROUND_PIN[1]),
        (0.0, 0.0, 0.0),
        length_offset=START_LENGTH,
        area_a=AREA_A,
        area_b=AREA_B,
        volume_a=AREA_A * CHAMBER_LENGTH,
        volume_b=AREA_B * CHAMBER_LENGTH,
        bulk_modulus=oil,
        viscous_friction=viscous_friction,
        stroke_min=-CHAMBER_LENGTH,
        stroke_max=CHAMBER_LENGTH,
        supply_pressure=supply_pressure,
        tank_pressure=1e5,
        flow_gain=2.1380899352993953e-07,
        valve_order=1,
        valve_time_constant=valve_time_constant,
        orifice="linear",
        transition_pressure=2e5,
        pressure_a=pressure_a,
        pressure_b=pressure_b,
        hose_volume_a=3.14e-5,
        hose_volume_b=7.85e-5,
        hose_bulk_modulus=hose,
        cushion_stiffness=1e7,
        cushion_damping=5000.0,
        cushion_length=END_LENGTH,
        label="lift",
    )
    return Scene(
        name=NAME,
        description="Project Chrono's hydraulic crane with a ball that hangs from its tip.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=20.0,
        plots=_plots(),
        camera=Camera((0.6, -3.0, 0.8), (0.5, 0.0, 0.3)),
        schedule=drive({"lift": Schedule([(t, command * u) for t, u in COMMANDS], period=10.0)}),
        checks=_CHECKS,
    )


def _add_bodies(b: gpusim.ModelBuilder, crane_mass: float, ball_mass: float) -> int:
    """Add the crane on its hinge, and the ball on a ball joint at the crane's tip."""
    c, s = math.cos(CRANE_ANGLE), math.sin(CRANE_ANGLE)
    half = 0.5 * CRANE_LENGTH
    unit = (1.0, 1.0, 1.0)  # default inertia in Chrono
    crane = b.add_body(mass=crane_mass, inertia=unit, xform=in_plane(half * c, half * s, CRANE_ANGLE), label="crane")
    b.add_joint_revolute(-1, crane, child_xform=gpusim.Transform((-half, 0.0, 0.0)), axis=PLANE_AXIS, label="hinge")
    hanging = in_plane(CRANE_LENGTH * c, CRANE_LENGTH * s - PENDULUM_LENGTH)
    ball = b.add_body(mass=ball_mass, inertia=unit, xform=hanging, label="ball")
    # The rotation by -CRANE_ANGLE gives the ball joint a zero rotation at the start.
    b.add_joint_ball(
        crane,
        ball,
        parent_xform=in_plane(half, 0.0, -CRANE_ANGLE),
        child_xform=gpusim.Transform((0.0, 0.0, PENDULUM_LENGTH)),
        label="tip",
    )
    return crane


def _plots() -> list[Plot]:
    return [
        Plot("Crane angle", "rad", ["joint.hinge.position"]),
        Plot("Piston position", "m", ["cylinder.lift.position"]),
        *cylinder_plots("lift"),
    ]


def _closes_the_triangle(run: Recording) -> bool:
    """Check that the piston position agrees with the distance between the cylinder's pins at the crane's angle."""
    half, angle = 0.5 * CRANE_LENGTH, run["joint.hinge.position"]
    length = np.hypot(half * np.cos(angle) - GROUND_PIN[0], half * np.sin(angle) - GROUND_PIN[1])
    return near(run["cylinder.lift.position"], length - START_LENGTH, 1e-9)


def _follows_the_reference(run: Recording) -> bool:
    """Check that the distance between the cylinder's pins differs by at most 1 mm from reference case 5."""
    reference = ((2.4, 0.55539625), (4.9, 0.67701386), (7.0, 0.71639705), (9.9, 0.62371300), (20.0, 0.62319848))
    return all(near(at(run, "cylinder.lift.position", t) + START_LENGTH, s, 1e-3) for t, s in reference)


def _spool_lags(run: Recording) -> bool:
    """Check that the first-order valve lags behind a ramp of the command by the valve's time constant."""
    ramps = ((1.0, 0.2, 0.4), (8.0, -0.2, -0.8), (9.5, -0.5, 1.0))  # s, command, its rate in 1/s
    return all(near(at(run, "cylinder.lift.spool", t), u - 0.00454728 * rate, 5e-5) for t, u, rate in ramps)


_CHECKS = (
    Check("piston position and crane angle are consistent", _closes_the_triangle),
    Check("the piston positions agree with the reference", _follows_the_reference),
    Check("the spool lags by the valve's time constant", _spool_lags),
)
