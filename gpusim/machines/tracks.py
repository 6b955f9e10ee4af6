"""Tracks: shoes on pins in a closed loop around a sprocket, a tensioned idler, road wheels on torsion bars and rollers.

Hinges (pins) connect the shoes. Teeth and wheels push the shoes through contacts. By default, the direct solver solves
the closed loop of pins. With ``add_track(solver="colored")``, the colored solver solves pins and contacts together.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.builder.joint_groups import SOLVERS
from gpusim.contact.material import Material
from gpusim.errors import callers_level
from gpusim.machines import track_path, track_taut
from gpusim.machines.track_parts import (
    ENGAGEMENTS,
    FEWEST_TEETH,
    GREASED,
    Checked,
    Idler,
    Pin,
    RoadWheel,
    Roller,
    Shoe,
    Sprocket,
    TorsionArm,
    block,
    disk,
    size_of,
)
from gpusim.machines.track_record import Track
from gpusim.transform import Transform

CLEARANCE = 1e-6
"""Initial gap (m) between each wheel and the shoes."""
BUSHING = 0.17
"""Radius of the round end of a shoe at its pin, relative to the pitch."""
PIN_DAMPING = 60.0
"""Default damping of a pin, divided by the shoe's mass times pitch^2, 1/s."""
AXLE_ALONG_Y = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), 0.5 * math.pi)


@dataclass(frozen=True)
class _Plan:
    """Checked parts and parameters of a track."""

    element: str
    pitch: float
    shoes: int | None
    shoe: Shoe
    sprocket: Sprocket
    idler: Idler
    rollers: tuple[Roller, ...]
    road: tuple[RoadWheel, ...]
    pins: Pin
    solver: str

    @property
    def half(self) -> float:
        """Half of a shoe's thickness, m."""
        return 0.5 * size_of(self.element, self.shoe)[2]

    @property
    def apothem(self) -> float:
        """Apothem of the polygon of shoes on the sprocket, m."""
        return 0.5 * self.pitch / math.tan(math.pi / self.sprocket.teeth)

    @property
    def bushing(self) -> float:
        """Radius of the round end of a shoe at its pin, m."""
        return BUSHING * self.pitch

    @property
    def tooth(self) -> float:
        """Radius of a tooth (m)."""
        corner = 0.5 * self.pitch / math.sin(math.pi / self.sprocket.teeth)
        return 2.0 * corner * math.sin(0.5 * math.pi / self.sprocket.teeth) - self.bushing - float(self.sprocket.play)

    @property
    def drum(self) -> float:
        """Radius of the sprocket's drum, m."""
        return self.apothem - self.half - CLEARANCE

    @property
    def idler_radius(self) -> float:
        """Radius of the idler, m."""
        return self.drum if self.idler.radius is None else float(self.idler.radius)


