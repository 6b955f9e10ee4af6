"""Analytic model of a suspension: closed-form kinematics, static equilibrium, and linearized motion.

q is the coordinate of the suspension. z(q) is the travel of the wheel's center relative to the chassis. V(q) is the
energy of the springs and weights. A ground force F on the wheel balances the suspension if V' = F z' (derivatives with
respect to q). At a constant wheel height, the chassis oscillates with stiffness k, mass m and damping c:

    k = V'' - F z'',   m = sum of m_i |x_i' - z'|^2 + w_i' I_i w_i' + m_sprung z'^2,   c = sum of c_j l_j'^2

Part i has the mass m_i, the center of mass x_i, the rotation vector w_i and the inertia I_i. Damper j has the
coefficient c_j and the length l_j. m_sprung is the chassis mass that the wheel carries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpusim import rotations, validate
from gpusim.actuators.strut import BumpStop
from gpusim.machines.parts import Solid
from gpusim.typing import Array

STEP = 1e-4
"""Step of finite differences, rad or m."""
FARTHEST = 4.0
"""Range of the search for the equilibrium, rad or m."""
UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Move:
    """Displacement of a rigid part from its initial pose. Point x moves to ``rotation @ x + shift``."""

    rotation: Array
    shift: Array

    def __call__(self, point: Array) -> Array:
        """Return the new position of a point of the part."""
        moved: Array = self.rotation @ point + self.shift
        return moved

    def __matmul__(self, first: Move) -> Move:
        """Return the displacement that applies ``first``, then ``self``."""
        return Move(self.rotation @ first.rotation, self(first.shift))


Moves = dict[str, Move]
IDENTITY = Move(np.eye(3), np.zeros(3))


def rotation_about(axis: Array, angle: float, point: Array) -> Move:
    """Return the displacement for a rotation about the unit axis ``axis`` through ``point``."""
    matrix = rotations.matrix_from_quaternion(rotations.quaternion_from_rotation_vector(axis * angle))
    return Move(matrix, point - matrix @ point)


class Unreachable(Exception):
    """Error for a position that the linkage cannot reach."""


@dataclass(frozen=True)
class Steering:
    """A tie rod and the kingpin. ``kingpin(moves)`` returns a point on the kingpin and the kingpin's direction."""

    kingpin: Callable[[Moves], tuple[Array, Array]]
    inner: Array
    outer: Array

    def move(self, moves: Moves, rack: Array) -> tuple[float, Move]:
        """Return the steering angle (rad) and the displacement of the hub. The tie rod keeps its length."""
        point, axis, center, across = self._arm(moves)
        radius = np.cross(across, axis)
        offset, length = center - self.inner - rack, self.outer - self.inner
        side = 0.5 * (length @ length - offset @ offset - radius @ radius)
        cosine, sine = offset @ radius, offset @ across
        size = math.hypot(cosine, sine)
        if abs(side) > size:
            raise Unreachable("tie rod")
        middle, swing = math.atan2(sine, cosine), math.acos(side / size)
        angles = [math.remainder(middle + sign * swing, 2.0 * math.pi) for sign in (1.0, -1.0)]
        angle = min(angles, key=abs)
        return angle, rotation_about(axis, angle, point)

    def leverage(self, moves: Moves) -> float:
        """Return the sine of the angle between the tie rod and the steering arm, seen along the kingpin."""
        _, axis, _, across = self._arm(moves)
        rod = np.cross(axis, moves["hub"](self.outer) - self.inner)
        size = float(np.linalg.norm(across) * np.linalg.norm(rod))
        return float(np.linalg.norm(np.cross(across, rod))) / size if size > 1e-9 else 0.0

    def _arm(self, moves: Moves) -> tuple[Array, Array, Array, Array]:
        """Return a kingpin point p, the kingpin direction k, the rod end r projected onto it, and k x (r - p)."""
        point, along = self.kingpin(moves)
        axis: Array = along / np.linalg.norm(along)
        outer = moves["hub"](self.outer) - point
        return point, axis, point + axis * (axis @ outer), np.cross(axis, outer)


