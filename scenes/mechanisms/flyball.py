"""A flyball governor with stiff springs and dampers. Spinning arms lift a slider.

The scene is reference case A05 in ``tests/reference/multibody`` (IFToMM benchmark).
"""

from __future__ import annotations

import math

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Scene
from gpusim.scenes._bodies import box_inertia
from gpusim.scenes._checks import Recording, at, near

NAME = "flyball"
GRAVITY = 9.81
SHAFT_HEIGHT = 1.0
HALF_WIDTH = 0.05  # half width of the slider, and distance of rod hinges and spring ends from the axis, m
ROD_LENGTH = 1.0
ROD_MASS = 0.3
SHAFT_MASS = 0.3
THIN = 0.01  # edge length of the square section of rods and shaft, m
ROD_ANGLE = math.radians(30.0)  # angle of the rods below the horizontal


def build(
    spin: float = 2.0 * math.pi,
    spring_stiffness: float = 8e5,
    spring_damping: float = 4e4,
    slider_mass: Positive = 3.0,
    ball_mass: NotNegative = 5.0,
) -> Scene:
    """Build the scene. The shaft's frame is at the ground. Each rod's frame is at the rod's hinge.

    Args:
        spin: initial angular velocity of the governor about its shaft, rad/s.
        spring_stiffness: stiffness of each spring, N/m.
        spring_damping: damping of each spring, N s/m.
        slider_mass: mass of the slider, kg, above 0.
        ball_mass: mass of each of the two balls (point masses), kg, 0 or more.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    angular_velocity = (0.0, 0.0, spin)
    shaft = b.add_body(
        mass=SHAFT_MASS,
        inertia=box_inertia(SHAFT_MASS, (THIN, THIN, SHAFT_HEIGHT)),
        com=(0.0, 0.0, 0.5 * SHAFT_HEIGHT),
        angular_velocity=angular_velocity,
        label="shaft",
    )
    edge = 2.0 * HALF_WIDTH
    slider_height = SHAFT_HEIGHT - ROD_LENGTH * math.sin(ROD_ANGLE)
    slider = b.add_body(
        mass=slider_mass,
        inertia=box_inertia(slider_mass, (edge, edge, edge)),
        xform=gpusim.Transform((0.0, 0.0, slider_height)),
        angular_velocity=angular_velocity,
        label="slider",
    )
    b.add_joint_revolute(-1, shaft, axis=(0.0, 0.0, 1.0), label="spindle")
    b.add_joint_prismatic(shaft, slider, axis=(0.0, 0.0, 1.0), label="slider")
    for name, side in (("right", 1.0), ("left", -1.0)):
        rod = _add_rod(b, name, side, ball_mass, spin)
        hinge = gpusim.Transform((side * HALF_WIDTH, 0.0, SHAFT_HEIGHT))
        b.add_joint_revolute(shaft, rod, parent_xform=hinge, axis=(0.0, 1.0, 0.0), label=name)
        b.add_spring(
            slider,
            rod,
            (side * HALF_WIDTH, 0.0, 0.0),
            (side * 0.5 * ROD_LENGTH, 0.0, 0.0),
            stiffness=spring_stiffness,
            damping=spring_damping,
            rest_length=0.5 * ROD_LENGTH,
            label=name,
        )
    return Scene(
        name=NAME,
        description="A stiff flyball governor: spinning arms lift a slider through stiff springs.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=10.0,
        plots=[
            Plot("Slider height", "m", ["joint.slider.position"]),
            Plot("Speed of the shaft", "rad/s", ["joint.spindle.velocity"]),
            Plot("Spring forces", "N", ["spring.right.force", "spring.left.force"], labels=["right", "left"]),
        ],
        camera=Camera((2.0, -3.0, 1.5), (0.0, 0.0, 0.6)),
        checks=[
            Check("the angular momentum is constant", lambda run: _keeps_momentum(run, ball_mass)),
            Check("the heights of the slider agree with the reference", _follows_the_reference),
        ],
    )


def _add_rod(b: gpusim.ModelBuilder, name: str, side: float, ball_mass: float, spin: float) -> int:
    """Add a rod and its ball as one body, on the right (+x) or left (-x) of the shaft, 30 degrees below horizontal."""
    mass = ROD_MASS + ball_mass
    com = (0.5 * ROD_MASS + ball_mass) * ROD_LENGTH / mass
    axial, transverse, _ = box_inertia(ROD_MASS, (ROD_LENGTH, THIN, THIN))
    # parallel axis theorem for the rod's center and the ball about the common center of mass
    transverse += ROD_MASS * (com - 0.5 * ROD_LENGTH) ** 2 + ball_mass * (ROD_LENGTH - com) ** 2
    pose = gpusim.Transform.from_axis_angle((side * HALF_WIDTH, 0.0, SHAFT_HEIGHT), (0.0, 1.0, 0.0), side * ROD_ANGLE)
    radius = side * (HALF_WIDTH + com * math.cos(ROD_ANGLE))
    return b.add_body(
        mass=mass,
        inertia=(axial, transverse, transverse),
        com=(side * com, 0.0, 0.0),
        xform=pose,
        linear_velocity=(0.0, spin * radius, 0.0),
        angular_velocity=(0.0, 0.0, spin),
        label=name,
    )


def _keeps_momentum(run: Recording, ball_mass: float) -> bool:
    """Check that the angular momentum about the shaft is constant."""
    level = np.sqrt(np.maximum(0.0, 1.0 - ((SHAFT_HEIGHT - run["joint.slider.position"]) / ROD_LENGTH) ** 2))
    ball_radius = HALF_WIDTH + ROD_LENGTH * level
    rod_radius = HALF_WIDTH + 0.5 * ROD_LENGTH * level
    rods = ball_mass * ball_radius**2 + ROD_MASS * (rod_radius**2 + (ROD_LENGTH * level) ** 2 / 12.0)
    slider = 3.0 * (2.0 * HALF_WIDTH) ** 2 / 6.0
    momentum = (2.0 * rods + slider) * run["joint.spindle.velocity"]
    return near(momentum, momentum[0], 2e-3 * abs(float(momentum[0, 0])))


def _follows_the_reference(run: Recording) -> bool:
    """Check that slider positions differ by at most 50 um from reference case A05."""
    reference = {0.5: 0.7432494247863987, 1.0: 0.5014209223795723, 5.0: 0.535563103721595, 10.0: 0.6196229170613062}
    return all(near(at(run, "joint.slider.position", t), s, 5e-5) for t, s in reference.items())
