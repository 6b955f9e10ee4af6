"""Taut loop of a track: the shape of the track under tension.

The taut loop maximizes the shift of the idler. The links keep their length and do not penetrate wheels. The Lagrange
multipliers of the link lengths are the tensions of the links.

The method is an augmented Lagrangian (Nocedal, Wright 2006, section 17.3) with Newton's method. The unit of all lengths
is the pitch.
"""

from __future__ import annotations

import numpy as np

from gpusim.machines.track_path import Path, Wheels
from gpusim.typing import Array

STIFFNESS, MAX_ROUNDS, MAX_STEPS = 1e3, 12, 50
"""Penalty stiffness, maximum number of outer iterations, and maximum number of inner iterations."""
CLOSED = 1e-12
"""Maximum error of link lengths and gaps, in pitches, at which the iteration ends."""
EXACT, OVERLAP = 1e-10, 1e-7
"""Maximum errors of link lengths (EXACT) and of gaps (OVERLAP) that are accepted, in pitches."""
GRADIENT_TOLERANCE = 1e-11
"""Gradient of the merit function below which Newton's method ends."""
TOUCHING = 1e-6
"""Minimum force on a link that lies on the idler, relative to the idler's spring force."""
CONTACT_GAP = 1e-3
"""Gap, in pitches, below which a link and a wheel touch at the start of the iteration."""
CONTACT_RANGE = 1.0
"""Maximum distance, in pitches along a link, from the link's middle to the center of a wheel that touches the link."""
STEP = 1e-6
"""Step of the finite differences for Hessians."""


