"""Poses of instances as position, rotation and scale, for renderers that do not accept affine transforms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array


@dataclass(frozen=True)
class Frames:
    """Poses of instances. The mesh point p is at ``position + R (scale * p)``. R is the rotation of ``quaternion``.

    Attributes:
        position: positions (instances, 3) in the world frame (m).
        quaternion: quaternions xyzw (instances, 4), mesh to world.
        scale: scale factors (instances, 3) along the axes of the mesh.
    """

    position: Array
    quaternion: Array
    scale: Array

    @classmethod
    def from_transforms(cls, transforms: Array) -> Frames:
        """Split affine transforms (instances, 3, 4). The first three columns must be perpendicular to each other."""
        from scipy.spatial.transform import Rotation

        scale = np.linalg.norm(transforms[:, :, :3], axis=1)
        axes = transforms[:, :, :3] / np.maximum(scale, 1e-300)[:, None, :]
        quaternion = Rotation.from_matrix(axes).as_quat() if len(axes) else np.zeros((0, 4))
        return cls(transforms[:, :, 3].copy(), quaternion, scale)
