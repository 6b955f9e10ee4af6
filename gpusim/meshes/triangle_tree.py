"""Tables of a triangle mesh for collisions and rays: neighbors at edges and vertices, and a tree of bounding boxes.

All worlds share the int32 tables of a mesh. Box coordinates are integers from 0 to 65535 in the mesh's bounding box,
rounded outward. A node consists of four int32: six box coordinates of 16 bits each, and a link. The nodes are in
depth-first order, so a traversal needs no stack. The link of a leaf is -1 minus the leaf's index. The link of an inner
node is the index of the first node after its subtree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.typing import Array

LEAF = 4
"""Number of triangles in a leaf."""
GRID = 65535
_ROOM = 1e-6
"""Margin (in grid steps) that is added to boxes because of rounding errors."""
_MAX_SHARING = 8
"""Maximum number of triangles at one edge that the neighbor search compares."""


@dataclass(frozen=True)
class TriangleTree:
    """Tables of a mesh for collisions and rays.

    Attributes:
        vertices: vertices (v, 3), m.
        triangles: vertex indices (t, 3), in the order of the leaves.
        beyond: (t, 3). For edge k (corner k to k + 1), the opposite vertex of the neighbor triangle, or -1 without a
            neighbor.
        fan_start, fan: ``fan[fan_start[i] : fan_start[i + 1]]`` are the triangles around vertex i.
        nodes: four int32 for each node of the tree: bounding box and link, (n, 4).
        solid: number of triangles of this shape, which come first in ``triangles``. The rest belongs to neighbor
            shapes.
    """

    vertices: Array
    triangles: Array
    beyond: Array
    fan_start: Array
    fan: Array
    nodes: Array
    solid: int

    def numbers(self) -> Array:
        """Return all integer tables in one array, with the layout that the kernels expect."""
        parts = (np.array([self.solid]), self.triangles, self.beyond, self.fan_start, self.nodes, self.fan)
        return np.concatenate([np.asarray(part, np.int32).ravel() for part in parts])

    def near(self, low: Array, high: Array) -> Array:
        """Return the indices (ascending) of the triangles in all leaves that overlap a box."""
        lower, step = self.grid
        first = np.clip(np.floor((low - lower) / step) - 1, 0, GRID)
        last = np.clip(np.ceil((high - lower) / step) + 1, 0, GRID)
        sides = self.sides
        leaves, nodes = [], np.zeros(1, dtype=np.int64)
        while nodes.size:
            nodes = nodes[np.all((sides[nodes, 0] <= last) & (sides[nodes, 1] >= first), axis=1)]
            link = self.nodes[nodes, 3]
            leaves.append(-1 - link[link < 0])
            inner = nodes[link >= 0]
            below = self.nodes[inner + 1, 3]
            # The left child is the next node. The right child is after the left child's subtree.
            nodes = np.concatenate([inner + 1, np.where(below < 0, inner + 2, below)])
        leaf = np.sort(np.concatenate(leaves))
        number = (LEAF * leaf[:, None] + np.arange(LEAF)).ravel()
        return number[number < self.solid]

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        """Return the lower corner (m) and the step sizes (m) of the grid for box coordinates, each (3,)."""
        return grid_of(self.vertices)

    @cached_property
    def sides(self) -> Array:
        """Return the lower and upper corners of all n boxes in grid steps, (n, 2, 3)."""
        words = self.nodes[:, :3].view(np.uint32)
        halves = np.stack([words & np.uint32(65535), words >> np.uint32(16)], axis=-1)
        return halves.reshape(-1, 2, 3)


def grid_of(vertices: Array) -> tuple[Array, Array]:
    """Return the lower corner (m) and the step sizes (m) of the grid for the box coordinates of a mesh, each (3,)."""
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    return lower, step_of(lower, upper)


def step_of(lower: Array, upper: Array) -> Array:
    """Return the positive step sizes (3,) of the grid for box coordinates, m."""
    extent = upper - lower
    return np.maximum(extent, max(1e-6 * float(extent.max()), 1e-12)) / GRID


def tree_of(vertices: Array, numbers: Array, triangles: int) -> TriangleTree:
    """Rebuild the tree from the array that :meth:`TriangleTree.numbers` returned."""
    solid = int(numbers[0])
    nodes = 2 * -(-solid // LEAF) - 1
    sizes = [3 * triangles, 3 * triangles, len(vertices) + 1, 4 * nodes]
    corners, beyond, start, tree, fan = np.split(np.asarray(numbers[1:], np.int32), np.cumsum(sizes))
    return TriangleTree(vertices, corners.reshape(-1, 3), beyond.reshape(-1, 3), start, fan, tree.reshape(-1, 4), solid)


def build_tree(vertices: Array, triangles: Array, chosen: Array | None = None) -> TriangleTree:
    """Build the tables of a mesh. Equal vertices must already be merged.

    Args:
        vertices: (v, 3) in m.
        triangles: (t, 3) indices.
        chosen: (t,) bool, True for triangles of this shape, False for triangles of neighboring shapes. Default: True
            for all triangles.
    """
    if chosen is not None:
        vertices, triangles, chosen = _with_neighbors(vertices, triangles, chosen)
    order = np.argsort(_morton_codes(vertices, triangles), kind="stable")
    if chosen is not None:
        order = np.concatenate([order[chosen[order]], order[~chosen[order]]])
    solid = len(triangles) if chosen is None else int(chosen.sum())
    triangles = np.ascontiguousarray(triangles[order], dtype=np.int32)
    fan = (np.argsort(triangles.ravel(), kind="stable") // 3).astype(np.int32)
    sizes = np.bincount(triangles.ravel(), minlength=len(vertices))
    fan_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    nodes = _nodes(vertices, triangles[:solid])
    return TriangleTree(vertices, triangles, _neighbors(vertices, triangles), fan_start, fan, nodes, solid)


def _with_neighbors(vertices: Array, triangles: Array, chosen: Array) -> tuple[Array, Array, Array]:
    """Remove neighbor triangles that share no vertex with a triangle of this shape."""
    touched = np.zeros(len(vertices), dtype=bool)
    touched[triangles[chosen]] = True
    near = touched[triangles].any(axis=1)
    used = np.zeros(len(vertices), dtype=bool)
    used[triangles[near]] = True
    number = np.cumsum(used, dtype=np.int32) - 1
    return vertices[used], number[triangles[near]], chosen[near]


def _morton_codes(vertices: Array, triangles: Array) -> Array:
    """Return the Morton code of each triangle's center."""
    lower = vertices.min(axis=0)
    size = float((vertices.max(axis=0) - lower).max())
    scale = ((1 << 20) - 1) / size
    code = np.zeros(len(triangles), dtype=np.uint64)
    for k in range(3):
        x = vertices[:, k]
        middle = (x[triangles[:, 0]] + x[triangles[:, 1]] + x[triangles[:, 2]]) / 3.0
        code |= _spread(((middle - lower[k]) * scale).astype(np.uint64)) << np.uint64(k)
    return code


