"""Texture coordinates.

In an image, u points to the right and v points up. In a cube map, coordinates are directions.
"""

from __future__ import annotations

import numpy as np

from gpusim.description.looks import PROJECTED, Texture
from gpusim.typing import Array

_SEAM = 0.5
"""A triangle crosses the seam if its longitudes differ by more than this fraction of 360 degrees."""
_FLAT = 0.999
"""Minimum cosine of the angle between normal and z axis on the flat ends of round shapes."""


def corner_texcoords(texture: Texture, points: Array, uv: Array | None) -> Array:
    """Return the texture coordinates (n, 3) of n corners: (u, v, 0), or directions in a cube map.

    Args:
        texture: the image or cube map.
        points: (n, 3) positions of the corners in the frame of the visual (m).
        uv: (n, 2) texture coordinates of the surface. With None, the image is projected, and a cube map is not
            stretched.
    """
    if texture.is_cube:
        fitted = uv is not None and texture.mapping != PROJECTED
        return points / np.maximum(np.abs(points).max(axis=0), 1e-300) if fitted else points
    if uv is None or texture.mapping == PROJECTED:
        flat = points[:, :2] * texture.repeat + 0.5
    else:
        flat = uv * texture.repeat
    return np.concatenate([flat, np.zeros((len(flat), 1))], axis=1)


def surface_uv(picture: str, corners: Array, normals: Array) -> Array:
    """Return the texture coordinates (m, 3, 2) of a shape's triangles, from 0 to 1.

    Args:
        picture: "faceted" shows the whole image on each side. "round" wraps the image once around the z axis, and shows
            the image on each flat end. All other values of ``picture`` project the image along z.
        corners, normals: (m, 3, 3) positions and normals of the triangles' corners, in the frame of the shape.
    """
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    relative = (corners - low) / np.maximum(high - low, 1e-300)
    if picture == "faceted":
        return _side_coordinates(relative, normals)
    if picture != "round":
        return relative[:, :, :2]
    around = _wrapped(corners, relative[:, :, 2])
    ends = np.all(np.abs(normals[:, :, 2]) > _FLAT, axis=1)
    around[ends] = _side_coordinates(relative[ends], normals[ends])
    return around


def _side_coordinates(relative: Array, normals: Array) -> Array:
    """Return texture coordinates on the sides of a box."""
    direction = normals.sum(axis=1)
    axis = np.argmax(np.abs(direction), axis=1)
    sign = np.where(np.take_along_axis(direction, axis[:, None], axis=1) < 0.0, -1.0, 1.0)
    first, second = np.array([1, 0, 0])[axis], np.array([2, 2, 1])[axis]
    u = np.take_along_axis(relative, first[:, None, None], axis=2)[:, :, 0]
    v = np.take_along_axis(relative, second[:, None, None], axis=2)[:, :, 0]
    mirrored = np.array([1.0, -1.0, 1.0])[axis, None] * sign < 0.0
    return np.stack([np.where(mirrored, 1.0 - u, u), v], axis=2)


def _wrapped(corners: Array, height: Array) -> Array:
    """Return texture coordinates: the angle about z from the x axis (0 to 1 for a full circle), and the height."""
    u = np.arctan2(corners[:, :, 1], corners[:, :, 0]) / (2.0 * np.pi) % 1.0
    distance = np.hypot(corners[:, :, 0], corners[:, :, 1])
    pole = distance < 1e-6 * distance.max()
    spread = np.where(pole, -np.inf, u).max(axis=1) - np.where(pole, np.inf, u).min(axis=1)
    u = u + ((spread[:, None] > _SEAM) & (u < _SEAM))
    mean_u = np.where(pole, 0.0, u).sum(axis=1) / np.maximum((~pole).sum(axis=1), 1)
    return np.stack([np.where(pole, mean_u[:, None], u), height], axis=2)
