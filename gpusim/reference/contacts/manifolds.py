"""Contact manifolds of a substep, as flat arrays over all worlds. The arrays have the order of the sweeps.

A sweep solves all manifolds of one *list* together. The first list contains the manifolds without a color (the
overflow). One list for each color follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from gpusim.contact.constants import ARTICULATED, NEW_AGE, NEW_PASSES, OVERFLOW, POINT_PASSES
from gpusim.description.contact_fields import POINTS
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array


@dataclass
class Manifolds:
    """Arrays over n manifolds (n, ...), or over their contact points (n, 4, ...).

    The axes of a manifold's frame are the normal and two tangents. Wrenches (force, torque) are about the center of the
    manifold. Impulses are impulses of A on B, in the manifold's frame. Velocities are velocities of B relative to A.
    """

    world: Array
    pair: Array
    """(n,) indices of the pairs in the state."""
    shape: Array
    """(n, 2) shapes A and B."""
    body: Array
    """(n, 2) bodies of shapes A and B."""
    moves: Array
    """(n, 2) True for dynamic bodies."""
    inverse_mass: Array
    """(n, 2) 1/kg."""
    inertia_inverse_effective: Array
    """(n, 2, 3, 3) inverse inertias, world frame, 1/(kg m2)."""
    points: Array
    """(n,) number of contact points, 1 to 4."""
    passes: Array
    """(n,) number of passes over the points in each sweep."""
    law: Array
    """(n, numbers) parameters of the contact law, as in ContactLaw.numbers."""
    articulated: Array
    """(n,) True if the direct solver solves the manifold through the joints of its bodies."""
    island: Array
    """(n,) index of the island in its world, or -1 if only sweeps solve the manifold (contact_islands.py)."""
    solved: Array
    """(n,) True if Newton's method has solved the island in this pass."""

    frame: Array
    """(n, 3, 3), rows are the normal from A to B and two tangents, world frame."""
    arm: Array
    """(n, 2, 3) vector from each center of mass to the center of the manifold, world frame, m."""
    response: Array
    """(n, 6, 6) response matrix: relative twist of B per unit wrench."""
    friction: Array
    """(n,) coefficient of Coulomb friction."""
    rolling: Array
    """(n,) greatest torque of rolling friction divided by the normal force, m."""
    spinning: Array
    """(n,) greatest torque of spinning friction divided by the normal force, m."""
    restitution: Array
    """(n,) coefficient of restitution."""
    patch: Array
    """(n,) radius of the patch, m."""
    speed: Array
    """(n,) speed below which regularized friction decreases, m/s."""
    torque: Array
    """(n, 3) impulses of spinning and rolling friction, N m s."""
    shear: Array
    """(n, 2) friction impulse of a patch along the tangents, N s."""
    tire_known: Array
    """(n, 2) deflection e of a tire for the slip velocity v+ = 0, m (contact_tire.py)."""
    tire_slope: Array
    """(n, 2) derivative of the deflection e with respect to the slip velocity v+, s (contact_tire.py)."""
    tire_stiffness: Array
    """(n, 2) impulse per deflection, N s/m."""
    tire_shares: Array
    """(n, 2) reciprocals of the semi-axes of the friction ellipse."""
    tire_kept: Array
    """(n, 2) fraction E of a tire's deflection that remains after the drift (contact_tire.py)."""
    tire_gain: Array
    """(n, 2) factor g: change of a tire's deflection in the drift, divided by the slip velocity, s
    (contact_tire.py)."""
    camber: Array
    """(n, 3) camber torque impulse for zero camber rate (N m s), change of this impulse per camber rate (N m s2), and
    tread width (m)."""
    whole_direction: Array
    """(n, 5) search direction of ``torque`` and ``shear``."""
    whole_swept: Array
    """(n, 5) ``torque`` and ``shear`` before the last sweep."""

    offset: Array
    """(n, 4, 3) position relative to the center of the manifold, world frame, m."""
    mass: Array
    """(n, 4, 6) response of the point: entries nn, tn, sn, tt, ts, ss of a symmetric matrix, 1/kg."""
    bias: Array
    """(n, 4, 3) bias of the three constraint rows, m/s."""
    gamma: Array
    """(n, 4) compliance along the normal, 1/kg."""
    impulse: Array
    """(n, 4, 3) impulse along the axes of the frame, N s."""
    impact: Array
    """(n, 4) speed of separation after an impact, m/s, or 0 without an impact."""
    gap: Array
    """(n, 4) gap along the normal, m, negative for penetration."""
    push: Array
    """(n, 4) speed at which the drift corrects penetration, m/s. A negative value is the maximum closing speed of an
    open gap."""
    push_yield: Array
    """(n, 4) compliance of the push-out, 1/kg."""
    pushed: Array
    """(n, 4) impulse of the push-out, N s. The push-out moves bodies in the drift without changing their velocities."""
    carried: Array
    """(n, 4) speed at which a load presses the surfaces together, m/s. ``bias`` includes ``carried``."""
    direction: Array
    """(n, 4, 3) search direction of the sweeps, N s."""
    delta: Array
    """(n, 4, 3) change of the impulse in the last sweep, N s."""
    floor: Array
    """(n, 4, 2) additional compliance along the normal and the tangents for bodies with joints, 1/kg
    (contact_direct.py)."""
    path_y: Array
    """(n, constraints, block, 6) matrix Y of contact_direct.py."""
    path_z: Array
    """(n, constraints, block, 6) matrix Z of contact_direct.py."""
    lever: Array
    """(n, 4, 6, 3) wrench of a unit impulse along each axis of the frame."""
    moved: Array
    """(n, 4, 6, 3) relative twist due to each wrench of ``lever``."""

    @property
    def exists(self) -> Array:
        """Return a mask of the contact points in use, (n, 4)."""
        return np.arange(POINTS) < self.points[:, None]

    @property
    def soft(self) -> Array:
        """Return a mask of the manifolds with a soft normal law, (n,)."""
        return self.law[:, 0] > 0.0

    def part(self, where: slice | Array) -> Manifolds:
        """Return the manifolds that ``where`` selects. If ``where`` is a slice, the arrays are views."""
        return Manifolds(*(getattr(self, f.name)[where] for f in fields(self)))

    def put(self, mask: Array, part: Manifolds, names: tuple[str, ...]) -> None:
        """Copy the arrays ``names`` from ``part`` to the manifolds in ``mask``."""
        for name in names:
            getattr(self, name)[mask] = getattr(part, name)


