"""Plot recordings with matplotlib. No screen is necessary."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim.errors import ModelError, unknown_name
from gpusim.output_files import atomic_file, check_output_file
from gpusim.recording.recorder import Recording

if TYPE_CHECKING:  # matplotlib takes a second to import, and only drawing needs it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpusim.scene import Plot

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
MAX_WORLDS = 8
"""Maximum number of worlds in a panel. The panel shows only the first MAX_WORLDS worlds."""

_COMPONENTS = {3: ("x", "y", "z"), 4: ("x", "y", "z", "w"), 6: ("fx", "fy", "fz", "tx", "ty", "tz")}
_LEGEND_LINES = 10
"""Maximum number of lines in a legend."""

_LARGEST = 1e30
_HEADING_WIDTH = 80  # maximum characters per line, for each column of panels


def plot_signals(plots: Iterable[Plot]) -> list[str]:
    """Return the names of all signals in ``plots``, in order and without duplicates."""
    return list(dict.fromkeys(name for plot in plots for name in plot.signals))


def check_plots(plots: Sequence[Plot], known: Iterable[str]) -> None:
    """Check the plots before the simulation starts.

    Args:
        plots: the panels.
        known: names of all signals of the simulation.

    Raises:
        UnknownNameError: a panel names a signal that does not exist.
        ModelError: a panel has no signals, or the numbers of labels and signals differ.
    """
    names = set(known)
    for plot in plots:
        if not plot.signals:
            raise ModelError(f"plot {plot.title!r}: it shows no signals; name at least one")
        if plot.labels and len(plot.labels) != len(plot.signals):
            counts = f"{len(plot.labels)} labels for {len(plot.signals)} signals"
            raise ModelError(f"plot {plot.title!r}: {counts}; give one label for each signal, or none")
        for name in plot.signals:
            if name not in names:
                raise unknown_name(f"signal of the plot {plot.title!r},", name, names)


def check_plot_file(path: str | os.PathLike[str], name: str = "plot file") -> Path:
    """Check the path of an image file (.png, .pdf or .svg). See :func:`gpusim.output_files.check_output_file`."""
    return check_output_file(path, PLOT_SUFFIXES, name)


def draw(plots: Sequence[Plot], recording: Recording, title: str = "") -> Figure:
    """Draw one panel per plot over a common time axis.

    Args:
        plots: the panels, at least one.
        recording: recording with all signals of the panels. Each panel shows only the first ``MAX_WORLDS`` worlds.
        title: title above the figure.

    Returns:
        A matplotlib figure that needs no screen and no pyplot.

    Raises:
        UnknownNameError: a panel names a signal that was not recorded.
    """
    from matplotlib.figure import Figure

    columns = 1 if len(plots) <= 4 else 2
    rows = math.ceil(len(plots) / columns)
    figure = Figure(figsize=(8.5 * columns, 1.0 + 2.6 * max(rows, 1)), layout="constrained")
    heading = " ".join(part for part in (title, _worlds_shown(recording)) if part)
    if heading:
        figure.suptitle(_plain(textwrap.fill(heading, _HEADING_WIDTH * columns)), fontsize=13)
    panels: list[Axes] = []
    for index, plot in enumerate(plots):
        axes = figure.add_subplot(rows, columns, index + 1, sharex=panels[0] if panels else None)
        _draw_panel(axes, plot, recording)
        panels.append(axes)
        if index >= len(plots) - columns:
            axes.set_xlabel("time [s]", fontsize=11)
        else:
            axes.tick_params(labelbottom=False)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as .png, .pdf or .svg. If writing fails, no partial file remains.

    Raises:
        ModelError: the suffix is not supported, or the folder is not writable.
    """
    target = check_plot_file(path)
    with atomic_file(target) as stream:
        figure.savefig(stream, format=target.suffix.lower().lstrip("."), dpi=150)


def _worlds_shown(recording: Recording) -> str:
    worlds = max((samples.shape[1] for samples in recording.signals.values() if samples.ndim > 1), default=1)
    if worlds == 1:
        return ""
    return f"(worlds 0 to {min(worlds, MAX_WORLDS) - 1} of {worlds})"


def _draw_panel(axes: Axes, plot: Plot, recording: Recording) -> None:
    labels = plot.labels or plot.signals
    count = 0
    for name, label in zip(plot.signals, labels, strict=True):
        for line_label, line in _lines(name, label, recording[name] * plot.scale):
            _draw_worlds(axes, recording.time, line, line_label, f"C{count % 10}")
            count += 1
    axes.set_title(_plain(plot.title), fontsize=12)
    axes.set_ylabel(_plain(f"[{plot.unit}]" if plot.unit else "[-]"), fontsize=11)
    axes.tick_params(labelsize=10)
    axes.grid(True, alpha=0.3)
    axes.margins(x=0.0)
    # Show complete numbers at the axis. For small changes of a large value, matplotlib would add an offset "+1.0123e5".
    axes.ticklabel_format(axis="y", useOffset=False, scilimits=(-4, 5))
    if count:
        handles, names = axes.get_legend_handles_labels()
        more = f"and {count - _LEGEND_LINES} more" if count > _LEGEND_LINES else None
        columns = 1 if count <= 4 else 2
        axes.legend(handles[:_LEGEND_LINES], names[:_LEGEND_LINES], title=more, fontsize=9, loc="best", ncols=columns)


def _lines(signal: str, label: str, samples: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Return one array (samples, worlds) for each component of a signal, with a label for each array."""
    # Draw failed runs too: matplotlib cannot put ticks on infinity.
    samples = np.where(np.abs(samples) < _LARGEST, samples, np.nan)
    if samples.ndim == 1:
        return [(label, samples[:, None])]
    if samples.ndim == 2:
        return [(label, samples)]
    flat = samples.reshape(samples.shape[0], samples.shape[1], -1)
    size = flat.shape[2]
    # The components of a long wire are not a quaternion or wrench. They may be, for example, one number per joint.
    known = {} if signal.startswith("diagram.") and size > 3 else _COMPONENTS
    names: Sequence[Any] = known.get(size, range(size))
    return [(label if size == 1 else f"{label} {names[k]}", flat[:, :, k]) for k in range(size)]


def _draw_worlds(axes: Axes, time: np.ndarray, samples: np.ndarray, label: str, color: str) -> None:
    shown = min(samples.shape[1], MAX_WORLDS)
    for world in range(shown):
        # All worlds of a signal have the same color. Only the first world is thick and in the legend.
        axes.plot(
            time,
            samples[:, world],
            color=color,
            linewidth=1.6 if world == 0 else 0.8,
            alpha=1.0 if world == 0 else 0.5,
            label=_plain(label) if world == 0 else "_other worlds",
        )


def _plain(text: str) -> str:
    """Escape text, so that matplotlib shows it literally."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