@dataclass(frozen=True)
class Spring:
    """A spring of the analytic model. If ``value`` < ``rest``, the spring pushes.

    The ``value`` of a coil is its length. The ``value`` of a torsion bar is -1 times the hinge angle.

    Attributes:
        value: function (coordinate of the suspension, displacements of all parts) -> value of the spring (m or rad).
        stiffness: stiffness (N/m or N m/rad).
        rest: value at zero force (m or rad).
        damping: mean of the damping in bound and in rebound.
    """

    value: Callable[[float, Moves], float]
    stiffness: float
    rest: float
    damping: float
    bump: BumpStop | None = None
    droop: BumpStop | None = None

    def energy(self, value: float) -> float:
        """Return the energy (J)."""
        energy = 0.5 * self.stiffness * (value - self.rest) ** 2
        for stop, sign in ((self.bump, 1.0), (self.droop, -1.0)):
            if stop is not None and (depth := sign * (stop.at - value)) > 0.0:
                energy += stop.stiffness * (0.5 * depth**2 + 0.25 * depth**4 / stop.length**2)
        return energy


@dataclass(frozen=True)
class Static:
    """Static equilibrium of a suspension under a load, and small oscillations about this equilibrium.

    Attributes:
        load: upward force (N) on the wheel's center. If the wheel is a separate body, the load is the ground force
            minus the wheel's weight.
        coordinate: coordinate (rad or m) of the suspension.
        travel: upward displacement (m) of the wheel's center relative to the chassis, from the initial position.
        wheel_rate: derivative of the load with respect to ``travel`` (N/m).
        lengths: ``Spring.value`` of each spring (m or rad).
        motion_ratios: derivatives of ``lengths`` with respect to ``travel``.
        frequency: undamped heave frequency (Hz) of the chassis on a wheel at constant height.
        damping_ratio: damping ratio of the heave, with the mean of bound and rebound damping.
    """

    load: float
    coordinate: float
    travel: float
    wheel_rate: float
    lengths: tuple[float, ...]
    motion_ratios: tuple[float, ...]
    frequency: float
    damping_ratio: float


