"""Dataclasses for elements of the builder: bodies, joints, couplings, actuators, shapes, visuals, sites and sensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gpusim.contact.material import Material
from gpusim.description.looks import Look
from gpusim.description.rays import Rays
from gpusim.transform import Transform
from gpusim.typing import Array

WORLD = -1


class Named:
    """Base class of elements with a label. ``word`` is the noun for the element in messages."""

    word: ClassVar[str]
    label: str

    @property
    def element(self) -> str:
        """Return the name of this element for messages."""
        return f"{self.word} '{self.label}'"


@dataclass
class BodySpec(Named):
    """A rigid body. The inertia (kg m2) is about the center of mass, in the axes of the body frame.

    NaN in ``mass``, ``inertia`` or ``com`` means that finalize computes the value from the body's shapes.
    """

    word: ClassVar[str] = "body"
    label: str
    mass: float
    inertia: Array
    com: Array
    xform: Transform
    linear_velocity: Array
    angular_velocity: Array
    kinematic: bool
    gravity_scale: float = 1.0
    conveyor: bool = False

    @property
    def complete(self) -> bool:
        """Return True if mass, inertia and center of mass are all given."""
        return not (math.isnan(self.mass) or bool(np.isnan(self.com).any()) or bool(np.isnan(self.inertia).any()))


@dataclass
class JointSpec(Named):
    """A joint between ``parent`` and ``child``. The frames of the joint are relative to the body frames.

    ``solver`` ("direct" or "colored") also applies to all joints that are connected to this joint. With None, the
    simulation chooses the solver.
    """

    kind: str
    word: ClassVar[str] = "joint"
    label: str
    parent: int
    child: int
    parent_xform: Transform
    child_xform: Transform
    params: dict[str, Any] = field(default_factory=dict)
    solver: str | None = None


Term = tuple[int, int, float]
"""Term of a sum of joint coordinates: joint index, index of the coordinate in the joint, and factor."""


@dataclass
class CouplingSpec(Named):
    """A gear, mimic or differential: the sum of ``factor * q`` over joint coordinates q equals ``offset``.

    If ``offset`` is None, the starting pose determines the offset. With a ``curve`` (c2, c3, c4), the sum also contains
    the polynomial ``c2 q^2 + c3 q^3 + c4 q^4`` of the first coordinate.
    """

    word: ClassVar[str] = "coupling"
    label: str
    terms: list[Term]
    offset: float | None
    curve: tuple[float, ...] = ()


@dataclass
class ActuatorSpec:
    """An actuator of a registered ``kind``, with checked parameters."""

    kind: str
    label: str
    params: dict[str, Any]

    @property
    def element(self) -> str:
        """Return the name of this element for messages."""
        return f"{self.kind} '{self.label}'"


@dataclass
class ShapeSpec(Named):
    """A shape of a registered ``kind`` on ``body`` (-1: the world), with checked parameters.

    ``xform`` is the shape frame in the body frame. Shapes a and b collide if ``a.group & b.mask`` and ``b.group &
    a.mask`` are both nonzero. ``ModelBuilder.finalize`` converts a group name in ``group`` to bits. ``density`` (kg/m3)
    determines the body's mass if you specify no mass. ``color`` (sRGB, 0 to 1) and ``covered`` only affect drawing. If
    ``covered`` is True, the viewer draws the shape only if visuals are hidden.
    """

    word: ClassVar[str] = "shape"
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
    covered: bool = False


@dataclass
class VisualSpec(Named):
    """Appearance of a body (-1: the world), without effect on contacts and masses.

    Attributes:
        label: unique name.
        kind: a registered shape kind, or "mesh".
        body: index, -1 for the world.
        xform: frame of the visual in the body frame.
        params: checked parameters of the kind, or the ``pieces`` of a mesh.
        color: sRGB, 0 to 1, or None for the colors of the mesh file or the body's default color. If the visual has a
            texture, the color multiplies the texture's colors.
        look: transparency, finish and texture.
    """

    word: ClassVar[str] = "visual"
    label: str
    kind: str
    body: int
    xform: Transform
    params: dict[str, Any]
    color: tuple[float, float, float] | None = None
    look: Look = field(default_factory=Look)


@dataclass
class SiteSpec(Named):
    """A named frame on a body (-1: the world), for sensors and for kinematics.

    ``xform`` is the site frame in the body frame.
    """

    word: ClassVar[str] = "site"
    label: str
    body: int
    xform: Transform


JOINT_SENSOR, CONTACT_SENSOR, RAY_SENSOR = "joint", "contact", "ray"


@dataclass(frozen=True, eq=False)
class RaySpec:
    """Rays of a ray sensor, and the shapes that they can hit.

    Attributes:
        rays: rays in the frame of the sensor's site.
        max_range: maximum distance (m) that the sensor measures.
        groups: names of the visible shape groups, or None for all shapes.
        own_body: whether the sensor also sees the shapes of the body that carries the sensor's site.
        shapes: indices of the visible shapes in ascending order, empty before finalize.
    """

    rays: Rays
    max_range: float
    groups: tuple[str, ...] | None
    own_body: bool
    shapes: tuple[int, ...] = ()


@dataclass
class SensorSpec(Named):
    """A sensor of one of three kinds: load of a joint, contacts of a body, or rays from a site.

    ``element_index`` is the index of the joint or body, or -1 for rays. ``site`` is the index of a site. The values of
    a contact sensor and the ``rays`` are in the frame of the site.
    """

    word: ClassVar[str] = "sensor"
    label: str
    kind: str
    element_index: int
    site: int = -1
    rays: RaySpec | None = None

    def moved(self, first_joint: int, first_body: int, first_site: int, prefix: str) -> SensorSpec:
        """Return a copy for another builder.

        The arguments ``first_...`` are added to the joint, body and site indices. Group names get the prefix.
        """
        index, rays = self.element_index, self.rays
        if self.kind != RAY_SENSOR:
            index += first_joint if self.kind == JOINT_SENSOR else first_body
        if rays is not None and rays.groups is not None:
            rays = replace(rays, groups=tuple(prefix + name for name in rays.groups))
        site = self.site if self.site < 0 else self.site + first_site
        return replace(self, element_index=index, site=site, rays=rays)


@dataclass(frozen=True)
class PoseSpec(Named):
    """A named posture, for ``sim.reset(pose=label)``.

    Attributes:
        label: unique name.
        joints: joint label -> coordinates (n,).
        bodies: body label -> pose in the world.
        commands: command values by command label.
        activations: values of activations by command label.
    """

    word: ClassVar[str] = "pose"
    label: str
    joints: dict[str, Array] = field(default_factory=dict)
    bodies: dict[str, Transform] = field(default_factory=dict)
    commands: dict[str, float] = field(default_factory=dict)
    activations: dict[str, float] = field(default_factory=dict)

    def values(self) -> dict[str, Array]:
        """Return the values of the posture by signal name, for ``sim.write_state``."""
        values = {f"joint.{label}.position": numbers for label, numbers in self.joints.items()}
        for label, xform in self.bodies.items():
            values |= {f"body.{label}.position": xform.position, f"body.{label}.orientation": xform.rotation}
        return values

    def moved(self, start: Transform, prefix: str) -> PoseSpec:
        """Return a copy for another builder.

        ``start`` is the pose of this builder's world in the world of the other builder. Labels get the prefix.
        """
        return PoseSpec(
            prefix + self.label,
            {prefix + label: numbers for label, numbers in self.joints.items()},
            {prefix + label: start * xform for label, xform in self.bodies.items()},
            {prefix + label: value for label, value in self.commands.items()},
            {prefix + label: value for label, value in self.activations.items()},
        )


@dataclass
class PairSpec:
    """Collision rule for two shapes, which overrides their collision groups.

    The shapes collide only if ``collide`` is True.

    If ``material`` is None, the contact combines the materials of both shapes.
    """

    shape_a: int
    shape_b: int
    collide: bool
    material: Material | None = None
