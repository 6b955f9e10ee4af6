"""What a timed simulation is given to do, the same in every run."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.simulation import Simulation


def command(sim: Simulation, number: int) -> None:
    """Give every valve of every world another command, the same ones in every run."""
    for label in sim.control:
        if label in valve_labels(sim.model):
            seed = zlib.crc32(label.encode()) + number
            sim.control[label] = np.random.default_rng(seed).uniform(-1.0, 1.0, sim.num_worlds)


def valve_labels(model: Model) -> set[str]:
    """Labels of the actuators with a spool, whose commands are shares of the valve's travel."""
    return {spec.label for group in model.groups if "spool" in group.state for spec in group.specs}


def synchronize(sim: Simulation) -> None:
    """Wait for the GPU."""
    if sim.backend_name == "cuda":
        import cupy

        cupy.cuda.runtime.deviceSynchronize()
