"""Option ``--policy``: a learned policy replaces the scene's schedule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions
from gpusim.cli.target_files import modules_of_folder
from gpusim.scene import Scene

if TYPE_CHECKING:
    from gpusim.envs import PolicySchedule
    from gpusim.viewer.operator import Operator


def with_policy(options: RunOptions) -> RunOptions:
    """Return the options with the scene parameters and the time step of the policy's task.

    Command-line options take precedence. If the task builds a model itself, the command line must name this model as
    target.

    Raises:
        OptionError: the policy is for another scene, or ``--replay`` or ``--resume`` is also given.
        ModelError: the file cannot be read, or Gymnasium is missing.
    """
    if options.policy is None:
        return options
    for name in ("replay", "resume"):
        if getattr(options, name) is not None:
            raise OptionError(f"--policy does not fit --{name}; drop one of the options")
    task = _schedule(options).task
    if task.scene and options.target != task.scene:
        rule = f"is for scene {task.scene!r}, not {options.target!r}"
        raise OptionError(f"--policy {str(options.policy)!r} {rule}; give 'gpusim ... {task.scene}'")
    given = options.parameters()
    settings = [f"{name}={value}" for name, value in task.parameters.items() if name not in given]
    dt = task.dt if options.dt is None else options.dt
    return dataclasses.replace(options, settings=(*options.settings, *settings), dt=dt)


def driven_by_policy(options: RunOptions, scene: Scene) -> Scene:
    """Return a copy of the scene in which the policy replaces the schedule.

    The episode length of the policy's task replaces the duration of the scene. The returned scene has no checks.
    """
    if options.policy is None:
        return scene
    schedule = _schedule(options)
    return dataclasses.replace(scene, schedule=schedule, duration=schedule.task.episode, checks=())


def connect_goals(scene: Scene, operator: Operator) -> None:
    """Let the operator set the goals of the scene's policy. Do nothing if the policy has no goals."""
    connect = getattr(scene.schedule, "connect", None)
    if connect is not None:
        connect(operator)


def _schedule(options: RunOptions) -> PolicySchedule:
    from gpusim.envs import MlpPolicy, PolicySchedule

    assert options.policy is not None
    with modules_of_folder():
        return PolicySchedule(MlpPolicy.load(options.policy), options.seed or 0)
