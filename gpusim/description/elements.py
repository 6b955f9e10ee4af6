"""Elements of a world: the records that builder and model share."""

from __future__ import annotations

from dataclasses import dataclass

from gpusim.description.program import DiagramSpec
from gpusim.description.specs import (
    WORLD,
    ActuatorSpec,
    BodySpec,
    CouplingSpec,
    JointSpec,
    PairSpec,
    PoseSpec,
    SensorSpec,
    ShapeSpec,
    SiteSpec,
    VisualSpec,
)
from gpusim.description.viewing import CameraSpec, LightSpec


@dataclass(eq=False)
class Elements:
    """Bodies, joints and all other elements of one world in index order, and the number of worlds."""

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
    poses: list[PoseSpec]
    cameras: list[CameraSpec]
    lights: list[LightSpec]
    num_worlds: int

    def body_label(self, index: int) -> str:
        """Return the label of a body, or "world" for -1."""
        return "world" if index == WORLD else self.bodies[index].label
