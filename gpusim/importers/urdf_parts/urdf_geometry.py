"""Geometry of URDF <collision> and <visual> elements, and their poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from gpusim.description.specs import WORLD, ShapeSpec, VisualSpec
from gpusim.importers.urdf_parts.urdf_bodies import Bodies
from gpusim.importers.urdf_parts.urdf_check import numbers
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, local_name, title
from gpusim.transform import Transform

_SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "capsule": ("radius", "length")}


@dataclass(frozen=True)
class Geometry:
    """Geometry of a <collision> or <visual>.

    Attributes:
        link: name of the link.
        kind: one of "box", "cylinder", "sphere", "capsule" and "mesh".
        sizes: sizes (m) in the file, or scale factors of a mesh.
        pose: pose (4, 4) in the link's frame.
        mesh: file name of the mesh, as in the URDF.
    """

    link: str
    kind: str
    sizes: tuple[float, ...]
    pose: np.ndarray
    mesh: str = ""


class NoGeometryError(Exception):
    """Error for a <collision> or <visual> without usable geometry. The message gives the reason."""


def read_geometry(document: Document, link: Element, element: Element) -> Geometry:
    """Return the geometry of a <collision> or <visual> of a checked document.

    Raises:
        NoGeometryError: the geometry is missing, has an unknown kind, or has no volume.
        ModelError: a number is invalid or missing.
    """
    geometry = child(element, "geometry")
    shapes = [s for s in geometry if isinstance(s.tag, str)] if geometry is not None else []
    if not shapes:
        raise NoGeometryError("<geometry> is empty")
    kind = local_name(shapes[0])
    pose = _pose(document, link, element)
    if kind == "mesh":
        return _mesh(document, link, shapes[0], pose)
    if kind in _SIZES:
        return _solid(document, link, shapes[0], kind, pose)
    raise NoGeometryError(f"<{kind}> is none of {', '.join((*_SIZES, 'mesh'))}")


def _mesh(document: Document, link: Element, shape: Element, pose: np.ndarray) -> Geometry:
    name = shape.get("filename")
    scale = tuple(numbers(document, shape, "scale", 3, owner=link)) if shape.get("scale") else (1.0, 1.0, 1.0)
    if not name:
        raise NoGeometryError("<mesh> has no filename")
    if 0.0 in scale:
        raise NoGeometryError("the scale of its <mesh> has a zero")
    return Geometry(link.get("name"), "mesh", scale, pose, name)


def _solid(document: Document, link: Element, shape: Element, kind: str, pose: np.ndarray) -> Geometry:
    sizes: list[float] = []
    for name in _SIZES[kind]:
        if shape.get(name) is None:
            raise document.source.error(f'{title(link)}: <{kind}> lacks {name}; add {name}="..." in m', shape)
        sizes += numbers(document, shape, name, 3 if name == "size" else 1, owner=link)
    if not all(size > 0.0 for size in sizes):
        raise NoGeometryError(f"<{kind}> has no volume ({' '.join(f'{s:g}' for s in sizes)} m)")
    return Geometry(link.get("name"), kind, tuple(sizes), pose)


def child(element: Element, name: str) -> Element | None:
    """Return the first child element called ``name``, or None."""
    return next((c for c in element if isinstance(c.tag, str) and local_name(c) == name), None)


def _pose(document: Document, link: Element, element: Element) -> np.ndarray:
    """Return the pose in <origin> as a matrix (4, 4)."""
    pose, origin = np.eye(4), child(element, "origin")
    if origin is None:
        return pose
    if origin.get("xyz"):
        pose[:3, 3] = numbers(document, origin, "xyz", 3, owner=link)
    if origin.get("rpy"):
        pose[:3, :3] = Rotation.from_euler("xyz", numbers(document, origin, "rpy", 3, owner=link)).as_matrix()
    return pose


@dataclass(frozen=True)
class Placement:
    """Mapping from links to bodies and poses in the builder.

    Attributes:
        groups: the links, grouped by body.
        bodies: body name -> index in the builder.
        base: pose (4, 4) of the root link in the world.
    """

    groups: Bodies
    bodies: dict[str, int]
    base: np.ndarray

    def of(self, geometry: Geometry) -> tuple[int, Transform]:
        """Return the body index of a geometry, and the geometry's pose in the body frame."""
        link = geometry.link
        if link == self.groups.world:
            return WORLD, Transform.from_matrix(self.base @ geometry.pose)
        name = self.groups.body_of[link]
        return self.bodies[name], Transform.from_matrix(self.groups.bodies[name].frames[link] @ geometry.pose)


class UniqueLabels:
    """Generator of unique labels for a link's shapes or visuals: "arm", "arm_2", "arm_3" for a link "arm"."""

    def __init__(self, taken: Sequence[ShapeSpec | VisualSpec]) -> None:
        self._taken, self._seen, self._labels = taken, 0, set[str]()
        self._numbers: dict[str, int] = {}

    def next(self, link: str) -> str:
        """Return an unused label."""
        self._labels.update(spec.label for spec in self._taken[self._seen :])
        self._seen = len(self._taken)
        number = self._numbers.get(link, 1)
        label = link if number == 1 else f"{link}_{number}"
        while label in self._labels:
            number += 1
            label = f"{link}_{number}"
        self._numbers[link] = number
        return label


def builder_sizes(geometry: Geometry) -> tuple[Any, ...]:
    """Return the size arguments of ``add_shape_<kind>``, such as half edges. Meshes are not supported."""
    if geometry.kind == "box":
        x, y, z = geometry.sizes
        return ((0.5 * x, 0.5 * y, 0.5 * z),)
    if geometry.kind == "sphere":
        return geometry.sizes
    radius, length = geometry.sizes
    return (radius, 0.5 * length)
