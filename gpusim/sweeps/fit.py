"""``gpusim.fit``: identify model parameters from a recorded trace by least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import validate
from gpusim.arrays import on_host
from gpusim.description.config import SolverConfig
from gpusim.errors import ModelError, unknown_name
from gpusim.recording.samples import Recording
from gpusim.simulation import Simulation
from gpusim.typing import Array
from gpusim.validate import matching

if TYPE_CHECKING:
    from gpusim.model.model import Model

_STEP = 1e-4
"""Step of the finite differences, as a fraction of the range of a parameter."""
_MAX_EVALUATIONS = 100
"""Maximum number of function evaluations in ``least_squares``."""
_ROUNDING = 1e-12
"""Relative changes of the trace below this value are round-off, not the effect of a parameter."""
_DEPENDENT = 1e-12
"""Eigenvectors of J^T J (columns of J scaled to norm 1) with eigenvalues up to this value do not affect the trace."""


@dataclass(frozen=True)
class Fit:
    """Result of :func:`fit`.

    Attributes:
        values: identified values of the parameters, by name.
        covariance: covariance of the p parameters in the order of ``values``, (p, p). Entries are infinite for
            parameters that the trace does not determine: parameters without effect, and parameters with linearly
            dependent effects.
        residual: root mean square of the residual of each signal (unit of the signal).
        evaluations: number of simulations. With p parameters, each simulation has 2 p + 1 worlds.
        message: reason why the optimization ended.
    """

    values: dict[str, float]
    covariance: Array
    residual: dict[str, float]
    evaluations: int
    message: str

    @property
    def sigma(self) -> dict[str, float]:
        """Return the standard deviation of each identified value."""
        return dict(zip(self.values, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))


def fit(
    model: Model,
    trace: Recording,
    parameters: Mapping[str, tuple[float, float]],
    *,
    signals: str | Sequence[str] | None = None,
    commands: Mapping[str, Sequence[float] | Callable[[float], float]] | None = None,
    scale: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    config: SolverConfig | None = None,
    backend: str = "auto",
) -> Fit:
    """Find the parameter values for which a model best reproduces a recorded trace.

    scipy's ``least_squares`` finds a local minimum within the bounds. Each simulation also computes the Jacobian by
    central differences in additional worlds. This also works for motions with contacts. The step of the differences is
    1e-4 of the range of a parameter.

    Args:
        model: model in the state at the start of the trace.
        trace: recorded trace, for example from :func:`gpusim.recording.recorder.load_recording`. ``fit`` uses only the
            first world.
        parameters: dict from writable scalar signals to bounds (low, high), for example
            ``{"body.load.mass": (50.0, 500.0)}``.
        signals: signals of the trace that the model must reproduce: names, wildcards, or None for all signals.
        commands: label -> values (samples,), or a function that returns the value at a time (s). Each value applies
            until the next sample.
        scale: standard deviation of the noise of each signal. Default: the standard deviation of the signal in the
            trace. With the default, ``fit`` also scales the covariance by the variance of the residuals.
        start: start values of the parameters. Default: the values in the model. ``fit`` clips start values to the
            bounds.
        config: solver settings.
        backend: backend of the simulation.

    Returns:
        The values of the parameters, their covariance, and the residual.

    Raises:
        UnknownNameError: a signal, parameter or command does not exist.
        ModelError: the trace is invalid, or a bound, command, scale or start value is invalid.
    """
    from scipy.optimize import least_squares

    if not isinstance(trace, Recording):
        raise validate.fail("fit", f"trace = {trace!r} is not a recording", "give load_recording(path)")
    optional = {"commands": commands, "scale": scale, "start": start}
    for name, given in {"parameters": parameters, **optional}.items():
        if not isinstance(given, Mapping) and (given is not None or name not in optional):
            raise validate.fail("fit", f"{name} = {given!r} is not a dict", "give a dict by name")
    names = list(trace.signals) if signals is None else matching("recorded signal", signals, trace.signals)
    search = _Search(model, trace, names, dict(parameters), commands or {}, scale, config, backend)
    solution = least_squares(
        search.residual, search.scaled_start(start), search.jacobian, bounds=(0.0, 1.0),
        x_scale="jac", max_nfev=_MAX_EVALUATIONS,
    )  # fmt: skip
    values = search.low + solution.x * search.span
    spread = search.rms(solution.fun)
    covariance = _covariance(solution.jac, search.rounding) * np.outer(search.span, search.span)
    if scale is None:
        variance = np.sum(solution.fun**2) / max(solution.fun.size - len(values), 1)
        covariance[np.isfinite(covariance)] *= variance
    return Fit(dict(zip(parameters, values.tolist(), strict=True)), covariance, spread, search.count, solution.message)


def _covariance(jacobian: Array, rounding: float = 0.0) -> Array:
    """Return the inverse of J^T J, (p, p).

    Entries are infinite for linearly dependent columns, and for columns with a norm of at most ``rounding``.
    """
    lengths = np.linalg.norm(jacobian, axis=0)
    found = np.full((lengths.size, lengths.size), np.inf)
    acting = np.flatnonzero(lengths > rounding)
    unit = jacobian[:, acting] / lengths[acting]
    values, directions = np.linalg.eigh(unit.T @ unit)
    seen = values > _DEPENDENT
    inverse = directions[:, seen] / values[seen] @ directions[:, seen].T / np.outer(lengths[acting], lengths[acting])
    mixed = np.any(np.abs(directions[:, ~seen]) > 1e-3, axis=1)
    inverse[mixed], inverse[:, mixed] = np.inf, np.inf
    found[np.ix_(acting, acting)] = inverse
    return found


class _Search:
    """Residuals and Jacobian as functions of the scaled parameters."""

    def __init__(
        self, model: Model, trace: Recording, names: list[str], parameters: dict[str, tuple[float, float]],
        commands: Mapping[str, Any], scale: Mapping[str, float] | None, config: SolverConfig | None, backend: str,
    ) -> None:  # fmt: skip
        if not parameters or not names or len(trace) < 2:
            raise ModelError("fit: it needs parameters, signals and a trace of two samples or more; give all of these")
        self.low, high = np.array([_bounds(name, bounds) for name, bounds in parameters.items()]).T
        self.span, self._names, self._parameters = high - self.low, names, list(parameters)
        self._sim = Simulation(model, num_worlds=2 * len(parameters) + 1, backend=backend, config=config)
        known = self._sim.signals()
        for name in parameters:
            if name not in known or not known[name].writable or known[name].shape:
                raise unknown_name(
                    "parameter to fit", name, [n for n, i in known.items() if i.writable and not i.shape]
                )
        self._seen = self._sim.observe(names)
        self._measured = np.concatenate([_first_world(trace, name) for name in names], axis=1)
        if self._measured.shape[1] != self._seen.array.shape[1]:
            raise ModelError(
                "fit: the signals of the trace do not have the shapes of the model's signals; give other signals"
            )
        if not np.all(np.isfinite(self._measured)):
            raise validate.fail("fit", "the trace has values that are not finite", "remove these samples")
        self._sigma = self._sigmas(scale)
        self._steps = self._steps_of(trace)
        self._commands = {label: self._command(label, given, trace) for label, given in commands.items()}
        self.count, self.rounding, self._last = 0, 0.0, (np.empty(0), np.empty(0), np.empty(0))

    def _sigmas(self, scale: Mapping[str, float] | None) -> Array:
        if scale is None:
            spread = np.std(self._measured, axis=0)
            return np.where(spread > 0.0, spread, 1.0)
        if missing := [name for name in self._names if name not in scale]:
            raise ModelError(f"fit: scale of signal '{missing[0]}' is missing; give its noise")
        noise, slices = (
            {n: validate.positive("fit", f"scale of '{n}'", scale[n]) for n in self._names},
            self._seen.slices,
        )
        return np.concatenate([np.full(slices[n].stop - slices[n].start, noise[n]) for n in self._names])

    def _steps_of(self, trace: Recording) -> Array:
        """Return the number of steps from the previous sample to each sample."""
        dt = self._sim.config.dt
        at = (np.asarray(trace.time, float) - trace.time[0]) / dt
        if not np.all(np.abs(at) < validate.GREATEST_COUNT):
            raise validate.fail("fit", "a time of the trace is not finite or too large", "correct the times")
        steps = np.diff(np.round(at).astype(int), prepend=0)
        if np.any(steps[1:] < 1) or np.any(np.abs(at - np.round(at)) > 1e-3):
            raise ModelError(
                f"fit: the times of the trace are not multiples of dt = {dt:g} s; give SolverConfig(dt=...)"
            )
        return steps

    def _command(self, label: str, given: Any, trace: Recording) -> Array:
        if label not in self._sim.model.controls:
            raise unknown_name("command", label, self._sim.model.controls)
        times = np.asarray(trace.time, float)
        values = validate.array(f"fit: command '{label}'", [given(t) for t in times] if callable(given) else given)
        if values.shape != times.shape:
            raise ModelError(f"fit: command '{label}' has shape {values.shape}; give {times.size} values")
        if not np.all(np.isfinite(values)):
            raise validate.fail(f"fit: command '{label}'", "a value is not finite", "give finite numbers")
        return values

    def scaled_start(self, start: Mapping[str, float] | None) -> Array:
        """Return the start values of the parameters, scaled to 0 to 1."""
        start_values = {name: float(self._sim.read(name, numpy=True)[0]) for name in self._parameters}
        for name, value in (start or {}).items():
            if name not in start_values:
                raise unknown_name("parameter of the fit", name, start_values)
            start_values[name] = validate.number("fit", f"start of '{name}'", value)
        values = np.array(list(start_values.values()))
        return np.clip((values - self.low) / self.span, 1e-3, 1.0 - 1e-3)

    def _evaluate(self, point: Array) -> None:
        """Simulate with the scaled parameters ``point``, and with the changes for central differences."""
        if np.array_equal(point, self._last[0]):
            return
        size = len(point)
        points = np.tile(point, (2 * size + 1, 1))
        points[1 : size + 1] += _STEP * np.eye(size)
        points[size + 1 :] -= _STEP * np.eye(size)
        points = np.clip(points, 0.0, 1.0)  # a value outside the bounds may be invalid, such as a negative friction
        sim = self._sim
        sim.reset()
        for k, name in enumerate(self._parameters):
            sim.write(name, self.low[k] + points[:, k] * self.span[k])
        followed = np.empty((len(points), *self._measured.shape))
        for k, steps in enumerate(self._steps):
            sim.step(int(steps))
            followed[:, k] = on_host(self._seen.read())
            for label, values in self._commands.items():
                sim.control[label] = values[k]
        off = ((followed - self._measured) / self._sigma).reshape(len(points), -1)
        changes = np.diagonal(points[1 : size + 1] - points[size + 1 :])
        jacobian = (off[1 : size + 1] - off[size + 1 :]).T / changes
        self.rounding = _ROUNDING * float(np.linalg.norm(followed[0] / self._sigma)) / _STEP
        self._last, self.count = (point.copy(), off[0], jacobian), self.count + 1

    def residual(self, point: Array) -> Array:
        """Return the weighted residuals for the scaled parameters ``point``."""
        self._evaluate(point)
        return self._last[1]

    def jacobian(self, point: Array) -> Array:
        """Return the derivatives of the weighted residuals with respect to the scaled parameters, at ``point``."""
        self._evaluate(point)
        return self._last[2]

    def rms(self, residual: Array) -> dict[str, float]:
        """Return the root mean square of the residual of each signal (unit of the signal)."""
        off = residual.reshape(self._measured.shape) * self._sigma
        return {name: float(np.sqrt(np.mean(off[:, at] ** 2))) for name, at in self._seen.slices.items()}


def _first_world(trace: Recording, name: str) -> Array:
    """Return the samples of a signal in the first world (samples, numbers)."""
    samples = validate.array(f"fit: signal '{name}' of the trace", trace[name])
    if samples.ndim not in (2, 3) or len(samples) != len(trace) or not samples.shape[1]:
        rule = f"signal '{name}' of the trace has shape {samples.shape}"
        raise validate.fail("fit", rule, f"give ({len(trace)}, worlds) or ({len(trace)}, worlds, numbers)")
    return samples[:, 0].reshape(len(trace), -1)


def _bounds(name: str, bounds: Any) -> tuple[float, float]:
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError, OverflowError):
        low, high = 0.0, -1.0
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        rule = f"bounds {validate.shown(bounds)} of parameter '{name}' are not (low, high)"
        raise validate.fail("fit", rule, "give e.g. (50.0, 500.0)")
    return low, high