def add_track(
    builder: ModelBuilder,
    chassis: int,
    xform: Transform | None = None,
    *,
    pitch: float,
    sprocket: Sprocket,
    idler: Idler,
    road: Sequence[RoadWheel] = (),
    rollers: Sequence[Roller] = (),
    shoe: Shoe | None = None,
    shoes: int | None = None,
    pins: Pin | None = None,
    surface_speed: bool = False,
    solver: str = "direct",
    label: str = "track",
) -> Track:
    """Add a track to a chassis. Drives and brakes act on the joint ``Track.drive`` of the sprocket.

    The shoes form a closed loop of links with the length ``pitch``. The function shifts the idler until the loop is
    taut. The initial tension is ``Idler.tension``. Positive drive speeds move the chassis along the track's x axis.

    Args:
        builder: builder that contains the chassis.
        chassis: body index, -1 for the world.
        xform: pose of the track's frame in the chassis. x points forward and z up. The track is centered at y = 0.
        pitch: distance (m) from pin to pin.
        sprocket: the driven wheel, in front or at the rear.
        idler: the tensioned wheel at the other end.
        road: wheels that carry the chassis.
        rollers: wheels that carry the upper run.
        shoe: the links. Default: ``Shoe()``.
        shoes: number of shoes. Default: the number that requires the smallest shift of the idler.
        pins: damping and friction of the pins. Default: damping that stops oscillations within seconds. ``Pin()`` is
            frictionless and undamped.
        surface_speed: True adds wheels without shoes. The wheels roll directly on the ground. The radii of the wheels
            include the thickness of the shoes. Gears couple the wheels to the sprocket. All wheel surfaces then have
            the speed of the track.
        solver: solver of the pins with ``SolverConfig(joint_solver="auto")``: "direct" (gaps of micrometers) or
            "colored" (iterates over pins and contacts). See ``ModelBuilder.set_joint_solver``.
        label: prefix of all labels. For example, "left" gives the bodies ``left_shoe0``, ..., the joints ``left_pin0``,
            ``left_drive``, ``left_tension`` and ``left_arm0``, and the collision groups ``left_shoes`` and
            ``left_wheels``.

    Raises:
        ModelError: an argument is invalid, or the track does not fit its path.
    """
    element = f"track '{label}'"
    builder.check_body(element, "chassis", chassis)
    validate.transform(element, "xform", xform)
    plan = _checked(element, pitch, shoes, shoe, sprocket, idler, rollers, road, pins, solver)
    validate.flag(element, "surface_speed", surface_speed)
    path = track_path.close(element, _wheels(plan), plan.shoes)
    if not surface_speed:
        taut = _taut(_wheels(plan), len(path.pins) - 1)
        if taut is None:
            warnings.warn(f"{element}: found no taut loop; the track starts slack", stacklevel=callers_level())
        path = taut or path
    _check_road(plan, path)
    part = ModelBuilder(gravity=builder.gravity)
    maker = _Maker(part, plan, path, surface_speed)
    maker.all()
    pose = xform or Transform()
    first_body, first_joint = len(builder.bodies), len(builder.joints)
    builder.add_builder(part, pose, f"{label}_", parent=chassis)
    count = len(path.pins) - 1
    moved = {name: index + first_body for name, index in maker.bodies.items()}
    joints = {name: index + first_joint for name, index in maker.joints.items()}
    axis = _wheels(plan).axis
    return Track(
        label=label,
        chassis=chassis,
        xform=pose,
        pitch=plan.pitch,
        teeth=plan.sprocket.teeth,
        shoes=() if surface_speed else tuple(moved[f"shoe{k}"] for k in range(count)),
        pins=() if surface_speed else tuple(joints[f"pin{k}"] for k in range(count)),
        sprocket=moved["sprocket"],
        drive=joints["drive"],
        idler=moved["idler"],
        tension_joint=joints.get("tension"),
        road=tuple(moved[f"road{k}"] for k in range(len(plan.road))),
        arms=tuple(joints[f"arm{k}"] for k, wheel in enumerate(plan.road) if wheel.arm is not None),
        rollers=tuple(moved[f"roller{k}"] for k in range(len(plan.rollers))),
        count=count,
        lowest=maker.lowest(),
        strand_share=float((path.strands[0] - path.strands[1]) @ axis),
        chassis_label="" if chassis < 0 else builder.bodies[chassis].label,
    )


