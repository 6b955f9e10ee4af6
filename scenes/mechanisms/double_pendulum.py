"""Double pendulum: two uniform rods on hinges swing down from rest. The motion is chaotic.

The scene is reference case B01 in ``tests/reference/multibody``. All motion is in the x-z plane.
"""

from __future__ import annotations

import math

import gpusim
from gpusim.scene import Camera, Check, Plot, Positive, Scene
from gpusim.scenes._bodies import PLANE_AXIS, in_plane, thin_rod_inertia
from gpusim.scenes._checks import Recording, at, keeps_energy, near

NAME = "double_pendulum"


def build(
    length1: Positive = 1.0,
    length2: Positive = 1.0,
    mass1: Positive = 1.0,
    mass2: Positive = 1.0,
    angle1: float = math.pi / 2.0,
    angle2: float = math.pi / 2.0,
    damping: float = 0.0,
) -> Scene:
    """Build the scene. A rod's frame is at its upper hinge, with the rod along -z.

    Args:
        length1: length of the upper rod, m, above 0.
        length2: length of the lower rod, m, above 0.
        mass1: mass of the upper rod, kg, above 0.
        mass2: mass of the lower rod, kg, above 0.
        angle1: angle of the upper rod from straight down, rad.
        angle2: angle of the lower rod from straight down, rad.
        damping: damping of both hinges, N m s/rad.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -9.81))
    upper = _add_rod(b, "rod1", mass1, length1, in_plane(0.0, 0.0, angle1))
    knee = in_plane(length1 * math.sin(angle1), -length1 * math.cos(angle1), angle2)
    lower = _add_rod(b, "rod2", mass2, length2, knee)
    b.add_joint_revolute(-1, upper, axis=PLANE_AXIS, damping=damping, label="hinge1")
    end = gpusim.Transform((0.0, 0.0, -length1))
    b.add_joint_revolute(upper, lower, parent_xform=end, axis=PLANE_AXIS, damping=damping, label="hinge2")
    return Scene(
        name=NAME,
        description="Two uniform rods on hinges swing down from rest.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=10.0,
        plots=[
            Plot(
                "Hinge angles", "rad", ["joint.hinge1.position", "joint.hinge2.position"], labels=["hinge 1", "hinge 2"]
            ),
            Plot(
                "Hinge rates",
                "rad/s",
                ["joint.hinge1.velocity", "joint.hinge2.velocity"],
                labels=["hinge 1", "hinge 2"],
            ),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
        ],
        camera=Camera((0.0, -6.0, 0.0), (0.0, 0.0, -0.5)),
        checks=[keeps_energy(2e-3), Check("the angles agree with the reference for 2 s", _follows_the_reference)],
    )


def _add_rod(b: gpusim.ModelBuilder, label: str, mass: float, length: float, pose: gpusim.Transform) -> int:
    inertia = thin_rod_inertia(mass, length, "z")
    return b.add_body(mass=mass, inertia=inertia, com=(0.0, 0.0, -0.5 * length), xform=pose, label=label)


def _follows_the_reference(run: Recording) -> bool:
    """Check that the angles in the first seconds differ by at most 1e-4 rad from reference case B01."""
    reference = {1.0: (-1.207716238191, -0.8143910230913), 2.0: (-0.08275830682057, 0.4073620749119)}
    return all(
        near(at(run, "joint.hinge1.position", t), upper, 1e-4)
        and near(at(run, "joint.hinge2.position", t), lower - upper, 1e-4)
        for t, (upper, lower) in reference.items()
    )
