"""Input of all lint checks: a model in its start pose."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.config import SolverConfig
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ShapeSpec
from gpusim.importers.report import Finding
from gpusim.model.model import Model
from gpusim.robotics import Tree
from gpusim.signals.fall_watch import grounded
from gpusim.simulation import Simulation
from gpusim.transform import Transform
from gpusim.typing import Array


@dataclass
class Subject:
    """Builder of a model, with data that all lint checks share.

    Attributes:
        builder: the model's builder.
        dt: time step of the simulation (s).
        findings: list of the findings so far.
    """

    builder: ModelBuilder
    dt: float
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def model(self) -> Model:
        """Return the finalized model."""
        return self.builder.finalize()

    @cached_property
    def tree(self) -> Tree:
        """Return the model's joints as a tree."""
        return Tree(self.model)

    def simulation(self) -> Simulation:
        """Return a new simulation in the start pose."""
        return Simulation(self.model, backend="numpy", config=SolverConfig(dt=self.dt))

    def add(self, severity: str, element: str, what: str, effect: str = "", fix: str = "") -> None:
        """Add a finding."""
        self.findings.append(Finding(severity, element, what, effect, fix))

    def points(self, shape: ShapeSpec) -> Array:
        """Return points (n, 3) on the surface of a shape, in the body frame (m)."""
        vertices, _ = shape_type(shape.kind).mesh(shape.params, 32)
        return np.asarray(shape.xform.apply(np.asarray(vertices, float)))

    def shapes_of(self, body: int) -> list[ShapeSpec]:
        """Return the shapes of a body."""
        return [shape for shape in self.model.shapes if shape.body == body]

    def grounded(self) -> set[int]:
        """Return the bodies that a chain of joints connects to the world or to a kinematic body."""
        return grounded(self.model)

    def pose(self, body: int) -> Transform:
        """Return the pose of a body in the world."""
        return Transform() if body == WORLD else self.model.bodies[body].xform
