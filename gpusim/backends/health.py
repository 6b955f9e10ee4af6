"""Quarantine of failed worlds (NaN or huge numbers), and warnings of lost contact pairs.

A failed world stays in its last valid state. All other worlds continue to run.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from gpusim.backends.bad_commands import BadCommands
from gpusim.backends.base import Backend, Memory
from gpusim.compiler.contact_topology import capacity_message
from gpusim.description.actuator_kinds import Group
from gpusim.description.config import SolverConfig
from gpusim.errors import SimulationError, callers_level
from gpusim.model.model import Model
from gpusim.reference.accuracy import constraint_of
from gpusim.reference.limits import OPEN_SUBSTEPS
from gpusim.typing import Array

# Maximum valid number in the state. Products of larger numbers could overflow.
GREATEST = 1e100
# Maximum valid velocity. All machines are slower, and the square of GREATEST_SPEED does not overflow in float32.
GREATEST_SPEED = 1e9


def _checked(group: Group) -> list[str]:
    """Return the names of the state variables of an actuator kind that must be finite."""
    return [v.name for v in group.type.variables if not v.may_be_unset]


def _common(failed: Mapping[int, str], worlds: Array) -> list[int]:
    """Return the sorted indices of all worlds that are both in ``worlds`` (n,) and in ``failed``."""
    return sorted(failed.keys() & set(worlds.tolist())) if failed else []


class Quarantine:
    """Quarantine of the NumPy backend, which checks the state after every step."""

    def __init__(self, backend: Backend, drivers: Mapping[str, str]) -> None:
        self._backend = backend
        self._bad_commands = BadCommands(backend.work.model, drivers)
        self.stopped: Array = np.zeros(backend.memory.state.num_worlds, dtype=bool)
        self._reasons: dict[int, str] = {}
        self._good = backend.memory.state.copy()

    def check(self) -> None:
        """Restore failed and stopped worlds to the last valid state."""
        if not self.stopped.any() and self._surely_fine():
            self._remember()
            return
        failed = ~self._fine() & ~self.stopped
        for world in np.flatnonzero(failed):
            self._stop(int(world), self._cause(int(world)))
        if self.stopped.any():
            self._backend.memory.state.restore(self._good, np.flatnonzero(self.stopped))
        self._remember()

    def drop_poisoned(self) -> None:
        """Stop worlds with invalid numbers in their state. Call ``drop_poisoned`` before a step."""
        state, bad = self._backend.memory.state, np.zeros(len(self.stopped), dtype=bool)
        # Ignore the numbers of diagrams and the last commands, because no stage reads them.
        unread = ("diagram.", "command_before")
        names = [name for name in state.arrays if not name.startswith(unread)]
        kept = [(state.arrays[name], self._good.arrays[name], name) for name in names]
        for good, group in zip(self._good.groups, state.groups, strict=True):
            kept += [(array, good.state[name], f"{group.type.name} {name}") for name, array in group.state.items()]
        for array, good_array, name in kept:
            if array.dtype.kind != "f" or array.shape != good_array.shape:
                continue
            limit = min(GREATEST, 1e-8 * float(np.finfo(array.dtype).max))
            with np.errstate(over="ignore", invalid="ignore"):
                if np.abs(array).sum() < limit:
                    continue
            # This comparison is False for NaN.
            wrong = (~(np.abs(array) < limit) & (np.abs(good_array) < limit)).reshape(len(bad), -1).any(axis=1)
            for world in np.flatnonzero(wrong & ~bad & ~self.stopped):
                time = float(self._good.arrays["time"][world])
                self._stop(int(world), f"the state's {name} is not finite or above {limit:g} after t = {time:.6g} s")
            bad |= wrong
        if bad.any():
            state.restore(self._good, np.flatnonzero(bad))

    def _stop(self, world: int, reason: str) -> None:
        reason += self._bad_commands.reported(self._backend.memory.read_control()[world])
        self.stopped[world], self._reasons[world] = True, reason
        message = f"world {world} failed and is kept at its last good state: {reason}"
        warnings.warn(message, stacklevel=callers_level())

    def release(self, worlds: Array | None) -> None:
        """Release ``worlds`` from quarantine after a reset."""
        assert worlds is not None
        self.stopped[worlds] = False
        for world in _common(self._reasons, worlds):
            del self._reasons[world]
        self._remember()

    def report(self) -> str:
        """Return a text with one line per stopped world."""
        if not self._reasons:
            return "all worlds are fine"
        return "\n".join(f"world {world}: {why}" for world, why in sorted(self._reasons.items()))

    def reasons(self) -> dict[int, str]:
        """Return the reason for the failure of each stopped world, by world index."""
        return dict(self._reasons)

    def resume(self, failed: Mapping[int, str], worlds: Array) -> None:
        """Stop the restored ``worlds`` (n,) that are in ``failed``. All other restored worlds run."""
        self.release(worlds)
        self._reasons |= {world: failed[world] for world in _common(failed, worlds)}
        self.stopped[list(self._reasons)] = True

    def _remember(self) -> None:
        state = self._backend.memory.state
        for name, array in state.arrays.items():
            np.copyto(self._good.arrays[name], array)
        for good, group in zip(self._good.groups, state.groups, strict=True):
            good.state = {name: array.copy() for name, array in group.state.items()}

    def _surely_fine(self) -> bool:
        """Return True if a quick test shows that all worlds are valid. Otherwise, the full test is necessary."""
        state = self._backend.memory.state.arrays
        total = 0.0
        for name in ("position", "orientation", "linear_velocity", "angular_momentum"):
            total += float(np.abs(state[name]).sum())
        if np.any(self._broken()):
            return False
        total += 0.0 * float(state["command_before"].sum())
        for group in self._backend.memory.state.groups:
            for name in _checked(group):
                total += 0.0 * float(group.state[name].sum())
        return total < GREATEST_SPEED

    def _broken(self) -> Array:
        """Return a mask of the worlds with an open kinematic loop, (num_worlds,)."""
        return np.asarray(self._backend.memory.state.arrays["loop_open"] >= OPEN_SUBSTEPS)

    def _fine(self) -> Array:
        state = self._backend.memory.state.arrays
        fine = ~self._broken()
        for name in ("position", "orientation", "linear_velocity", "angular_momentum"):
            # This comparison is False for NaN.
            fine &= np.all(np.abs(state[name]) < self._bound(name), axis=(1, 2))
        for group in self._backend.memory.state.groups:
            for name in _checked(group):
                fine &= np.all(np.isfinite(group.state[name]), axis=1)
        return np.asarray(fine & np.all(np.isfinite(state["command_before"]), axis=1))

    def _bound(self, name: str) -> Array:
        """Return the maximum valid magnitude in the state array ``name``, (1 or num_worlds, 1 or bodies, 1)."""
        if name != "angular_momentum":
            return np.full((1, 1, 1), GREATEST_SPEED)
        return np.asarray(GREATEST_SPEED * np.maximum(self._backend.work.inertia_largest, 1.0)[..., None])

    def _cause(self, world: int) -> str:
        """Return the message about the first body, actuator or joint with invalid numbers in a failed world."""
        work, state = self._backend.work, self._backend.memory.state.arrays
        time = float(self._good.arrays["time"][world])
        started = work.twist_before[world]
        too_fast = np.flatnonzero(~np.all(np.abs(started) < GREATEST_SPEED, axis=1))
        if too_fast.size:
            speed = float(np.abs(started[too_fast[0]]).max())
            return f"{work.model.bodies[too_fast[0]].element} has velocity = {speed:.3g} after t = {time:.6g} s"
        for group in self._backend.memory.state.groups:
            for name in _checked(group):
                array = group.state[name]
                bad = np.flatnonzero(~np.isfinite(array[world]))
                if bad.size:  # some kinds have several values per actuator
                    spec = group.specs[bad[0] * len(group.specs) // array.shape[1]]
                    return f"{spec.element} has {name} = {array[world, bad[0]]} after t = {time:.6g} s"
        for name in ("linear_velocity", "angular_momentum", "position", "orientation"):
            bounds = np.broadcast_to(self._bound(name), state[name][..., :1].shape)[world]
            bad = np.flatnonzero(~np.all(np.abs(state[name][world]) < bounds, axis=1))
            if bad.size:
                body = work.model.bodies[bad[0]].element if bad[0] < len(work.model.bodies) else "the world"
                return f"{body} has {name} = {state[name][world, bad[0]]} after t = {time:.6g} s"
        if self._broken()[world]:
            return _broken_joint(work.model, float(work.loop_gap[world]), f"after t = {time:.6g} s")
        return f"a command was not finite after t = {time:.6g} s"


def _broken_joint(model: Model, gap: float, after: str) -> str:
    """Return the message about a joint in a loop that does not close."""
    label = model.topology.constraint_labels[constraint_of(gap)]
    return f"joint '{label}' is {gap:.3g} m apart {after}; its loop cannot close"


class CapacityWatch:
    """Monitor that warns if the pair buffer of a world (``SolverConfig.max_pairs``) overflows."""

    def __init__(self, backend: Backend, model: Model, config: SolverConfig) -> None:
        self.backend = backend
        """The watched backend."""
        self._strict, self._warned = config.strict, False
        self.max_pairs = model.contact.capacity(config, model.topology.dynamic)
        self._seen: Array = np.zeros(backend.memory.state.num_worlds, dtype=np.int64)

    @property
    def full(self) -> Array:
        """Return a mask of the worlds that have lost contact pairs since their last reset, (num_worlds,)."""
        return np.asarray(self.backend.memory.read_state().arrays["pair_overflow"] > 0)

    def check(self) -> None:
        """Warn once per simulation of lost contact pairs. With ``SolverConfig.strict``, raise an error instead.

        Raises:
            SimulationError: a world lost contact pairs in the last run, and ``SolverConfig.strict`` is set.
        """
        if not self.max_pairs or (self._warned and not self._strict) or not self.backend.newly("overflowed"):
            return
        lost = self.backend.memory.read_state().arrays["pair_overflow"].astype(np.int64)
        new = np.flatnonzero(lost > self._seen)
        self._seen = lost
        if not new.size:  # the overflow was in a trial step only
            return
        if self._strict:
            raise SimulationError(self._message(new))
        self._warned = True
        warnings.warn(self._message(new), stacklevel=callers_level())

    def release(self, worlds: Array) -> None:
        """Forget the lost contact pairs of ``worlds`` after a reset."""
        self._seen[worlds] = 0

    def resume(self, worlds: Array) -> None:
        """Suppress warnings of contact pairs that the restored ``worlds`` lost before their snapshot."""
        self._seen[worlds] = self.backend.memory.read_state().arrays["pair_overflow"][worlds]
        self._warned |= bool(self._seen[worlds].any())

    def report(self) -> list[str]:
        """Return one line for each world that lost contact pairs."""
        peak = self.backend.memory.read_state().arrays["pair_peak"]
        return [capacity_message(int(peak[w]), self.max_pairs, int(w)) for w in np.flatnonzero(self.full)]

    def _message(self, worlds: Array) -> str:
        peak = self.backend.memory.read_state().arrays["pair_peak"]
        worst = int(worlds[np.argmax(peak[worlds])])
        others = f" ({worlds.size - 1} more worlds ran out too)" if worlds.size > 1 else ""
        return capacity_message(int(peak[worst]), self.max_pairs, worst) + others


# A health word of the kernels is code * INDICES + index + 1 (cuda_kernels/health.cuh).
INDICES = 1 << 24
# For actuators, the index is (number of the actuator) * MAX_VARIABLES + (number of the variable).
MAX_VARIABLES = 16
_WARNED_EACH = 5
STARTED, ACTUATOR, LINEAR, ANGULAR, POSITION, ORIENTATION, COMMAND, JOINT = range(8)
RESUMED = INDICES * (JOINT + 1) + 1
"""Failure code of a world that ``resume`` has stopped."""
_FIELDS = {
    STARTED: "velocity",
    LINEAR: "linear_velocity",
    ANGULAR: "angular_momentum",
    POSITION: "position",
    ORIENTATION: "orientation",
}


class KernelHealth(Protocol):
    """Interface of a backend whose kernels check the health of worlds (kernel_backend.py)."""

    model: Model

    @property
    def memory(self) -> Memory:
        """Return the state and the commands."""

    def read_health(self) -> Array:
        """Return the failure code of each world, or 0 for a valid world, (num_worlds,)."""

    def read_health_value(self) -> Array:
        """Return the invalid number that stopped each failed world, (num_worlds,)."""

    def release(self, worlds: Array) -> None:
        """Release ``worlds`` from quarantine."""

    def keep_stopped(self, words: Array, values: Array) -> None:
        """Stop the worlds that failed on the previous backend. ``words`` contains the failure codes of all worlds."""


class KernelQuarantine:
    """Quarantine of the native and CUDA backends. The kernels check the worlds and keep failed worlds unchanged."""

    def __init__(self, backend: KernelHealth, drivers: Mapping[str, str]) -> None:
        self._backend = backend
        self._bad_commands = BadCommands(backend.model, drivers)
        self._reported: dict[int, str] = {}
        """Texts from :meth:`check` about the non-finite commands of failed worlds, by world index."""
        self._resumed: dict[int, str] = {}
        """Failure reasons of the worlds that :meth:`resume` has stopped, by world index."""

    @property
    def stopped(self) -> Array:
        """Return a mask of the stopped worlds, (num_worlds,)."""
        return np.asarray(self._backend.read_health() != 0)

    def check(self) -> None:
        """Warn of worlds that failed since the last call."""
        failed = [int(world) for world in np.flatnonzero(self._backend.read_health())]
        new = [world for world in failed if world not in self._reported]
        if new:
            commands = self._backend.memory.read_control()
            self._reported.update({world: self._bad_commands.reported(commands[world]) for world in new})
        for world, reason in self._reasons(new[:_WARNED_EACH]).items():
            message = f"world {world} failed and is kept at its last good state: {reason}"
            warnings.warn(message, stacklevel=callers_level())
        if len(new) > _WARNED_EACH:
            message = f"{len(new) - _WARNED_EACH} more worlds failed; health_report() names all"
            warnings.warn(message, stacklevel=callers_level())

    def release(self, worlds: Array | None) -> None:
        """Release ``worlds`` from quarantine after a reset."""
        if worlds is None:
            self._reported.clear()
            return
        self._backend.release(worlds)
        for world in _common(self._reported, worlds):
            del self._reported[world]

    def report(self) -> str:
        """Return a text with one line per stopped world."""
        reasons = self.reasons()
        if not reasons:
            return "all worlds are fine"
        return "\n".join(f"world {world}: {reason}" for world, reason in reasons.items())

    def reasons(self) -> dict[int, str]:
        """Return the reason for the failure of each stopped world, by world index."""
        return self._reasons(np.flatnonzero(self._backend.read_health()).tolist())

    def resume(self, failed: Mapping[int, str], worlds: Array) -> None:
        """Stop the restored ``worlds`` (n,) that are in ``failed``. All other restored worlds run."""
        words, values = np.array(self._backend.read_health()), np.array(self._backend.read_health_value())
        stopped = {world: failed[world] for world in _common(failed, worlds)}
        words[worlds] = values[worlds] = 0
        words[list(stopped)] = RESUMED
        self._resumed |= stopped
        self._reported = {
            world: reported for world, reported in self._reported.items() if words[world]
        } | dict.fromkeys(stopped, "")
        if words.any() or self._backend.read_health().any():
            self._backend.keep_stopped(words, values)

    def _reasons(self, worlds: list[int]) -> dict[int, str]:
        if not worlds:
            return {}
        words, values = self._backend.read_health(), self._backend.read_health_value()
        times = self._backend.memory.read_state().arrays["time"]
        new = [w for w in worlds if words[w] != RESUMED]
        reported = {w: self._reason(int(words[w]), float(values[w]), float(times[w])) for w in new}
        reported = {w: reason + self._reported.get(w, "") for w, reason in reported.items()}
        return {w: reported.get(w) or self._resumed[w] for w in worlds}

    def _reason(self, word: int, value: float, time: float) -> str:
        model, after = self._backend.model, f"after t = {time:.6g} s"
        what, index = divmod(word - 1, INDICES)
        if what == ACTUATOR:
            number, variable = divmod(index, MAX_VARIABLES)
            groups = sorted(model.groups, key=lambda g: g.type.name)
            spec, kind = [(s, g.type) for g in groups for s in g.specs][number]
            return f"{spec.element} has {kind.variables[variable].name} = inf or nan {after}"
        if what == JOINT:
            return _broken_joint(model, value, after)
        if what == COMMAND:
            return f"a command was not finite {after}"
        body = model.bodies[index].element if index < len(model.bodies) else "the world"
        return f"{body} has {_FIELDS[what]} = {value:.3g} {after}"
