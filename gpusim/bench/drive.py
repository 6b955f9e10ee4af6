"""Commands for timed simulations, the same in every run."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation


def command(sim: Simulation, number: int, motors: bool = False) -> None:
    """Give every valve of every world a new random command, and motors too if asked, the same in every run."""
    driven = valve_labels(sim.model) | (motor_labels(sim.model) if motors else set())
    for label in sim.control:
        if label in driven:
            seed = zlib.crc32(label.encode()) + number
            sim.control[label] = np.random.default_rng(seed).uniform(-1.0, 1.0, sim.num_worlds)


def run_driven(sim: Simulation, steps: int, hold: int = 0) -> None:
    """Run steps before or in addition to the timed ones, with the same kind of commands.

    Args:
        sim: the simulation.
        steps: number of steps.
        hold: steps between new motor commands; 0: only valves get commands, once.
    """
    for number, done in enumerate(range(0, steps, hold or max(steps, 1)), 1):
        command(sim, number, hold > 0)
        sim.step(min(hold or steps, steps - done))


def valve_labels(model: Model) -> set[str]:
    """Return the labels of actuators with a spool, whose commands are fractions of the valve's travel."""
    return {spec.label for group in model.groups if "spool" in group.state for spec in group.specs}


def motor_labels(model: Model) -> set[str]:
    """Return the labels of the other commands, the humanoid's motors: fractions of their maximum torque."""
    return set(model.controls) - valve_labels(model)


def synchronize(sim: Simulation) -> None:
    """Wait for the GPU."""
    if sim.backend_name == "cuda":
        import cupy

        cupy.cuda.runtime.deviceSynchronize()