SOLVED = ("impulse", "delta", "torque", "shear")
_COMPUTED: dict[str, tuple[int, ...]] = {
    "frame": (3, 3), "arm": (2, 3), "response": (6, 6), "friction": (), "rolling": (), "spinning": (),
    "restitution": (), "patch": (), "speed": (), "torque": (3,), "shear": (2,), "tire_known": (2,),
    "tire_slope": (2,), "tire_stiffness": (2,), "tire_shares": (2,), "tire_kept": (2,), "tire_gain": (2,),
    "camber": (3,), "whole_direction": (5,), "whole_swept": (5,), "offset": (4, 3), "mass": (4, 6), "bias": (4, 3),
    "gamma": (4,), "impulse": (4, 3), "impact": (4,), "gap": (4,), "push": (4,), "push_yield": (4,), "pushed": (4,),
    "carried": (4,), "direction": (4, 3), "delta": (4, 3), "floor": (4, 2), "lever": (4, 6, 3), "moved": (4, 6, 3),
}  # fmt: skip
"""Shape of each array that the stages fill, for one manifold. The keys are array names."""


@dataclass
class ContactRows:
    """All manifolds of a substep, and the lists for sweeps."""

    all: Manifolds
    lists: list[Manifolds]
    articulated: list[Manifolds]
    overflow: bool
    """True if the first list contains the overflow manifolds."""
    touching: Array
    """(num_worlds,) True for worlds that have a manifold with contact points."""
    all_in_contact: Array
    """(num_worlds,) True for worlds in which each elimination tree has a body in contact."""
    saved: dict[str, Array] = field(default_factory=dict)
    """Saved solution of the sweeps (:meth:`keep`)."""

    def any_solved(self, num_worlds: int) -> Array:
        """Return a mask of the worlds in which Newton's method has solved an island, (num_worlds,)."""
        worlds = np.zeros(num_worlds, bool)
        worlds[self.all.world[self.all.solved]] = True
        return worlds

    def keep(self, worlds: Array) -> None:
        """Save the contact impulses of the worlds in the mask ``worlds``, (num_worlds,)."""
        mask = worlds[self.all.world]
        for name in SOLVED:
            array = getattr(self.all, name)
            self.saved.setdefault(name, array.copy())[mask] = array[mask]

    def restore(self, worlds: Array) -> None:
        """Restore the saved contact impulses of the worlds in the mask ``worlds``."""
        mask = worlds[self.all.world]
        for name in SOLVED:
            getattr(self.all, name)[mask] = self.saved[name][mask]


