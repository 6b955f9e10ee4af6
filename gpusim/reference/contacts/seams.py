"""Contacts at the seams of tiles. Tiles are shapes of one body that together form one surface (compiler/seams.py).

The narrow phase handles each pair of shapes separately. It therefore also creates contact points on edges and side
faces that a neighbor tile covers. ``judge`` marks these contact points, and ``drop`` removes them.

*Shared contacts.* With a soft contact law, duplicate contact points would double the force. If a point touches two
tiles, ``judge`` marks the point for removal from one of the tiles.
"""

from __future__ import annotations

import numpy as np

from gpusim.compiler.seams import SEAM_CONE
from gpusim.contact.constants import FLIGHT
from gpusim.description.contact_fields import POINTS
from gpusim.reference.collide.shapes import HalfSpace, HeightField, Polytope
from gpusim.reference.contact_work import ContactWork
from gpusim.reference.contacts.contact_tire import tire_pairs
from gpusim.reference.contacts.narrow_phase import pairs_before
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array

SEAM_LEAN = 1e-3
"""Sine of the maximum angle by which a neighbor tile may rise above the contact plane."""
SEAM_LOOK = 4.0
"""Distance from a contact point at which ``judge`` checks whether neighbor tiles cover the tile, relative to the tile's
gap tolerance."""
SEAM_FACE = 5e-3
"""Tolerance of the check at the distance SEAM_LOOK, as a fraction of this distance."""
SEAM_STEEP = 0.1
"""Sine of the angle that the seam check uses between a leaning contact normal and the face normal. The tolerance
SEAM_FACE would hide smaller angles."""
SEAM_KEPT, SEAM_DROPPED, SEAM_CORRECTED = 0, 1, 1 << POINTS
"""Results of the seam check: keep the manifold, remove the manifold, or replace the manifold's normal by the face
normal."""
CONSTANTS = {
    "SEAM_LEAN": SEAM_LEAN, "SEAM_LOOK": SEAM_LOOK, "SEAM_FACE": SEAM_FACE, "SEAM_STEEP": SEAM_STEEP,
    "SEAM_CONE": SEAM_CONE, "SEAM_KEPT": SEAM_KEPT, "SEAM_DROPPED": SEAM_DROPPED, "SEAM_CORRECTED": SEAM_CORRECTED,
}  # fmt: skip
"""Constants of the kernels. The keys are the names in the kernels."""
_DIAGONAL = float(np.sqrt(0.5))
_ALL = (1 << POINTS) - 1
_POINT_NAMES = (
    "contact_feature", "contact_anchor", "contact_mode", "contact_age", "contact_impulse", "contact_slip",
    "contact_arm",
)  # fmt: skip


def judge(w: StepBuffers) -> None:
    """Mark the contact points to remove and the normals to replace, as bits in ``pair_seam``."""
    c, s = w.contacts, w.state.arrays
    assert c is not None
    seams = w.model.contact.seams
    c.pair_seam[:] = 0
    for world, count in enumerate(s["pair_count"]):
        view = _View(w, world, _manifolds_by_pair(s["pair_shapes"][world, :count], s["pair_points"][world]))
        for pair, by_pair in view.by_pair.items():
            sides = [side for side in (0, 1) if seams[pair[side]]]
            for m in by_pair:
                c.pair_seam[world, m] = np.bitwise_or.reduce([0, *(view.marks(m, side) for side in sides)])


def _manifolds_by_pair(pair_shapes: Array, pair_points: Array) -> dict[tuple[int, int], list[int]]:
    """Return the indices of the manifolds with contact points for each shape pair, in ascending order."""
    found: dict[tuple[int, int], list[int]] = {}
    for m, (a, b) in enumerate(pair_shapes):
        if pair_points[m]:
            found.setdefault((int(a), int(b)), []).append(m)
    return found


def drop(w: StepBuffers) -> None:
    """Remove the contact points and replace the normals that ``judge`` marked in ``pair_seam``."""
    c, s = w.contacts, w.state.arrays
    assert c is not None
    for world, m in np.argwhere(c.pair_seam):
        view = _View(w, int(world), {})
        for side in (side for side in (0, 1) if c.pair_seam[world, m] & SEAM_CORRECTED << side):
            n = view.face(m, side)
            c.pair_bend[world, m] += n - s["pair_normal"][world, m]
            s["pair_normal"][world, m] = n
        here = np.arange(s["pair_points"][world, m])
        remaining = here[(c.pair_seam[world, m] >> here & 1) == 0]
        for name in _POINT_NAMES:
            row = s[name][world, m]
            row[: remaining.size] = row[remaining]
            row[remaining.size :] = FLIGHT if name == "contact_mode" else 0
        s["pair_points"][world, m] = remaining.size
        if not remaining.size:
            for name in ("pair_normal", "pair_force", "pair_torque"):
                s[name][world, m] = 0
    _transfer_tire_state(w, c)


