"""Arms of excavators and manipulators: links with parallel hinges, and bucket linkages.

All hinges of an arm are parallel. The arm moves in the x-z plane of its frame. Positive angles rotate x towards z. A
link's frame has its origin at the hinge, and its x axis along the link. All joint coordinates are zero in the initial
pose. ``arm_cylinders.py`` adds the cylinders.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import WORLD
from gpusim.errors import ModelError
from gpusim.machines.planar_arm import (
    BASE,
    ArmStatic,
    FourBar,
    Hinged,
    Mechanism,
    NotClosed,
    PlanarPose,
    PointForce,
    locate,
)
from gpusim.renamed import NamesMoved
from gpusim.transform import Transform
from gpusim.typing import Array, Vector

AXIS = (0.0, -1.0, 0.0)
"""Hinge axis for which positive angles rotate x towards z."""
SAMPLES = 65
"""Number of bucket angles at which ``add_bucket_linkage`` checks the linkage."""


@dataclass(frozen=True)
class Link:
    """A link of an arm, modeled as a box-shaped bar from its hinge along x.

    Attributes:
        label: name of the link in the arm.
        length: distance (m) from the link's hinge to the next hinge, or to the tip.
        mass: mass (kg).
        pose: initial angle (rad) relative to the previous link, or to the arm's x axis for the first link.
        limits: minimum and maximum of the angle (rad) relative to the previous link.
        height, width: size (m) of the bar's cross-section, in the arm's plane and perpendicular to the plane.
        com: center of mass (x, z) (m) in the link's frame (default: the center of the bar).
        inertia: inertia (kg m2) about the center of mass, as in ``add_body`` (default: the inertia of the bar).
        color: color for drawing.
        picture: True draws the bar. False draws the body's shapes.
    """

    label: str
    length: float
    mass: float
    pose: float = 0.0
    limits: tuple[float, float] = (-math.inf, math.inf)
    height: float = 0.1
    width: float = 0.1
    com: tuple[float, float] | None = None
    inertia: Any = None
    color: Any = None
    picture: bool = True

    def check(self, arm: str) -> None:
        """Check that sizes are positive and that ``pose`` is within ``limits``."""
        if not isinstance(self.label, str) or not self.label or self.label == BASE:
            raise validate.fail(
                arm, f"label = {self.label!r} is not a valid label of a link", 'give a word other than "base"'
            )
        element = f"{arm}: link '{self.label}'"
        for name in ("length", "mass", "height", "width"):
            validate.positive(element, name, getattr(self, name))
        pose = validate.number(element, "pose", self.pose)
        low, high = validate.numbers(element, "limits", self.limits, 2, infinite=True)
        if not low <= pose <= high or low == high:
            rule = f"limits = ({low:g}, {high:g}) do not contain pose = {pose:g}"
            raise validate.fail(element, rule, "give (minimum, maximum) angle around the pose, rad")

    def center(self, element: str) -> complex:
        """Return the center of mass in the link's frame, as complex number x + iz."""
        if self.com is None:
            return complex(0.5 * self.length)
        return complex(*validate.numbers(element, "com", self.com, 2))

    def moments(self) -> Any:
        """Return the inertia about the center of mass."""
        if self.inertia is not None:
            return self.inertia
        x2, y2, z2 = (self.mass * edge**2 / 12.0 for edge in (self.length, self.width, self.height))
        return (y2 + z2, x2 + z2, x2 + y2)


