"""The step of the NumPy backend: the stages of solver/schedule.py in their order."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Protocol

from gpusim.model.config import SolverConfig
from gpusim.reference.work import Work
from gpusim.solver.nodes import If, Node, Stage, Sweeps
from gpusim.solver.schedule import CONTACTS, STEP, TRIAL


class Stages(Protocol):
    """Who runs the stages; a method for each one that names no function of gpusim/reference/."""

    work: Work
    h: float
    """Size of the substep, s."""


def step(stages: Stages, config: SolverConfig, dt: float) -> None:
    """Advance all worlds by ``dt`` seconds in ``config.substeps`` equal parts."""
    stages.h = dt / config.substeps
    _run(STEP, stages, config)


def find_contacts(stages: Stages, config: SolverConfig, dt: float) -> None:
    """The stages of contacts that a step of ``dt`` seconds begins with."""
    stages.h = dt / config.substeps
    _run(CONTACTS, stages, config)


def forward(stages: Stages, config: SolverConfig, h: float) -> None:
    """Velocities and forces at t_n from a trial kick; the caller keeps the state as it is."""
    stages.h = h
    _run(TRIAL, stages, config)


def reference_file(stage: Stage) -> ModuleType | None:
    """The file of the function that the stage names."""
    name = stage.reference.rpartition(".")[0]
    return importlib.import_module(f"gpusim.reference.{name}") if name else None


def run_stage(stages: Stages, stage: Stage) -> None:
    """One stage over all worlds."""
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