def verdict(w: StepBuffers, tile: int, points: Array, normal: Array) -> int:
    """Check contact points (n, 3) of a tile in the body frame. Return SEAM_KEPT, SEAM_CORRECTED or SEAM_DROPPED."""
    face = face_normal(w, tile, points, normal)
    lean = normal - face
    sine = float(np.linalg.norm(lean))
    tilted = sine > SEAM_LEAN and normal @ face >= SEAM_CONE
    n = face + SEAM_STEEP / sine * lean if tilted else normal
    level = points @ n
    lower = level < level.max() - SEAM_LEAN * w.model.contact.seam_reach[tile]
    bare = ~np.array([_covered(w, tile, x, n) for x in points])
    if np.any(bare & ~(lower & (tilted or isinstance(_shape(w, tile), HeightField)))):
        return SEAM_KEPT
    return SEAM_CORRECTED if tilted and bare.any() else SEAM_DROPPED


def face_normal(w: StepBuffers, tile: int, points: Array, normal: Array) -> Array:
    """Return the tile's face normal nearest to ``normal``, at contact points (n, 3). Vectors are in the body frame."""
    t, shape = w.model.contact, _shape(w, tile)
    rotation = t.rotation[tile].reshape(3, 3)
    if isinstance(shape, HalfSpace):
        return np.asarray(rotation[:, 2])
    if isinstance(shape, HeightField):
        return np.asarray(rotation @ _slope(shape, rotation.T @ (points[np.argmax(points @ normal)] - t.center[tile])))
    faces = shape.faces.normal
    return np.asarray(rotation @ faces[np.argmax(faces @ (rotation.T @ normal))])


def _transfer_tire_state(w: StepBuffers, c: ContactWork) -> None:
    """Transfer bristle deflections and impulses to the next tile when a tire crosses a seam."""
    s, contact = w.state.arrays, w.model.contact
    world, slot = np.nonzero(np.arange(c.num_pairs) < s["pair_count"][:, None])
    if not world.size:
        return
    shapes = s["pair_shapes"][world, slot]
    old_index = pairs_before(c, contact.num_shapes, world, shapes)
    fresh = (s["pair_points"][world, slot] > 0) & ~((old_index >= 0) & (c.before_pair_points[world, old_index] > 0))
    fresh &= tire_pairs(w, shapes)
    for k, m in zip(world[fresh], slot[fresh], strict=True):
        before = _manifolds_by_pair(c.before_pair_shapes[k, : c.before_count[k]], c.before_pair_points[k])
        a, b = (int(i) for i in s["pair_shapes"][k, m])
        near = [*(_ordered(n, b) for n in contact.seams[a]), *(_ordered(n, a) for n in contact.seams[b])]
        for old in (old for pair in near for old in before.get(pair, [])):
            # If the pair with the other tile has several manifolds, use the manifold with the same normal.
            differs = abs(float(c.before_pair_normal[k, old] @ s["pair_normal"][k, m])) < SEAM_CONE
            if differs and contact.manifolds[c.before_pair_shapes[k, old]].max() > 1:
                continue
            s["contact_impulse"][k, m, 0] = c.before_contact_impulse[k, old, 0]
            s["contact_slip"][k, m, 0] = c.before_contact_slip[k, old, 0]
            s["pair_torque"][k, m] = c.before_pair_torque[k, old]
            break


