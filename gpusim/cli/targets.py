"""Load the target of a command line: a scene of the package, or a file (``gpusim run robot.urdf``)."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions
from gpusim.cli.policies import driven_by_policy
from gpusim.cli.target_files import (
    MACHINE,
    MODEL,
    PYTHON,
    add_still_body,
    machine_scene,
    model_scene,
    python_function,
    python_scene,
    show_findings,
)
from gpusim.errors import unknown_name
from gpusim.scene import Scene, load_scene, scene_parameters

if TYPE_CHECKING:
    from gpusim.importers import ImportReport

_MODEL_OPTIONS = ("pose", "floor", "floating")
"""Names of the options for model files. Recordings store these options as scene parameters."""

_SET = "--set "
"""Prefix that marks xacro arguments in the parameters of a recording."""
_POSE = "--pose"
"""Name of the recorded parameter that stores the posture."""


def load_target(
    options: RunOptions, visuals: bool = True, reports: list[ImportReport] | None = None, still: bool = False
) -> Scene:
    """Load the scene or file of a command line. With ``--policy``, the policy replaces the scene's schedule.

    Args:
        options: options of the command line.
        visuals: also read a robot's visual shapes, which appear in pictures.
        reports: list to which the reports of imports are added, or None to print the findings on stderr.
        still: accept a file in which nothing can move, and add a kinematic body without shapes to the scene.
    """
    loaded = _package_scene(options) if options.kind() is None else _file_scene(options, visuals, reports, still)
    return driven_by_policy(options, loaded)


def _file_scene(options: RunOptions, visuals: bool, reports: list[ImportReport] | None, still: bool) -> Scene:
    from gpusim.importers.report import combined

    kind, parameters = options.kind(), options.parameters()
    if options.seed is not None and not _takes_seed(options):
        if options.policy is None:
            note(f"{options.target!r} draws no random numbers; --seed changes nothing")
    elif options.seed is not None and "seed" in parameters:
        raise OptionError("--seed and --set seed=... both give the seed; keep one of them")
    elif options.seed is not None:
        parameters["seed"] = str(options.seed)
    if kind == MODEL:
        scene = model_scene(
            options.target,
            hold=not options.fixed_base,
            fixed_base=True if options.fixed_base else False if options.floating else None,
            pose=options.pose,
            arguments=parameters,
            floor=options.floor,
            visuals=visuals,
            reports=reports,
            still=still,
        )
    else:
        scene = (machine_scene if kind == MACHINE else python_scene)(options.target, parameters)
    if still:
        add_still_body(scene)
    if kind == MODEL:
        return scene
    if reports is not None:
        reports.extend(scene.reports)
    elif (report := combined(scene.reports)) is not None:
        show_findings(report, options.target)
    return scene


def _takes_seed(options: RunOptions) -> bool:
    return options.kind() == PYTHON and "seed" in inspect.signature(python_function(options.target)).parameters


def _package_scene(options: RunOptions) -> Scene:
    parameters: dict[str, Any] = dict(options.parameters())
    known = [parameter.name for parameter in scene_parameters(options.target)]
    for name in parameters:
        if name not in known:
            error = unknown_name("parameter", name, known)
            raise OptionError(f"--set: {error}; see 'gpusim list {options.target}'")
    if options.seed is not None:
        if "seed" not in known and options.policy is not None:
            pass  # --seed is the seed of the policy's goals
        elif "seed" not in known:
            note(f"scene {options.target!r} draws no random numbers; --seed changes nothing")
        elif "seed" in parameters:
            raise OptionError("--seed and --set seed=... both give the seed; keep one of them")
        else:
            parameters["seed"] = options.seed
    return load_scene(options.target, **parameters)


def target_parameters(options: RunOptions) -> dict[str, Any]:
    """Return the scene parameters to store in a recording. With these parameters, gpusim can rebuild the scene."""
    if options.kind() == MODEL:
        given = {name: getattr(options, name) for name in _MODEL_OPTIONS if getattr(options, name)}
        return given | {f"{_SET}{name}": value for name, value in options.parameters().items()}
    seed = {} if options.seed is None else {"seed": options.seed}
    if options.is_file():
        pose = {} if options.pose is None else {_POSE: options.pose}
        return {**(seed if _takes_seed(options) else {}), **options.parameters(), **pose}
    values = {parameter.name: parameter.default for parameter in scene_parameters(options.target)}
    if "seed" in values:
        values.update(seed)
    return {**values, **options.parameters()}


def with_parameters(options: RunOptions, parameters: Mapping[str, Any]) -> RunOptions:
    """Return options with the parameters that :func:`target_parameters` stored in a recording."""
    if options.kind() == MODEL:
        texts = {name: str(parameters.get(name) or "") for name in _MODEL_OPTIONS}
        arguments = {name.removeprefix(_SET): value for name, value in parameters.items() if name.startswith(_SET)}
        return dataclasses.replace(
            options,
            settings=tuple(f"{name}={value}" for name, value in arguments.items()),
            pose=texts["pose"] or None,
            floor=texts["floor"] == "True",
            floating=texts["floating"] == "True",
        )
    settings = tuple(f"{name}={value}" for name, value in parameters.items() if name != _POSE)
    seed = None if "seed" in parameters else options.seed
    return dataclasses.replace(options, settings=settings, seed=seed, pose=parameters.get(_POSE, options.pose))