class _Maker:
    """Helper that adds a track's parts to a builder. The builder's world frame is the chassis frame."""

    def __init__(self, b: ModelBuilder, plan: _Plan, path: track_path.Path, surface: bool) -> None:
        self.b, self.plan, self.path, self.surface = b, plan, path, surface
        self.bodies: dict[str, int] = {}
        self.joints: dict[str, int] = {}
        self.geared: list[tuple[int, float]] = []
        self.rims: list[tuple[int, float]] = []

    def all(self) -> None:
        """Add all parts."""
        plan = self.plan
        self.b.set_group_collision("wheels", "wheels", False)
        if not self.surface:
            self.b.set_group_collision("wheels", None, False)
            self.b.set_group_collision("wheels", "shoes", True)
            self.b.set_group_collision("shoes", "shoes", False)
        if not self.surface and plan.sprocket.engage == "teeth":
            for name in ("teeth", "bushings"):
                self.b.set_group_collision(name, None, False)
            self.b.set_group_collision("teeth", "bushings", True)
        self.sprocket()
        self.idler()
        for k, wheel in enumerate(plan.road):
            self.road(k, wheel)
        for k, roller in enumerate(plan.rollers):
            self.wheel(f"roller{k}", -1, roller.at, roller.radius, roller)
        if self.surface:
            for joint, radius in self.geared:  # equal speed of wheel surfaces and sprocket pins
                rate = plan.pitch * plan.sprocket.teeth / (2.0 * math.pi * radius)
                self.b.add_gear(self.joints["drive"], joint, rate, label=self.b.joints[joint].label)
        else:
            self.links()

    def lowest(self) -> float:
        """Return the z coordinate (m) of the lowest point of all shoes, in the track's frame."""
        if self.surface:
            return float(min(self.b.bodies[body].xform.position[2] - radius for body, radius in self.rims))
        length, _, thickness = size_of(self.plan.element, self.plan.shoe)
        directions = np.abs(np.diff(self.path.pins, axis=0)) / self.plan.pitch
        middles = 0.5 * (self.path.pins[1:, 1] + self.path.pins[:-1, 1])
        return float(np.min(middles - 0.5 * length * directions[:, 1] - 0.5 * thickness * directions[:, 0]))

    def wheel(self, name: str, parent: int, at: Any, radius: float, wheel: Any, joint: str | None = None) -> int:
        """Add a disk on a hinge."""
        b, key = self.b, joint or name
        position = (float(at[0]), 0.0, float(at[1]))
        body = b.add_body(wheel.mass, disk(wheel.mass, radius, wheel.width), xform=Transform(position), label=name)
        self.bodies[name] = body
        self.joints[key] = b.add_joint_revolute(parent, body, axis=(0, 1, 0), at=position, label=key)
        width, material, outer, color = wheel.width, wheel.material, radius, self.plan.shoe.color
        if material is None:
            material = GREASED if wheel.engage == "teeth" else Material(friction=0.8)
        if self.surface:
            width, material = size_of(self.plan.element, self.plan.shoe)[1], self.plan.shoe.material
            outer = radius + 2.0 * self.plan.half
            if key != "drive":
                self.geared.append((self.joints[key], outer))
            else:
                outer = self.plan.pitch * self.plan.sprocket.teeth / (2.0 * math.pi)
        if self.surface:
            self.rims.append((body, outer))
            b.add_shape_cylinder(body, outer, 0.5 * width, AXLE_ALONG_Y, material, f"{name}_rim", "wheels", color=color)
        else:
            round_edge = min(0.5 * width, 0.9 * outer)
            b.add_shape_wheel(body, outer, round_edge, AXLE_ALONG_Y, material, f"{name}_rim", "wheels", color=color)
        return body

    def sprocket(self) -> None:
        """Add drum and teeth."""
        plan, one = self.plan, self.plan.sprocket
        body = self.wheel("sprocket", -1, one.at, plan.drum, one, joint="drive")
        if one.engage != "teeth" or self.surface:
            return
        circle, radius = 0.5 * plan.pitch / math.sin(math.pi / one.teeth), plan.tooth
        x, z = self.path.pins[self.path.tooth] - np.asarray(one.at, float)
        self.b.add_visual(
            body, "cylinder", plan.drum, half_length=0.5 * one.width, xform=AXLE_ALONG_Y, color=plan.shoe.color
        )
        for k in range(one.teeth):
            angle = math.atan2(z, x) + 2.0 * math.pi * (k + 0.5) / one.teeth
            rotation = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), -angle)
            self.b.add_shape_sphere(
                body,
                radius,
                xform=rotation * Transform((circle, 0, 0)),
                material=GREASED,
                label=f"tooth{k}",
                group="teeth",
            )
            height = 0.5 * (circle - plan.drum)
            pose = rotation * Transform((plan.drum + 0.5 * height, 0, 0))
            self.b.add_visual(body, "box", (height, 0.2 * one.width, 0.8 * radius), xform=pose, color=plan.shoe.color)

    def idler(self) -> None:
        """Add the idler on its carriage, with the spring."""
        b, plan, one = self.b, self.plan, self.plan.idler
        axis = _wheels(plan).axis
        x, z = np.asarray(one.at, float) + self.path.shift * axis
        if self.surface:
            self.wheel("idler", -1, (x, z), plan.idler_radius, one)
            return
        position = (float(x), 0.0, float(z))
        inertia = block(one.carriage, (0.2, 0.1, 0.1))
        carriage = b.add_body(one.carriage, inertia, xform=Transform(position), label="carriage")
        self.bodies["carriage"] = carriage
        joint = b.add_joint_prismatic(
            -1, carriage, axis=(axis[0], 0.0, axis[1]), at=position, limit_lower=-one.travel, limit_upper=one.travel,
            label="tension",
        )  # fmt: skip
        self.joints["tension"] = joint
        strands = self.path.strands
        push = one.tension * float((strands[0] - strands[1]) @ axis)
        b.add_torsion_spring(joint, one.stiffness, one.damping, preload=push, label="tension")
        self.wheel("idler", carriage, (x, z), plan.idler_radius, one)

    def road(self, k: int, wheel: RoadWheel) -> None:
        """Add a road wheel, and the arm that carries the wheel."""
        b, arm, parent = self.b, wheel.arm, -1
        if arm is not None:
            offset = arm.length * np.array([math.cos(arm.angle), math.sin(arm.angle)])
            hinge = np.asarray(wheel.at, float) + offset
            middle = np.asarray(wheel.at, float) + 0.5 * offset
            pose = Transform.from_axis_angle((middle[0], 0.0, middle[1]), (0, 1, 0), -arm.angle)
            inertia = block(arm.mass, (arm.length, 0.05, 0.05))
            parent = self.bodies[f"arm{k}"] = b.add_body(arm.mass, inertia, xform=pose, label=f"arm{k}")
            joint = b.add_joint_revolute(
                -1, parent, axis=(0, 1, 0), at=(hinge[0], 0.0, hinge[1]), limit_lower=arm.travel[0],
                limit_upper=arm.travel[1], label=f"arm{k}",
            )  # fmt: skip
            self.joints[f"arm{k}"] = joint
            # The wheel's weight acts at the wheel's center, the arm's weight at half of its length.
            weight = float(np.linalg.norm(b.gravity)) * (wheel.mass + 0.5 * arm.mass)
            torque = (arm.load - weight) * offset[0] if arm.load > 0.0 else 0.0
            b.add_torsion_spring(joint, arm.stiffness, arm.damping, preload=-torque, label=f"bar{k}")
            along = Transform.from_axis_angle((0, 0, 0), (0, 1, 0), 0.5 * math.pi)
            b.add_visual(parent, "capsule", 0.02, 0.5 * arm.length, xform=along, color=self.plan.shoe.color)
        self.wheel(f"road{k}", parent, wheel.at, wheel.radius, wheel)

    def links(self) -> None:
        """Add shoes and pins."""
        b, plan, shoe = self.b, self.plan, self.plan.shoe
        pins = self.path.pins
        size = size_of(plan.element, shoe)
        count = len(pins) - 1
        inertia, half = block(shoe.mass, size), 0.5 * np.array(size)
        widths = [
            plan.sprocket.width,
            plan.idler.width,
            *(w.width for w in plan.road),
            *(w.width for w in plan.rollers),
        ]
        widest = 0.5 * max(widths)
        horn = np.array([0.22 * size[0], 0.006, 0.5 * shoe.guide])
        for k in range(count):
            middle, link = 0.5 * (pins[k] + pins[k + 1]), pins[k + 1] - pins[k]
            pose = Transform.from_axis_angle((middle[0], 0.0, middle[1]), (0, 1, 0), -math.atan2(link[1], link[0]))
            body = self.bodies[f"shoe{k}"] = b.add_body(shoe.mass, inertia, xform=pose, label=f"shoe{k}")
            b.add_shape_box(body, half, material=shoe.material, label=f"pad{k}", group="shoes", color=shoe.color)
            if plan.sprocket.engage == "teeth":
                pin_frame = Transform((0.5 * plan.pitch, 0, 0))
                b.add_shape_sphere(body, plan.bushing, pin_frame, GREASED, f"bushing{k}", "bushings")
            for side in (1.0, -1.0) if shoe.guide > 0.0 else ():
                position = (0.0, side * (widest + shoe.clearance + horn[1]), half[2] + horn[2])
                name = f"horn{k}_{'left' if side > 0.0 else 'right'}"
                b.add_shape_box(
                    body, horn, xform=Transform(position), material=GREASED, label=name, group="shoes", color=shoe.color
                )
        for k in range(count):
            a, c = self.bodies[f"shoe{k}"], self.bodies[f"shoe{(k + 1) % count}"]
            # A full ring of hinges has three redundant constraints, which only sweeps tolerate.
            closing = k == count - 1 and plan.solver == "direct"
            add = b.add_joint_planar_pin if closing else b.add_joint_revolute
            self.joints[f"pin{k}"] = add(
                a, c, axis=(0, 1, 0), at=(pins[k + 1][0], 0.0, pins[k + 1][1]), damping=plan.pins.damping,
                friction=plan.pins.friction, label=f"pin{k}", solver=plan.solver,
            )  # fmt: skip


