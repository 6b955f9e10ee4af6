"""Hinges with dry friction between links on the ground.

With joints alone the least-index rule ends every switching of modes (Murty 1974). With contacts, this rule does not
always terminate.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpusim import Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.reference.joints.laws import SLIDE_UP, STICK, AxisLaw
from gpusim.reference.joints.modes import REVERSAL_FRACTION, adjacent_modes, reversal_fractions


def limp_chain(links: int, seed: int, friction: float) -> Model:
    rng, builder = np.random.default_rng(seed), ModelBuilder()
    builder.add_shape_plane(-1)
    half = np.array([0.1, 0.02, 0.02])
    for k in range(links):
        mass = 0.1 if k else 5.0
        inertia = mass / 3 * (np.sum(half**2) - half**2)
        body = builder.add_body(mass, inertia, xform=Transform((0.2 * k, 0.0, 0.15)))
        builder.add_shape_box(body, half)
        if k:
            ends, axis = (Transform((0.1, 0, 0)), Transform((-0.1, 0, 0))), tuple(rng.normal(size=3))
            builder.add_joint_revolute(body - 1, body, *ends, axis=axis, friction=friction)
    return builder.finalize()


@pytest.mark.native
@pytest.mark.parametrize(
    ("links", "seed", "friction"), [(3, 3, 0.1), (3, 3, 1.0), (4, 4, 0.1), (6, 0, 0.1), (6, 2, 1.0), (6, 4, 1.0)]
)
def test_every_solve_ends(links: int, seed: int, friction: float) -> None:
    sim = Simulation(limp_chain(links, seed, friction), backend="native", config=SolverConfig(dt=1e-3))
    sim.step(700)
    assert sim.read("sim.not_converged")[0] == 0
    assert np.abs(sim.read("sim.kinetic_energy")[0]) < 1e-10


def test_a_lenient_slide_ends_late() -> None:
    law = AxisLaw.__new__(AxisLaw)
    law.friction, law.impulse, law.slope = np.full((4, 1), 3.0), np.zeros((4, 1)), np.zeros((4, 1))
    law.velocity_lower, law.velocity_upper = np.full((4, 1), -np.inf), np.full((4, 1), np.inf)
    law.clamped_terms = []
    part = np.array([0.5, 0.5, 1.5, 1.5])
    speed, response = -part[:, None] * REVERSAL_FRACTION * 3.0 * 2.0, np.full((4, 1), 2.0)
    modes = np.full((4, 1), SLIDE_UP)
    share = reversal_fractions(np.array([True, False, True, True]), np.array([0, 9, 0, 1]))
    new = adjacent_modes(law, modes, speed, np.full((4, 1), -3.0), response, share)
    assert new.tolist() == [[SLIDE_UP], [STICK], [STICK], [SLIDE_UP]]
