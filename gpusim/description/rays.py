"""Patterns of rays in the frame of a site, such as a line, a fan, a grid or a camera."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import rotations, validate
from gpusim.typing import Array

FORWARD = (1.0, 0.0, 0.0)
"""Direction of the site's x axis."""
_ELEMENT = "Rays"
_MAX_RAYS = 10_000_000
"""Maximum number of rays of one sensor."""


@dataclass(frozen=True, eq=False)
class Rays:
    """Rays from a site.

    Attributes:
        directions: directions in the site's frame, (n, 3), which need not have length 1.
        origins: start points in the site's frame (m), (n, 3), or (3,) for all rays. Default: the site's origin.

    Raises:
        ModelError: wrong shapes, a value that is not finite, or a direction of length 0.
    """

    directions: Array
    origins: Array | None = None

    def __post_init__(self) -> None:
        vectors = _rows("directions", self.directions)
        length = rotations.norm(vectors)
        if not vectors.shape[0] or not np.all(length > 0.0):
            raise validate.fail(
                _ELEMENT, "directions are empty or contain a vector of length 0", "give an array (n, 3)"
            )
        begin = np.zeros(3) if self.origins is None else _rows("origins", self.origins)
        try:
            begin = np.broadcast_to(begin, vectors.shape)
        except ValueError:
            rule = f"there are {begin.shape[0]} origins for {vectors.shape[0]} directions"
            raise validate.fail(_ELEMENT, rule, "give one origin per direction, or one origin for all") from None
        object.__setattr__(self, "directions", vectors / length[:, None])
        object.__setattr__(self, "origins", np.array(begin))

    def __len__(self) -> int:
        return len(self.directions)

    @property
    def begins(self) -> Array:
        """Return the origins, (n, 3) in m."""
        assert self.origins is not None
        return self.origins

    @classmethod
    def line(
        cls, length: float, count: int, along: Sequence[float] = (0.0, 1.0, 0.0), direction: Sequence[float] = FORWARD
    ) -> Rays:
        """Make parallel rays from points on a line, as in a light curtain.

        Args:
            length: distance from the first to the last ray (m), centered at the site's origin.
            count: number of rays.
            along: direction of the line on which the rays start, from the first to the last ray.
            direction: direction of all rays.

        Raises:
            ModelError: no rays, or a length that is not above 0.
        """
        offsets = _spread("length", length, "count", count)
        row, ahead = (validate.direction(_ELEMENT, name, v) for name, v in (("along", along), ("direction", direction)))
        return cls(np.repeat(ahead[None], count, axis=0), offsets[:, None] * row)

    @classmethod
    def fan(cls, angle: float, count: int) -> Rays:
        """Make a fan of rays in the site's plane z = 0, as in a laser scanner.

        The fan is centered on the x axis. The first ray is the rightmost ray.

        Args:
            angle: angle from the first to the last ray (rad), at most 2 pi. In a full circle (2 pi), the first and the
                last ray do not coincide.
            count: number of rays.

        Raises:
            ModelError: no rays, or an angle out of range.
        """
        return cls(_bearings(_fan_angles("angle", angle, "count", count), np.zeros(1)))

    @classmethod
    def lidar(cls, angle: float, count: int, height: float, channels: int) -> Rays:
        """Make a fan of rays for each channel of a rotating lidar. The first fan is the lowest channel.

        Args:
            angle: angle of each fan (rad), at most 2 pi.
            count: rays per fan.
            height: angle from the lowest to the highest channel (rad), below pi, centered at the plane z = 0.
            channels: number of channels.

        Raises:
            ModelError: no rays, or an angle out of range.
        """
        if not 0.0 < validate.number(_ELEMENT, "height", height) < math.pi:
            raise validate.fail(_ELEMENT, f"height = {height:g} is out of range", "give an angle above 0 and below pi")
        _check_count(count, channels)
        return cls(
            _bearings(_fan_angles("angle", angle, "count", count), _spread("height", height, "channels", channels))
        )

    @classmethod
    def grid(cls, size: Sequence[float], count: Sequence[int], direction: Sequence[float] = (0.0, 0.0, -1.0)) -> Rays:
        """Make parallel rays from a grid in the site's plane z = 0, for a height scan.

        The order of the rays is row by row. The rows of the grid are parallel to x.

        Args:
            size: size of the grid along x and y (m), centered at the site's origin.
            count: numbers of points along x and along y.
            direction: direction of all rays. Default: downward.

        Raises:
            ModelError: no rays, or a size that is not above 0.
        """
        if not (_is_pair(size) and _is_pair(count)):
            raise validate.fail(
                _ELEMENT, "size and count of a grid must have two numbers each", "give values along x and y"
            )
        _check_count(*count)
        x, y = (_spread(f"size along {k}", s, f"count along {k}", n) for k, s, n in zip("xy", size, count, strict=True))
        across, ahead = np.meshgrid(x, y), validate.direction(_ELEMENT, "direction", direction)
        offsets = np.stack([across[0].ravel(), across[1].ravel(), np.zeros(x.size * y.size)], axis=1)
        return cls(np.repeat(ahead[None], len(offsets), axis=0), offsets)

    @classmethod
    def camera(cls, angle: float, width: int, height: int) -> Rays:
        """Make rays through the pixel centers of a camera that looks along x.

        The order of the rays is row by row, from the upper left.

        Sensors measure distances along the rays. Multiply a distance by the x component of ``directions`` to get the
        depth.

        Args:
            angle: horizontal field of view (rad), below pi.
            width, height: pixels.

        Raises:
            ModelError: no pixels, or an angle out of range.
        """
        if not 0.0 < validate.number(_ELEMENT, "angle", angle) < math.pi:
            raise validate.fail(_ELEMENT, f"angle = {angle:g} is out of range", "give an angle above 0 and below pi")
        validate.count(_ELEMENT, "width", width)
        validate.count(_ELEMENT, "height", height)
        _check_count(width, height)
        pixel = 2.0 * math.tan(0.5 * angle) / width
        left = (0.5 * (width - 1) - np.arange(width)) * pixel
        up = (0.5 * (height - 1) - np.arange(height)) * pixel
        y, z = np.meshgrid(left, up)
        return cls(np.stack([np.ones(y.size), y.ravel(), z.ravel()], axis=1))


