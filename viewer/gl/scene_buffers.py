"""Vertices and instances of a stage on the GPU: one vertex buffer for all meshes, one draw call per mesh."""

from __future__ import annotations

import ctypes
from bisect import bisect_right

import numpy as np
from OpenGL import GL

from gpusim.typing import Array
from gpusim.viewer.gl.objects import Buffer, attribute
from gpusim.viewer.gl.quality import Quality
from gpusim.viewer.scene.meshes import MeshSource, TriangleMesh
from gpusim.viewer.scene.stage import Stage

_LEAST_SEGMENTS = 10
_FLOAT = 4
GLASS = 0.22
"""Opacity of shapes drawn as glass."""


class SceneBuffers:
    """Buffers of a stage. Call :meth:`move` once per frame, then :meth:`draw` as often as needed.

    Attribute locations: 0 position, 1 normal, 2 to 4 rows of the transform, 5 color and opacity, 6 roughness, metal and
    tones, 7 body.
    """

    def __init__(self, stage: Stage, quality: Quality) -> None:
        self._batches = stage.batches
        self._array = GL.glGenVertexArrays(1)
        self._vertices, self._looks = Buffer(), Buffer()
        self._indices = Buffer(GL.GL_ELEMENT_ARRAY_BUFFER)
        self._rows = Buffer(usage=GL.GL_STREAM_DRAW)
        GL.glBindVertexArray(self._array)
        self._write_meshes(_meshes(stage, quality))
        self._write_looks(stage)
        self._rows.bind()
        for row in range(3):
            attribute(2 + row, 4, 12 * _FLOAT, 4 * row * _FLOAT, each_instance=True)
        GL.glBindVertexArray(0)

    def _write_meshes(self, meshes: list[TriangleMesh]) -> None:
        vertices = [np.concatenate([m.positions, m.normals], axis=1) for m in meshes]
        self._vertices.write(np.concatenate([np.zeros((0, 6)), *vertices]).astype(np.float32))
        attribute(0, 3, 6 * _FLOAT, 0, each_instance=False)
        attribute(1, 3, 6 * _FLOAT, 3 * _FLOAT, each_instance=False)
        triangles = [m.triangles.reshape(-1) for m in meshes]
        self._indices.write(np.concatenate([np.zeros(0), *triangles]).astype(np.uint32))
        self._base = np.cumsum([0, *(len(m.positions) for m in meshes)])
        self._first = np.cumsum([0, *(t.size for t in triangles)])

    def _write_looks(self, stage: Stage) -> None:
        looks = np.zeros(len(stage), dtype=[("color", "4f4"), ("finish", "3f4"), ("body", "i4")])
        looks["color"][:, :3], looks["color"][:, 3] = stage.color, 1.0
        looks["finish"], looks["body"] = stage.finish, stage.body
        self._looks.write(looks)
        self._look_values, self._glass = looks, np.zeros(0, dtype=np.int64)
        stride = looks.dtype.itemsize
        attribute(5, 4, stride, 0, each_instance=True)
        attribute(6, 3, stride, 4 * _FLOAT, each_instance=True)
        attribute(7, 1, stride, 7 * _FLOAT, each_instance=True, whole=True)

    def move(self, transforms: Array, eye: Array) -> None:
        """Move the instances to ``transforms`` (instances, 3, 4), relative to ``eye``."""
        rows = transforms.copy()
        rows[:, :, 3] -= eye
        self._rows.write(rows.astype(np.float32))

    @property
    def has_glass(self) -> bool:
        """Whether any instance is drawn as glass."""
        return self._glass.size > 0

    def make_glass(self, chosen: Array) -> None:
        """Draw exactly these instances as glass."""
        if np.array_equal(chosen, self._glass):
            return
        self._glass = chosen
        self._look_values["color"][:, 3] = 1.0
        self._look_values["color"][chosen, 3] = GLASS
        self._looks.write(self._look_values)

    def draw(self) -> None:
        """Draw all instances with the current program, including back faces of open meshes."""
        GL.glBindVertexArray(self._array)
        culled = bool(GL.glIsEnabled(GL.GL_CULL_FACE))
        for k, batch in enumerate(self._batches):
            if culled and batch.mesh.open:
                GL.glDisable(GL.GL_CULL_FACE)
            self._draw_instances(k, batch.first, batch.count)
            if culled and batch.mesh.open:
                GL.glEnable(GL.GL_CULL_FACE)

    def draw_glass(self) -> None:
        """Draw only the glass instances with the current program."""
        GL.glBindVertexArray(self._array)
        firsts = [batch.first for batch in self._batches]
        for instance in self._glass.tolist():
            self._draw_instances(bisect_right(firsts, instance) - 1, instance, 1)

    def _draw_instances(self, batch: int, first: int, count: int) -> None:
        GL.glDrawElementsInstancedBaseVertexBaseInstance(
            GL.GL_TRIANGLES,
            int(self._first[batch + 1] - self._first[batch]),
            GL.GL_UNSIGNED_INT,
            ctypes.c_void_p(int(self._first[batch]) * 4),
            count,
            int(self._base[batch]),
            first,
        )

    def close(self) -> None:
        """Delete all buffers."""
        for buffer in (self._vertices, self._looks, self._indices, self._rows):
            buffer.close()
        GL.glDeleteVertexArrays(1, [self._array])


def _meshes(stage: Stage, quality: Quality) -> list[TriangleMesh]:
    """Return the meshes of all batches, round ones as fine as the quality's number of triangles allows.

    Other meshes, such as visuals, do not change. They count for at most half of the triangles.
    """
    segments = quality.segments
    meshes = [batch.mesh.make(segments) for batch in stage.batches]
    totals = {True: 0, False: 0}
    for mesh, batch in zip(meshes, stage.batches, strict=True):
        totals[batch.mesh.round] += len(mesh.triangles) * batch.count
    room = quality.triangles - min(totals[False], quality.triangles // 2)
    if totals[True] <= room:
        return meshes
    # the triangles of a round mesh grow with the square of its segments
    coarse = max(_LEAST_SEGMENTS, int(segments * (room / totals[True]) ** 0.5)) // 2 * 2
    return [_coarser(b.mesh, m, coarse) for m, b in zip(meshes, stage.batches, strict=True)]


def _coarser(source: MeshSource, mesh: TriangleMesh, segments: int) -> TriangleMesh:
    return source.make(segments) if source.round else mesh
