"""The step of the NumPy backend: runs the stages of solver/schedule.py in order."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Protocol

from gpusim.model.config import SolverConfig
from gpusim.reference.work import Work
from gpusim.solver.nodes import If, Node, Stage, Sweeps
from gpusim.solver.schedule import CONTACTS, STEP, TRIAL


class Stages(Protocol):
    """Object with a method for each stage that does not name a function of gpusim/reference/."""

    work: Work
    h: float
    """Size of the substep, s."""


def step(stages: Stages, config: SolverConfig, dt: float) -> None:
    """Advance all worlds by ``dt`` seconds in ``config.substeps`` equal substeps."""
    stages.h = dt / config.substeps
    _run(STEP, stages, config)


def find_contacts(stages: Stages, config: SolverConfig, dt: float) -> None:
    """Run the contact stages at the start of a step of ``dt`` seconds."""
    stages.h = dt / config.substeps
    _run(CONTACTS, stages, config)


def forward(stages: Stages, config: SolverConfig, h: float) -> None:
    """Compute velocities and forces at t_n from a trial kick. The caller restores the state."""
    stages.h = h
    _run(TRIAL, stages, config)


def reference_file(stage: Stage) -> ModuleType | None:
    """Return the module of the stage's reference function, or None if it names none."""
    name = stage.reference.rpartition(".")[0]
    return importlib.import_module(f"gpusim.reference.{name}") if name else None


def run_stage(stages: Stages, stage: Stage) -> None:
    """Run one stage over all worlds."""
    file = reference_file(stage)
    if file is None:
        getattr(stages, stage.name)()
    else:
        getattr(file, stage.reference.rpartition(".")[2])(stages.work)


def _run(nodes: tuple[Node, ...], stages: Stages, config: SolverConfig) -> None:
    settings = {"semi_implicit": int(config.scheme == "semi_implicit"), "substeps": config.substeps}
    for node in nodes:
        if isinstance(node, Stage):
            run_stage(stages, node)
        elif isinstance(node, Sweeps):
            assert isinstance(node.count, str)
            for _ in range(settings[node.count]):
                _run(node.body, stages, config)
        elif isinstance(node, If) and node.when.host(settings):
            _run(node.body, stages, config)
