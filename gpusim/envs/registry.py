"""Ids of environments for ``gymnasium.make`` and ``gymnasium.make_vec``."""

from __future__ import annotations

import gymnasium

from gpusim import validate
from gpusim.envs.task import Task

_TASKS = "gpusim.envs.tasks"
IDS = {
    "gpusim/HydraulicLift-v0": f"{_TASKS}.hydraulic_lift:HydraulicLift",
    "gpusim/ExcavatorReach-v0": f"{_TASKS}.excavator:ExcavatorReach",
    "gpusim/ExcavatorDig-v0": f"{_TASKS}.excavator:ExcavatorDig",
    "gpusim/Krt100mDrive-v0": f"{_TASKS}.krt100m:Krt100mDrive",
    "gpusim/BipedWalk-v0": f"{_TASKS}.biped:BipedWalk",
    "gpusim/BoomCraneLift-v0": f"{_TASKS}.boom_crane:BoomCraneLift",
}
"""Tasks of gpusim: id -> ``"module:Class"``."""


def register(id: str, task: Task | type[Task] | str) -> None:
    """Register a task under an id, such as "my/Crane-v0", for ``gymnasium.make`` and ``gymnasium.make_vec``.

    Args:
        id: the id. If the id exists already, the new task replaces the old task.
        task: a :class:`gpusim.envs.Task`, the class of a task, or ``"module:Class"``.
    """
    if not isinstance(id, str) or not gymnasium.envs.registration.ENV_ID_RE.fullmatch(id):
        raise validate.fail("register", f"id = {validate.shown(id)} is not valid", "give e.g. 'my/Crane-v0'")
    gymnasium.envs.registration.registry.pop(id, None)
    gymnasium.register(
        id, entry_point="gpusim.envs.env:Env", vector_entry_point="gpusim.envs.vector_env:VectorEnv",
        kwargs={"task": task},
    )  # fmt: skip


for _id, _task in IDS.items():
    register(_id, _task)
