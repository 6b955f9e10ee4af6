"""Stage: all drawn objects of a model, and the poses of these objects in each frame of an animation.

For each frame, a stage converts the poses of bodies to one affine transform per instance. The worlds are next to each
other in a square grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpusim import rotations, validate
from gpusim.description.looks import Texture
from gpusim.description.specs import WORLD
from gpusim.model.model import Model
from gpusim.reference.joints.wrapping import find_paths, polyline
from gpusim.stage.actuator_parts import actuator_parts
from gpusim.stage.floor import Ground, find_grounds, plane_pose
from gpusim.stage.frames import Frames
from gpusim.stage.machine_parts import MachineParts
from gpusim.stage.materials import dimmed
from gpusim.stage.meshes import MeshSource, coarse_points
from gpusim.stage.parts import ARC_PIECES, Part, Span, com_of, up_of
from gpusim.stage.poses import Bounds, Poses
from gpusim.stage.posts import posts
from gpusim.stage.shape_parts import shape_parts, visual_parts
from gpusim.typing import Array

_TONES = 0.13
_GAMMA = 2.2
_WIDE = 1.5
"""Half edge length of the square that represents a horizontal ground, relative to the scene's radius."""


@dataclass(frozen=True)
class Batch:
    """Instances ``first`` to ``first + count - 1`` of the stage, which have the same mesh."""

    mesh: MeshSource
    first: int
    count: int

    @property
    def at(self) -> slice:
        """Slice of the batch's instances in the arrays of the stage."""
        return slice(self.first, self.first + self.count)

    @property
    def picture(self) -> Texture | None:
        """Image on the meshes of the batch. None for a cube map, or without an image."""
        texture = self.mesh.texture
        return None if texture is None or texture.is_cube else texture


