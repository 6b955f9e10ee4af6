"""Actuator forces that are nonlinear in the velocity u+ after the step.

In each solver pass, a linear law P - D u+ replaces the force law of an axis row. The linear law is the tangent of the
force law at a trial velocity. The trial velocity solves the axis row while all other rows stay constant. If the slope D
changes little, the linear law keeps its slope. The direct solver then needs no new factorization.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from gpusim.description.actuator_kinds import ActuatorType, Group, StepBuffers
from gpusim.typing import Array

ROUNDS, SETTLED, ROUNDING = 40, 1e-6, 1e-14
"""Newton's method in ``solve_alone``: maximum iterations, and tolerances relative to velocity change and velocity."""
KEPT = 0.2
"""If a row's slope changes by more than this fraction, the solver updates the slope and factors the matrix again."""
SWINGING, MIN_SHARE = 0.5, 0.05
"""An opposite velocity change is an oscillation above these fractions of the previous change and of the velocity."""


class RefittedLaw(ActuatorType, ABC):
    """Base class of actuators with an impulse that decreases nonlinearly with the velocity u+ of one axis row."""

    kernel: ClassVar[tuple[str, ...]] = ("evaluate", "relinearize")
    kernel_scratch: ClassVar[tuple[str, ...]] = ("guess", "guess_impulse", "move")
    nonlinear: ClassVar[bool] = True

    @abstractmethod
    def kick_law(self, group: Group, work: StepBuffers, rate: Array) -> tuple[Array, Array]:
        """Return the impulse p for the new velocity u+ = ``rate``, and -dp/du+ >= 0, (num_worlds, n) each."""

    def solve_alone(
        self, group: Group, work: StepBuffers, guess: Array, given: Array, others: Array
    ) -> tuple[Array, Array, Array]:
        """Solve ``u = guess + response (p(u) - given)`` for each axis row alone.

        Return u, the impulse p(u) and the slope.

        Args:
            group, work: actuator group with the force law, and work arrays of the step.
            guess: row velocity from the solver (num_worlds, n).
            given: impulse of the actuator that belongs to the row velocity ``guess``.
            others: sum of the slopes of all other force laws on the row. These slopes reduce the response of the row.
        """
        response = work.response[:, group.axis].astype(np.float64)
        response = response / (1.0 + response * others)
        rate = guess
        impulse, slope = self.kick_law(group, work, rate)
        change = response * (impulse - given)
        low, high = guess + np.minimum(change, 0.0), guess + np.maximum(change, 0.0)
        tolerance = SETTLED * np.abs(change) + ROUNDING * (np.abs(guess) + response * np.abs(impulse))
        for _ in range(ROUNDS):
            error = rate - guess - response * (impulse - given)
            is_active = np.abs(error) > tolerance
            if not is_active.any():
                break
            low, high = np.where(error > 0.0, low, rate), np.where(error > 0.0, rate, high)
            step = rate - error / (1.0 + response * slope)
            step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            rate = np.where(is_active, step, rate)
            impulse, slope = self.kick_law(group, work, rate)
        return rate, impulse, slope

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the linear law P - D u+ that approximates the force law."""
        key = f"{self.name}.guess"
        if velocity is None:
            rate = work.rate[:, group.axis].astype(np.float64)
            impulse, slope = self.kick_law(group, work, rate)
            stored = np.stack([rate, impulse, np.zeros_like(rate)])
        else:
            guess, (_, before, drag) = velocity.astype(np.float64), work.law.terms[self.name]
            others = np.maximum(work.law.slope[:, group.axis] - drag, 0.0)
            rate, impulse, slope = self.solve_alone(group, work, guess, before - drag * guess, others)
            slope = np.where(np.abs(slope - drag) <= KEPT * (slope + others), drag, slope)
            last, last_impulse, last_move = work.scratch[key]
            move, impulse_here = guess - last, self.kick_law(group, work, guess)[0]
            threshold = np.maximum(SWINGING * np.abs(last_move), MIN_SHARE * np.abs(guess))
            swings = (move * last_move < 0.0) & (np.abs(move) > threshold)
            secant = (last_impulse - impulse_here) / np.where(swings, move, 1.0)
            rate, impulse = np.where(swings, guess, rate), np.where(swings, impulse_here, impulse)
            slope = np.where(swings, secant, slope)
            # Converged worlds keep their line while other worlds continue.
            stored = np.where(work.active, np.stack([guess, impulse_here, move]), work.scratch[key])
            impulse = np.where(work.active, impulse, before - drag * rate)
            slope = np.where(work.active, slope, drag)
        work.scratch[key] = stored
        work.add_law(group, impulse + slope * rate, slope)