@lru_cache(maxsize=16)
def _taut(wheels: track_path.Wheels, shoes: int) -> track_path.Path | None:
    """Return the taut path (cached for equal tracks), or None if the solver fails."""
    return track_taut.tighten(wheels, track_path.close("track", wheels, shoes))


def _wheels(plan: _Plan) -> track_path.Wheels:
    """Return the wheels as circles that are tangent to the center lines of the shoes."""
    over = plan.half + CLEARANCE

    def circle(at: Any, radius: float) -> track_path.Circle:
        return track_path.Circle(float(at[0]), float(at[1]), radius)

    others = tuple(circle(w.at, w.radius + over) for w in plan.road)
    others += tuple(circle(w.at, w.radius + over) for w in plan.rollers)
    return track_path.Wheels(
        circle(plan.sprocket.at, plan.apothem),
        circle(plan.idler.at, plan.idler_radius + over),
        others,
        plan.pitch,
        plan.sprocket.teeth,
    )


def _checked(
    element: str,
    pitch: Any,
    shoes: Any,
    shoe: Any,
    sprocket: Any,
    idler: Any,
    rollers: Any,
    road: Any,
    pins: Any,
    solver: Any,
) -> _Plan:
    """Check all parts and return the plan."""
    length = validate.positive(element, "pitch", pitch)
    shoe, undamped = Shoe() if shoe is None else shoe, pins is None
    pins = Pin() if pins is None else pins
    parts: list[tuple[str, Any, type[Checked]]] = [("shoe", shoe, Shoe), ("pins", pins, Pin)]
    parts += [("sprocket", sprocket, Sprocket), ("idler", idler, Idler)]
    parts += [(f"road[{k}]", wheel, RoadWheel) for k, wheel in enumerate(_listed(element, "road", road))]
    parts += [(f"rollers[{k}]", wheel, Roller) for k, wheel in enumerate(_listed(element, "rollers", rollers))]
    for name, part, kind in parts:
        if not isinstance(part, kind):
            rule = f"{name} = {part!r} is not of type {kind.__name__}"
            raise validate.fail(element, rule, f"give gpusim.machines.{kind.__name__}(...)")
        part.check(element, name)
    _check_arms(element, road)
    _check_teeth(element, sprocket)
    validate.choice(element, "solver", solver, SOLVERS)
    count = None if shoes is None else validate.count(element, "shoes", shoes, 3)
    pins = Pin(damping=PIN_DAMPING * shoe.mass * length**2) if undamped else pins
    plan = _Plan(element, length, count, shoe, sprocket, idler, tuple(rollers), tuple(road), pins, solver)
    if size_of(element, shoe)[0] > length:
        rule = f"shoe.size: length {size_of(element, shoe)[0]:g} is above pitch = {length:g}"
        raise validate.fail(element, rule, "give shorter shoes, or a longer pitch")
    if plan.tooth <= 0.25 * length:
        rule = f"sprocket.play = {sprocket.play:g} leaves no tooth between pins with pitch = {length:g}"
        raise validate.fail(element, rule, "give less play")
    if plan.drum <= plan.half:
        rule = f"shoes of thickness {2.0 * plan.half:g} leave no drum in a sprocket of teeth = {sprocket.teeth}"
        raise validate.fail(element, rule, "give thinner shoes, a longer pitch or more teeth")
    _check_overlaps(plan)
    return plan


