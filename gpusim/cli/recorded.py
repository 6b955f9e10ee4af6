"""Recorded motions and their scenes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.cli.target_files import is_module, split
from gpusim.cli.targets import load_target, with_parameters
from gpusim.errors import GpusimError, ModelError
from gpusim.recording.motion import Motion, load_motion
from gpusim.scene import Scene, scene_values


def recorded_target(options: RunOptions) -> str:
    """Return the target that a recording stores: the scene's name, or the absolute path of the scene's file."""
    if not options.is_file() or is_module(options.target):
        return options.target
    path, function = split(options.target)
    return f"{Path(path).resolve()}{f':{function}' if function else ''}"


def check_recording(options: RunOptions, more: Sequence[str] = (), allowed: Sequence[str] = ()) -> None:
    """Raise an error if the command line has an option that recordings do not support.

    Args:
        options: options of a command line with a recording as target.
        more: names of additional options on the command line that recordings do not support.
        allowed: names of the fields of ``options`` that recordings support.

    Raises:
        OptionError: recordings do not support a given option.
    """
    plain = RunOptions(target=options.target)
    names = [field.name for field in dataclasses.fields(options) if field.name not in allowed]
    given = [*more, *(name for name in names if getattr(options, name) != getattr(plain, name))]
    if given:
        name = "set" if given[0] == "settings" else given[0].replace("_", "-")
        raise OptionError(f"--{name} is for simulations, and {options.target!r} is a recording; drop the option")


def recorded_motion(path: str) -> Motion:
    """Load a recording.

    Raises:
        ModelError: the file cannot be read.
    """
    motion = load_motion(path)
    if not motion.complete:
        note(f"{path}: was interrupted after {motion.duration:.2f} s; these seconds are available")
    return motion


def scene_of(motion: Motion, path: str) -> Scene:
    """Build the scene of a recorded motion.

    Args:
        motion: the recorded motion.
        path: path of the recording. If the scene's file is missing, a file with the same name in the recording's folder
            replaces the missing file.

    Raises:
        ModelError: the motion names no scene, the file of the scene is missing, or the scene rejects its parameters.
    """
    header = motion.header
    if not header.target:
        raise ModelError(
            f"recording {path!r} is of a model that a program built; play it from Python with gpusim.recording.player"
        )
    options = RunOptions(target=_found(header.target, path), fixed_base=header.fixed_base)
    options = with_parameters(options, header.parameters)
    check(options)
    if not options.is_file():
        _check_parameters(options, path)
    return load_target(options)


def _found(recorded: str, path: str) -> str:
    """Return the recorded target, or a file of the same name next to the recording if the target's file is missing."""
    file, function = split(recorded)
    target = Path(file)
    if not target.suffix or is_module(recorded) or target.is_file():
        return recorded
    sibling = Path(path).parent / target.name
    if not sibling.is_file():
        raise ModelError(f"recording {path!r}: its file {file!r} is missing; put it next to the recording")
    return f"{sibling}{f':{function}' if function else ''}"


def _check_parameters(options: RunOptions, path: str) -> None:
    try:
        scene_values(options.target, **options.parameters())
    except GpusimError as error:
        raise ModelError(
            f"recording {path!r} does not fit this version of gpusim ({error}); play it with the one that made it"
        ) from error
