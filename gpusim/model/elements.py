"""What a world is made of: the records of its builder and of its model."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.model.program import DiagramSpec
from gpusim.model.specs import (
    WORLD,
    ActuatorSpec,
    BodySpec,
    CouplingSpec,
    JointSpec,
    PairSpec,
    SensorSpec,
    ShapeSpec,
    SiteSpec,
    VisualSpec,
)


@dataclass(eq=False)
class Elements:
    """Bodies, joints and all else of one world in the order of their indices, and how many worlds are asked for."""

    bodies: list[BodySpec]
    joints: list[JointSpec]
    couplings: list[CouplingSpec]
    actuators: list[ActuatorSpec]
    shapes: list[ShapeSpec]
    pairs: list[PairSpec]
    visuals: list[VisualSpec]
    sites: list[SiteSpec]
    sensors: list[SensorSpec]
    diagrams: list[DiagramSpec]
    num_worlds: int

    def body_label(self, index: int) -> str:
        """Label of a body; "world" for -1."""
        return "world" if index == WORLD else self.bodies[index].label
