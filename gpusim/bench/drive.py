"""Random commands for timed simulations. The commands are the same in every run."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation


def command(sim: Simulation, number: int, motors: bool = False) -> None:
    """Set a new random command for every valve in every world. With ``motors``, also set all other commands.

    The random values depend only on ``number`` and the label of the command.
    """
    driven = valve_labels(sim.model) | (motor_labels(sim.model) if motors else set())
    for label in sim.control:
        if label in driven:
            seed = zlib.crc32(label.encode()) + number
            sim.control[label] = np.random.default_rng(seed).uniform(-1.0, 1.0, sim.num_worlds)


def run_driven(sim: Simulation, steps: int, hold: int = 0) -> None:
    """Run steps without timing, with the same random commands as in timed steps.

    Args:
        sim: the simulation.
        steps: number of steps.
        hold: number of steps between new commands. With 0, each valve gets one command, and motors get no commands.
    """
    for number, done in enumerate(range(0, steps, hold or max(steps, 1)), 1):
        command(sim, number, hold > 0)
        sim.step(min(hold or steps, steps - done))


def valve_labels(model: Model) -> set[str]:
    """Return the labels of actuators with a valve spool."""
    return {spec.label for group in model.groups if "spool" in group.state for spec in group.specs}


def motor_labels(model: Model) -> set[str]:
    """Return the labels of all commands except valve commands."""
    return set(model.controls) - valve_labels(model)


def synchronize(sim: Simulation) -> None:
    """Wait until the GPU has finished."""
    if sim.backend_name == "cuda":
        import cupy

        cupy.cuda.runtime.deviceSynchronize()
