"""A quarter car with spring and damper drives over a step in the road.

The scene is reference case 3b in ``tests/reference/hydraulics``. Positions are relative to the static equilibrium.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gpusim
from gpusim.command_schedule import Schedule
from gpusim.scene import Camera, Check, Plot, Positive, Scene
from gpusim.scenes._checks import Recording, near

NAME = "quarter_car"
GRAVITY = 9.81
UP = (0.0, 0.0, 1.0)
WHEEL_HEIGHT, BODY_HEIGHT = 0.3, 0.9  # heights in equilibrium, m


def build(
    body_mass: Positive = 300.0,
    wheel_mass: Positive = 40.0,
    spring_stiffness: Positive = 2e4,
    spring_damping: float = 1500.0,
    tire_stiffness: Positive = 2e5,
    tire_damping: float = 100.0,
    step_height: float = 0.05,
    step_time: float = 0.1,
) -> Scene:
    """Build the scene. The car starts in static equilibrium.

    Args:
        body_mass: sprung mass, kg, above 0.
        wheel_mass: unsprung mass, kg, above 0.
        spring_stiffness: stiffness between body and wheel, N/m, above 0.
        spring_damping: damping between body and wheel, N s/m.
        tire_stiffness: stiffness between wheel and road, N/m, above 0.
        tire_damping: damping between wheel and road, N s/m.
        step_height: height of the road's step, m.
        step_time: time of the step, s.
    """
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    road = b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0), kinematic=True, label="road")
    wheel = _add_mass(b, "wheel", wheel_mass, WHEEL_HEIGHT)
    body = _add_mass(b, "body", body_mass, BODY_HEIGHT)
    origin = (0.0, 0.0, 0.0)
    sag = body_mass * GRAVITY / spring_stiffness
    b.add_spring(
        wheel,
        body,
        origin,
        origin,
        stiffness=spring_stiffness,
        damping=spring_damping,
        rest_length=BODY_HEIGHT - WHEEL_HEIGHT + sag,
        label="spring",
    )
    b.add_spring(
        road,
        wheel,
        origin,
        origin,
        stiffness=tire_stiffness,
        damping=tire_damping,
        rest_length=WHEEL_HEIGHT + (body_mass + wheel_mass) * GRAVITY / tire_stiffness,
        label="tire",
    )
    return Scene(
        name=NAME,
        description="A quarter of a car drives over a step in the road.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=3.0,
        plots=[
            Plot(
                "Height over equilibrium",
                "m",
                ["joint.body.position", "joint.wheel.position"],
                labels=["body", "wheel"],
            ),
            Plot("Velocity", "m/s", ["joint.body.velocity", "joint.wheel.velocity"], labels=["body", "wheel"]),
            Plot("Spring forces", "N", ["spring.spring.force", "spring.tire.force"], labels=["spring", "tire"]),
        ],
        camera=Camera((1.5, -3.0, 1.0), (0.0, 0.0, 0.5)),
        schedule=_road_step(step_height, step_time),
        checks=[Check("the heights of body and wheel agree with the linear equations", _follows_the_closed_form)],
    )


def _add_mass(b: gpusim.ModelBuilder, label: str, mass: float, height: float) -> int:
    """Add a body on a vertical rail."""
    pose = gpusim.Transform((0.0, 0.0, height))
    index = b.add_body(mass=mass, inertia=(mass / 6.0,) * 3, xform=pose, label=label)
    b.add_joint_prismatic(-1, index, parent_xform=pose, axis=UP, label=label)
    return index


def _road_step(height: float, time: float) -> Callable[[gpusim.Simulation, float], None]:
    """Return a schedule that writes the road's position.

    The position is the mean height of the road over one simulation step.
    """
    road = Schedule([(time, 0.0), (time, height)])
    last = 0.0

    def write(sim: gpusim.Simulation, t: float) -> None:
        nonlocal last
        half = 0.5 * sim.step_size
        z = road.mean(t - half, t + half)
        if z != last:
            sim.write("body.road.position", (0.0, 0.0, z))
            last = z

    return write


def _follows_the_closed_form(run: Recording) -> bool:
    """Check the final spring forces, and the positions against the closed-form solution (tolerance 0.1 mm)."""
    body, wheel, spring, damping, tire, tire_damping = 300.0, 40.0, 2e4, 1500.0, 2e5, 100.0
    pull = np.array([[-spring, spring, -damping, damping], [spring, -spring - tire, damping, -damping - tire_damping]])
    a = np.vstack([np.eye(2, 4, 2), pull / np.array([[body], [wheel]])])
    values, vectors = np.linalg.eig(a)
    amplitudes = np.linalg.solve(vectors, np.array([-0.05, -0.05, 0.0, 0.0], complex))
    since = np.maximum(run["time"] - 0.1, 0.0)
    moved = ((vectors * amplitudes)[None] * np.exp(values * since[:, None])[:, None]).sum(axis=2).real + 0.05
    positions = np.stack([run["joint.body.position"][:, 0], run["joint.wheel.position"][:, 0]], axis=1)
    forces = run["spring.tire.force"][-1], run["spring.spring.force"][-1]
    rests = near(forces[0], (body + wheel) * GRAVITY, 5.0) and near(forces[1], body * GRAVITY, 5.0)
    return rests and near(positions, moved[:, :2], 1e-4)