def _listed(element: str, name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise validate.fail(element, f"{name} = {value!r} is not a list", "give a list of wheels")
    return value


def _check_arms(element: str, road: Sequence[RoadWheel]) -> None:
    for k, wheel in enumerate(road):
        if wheel.arm is None:
            continue
        hint = "give gpusim.machines.TorsionArm(...), or None"
        if not isinstance(wheel.arm, TorsionArm):
            raise validate.fail(element, f"road[{k}].arm = {wheel.arm!r} is not a TorsionArm", hint)
        wheel.arm.check(element, f"road[{k}].arm")


def _check_teeth(element: str, sprocket: Sprocket) -> None:
    validate.count(element, "sprocket.teeth", sprocket.teeth, FEWEST_TEETH)
    validate.choice(element, "sprocket.engage", sprocket.engage, ENGAGEMENTS)


def _check_overlaps(plan: _Plan) -> None:
    """Check that no two wheels overlap."""
    named: list[tuple[str, Any, float]] = [
        ("sprocket", plan.sprocket.at, plan.drum),
        ("idler", plan.idler.at, plan.idler_radius),
    ]
    named += [(f"road[{k}]", w.at, w.radius) for k, w in enumerate(plan.road)]
    named += [(f"rollers[{k}]", w.at, w.radius) for k, w in enumerate(plan.rollers)]
    for k, (name, at, radius) in enumerate(named):
        for other, position, size in named[:k]:
            distance = float(np.linalg.norm(np.subtract(at, position)))
            if distance < radius + size:
                sizes = f"{other} of radius {size:.3g} m and {name} of radius {radius:.3g} m"
                rule = f"{sizes} overlap at a distance of {distance:.3g} m"
                raise validate.fail(plan.element, rule, _overlap_fix(plan, other, name, distance, radius + size))


def _overlap_fix(plan: _Plan, one: str, other: str, distance: float, min_distance: float) -> str:
    """Return a text that describes how to fix two overlapping wheels.

    ``min_distance`` is the minimum distance of the wheel centers, m.
    """
    hint = f"move them {1.005 * min_distance:.3g} m apart"  # slightly more, because the number is rounded
    if one != "sprocket":
        return f"{hint}, or give them smaller radii"
    fixed = 0.0 if other == "idler" and plan.idler.radius is None else min_distance - plan.drum
    for teeth in range(plan.sprocket.teeth - 1, FEWEST_TEETH - 1, -1):
        drum = replace(plan, sprocket=replace(plan.sprocket, teeth=teeth)).drum
        if drum > plan.half and drum + (fixed or drum) <= distance:
            return f"{hint}, or give the sprocket at most {teeth} teeth"
    return hint


def _check_road(plan: _Plan, path: track_path.Path) -> None:
    """Raise a ModelError if a road wheel touches the upper run but not the lower run."""
    for k, wheel in enumerate(plan.road):
        circle = track_path.Circle(float(wheel.at[0]), float(wheel.at[1]), wheel.radius + plan.half + CLEARANCE)
        lower, upper = track_path.gaps(path, circle)
        if upper < 0.1 * plan.pitch and lower > 0.5 * plan.pitch:
            rule = f"road[{k}] carries the upper run, and is {lower:.3g} m above the lower one"
            raise validate.fail(plan.element, rule, "place it on the lower run, or give it in rollers as a Roller")