class _View:
    """Contact manifolds of one world. ``by_pair`` lists the manifold indices of each shape pair."""

    def __init__(self, w: StepBuffers, world: int, by_pair: dict[tuple[int, int], list[int]]) -> None:
        self.w, self.world, self.by_pair = w, world, by_pair
        self.s = {name: w.state.arrays[name][world] for name in ("pair_shapes", "pair_points", "pair_normal")}
        self.anchor = w.state.arrays["contact_anchor"][world]

    def points(self, m: int, side: int) -> Array:
        """Return the contact points of manifold m on shape A (side 0) or B (side 1), in the body frame, (n, 3)."""
        return np.asarray(self.anchor[m, : self.s["pair_points"][m], 3 * side : 3 * side + 3])

    def normal(self, m: int, side: int) -> Array:
        """Return the contact normal of manifold m in the body frame, pointing out of shape A (side 0) or B (side 1)."""
        body = self.w.model.contact.body[self.s["pair_shapes"][m, side]]
        n = self.w.rotation[self.world, body].T @ self.s["pair_normal"][m]
        return np.asarray(n if side == 0 else -n)

    def face(self, m: int, side: int) -> Array:
        """Return the face normal of the tile in manifold m, in the world frame, from A to B."""
        tile = int(self.s["pair_shapes"][m, side])
        n = face_normal(self.w, tile, self.points(m, side), self.normal(m, side))
        n = self.w.rotation[self.world, self.w.model.contact.body[tile]] @ n
        return np.asarray(n if side == 0 else -n)

    def verdict(self, m: int, side: int) -> int:
        """Run the seam check :func:`verdict` for manifold m. The tile is shape A (side 0) or B (side 1)."""
        return verdict(self.w, int(self.s["pair_shapes"][m, side]), self.points(m, side), self.normal(m, side))

    def marks(self, m: int, side: int) -> int:
        """Return the bits of ``pair_seam`` for manifold m: contact points to remove and normal to replace."""
        pair = self.s["pair_shapes"][m]
        tile, other = int(pair[side]), int(pair[1 - side])
        neighbors = self.w.model.contact.seams[tile]
        near = [(n, k, int(n > other)) for n in neighbors for k in self.by_pair.get(_ordered(n, other), [])]
        found = self.verdict(m, side) if near else SEAM_KEPT
        if found == SEAM_DROPPED:
            firm = [(k, at) for _, k, at in near if k < m or self.verdict(k, at) != SEAM_DROPPED]
            return 0 if all(self.rises_steeply(m, side, k, at) for k, at in firm) else _ALL
        return int(np.bitwise_or.reduce([found << side, *(self.shared(m, side, *each) for each in near)]))

    def rises_steeply(self, m: int, side: int, k: int, at: int) -> bool:
        """Return whether the tile of manifold m rises by more than 45 degrees above the contact plane of manifold k."""
        tile, x, n = int(self.s["pair_shapes"][m, side]), self.points(m, side)[0], self.normal(k, at)
        look = SEAM_LOOK * self.w.model.contact.seam_reach[tile]
        height = max(float((self.points(k, at)[0] - x) @ n), 0.0) + _DIAGONAL * look
        around = x + height * n + _DIAGONAL * look * _around(self.w, tile, n)
        return any(_is_near(self.w, tile, x_near, SEAM_FACE * look) for x_near in around)

    def shared(self, m: int, side: int, n: int, k: int, at: int) -> int:
        """Return one bit for each contact point of manifold m that duplicates a point of manifold k."""
        w, shapes, t = self.w, self.s["pair_shapes"], self.w.model.contact
        laws = w.pair_tables.law(shapes[[m, k], 0], shapes[[m, k], 1])
        if not laws[0, 0] > 0.0 or np.any(laws[0] != laws[1]):
            return 0
        if self.normal(m, side) @ self.normal(k, at) < SEAM_CONE:
            return 0
        tile = int(shapes[m, side])
        tolerance = min(t.seam_reach[tile], t.seam_reach[n])
        within = [_is_near(w, n, x, tolerance) for x in self.points(m, side)]
        outside = not all(_is_near(w, tile, x, tolerance) for x in self.points(k, at))
        if not any(within) or not (outside or (all(within) and k < m)) or self.verdict(k, at) == SEAM_DROPPED:
            return 0
        return sum(1 << i for i, here in enumerate(within) if here)