@dataclass
class BoomArm(NamesMoved):
    """An arm from :func:`add_boom_arm`. You can add linkages and cylinders to the arm.

    Attributes:
        label_prefix: prefix of all labels.
        base: body index, -1 for the world.
        frame: pose of the arm's frame in the base's frame.
        bodies: part name -> body index. The parts are the base, the links of the arm, and the rockers and links of
            bucket linkages.
        joints: link name -> index of its hinge. All hinge coordinates are zero in the initial pose.
        links: the argument ``links`` of ``add_boom_arm``.
        mechanism: the analytic model of the arm.
    """

    label_prefix: str
    base: int
    frame: Transform
    bodies: dict[str, int]
    joints: dict[str, int]
    links: dict[str, Link]
    mechanism: Mechanism = field(repr=False)

    @property
    def element(self) -> str:
        """Name of the arm in messages."""
        return f"arm '{self.label_prefix}{next(iter(self.links))}'"

    def static(
        self, angles: Mapping[str, float] | None = None, forces: Sequence[PointForce | tuple[Any, Any, Any]] = ()
    ) -> ArmStatic:
        """Compute the cylinder forces that balance ``forces`` and the weights of all parts (virtual work).

        Args:
            angles: dict from link names to joint angles (rad), zero by default.
            forces: tuples (part name, point, force). The point (x, z) (m) is in the part's frame. The force (x, z) (N)
                is in the arm's frame.

        Raises:
            ModelError: a part does not exist, a hinge has no cylinder, or a linkage cannot reach the pose.
        """
        values, checked_forces = self._angles(angles), [self._checked_force(one) for one in forces]
        try:
            return self.mechanism.static(self.element, values, checked_forces)
        except NotClosed:
            raise self._not_closed(values) from None

    def point(self, part: str, point: tuple[float, float], angles: Mapping[str, float] | None = None) -> Array:
        """Convert a part's point (x, z) (m) to the base's frame (3,), at joint angles ``angles`` (rad)."""
        found = locate(self.poses(angles)[self.part(part)], complex(*validate.numbers(self.element, "point", point, 2)))
        return self.frame.apply((found.real, 0.0, found.imag))

    def part(self, name: Any) -> str:
        """Return ``name``, or raise a ModelError if no part has this name."""
        if name not in self.bodies:
            known = ", ".join(f"'{part}'" for part in self.bodies)
            raise validate.fail(self.element, f"has no part {name!r}", f"give one of {known}")
        return str(name)

    def poses(self, angles: Mapping[str, float] | None = None) -> dict[str, PlanarPose]:
        """Return every part's origin and x axis as complex numbers x + iz, at joint angles ``angles`` (rad)."""
        values = self._angles(angles)
        try:
            return self.mechanism.poses(values)
        except NotClosed:
            raise self._not_closed(values) from None

    def _not_closed(self, angles: Array) -> ModelError:
        rule = f"its linkage does not close at angles of {np.round(angles, 4).tolist()} rad"
        return validate.fail(self.element, rule, "give angles within its limits")

    def _angles(self, angles: Mapping[str, float] | None) -> Array:
        for name in angles or {}:
            if name not in self.joints:
                known = ", ".join(f"'{link}'" for link in self.joints)
                raise validate.fail(self.element, f"has no link {name!r}", f"give angles of {known}")
        return np.array([validate.number(self.element, "angle", (angles or {}).get(name, 0.0)) for name in self.joints])

    def _checked_force(self, value: Any) -> PointForce:
        if not isinstance(value, tuple | list) or len(value) != 3:
            raise validate.fail(
                self.element, f"force {value!r} is not a tuple (part, point, force)", "give these three"
            )
        point, force = (validate.numbers(self.element, n, v, 2) for n, v in (("point", value[1]), ("force", value[2])))
        return PointForce(self.part(value[0]), (point[0], point[1]), (force[0], force[1]))

    def world(self, b: ModelBuilder, point: complex = 0j, angle: float = 0.0) -> Transform:
        """Convert a position and an angle in the arm's plane to a pose in the world."""
        start = Transform() if self.base == WORLD else b.bodies[self.base].xform
        return start * self.frame * Transform.from_axis_angle((point.real, 0.0, point.imag), AXIS, angle)


