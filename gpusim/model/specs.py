"""What the builder writes down: one record for each body, joint, coupling and actuator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpusim.geometry import Transform
from gpusim.typing import Array

WORLD = -1


@dataclass
class BodySpec:
    """A rigid body; inertia about the center of mass in the axes of the body frame, kg m2."""

    label: str
    mass: float
    inertia: Array
    com: Array
    xform: Transform
    linear_velocity: Array
    angular_velocity: Array
    kinematic: bool

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"body '{self.label}'"


@dataclass
class JointSpec:
    """A joint between ``parent`` and ``child``; the frames sit in the body frames."""

    kind: str
    label: str
    parent: int
    child: int
    parent_xform: Transform
    child_xform: Transform
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"joint '{self.label}'"


@dataclass
class CouplingSpec:
    """Gear or mimic: ``q_follower = multiplier q_leader + offset`` between two joint coordinates.

    ``offset`` None means: whatever holds in the starting pose.
    """

    label: str
    leader: int
    leader_axis: int
    follower: int
    follower_axis: int
    multiplier: float
    offset: float | None

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"coupling '{self.label}'"


@dataclass
class ActuatorSpec:
    """An actuator of a registered ``kind`` with its checked parameters."""

    kind: str
    label: str
    params: dict[str, Any]

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"{self.kind} '{self.label}'"
