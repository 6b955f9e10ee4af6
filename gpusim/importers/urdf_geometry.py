"""Geometry of URDF links: what <collision> and <visual> hold, where it is, and where the files of meshes are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from gpusim.errors import ModelError
from gpusim.geometry import Transform
from gpusim.importers.urdf_bodies import Bodies
from gpusim.importers.urdf_check import numbers
from gpusim.importers.urdf_xml import Document, Element, title
from gpusim.model.specs import WORLD, ShapeSpec, VisualSpec

_SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "capsule": ("radius", "length")}


@dataclass(frozen=True)
class Geometry:
    """What a <collision> or <visual> holds.

    Attributes:
        link: its name.
        kind: "box", "cylinder", "sphere", "capsule" or "mesh".
        sizes: m, as in the file; of a mesh its scale.
        pose: (4, 4) in the link's frame.
        mesh: name of a mesh's file, as it stands.
    """

    link: str
    kind: str
    sizes: tuple[float, ...]
    pose: np.ndarray
    mesh: str = ""


@dataclass
class Search:
    """Where the files of meshes are looked for.

    Attributes:
        folder: of the URDF file; relative names start there, and packages are looked for in it and above it.
        packages: folders that hold packages, or are packages.
    """

    folder: Path
    packages: list[Path] = field(default_factory=list)

    def find(self, name: str) -> Path | None:
        """The file of a mesh's name (``package://name/...``, ``file://...``, a path), or None."""
        scheme, _, rest = name.partition("://") if "://" in name else ("", "", name)
        if scheme in ("package", "model"):
            places = self._in_packages(*(rest.split("/", 1) if "/" in rest else ("", rest)))
        else:
            places = iter([self.folder / rest])
        return next((path for path in places if path.is_file()), None)

    def need(self, name: str) -> str:
        """The path of a mesh's file.

        Raises:
            ModelError: there is none; says how to name its package.
        """
        path = self.find(name)
        if path is None:
            raise ModelError(f"no file {name!r}; give load_urdf(package_dirs=[...]) the folder of its package")
        return str(path)

    def _in_packages(self, package: str, rest: str) -> Iterator[Path]:
        listed = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
        shared = [f"{p}/share" for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        for folder in (*self.packages, *map(Path, filter(None, [*listed, *shared])), self.folder, *self.folder.parents):
            yield folder / package / rest
            if folder.name == package:
                yield folder / rest


class NoGeometryError(Exception):
    """There is nothing to be made of an element; says why."""


def read_geometry(document: Document, link: Element, element: Element) -> Geometry:
    """The geometry of a <collision> or <visual> of a checked document.

    Raises:
        NoGeometryError: it is of no known kind, or has no volume.
        ModelError: a number is none.
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


def local_name(element: Element) -> str:
    """A tag without its namespace."""
    return str(element.tag).rpartition("}")[2]


def child(element: Element, name: str) -> Element | None:
    """The first child of that name."""
    return next((c for c in element if isinstance(c.tag, str) and local_name(c) == name), None)


def _pose(document: Document, link: Element, element: Element) -> np.ndarray:
    """<origin> as a matrix; roll, pitch and yaw turn about fixed axes."""
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
    """Where links are: which bodies they became, the bodies' indices by name, and the root link in the world (4, 4)."""

    groups: Bodies
    bodies: dict[str, int]
    base: np.ndarray

    def of(self, geometry: Geometry) -> tuple[int, Transform]:
        """The body that carries a geometry, and its frame in that of the body."""
        link = geometry.link
        if link == self.groups.world:
            return WORLD, Transform.from_matrix(self.base @ geometry.pose)
        name = self.groups.body_of[link]
        return self.bodies[name], Transform.from_matrix(self.groups.bodies[name].frames[link] @ geometry.pose)


class FreeLabels:
    """Labels for the shapes or visuals of links: the link's name, with a number from the second one on."""

    def __init__(self, taken: Sequence[ShapeSpec | VisualSpec]) -> None:
        self._taken, self._seen, self._labels = taken, 0, set[str]()
        self._numbers: dict[str, int] = {}

    def next(self, link: str) -> str:
        """One that nothing has; the same again until something has it."""
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
    """What ``add_shape_<kind>`` takes for it, but for meshes: halves of edges and lengths."""
    if geometry.kind == "box":
        x, y, z = geometry.sizes
        return ((0.5 * x, 0.5 * y, 0.5 * z),)
    if geometry.kind == "sphere":
        return geometry.sizes
    radius, length = geometry.sizes
    return (radius, 0.5 * length)
