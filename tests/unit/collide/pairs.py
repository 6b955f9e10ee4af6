from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from gpusim.typing import Array

from .record import Shape


@dataclass
class Contact:
    count: int
    normal: Array
    a: Array
    b: Array
    feature: Array

    @property
    def gap(self) -> Array:
        return (self.b - self.a) @ self.normal

    @property
    def least(self) -> float:
        return float(self.gap.min()) if self.count else np.inf


def touch(routine: Callable[..., Any], a: Shape, b: Shape, margin: float = 0.05, guess: Array | None = None) -> Contact:
    n, normal, points_a, points_b, feature = routine(a, b, margin, guess)
    contact = Contact(n, normal, points_a, points_b, feature)
    if n:
        assert 0 <= n <= 4
        assert abs(np.linalg.norm(normal) - 1.0) < 1e-12
        size = 1.0 + np.abs(points_a[:n]).max()
        apart = contact.b - contact.a
        assert np.abs(apart - np.outer(contact.gap, normal)).max() < 1e-11 * size
        assert np.all(contact.gap <= margin + 1e-12 * size)
        assert np.all((contact.feature >= 0) & (contact.feature < 65536))
        assert len(set(contact.feature.tolist())) == n
    return contact


def moved(s: Shape, turn: Array, shift: Array) -> Shape:
    return s._replace(
        center=turn @ s.center + shift, turn=np.ascontiguousarray(turn @ s.turn.reshape(3, 3)).reshape(-1)
    )


def random_rotation(rng: np.random.Generator) -> Array:
    return Rotation.from_quat(rng.normal(size=4)).as_matrix()


def small_rotation(rng: np.random.Generator, size: float) -> Array:
    """A rotation by about ``size`` radians."""
    return Rotation.from_rotvec(rng.normal(size=3) * size).as_matrix()


def box_distance(a: Shape, b: Shape) -> float:
    """Return the distance of two boxes by bounded least squares."""
    ta, tb = a.turn.reshape(3, 3), b.turn.reshape(3, 3)
    bound = np.concatenate([a.size[:3], b.size[:3]])
    found = lsq_linear(np.hstack([-ta, tb]), a.center - b.center, (-bound, bound), method="bvls", tol=1e-15)
    return float(np.sqrt(2.0 * found.cost))


def box_separation(a: Shape, b: Shape) -> float:
    ta, tb = a.turn.reshape(3, 3), b.turn.reshape(3, 3)
    axes = [*ta.T, *tb.T, *(np.cross(u, v) for u in ta.T for v in tb.T)]
    best = -np.inf
    for axis in axes:
        length = np.linalg.norm(axis)
        if length > 1e-6:
            n = axis / length
            reach = np.abs(n @ ta) @ a.size[:3] + np.abs(n @ tb) @ b.size[:3]
            best = max(best, abs(n @ (b.center - a.center)) - reach)
    return best