def gather(w: StepBuffers) -> ContactRows | None:
    """Return the manifolds of all worlds, or None if no pair has contact points."""
    c, s, t = w.contacts, w.state.arrays, w.model.contact
    assert c is not None
    world, pair = np.nonzero((s["pair_points"] > 0) & (np.arange(c.num_pairs) < s["pair_count"][:, None]))
    if not world.size:
        return None
    key = _sweep_keys(c.manifold_color[world, pair], world, w.config.max_colors)
    order = np.lexsort((pair, world, -s["pair_points"][world, pair], key))
    world, pair, key = world[order], pair[order], key[order]
    shape = s["pair_shapes"][world, pair]
    body, who = t.body[shape], world[:, None]
    points = s["pair_points"][world, pair]
    inverse_mass = w.broadcast(w.inverse_mass)[who, body]
    age = np.where(np.arange(POINTS) < points[:, None], s["contact_age"][world, pair], NEW_AGE).min(axis=1)
    # New points have no impulse for a warm start, so their manifolds get more passes.
    passes = np.where(points == 1, 1, np.where(age < NEW_AGE, NEW_PASSES, POINT_PASSES))
    rows = w.solved.shape[1:] if (key >= w.config.max_colors).any() else (0, 0)
    flat = Manifolds(
        world=world,
        pair=pair,
        shape=shape,
        body=body,
        moves=w.topology.dynamic[body],
        inverse_mass=inverse_mass,
        inertia_inverse_effective=w.inertia_inverse_effective[who, body],
        points=points,
        passes=passes,
        law=w.pair_tables.law(shape[:, 0], shape[:, 1]),
        articulated=key >= w.config.max_colors,
        island=np.full(world.size, -1),
        solved=np.zeros(world.size, bool),
        path_y=np.zeros((world.size, *rows, 6), w.real),
        path_z=np.zeros((world.size, *rows, 6), w.real),
        **{name: np.zeros((world.size, *shape), w.real) for name, shape in _COMPUTED.items()},
    )
    edge = np.flatnonzero(np.diff(key, prepend=key[0] - 1, append=key[-1] + 1))
    parts = [flat.part(slice(a, b)) for a, b in zip(edge[:-1], edge[1:], strict=True)]
    colors = int(np.count_nonzero(key[edge[:-1]] < w.config.max_colors))
    touching = np.zeros(w.num_worlds, bool)
    touching[world] = True
    return ContactRows(
        flat, parts[:colors], parts[colors:], bool(key[0] == OVERFLOW), touching, _all_in_contact(w, flat)
    )


def _all_in_contact(w: StepBuffers, m: Manifolds) -> Array:
    """Return the worlds in which each elimination tree has a body in contact, (num_worlds,)."""
    assert w.contacts is not None
    joints, node = w.topology.num_constraints, w.contacts.island_nodes[m.body]
    touched = np.zeros((w.num_worlds, joints), bool)
    on = m.moves & (node < joints)
    touched[np.broadcast_to(m.world[:, None], node.shape)[on], node[on]] = True
    trees = touched.sum(axis=1)
    return np.asarray((trees > 0) & (trees == w.contacts.sizes["elimination_trees"]))


def _sweep_keys(color: Array, world: Array, max_colors: int) -> Array:
    """Return sort keys that put the manifolds into the order of the sweeps."""
    key = color.astype(np.int64)
    articulated = np.flatnonzero(color == ARTICULATED)
    number = np.arange(articulated.size) - np.searchsorted(world[articulated], world[articulated])
    key[articulated] = max_colors + number
    return key
