"""What a command line names: a scene, or a robot file."""

from __future__ import annotations

from typing import Any

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions
from gpusim.errors import unknown_name
from gpusim.scene import Scene, load_scene, scene_parameters


def load_target(options: RunOptions, visuals: bool = True) -> Scene:
    """The scene that a command line names, or one around its robot file, with its parameters.

    ``visuals``: read what a robot looks like, for pictures.
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
