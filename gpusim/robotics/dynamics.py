"""Dynamics of a tree in generalized velocities: M(q) a + b(q, v) = tau + sum of J^T f.

The algorithms are recursive Newton-Euler and composite rigid bodies (Featherstone, Rigid Body Dynamics Algorithms,
2008, chapters 5 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim import rotations
from gpusim.robotics.kinematics import Kinematics, Motion, cross
from gpusim.typing import Array


@dataclass(frozen=True)
class Inertias:
    """Inertias of the n nodes (bodies) of a tree.

    Attributes:
        mass: masses (1 or worlds, n) (kg).
        com: centers of mass (n, 3) (m) in the body frames.
        inertia: inertias (1 or worlds, n, 3, 3) (kg m2) about the centers of mass, in body axes.
        gravity: gravitational acceleration (1 or worlds, 3) (m/s2).
        gravity_scale: factors (1 or worlds, n) that multiply the gravity on each node.
    """

    mass: Array
    com: Array
    inertia: Array
    gravity: Array
    gravity_scale: Array


class Bodies:
    """Mass properties and dynamics of the bodies in given postures."""

    def __init__(self, k: Kinematics, inertias: Inertias) -> None:
        self.k, self.inertias = k, inertias
        self.center: Array = k.origin + rotations.matvec(k.rotation, inertias.com)
        self.arm: Array = self.center - k.reference[:, None]

    @cached_property
    def inertia(self) -> Array:
        """Return the inertias (worlds, nodes, 3, 3) (kg m2) about the centers of mass, in world axes."""
        r = self.k.rotation
        return np.asarray(r @ self.inertias.inertia @ r.swapaxes(-1, -2))

    @property
    def total(self) -> Array:
        """Return the total mass (1 or worlds,) (kg)."""
        return np.asarray(self.inertias.mass.sum(axis=1))

    @property
    def com(self) -> Array:
        """Return the center of mass (worlds, 3) (m)."""
        return self._mean(self.center)

    def _mean(self, vectors: Array) -> Array:
        weighted = np.sum(self.inertias.mass[..., None] * vectors, axis=1)
        return np.asarray(weighted / self.total[:, None])

    def com_jacobian(self) -> Array:
        """Return the Jacobian of the center of mass, (worlds, 3, freedoms)."""
        k, path = self.k, self.k.masks.path
        mass = np.broadcast_to(self.inertias.mass, self.arm.shape[:2])
        carried_mass = mass @ path
        moment = np.matmul(path.T, mass[..., None] * self.arm)
        rows = k.columns[..., :3] * carried_mass[..., None] + cross(k.columns[..., 3:], moment)
        return np.asarray(rows.swapaxes(-1, -2) / self.total[:, None, None])

    def mass_matrix(self) -> Array:
        """Return the mass matrix (worlds, freedoms, freedoms), without armatures and other inertias on joint axes."""
        k, masks = self.k, self.k.masks
        spatial = self._spatial()
        composite = np.matmul(masks.subtree, spatial.reshape(*spatial.shape[:2], 36)).reshape(spatial.shape)
        force = np.matmul(composite[:, masks.owner], k.columns[..., None])[..., 0]
        products = np.matmul(force, k.columns.swapaxes(-1, -2)) * masks.path[masks.owner]
        lower = np.tril(products)
        return np.asarray(lower + np.tril(lower, -1).swapaxes(-1, -2))

    def _spatial(self) -> Array:
        """Return the spatial inertias about the reference point, (worlds, nodes, 6, 6)."""
        mass = np.broadcast_to(self.inertias.mass, self.arm.shape[:2])[..., None, None]
        shift = rotations.skew(self.arm)
        out = np.empty((*self.arm.shape[:2], 6, 6))
        out[..., :3, :3] = mass * np.eye(3)
        out[..., 3:, :3] = mass * shift
        out[..., :3, 3:] = -mass * shift
        out[..., 3:, 3:] = self.inertia - mass * (shift @ shift)
        return out

    def momentum(self, motion: Motion) -> Array:
        """Return the momentum (worlds, 6): linear (kg m/s), and angular about the center of mass (kg m2/s)."""
        v, w = self.velocities(motion)
        mass = self.inertias.mass[..., None]
        linear = mass * v
        about = cross(self.center - self.com[:, None], linear) + rotations.matvec(self.inertia, w)
        return np.concatenate([linear.sum(axis=1), about.sum(axis=1)], axis=-1)

    def com_velocity(self, motion: Motion) -> Array:
        """Return the velocity (worlds, 3) (m/s) of the center of mass."""
        return self._mean(self.velocities(motion)[0])

    def velocities(self, motion: Motion) -> tuple[Array, Array]:
        """Return the velocities of the centers of mass and the angular velocities, as two arrays (worlds, nodes, 3)."""
        w = motion.twist[..., 3:]
        return motion.twist[..., :3] + cross(w, self.arm), w

    def outer_wrench(self, motion: Motion, acceleration: Array) -> Array:
        """Return the external wrench (worlds, 6) that a motion requires in addition to gravity.

        The wrench is a force (N) and a moment (N m) about the center of mass.
        """
        force, torque = self._loads(motion, acceleration, self.inertias.gravity)
        about = torque + cross(self.center - self.com[:, None], force)
        return np.concatenate([force.sum(axis=1), about.sum(axis=1)], axis=-1)

    def _loads(self, motion: Motion, acceleration: Array, gravity: Array) -> tuple[Array, Array]:
        """Return the force at the center of mass and the torque that each node needs: two arrays (worlds, nodes, 3)."""
        spatial = motion.bias + np.matmul(self.k.masks.path, self.k.columns * acceleration[..., None])
        v, w = self.velocities(motion)
        angular = spatial[..., 3:]
        linear = spatial[..., :3] + cross(angular, self.arm) + cross(w, v)
        force = self.inertias.mass[..., None] * (linear - self.inertias.gravity_scale[..., None] * gravity[:, None])
        return force, rotations.matvec(self.inertia, angular) + cross(w, rotations.matvec(self.inertia, w))

    def inverse_dynamics(self, motion: Motion, acceleration: Array, gravity: Array, wrenches: Array) -> Array:
        """Return generalized forces (worlds, freedoms), without armatures and other inertias on joint axes.

        Args:
            motion: velocities.
            acceleration: generalized accelerations (worlds, freedoms).
            gravity: gravitational acceleration (1 or worlds, 3).
            wrenches: external wrenches (worlds, nodes, 6): force (N), and torque (N m) about the reference point.
        """
        force, torque = self._loads(motion, acceleration, gravity)
        load = np.concatenate([force, torque + cross(self.arm, force)], axis=-1) - wrenches
        return np.asarray(np.sum(self.k.columns * np.matmul(self.k.masks.path.T, load), axis=-1))
