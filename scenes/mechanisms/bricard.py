"""Bricard's mechanism of five bars and six hinges has one redundant constraint and one degree of freedom.

The scene is reference case A04 in ``tests/reference/multibody`` (IFToMM benchmark). As in the published benchmark,
gravity acts along -y.
"""

from __future__ import annotations

import gpusim
from gpusim.scene import Camera, Check, Plot, Positive, Scene
from gpusim.scenes._bodies import box_inertia
from gpusim.scenes._checks import GAPS, Recording, at, joints_stay_closed, keeps_energy, near

NAME = "bricard"
Vector = tuple[float, float, float]
#: Hinge points on the edges of the unit cube. Bar i connects the points i-1 and i.
POINTS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
HINGE_AXES = (Y, Z, X, Y, Z, X)


def build(length: Positive = 1.0, width: Positive = 0.1, mass: Positive = 1.0) -> Scene:
    """Build the scene, at rest. The frame of each bar is at the bar's second hinge, parallel to the world frame.

    Args:
        length: length of every bar, m, above 0.
        width: width of the square section, m, above 0.
        mass: mass of every bar, kg, above 0.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, -9.81, 0.0))
    bodies = [-1]
    for i in range(1, len(POINTS)):
        start, end = _point(i - 1, length), _point(i, length)
        com = (0.5 * (start[0] - end[0]), 0.5 * (start[1] - end[1]), 0.5 * (start[2] - end[2]))
        pose = gpusim.Transform(end)
        bodies.append(
            b.add_body(
                mass=mass, inertia=box_inertia(mass, _size(com, length, width)), com=com, xform=pose, label=f"bar{i}"
            )
        )
    bodies.append(-1)
    for i, axis in enumerate(HINGE_AXES):
        _add_hinge(b, i, bodies[i], bodies[i + 1], axis, length)
    return Scene(
        name=NAME,
        description="Bricard's mechanism: five bars, six hinges, one redundant constraint.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=10.0,
        plots=[
            Plot("End of bar 2", "m", ["body.bar2.position"]),
            Plot("Hinge angles", "rad", [f"joint.hinge{i}.position" for i in range(5)]),
            Plot("Energy", "J", ["sim.kinetic_energy", "sim.potential_energy"], labels=["kinetic", "potential"]),
            Plot("Largest joint gap", "m", ["sim.joint_drift", "sim.joint_drift_peak"], labels=GAPS),
        ],
        camera=Camera((2.5, 1.5, 4.0), (0.3, -0.6, 0.2)),
        checks=[
            keeps_energy(6e-6),
            joints_stay_closed(1e-6),
            Check("the positions of the end of bar 2 agree with the reference", _follows_the_reference),
        ],
    )


def _size(com: Vector, length: float, width: float) -> Vector:
    """Return the edge lengths (m) of a bar along the world axes."""
    x, y, z = (length if c else width for c in com)
    return x, y, z


def _point(i: int, length: float) -> Vector:
    x, y, z = (length * float(c) for c in POINTS[i])
    return x, y, z


def _add_hinge(b: gpusim.ModelBuilder, i: int, parent: int, child: int, axis: Vector, length: float) -> None:
    """Add hinge i."""
    here = _point(i, length)
    if child == -1:  # the last hinge closes the loop, with the world as parent
        parent, child = -1, parent
        b.add_joint_revolute(-1, child, parent_xform=gpusim.Transform(here), axis=axis, label=f"hinge{i}")
        return
    end = _point(i + 1, length)
    back = gpusim.Transform((here[0] - end[0], here[1] - end[1], here[2] - end[2]))
    base = gpusim.Transform(here) if parent == -1 else gpusim.Transform()
    b.add_joint_revolute(parent, child, parent_xform=base, child_xform=back, axis=axis, label=f"hinge{i}")


def _follows_the_reference(run: Recording) -> bool:
    """Check that positions differ by at most 5 um from reference case A04."""
    reference = {
        1.0: (0.27448131926462316, -0.886707938734672, -0.462330002687376),
        5.0: (0.9999327423021172, -0.9999999977383531, -6.725543608383765e-05),
        10.0: (0.9997309873038321, -0.9999999638258172, -0.00026897651225240107),
    }
    return all(near(at(run, "body.bar2.position", t), p, 5e-6) for t, p in reference.items())
