"""Step of the NumPy backend: run the stages of solver/schedule.py in order."""

from __future__ import annotations

import importlib
from types import ModuleType

from gpusim.reference.step_buffers import StepBuffers
from gpusim.solver.nodes import If, Node, Stage, Sweeps
from gpusim.solver.schedule import CONTACTS, STEP, TRIAL


def step(work: StepBuffers, dt: float) -> None:
    """Advance all worlds by ``dt`` seconds in ``substeps`` equal substeps."""
    work.h = dt / work.config.substeps
    _run(STEP, work)


def find_contacts(work: StepBuffers, dt: float) -> None:
    """Run the contact stages at the start of a step of ``dt`` seconds."""
    work.h = dt / work.config.substeps
    _run(CONTACTS, work)


def forward(work: StepBuffers, h: float) -> None:
    """Compute the forces at the current time in a trial substep.

    The caller must restore the contacts of the state afterwards.
    """
    work.h = h
    _run(TRIAL, work)


def reference_file(stage: Stage) -> ModuleType:
    """Return the name of the module that contains the stage's NumPy function."""
    return importlib.import_module(f"gpusim.reference.{stage.reference.rpartition('.')[0]}")


def run_stage(work: StepBuffers, stage: Stage) -> None:
    """Run one stage in all worlds."""
    getattr(reference_file(stage), stage.reference.rpartition(".")[2])(work)


def _run(nodes: tuple[Node, ...], work: StepBuffers) -> None:
    config = work.config
    settings = {"semi_implicit": int(config.scheme == "semi_implicit"), "substeps": config.substeps}
    for node in nodes:
        if isinstance(node, Stage):
            run_stage(work, node)
        elif isinstance(node, Sweeps):
            assert isinstance(node.count, str)
            for _ in range(settings[node.count]):
                _run(node.body, work)
        elif isinstance(node, If) and node.when.host(settings):
            _run(node.body, work)
