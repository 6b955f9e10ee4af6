"""Common code of the suspensions: checks of parameters, and functions that add bodies, joints and springs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import WORLD
from gpusim.machines.linkage import Linkage, Moves, Spring, Steering
from gpusim.machines.parts import Arm, Coil, Hub, Solid, TieRod, TorsionBar, two_points
from gpusim.transform import Transform
from gpusim.typing import Array

MIRROR = np.diag([1.0, -1.0, 1.0])
Springs = Coil | TorsionBar | Sequence[Coil | TorsionBar]


@dataclass(frozen=True)
class Plan:
    """Checked springs and limits of a suspension, before they are added to the builder.

    Attributes:
        linkage: analytic model of the mechanism.
        springs: the springs, with their parts and preloads.
        laws: the springs of the analytic model (``linkage.Spring``).
        limits: minimum and maximum of the suspension's coordinate.
    """

    linkage: Linkage
    springs: tuple[Coil | TorsionBar, ...]
    laws: tuple[Spring, ...]
    limits: tuple[float, float]


class Corner:
    """Helper that adds a suspension's parts to the builder, and converts points and axes to the world frame.

    Args:
        b: the builder.
        chassis: body index, -1 for the world.
        xform: pose of the corner's frame (the frame of one wheel's suspension) in the chassis frame.
        mirror: True to mirror the suspension in y.
        label: prefix of all labels.
        kind: name of the suspension type in messages.
    """

    def __init__(
        self, b: ModelBuilder, chassis: int, xform: Transform | None, mirror: bool, label: str, kind: str
    ) -> None:
        self.b, self.label, self.element = b, label, f"{kind} '{label}'"
        self.chassis = b.check_body(self.element, "chassis", chassis)
        validate.transform(self.element, "xform", xform)
        validate.flag(self.element, "mirror", mirror)
        self.mirror = mirror
        start = Transform() if self.chassis == WORLD else b.bodies[self.chassis].xform
        self.frame = start * (xform or Transform())
        self.flip = MIRROR if mirror else np.eye(3)

    def center(self, hub: Hub) -> Array:
        """Check the hub and return the wheel's center."""
        if not isinstance(hub, Hub):
            raise validate.fail(self.element, f"hub = {hub!r} is not a Hub", "give gpusim.machines.Hub(center, mass)")
        return validate.numbers(self.element, "hub.center", hub.center, 3)

    def ends(self, name: str, arm: Arm) -> tuple[Array, Array]:
        """Check a suspension arm and return its inner and outer end point."""
        if not isinstance(arm, Arm):
            raise validate.fail(
                self.element, f"{name} = {arm!r} is not an Arm", "give gpusim.machines.Arm(inner, outer, mass)"
            )
        return arm.ends(self.element, name)

    def point(self, point: Array) -> Array:
        """Convert a point from the corner's frame to world coordinates."""
        return self.frame.apply(self.flip @ point)

    def body(self, name: str, solid: Solid, origin: Array | None) -> int:
        """Add a body. Its frame has the corner's axes and the origin ``origin`` (default: the center of mass)."""
        position = solid.com if origin is None else origin
        inertia = self.flip @ solid.inertia @ self.flip
        pose = Transform(self.point(position), self.frame.rotation)
        com = self.flip @ (solid.com - position)
        return self.b.add_body(solid.mass, inertia, com=com, xform=pose, label=f"{self.label}_{name}")

    def picture(self, body: int, arm: Arm) -> None:
        """Add a visual that shows an arm as a bar on a body."""
        inner, outer = self.ends("arm", arm)
        start, vector = self.point(inner), self.point(outer) - self.point(inner)
        length = float(np.linalg.norm(vector))
        axis, angle = np.cross((0.0, 0.0, 1.0), vector), math.acos(vector[2] / length)
        if np.linalg.norm(axis) < 1e-9 * length:
            axis = np.array([1.0, 0.0, 0.0])
        pose = self.b.bodies[body].xform.inverse() * Transform.from_axis_angle(start + 0.5 * vector, axis, angle)
        self.b.add_visual(body, "capsule", arm.radius, 0.5 * length, xform=pose)

    def joint(
        self,
        kind: str,
        parent: int,
        child: int,
        point: Array,
        axis: Array | None,
        name: str,
        *,
        travel: bool = False,
        limits: tuple[Any, Any] | None = None,
        second: Array | None = None,
    ) -> int:
        """Add a joint at a point. The parent index -1 means the chassis.

        Args:
            axis: axis in the corner's frame, before mirroring. ``mirror`` negates y, and reverses axes of rotation.
            travel: True for a slide along the axis, False for a rotation about the axis.
            limits: limits of the joint's coordinates.
            second: second axis of a universal joint.
        """
        sense = 1.0 if travel or not self.mirror else -1.0
        options: dict[str, Any] = {} if axis is None else {"axis": sense * self.flip @ axis}
        if second is not None:
            options["axis2"] = sense * self.flip @ second
        if limits is not None:
            options |= {"limit_lower": limits[0], "limit_upper": limits[1]}
        frame = Transform(self.point(point), self.frame.rotation)
        add = getattr(self.b, f"add_joint_{kind}")
        host = self.chassis if parent == WORLD else parent
        return int(add(host, child, at=frame, label=f"{self.label}_{name}", **options))

    def steering(self, tie_rod: TieRod | None, kingpin: Callable[[Moves], tuple[Array, Array]]) -> Steering | None:
        """Return the analytic model of tie rod and kingpin, or None without a tie rod."""
        if tie_rod is None:
            return None
        if not isinstance(tie_rod, TieRod):
            rule = f"tie_rod = {tie_rod!r} is not a TieRod"
            raise validate.fail(self.element, rule, "give gpusim.machines.TieRod(inner, outer)")
        if tie_rod.rack is not None:
            self.b.check_body(self.element, "tie_rod.rack", tie_rod.rack)
        return Steering(kingpin, *tie_rod.ends(self.element))

    def linkage(
        self, closing: Callable[[float], Moves], solids: dict[str, Solid], center: Array, steering: Steering | None
    ) -> Linkage:
        """Return the analytic model."""
        gravity = float(np.linalg.norm(self.b.gravity))
        return Linkage(self.element, closing, solids, center, gravity, steering)

    def plan(
        self,
        linkage: Linkage,
        spring: Springs,
        travel: tuple[float, float],
        parts: tuple[str, ...],
        hinged: bool = True,
    ) -> Plan:
        """Check the linkage, the travel and the springs, compute the preloads, and return the plan."""
        linkage.check()
        ends = validate.numbers(self.element, "travel", travel, 2, infinite=True)
        if not ends[0] <= 0.0 <= ends[1] or ends[0] == ends[1]:
            rule = f"travel = ({ends[0]:g}, {ends[1]:g}) does not contain 0, the initial position"
            raise validate.fail(self.element, rule, "give (minimum, maximum), such as (-0.08, 0.08)")
        limits = tuple(z if math.isinf(z) else linkage.coordinate(float(z)) for z in ends.tolist())
        springs = [self._checked(one, parts, hinged) for one in (spring if isinstance(spring, Sequence) else (spring,))]
        loaded = [k for k, one in enumerate(springs) if one.load is not None]
        if len(loaded) > 1:
            rule = "more than one spring has a load"
            raise validate.fail(self.element, rule, "give one of them a load, and the others preloads")
        laws = [_law(linkage, one) for one in springs]
        for k in loaded:  # needs the preloads of all other springs
            force = linkage.required_spring_force(springs[k].load or 0.0) - sum(linkage.slope(law) for law in laws)
            ratio = linkage.ratio(laws[k])
            if abs(ratio) < 1e-6:
                raise validate.fail(self.element, "a spring with a load does not move", "move its foot")
            springs[k] = replace(springs[k], load=None, preload=-force / ratio)
            laws[k] = _law(linkage, springs[k])
        return Plan(linkage, tuple(springs), tuple(laws), (limits[0], limits[1]))

    def _checked(self, spring: Any, parts: tuple[str, ...], hinged: bool) -> Coil | TorsionBar:
        """Return the checked spring. The default of ``on`` is the first part in ``parts``."""
        if isinstance(spring, TorsionBar) and not hinged:
            raise validate.fail(self.element, "a torsion bar needs a hinge, and a pillar has none", "give a Coil")
        if not isinstance(spring, Coil | TorsionBar):
            rule = f"spring = {spring!r} is neither a Coil nor a TorsionBar"
            raise validate.fail(self.element, rule, "give one, or several of them in a list")
        validate.not_negative(self.element, "spring.stiffness", spring.stiffness)
        for damping in validate.per_axis(self.element, "spring.damping", spring.damping, 2):
            validate.not_negative(self.element, "spring.damping", damping)
        if spring.load is not None and spring.preload is not None:
            rule = "load and preload both define the preload of the spring"
            raise validate.fail(self.element, rule, "give one of them")
        if spring.stiffness == 0.0 and (spring.load is not None or spring.preload is not None):
            raise validate.fail(self.element, "a load or a preload needs a stiffness", "give one")
        if isinstance(spring, TorsionBar):
            return spring
        two_points(self.element, "spring", ("top", spring.top), ("foot", spring.foot))
        if spring.on is not None and spring.on not in parts:
            names = " or ".join(f"'{part}'" for part in parts)
            raise validate.fail(self.element, f"spring.on = {spring.on!r} is not a moving part", f"give {names}")
        return replace(spring, on=spring.on or parts[0])

    def springs(self, plan: Plan, bodies: dict[str, int], joint: int) -> tuple[int, ...]:
        """Add the springs and return their indices."""
        added: list[int] = []
        names: set[str] = set()
        for k, spring in enumerate(plan.springs):
            name = f"{self.label}_{'coil' if isinstance(spring, Coil) else 'torsion'}"
            name = name if name not in names else f"{name}{k}"
            names.add(name)
            preload = (spring.preload or 0.0) if spring.stiffness > 0.0 else None
            options: dict[str, Any] = {"stiffness": spring.stiffness, "damping": spring.damping, "label": name}
            if isinstance(spring, Coil):
                ends = {"at_a": self.point(np.asarray(spring.top)), "at_b": self.point(np.asarray(spring.foot))}
                options |= ends | {"bump": spring.bump, "droop": spring.droop, "preload": preload}
                added.append(self.b.add_spring(self.chassis, bodies[str(spring.on)], **options))
            else:  # the coordinate decreases in rebound
                damping = np.asarray(spring.damping, float)
                options["damping"] = damping[::-1] if damping.ndim else float(damping)
                options["preload"] = None if preload is None else -preload
                added.append(self.b.add_torsion_spring(joint, **options))
        return tuple(added)

    def tie_rod(self, tie_rod: TieRod | None, hub: int) -> int | None:
        """Add the tie rod and return its joint index, or None without a tie rod."""
        if tie_rod is None:
            return None
        inner, outer = tie_rod.ends(self.element)
        length = float(np.linalg.norm(outer - inner))
        return self.b.add_joint_distance(
            self.chassis if tie_rod.rack is None else tie_rod.rack,
            hub,
            at_a=self.point(inner),
            at_b=self.point(outer),
            min_distance=length,
            max_distance=length,
            label=f"{self.label}_tie_rod",
        )


def _law(linkage: Linkage, spring: Coil | TorsionBar) -> Spring:
    """Convert a spring with its preload to the analytic model."""
    offset, damping = (spring.preload or 0.0) / (spring.stiffness or 1.0), float(np.mean(spring.damping))
    if isinstance(spring, TorsionBar):
        return Spring(lambda q, moves: -q, spring.stiffness, offset, damping)
    top, foot, part = np.asarray(spring.top, float), np.asarray(spring.foot, float), str(spring.on)

    def length(q: float, moves: Moves) -> float:
        return float(np.linalg.norm(top - moves[part](foot)))

    return Spring(
        length, spring.stiffness, offset + length(0.0, linkage.moves(0.0)), damping, spring.bump, spring.droop
    )
