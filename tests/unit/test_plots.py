from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from gpusim.errors import ModelError, UnknownNameError
from gpusim.recording.plots import MAX_WORLDS, check_plots, draw, plot_signals, save_figure
from gpusim.recording.recorder import Recording
from gpusim.scene import Plot
from tests.message_snapshot import naming

ROOT = Path(__file__).parents[2]


def recording(worlds: int = 1, samples: int = 50) -> Recording:
    time = np.linspace(0.0, 2.0, samples)
    wave = np.sin(time)[:, None] + np.arange(worlds)
    return Recording(
        time,
        {
            "joint.arm.position": wave,
            "cylinder.lift.pressure_a": 1e7 * wave,
            "body.ball.position": np.repeat(wave[:, :, None], 3, axis=2),
            "body.ball.orientation": np.repeat(wave[:, :, None], 4, axis=2),
            "joint.arm.reaction": np.repeat(wave[:, :, None], 6, axis=2),
            "diagram.arm.effort": np.repeat(wave[:, :, None], 6, axis=2),
            "diagram.arm.point": np.repeat(wave[:, :, None], 3, axis=2),
        },
    )


ANGLE = Plot(title="angle of the arm", unit="rad", signals=["joint.arm.position"])


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_panel_has_title_unit_time_axis_and_legend() -> None:
    figure = draw([ANGLE], recording(), "arm: swings")
    (axes,) = figure.axes
    assert axes.get_title() == "angle of the arm"
    assert axes.get_ylabel() == "[rad]"
    assert axes.get_xlabel() == "time [s]"
    assert legend(axes) == ["joint.arm.position"]
    assert figure.get_suptitle() == "arm: swings"


def test_labels_and_scale_of_a_plot_are_used() -> None:
    plot = Plot("pressure", "bar", ["cylinder.lift.pressure_a"], labels=["chamber A"], scale=1e-5)
    (axes,) = draw([plot], recording()).axes
    assert legend(axes) == ["chamber A"]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), 100.0 * np.sin(recording().time))


@pytest.mark.parametrize(
    ("signal", "components"),
    [
        ("body.ball.position", ["x", "y", "z"]),
        ("body.ball.orientation", ["x", "y", "z", "w"]),
        ("joint.arm.reaction", ["fx", "fy", "fz", "tx", "ty", "tz"]),
        ("diagram.arm.effort", ["0", "1", "2", "3", "4", "5"]),
        ("diagram.arm.point", ["x", "y", "z"]),
    ],
)
def test_each_component_gets_its_line(signal: str, components: list[str]) -> None:
    (axes,) = draw([Plot("vector", "m", [signal])], recording()).axes
    assert legend(axes) == [f"{signal} {name}" for name in components]


def test_first_worlds_are_drawn_with_one_legend_entry_and_reported() -> None:
    figure = draw([ANGLE], recording(worlds=12), "arm")
    (axes,) = figure.axes
    assert len(axes.lines) == MAX_WORLDS
    assert legend(axes) == ["joint.arm.position"]
    assert figure.get_suptitle() == "arm (worlds 0 to 7 of 12)"


def test_long_heading_stays_inside_the_figure() -> None:
    figure = draw([ANGLE], recording(), "a hydraulic cylinder lifts a load " * 8)
    figure.draw_without_rendering()
    heading = figure.texts[0].get_window_extent()
    assert 0.0 <= heading.x0 and heading.x1 <= figure.bbox.width


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9])
def test_every_column_shows_its_time_axis_at_the_bottom(count: int) -> None:
    figure = draw([ANGLE] * count, recording())
    labeled = [axes for axes in figure.axes if axes.get_xlabel() == "time [s]"]
    assert len(figure.axes) == count
    assert len(labeled) == (1 if count <= 4 else 2)


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg", ".PNG"])
def test_files_of_all_kinds_are_written(tmp_path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    save_figure(draw([ANGLE], recording()), path)
    start = path.read_bytes()[:8]
    assert start.startswith({".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}[suffix.lower()])
    if suffix == ".svg":
        ElementTree.parse(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_other_kinds_of_files_are_refused(tmp_path) -> None:
    with pytest.raises(ModelError, match=naming(".png .pdf .svg")):
        save_figure(draw([ANGLE], recording()), tmp_path / "run.docx")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "values",
    [
        [np.nan, np.nan, np.nan],
        [0.0, np.inf, -np.inf],
        [1e300, -1e308, 0.0],
        [5.0, 5.0, 5.0],
        [0.0, 0.0, 0.0],
        [1e-300, 0.0, 2e-300],
        [101325.0, 101325.0 + 1e-9, 101325.0],
    ],
)
def test_no_values_crash_a_plot(tmp_path, values: list[float]) -> None:
    data = Recording(np.array([0.0, 1.0, 2.0]), {"joint.arm.position": np.array(values)[:, None]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(draw([ANGLE], data), tmp_path / "run.png")


@pytest.mark.parametrize("samples", [0, 1])
def test_runs_without_a_step_are_drawn(tmp_path, samples: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(draw([ANGLE], recording(samples=samples)), tmp_path / "run.png")


@pytest.mark.nightly
@pytest.mark.parametrize("label", ["$\\frac{$", "a_b^c", "_hidden", "50 % {x}", "$1 and $2", "back\\slash"])
def test_odd_names_are_drawn_as_they_are(tmp_path, label: str) -> None:
    plot = Plot(label, label, ["joint.arm.position"], labels=[label])
    figure = draw([plot], recording(), label)
    assert len(legend(figure.axes[0])) == 1
    save_figure(figure, tmp_path / "run.png")


def test_mistakes_in_plots_are_found_before_a_run() -> None:
    known = ["joint.arm.position"]
    check_plots([ANGLE], known)
    with pytest.raises(UnknownNameError, match=naming("plot 'angle' joint.arm.positoin")):
        check_plots([Plot("angle", "rad", ["joint.arm.positoin"])], known)
    with pytest.raises(ModelError, match=naming("2 1")):
        check_plots([Plot("angle", "rad", known, labels=["a", "b"])], known)
    with pytest.raises(ModelError, match=naming("plot 'angle'")):
        check_plots([Plot("angle", "rad", [])], known)


def test_signals_of_plots_are_listed_once_in_order() -> None:
    plots = [Plot("a", "m", ["x", "y"]), Plot("b", "m", ["y", "z"])]
    assert plot_signals(plots) == ["x", "y", "z"]


@pytest.mark.nightly
def test_plots_need_neither_pyplot_nor_a_screen(tmp_path) -> None:
    code = (
        "import sys, numpy as np\n"
        "from gpusim.recording.plots import draw, save_figure\n"
        "from gpusim.recording.recorder import Recording\n"
        "from gpusim.scene import Plot\n"
        "data = Recording(np.arange(3.0), {'a': np.zeros((3, 1))})\n"
        "save_figure(draw([Plot('a', 'm', ['a'])], data), sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    # a backend that needs a screen is asked for, and there is none
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment["MPLBACKEND"] = "TkAgg"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run.png")], check=True, env=environment, cwd=ROOT)
    assert (tmp_path / "run.png").exists()
