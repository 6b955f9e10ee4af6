"""Options of ``gpusim run``, and checks of the options that do not depend on the model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from os.path import isdir, isfile  # return False also for invalid file names
from pathlib import Path
from typing import Any

from gpusim.cli.exit_codes import OptionError
from gpusim.cli.target_files import MODEL, XACRO, is_module, kind_of, split
from gpusim.output_files import check_apart, check_output_file
from gpusim.recording.formats.writers import WRITERS, suffix_of
from gpusim.recording.plots import check_plot_file
from gpusim.scene import scene_modules

_MAX_STEPS = 1e15
LARGEST_PICTURE = 8192
"""Maximum width or height, pixels."""
_RECORDINGS = ".npz"
_NAMES_OF_FILES = (".json", ".txt", ".zip", ".stl", ".obj", ".dae")
_FILES = "a machine's .yaml or .py, or a model's .urdf, .xml, .sdf or .usd"


@dataclass(frozen=True)
class RunOptions:
    """Options of the command ``gpusim run``."""

    target: str
    settings: tuple[str, ...] = ()
    duration: float | None = None
    dt: float | None = None
    substeps: int | None = None
    iterations: int | None = None
    backend: str = "auto"
    dtype: str = "float64"
    joint_solver: str | None = None
    scheme: str | None = None
    num_worlds: int = 1
    seed: int | None = None
    signals: tuple[str, ...] | None = None
    out: Path | None = None
    rate: float | None = None
    out_dtype: str = "float64"
    plot: Path | None = None
    fixed_base: bool = False
    floating: bool = False
    pose: str | None = None
    floor: bool = False
    replay: Path | None = None
    save: Path | None = None
    resume: Path | None = None
    policy: Path | None = None
    clock: bool = False
    udp: str | None = None

    def is_file(self) -> bool:
        """Return True if the target names a file or a module, or False if it names a scene of the package.

        Raises:
            OptionError: gpusim cannot read this type of file.
        """
        return self.kind() is not None

    def kind(self) -> str | None:
        """Return the type of the target's file (``MODEL``, ``MACHINE``, ``PYTHON``), or None for a scene.

        Raises:
            OptionError: gpusim cannot read this type of file.
        """
        found = kind_of(self.target)
        if found is not None:
            return found
        suffix = Path(self.target).suffix.lower()
        if suffix == _RECORDINGS:
            raise OptionError(
                f"SCENE|FILE {self.target!r} is a recording, which cannot be simulated; "
                "play it with 'gpusim view', or draw it with 'gpusim render'"
            )
        if suffix in _NAMES_OF_FILES or "/" in self.target or "\\" in self.target or isfile(self.target):
            raise OptionError(
                f"SCENE|FILE {self.target!r} is neither a scene nor a file that can be read; "
                f"give a scene of 'gpusim list', {_FILES}, "
                f"or, to be viewed or rendered, a recording that ends in {_RECORDINGS}"
            )
        if isdir(self.target) and self.target not in scene_modules():
            raise OptionError(f"SCENE|FILE {self.target!r} is a folder; give a file in it, or a scene of 'gpusim list'")
        return None

    def start_pose(self) -> str | None:
        """Return the initial posture."""
        return None if self.kind() == MODEL else self.pose

    def parameters(self) -> dict[str, str]:
        """Return the ``--set`` options as names and values.

        Raises:
            OptionError: an option has no "=" or no name, or a name is given twice.
        """
        values: dict[str, str] = {}
        for setting in self.settings:
            name, equals, value = setting.partition("=")
            name = name.strip()
            if not equals or not name:
                raise OptionError(f"--set {setting!r} must have the form name=value; give e.g. --set mass=100")
            if name in values:
                raise OptionError(f"--set {name!r} is given twice; keep one of {values[name]!r} and {value.strip()!r}")
            values[name] = value.strip()
        return values

    def config_changes(self) -> dict[str, Any]:
        """Return the solver settings that the command line changes. Keys are field names of ``SolverConfig``."""
        names = ("dt", "substeps", "iterations", "joint_solver", "scheme")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def signal_patterns(self) -> list[str] | None:
        """Return the signal names and patterns of ``--signals``, or None if the option is not given.

        Raises:
            OptionError: the list is empty.
        """
        if self.signals is None:
            return None
        patterns = [name.strip() for text in self.signals for name in text.split(",") if name.strip()]
        if not patterns:
            raise OptionError("--signals is empty; name at least one signal, e.g. --signals sim.kinetic_energy")
        return patterns


def check(options: RunOptions) -> None:
    """Check the options that do not depend on the model.

    Raises:
        OptionError: an option is invalid.
        ModelError: an output file cannot be written.
    """
    check_duration(options.duration)
    _positive("--dt", options.dt, "0.001")
    _check_minimum("--substeps", options.substeps, 1)
    _check_minimum("--iterations", options.iterations, 1)
    _check_minimum("--num-worlds", options.num_worlds, 1)
    _check_minimum("--seed", options.seed, 0)
    parameters = options.parameters()
    options.signal_patterns()
    _check_rate(options)
    _check_target(options, parameters)
    if options.out is not None:
        WRITERS[suffix_of(check_output_file(options.out, tuple(WRITERS), "--out"))].prepare()
    if options.plot is not None:
        check_plot_file(options.plot, "--plot")
    if options.save is not None:
        check_output_file(options.save, (".npz",), "--save")
    written = {"--out": options.out, "--plot": options.plot}
    read = {"--replay": options.replay, "--policy": options.policy}
    check_apart(written | {"--save": options.save} | read)
    check_apart(written | {"--resume": options.resume})
    _check_resume(options)


def _check_resume(options: RunOptions) -> None:
    """Check that all other options fit the checkpoint of ``--resume``."""
    if options.resume is None:
        return
    usual = RunOptions(options.target)
    for name in ("dt", "substeps", "iterations", "dtype", "joint_solver", "scheme", "num_worlds", "pose", "replay"):
        if getattr(options, name) != getattr(usual, name):
            option = f"--{name.replace('_', '-')}"
            rule = f"does not fit --resume, which continues the run in {str(options.resume)!r}"
            raise OptionError(f"{option} {rule}; drop one of the options")


def _check_rate(options: RunOptions) -> None:
    if options.out is None and options.out_dtype != "float64":
        raise OptionError("--out-dtype is for --out; give a file, e.g. --out run.parquet, or drop the option")
    if options.rate is None:
        return
    if not (math.isfinite(options.rate) and options.rate > 0.0):
        raise OptionError(f"--rate must be a finite number above 0, got {options.rate:g}; give e.g. --rate 100")
    if options.out is None:
        raise OptionError("--rate is for --out; give a file, e.g. --out run.npz, or drop the option")


def check_duration(seconds: float | None) -> None:
    """Check the value of ``--duration``.

    Raises:
        OptionError: the duration is not a finite number above 0.
    """
    _positive("--duration", seconds, "4")


def count_steps(option: str, seconds: float, dt: float) -> int:
    """Return the number of steps of ``dt`` s in ``seconds``, rounded to the nearest integer.

    Raises:
        OptionError: the number of steps is above ``_MAX_STEPS``.
    """
    steps = seconds / dt
    if not steps <= _MAX_STEPS:
        raise OptionError(f"{option} {seconds:g} s has more than {_MAX_STEPS:g} steps of {dt:g} s; give less")
    return round(steps)


def _check_target(options: RunOptions, parameters: Mapping[str, str]) -> None:
    kind = options.kind()
    if kind == MODEL and parameters and Path(options.target).suffix.lower() != XACRO:
        names = ", ".join(map(repr, parameters))
        raise OptionError(f"--set: only xacro files have arguments ({names} given); drop the option")
    if kind is not None and not is_module(options.target):
        path = split(options.target)[0]
        if Path(path).is_dir():
            raise OptionError(f"FILE {path!r} is a folder; name the file in it")
        if not Path(path).is_file():
            raise OptionError(f"FILE {path!r} does not exist; check the path")
    if kind != MODEL:
        what = "is a scene" if kind is None else "is not a model file"
        for name in ("fixed_base", "floating", "floor"):
            if getattr(options, name):
                option = f"--{name.replace('_', '-')}"
                raise OptionError(f"{option} is for model files, and {options.target!r} {what}; drop the option")
    elif options.fixed_base and options.floating:
        raise OptionError("--fixed-base and --floating contradict each other; keep one of them")


def _positive(option: str, value: float | None, example: str) -> None:
    if value is not None and not (math.isfinite(value) and value > 0.0):
        rule = f"must be a finite number of seconds above 0, got {value:g}"
        raise OptionError(f"{option} {rule}; give e.g. {option} {example}")


def _check_minimum(option: str, value: int | None, minimum: int) -> None:
    if value is not None and value < minimum:
        raise OptionError(f"{option} must be at least {minimum}, got {value}; give e.g. {option} {max(minimum, 1)}")


def picture_size(text: str, min_size: int, example: str) -> tuple[int, int]:
    """Parse ``WIDTHxHEIGHT`` into the width and height (pixels) of a picture or a window.

    Raises:
        OptionError: the format is wrong, or a number is below ``min_size`` or above LARGEST_PICTURE.
    """
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text.strip().lower())
    width, height = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    if not (min_size <= min(width, height) and max(width, height) <= LARGEST_PICTURE):
        raise OptionError(
            f"--size {text!r} must be WIDTHxHEIGHT, {min_size} to {LARGEST_PICTURE} each; give e.g. {example}"
        )
    return width, height