@dataclass(frozen=True)
class Linkage:
    """A suspension as a mechanism with one coordinate, in the corner's frame.

    Attributes:
        element: name of the suspension in messages.
        closing: function from the suspension's coordinate to the displacements of all parts, without steering. The
            function may raise Unreachable.
        solids: dict from part names to mass properties.
        center: initial position of the wheel's center.
        gravity: gravitational acceleration (m/s2).
        steering: tie rod and kingpin, or None if the hub does not steer.
        follow: function from the displacements of all parts to the displacements of the parts that the steered hub
            moves.
    """

    element: str
    closing: Callable[[float], Moves]
    solids: Mapping[str, Solid]
    center: Array
    gravity: float
    steering: Steering | None = None
    follow: Callable[[Moves], Moves] | None = None

    def moves(self, q: float, rack: Array | None = None) -> Moves:
        """Return the displacements of all parts. ``rack`` is the displacement (m) of the tie rod's inner end."""
        moves = self.closing(q)
        if self.steering is not None:
            moves["hub"] = self.steering.move(moves, np.zeros(3) if rack is None else rack)[1] @ moves["hub"]
        if self.follow is not None:
            moves |= self.follow(moves)
        return moves

    def travel(self, q: float) -> float:
        """Return the travel (m) of the wheel's center, upward from its initial position."""
        return float((self.moves(q)["hub"](self.center) - self.center)[2])

    def coordinate(self, travel: float) -> float:
        """Return the suspension's coordinate (rad or m) for a wheel travel (m).

        Raises:
            ModelError: the linkage does not reach the travel.
        """
        last, step = 0.0, math.copysign(0.01, travel)
        try:
            while abs(reached := self.travel(last)) < abs(travel):
                if abs(self.travel(last + step)) <= abs(reached):
                    raise Unreachable
                last += step
        except Unreachable as error:
            rule = f"travel = {travel:g} m is beyond the {reached:.3g} m that its {str(error) or 'geometry'} reaches"
            hint = "a longer tie rod" if str(error) else "longer arms"
            raise validate.fail(self.element, rule, f"give a shorter travel, or {hint}") from None
        from scipy.optimize import brentq  # slow to import

        return 0.0 if travel == 0.0 else float(brentq(lambda q: self.travel(q) - travel, last - step, last))

    def unsprung(self) -> float:
        """Return the total mass (kg) of all parts."""
        return sum(solid.mass for solid in self.solids.values())

    def sprung(self, load: float) -> float:
        """Return the chassis mass (kg) that a load (N) on the wheel supports: load / gravity - mass of the parts."""
        load = validate.positive(self.element, "load", load)
        if self.gravity == 0.0:
            raise validate.fail(self.element, "a load needs gravity", "set the gravity, or leave the load out")
        sprung = load / self.gravity - self.unsprung()
        if sprung <= 0.0:
            rule = f"load = {load:g} N is below the weight of the parts, {self.unsprung() * self.gravity:.4g} N"
            raise validate.fail(self.element, rule, "give the whole ground force on the wheel")
        return sprung

    def weights(self, q: float) -> float:
        """Return the potential energy (J) of all parts due to gravity."""
        moves = self.moves(q)
        return self.gravity * sum(part.mass * float(moves[name](part.com)[2]) for name, part in self.solids.items())

    def required_spring_force(self, load: float) -> float:
        """Return the generalized spring force (N m or N) that balances a load in the initial pose."""
        self.sprung(load)
        return load * _derivative(self.travel, 0.0) - _derivative(self.weights, 0.0)

    def slope(self, spring: Spring) -> float:
        """Return the derivative (N m or N) of a spring's energy with respect to the coordinate, in the initial pose."""
        return _derivative(lambda q: spring.energy(spring.value(q, self.moves(q))), 0.0)

    def ratio(self, spring: Spring) -> float:
        """Return the derivative of a spring's value with respect to the coordinate, in the initial pose."""
        return _derivative(lambda q: spring.value(q, self.moves(q)), 0.0)

    def static(self, load: float, springs: Sequence[Spring], limits: tuple[float, float]) -> Static:
        """Compute the static equilibrium under a load.

        Raises:
            ModelError: the load is less than the weight of the parts, the load presses the suspension onto a stop, or
                no equilibrium is stable.
        """
        sprung = self.sprung(load)

        def value(k: int) -> Callable[[float], float]:
            return lambda q: springs[k].value(q, self.moves(q))

        def energy(q: float) -> float:
            moves = self.moves(q)
            return self.weights(q) + sum(spring.energy(spring.value(q, moves)) for spring in springs)

        def balance(q: float) -> float:
            return _derivative(energy, q) - load * _derivative(self.travel, q)

        q = self._equilibrium(balance, load, limits)
        dz, ratios = _derivative(self.travel, q), [_derivative(value(k), q) for k in range(len(springs))]
        stiffness = _second_derivative(energy, q) - load * _second_derivative(self.travel, q)
        mass = sprung * dz**2 + self.mass(q, dz)
        damping = sum(spring.damping * ratio**2 for spring, ratio in zip(springs, ratios, strict=True))
        if stiffness <= 0.0:
            rule = f"it is unstable under load = {load:g} N, with a wheel rate of {stiffness / dz**2:.4g} N/m"
            raise validate.fail(self.element, rule, "stiffen its spring")
        return Static(
            load=load,
            coordinate=q,
            travel=self.travel(q),
            wheel_rate=stiffness / dz**2,
            lengths=tuple(value(k)(q) for k in range(len(springs))),
            motion_ratios=tuple(ratio / dz for ratio in ratios),
            frequency=math.sqrt(stiffness / mass) / (2.0 * math.pi),
            damping_ratio=damping / (2.0 * math.sqrt(stiffness * mass)),
        )

    def _equilibrium(self, balance: Callable[[float], float], load: float, limits: tuple[float, float]) -> float:
        """Return the coordinate of the equilibrium that is nearest to the initial pose."""
        start = balance(0.0)
        step = -math.copysign(0.01, start)
        stop, last, value = limits[0] if start > 0.0 else limits[1], 0.0, start
        try:
            while value * start > 0.0 and last != stop:
                if abs(last) > FARTHEST:
                    raise Unreachable
                before, last = last, last + step if abs(last + step) < abs(stop) else stop
                value = balance(last)
        except Unreachable:
            rule = f"under load = {load:g} N it has no equilibrium within its geometry"
            raise validate.fail(self.element, rule, "give it a travel, or another spring") from None
        if value * start > 0.0:
            name, hint = ("lower", "soften") if start > 0.0 else ("upper", "stiffen")
            rule = f"under load = {load:g} N it rests on its {name} stop"
            raise validate.fail(self.element, rule, f"{hint} its spring, or give it load={load:g}")
        from scipy.optimize import brentq  # slow to import

        return 0.0 if last == 0.0 else float(brentq(balance, before, last, xtol=1e-13))

    def mass(self, q: float, dz: float) -> float:
        """Return the generalized mass (kg m2 or kg) of the parts for a wheel at constant height. ``dz`` is dz/dq."""
        total, (after, before) = 0.0, (self.moves(q + STEP), self.moves(q - STEP))
        for name, part in self.solids.items():
            rate = (after[name](part.com) - before[name](part.com)) / (2.0 * STEP) - dz * UP
            spin = (after[name].rotation - before[name].rotation) / (2.0 * STEP) @ self.moves(q)[name].rotation.T
            rotation = self.moves(q)[name].rotation
            w = rotation.T @ np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
            total += part.mass * float(rate @ rate) + float(w @ part.inertia @ w)
        return total

    def check(self) -> None:
        """Check that, near the initial pose, the tie rod can steer the hub and the wheel can rise."""
        if self.steering is not None and self.steering.leverage(self.closing(0.0)) < 0.1:
            rule = "the tie rod and its steering arm are in line, so the tie rod does not steer the hub"
            raise validate.fail(self.element, rule, "move its inner or outer end aside")
        try:
            ratio = _derivative(self.travel, 0.0)
        except Unreachable:
            ratio = 0.0
        if abs(ratio) < 1e-6:
            raise validate.fail(
                self.element, "its parts are in line, so the wheel cannot rise", "give points that are not in line"
            )


