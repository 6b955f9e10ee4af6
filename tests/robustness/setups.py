from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from gpusim import ModelBuilder, Simulation, Transform

Vector = tuple[float, float, float]
DOWN: Vector = (0.0, 0.0, -9.81)
NONE: Vector = (0.0, 0.0, 0.0)
HINGE: Vector = (0, 1, 0)


@dataclass(frozen=True)
class SetUp:
    build: Callable[[], ModelBuilder]
    speed: float
    gap: float = 0.01
    overlap: float = 0.01
    end_speed: float = inf
    seconds: float = 1.0
    begin: Callable[[Simulation], None] | None = None


SETUPS: dict[str, SetUp] = {}


def setup(speed: float, **more: Any) -> Callable[[Callable[[], ModelBuilder]], Callable[[], ModelBuilder]]:
    def keep(build: Callable[[], ModelBuilder]) -> Callable[[], ModelBuilder]:
        SETUPS[build.__name__] = SetUp(build, speed, **more)
        return build

    return keep


def command(**commands: float) -> Callable[[Simulation], None]:
    def begin(sim: Simulation) -> None:
        for label, value in commands.items():
            sim.control[label] = value

    return begin


def ground(gravity: Vector = DOWN) -> ModelBuilder:
    """A builder with the plane z = 0."""
    b = ModelBuilder(gravity=gravity)
    b.add_shape_plane(-1, label="ground")
    return b


def chain(
    b: ModelBuilder,
    links: int,
    length: float = 0.2,
    start: Vector = (0.0, 0.0, 2.0),
    masses: Sequence[float] | None = None,
    inertia: Sequence[float] | None = None,
    radius: float | None = None,
    parent: int = -1,
    free: bool = False,
) -> list[int]:
    """Add links along x with hinges about y, 1 kg each.

    With ``radius``, the links have capsules. Return the bodies.
    """
    bodies: list[int] = []
    for k in range(links):
        mass = masses[k] if masses else 1.0
        moments = inertia or (mass * length**2 / 400.0, mass * length**2 / 12.0, mass * length**2 / 12.0)
        place = Transform((start[0] + (k + 0.5) * length, start[1], start[2]))
        body = b.add_body(mass=mass, inertia=tuple(moments), xform=place, label=f"link{k}")
        if radius:
            along = Transform.from_axis_angle((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 1.5707963267948966)
            b.add_shape_capsule(body, radius, 0.5 * length - radius, xform=along)
        if bodies or not free:
            at = Transform((0.5 * length, 0.0, 0.0)) if bodies else Transform(start)
            onto = bodies[-1] if bodies else parent
            b.add_joint_revolute(onto, body, at, Transform((-0.5 * length, 0.0, 0.0)), (0, 1, 0), label=f"hinge{k}")
        bodies.append(body)
    return bodies


def box(b: ModelBuilder, place: Vector, half: Vector, mass: float = 1.0, label: str | None = None) -> int:
    x, y, z = half
    moments = (mass * (y * y + z * z) / 3.0, mass * (x * x + z * z) / 3.0, mass * (x * x + y * y) / 3.0)
    body = b.add_body(mass=mass, inertia=moments, xform=Transform(place), label=label)
    b.add_shape_box(body, half)
    return body


def ball(b: ModelBuilder, place: Vector, radius: float, mass: float = 1.0, label: str | None = None) -> int:
    body = b.add_body(mass=mass, inertia=(0.4 * mass * radius**2,) * 3, xform=Transform(place), label=label)
    b.add_shape_sphere(body, radius)
    return body


def free(b: ModelBuilder, place: Vector, mass: float = 1.0, moment: float = 0.01, **moving: Vector) -> int:
    """A body without shapes."""
    return b.add_body(mass=mass, inertia=(moment,) * 3, xform=Transform(place), **moving)
