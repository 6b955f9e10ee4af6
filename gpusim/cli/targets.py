"""Loader of the scene or robot file that a command line names."""

from __future__ import annotations

from typing import Any

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions
from gpusim.errors import unknown_name
from gpusim.scene import Scene, load_scene, scene_parameters


def load_target(options: RunOptions, visuals: bool = True) -> Scene:
    """Load the scene that a command line names, or build one around its robot file.

    ``visuals``: also read a robot's visual shapes, for pictures.
    """
    if options.is_file():
        from gpusim.cli.robot import robot_scene

        if options.seed is not None:
            note(f"robot {options.target!r} draws no random numbers; --seed changes nothing")
        return robot_scene(options.target, hold=not options.fixed_base, visuals=visuals)
    parameters: dict[str, Any] = options.parameters()
    known = [parameter.name for parameter in scene_parameters(options.target)]
    for name in parameters:
        if name not in known:
            error = unknown_name("parameter", name, known)
            raise OptionError(f"--set: {error}; see 'gpusim list {options.target}'")
    if options.seed is not None:
        if "seed" not in known:
            note(f"scene {options.target!r} draws no random numbers; --seed changes nothing")
        elif "seed" in parameters:
            raise OptionError("--seed and --set seed=... both give the seed; keep one of them")
        else:
            parameters["seed"] = options.seed
    return load_scene(options.target, **parameters)