def _spread(x: Array) -> Array:
    """Insert two zero bits after each of the lowest 21 bits."""
    for shift, mask in (
        (32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249),
    ):  # fmt: skip
        x = (x | (x << np.uint64(shift))) & np.uint64(mask)
    return x


def _nodes(vertices: Array, triangles: Array) -> Array:
    leaves = -(-len(triangles) // LEAF)
    nodes = np.zeros((2 * leaves - 1, 4), dtype=np.int32)
    low, high = np.empty((len(nodes), 3)), np.empty((len(nodes), 3))
    levels: list[tuple[Array, Array]] = []
    index, first, count = (np.array([x], dtype=np.int64) for x in (0, 0, leaves))
    while index.size:
        leaf = count == 1
        nodes[index[leaf], 3] = -1 - first[leaf]
        nodes[index[~leaf], 3] = index[~leaf] + 2 * count[~leaf] - 1
        _leaf_boxes(vertices, triangles, index[leaf], first[leaf], low, high)
        index, first, count = index[~leaf], first[~leaf], count[~leaf]
        left_count = (count + 1) // 2
        levels.append((index, index + 2 * left_count))
        index = np.concatenate([index + 1, index + 2 * left_count])
        first = np.concatenate([first, first + left_count])
        count = np.concatenate([left_count, count - left_count])
    for inner, right in reversed(levels):
        low[inner] = np.minimum(low[inner + 1], low[right])
        high[inner] = np.maximum(high[inner + 1], high[right])
    lower, step = grid_of(vertices)
    down = np.clip(np.floor((low - lower) / step - _ROOM), 0, GRID).astype(np.uint32)
    up = np.clip(np.ceil((high - lower) / step + _ROOM), 0, GRID).astype(np.uint32)
    halves = np.concatenate([down, up], axis=1).reshape(-1, 3, 2)
    nodes[:, :3] = (halves[..., 0] | (halves[..., 1] << np.uint32(16))).view(np.int32)
    return nodes


def _leaf_boxes(vertices: Array, triangles: Array, index: Array, first: Array, low: Array, high: Array) -> None:
    """Write the bounding boxes of the leaves to ``low`` and ``high``."""
    if not index.size:
        return
    number = np.minimum(LEAF * first[:, None] + np.arange(LEAF), len(triangles) - 1)
    for k in range(3):
        x = vertices[:, k][triangles[number]].reshape(len(index), -1)
        low[index, k], high[index, k] = x.min(axis=1), x.max(axis=1)


def _neighbors(vertices: Array, triangles: Array) -> Array:
    """Return the table ``TriangleTree.beyond`` for all triangles."""
    key, order = _sorted_edges(triangles, len(vertices))
    tip = triangles[:, [2, 0, 1]].ravel()[order]
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    size = np.diff(start, append=len(key))
    beyond = np.full(len(key), -1, dtype=np.int32)
    two = start[size == 2]
    beyond[order[two]], beyond[order[two + 1]] = tip[two + 1], tip[two]
    many = np.flatnonzero(size > 2)
    for n in np.unique(size[many]):
        group = many[size[many] == n]
        positions = start[group][:, None] + np.arange(n)
        edges = np.stack(np.divmod(key[positions[:, 0]], len(vertices)), axis=1)
        beyond[order[positions]] = _flattest(vertices, edges, tip[positions])
    return beyond.reshape(-1, 3)


def _sorted_edges(triangles: Array, vertices: int) -> tuple[Array, Array]:
    """Return sorted keys of all triangle edges, and the edge index of each key. Equal edges have equal keys."""
    here, there = triangles.ravel(), triangles[:, [1, 2, 0]].ravel()
    key = np.minimum(here, there).astype(np.int64) * vertices + np.maximum(here, there)
    if vertices * vertices * len(key) >= 2**63:
        order = np.argsort(key, kind="stable")
        return key[order], order
    # In-place sorting is faster than argsort and needs less memory.
    key *= len(key)
    key += np.arange(len(key))
    key.sort()
    order = (key % len(key)).astype(np.int32)
    key //= len(key)
    return key, order


def _flattest(vertices: Array, edges: Array, tips: Array) -> Array:
    """Return the opposite vertex of the flattest neighbor triangle at each edge (smallest bending angle)."""
    origin = vertices[edges[:, 0]][:, None]
    along = vertices[edges[:, 1]][:, None] - origin
    perpendicular = vertices[tips] - origin
    perpendicular -= along * (np.sum(perpendicular * along, axis=-1) / np.sum(along * along, axis=-1))[..., None]
    perpendicular /= np.linalg.norm(perpendicular, axis=-1, keepdims=True)
    best, min_cosine = tips.copy(), np.full(tips.shape, np.inf)
    for shift in range(1, min(tips.shape[1], _MAX_SHARING)):
        cosine = np.sum(perpendicular * np.roll(perpendicular, -shift, axis=1), axis=-1)
        better = cosine < min_cosine
        best = np.where(better, np.roll(tips, -shift, axis=1), best)
        min_cosine = np.where(better, cosine, min_cosine)
    return best
