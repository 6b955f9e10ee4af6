"""The whole step on one screen: every backend runs these stages in this order."""

from __future__ import annotations

from gpusim.backends.base import Stages
from gpusim.solver.config import SolverConfig


def step(stages: Stages, config: SolverConfig, dt: float) -> None:
    """Advance all worlds by ``dt`` seconds in ``config.substeps`` equal parts."""
    h = dt / config.substeps
    stages.collide(dt)  # pairs of shapes that are close, contact points, colors
    for _ in range(config.substeps):
        substep(stages, config, h)


def substep(stages: Stages, config: SolverConfig, h: float) -> None:
    """Velocities from t - h_prev/2 to t + h/2, then positions from t to t + h."""
    impulses(stages, h)
    if config.scheme == "papers":
        stages.split_impulses()  # displacement that takes back position errors
    stages.commit()  # actuators' own variables
    stages.drift()  # x += h v, midpoint rotation
    stages.settle()  # velocities without what took overlaps back; what landed leaves with its speed
    if config.scheme == "second_order":
        stages.positions()  # rigid rows back to zero, velocities not touched


def impulses(stages: Stages, h: float) -> None:
    """The part that changes velocities only."""
    stages.prepare(h)  # Jacobians, M^-1 J^T, row velocities before the kick
    stages.actuate()  # forces, laws of springs, motors, cylinders, limits, friction
    stages.kick()  # v += H (g + f/m), L += H tau
    stages.solve()  # direct: block LDL^T; colored: sweeps. Curvature bias inside


def sense(stages: Stages, config: SolverConfig, h: float) -> None:
    """Velocities and forces at t_n from a trial kick; the caller keeps the state as it is."""
    stages.collide(h * config.substeps)
    impulses(stages, h)
    stages.sense()
