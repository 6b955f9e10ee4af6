"""The step of the NumPy backend: the stages of solver/schedule.py in their order."""

from __future__ import annotations

from gpusim.model.config import SolverConfig
from gpusim.solver.nodes import If, Node, Stage, Sweeps
from gpusim.solver.schedule import CONTACTS, STEP, TRIAL
from gpusim.solver.stages import Stages


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


def _run(nodes: tuple[Node, ...], stages: Stages, config: SolverConfig) -> None:
    settings = {"semi_implicit": int(config.scheme == "semi_implicit"), "substeps": config.substeps}
    for node in nodes:
        if isinstance(node, Stage):
            getattr(stages, node.name)()
        elif isinstance(node, Sweeps):
            assert isinstance(node.count, str)
            for _ in range(settings[node.count]):
                _run(node.body, stages, config)
        elif isinstance(node, If) and node.when.host(settings):
            _run(node.body, stages, config)
