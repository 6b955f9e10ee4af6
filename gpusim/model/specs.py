"""What the builder writes down: one record for each body, joint, coupling, actuator, shape, pair, visual, site."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpusim.model.material import Material
from gpusim.model.rays import Rays
from gpusim.transform import Transform
from gpusim.typing import Array

WORLD = -1


@dataclass
class BodySpec:
    """A rigid body; inertia about the center of mass in the axes of the body frame, kg m2.

    NaN in ``mass``, ``inertia`` or ``com`` stands for what the body's shapes give at finalize.
    """

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

    @property
    def complete(self) -> bool:
        """True if nothing is left for the body's shapes to give."""
        return not (math.isnan(self.mass) or bool(np.isnan(self.com).any()) or bool(np.isnan(self.inertia).any()))


@dataclass
class JointSpec:
    """A joint between ``parent`` and ``child``; the frames sit in the body frames.

    ``solver``: "direct" or "colored" for the joints that it hangs together with, None for what the simulation chooses.
    """

    kind: str
    label: str
    parent: int
    child: int
    parent_xform: Transform
    child_xform: Transform
    params: dict[str, Any] = field(default_factory=dict)
    solver: str | None = None

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"joint '{self.label}'"


Term = tuple[int, int, float]
"""A joint, one of its coordinates, and what that is multiplied by in a sum."""


@dataclass
class CouplingSpec:
    """Gear, mimic or differential: ``sum of factor * q = offset`` over joint coordinates.

    ``offset`` None means: whatever holds in the starting pose.
    """

    label: str
    terms: list[Term]
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


@dataclass
class ShapeSpec:
    """A shape of a registered ``kind`` with its checked parameters, fixed to ``body`` (-1: the world).

    ``xform`` is the shape frame in the body frame; two shapes collide if ``a.group & b.mask`` and ``b.group & a.mask``
    both have a bit (finalize puts bits for a named ``group``); ``density`` in kg/m3 serves bodies without a given mass;
    ``color`` (sRGB, 0 to 1) pictures alone.
    """

    label: str
    kind: str
    body: int
    xform: Transform
    params: dict[str, Any]
    material: Material
    group: int | str
    mask: int
    density: float
    color: tuple[float, float, float] | None = None

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"shape '{self.label}'"


@dataclass
class VisualSpec:
    """What a body (-1: the world) looks like; neither contacts nor masses know of it.

    Attributes:
        label: its name.
        kind: of a registered shape, or "mesh".
        body: index, -1 for the world.
        xform: frame of the picture in the body frame.
        params: checked parameters of the kind; of a mesh the ``pieces``.
        color: sRGB, 0 to 1; None for the colors of a mesh's file, or that which bodies have by their index.
    """

    label: str
    kind: str
    body: int
    xform: Transform
    params: dict[str, Any]
    color: tuple[float, float, float] | None = None

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"visual '{self.label}'"


@dataclass
class SiteSpec:
    """A named frame on a body (-1: the world), where sensors sit and which kinematics aims at.

    ``xform`` is the site frame in the body frame.
    """

    label: str
    body: int
    xform: Transform

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"site '{self.label}'"


JOINT_SENSOR, CONTACT_SENSOR, RAY_SENSOR = "joint", "contact", "ray"


@dataclass(frozen=True, eq=False)
class RaySpec:
    """What a sensor of rays casts and sees.

    Attributes:
        rays: in the frame of its site.
        max_range: how far it sees, m.
        groups: names of the groups of shapes that it sees; None: all shapes.
        own_body: whether it sees the shapes of its site's body.
        shapes: what follows from that: indices of shapes, rising; empty until the model is finalized.
    """

    rays: Rays
    max_range: float
    groups: tuple[str, ...] | None
    own_body: bool
    shapes: tuple[int, ...] = ()


@dataclass
class SensorSpec:
    """A sensor: what a joint bears, what touches a body, or what rays from a site hit.

    ``element_index`` is that of the joint or body, ``site`` the one that forces on a body are about, or that ``rays``
    begin at (``element_index`` is -1 then).
    """

    label: str
    kind: str
    element_index: int
    site: int = -1
    rays: RaySpec | None = None

    @property
    def element(self) -> str:
        """How messages name it."""
        return f"sensor '{self.label}'"

    def moved(self, first_joint: int, first_body: int, first_site: int, prefix: str) -> SensorSpec:
        """The same in a builder where joints, bodies and sites have later numbers, and names of groups a prefix."""
        index, rays = self.element_index, self.rays
        if self.kind != RAY_SENSOR:
            index += first_joint if self.kind == JOINT_SENSOR else first_body
        if rays is not None and rays.groups is not None:
            rays = replace(rays, groups=tuple(prefix + name for name in rays.groups))
        site = self.site if self.site < 0 else self.site + first_site
        return replace(self, element_index=index, site=site, rays=rays)


@dataclass
class PairSpec:
    """Two shapes that collide, or not, whatever their groups say; ``material`` None: theirs combined."""

    shape_a: int
    shape_b: int
    collide: bool
    material: Material | None = None
