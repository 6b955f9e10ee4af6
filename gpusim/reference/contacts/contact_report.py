"""Contact data for users: points, forces and modes at the current time, and total forces on bodies and shapes.

Stage forward runs a trial substep. The forces are the impulses of this substep, divided by the kick time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusim.contact.constants import CODES, FLIGHT, MODES, PATCH_STICK, REST_SPEED, SLIDING, SLIDING_SHARE, STICKING
from gpusim.description.contact_fields import POINTS
from gpusim.description.specs import WORLD
from gpusim.reference.contacts.contact_tire import ELLIPSE_AT, TIRE
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.reference.step_buffers import StepBuffers

# Indices of the normal law and the friction law.
_NORMAL_AT, _FRICTION_AT = 0, 2


@dataclass(frozen=True)
class ForwardContacts:
    """Contacts after stage forward: n manifolds with contact points, sorted by world and pair index.

    :class:`gpusim.reference.contacts.manifolds.Manifolds` describes most of the arrays.
    """

    world: Array
    shape: Array
    points: Array
    frame: Array
    arm: Array
    friction: Array
    torque: Array
    shear: Array
    offset: Array
    mass: Array
    gamma: Array
    impulse: Array
    gap: Array
    color: Array
    """(n,) color of each manifold (array manifold_color in description/contact_fields.py)."""
    sweep_change: Array
    """(num_worlds, sweeps) greatest impulse change in each sweep, N s."""
    sweep_count: Array
    """(num_worlds,) number of sweeps of the solve."""


PACKED = ("frame", "arm", "friction", "torque", "shear", "offset", "mass", "gamma", "impulse", "gap")
"""Arrays of ``Manifolds`` that the kernels pack into one data record for each manifold."""


def touching_pairs(pair_points: Array, pair_count: Array) -> tuple[Array, Array]:
    """Return the world (n,) and the pair index (n,) of each pair with contact points, in ascending order."""
    world, pair = np.nonzero((pair_points > 0) & (np.arange(pair_points.shape[1]) < pair_count[:, None]))
    return world, pair


@dataclass(frozen=True)
class Contacts:
    """Contact points at the current time, sorted by world and pair of shapes. Vectors are in the world frame.

    Points with a positive gap do not touch: their mode is ``FLIGHT``, and their force is zero. Shape A is the shape
    that was added to the model first. n is the number of contact points.

    Attributes:
        world: (n,) index of the world.
        shape_a, shape_b: (n,) indices of the shapes (``model.shapes``).
        body_a, body_b: (n,) indices of the shapes' bodies, -1 for the world.
        point: (n, 3) midpoint between both surfaces, m.
        normal: (n, 3) unit normal from A to B.
        gap: (n,) distance along the normal, m, negative for penetration.
        force: (n, 3) force of A on B, N.
        normal_force: (n,) component of the force along the normal, N, never negative.
        friction_force: (n,) magnitude of the tangential component of the force, N.
        mode: (n,) FLIGHT, SLIDING or STICKING from ``gpusim.contact.constants``. A rolling contact point sticks.
        torque: (n, 3) torque of rolling and spinning friction of A on B, N m. All points of a manifold share one
            torque.
        pair: (n,) index of the manifold that contains the point. The index counts the manifolds of all worlds.
        rigid: (n,) True for rigid normal laws, False for soft normal laws.
    """

    world: Array
    shape_a: Array
    shape_b: Array
    body_a: Array
    body_b: Array
    point: Array
    normal: Array
    gap: Array
    force: Array
    normal_force: Array
    friction_force: Array
    mode: Array
    torque: Array
    pair: Array
    rigid: Array
    model: Model = field(repr=False)

    def __len__(self) -> int:
        return int(self.world.size)

    @property
    def touching(self) -> Array:
        """Return a mask of the points with a nonzero force, (n,)."""
        return np.asarray(self.mode != FLIGHT)

    def select(self, chosen: Array) -> Contacts:
        """Return the contact points that ``chosen`` selects. ``chosen`` is a mask (n,) or an array of indices."""
        arrays = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name != "model"}
        return Contacts(model=self.model, **arrays)

    def of(self, shape: str) -> Contacts:
        """Return the contact points on the shape with the label ``shape``.

        Raises:
            UnknownNameError: no shape has this label. The message lists similar labels.
        """
        index = self.model.index("shape", shape)
        return self.select((self.shape_a == index) | (self.shape_b == index))

    def labels(self) -> list[tuple[str, str]]:
        """Return the labels of shapes A and B for each contact point."""
        shapes = self.model.shapes
        return [(shapes[a].label, shapes[b].label) for a, b in zip(self.shape_a, self.shape_b, strict=True)]

    def mode_names(self) -> list[str]:
        """Return the mode of each contact point: ``"flight"``, ``"sliding"`` or ``"sticking"``."""
        return [MODES[m] for m in self.mode]


def find_contacts(w: StepBuffers, trial: ForwardContacts | None) -> Contacts:
    """Return all contact points after stage forward.

    Args:
        w: work arrays after stage forward.
        trial: contacts of the trial substep, or None if the capacity of the pair buffer is 0.
    """
    if trial is None:
        trial = no_contacts(w.num_worlds)
    world, shape, points = trial.world, trial.shape, trial.points
    body = w.model.contact.body[shape]
    m, k = np.nonzero(np.arange(POINTS) < points[:, None])
    middle = w.state.arrays["position"][world, body[:, 0]] + trial.arm[:, 0]
    frame, impulse = trial.frame.astype(np.float64), trial.impulse[m, k]
    kick = np.where(w.kick_time > 0.0, w.kick_time, 1.0).reshape(-1).astype(np.float64)[world]
    # The friction force of a patch is divided equally among its points.
    rub = impulse[:, 1:] + (trial.shear / points[:, None])[m]
    parts = np.concatenate([impulse[:, :1], rub], axis=1) / kick[m, None]
    torque = _from_frame(frame, trial.torque / (points * kick)[:, None])
    named = np.where(body == w.topology.num_bodies, WORLD, body)
    point = middle[m] + trial.offset[m, k]
    return Contacts(
        world=world[m],
        shape_a=shape[m, 0],
        shape_b=shape[m, 1],
        body_a=named[m, 0],
        body_b=named[m, 1],
        point=point,
        normal=frame[m, 0],
        gap=trial.gap[m, k].astype(np.float64),
        force=_from_frame(frame[m], parts),
        normal_force=parts[:, 0],
        friction_force=np.hypot(parts[:, 1], parts[:, 2]),
        mode=_modes(w, trial, m, k, point),
        torque=torque[m],
        pair=m,
        rigid=w.pair_tables.law(shape[m, 0], shape[m, 1])[:, _NORMAL_AT] == 0.0,
        model=w.model,
    )


def no_contacts(worlds: int) -> ForwardContacts:
    """Return an empty ForwardContacts."""
    shapes = {
        "shape": (2,), "frame": (3, 3), "arm": (2, 3), "torque": (3,), "shear": (2,), "offset": (POINTS, 3),
        "mass": (POINTS, 6), "gamma": (POINTS,), "impulse": (POINTS, 3), "gap": (POINTS,),
    }  # fmt: skip
    whole = ("world", "shape", "points", "color")
    arrays = {
        f.name: np.zeros((0, *shapes.get(f.name, ())), np.int32 if f.name in whole else np.float64)
        for f in fields(ForwardContacts)
    }
    return ForwardContacts(**arrays | {"sweep_change": np.zeros((worlds, 0)), "sweep_count": np.zeros(worlds, int)})


def keep_contacts(w: StepBuffers) -> ForwardContacts:
    """Copy the contacts of a trial substep."""
    c = w.contacts
    assert c is not None
    sweeps = {"sweep_change": c.sweep_change.copy(), "sweep_count": c.sweep_count.copy()}
    if w.touch is None:
        return replace(no_contacts(w.num_worlds), **sweeps)
    m = w.touch.all
    order = np.lexsort((m.pair, m.world))
    arrays = {name: getattr(m, name)[order] for name in ("world", "shape", "points", *PACKED)}
    return ForwardContacts(**arrays, color=c.manifold_color[m.world, m.pair][order], **sweeps)


def sweep_residuals(num_worlds: int, trial: ForwardContacts | None) -> Array:
    """Return the maximum impulse change in each contact sweep (N s), (num_worlds, sweeps).

    The value is NaN for skipped sweeps.
    """
    if trial is None:
        trial = no_contacts(num_worlds)
    done = np.arange(trial.sweep_change.shape[1]) < trial.sweep_count[:, None]
    return np.where(done, trial.sweep_change, np.nan).astype(np.float64)


def _from_frame(frame: Array, parts: Array) -> Array:
    """Transform n vectors from contact frames to the world frame, (n, 3).

    The rows of each matrix in ``frame`` (n, 3, 3) are the axes of a contact frame.
    """
    return np.asarray(np.matmul(parts[:, None].astype(np.float64), frame)[:, 0])


def _modes(w: StepBuffers, c: ForwardContacts, m: Array, k: Array, point: Array) -> Array:
    """Return the modes of contact points ``k`` of manifolds ``m``. contact_record.cuh contains the same rule."""
    world, shape, impulse, mass = c.world[m], c.shape[m], c.impulse[m, k], c.mass[m, k, 0]
    law = w.pair_tables.law(shape[:, 0], shape[:, 1])
    yielding = np.where(law[:, _NORMAL_AT] > 0.0, 0.0, c.gamma[m, k] / np.where(mass > 0.0, mass, 1.0))
    limit = c.friction[m] * impulse[:, 0] * (1.0 + yielding)
    ellipse = np.where((law[:, _FRICTION_AT] == TIRE)[:, None], law[:, ELLIPSE_AT], 1.0)
    slides = np.hypot(*(impulse[:, 1:] / ellipse).T) >= SLIDING_SHARE * limit
    patch = law[:, _FRICTION_AT] == CODES["LAW_CONTENSOU"]
    if (slides | patch).any():
        speed = _slip_speed(w, world, shape, c.frame[m, 0], point)
        slides = np.where(patch, speed > PATCH_STICK, slides & (speed > REST_SPEED))
    return np.where(impulse[:, 0] > 0.0, np.where(slides, SLIDING, STICKING), FLIGHT)


def _slip_speed(w: StepBuffers, world: Array, shape: Array, normal: Array, point: Array) -> Array:
    """Return the slip speed (m/s) between both surfaces at n contact points, (n,)."""
    velocity = []
    for side in (0, 1):
        body = w.model.contact.body[shape[:, side]]
        twist = w.twist[world, body].astype(np.float64)
        arm = point - w.state.arrays["position"][world, body]
        velocity.append(twist[:, :3] + np.cross(twist[:, 3:], arm))
    slip = velocity[1] - velocity[0]
    slip -= np.sum(slip * normal, axis=1, keepdims=True) * normal
    return np.asarray(np.linalg.norm(slip, axis=1))


class ContactSums:
    """Sums of contact forces on bodies and shapes, in every world.

    Attributes:
        body_force: (num_worlds, bodies + 1, 3) sum of the contact forces on each body, N. The last entry is the fixed
            world.
        body_torque: (num_worlds, bodies + 1, 3) sum of the contact torques about each body's center of mass, N m.
        shape_force: (num_worlds, shapes, 3) sum of the contact forces on each shape, N.
        shape_points: (num_worlds, shapes) number of contact points with a nonzero force on each shape.
        points: (num_worlds,) number of contact points with a nonzero force.
        penetration: (num_worlds,) deepest penetration of rigid contacts, m, or 0 without penetration.
    """

    def __init__(self, contacts: Contacts, position: Array) -> None:
        self._c = contacts
        self._worlds, self._bodies = position.shape[:2]
        shapes, touching, sides = len(contacts.model.shapes), contacts.touching, ((0, -1.0), (1, 1.0))
        self.body_force = np.zeros((self._worlds, self._bodies, 3))
        self.body_torque = np.zeros((self._worlds, self._bodies, 3))
        self.shape_force = np.zeros((self._worlds, shapes, 3))
        self.shape_points = np.zeros((self._worlds, shapes), dtype=np.int64)
        for side, sign in sides:
            body = (contacts.body_a, contacts.body_b)[side]
            shape = (contacts.shape_a, contacts.shape_b)[side]
            force, arm = sign * contacts.force, contacts.point - position[contacts.world, body]
            self._add(self.body_force, body, force)
            self._add(self.body_torque, body, np.cross(arm, force) + sign * contacts.torque)
            self._add(self.shape_force, shape, force)
            np.add.at(self.shape_points, (contacts.world[touching], shape[touching]), 1)
        self.points = np.bincount(contacts.world[touching], minlength=self._worlds)
        self.penetration = np.zeros(self._worlds)
        np.maximum.at(self.penetration, contacts.world[contacts.rigid], -contacts.gap[contacts.rigid])

    def _add(self, target: Array, column: Array, values: Array) -> None:
        # np.add.at adds in the order of the points, so that sums have the same bits every time.
        np.add.at(target, (self._c.world, column), values)