class _Loop:
    """The optimization problem of the taut loop."""

    def __init__(self, wheels: Wheels, path: Path) -> None:
        circles = (wheels.sprocket, wheels.idler, *wheels.others)
        self.pitch, self.axis = wheels.pitch, wheels.axis
        self.centers = np.array([[c.x, c.z] for c in circles]) / self.pitch
        self.radii = np.array([c.radius for c in circles]) / self.pitch
        pins = path.pins[:-1] / self.pitch
        count = len(pins)
        offsets = pins - self.centers[0]
        on_sprocket = np.hypot(*offsets.T) < 0.5 / np.sin(np.pi / wheels.teeth) + 1e-6
        self.fixed_pin = int(np.argmin(np.where(on_sprocket, offsets @ self.axis, np.inf)))
        self.free = np.delete(np.arange(2 * count + 1), [2 * self.fixed_pin, 2 * self.fixed_pin + 1])
        self.start = np.append(pins.reshape(-1), path.shift / self.pitch)
        first = 2 * np.arange(count)[:, None] + np.arange(2)
        self.indices = np.concatenate([first, np.roll(first, -1, axis=0), np.full((count, 1), 2 * count)], axis=1)
        self.tension = np.full(count, 0.5)
        # A wheel pushes a link of a taut chain by the tension times half the sum of the angles at the link's ends.
        angles = _pin_angles(pins)
        gaps = self.errors(self.start[self.indices])[1]
        self.push = np.where(gaps < CONTACT_GAP, 0.25 * (angles + np.roll(angles, -1))[:, None], 0.0)

    def errors(self, unknowns: Array) -> tuple[Array, Array]:
        """Return the elongations (..., links), and the gaps to the wheels (..., links, wheels), in track pitches."""
        length, along, to_wheels = self._frames(unknowns)
        side = along[..., None, 0] * to_wheels[..., 1] - along[..., None, 1] * to_wheels[..., 0]
        position = np.sum(along[..., None, :] * to_wheels, axis=-1)
        return length - 1.0, np.where(np.abs(position - 0.5) < CONTACT_RANGE, side - self.radii, np.inf)

    def _frames(self, unknowns: Array) -> tuple[Array, Array, Array]:
        """Return each link's length and direction, and the vectors from its first pin to the wheel centers."""
        link = unknowns[..., 2:4] - unknowns[..., :2]
        length = np.hypot(link[..., 0], link[..., 1])
        to_wheels = self.centers - unknowns[..., None, :2]
        to_wheels[..., 1, :] += unknowns[..., 4:] * self.axis
        return length, link / length[..., None], to_wheels

    def merit(self, x: Array) -> float:
        """Return the augmented Lagrangian."""
        elongations, gaps = self.errors(x[self.indices])
        links = self.tension * elongations + 0.5 * STIFFNESS * elongations**2
        wheels = np.maximum(self.push - STIFFNESS * gaps, 0.0) ** 2 / (2.0 * STIFFNESS)
        return float(-x[-1] + links.sum() + wheels.sum())

    def slopes(self, unknowns: Array) -> Array:
        """Return the derivatives of each link's merit by its two pins (x, z) and the idler's shift, (..., links, 5)."""
        length, along, to_wheels = self._frames(unknowns)
        normal = np.stack([-along[..., 1], along[..., 0]], axis=-1)
        position = np.sum(along[..., None, :] * to_wheels, axis=-1) / length[..., None]  # along the link
        gaps = np.sum(normal[..., None, :] * to_wheels, axis=-1) - self.radii
        push = np.where(np.abs(position - 0.5) < CONTACT_RANGE, np.maximum(self.push - STIFFNESS * gaps, 0.0), 0.0)
        pull = (self.tension + STIFFNESS * (length - 1.0))[..., None] * along
        first = np.sum(push * (1.0 - position), axis=-1)[..., None] * normal - pull
        second = np.sum(push * position, axis=-1)[..., None] * normal + pull
        return np.concatenate([first, second, -push[..., 1:2] * (normal @ self.axis)[..., None]], axis=-1)

    def newton(self, x: Array) -> Array:
        """Return the unknowns that minimize the augmented Lagrangian, by Newton's method."""
        for _ in range(MAX_STEPS):
            slope, hessian = self._derivatives(x)
            if np.abs(slope).max() < GRADIENT_TOLERANCE:
                break
            step = np.zeros_like(x)
            step[self.free] = -_regularized_solution(hessian, slope)
            step *= min(1.0, 0.3 / np.abs(step).max())
            before, scale, directional = self.merit(x), 1.0, slope @ step[self.free]
            while scale > 1e-6 and self.merit(x + scale * step) > before + 1e-4 * scale * directional + 1e-14:
                scale *= 0.5
            if scale <= 1e-6:
                break
            x = x + scale * step
        return x

    def _derivatives(self, x: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian with respect to the free unknowns."""
        unknowns = x[self.indices]
        slope, hessian = np.zeros_like(x), np.zeros((x.size, x.size))
        slope[-1] = -1.0
        np.add.at(slope, self.indices, self.slopes(unknowns))
        moved = STEP * np.eye(5)[:, None]
        change = (self.slopes(unknowns + moved) - self.slopes(unknowns - moved)) / (2.0 * STEP)  # (5, n, 5)
        np.add.at(hessian, (self.indices.T[:, :, None], self.indices[None]), change)
        return slope[self.free], hessian[np.ix_(self.free, self.free)]


def _pin_angles(pins: Array) -> Array:
    """Return the angle (rad) between the two links at each pin, positive for a left turn."""
    link = np.roll(pins, -1, axis=0) - pins
    previous = np.roll(link, 1, axis=0)
    across = previous[:, 0] * link[:, 1] - previous[:, 1] * link[:, 0]
    return np.asarray(np.arctan2(across, np.sum(previous * link, axis=1)))


def _regularized_solution(hessian: Array, slope: Array) -> Array:
    """Return the solution of the linear system of Newton's method."""
    shift = 0.0
    while True:
        shifted = 0.5 * (hessian + hessian.T) + shift * np.eye(slope.size)
        try:
            factor = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            shift = max(1e-6, 10.0 * shift)
            continue
        return np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, slope)))


def tighten(wheels: Wheels, path: Path) -> Path | None:
    """Return the taut loop that has as many links as ``path``, or None if the solver fails."""
    loop = _Loop(wheels, path)
    x = loop.start
    for _ in range(MAX_ROUNDS):
        x = loop.newton(x)
        elongations, gaps = loop.errors(x[loop.indices])
        loop.tension = loop.tension + STIFFNESS * elongations
        loop.push = np.maximum(loop.push - STIFFNESS * gaps, 0.0)
        if max(np.abs(elongations).max(), -gaps.min()) < CLOSED:
            break
    if np.abs(elongations).max() > EXACT or gaps.min() < -OVERLAP:
        return None
    pins = x[:-1].reshape(-1, 2)
    links = np.roll(pins, -1, axis=0) - pins
    on_idler = loop.push[:, 1] > TOUCHING
    entering = links[int(np.argmax(np.roll(on_idler, -1) & ~on_idler))]
    leaving = links[int(np.argmax(np.roll(on_idler, 1) & ~on_idler))]
    shift = float(x[-1]) * loop.pitch
    return Path(np.append(pins, pins[:1], axis=0) * loop.pitch, shift, np.array([entering, leaving]), loop.fixed_pin)
