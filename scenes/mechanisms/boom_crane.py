"""A hydraulic cylinder holds, raises and lowers a loaded boom (closed-center valve).

The scene is reference case 4 in ``tests/reference/hydraulics``. All motion is in the x-z plane.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

import gpusim
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Range, Scene, require
from gpusim.scenes._bodies import AXIAL_RATIO, PLANE_AXIS, cylinder_plots, in_plane
from gpusim.scenes._checks import Recording, at, near

NAME = "boom_crane"
GRAVITY = 9.81
BASE_PIN = (0.2, -1.3)  # x and z of the cylinder's pin on the ground, m
ROD_PIN = 0.7  # distance of the rod's pin from the boom's hinge, m
RETRACTED_LENGTH = 1.15  # distance of the pins at piston position 0, m
AREA_A = math.pi / 4.0 * 0.08**2
AREA_B = math.pi / 4.0 * (0.08**2 - 0.045**2)
STROKE = 0.7
HOLDING_PRESSURE_B = 2e6
#: Valve commands as pairs (time in s, fraction of the full command): hold, raise, stop, lower, stop.
COMMANDS = (
    (0.5, 0.0),
    (0.75, 0.6),
    (2.5, 0.6),
    (2.75, 0.0),
    (3.5, 0.0),
    (3.75, -0.5),
    (5.0, -0.5),
    (5.25, 0.0),
)


def build(
    length: float = 3.0,
    boom_mass: Positive = 300.0,
    tip_mass: NotNegative = 500.0,
    angle: float = math.radians(-10.0),
    command: Annotated[float, Range(0.0, 1.6)] = 1.0,
    piston_mass: float = 15.0,
    viscous_friction: float = 5000.0,
    supply_pressure: float = 1.8e7,
    bulk_modulus: float = 1.5e9,
) -> Scene:
    """Build the scene. Chamber A starts with the pressure that holds the boom.

    Args:
        length: length of the boom, m, above 0.7.
        boom_mass: mass of the boom (a uniform rod), kg, above 0.
        tip_mass: point mass at the tip, kg, 0 or more.
        angle: initial angle of the boom above horizontal, rad, -0.349 to 0.864.
        command: scale factor of the schedule's valve commands, 0 to 1.6.
        piston_mass: mass of the piston, kg. Gravity does not act on the piston mass.
        viscous_friction: viscous friction of the cylinder, N s/m.
        supply_pressure: supply pressure, Pa.
        bulk_modulus: bulk modulus of the oil, Pa.
    """
    require(length > ROD_PIN, NAME, "length", length, f"must be above {ROD_PIN} (the rod's pin)")
    x, arm = _cylinder_geometry(angle)
    require(0.0 <= x <= STROKE, NAME, "angle", angle, "must leave the cylinder inside its stroke")
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    boom = _add_boom(b, length, boom_mass, tip_mass, angle)
    b.add_joint_revolute(-1, boom, axis=PLANE_AXIS, label="hinge")
    moment = (0.5 * boom_mass + tip_mass) * length * GRAVITY * math.cos(angle)
    b.add_hydraulic_cylinder(
        -1,
        boom,
        (BASE_PIN[0], 0.0, BASE_PIN[1]),
        (ROD_PIN, 0.0, 0.0),
        length_offset=RETRACTED_LENGTH,
        area_a=AREA_A,
        area_b=AREA_B,
        volume_a=2e-4,
        volume_b=2e-4 + STROKE * AREA_B,
        bulk_modulus=bulk_modulus,
        viscous_friction=viscous_friction,
        stroke_min=0.0,
        stroke_max=STROKE,
        supply_pressure=supply_pressure,
        tank_pressure=1e5,
        flow_gain=gpusim.orifice_gain(0.62, 0.01, 0.00035, 850.0),
        overlap_supply=0.03,
        overlap_drain=-0.03,
        valve_frequency=2.0 * math.pi * 25.0,
        valve_damping=0.8,
        transition_pressure=1e4,
        piston_mass=piston_mass,
        pressure_a=(moment / arm + AREA_B * HOLDING_PRESSURE_B) / AREA_A,
        pressure_b=HOLDING_PRESSURE_B,
        label="lift",
    )
    return Scene(
        name=NAME,
        description="A hydraulic cylinder raises and lowers a loaded boom.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=7.0,
        plots=_plots(),
        camera=Camera((1.5, -6.0, 1.0), (1.2, 0.0, 0.0)),
        schedule=drive({"lift": Schedule([(t, command * u) for t, u in COMMANDS])}),
        checks=_CHECKS,
    )


def _add_boom(b: gpusim.ModelBuilder, length: float, boom_mass: float, tip_mass: float, angle: float) -> int:
    """Add the boom and the tip mass as one body."""
    mass = boom_mass + tip_mass
    com = (0.5 * boom_mass + tip_mass) * length / mass
    transverse = (boom_mass / 3.0 + tip_mass) * length**2 - mass * com**2
    inertia = (AXIAL_RATIO * transverse, transverse, transverse)
    return b.add_body(mass=mass, inertia=inertia, com=(com, 0.0, 0.0), xform=in_plane(0.0, 0.0, angle), label="boom")


def _cylinder_geometry(angle: float) -> tuple[float, float]:
    """Return the piston position (m) and its derivative with respect to the boom's angle (m/rad)."""
    dx = ROD_PIN * math.cos(angle) - BASE_PIN[0]
    dz = ROD_PIN * math.sin(angle) - BASE_PIN[1]
    distance = math.hypot(dx, dz)
    arm = ROD_PIN * (dz * math.cos(angle) - dx * math.sin(angle)) / distance
    return distance - RETRACTED_LENGTH, arm


def _plots() -> list[Plot]:
    return [
        Plot("Boom angle", "rad", ["joint.hinge.position"]),
        Plot("Piston position", "m", ["cylinder.lift.position"]),
        *cylinder_plots("lift"),
    ]


def _holds(run: Recording) -> bool:
    """Check that the closed valve holds the boom."""
    position = run["cylinder.lift.position"]
    return near(position[run["time"] < 0.5], position[0], 1e-5)


def _closes_the_triangle(run: Recording) -> bool:
    """Check that the piston position and the boom angle satisfy the law of cosines."""
    angle = run["joint.hinge.position"]
    square = ROD_PIN**2 + BASE_PIN[0] ** 2 + BASE_PIN[1] ** 2
    along = BASE_PIN[0] * np.cos(angle) + BASE_PIN[1] * np.sin(angle)
    return near(run["cylinder.lift.position"], np.sqrt(square - 2.0 * ROD_PIN * along) - RETRACTED_LENGTH, 1e-9)


def _follows_the_reference(run: Recording) -> bool:
    """Check that piston positions differ by at most 0.6 mm from reference case 4."""
    reference = ((2.4, 0.33054539), (3.4, 0.35783796), (4.9, 0.20968188), (7.0, 0.18263203))
    return all(near(at(run, "cylinder.lift.position", t), x, 6e-4) for t, x in reference)


_CHECKS = (
    Check("the closed valve holds the boom before the command", _holds),
    Check("piston position and boom angle satisfy the law of cosines", _closes_the_triangle),
    Check("the piston positions agree with the reference", _follows_the_reference),
)
