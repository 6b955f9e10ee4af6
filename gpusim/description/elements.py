"""Lists of the elements of one world. Base class of the builder and the model."""

from __future__ import annotations

from dataclasses import dataclass, fields

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


@dataclass(eq=False, repr=False)
class Elements:
    """Lists of the bodies, joints and other elements of one world, and the number of worlds."""

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

    def __repr__(self) -> str:
        """Return a text that counts the elements, such as ``<ModelBuilder: 3 bodies, 1 joint>``."""
        counts = [(part.name, getattr(self, part.name)) for part in fields(Elements) if part.name != "num_worlds"]
        parts = [f"{len(items)} {_noun(name, len(items))}" for name, items in counts if items]
        parts += [f"{self.num_worlds} worlds"] if self.num_worlds > 1 else []
        return f"<{type(self).__name__}: {', '.join(parts) or 'empty'}>"

    def body_label(self, index: int) -> str:
        """Return the label of a body, or "world" for -1."""
        return "world" if index == WORLD else self.bodies[index].label


def _noun(plural: str, number: int) -> str:
    """Return the noun for ``number`` elements: the singular of ``plural`` for one element, else ``plural``."""
    return plural if number != 1 else "body" if plural == "bodies" else plural.removesuffix("s")
