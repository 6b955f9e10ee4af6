"""Emergency stop: commands held at their safe values, by world, whoever gives them.

What is held is part of the state (array STOP), so that copies, resets and replays have it: its first column is 1 in
worlds that are stopped, the others are the values of the commands there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.model.commands import command_steering
from gpusim.model.state import STOP
from gpusim.model.steering import Steering
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


class Stoppable:
    """What a simulation offers of its emergency stop."""

    if TYPE_CHECKING:
        _stop: EmergencyStop

        def world_indices(self, element: str, world: Any) -> Array: ...

    def emergency_stop(self, mask: Any = None) -> None:
        """Latch worlds (as in :meth:`write`; None for all): commands go to their safe values (``Steering.safe``; 0 for
        forces, valves and motors, the reached position for servos) and stay there, whoever gives others, diagrams too.

        It is part of the state: copies hold it, and :meth:`reset` ends it.
        """
        self._stop.latch(self.world_indices("Simulation.emergency_stop", mask))

    def release_stop(self, mask: Any = None) -> None:
        """Let commands through again; those that nobody gives stay as they are."""
        self._stop.release(self.world_indices("Simulation.release_stop", mask))

    @property
    def stopped(self) -> Array:
        """Whether the emergency stop of each world is latched, (num_worlds,)."""
        return self._stop.stopped()


class EmergencyStop:
    """The latch of a simulation, and what it holds."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        sim.add_state(STOP, np.zeros((sim.num_worlds, 1 + len(sim.model.controls))))

    def latch(self, worlds: Array) -> None:
        """Stop worlds; in those that are stopped already nothing is measured anew."""
        fresh = worlds[~self.stopped()[worlds]]
        values = safe_commands(self._sim)  # reads signals: before the state is taken to be written
        held = self._sim.state.arrays[STOP]
        held[fresh, 0], held[fresh, 1:] = 1.0, values[fresh]
        if self._sim.programs is not None:
            self._sim.programs.settle(fresh, values[fresh])
        self._sim.changed()
        self.hold()

    def release(self, worlds: Array) -> None:
        """Let commands through again; they stay as they are until somebody gives others."""
        if self.stopped()[worlds].any():
            self._sim.state.arrays[STOP][worlds, 0] = 0.0
            self._sim.changed()

    def stopped(self) -> Array:
        """Whether each world is stopped, (num_worlds,)."""
        return np.array(self._sim.read_state()[STOP][:, 0] != 0.0)

    def hold(self) -> None:
        """Put the held values over whatever was commanded: before a step, and after each sample of diagrams."""
        self._sim.backend.hold_stopped()

    def adopt(self) -> None:
        """The simulation goes on with another backend."""
        self._sim.backend.keep_along(STOP)


def safe_commands(sim: Simulation) -> Array:
    """Values of all commands in an emergency stop, (num_worlds, commands): as their kinds declare them, or as reached.

    Inputs of diagrams take their defaults.
    """
    values = np.repeat(sim.model.default_controls[None].astype(float), sim.num_worlds, axis=0)
    for label, steering in command_steering(sim.model).items():
        values[:, sim.model.controls[label]] = safe_value(steering, sim)
    return values


def safe_value(steering: Steering, sim: Simulation) -> Any:
    """A command's value in an emergency stop: one number, or (num_worlds,)."""
    if steering.measured is None or steering.safe is not None:
        return float(steering.safe or 0.0)
    signal, axis = steering.measured
    reached = np.asarray(sim.read(signal, numpy=True)).reshape(sim.num_worlds, -1)[:, axis]
    return np.clip(reached, steering.lower, steering.upper)