def add_boom_arm(
    b: ModelBuilder,
    base: int,
    at: Vector | Transform,
    links: Sequence[Link],
    label_prefix: str = "",
) -> BoomArm:
    """Add an arm: a chain of links on hinges with limits.

    Args:
        b: the builder.
        base: body index, -1 for the world.
        at: position (m) of the first hinge in the base's frame. With a Transform, the Transform's x and z axes span the
            arm's plane.
        links: the links in order, from the base to the tip.
        label_prefix: prefix of all labels. The body and the joint of a link have the label ``label_prefix`` + name of
            the link.

    Returns:
        The arm, which you can pass to ``add_bucket_linkage`` and ``add_arm_cylinders``.

    Raises:
        ModelError: a number is invalid.
    """
    element = f"arm '{label_prefix}'" if label_prefix else "arm"
    b.check_body(element, "base", base)
    if not isinstance(at, Transform):
        at = Transform(tuple(validate.numbers(element, "at", at, 3)))
    if isinstance(links, Link) or not links or not all(isinstance(link, Link) for link in links):
        rule = f"links = {links!r} are not Links"
        raise validate.fail(element, rule, "give a list of gpusim.machines.Link(label, length, mass)")
    base_pose = Transform() if base == WORLD else b.bodies[base].xform
    gravity = (base_pose * at).inverse().rotate(b.gravity)
    mechanism = Mechanism(complex(gravity[0], gravity[2]))
    arm = BoomArm(label_prefix, base, at, {BASE: base}, {}, {}, mechanism)
    for link in links:
        link.check(element)
    last, end = BASE, 0j
    for link in links:
        _add_link(b, arm, link, last, end)
        last, end = link.label, complex(link.length)
    return arm


def add_bucket_linkage(
    b: ModelBuilder,
    arm: BoomArm,
    bucket: Link,
    at: float | tuple[float, float],
    ear: tuple[float, float],
    rocker: float,
    link: float,
    rocker_mass: float = 6.0,
    link_mass: float = 6.0,
    stick: str | None = None,
    below: bool = False,
) -> None:
    """Add a bucket to the stick of an arm, and the four-bar linkage that moves the bucket.

    A planar pin closes the loop without redundant constraints. The arm gets the new parts ``bucket.label``, "rocker"
    and "link". For a second bucket, the names of rocker and link start with the bucket's name.

    Args:
        b: the builder.
        arm: from ``add_boom_arm``.
        bucket: the bucket. Its hinge is at the end of the stick.
        at: position of the rocker's hinge, (x, z) (m) in the stick's frame, or only x.
        ear: position of the link's pin on the bucket, (x, z) (m) in the bucket's frame.
        rocker, link: lengths (m) of the rocker and the link.
        rocker_mass, link_mass: masses (kg) of the rocker and the link.
        stick: name of the arm's link that carries the bucket (default: the last link).
        below: True if the pin between rocker and link is below the stick (-z), False if it is above.

    Raises:
        ModelError: a number is invalid, or the loop does not close at every angle within the bucket's limits.
    """
    validate.instance("bucket linkage", "arm", arm, BoomArm, "give what add_boom_arm returned")
    if not isinstance(bucket, Link):
        rule = f"bucket = {bucket!r} is not a Link"
        raise validate.fail(f"{arm.element}: bucket linkage", rule, "give gpusim.machines.Link(label, length, mass)")
    element = f"bucket linkage '{arm.label_prefix}{bucket.label}'"
    bucket.check(element)
    carrier = list(arm.links)[-1] if stick is None else stick
    if carrier not in arm.links:
        raise validate.fail(element, f"stick = {stick!r} is not a link of the arm", f"give one of {list(arm.links)}")
    pivot = complex(*validate.numbers(element, "at", at if np.ndim(at) else (at, 0.0), 2))
    pin = complex(*validate.numbers(element, "ear", ear, 2))
    lengths = list(validate.positives(element, rocker=rocker, link=link).values())
    validate.positives(element, rocker_mass=rocker_mass, link_mass=link_mass)
    prefix = "" if "rocker" not in arm.bodies else f"{bucket.label}_"
    names = f"{prefix}rocker", f"{prefix}link"
    side = _linkage_side(arm, carrier, pivot, bucket, pin, below)
    loop = FourBar(*names, carrier, pivot, bucket.label, pin, lengths[0], lengths[1], side)
    _check_loop(element, loop, arm.links[carrier].length, bucket)
    _add_link(b, arm, bucket, carrier, complex(arm.links[carrier].length))
    arm.mechanism.loops.append(loop)
    poses = arm.poses()
    for name, length, mass in zip(names, lengths, (rocker_mass, link_mass), strict=True):
        _add_body(b, arm, Link(name, length, mass, height=0.06, width=0.06), poses[name])
    ear_position = locate(poses[bucket.label], pin)
    for kind, parent, child, point in (
        ("revolute", carrier, names[0], poses[names[0]][0]),
        ("revolute", names[0], names[1], poses[names[1]][0]),
        ("planar_pin", names[1], bucket.label, ear_position),
    ):
        add = getattr(b, f"add_joint_{kind}")
        label = f"{arm.label_prefix}{child}" if kind == "revolute" else f"{arm.label_prefix}{prefix}ear"
        add(arm.bodies[parent], arm.bodies[child], axis=AXIS, at=arm.world(b, point), label=label)