def _rows(name: str, value: Any) -> Array:
    """Convert an array (3,) or (n, 3) to an array (n, 3)."""
    try:
        rows = np.atleast_2d(np.array(value, np.float64))
    except (TypeError, ValueError, OverflowError):
        raise validate.fail(_ELEMENT, f"{name} are not numbers", "give an array (n, 3)") from None
    if rows.ndim != 2 or rows.shape[1] != 3 or not np.all(np.isfinite(rows)):
        rule = f"{name} of shape {np.shape(value)} are not finite vectors of three"
        raise validate.fail(_ELEMENT, rule, "give (3,) or (n, 3)")
    return rows


def _spread(name: str, size: Any, count_name: str, count: Any) -> Array:
    """Return ``count`` equally spaced positions from -size/2 to size/2, or only 0 if ``count`` is 1."""
    half, number = 0.5 * validate.positive(_ELEMENT, name, size), validate.count(_ELEMENT, count_name, count)
    _check_count(number)
    return np.linspace(-half, half, number) if number > 1 else np.zeros(1)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 or getattr(value, "shape", ()) == (2,)


def _check_count(*counts: Any) -> None:
    """Check the number of rays, which is the product of the counts."""
    number = math.prod(counts) if all(isinstance(count, int | np.integer) for count in counts) else 0
    if number > _MAX_RAYS:
        rule = f"{validate.shown(number)} rays are too many"
        raise validate.fail(_ELEMENT, rule, f"give at most {_MAX_RAYS}")


def _fan_angles(name: str, angle: Any, count_name: str, count: Any) -> Array:
    """Return the equally spaced angles (rad) of the rays in a fan."""
    if not 0.0 < validate.number(_ELEMENT, name, angle) <= 2.0 * math.pi * (1.0 + 1e-12):
        raise validate.fail(_ELEMENT, f"{name} = {angle:g} is out of range", "give an angle above 0 and at most 2 pi")
    rays = validate.count(_ELEMENT, count_name, count)
    _check_count(rays)
    if angle >= 2.0 * math.pi * (1.0 - 1e-12) and rays > 1:
        return np.asarray(-0.5 * angle + angle * np.arange(rays) / rays)
    return _spread(name, angle, count_name, rays)


def _bearings(azimuths: Array, heights: Array) -> Array:
    """Return unit vectors (heights * azimuths, 3), one for each combination of elevation (``heights``) and azimuth."""
    up, left = np.meshgrid(heights, azimuths, indexing="ij")
    flat = np.cos(up)
    return np.stack([flat * np.cos(left), flat * np.sin(left), np.sin(up)], axis=-1).reshape(-1, 3)