class Stage:
    """Drawn parts of a model in ``num_worlds`` worlds, sorted by mesh.

    ::

        stage = Stage(sim.model)
        for batch in stage.batches:  # once
            mesh, colors = batch.mesh.make(24), stage.rgba()[batch.at]
        transforms = stage.transforms(Poses.of(sim))  # in each frame; transforms[batch.at] are those of a batch

    Args:
        model: the model to draw.
        num_worlds: number of copies next to each other.
        decoration: if True, also draw joints, springs, cylinders, posts, and solids for bodies without shapes and
            visuals. Ropes and rods are always visible.
        visuals: if True, bodies with visuals show only their visuals. With ``visuals=False``, all bodies show their
            collision shapes.

    Attributes:
        batches: groups of instances with the same mesh.
        color: (instances, 3) linear colors.
        alpha: (instances,) opacity, 0 to 1.
        dimmed: (instances,) True for a limited brightness.
        finish: (instances, 3) roughness, metalness and contrast. The contrast is the brightness difference between
            sectors of a round shape, which makes rotation visible.
        fixed: (instances,) True for instances on one body, False for instances between two bodies (springs, ropes,
            hydraulic cylinders).
        body: (instances,) body index, -1 for the world.
        world: (instances,) index of the world.
        shape: (instances,) shape index, -1 for none.
        grounds: drawn planes of the model. If no plane is horizontal, the stage adds a floor.
        up: unit vector (3,) against gravity.
        offsets: (num_worlds, 3) displacement (m) of each world in the drawing.
    """

    def __init__(self, model: Model, num_worlds: int = 1, decoration: bool = True, visuals: bool = True) -> None:
        if not isinstance(model, Model):
            raise validate.fail("Stage", f"model = {model!r:.80} is not a model", "give sim.model")
        self.model = model
        self.num_worlds = validate.count("Stage", "num_worlds", num_worlds)
        self.up = up_of(model)
        pictures = visual_parts(model) if visuals else []
        machine = MachineParts(model, pictures)
        actuators = actuator_parts(model, machine)
        parts = [part for part in pictures if part.finish.alpha > 0.0] + shape_parts(model, machine.pictured, visuals)
        shapes = list(parts)
        parts += machine.parts + [piece for piece in actuators if isinstance(piece, Part)]
        self.grounds: list[Ground] = find_grounds(model, parts, machine, self.up, visuals)
        parts += posts(model, machine, self.grounds, self.up)
        if decoration:
            self._arrange(parts, machine.spans + [piece for piece in actuators if isinstance(piece, Span)])
        else:
            self._arrange(shapes, machine.spans)
        self._radii: Array = np.zeros(0)
        self.offsets = np.zeros((num_worlds, 3))
        poses = Poses.from_model(model)
        self._radii = np.repeat([_mesh_radius(b.mesh) for b in self.batches], [b.count for b in self.batches])
        bounds = self._first_world_bounds(poses)
        self.offsets = grid_offsets(num_worlds, bounds.radius, self.up)
        self.home = self.bounds(self.transforms(_repeated(poses, num_worlds)))

    def _arrange(self, parts: list[Part], spans: list[Span]) -> None:
        """Sort all parts by mesh and world."""
        pieces: list[Part | Span] = [*parts, *spans]
        meshes: dict[str, MeshSource] = {}
        for piece in pieces:
            meshes.setdefault(piece.mesh.key, piece.mesh)
        mesh_index = {key: k for k, key in enumerate(meshes)}
        mesh_of = np.array([mesh_index[p.mesh.key] for p in pieces], dtype=np.int64)
        worlds = self.num_worlds
        order = np.lexsort((np.tile(np.arange(worlds), len(pieces)), np.repeat(mesh_of, worlds)))
        part_index: Array = order // worlds
        self.world: Array = order % worlds
        counts = np.bincount(mesh_of, minlength=len(meshes)) * worlds
        firsts = np.cumsum(counts) - counts
        self.batches = [Batch(m, int(f), int(c)) for m, f, c in zip(meshes.values(), firsts, counts, strict=True)]
        finishes = [p.finish for p in pieces]
        self.color = np.array([f.linear() for f in finishes], dtype=np.float32).reshape(-1, 3)[part_index]
        self.alpha = np.array([f.alpha for f in finishes], dtype=np.float32)[part_index]
        self.dimmed = np.array([f.dimmed for f in finishes], dtype=bool)[part_index]
        surfaces = [(p.finish.roughness, p.finish.metal, _tones(p)) for p in pieces]
        self.finish = np.array(surfaces, dtype=np.float32).reshape(-1, 3)[part_index]
        owner = [p.body if isinstance(p, Part) else p.owner for p in pieces]
        self.body = np.array(owner, dtype=np.int32)[part_index]
        self.shape = np.array([p.shape if isinstance(p, Part) else -1 for p in pieces], dtype=np.int32)[part_index]
        self.fixed = fixed = part_index < len(parts)
        self._fixed, self._spanning = np.flatnonzero(fixed), np.flatnonzero(~fixed)
        self._part = _PartArrays(parts, part_index[fixed])
        self._span = _SpanArrays(spans, part_index[~fixed] - len(parts), self.model)

    def __len__(self) -> int:
        return len(self.body)

    def transforms(self, poses: Poses) -> Array:
        """Return the affine transforms (instances, 3, 4) of all instances, from mesh to world coordinates (m)."""
        self._check(poses)
        result = np.empty((len(self), 3, 4))
        if self._fixed.size:
            world = self.world[self._fixed]
            result[self._fixed] = self._part.transforms(poses, world)
            result[self._fixed, :, 3] += self.offsets[world]
        if self._spanning.size:
            result[self._spanning] = self.span_transforms(poses)
        return result

    def _check(self, poses: Poses) -> None:
        """Raise a ModelError if there are fewer poses than worlds."""
        if not isinstance(poses, Poses):
            raise validate.fail("Stage", f"poses = {poses!r:.80} are not Poses", "give Poses.of(sim)")
        if len(poses.position) < self.num_worlds:
            rule = f"poses has {len(poses.position)} worlds, but the stage has {self.num_worlds}"
            raise validate.fail("Stage", rule, "give Poses.of(sim, worlds) with all worlds of the stage")

    def span_transforms(self, poses: Poses) -> Array:
        """Return the affine transforms (spans, 3, 4) of the instances between two bodies, see :meth:`transforms`."""
        self._check(poses)
        if not self._spanning.size:
            return np.zeros((0, 3, 4))
        world = self.world[self._spanning]
        result = self._span.transforms(poses, world)
        result[:, :, 3] += self.offsets[world]
        return result

    def span_courses(self, poses: Poses) -> Array:
        """Return the transforms of :meth:`span_transforms` for each sample, (samples, spans, 3, 4).

        The stage must have one world.

        Args:
            poses: poses of the samples. The first axis of the arrays is the sample.
        """
        return self._span.transforms(poses, np.arange(len(poses.position))[:, None])

    def frames(self, poses: Poses) -> Frames:
        """Return positions, rotations and scales of all instances."""
        return Frames.from_transforms(self.transforms(poses))

    def local_transforms(self) -> Array:
        """Return the affine transforms of all ``fixed`` instances, from mesh to body coordinates (m), (n, 3, 4)."""
        local = self._part.local.copy()
        local[:, :, 3] += np.array([com_of(self.model, body) for body in self.body[self._fixed]]).reshape(-1, 3)
        return local

    def rgba(self) -> Array:
        """Return the sRGB colors and opacities of all instances, uint8 (instances, 4).

        If an instance has a texture, the renderer multiplies the image by the color. With a cube map, the color
        includes the mean color of the map.
        """
        linear = np.where(self.dimmed[:, None], dimmed(self.color), self.color)
        srgb = np.clip(linear, 0.0, 1.0) ** (1.0 / _GAMMA)
        for batch in self.batches:
            texture = batch.mesh.texture
            if texture is not None and batch.picture is None:
                srgb[batch.at] *= texture.mean()
        return np.rint(255.0 * np.column_stack([srgb, self.alpha])).astype(np.uint8)

    def ground_square(self, ground: Ground) -> Array:
        """Return the corners of a drawn plane, counterclockwise from above, in the body frame (4, 3), m.

        The square of a horizontal plane is below the center of the scene.
        """
        point, (x, y, normal) = ground.point, ground.axes.T
        half = ground.half
        if ground.level:
            offset = self.home.center - point
            point, half = point + offset - (normal @ offset) * normal, _WIDE * self.home.radius
        corners = [point + half * (a * x + b * y) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        return np.array(corners) + com_of(self.model, ground.body)

    def ground_poses(self, ground: Ground, poses: Poses) -> Iterator[tuple[int, Array, Array]]:
        """Yield (world index, point, axes) of each drawn copy of a plane: a point (m), and the axes as columns.

        All worlds share one copy of a horizontal plane.
        """
        for world in range(1 if ground.level else self.num_worlds):
            point, axes = plane_pose(ground, poses, world)
            yield world, point if ground.level else point + self.offsets[world], axes

    def corners(self, transforms: Array) -> Array:
        """Return the corners (8 * instances, 3) of the bounding boxes of all instances in the world frame, m."""
        corners = []
        for batch in self.batches:
            points = coarse_points(batch.mesh)
            low, high = points.min(axis=0), points.max(axis=0)
            box = np.array([[(low, high)[(k >> j) & 1][j] for j in range(3)] for k in range(8)])
            poses = transforms[batch.first : batch.first + batch.count]
            corners.append(np.einsum("nij,kj->nki", poses[:, :, :3], box) + poses[:, None, :, 3])
        return np.concatenate([np.zeros((0, 8, 3)), *corners]).reshape(-1, 3)

    def bounds(self, transforms: Array, chosen: Array | None = None) -> Bounds:
        """Return a bounding sphere of all instances, or of the instances in ``chosen``.

        Without instances, return a sphere with a radius of 1 m at the origin.
        """
        if chosen is not None:
            transforms, radii = transforms[chosen], self._radii[chosen]
        else:
            radii = self._radii
        if not len(transforms):
            return Bounds(np.zeros(3), 1.0)
        stretch = np.sqrt((transforms[:, :, :3] ** 2).sum(axis=1).max(axis=1))
        radius = (radii * stretch)[:, None]
        low, high = (transforms[:, :, 3] - radius).min(axis=0), (transforms[:, :, 3] + radius).max(axis=0)
        center = 0.5 * (low + high)
        distance = np.linalg.norm(transforms[:, :, 3] - center, axis=1) + radius[:, 0]
        return Bounds(center, float(distance.max()))

    def _first_world_bounds(self, poses: Poses) -> Bounds:
        first = np.flatnonzero(self.world == 0)
        return self.bounds(self.transforms(_repeated(poses, self.num_worlds)), first)


class _PartArrays:
    """Poses of parts in their bodies, with one entry for each instance."""

    def __init__(self, parts: list[Part], part_index: Array) -> None:
        self.body = np.array([p.body for p in parts], dtype=np.int64)[part_index]
        local = [np.concatenate([p.linear, p.offset[:, None]], axis=1) for p in parts]
        self.local = np.array(local).reshape(-1, 3, 4)[part_index]

    def transforms(self, poses: Poses, world: Array) -> Array:
        # body -1 (the world) is the last column
        result: Array = poses.rotation[world, self.body] @ self.local
        result[:, :, 3] += poses.position[world, self.body]
        return result


class _SpanArrays:
    """Arrays of the fields of :class:`Span`, with one entry for each instance."""

    def __init__(self, spans: list[Span], span_index: Array, model: Model) -> None:
        self.body_a = np.array([s.body_a for s in spans], dtype=np.int64)[span_index]
        self.body_b = np.array([s.body_b for s in spans], dtype=np.int64)[span_index]
        self.point_a = np.array([s.point_a for s in spans]).reshape(-1, 3)[span_index]
        self.point_b = np.array([s.point_b for s in spans]).reshape(-1, 3)[span_index]
        self.radius = np.array([s.radius for s in spans])[span_index]
        self.start = np.array([s.start for s in spans]).reshape(-1, 2)[span_index]
        self.end = np.array([s.end for s in spans]).reshape(-1, 2)[span_index]
        self.path = np.array([s.path for s in spans], dtype=np.int64)[span_index]
        self.piece = np.array([s.piece for s in spans], dtype=np.int64)[span_index]
        self.wraps, self.wrapped = model.topology.wrap, np.flatnonzero(self.path >= 0)
        # a direction that is fixed in body a and perpendicular to the line, so that coils do not rotate about the line
        poses = Poses.from_model(model)
        line = _unit(self._points(poses, 0, "b") - self._points(poses, 0, "a"))
        helper = np.where(np.abs(line[:, 1:2]) < 0.8, [[0.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]])
        self.helper = np.einsum("nji,nj->ni", poses.rotation[0, self.body_a], helper)

    def _points(self, poses: Poses, world: Array | int, end: str) -> Array:
        body, point = (self.body_a, self.point_a) if end == "a" else (self.body_b, self.point_b)
        rotated: Array = rotations.matvec(poses.rotation[world, body], point)
        return rotated + poses.position[world, body]

    def transforms(self, poses: Poses, world: Array) -> Array:
        """Return the affine transforms of all spans (..., spans, 3, 4)."""
        a, b = self._points(poses, world, "a"), self._points(poses, world, "b")
        if (k := self.wrapped).size:
            points = polyline(find_paths(self.wraps, poses.position, poses.rotation), ARC_PIECES)
            worlds = np.broadcast_to(world, a.shape[:-1])[..., k]
            a[..., k, :], b[..., k, :] = (points[worlds, self.path[k], self.piece[k] + end] for end in (0, 1))
        length = np.linalg.norm(b - a, axis=-1)
        z = _unit(b - a)
        y = _unit(np.cross(z, rotations.matvec(poses.rotation[world, self.body_a], self.helper)))
        low = np.clip(self.start[:, 0] + self.start[:, 1] * length, 0.0, length)
        high = np.clip(self.end[:, 0] + self.end[:, 1] * length, 0.0, length)
        piece = np.maximum(high - low, 1e-6)[..., None]
        columns = [np.cross(y, z) * self.radius[:, None], y * self.radius[:, None], z * piece]
        return np.stack([*columns, a + z * low[..., None]], axis=-1)


def _unit(vectors: Array) -> Array:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Array = np.where(length > 1e-12, vectors / np.maximum(length, 1e-12), [0.0, 0.0, 1.0])
    return unit


def _tones(piece: Part | Span) -> float:
    """Return the brightness difference between the sectors of a round shape. The sectors make rolling visible."""
    shown = isinstance(piece, Part) and piece.shape >= 0 and piece.body != WORLD and piece.mesh.round
    return _TONES if shown else 0.0


def _mesh_radius(mesh: MeshSource) -> float:
    """Return the maximum distance (m) of a mesh's vertices from the origin."""
    return float(np.linalg.norm(coarse_points(mesh), axis=1).max())


def _repeated(poses: Poses, worlds: int) -> Poses:
    return Poses(np.repeat(poses.position, worlds, axis=0), np.repeat(poses.rotation, worlds, axis=0))


def grid_offsets(num_worlds: int, radius: float, up: Array) -> Array:
    """Return the offset (m) of each world in a square grid perpendicular to ``up``, (num_worlds, 3).

    World 0 is at the back left corner.
    """
    side = math.ceil(math.sqrt(num_worlds))
    number = np.arange(num_worlds)
    row, column = number // side, number % side
    x = np.cross([0.0, 1.0, 0.0], up) if abs(up[1]) < 0.9 else np.array([1.0, 0.0, 0.0])
    x /= np.linalg.norm(x)
    y = np.cross(up, x)
    pitch = 2.1 * radius
    rows = math.ceil(num_worlds / side)
    offset_x = (column - 0.5 * (side - 1)) * pitch
    offset_y = (0.5 * (rows - 1) - row) * pitch
    offsets: Array = offset_x[:, None] * x + offset_y[:, None] * y
    return offsets if num_worlds > 1 else np.zeros((1, 3))
