"""Path of a track around its wheels: a closed polygon of equal links that touch the wheels without penetration.

Points are (x, z) in the plane of the track. The links are in counterclockwise order. At the bottom of the track, the
links point along +x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusim import validate
from gpusim.typing import Array

TOUCH = 1e-9
"""Angular tolerance (rad) for a link that is already tangent to a wheel."""
MIN_GAIN = 0.5
"""Minimum increase of the track length, in pitches, if the idler moves by two pitches."""


@dataclass(frozen=True)
class Circle:
    """A wheel as a circle with center (x, z) (m). Links on the wheel are tangent to the circle with ``radius`` (m)."""

    x: float
    z: float
    radius: float


@dataclass(frozen=True)
class Path:
    """A closed track.

    Attributes:
        pins: positions (n + 1, 2) (m) of the pins. The last pin is equal to the first pin.
        shift: shift (m) of the idler along the tensioner's axis, from the requested position.
        strands: unit vectors (2, 2) along the last link before the idler and the first link after the idler.
        tooth: index of a pin that is on the sprocket.
    """

    pins: Array
    shift: float
    strands: Array
    tooth: int = 0


@dataclass(frozen=True)
class Wheels:
    """The wheels inside the track.

    Attributes:
        sprocket: the sprocket. Its ``radius`` is the apothem of the polygon of links.
        idler: the idler at its requested position.
        others: road wheels and rollers.
        pitch: length (m) of a link.
        teeth: number of teeth of the sprocket. The pins on the sprocket are corners of a polygon with ``teeth`` sides.
    """

    sprocket: Circle
    idler: Circle
    others: tuple[Circle, ...]
    pitch: float
    teeth: int

    @property
    def axis(self) -> Array:
        """Axis of the tensioner: unit vector from the sprocket's center to the idler's center."""
        offset = np.array([self.idler.x - self.sprocket.x, self.idler.z - self.sprocket.z])
        unit: Array = offset / np.linalg.norm(offset)
        return unit


def close(element: str, wheels: Wheels, shoes: int | None) -> Path:
    """Shift the idler until a whole number of links fits around the wheels, and return the path.

    ``shoes`` is the number of links, or None for the nearest number.

    Raises:
        ModelError: the number of links is too small or too large for the wheels.
    """
    is_mirrored = _is_entry_shorter(wheels)
    oriented = _mirrored(wheels) if is_mirrored else wheels
    pitch = oriented.pitch
    low, natural, high = (_length(oriented, shift) / oriented.pitch for shift in (-pitch, 0.0, pitch))
    if high - low < MIN_GAIN or not low <= round(natural) <= high:
        gain = (high - low) * oriented.pitch
        rule = f"its idler hardly tightens it: a shift by {2.0 * pitch:g} m lengthens the path by only {gain:.2g} m"
        raise validate.fail(element, rule, "move it farther from the sprocket than all road wheels and rollers")
    count = round(natural) if shoes is None else shoes
    if not low <= count <= high:
        problem, direction = ("short", "nearer to") if natural > count else ("long", "away from")
        rule = f"a track of shoes = {count} is too {problem} for its path of {natural * oriented.pitch:.4g} m"
        move = float(f"{0.5 * (count - natural) * oriented.pitch:.2g}")
        hint = (
            f", or move the idler about {abs(move):g} m {direction} the sprocket"
            if _can_close(oriented, move, count)
            else ""
        )
        raise validate.fail(element, rule, f"give shoes = {round(natural)}{hint}")

    def error(shift: float) -> float:
        return _length(oriented, shift) / oriented.pitch - count

    from scipy.optimize import brentq  # slow to import

    shift = float(brentq(error, -pitch, pitch, xtol=1e-15, rtol=1e-15))
    pins, strands = _closed_pins(oriented, shift, count)
    if is_mirrored:
        pins = pins[::-1] * (-1.0, 1.0)
        strands = -strands[::-1] * (-1.0, 1.0)
    return Path(pins, shift, strands)


def gaps(path: Path, circle: Circle) -> tuple[float, float]:
    """Return the gaps (m) from a wheel to the lower run and to the upper run of the track.

    Args:
        path: the convex path. Links steeper than 60 degrees belong to neither run.
        circle: the wheel.
    """
    directions = np.diff(path.pins, axis=0)
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    offsets = np.array([circle.x, circle.z]) - path.pins[:-1]
    inside = directions[:, 0] * offsets[:, 1] - directions[:, 1] * offsets[:, 0] - circle.radius
    lower, upper = (inside[side * directions[:, 0] > 0.5].min(initial=np.inf) for side in (1.0, -1.0))
    return float(lower), float(upper)


def _can_close(wheels: Wheels, move: float, count: int) -> bool:
    """Return whether ``count`` shoes form a closed loop if the idler moves by ``move`` (m)."""
    _, idler, *_ = _circles(wheels, move)
    others = (wheels.sprocket, *wheels.others)
    if any(math.hypot(idler.x - c.x, idler.z - c.z) < idler.radius + c.radius for c in others):
        return False
    min_count, max_count = (_length(wheels, move + shift) / wheels.pitch for shift in (-wheels.pitch, wheels.pitch))
    return max_count - min_count >= MIN_GAIN and min_count <= count <= max_count


def _mirrored(wheels: Wheels) -> Wheels:
    """Return the wheels with negated x coordinates."""
    circles = [Circle(-c.x, c.z, c.radius) for c in (wheels.sprocket, wheels.idler, *wheels.others)]
    return Wheels(circles[0], circles[1], tuple(circles[2:]), wheels.pitch, wheels.teeth)


def _is_entry_shorter(wheels: Wheels) -> bool:
    """Return True if the straight run before the sprocket is shorter than the straight run after the sprocket."""
    return _entry_length(wheels) < _entry_length(_mirrored(wheels))


def _entry_length(wheels: Wheels) -> float:
    """Return the length (m) of the straight run before the sprocket."""
    start, circle, _ = _entry(wheels, 0.0)
    return math.hypot(start[0] - circle.x, start[1] - circle.z)


def _circles(wheels: Wheels, shift: float) -> list[Circle]:
    """Return all wheels: the sprocket, the shifted idler, and the others."""
    move = shift * wheels.axis
    idler = Circle(wheels.idler.x + move[0], wheels.idler.z + move[1], wheels.idler.radius)
    return [wheels.sprocket, idler, *wheels.others]


def _entry(wheels: Wheels, shift: float) -> tuple[Array, Circle, float]:
    """Return the first pin on the sprocket, the previous wheel, and the angle (rad) of the run between the wheels."""
    hub, *others = _circles(wheels, shift)
    best: list[tuple[float, Circle, float]] = []
    for other in others:
        dx, dz = hub.x - other.x, hub.z - other.z
        heading = math.atan2(dz, dx) + math.asin((other.radius - hub.radius) / math.hypot(dx, dz))
        normal = np.array([-math.sin(heading), math.cos(heading)])
        line = normal @ (hub.x, hub.z) - hub.radius
        clearance = float(min(normal @ (c.x, c.z) - c.radius - line for c in others))
        if not best or clearance > best[0][0]:
            best = [(clearance, other, heading)]
    _, circle, heading = best[0]
    corner = 0.5 * wheels.pitch / math.sin(math.pi / wheels.teeth)
    start = np.array([hub.x + corner * math.sin(heading), hub.z - corner * math.cos(heading)])
    return start, circle, heading


def _tangent(point: Array, circle: Circle, heading: float) -> float:
    dx, dz = circle.x - point[0], circle.z - point[1]
    distance = math.hypot(dx, dz)
    angle = math.atan2(dz, dx) - math.asin(min(1.0, circle.radius / distance))
    return heading + (angle - heading + TOUCH) % (2.0 * math.pi) - TOUCH


def _open_path(wheels: Wheels, shift: float) -> tuple[list[Array], Array, Array]:
    """Return the pins of an open chain of links, the position where the chain must close, and ``Path.strands``."""
    circles = _circles(wheels, shift)
    end, _, first = _entry(wheels, shift)
    heading = first
    pins, strands, on_idler = [end], [np.zeros(2), np.zeros(2)], False
    while True:
        headings = [_tangent(pins[-1], circle, heading) for circle in circles]
        closing_heading = math.inf
        if heading - first > math.pi:  # more than half of the track
            closing_heading = _tangent(pins[-1], Circle(end[0], end[1], 0.0), heading)
        nearest = min(range(len(headings)), key=headings.__getitem__)
        heading = min(headings[nearest], closing_heading)
        unit = np.array([math.cos(heading), math.sin(heading)])
        if nearest == 1 and closing_heading > headings[1]:
            if not on_idler:
                strands[0] = unit
            on_idler = True
        elif on_idler:
            strands[1], on_idler = unit, False
        if closing_heading <= headings[nearest]:
            return pins, end, np.array(strands)
        pins.append(pins[-1] + wheels.pitch * unit)


def _length(wheels: Wheels, shift: float) -> float:
    """Return the length of the track (m)."""
    pins, end, _ = _open_path(wheels, shift)
    return (len(pins) - 1) * wheels.pitch + float(np.linalg.norm(end - pins[-1]))


def _closed_pins(wheels: Wheels, shift: float, count: int) -> tuple[Array, Array]:
    """Return ``Path.pins`` and ``Path.strands``. The last pins are interpolated, so that the track closes."""
    pins, end, strands = _open_path(wheels, shift)
    missing = count + 1 - len(pins)
    last = pins[-1]
    fractions = (np.arange(1, missing + 1) / missing)[:, None] if missing else np.zeros((0, 1))
    return np.concatenate([np.array(pins), last + fractions * (end - last)]), strands
