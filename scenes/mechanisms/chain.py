"""A chain of light links carries a heavy ball, or swings freely.

With ``horizontal=False``, the scene is reference case B03 in ``tests/reference/multibody``, in the x-z plane. The chain
hangs at rest. The mass ratio is 1:1000.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

import gpusim
from gpusim.scene import Camera, Check, NotNegative, Plot, Positive, Range, Scene
from gpusim.scenes._bodies import PLANE_AXIS, in_plane, thin_rod_inertia
from gpusim.scenes._checks import GAPS, Recording, joints_stay_closed, keeps_energy, near

NAME = "chain"
BALL_RADIUS = 0.25
MAX_LINKS = 10_000


def build(
    links: Annotated[int, Range(1, MAX_LINKS)] = 10,
    link_length: Positive = 0.2,
    link_mass: Positive = 0.1,
    mass_ratio: NotNegative = 1000.0,
    horizontal: bool = True,
    joint: Literal["revolute", "ball"] = "revolute",
    damping: float = 0.0,
) -> Scene:
    """Build the scene. A link's frame is at its upper end, with the link along -z.

    Args:
        links: number of links, 1 to 10000.
        link_length: length of a link, m, above 0.
        link_mass: mass of a link, kg, above 0.
        mass_ratio: mass of the ball divided by the mass of one link, 0 (no ball) or more.
        horizontal: True if the chain starts along x and swings down, False if it hangs at rest.
        joint: "revolute" (planar) or "ball".
        damping: damping of every joint, N m s/rad.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    angle = math.pi / 2.0 if horizontal else 0.0
    along = (math.sin(angle) * link_length, -math.cos(angle) * link_length)
    inertia = thin_rod_inertia(link_mass, link_length, "z")
    com = (0.0, 0.0, -0.5 * link_length)
    previous = -1
    for i in range(links):
        pose = in_plane(i * along[0], i * along[1], angle)
        link = b.add_body(mass=link_mass, inertia=inertia, com=com, xform=pose, label=f"link{i}")
        _add_joint(b, joint, i, previous, link, link_length, damping)
        previous = link
    if mass_ratio > 0.0:
        mass = mass_ratio * link_mass
        pose = in_plane(links * along[0], links * along[1], angle)
        ball = b.add_body(mass=mass, inertia=(0.4 * mass * BALL_RADIUS**2,) * 3, xform=pose, label="ball")
        _add_joint(b, joint, links, previous, ball, link_length, damping)
    length, mass_fraction = links * link_length, links / mass_ratio if mass_ratio else math.inf
    swings = Check("the ball swings down like on a rod", lambda run: _swings_down(run, length, mass_fraction))
    return Scene(
        name=NAME,
        description="A chain of light links carries a heavy ball, or swings freely.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=10.0,
        plots=_plots(links, joint, mass_ratio > 0.0),
        camera=Camera((0.0, -3.0 * links * link_length, 0.0), (0.0, 0.0, -0.5 * links * link_length)),
        checks=[joints_stay_closed(1e-3), keeps_energy(0.1, until=2.0), swings],
    )


def _add_joint(
    b: gpusim.ModelBuilder, joint: str, number: int, parent: int, child: int, length: float, damping: float
) -> None:
    """Add the joint with the index ``number`` between the parent's lower end and the child's origin."""
    end = gpusim.Transform((0.0, 0.0, -length if number else 0.0))
    label = f"joint{number}"
    if joint == "ball":
        b.add_joint_ball(parent, child, parent_xform=end, damping=damping, label=label)
    else:
        b.add_joint_revolute(parent, child, parent_xform=end, axis=PLANE_AXIS, damping=damping, label=label)


def _plots(links: int, joint: str, ball: bool) -> list[Plot]:
    last = "ball" if ball else f"link{links - 1}"
    plots = [
        Plot(f"Position of the last body ({last})", "m", [f"body.{last}.position"]),
        Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
        Plot("Largest joint gap", "m", ["sim.joint_drift", "sim.joint_drift_peak"], labels=GAPS),
    ]
    if joint == "revolute":
        plots.insert(0, Plot("Angle of the first joint", "rad", ["joint.joint0.position"]))
    return plots


def _swings_down(run: Recording, length: float, mass_fraction: float) -> bool:
    """Check the time at which the ball passes below the anchor.

    A heavy ball keeps the chain straight. The chain then swings down from horizontal like a rod.
    """
    x = run["body.ball.position"][:, 0, 0]
    crossing = int(np.argmax(x < 0.0))
    time = np.interp(0.0, x[[crossing, crossing - 1]], run["time"][[crossing, crossing - 1]])
    expected = 1.8540746773 * math.sqrt(length * (1.0 + mass_fraction / 3.0) / (1.0 + mass_fraction / 2.0) / 9.81)
    return crossing > 0 and near(time, expected, 1e-3 * expected)
