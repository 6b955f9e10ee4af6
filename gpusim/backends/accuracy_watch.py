"""Accuracy warnings: open joints, unconverged contacts or solves, cavitation, jumping joints and fast rotors."""

from __future__ import annotations

import math
import warnings

import numpy as np

from gpusim.backends.base import Backend
from gpusim.description.config import SolverConfig
from gpusim.errors import callers_level
from gpusim.model.model import Model
from gpusim.reference.accuracy import CONTACTS, JOINTS, JUMPS, MODES, SPINS, VOIDS, constraint_of
from gpusim.reference.limits import accuracy_limits
from gpusim.reference.rotors import MAX_NUTATION, rotors
from gpusim.typing import Array

MORE_SWITCHES = 10
"""Factor by which a warning recommends to increase the number of iterations."""

KINDS = (JOINTS, CONTACTS, MODES, VOIDS, JUMPS, SPINS)


class AccuracyWatch:
    """Monitor that warns of worlds that exceed an accuracy limit. These worlds continue to run."""

    def __init__(self, backend: Backend, model: Model, config: SolverConfig) -> None:
        self._config, self._warned = config, 0
        self.rebind(backend, model)

    def rebind(self, backend: Backend, model: Model) -> None:
        """Monitor a new backend. ``model`` is its model, and must have the elements of the previous model."""
        self._backend, self._labels = backend, model.topology.constraint_labels
        self._joints, self._limits = len(model.joints), accuracy_limits(model)
        self._groups, self._model = model.groups, model
        self._swept, self._axes = model.topology.swept, int(model.topology.axis_row.size)
        self._contacts = model.contact.capacity(self._config, model.topology.dynamic) > 0

    @property
    def word(self) -> Array:
        """Return the problems of each world as a bit mask of KINDS, (num_worlds,)."""
        return np.asarray(self._backend.memory.read_state().arrays["inexact"])

    def check(self) -> None:
        """Warn of each problem of KINDS when it first occurs in this simulation."""
        if self._warned == sum(KINDS) or not self._backend.newly("inexact"):
            return
        word = self.word
        for kind in KINDS:
            worlds = np.flatnonzero(word & kind & ~self._warned)
            if not worlds.size:
                continue
            self._warned |= kind
            worst = int(worlds[np.argmax(self._figures(kind)[worlds])])
            others = f" ({worlds.size - 1} more worlds as well)" if worlds.size > 1 else ""
            warnings.warn(f"world {worst}: {self._reported(kind, worst)}{others}", stacklevel=callers_level())

    def resume(self, worlds: Array) -> None:
        """Suppress warnings of problems that the restored ``worlds`` already have."""
        self._warned |= int(np.bitwise_or.reduce(self.word[worlds].astype(np.int64), initial=0))

    def report(self) -> list[str]:
        """Return one line for each problem of each world."""
        return [
            f"world {world}: {self._reported(kind, int(world))}"
            for world in np.flatnonzero(self.word)
            for kind in KINDS
            if self.word[world] & kind
        ]

    def _figures(self, kind: int) -> Array:
        """Return the measured value that belongs to the problem ``kind`` in each world, (num_worlds,)."""
        state = self._backend.memory.read_state().arrays
        if kind == JOINTS:
            drift, tilt = self._limits["joint_drift_limit"], self._limits["joint_tilt_limit"]
            return np.maximum(state["joint_drift_peak"] / drift, state["joint_tilt_peak"] / tilt)
        name = {
            CONTACTS: "contact_residual", MODES: "not_converged", VOIDS: "void_peak", JUMPS: "jump_peak",
            SPINS: "spin_peak",
        }[kind]  # fmt: skip
        return np.asarray(state[name])

    def _reported(self, kind: int, world: int) -> str:
        """Return the message about problem ``kind`` of a world, including the setting that fixes it."""
        state, c = self._backend.memory.read_state().arrays, self._config
        if kind == JOINTS:
            return self._opened(float(state["joint_drift_peak"][world]), float(state["joint_tilt_peak"][world]))
        if kind == CONTACTS:
            last, limit = state["contact_residual"][world], self._limits["contact_residual_limit"]
            now = f", {last:.0%} in the last one" if last > limit else ""
            return (
                f"the last sweep over contacts changed impulses by more than {limit:.0%} of the greatest load in "
                f"{self._limits['contact_streak_limit']} substeps in a row{now}; "
                f"give SolverConfig(iterations={2 * c.iterations})"
            )
        if kind == VOIDS:
            return self._cavitated(float(state["void_peak"][world]))
        if kind == JUMPS:
            return self._jumped(float(state["jump_peak"][world]))
        if kind == SPINS:
            return self._spun(float(state["spin_peak"][world]))
        count = int(state["not_converged"][world])
        return f"{count} {'substep' if count == 1 else 'substeps'} ended before the solve converged{self._settling()}"

    def _settling(self) -> str:
        """Return the end of the message about unconverged solves: the cause and the setting to change."""
        c = self._config
        if not c.direct:
            return f"; give more iterations: SolverConfig(iterations={2 * c.iterations})"
        still = ", because joints with limits or friction kept switching"
        if self._contacts:
            hint = f"give a smaller step, SolverConfig(substeps={2 * c.substeps}) or less dt"
            return f"{still} together with contacts; {hint}: more iterations do not always help"
        more = MORE_SWITCHES * (c.iterations + 2 * self._axes)
        return f"{still}; give more iterations: SolverConfig(iterations={more})"

    def _cavitated(self, peak: float) -> str:
        """Return the message about the largest vapor cavity in the oil."""
        at = constraint_of(peak)
        _, first, name, group = max(
            ((first <= at, first, name, g) for g in self._groups for name, first in g.type.voids.items()),
            key=lambda found: found[:2],
        )
        spec = group.specs[at - first]
        signal = f"{group.type.prefix}.{spec.label}.{name}"
        feed = "feed it by a check valve from the tank"
        fix = "give a larger anticavitation_gain" if "anticavitation_gain" in spec.params else feed
        return (
            f"oil cavitated: its pressure fell to the vapor pressure and {signal} rose to {peak:.3g} m3; {fix}, "
            "unless the void is intended"
        )

    def _jumped(self, way: float) -> str:
        """Return the message about a joint that jumped to its prescribed motion."""
        group = next(g for g in self._groups if g.type.jumps_from)
        spec = group.specs[constraint_of(way)]
        joint, unit = self._model.joints[spec.params["joint"]], "rad" if spec.params["rotational"] else "m"
        return (
            f"{spec.element} moved {joint.element} by {way:.3g} {unit} in one step to reach its path, faster than "
            f"{group.type.jumps_from:g} {unit}/s; start the joint on the path, and write the path's velocity with its "
            "position"
        )

    def _spun(self, angle: float) -> str:
        """Return the message about a rotor that was too fast for the time step."""
        body = constraint_of(angle)
        share = angle * float(rotors(self._model, self._config)[body, 3]) / MAX_NUTATION
        return (
            f"{self._model.bodies[body].element} spun by {angle:.3g} rad in a substep while its axis turned, so its "
            f"spin and energy drift; give SolverConfig(substeps={math.ceil(share) * self._config.substeps})"
        )

    def _opened(self, drift: float, tilt: float) -> str:
        drift_limit, tilt_limit = self._limits["joint_drift_limit"], self._limits["joint_tilt_limit"]
        apart = drift / drift_limit >= tilt / tilt_limit
        value, limit, unit = (drift, drift_limit, "m") if apart else (tilt, tilt_limit, "rad")
        at = constraint_of(value)
        what = "joint" if at < self._joints else "coupling"
        off = "apart" if apart else "off"
        hints = f"substeps={4 * self._config.substeps}) or more, or call assemble() if the initial pose has this error"
        if self._config.joint_solver == "colored" or self._swept[at]:
            hints = (
                f'joint_solver="direct"), or iterations={4 * self._config.iterations}, or {hints.replace(")", "", 1)}'
            )
        return (
            f"{what} '{self._labels[at]}' was {value:.3g} {unit} {off}, more than {limit:.3g} {unit}; give "
            f"SolverConfig({hints}"
        )
