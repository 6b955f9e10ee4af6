"""Emergency stop: holds commands at their safe values, per world, regardless of their source.

The held values are part of the state (array STOP), so that copies, resets and replays include them. Its first column is
1 in stopped worlds. The others are the values of the commands there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.builder.commands import command_steering
from gpusim.description.ui_hints import UiHints
from gpusim.model.state import STOP
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


class Stoppable:
    """Emergency stop methods of a simulation."""

    if TYPE_CHECKING:
        _stop: EmergencyStop

        def world_indices(self, element: str, world: Any) -> Array: ...

    def emergency_stop(self, mask: Any = None) -> None:
        """Stop worlds (as in :meth:`write`, None for all) and hold their commands at safe values.

        The safe values are ``UiHints.safe``: 0 for forces, valves and motors, the reached position for servos. Other
        commands, also those of diagrams, have no effect. The stop is part of the state: copies include it, and
        :meth:`reset` ends it.
        """
        self._stop.latch(self.world_indices("Simulation.emergency_stop", mask))

    def release_stop(self, mask: Any = None) -> None:
        """Let commands take effect again. Commands that are not written keep their values."""
        self._stop.release(self.world_indices("Simulation.release_stop", mask))

    @property
    def stopped(self) -> Array:
        """Whether the emergency stop of each world is latched, (num_worlds,)."""
        return self._stop.stopped()


class EmergencyStop:
    """The latch of a simulation, and the held commands."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        sim.add_state(STOP, np.zeros((sim.num_worlds, 1 + len(sim.model.controls))))

    def latch(self, worlds: Array) -> None:
        """Stop worlds. Worlds that are stopped already keep their held values."""
        fresh = worlds[~self.stopped()[worlds]]
        values = safe_commands(self._sim)  # reads signals, so it comes before the change of the state
        held = self._sim.state.arrays[STOP]
        held[fresh, 0], held[fresh, 1:] = 1.0, values[fresh]
        if self._sim.programs is not None:
            self._sim.programs.settle(fresh, values[fresh])
        self._sim.invalidate()
        self.hold()

    def release(self, worlds: Array) -> None:
        """Let commands take effect again. They keep their values until written."""
        if self.stopped()[worlds].any():
            self._sim.state.arrays[STOP][worlds, 0] = 0.0
            self._sim.invalidate()

    def stopped(self) -> Array:
        """Return whether each world is stopped, (num_worlds,)."""
        return np.array(self._sim.read_state()[STOP][:, 0] != 0.0)

    def hold(self) -> None:
        """Overwrite the commands by the held values: before a step, and after each sample of diagrams."""
        self._sim.backend.hold_stopped()

    def adopt(self) -> None:
        """Register the array with a new backend of the simulation."""
        self._sim.backend.register_array(STOP)


def safe_commands(sim: Simulation) -> Array:
    """Return the emergency-stop values of all commands, (num_worlds, commands): declared by their kinds, or as reached.

    Inputs of diagrams take their defaults.
    """
    values = np.repeat(sim.model.default_controls[None].astype(float), sim.num_worlds, axis=0)
    for label, ui_hints in command_steering(sim.model).items():
        values[:, sim.model.controls[label]] = safe_value(ui_hints, sim)
    return values


def safe_value(ui_hints: UiHints, sim: Simulation) -> Any:
    """Return a command's emergency-stop value: one number, or (num_worlds,)."""
    if ui_hints.measured is None or ui_hints.safe is not None:
        return float(ui_hints.safe or 0.0)
    signal, axis = ui_hints.measured
    reached = np.asarray(sim.read(signal, numpy=True)).reshape(sim.num_worlds, -1)[:, axis]
    return np.clip(reached, ui_hints.lower, ui_hints.upper)
