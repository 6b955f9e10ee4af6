"""Linearization of a simulation at its current state, by central differences in additional worlds."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.errors import callers_level
from gpusim.signals.observe import chosen_commands
from gpusim.signals.writing import chosen_worlds
from gpusim.typing import Array
from gpusim.validate import name_list

STATES = ("joint.*.position", "joint.*.velocity")
KINK, MIN_SLOPE = 0.1, 1e-6
"""The state is at a kink if the forward and backward slopes differ by more than KINK (relative). Differences below
MIN_SLOPE are round-off."""
_ELEMENT = "Simulation.linearize"


@dataclass(frozen=True)
class Linearization:
    """Linear discrete-time model x' = x0' + A (x - x0) + B (u - u0).

    x' is the state after the given number of steps. The state x has n components. u contains m commands.

    Attributes:
        a: matrix A, the derivatives of x' with respect to x (n, n).
        b: matrix B, the derivatives of x' with respect to u (n, m).
        states: names of the components of x (n,).
        commands: labels of the commands (m,).
        state: current state x0 (n,).
        next_state: state x0' after the steps, from the state x0 with the commands u0 (n,).
        command: current commands u0 (m,).
        dt: total duration of the steps (s).
    """

    a: Array
    b: Array
    states: list[str]
    commands: list[str]
    state: Array
    next_state: Array
    command: Array
    dt: float


class Linearizing:
    """Part of Simulation that linearizes the simulation."""

    def linearize(
        self,
        states: str | Sequence[str] = STATES,
        commands: str | Sequence[str] = "*",
        *,
        steps: int = 1,
        step: float = 1e-4,
        world: int = 0,
    ) -> Linearization:
        """Linearize the state after some steps as a function of the current state and the current commands.

        The derivatives are central differences with an error of second order in ``step``. The simulation itself does
        not change. At discontinuities (opening contacts, sticking friction, limits), the derivatives are mean slopes,
        and a warning appears.

        Args:
            states: writable signals or wildcards, for example ``"cylinder.*.pressure_a"``. Default: all writable
                positions and velocities of joints. Orientations of bodies are not allowed. The position of a ball joint
                is a quaternion, which adds an eigenvalue 0 to A.
            commands: labels or wildcards of commands. An empty list selects no commands.
            steps: number of steps of ``config.dt``.
            step: relative perturbation of each state and command. For values below 1, the perturbation is absolute.
            world: index of the world to linearize.

        Returns:
            Matrices A and B, and the values x0, u0 and x0'.

        Raises:
            UnknownNameError: a signal or command does not exist.
            ModelError: a signal is not writable or is an orientation, or a number is invalid.
        """
        return _linearize(self, states, commands, steps, step, world)


def _linearize(sim: Any, states: Any, commands: Any, steps: int, step: float, world: int) -> Linearization:
    step = validate.positive(_ELEMENT, "step", step)
    if step < np.finfo(sim.dtype).eps:
        raise validate.fail(_ELEMENT, f"step = {step:g} is below the rounding of {sim.dtype}", "give e.g. 1e-4")
    steps = validate.count(_ELEMENT, "steps", steps)
    runtime, worlds = sim.runtime, chosen_worlds(_ELEMENT, world, sim.num_worlds)
    if worlds.size != 1:
        raise validate.fail(_ELEMENT, f"world = {world!r} is not one world", "give its number, from 0")
    chosen = int(worlds[0])
    known = sim.signals()
    names = _joint_states(known) if states is STATES else sim.observe(states).names
    for name in names:
        if not known[name].writable or name.endswith(".orientation"):
            rule = f"signal '{name}' is not a writable number or vector"
            raise validate.fail(_ELEMENT, rule, "name positions, velocities, pressures ...")
    patterns = name_list(f"{_ELEMENT}: commands", commands)
    labels = chosen_commands(runtime, patterns) if patterns and len(runtime.model.controls) else []
    here = on_host(sim.observe(names).read())[chosen].copy()
    columns = [runtime.model.controls[label] for label in labels]
    command, limits = (
        np.array(runtime.backend.memory.read_control())[chosen, columns],
        runtime.model.control_map[:2, columns],
    )
    n, m = len(here), len(labels)
    changes = step * np.maximum(1.0, np.abs(np.concatenate([here, command])))
    points = np.tile(np.concatenate([here, command]), (2 * (n + m) + 1, 1))
    for k, change in enumerate(changes):
        points[2 * k, k] += change
        points[2 * k + 1, k] -= change
    points[:, n:] = np.clip(points[:, n:], np.minimum(limits[0], command), np.maximum(limits[1], command))
    after = _stepped(sim, names, columns, points, int(steps), chosen)
    spans = np.array([points[2 * k, k] - points[2 * k + 1, k] for k in range(n + m)])
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (after[0:-1:2] - after[1:-1:2]).T / spans
    slopes[:, spans == 0.0] = 0.0
    kinks = _kinks(points, after)
    if kinks.any():
        found = [*_columns(names, known), *labels][int(np.argmax(kinks))]
        message = f"linearize: the next state has a kink at '{found}'; move the state off it, or change step"
        warnings.warn(message, stacklevel=callers_level())
    return Linearization(
        slopes[:, :n], slopes[:, n:], _columns(names, known), labels, here, after[-1], command, steps * sim.config.dt
    )


def _joint_states(known: Any) -> list[str]:
    """Return the writable position and velocity signals of joints. Rods, ropes and pins have no writable position."""
    names = [name for one in STATES for name in fnmatch.filter(known, one) if known[name].writable]
    if not names:
        rule = "the model has no joints with writable positions"
        raise validate.fail(_ELEMENT, rule, "give states, such as 'body.*.linear_velocity'")
    return names


def _kinks(points: Array, after: Array) -> Array:
    """Return a mask of the n states and m commands with different forward and backward differences, (n + m,)."""
    up, down = after[0:-1:2] - after[-1], after[-1] - after[1:-1:2]
    above, below = (np.abs(np.diagonal(points[k:-1:2] - points[-1]))[:, None] for k in (0, 1))
    both = (above > 0.0) & (below > 0.0)
    up, down = up / np.where(both, above, 1.0), down / np.where(both, below, 1.0)
    threshold = MIN_SLOPE + KINK * np.maximum(np.abs(up), np.abs(down)).max(axis=1)
    return np.asarray(both[:, 0] & (np.abs(up - down).max(axis=1) > threshold))


def _stepped(sim: Any, names: list[str], columns: list[int], points: Array, steps: int, world: int) -> Array:
    """Return the states after the steps, for the perturbed states and commands ``points``."""
    runtime = sim.runtime
    options = {"backend": sim.backend_name, "dtype": sim.dtype, "config": sim.config, "fast": sim.fast}
    other = type(sim)(runtime.built, num_worlds=len(points), specialize=False, **options)
    other.restore(sim.snapshot(), source=world)
    seen = other.observe(names)
    known = other.signals()
    values = {name: points[:, at].reshape(len(points), *known[name].shape) for name, at in seen.slices.items()}
    other.write_state(values)
    other.control.array[:, columns] = points[:, seen.array.shape[1] :]
    other.invalidate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hides warnings about failed worlds
        other.step(steps)
    if not other.health()[-1]:
        raise validate.fail(_ELEMENT, f"world {world} failed", "linearize a world that runs")
    if not other.health().all():
        rule = "a run from a changed state failed, or its state is too large"
        raise validate.fail(_ELEMENT, rule, "give a smaller step")
    return np.array(on_host(seen.read()))


def _columns(names: list[str], known: Any) -> list[str]:
    found: list[str] = []
    for name in names:
        size = int(np.prod(known[name].shape, dtype=int))
        found += [f"{name}[{k}]" for k in range(size)] if known[name].shape else [name]
    return found