def _derivative(f: Callable[[float], float], q: float) -> float:
    return (f(q + STEP) - f(q - STEP)) / (2.0 * STEP)


def _second_derivative(f: Callable[[float], float], q: float) -> float:
    return (f(q + STEP) - 2.0 * f(q) + f(q - STEP)) / STEP**2


def hinge(element: str, axis: Array, inner: Array, point: Array, name: str) -> Array:
    """Return ``axis`` or -``axis``, so that a positive rotation lifts ``point``.

    Raises:
        ModelError: neither direction of rotation lifts the point.
    """
    lift = float(np.cross(axis, point - inner)[2])
    if abs(lift) < 1e-6:
        raise validate.fail(
            element, f"{name} is vertical, so its rotation does not lift the wheel", "move its outer end aside"
        )
    signed: Array = axis * math.copysign(1.0, lift)
    return signed


def rocker(axis: Array, center: Array, start: Array, initial: Array, moved: Array) -> float:
    """Return the crank's rotation (rad) that moves the far end of its rod from ``initial`` to ``moved``.

    Args:
        axis: axis of the crank, a unit vector.
        center: point on the axis.
        start: initial position of the pin between crank and rod.
        initial, moved: initial position and new position of the rod's far end.

    Raises:
        Unreachable: the new position is too far from the crank or too close to the crank.
    """
    across = np.eye(3) - np.outer(axis, axis)
    crank, rod, diagonal = across @ (start - center), across @ (initial - start), across @ (moved - center)
    side = 0.5 * float(diagonal @ diagonal + crank @ crank - rod @ rod)
    size = float(np.linalg.norm(diagonal) * np.linalg.norm(crank))
    if abs(side) >= size:
        raise Unreachable
    # selects the solution on the side of the initial pose
    bend = math.copysign(math.acos(side / size), -angle_between(axis, crank, initial - center))
    return math.remainder(angle_between(axis, crank, diagonal) + bend, 2.0 * math.pi)


def angle_between(axis: Array, first: Array, second: Array) -> float:
    """Return the signed angle (rad) from ``first`` to ``second`` about a unit axis, seen along the axis."""
    return math.atan2(float(axis @ np.cross(first, second)), float(first @ second - (axis @ first) * (axis @ second)))