def _linkage_side(arm: BoomArm, carrier: str, pivot: complex, bucket: Link, ear: complex, below: bool) -> float:
    """Return 1 if the pin between rocker and link is left of the line from ``pivot`` to ``ear``, else -1."""
    end = arm.links[carrier].length + cmath.exp(1j * bucket.pose) * ear
    upper = 1.0 if (end - pivot).real >= 0.0 else -1.0
    return -upper if below else upper


def _check_loop(element: str, loop: FourBar, length: float, bucket: Link) -> None:
    """Check that the loop closes in the initial pose, and at several bucket angles between the limits."""

    def closes(angle: float) -> bool:
        try:
            loop.close(loop.pivot, length + cmath.exp(1j * angle) * loop.ear)
        except NotClosed:
            return False
        return True

    sizes = f"rocker = {loop.rocker_length:g} and link = {loop.link_length:g}"
    if not closes(bucket.pose):
        distance = abs(length + cmath.exp(1j * bucket.pose) * loop.ear - loop.pivot)
        rule = f"{sizes} do not close the loop in the initial pose, with {distance:.4g} m between their hinges"
        raise validate.fail(element, rule, "give lengths with a larger sum and a smaller difference")
    low, high = (x if math.isfinite(x) else bucket.pose for x in bucket.limits)
    broken = [angle for angle in np.linspace(low, high, SAMPLES) if not closes(float(angle))]
    if broken:
        rule = f"{sizes} do not close the loop at a bucket angle of {broken[0]:.4g} rad, which is within its limits"
        raise validate.fail(element, rule, "give other lengths, or narrower limits")


def _add_link(b: ModelBuilder, arm: BoomArm, link: Link, parent: str, end: complex) -> None:
    """Add a link. Its hinge is at the point ``end`` of the link ``parent``."""
    if link.label in arm.bodies:
        raise validate.fail(arm.element, f"has two parts '{link.label}'", "give each link a different label")
    arm.mechanism.hinges.append(Hinged(link.label, parent, end, link.pose))
    loops, arm.mechanism.loops = arm.mechanism.loops, []
    pose = arm.mechanism.poses(np.zeros(len(arm.mechanism.hinges)))[link.label]
    arm.mechanism.loops = loops
    arm.links[link.label] = link
    _add_body(b, arm, link, pose)
    low, high = (float(x) - link.pose for x in link.limits)
    arm.joints[link.label] = b.add_joint_revolute(
        arm.bodies[parent], arm.bodies[link.label], axis=AXIS, at=arm.world(b, pose[0]),
        limit_lower=low, limit_upper=high, label=f"{arm.label_prefix}{link.label}",
    )  # fmt: skip


def _add_body(b: ModelBuilder, arm: BoomArm, link: Link, pose: PlanarPose) -> None:
    """Add the body of a part, and its visual."""
    com = link.center(f"{arm.element}: link '{link.label}'")
    body = b.add_body(
        link.mass, link.moments(), com=(com.real, 0.0, com.imag),
        xform=arm.world(b, pose[0], cmath.phase(pose[1])), label=f"{arm.label_prefix}{link.label}",
    )  # fmt: skip
    arm.bodies[link.label] = body
    arm.mechanism.weights[link.label] = link.mass, com
    if not link.picture:
        return
    half = (0.5 * link.length, 0.5 * link.width, 0.5 * link.height)
    middle = Transform((half[0], 0.0, 0.0))
    b.add_visual(body, "box", half, xform=middle, color=link.color, label=f"{arm.label_prefix}{link.label}")