def _ordered(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _covered(w: StepBuffers, tile: int, x: Array, n: Array) -> bool:
    """Return whether neighbor tiles cover point x of a tile. n is the outward normal at x."""
    t = w.model.contact
    tolerance = t.seam_reach
    near = [(i, min(tolerance[tile], tolerance[i])) for i in t.seams[tile]]
    if not any(_is_near(w, i, x, space) and _rises(w, i, x, n, space) for i, space in near):
        return False
    look = SEAM_LOOK * tolerance[tile]
    for x_near in x + look * _around(w, tile, n):
        if _is_near(w, tile, x_near, SEAM_FACE * look) and not any(_is_near(w, i, x_near, space) for i, space in near):
            return False
    return True


def _around(w: StepBuffers, tile: int, normal: Array) -> Array:
    """Return eight unit vectors perpendicular to ``normal``, (8, 3)."""
    rotation = w.model.contact.rotation[tile].reshape(3, 3)
    n = rotation.T @ normal
    e = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    e = e / np.linalg.norm(e)
    f = np.cross(e, n)
    d = _DIAGONAL
    around = np.array([e, d * e + d * f, f, d * f - d * e, -e, -d * e - d * f, -f, d * e - d * f])
    return np.asarray(around @ rotation.T)


def _is_near(w: StepBuffers, tile: int, x: Array, space: float) -> bool:
    """Return whether point ``x`` is within ``space`` (m) of a tile."""
    t, shape = w.model.contact, _shape(w, tile)
    y = t.rotation[tile].reshape(3, 3).T @ (x - t.center[tile])
    if isinstance(shape, HalfSpace):
        return bool(y[2] <= space)
    if isinstance(shape, HeightField):
        half = 0.5 * (np.array(shape.heights.shape[::-1]) - 1) * shape.size[2:4]
        return bool(np.all(np.abs(y[:2]) <= half + space) and y[2] <= _height(shape, y) + space)
    first = shape.vertices[shape.faces.vertex[shape.faces.first[:-1]]]
    return bool(np.all(np.vecdot(y - first, shape.faces.normal) <= space))


def _rises(w: StepBuffers, tile: int, x: Array, n: Array, space: float) -> bool:
    """Return whether a tile extends above the plane through point x with normal n."""
    t, shape = w.model.contact, _shape(w, tile)
    rotation = t.rotation[tile].reshape(3, 3)
    y, out = rotation.T @ (x - t.center[tile]), rotation.T @ n
    if isinstance(shape, HalfSpace):
        return bool(out[2] < 0.0 or np.hypot(out[0], out[1]) > SEAM_LEAN)
    if isinstance(shape, HeightField):
        to = _corners_around(shape, y, space) - y
    else:
        to = shape.vertices - y
    return bool(np.any(to @ out > SEAM_LEAN * np.linalg.norm(to, axis=1) + space))


def _shape(w: StepBuffers, tile: int) -> HalfSpace | HeightField | Polytope:
    assert w.contacts is not None
    shape = w.contacts.shapes[tile]
    assert isinstance(shape, HalfSpace | HeightField | Polytope)
    return shape


def _cell(shape: HeightField, y: Array) -> tuple[Array, Array]:
    """Return the grid coordinates of point y in multiples of the spacing, and the cell of y (column, row)."""
    last = np.array(shape.heights.shape[::-1]) - 1
    at = np.clip(y[:2] / shape.size[2:4] + 0.5 * last, 0.0, last)
    return at, np.minimum(at.astype(int), last - 1)


def _height(shape: HeightField, y: Array) -> float:
    at, (column, row) = _cell(shape, y)
    u, v = at[0] - column, at[1] - row
    h = shape.heights
    first, far = h[row, column], h[row + 1, column + 1]
    if v > u:
        up = h[row + 1, column]
        return float(first + u * (far - up) + v * (up - first))
    right = h[row, column + 1]
    return float(first + u * (right - first) + v * (far - right))


def _slope(shape: HeightField, y: Array) -> Array:
    """Return the normal of the height field's triangle at point y."""
    at, (column, row) = _cell(shape, y)
    h, upper = shape.heights, at[1] - row > at[0] - column
    low, high = h[row, column : column + 2], h[row + 1, column : column + 2]
    along = high if upper else low
    across = (low[0], high[0]) if upper else (low[1], high[1])
    n = np.array([(along[0] - along[1]) / shape.size[2], (across[0] - across[1]) / shape.size[3], 1.0])
    return np.asarray(n / np.linalg.norm(n))


def _corners_around(shape: HeightField, y: Array, space: float) -> Array:
    """Return the corners of all triangles within the horizontal distance ``space`` of point y, (n, 3)."""
    spacing = shape.size[2:4]
    last = np.array(shape.heights.shape[::-1]) - 1
    at, _ = _cell(shape, y)
    slack = space / spacing
    low = np.clip(at - slack, 0, last - 1).astype(int)
    high = np.clip(at + slack, 0, last - 1).astype(int)
    lower = -float(slack.max())
    found = []
    for row in range(low[1], high[1] + 1):
        for column in range(low[0], high[0] + 1):
            u, v = at[0] - column, at[1] - row
            if min(1.0 - u, u - v, v) >= lower:
                found += [(column, row), (column + 1, row), (column + 1, row + 1)]
            if min(1.0 - v, u, v - u) >= lower:
                found += [(column, row), (column + 1, row + 1), (column, row + 1)]
    grid = np.array(found)
    return np.column_stack([(grid - 0.5 * last) * spacing, shape.heights[grid[:, 1], grid[:, 0]]])
