"""A slider-crank with a spring on its slider oscillates.

The scene is reference case E01 in ``tests/reference/multibody``. All motion is in the x-z plane.
"""

from __future__ import annotations

import math

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, Plot, Positive, Scene, require
from gpusim.scenes._bodies import PLANE_AXIS, in_plane, thin_rod_inertia
from gpusim.scenes._checks import Recording, keeps_energy, near

NAME = "slider_crank"
WALL = 0.5  # position of the spring's fixed end, m


def build(
    crank_length: Positive = 0.1,
    rod_length: float = 0.3,
    crank_mass: Positive = 0.5,
    rod_mass: Positive = 0.8,
    slider_mass: Positive = 1.0,
    spring_stiffness: float = 2000.0,
    spring_rest_length: float = 0.1,
    crank_angle: float = math.pi / 3.0,
    crank_rate: float = 10.0,
) -> Scene:
    """Build the scene. The frame of each link is at the link's first joint. The x axis is along the link.

    Args:
        crank_length: length of the crank, m, above 0.
        rod_length: length of the connecting rod, m, above ``crank_length``. ``crank_length + rod_length`` must be below
            0.5.
        crank_mass: mass of the crank, kg, above 0.
        rod_mass: mass of the connecting rod, kg, above 0.
        slider_mass: mass of the slider, kg, above 0.
        spring_stiffness: stiffness of the spring, N/m.
        spring_rest_length: rest length of the spring, m.
        crank_angle: initial angle of the crank from +x towards +z, rad.
        crank_rate: initial rate of the crank, rad/s.
    """
    require(rod_length > crank_length, NAME, "rod_length", rod_length, "must be above the crank's length")
    max_extent = crank_length + rod_length
    require(max_extent < WALL, NAME, "rod_length", rod_length, f"must keep the slider in front of the wall at {WALL} m")
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    sin_a, cos_a = math.sin(crank_angle), math.cos(crank_angle)
    pin = (crank_length * cos_a, crank_length * sin_a)
    pin_rate = (-pin[1] * crank_rate, pin[0] * crank_rate)
    rod_angle = -math.asin(pin[1] / rod_length)
    rod_rate = -pin_rate[1] / (rod_length * math.cos(rod_angle))
    slider_x = pin[0] + rod_length * math.cos(rod_angle)
    slider_rate = pin_rate[0] - rod_length * math.sin(rod_angle) * rod_rate
    crank = _add_link(b, "crank", crank_mass, crank_length, (0.0, 0.0), (0.0, 0.0), crank_angle, crank_rate)
    rod = _add_link(b, "rod", rod_mass, rod_length, pin, pin_rate, rod_angle, rod_rate)
    slider = b.add_body(
        mass=slider_mass,
        inertia=(slider_mass * 1e-3,) * 3,  # the slider does not rotate
        xform=in_plane(slider_x, 0.0),
        linear_velocity=(slider_rate, 0.0, 0.0),
        label="slider",
    )
    b.add_joint_revolute(-1, crank, axis=PLANE_AXIS, label="crank")
    crank_end, rod_end = in_plane(crank_length, 0.0), in_plane(rod_length, 0.0)
    b.add_joint_revolute(crank, rod, parent_xform=crank_end, axis=PLANE_AXIS, label="pin")
    b.add_joint_revolute(rod, slider, parent_xform=rod_end, axis=PLANE_AXIS, label="wrist")
    b.add_joint_prismatic(-1, slider, axis=(1.0, 0.0, 0.0), label="slider")
    b.add_spring(
        -1,
        slider,
        (WALL, 0.0, 0.0),
        (0.0, 0.0, 0.0),
        stiffness=spring_stiffness,
        rest_length=spring_rest_length,
        label="spring",
    )
    return Scene(
        name=NAME,
        description="A slider-crank with a spring on its slider oscillates.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=10.0,
        plots=[
            Plot("Crank angle", "rad", ["joint.crank.position"]),
            Plot("Slider position", "m", ["joint.slider.position"]),
            Plot("Spring force", "N", ["spring.spring.force"]),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
        ],
        camera=Camera((0.2, -1.0, 0.3), (0.2, 0.0, 0.0)),
        checks=[
            keeps_energy(0.02),
            Check("slider position and crank angle agree", lambda run: _closes(run, crank_length, rod_length)),
            Check(
                "the spring force follows Hooke's law", lambda run: _pulls(run, spring_stiffness, spring_rest_length)
            ),
        ],
    )


def _add_link(
    b: gpusim.ModelBuilder,
    label: str,
    mass: float,
    length: float,
    start: tuple[float, float],
    start_velocity: tuple[float, float],
    angle: float,
    rate: float,
) -> int:
    """Add a thin rod. Its first end is at ``start`` (x, z) and moves with ``start_velocity``."""
    half = 0.5 * length
    vx = start_velocity[0] - half * rate * math.sin(angle)
    vz = start_velocity[1] + half * rate * math.cos(angle)
    return b.add_body(
        mass=mass,
        inertia=thin_rod_inertia(mass, length, "x"),
        com=(half, 0.0, 0.0),
        xform=in_plane(*start, angle),
        linear_velocity=(vx, 0.0, vz),
        angular_velocity=(rate * PLANE_AXIS[0], rate * PLANE_AXIS[1], rate * PLANE_AXIS[2]),
        label=label,
    )


def _closes(run: Recording, crank: float, rod: float) -> bool:
    """Check the slider's position against the closed-form solution for the crank angle."""
    angle = run["joint.crank.position"]
    expected = crank * np.cos(angle) + np.sqrt(rod**2 - (crank * np.sin(angle)) ** 2)
    return near(run["joint.slider.position"], expected, 1e-6)


def _pulls(run: Recording, stiffness: float, rest_length: float) -> bool:
    """Check that the spring force differs by at most 1 N from Hooke's law."""
    return near(run["spring.spring.force"], -stiffness * (WALL - run["joint.slider.position"] - rest_length), 1.0)
