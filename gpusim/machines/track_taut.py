"""The taut loop: the shape of a track under its tension.

The taut loop has the maximum shift of the idler, for links of equal pitch that do not penetrate the wheels. The
Lagrange multipliers of the link lengths are the tensions of the links.

The method is an augmented Lagrangian (Nocedal, Wright 2006, section 17.3) with Newton's method. The unit of all lengths
is the pitch.
"""

from __future__ import annotations

import numpy as np

from gpusim.machines.track_path import Path, Wheels
from gpusim.typing import Array

STIFFNESS, MAX_ROUNDS, MAX_STEPS = 1e3, 12, 50
"""Penalty stiffness, and maximum numbers of outer and inner iterations."""
CLOSED = 1e-12
"""Errors of lengths and gaps, in pitches, below which the iteration ends."""
EXACT, OVERLAP = 1e-10, 1e-7
"""Accepted errors of lengths and gaps, in pitches."""
LEVEL = 1e-11
"""Gradient of the merit function below which Newton's method ends."""
TOUCHING = 1e-6
"""Minimum force on a link that lies on the idler, relative to the idler's spring force."""
NEAR = 1e-3
"""Gap, in pitches, below which a link and a wheel touch at the start of the iteration."""
REACH = 1.0
"""Maximum distance, in pitches, between the middle of a link and a wheel that may touch the link."""
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
        ways = pins - self.centers[0]
        on = np.hypot(*ways.T) < 0.5 / np.sin(np.pi / wheels.teeth) + 1e-6
        self.held = int(np.argmin(np.where(on, ways @ self.axis, np.inf)))
        self.free = np.delete(np.arange(2 * count + 1), [2 * self.held, 2 * self.held + 1])
        self.start = np.append(pins.reshape(-1), path.shift / self.pitch)
        first = 2 * np.arange(count)[:, None] + np.arange(2)
        self.places = np.concatenate([first, np.roll(first, -1, axis=0), np.full((count, 1), 2 * count)], axis=1)
        self.tension = np.full(count, 0.5)
        # A wheel pushes a link of a taut chain by the tension times half the sum of the angles at the link's ends.
        turns = _turns(pins)
        gaps = self.errors(self.start[self.places])[1]
        self.push = np.where(gaps < NEAR, 0.25 * (turns + np.roll(turns, -1))[:, None], 0.0)

    def errors(self, own: Array) -> tuple[Array, Array]:
        """Return the elongation of each link (..., n), and its gap to each wheel (..., n, wheels), in track pitches."""
        length, along, to = self._frames(own)
        side = along[..., None, 0] * to[..., 1] - along[..., None, 1] * to[..., 0]
        far = np.sum(along[..., None, :] * to, axis=-1)
        return length - 1.0, np.where(np.abs(far - 0.5) < REACH, side - self.radii, np.inf)

    def _frames(self, own: Array) -> tuple[Array, Array, Array]:
        """Return lengths and directions of the links, and the vectors from each link's first pin to the wheels."""
        way = own[..., 2:4] - own[..., :2]
        length = np.hypot(way[..., 0], way[..., 1])
        to = self.centers - own[..., None, :2]
        to[..., 1, :] += own[..., 4:] * self.axis
        return length, way / length[..., None], to

    def merit(self, x: Array) -> float:
        """Return the augmented Lagrangian."""
        longer, gaps = self.errors(x[self.places])
        links = self.tension * longer + 0.5 * STIFFNESS * longer**2
        wheels = np.maximum(self.push - STIFFNESS * gaps, 0.0) ** 2 / (2.0 * STIFFNESS)
        return float(-x[-1] + links.sum() + wheels.sum())

    def slopes(self, own: Array) -> Array:
        """Return the gradient of each link's merit with respect to the link's five unknowns, (..., n, 5)."""
        length, along, to = self._frames(own)
        left = np.stack([-along[..., 1], along[..., 0]], axis=-1)
        far = np.sum(along[..., None, :] * to, axis=-1) / length[..., None]  # position of the wheel along the link
        gaps = np.sum(left[..., None, :] * to, axis=-1) - self.radii
        push = np.where(np.abs(far - 0.5) < REACH, np.maximum(self.push - STIFFNESS * gaps, 0.0), 0.0)
        pull = (self.tension + STIFFNESS * (length - 1.0))[..., None] * along
        first = np.sum(push * (1.0 - far), axis=-1)[..., None] * left - pull
        second = np.sum(push * far, axis=-1)[..., None] * left + pull
        return np.concatenate([first, second, -push[..., 1:2] * (left @ self.axis)[..., None]], axis=-1)

    def newton(self, x: Array) -> Array:
        """Return the unknowns that minimize the merit, by Newton's method."""
        for _ in range(MAX_STEPS):
            slope, hessian = self._derivatives(x)
            if np.abs(slope).max() < LEVEL:
                break
            step = np.zeros_like(x)
            step[self.free] = -_solved(hessian, slope)
            step *= min(1.0, 0.3 / np.abs(step).max())
            before, share, falls = self.merit(x), 1.0, slope @ step[self.free]
            while share > 1e-6 and self.merit(x + share * step) > before + 1e-4 * share * falls + 1e-14:
                share *= 0.5
            if share <= 1e-6:
                break
            x = x + share * step
        return x

    def _derivatives(self, x: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian with respect to the free unknowns."""
        own = x[self.places]
        slope, hessian = np.zeros_like(x), np.zeros((x.size, x.size))
        slope[-1] = -1.0
        np.add.at(slope, self.places, self.slopes(own))
        moved = STEP * np.eye(5)[:, None]
        change = (self.slopes(own + moved) - self.slopes(own - moved)) / (2.0 * STEP)  # (5, n, 5)
        np.add.at(hessian, (self.places.T[:, :, None], self.places[None]), change)
        return slope[self.free], hessian[np.ix_(self.free, self.free)]


def _turns(pins: Array) -> Array:
    """Return the left turning angles of the path at each pin, rad."""
    way = np.roll(pins, -1, axis=0) - pins
    last = np.roll(way, 1, axis=0)
    across = last[:, 0] * way[:, 1] - last[:, 1] * way[:, 0]
    return np.asarray(np.arctan2(across, np.sum(last * way, axis=1)))


def _solved(hessian: Array, slope: Array) -> Array:
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
    """Return the taut loop with the number of links of ``path``, or None if the solve fails."""
    loop = _Loop(wheels, path)
    x = loop.start
    for _ in range(MAX_ROUNDS):
        x = loop.newton(x)
        longer, gaps = loop.errors(x[loop.places])
        loop.tension = loop.tension + STIFFNESS * longer
        loop.push = np.maximum(loop.push - STIFFNESS * gaps, 0.0)
        if max(np.abs(longer).max(), -gaps.min()) < CLOSED:
            break
    if np.abs(longer).max() > EXACT or gaps.min() < -OVERLAP:
        return None
    pins = x[:-1].reshape(-1, 2)
    ways = np.roll(pins, -1, axis=0) - pins
    on = loop.push[:, 1] > TOUCHING
    comes = ways[int(np.argmax(np.roll(on, -1) & ~on))]
    leaves = ways[int(np.argmax(np.roll(on, 1) & ~on))]
    shift = float(x[-1]) * loop.pitch
    return Path(np.append(pins, pins[:1], axis=0) * loop.pitch, shift, np.array([comes, leaves]), loop.held)
