"""Recorded motions and their scenes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.cli.targets import load_target
from gpusim.errors import GpusimError, ModelError
from gpusim.recording.motion import Motion, load_motion
from gpusim.scene import Scene, scene_parameters, scene_values


def recorded_parameters(options: RunOptions) -> dict[str, Any]:
    """Return all parameters of the scene, including defaults, which may change between releases."""
    if options.is_file():
        return {}
    values = {parameter.name: parameter.default for parameter in scene_parameters(options.target)}
    if options.seed is not None and "seed" in values:
        values["seed"] = options.seed
    return {**values, **options.parameters()}


def recorded_target(options: RunOptions) -> str:
    """Return the scene's name, or the absolute path of the robot file, so that any folder can play the motion."""
    return str(Path(options.target).resolve()) if options.is_file() else options.target


def check_recording(options: RunOptions, more: Sequence[str] = (), allowed: Sequence[str] = ()) -> None:
    """Raise if an option is given that only applies to simulations.

    Args:
        options: the command line; its target is a recording.
        more: names of further options that were given and only apply to simulations.
        allowed: names of options that also apply to recordings.

    Raises:
        OptionError: such an option is given; the message names it.
    """
    plain = RunOptions(target=options.target)
    names = [field.name for field in dataclasses.fields(options) if field.name not in allowed]
    given = [*more, *(name for name in names if getattr(options, name) != getattr(plain, name))]
    if given:
        name = "set" if given[0] == "settings" else given[0].replace("_", "-")
        raise OptionError(f"--{name} is for simulations, and {options.target!r} is a recording; drop the option")


def recorded_motion(path: str) -> Motion:
    """Load a recording. Print a note with its duration if it is incomplete.

    Raises:
        ModelError: the file cannot be read.
    """
    motion = load_motion(path)
    if not motion.complete:
        note(f"{path}: was broken off after {motion.duration:.2f} s; these are available")
    return motion


def scene_of(motion: Motion, path: str) -> Scene:
    """Build the scene that a motion was recorded from.

    Args:
        motion: the recorded motion.
        path: path of the recording; a robot file that has moved is looked for in the same folder.

    Raises:
        ModelError: the motion names no scene, its robot file is missing, or its scene has changed since.
    """
    header = motion.header
    if not header.target:
        raise ModelError(
            f"recording {path!r} is of a model that a program built; play it from Python with gpusim.recording.player"
        )
    target = Path(header.target)
    if target.suffix and not target.is_file():
        sibling = Path(path).parent / target.name
        if not sibling.is_file():
            raise ModelError(
                f"recording {path!r}: its robot file {header.target!r} is gone; put it next to the recording"
            )
        target = sibling
    settings = tuple(f"{name}={value}" for name, value in header.parameters.items())
    options = RunOptions(target=str(target), settings=settings, fixed_base=header.fixed_base)
    check(options)
    if not options.is_file():
        _check_parameters(options, path)
    return load_target(options)


def _check_parameters(options: RunOptions, path: str) -> None:
    try:
        scene_values(options.target, **options.parameters())
    except GpusimError as error:
        raise ModelError(
            f"recording {path!r} does not fit this version of gpusim ({error}); play it with the one that made it"
        ) from error
