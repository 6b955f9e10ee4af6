"""Samples of the plotted signals in the last seconds, for gauges and scopes, without imgui."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusim.errors import unknown_name
from gpusim.scene import Plot
from gpusim.typing import Array
from gpusim.viewer.panel.axis_range import MAX_DECIMALS, Span
from gpusim.viewer.panel.ranges import signal_range

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

SECONDS = 10.0
"""Time span of the scopes, s of simulated time."""
_SAMPLES = 400
_NOISE = 0.1
"""Minimum span of a scope, as a fraction of the signals' declared range."""
_AXES = "xyzw"


@dataclass(frozen=True)
class Trace:
    """One line of a scope.

    Attributes:
        label: text in the legend.
        signal: name of the signal.
        component: index of the signal's component.
        scale: factor from the signal's unit to the scope's unit.
        range: minimum and maximum in the scope's unit, or None if unknown.
    """

    label: str
    signal: str
    component: int
    scale: float
    range: tuple[float, float] | None


@dataclass(frozen=True)
class Scope:
    """One plot with title, unit and lines. ``first`` is the column of the first line in the samples."""

    title: str
    unit: str
    traces: tuple[Trace, ...]
    first: int


class History:
    """Samples of a scene's plotted signals, in several worlds.

    Args:
        sim: the simulation.
        plots: plots of the simulation's scene.
        worlds: indices of the sampled worlds.

    Attributes:
        scopes: plots to show.
        worlds: as given.
        world: index of the displayed world.

    Raises:
        UnknownNameError: a plot names an unknown signal.
    """

    def __init__(self, sim: Simulation, plots: Sequence[Plot], worlds: Sequence[int] = (0,)) -> None:
        self._sim = sim
        self.worlds = tuple(worlds)
        self.world = self.worlds[0]
        self.scopes = _scopes(sim, plots)
        traces = [trace for scope in self.scopes for trace in scope.traces]
        # ring buffer, because shifting all samples is slow with many worlds
        self._times = np.full(_SAMPLES, np.nan)
        self._values = np.full((_SAMPLES, len(self.worlds), len(traces)), np.nan)
        self._count = self._next = 0
        self._gauges = [Span() for _ in traces]
        self._spans = [Span(_NOISE * max(_known(scope), default=0.0)) for scope in self.scopes]

    def clear(self) -> None:
        """Discard all samples and axis limits."""
        self._count = 0
        for span in (*self._gauges, *self._spans):
            span.clear()

    def show(self, world: int) -> None:
        """Show another sampled world in gauges and scopes."""
        if world in self.worlds:
            self.world = world

    def sample(self) -> None:
        """Sample the current values if the sampling interval has passed. After a reset, discard all older samples.

        If the scene plots forces, the method runs a trial step, which does not change the state.
        """
        if not self.scopes:
            return
        time = self._sim.time
        last = self._times[self._next - 1] if self._count else -np.inf
        if time < last:
            self.clear()
        elif time - last < SECONDS / _SAMPLES - 1e-9:
            return
        self._times[self._next] = time
        self._read(self._values[self._next])
        self._next = (self._next + 1) % _SAMPLES
        self._count = min(self._count + 1, _SAMPLES)

    def _read(self, row: Array) -> None:
        """Read the current values of all signals into ``row`` (worlds, traces)."""
        worlds = list(self.worlds)
        for scope in self.scopes:
            for k, trace in enumerate(scope.traces, start=scope.first):
                array = np.asarray(self._sim.read(trace.signal, numpy=True))
                row[:, k] = array.reshape(len(array), -1)[worlds, trace.component] * trace.scale

    def course(self, scope: Scope) -> tuple[Array, Array]:
        """Return the times (n,), s, and the values (n, traces) of a scope in the displayed world."""
        order = np.arange(self._next - self._count, self._next) % _SAMPLES
        times = self._times[order]
        order = order[times >= times[-1] - SECONDS - 1e-9] if self._count else order
        columns = slice(scope.first, scope.first + len(scope.traces))
        return self._times[order], self._values[order, self.worlds.index(self.world), columns]

    def ends(self, scope: Scope, values: Array) -> tuple[float, float]:
        """Return the lower and the upper axis limit of a scope for ``values``, see :class:`Span`."""
        return self._spans[self.scopes.index(scope)].around(values)

    def gauge_ends(self, scope: Scope, number: int, values: Array) -> tuple[float, float]:
        """Return the limits of a gauge: the known range of the signal, or else limits that contain ``values``."""
        known = scope.traces[number].range
        return known if known is not None else self._gauges[scope.first + number].around(values[:, number])


def _known(scope: Scope) -> list[float]:
    """Return the widths of all known signal ranges of a scope."""
    return [trace.range[1] - trace.range[0] for trace in scope.traces if trace.range]


def _scopes(sim: Simulation, plots: Sequence[Plot]) -> list[Scope]:
    known = sim.signals()
    scopes: list[Scope] = []
    first = 0
    for plot in plots:
        traces: list[Trace] = []
        for number, signal in enumerate(plot.signals):
            if signal not in known:
                raise unknown_name(f"signal of the plot {plot.title!r}", signal, known)
            label = plot.labels[number] if plot.labels else _short(signal)
            traces += _traces(sim, signal, label, plot.scale)
        scopes.append(Scope(plot.title, plot.unit, tuple(traces), first))
        first += len(traces)
    return scopes


def _traces(sim: Simulation, signal: str, label: str, scale: float) -> list[Trace]:
    count = int(np.prod(sim.signals()[signal].shape, dtype=int))
    if count == 1:
        found = signal_range(sim.model, signal)
        low, high = sorted(x * scale for x in found or (0.0, 0.0))
        ends = None if found is None else (low, high)
        return [Trace(label, signal, 0, scale, ends)]
    names = _AXES if count <= len(_AXES) else [str(k) for k in range(count)]
    return [Trace(f"{label} {names[k]}", signal, k, scale, None) for k in range(count)]


def _short(signal: str) -> str:
    """Return a signal's name without the element type: "lift pressure a" for "cylinder.lift.pressure_a"."""
    _, _, quantity = signal.partition(".")
    return (quantity or signal).replace(".", " ").replace("_", " ")


def number(value: float, span: float, sign: str = "") -> str:
    """Return a value as text, or "-" if the value is not finite. ``span`` determines the number of decimals.

    ``sign="+"`` also adds a sign to positive values.
    """
    if not np.isfinite(value):
        return "-"
    digits = decimals(span)
    rounded = round(value, digits) + 0.0  # no "-0.00"
    return f"{rounded:{sign}.{digits}f}"


def decimals(span: float) -> int:
    """Return a suitable number of decimals for values in a range of the width ``span``."""
    if not np.isfinite(span) or span <= 0.0:
        return 2
    return int(min(max(2 - np.floor(np.log10(span)), 0), MAX_DECIMALS))
