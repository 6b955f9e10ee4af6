"""Collision geometry of URDF links -> shapes of the bodies that they became."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from gpusim.errors import ModelError
from gpusim.geometry import Transform
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_bodies import Bodies
from gpusim.importers.urdf_check import numbers
from gpusim.importers.urdf_xml import Document, Element, title
from gpusim.model.builder import ModelBuilder

#: Vertices of a mesh's hull: more make contact slower, not better.
HULL_VERTICES = 64
_SIZES = {"box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "capsule": ("radius", "length")}


@dataclass(frozen=True)
class Collision:
    """One <collision>: its link, kind, sizes (m) or scale, pose (4, 4) in the link's frame, and a mesh's file."""

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

    def _in_packages(self, package: str, rest: str) -> Iterator[Path]:
        listed = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
        shared = [f"{p}/share" for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        for folder in (*self.packages, *map(Path, filter(None, [*listed, *shared])), self.folder, *self.folder.parents):
            yield folder / package / rest
            if folder.name == package:
                yield folder / rest


def read_collisions(document: Document) -> list[Collision]:
    """Every collision of a checked document whose geometry has a volume; what is left out is told in its warnings.

    Raises:
        ModelError: a number is none.
    """
    found = (_collision(document, link, element) for link, element in document.collisions)
    return [collision for collision in found if collision is not None]


def _collision(document: Document, link: Element, element: Element) -> Collision | None:
    geometry = _child(element, "geometry")
    shapes = [s for s in geometry if isinstance(s.tag, str)] if geometry is not None else []
    why = "<geometry> is empty"
    if shapes:
        kind = _local(shapes[0])
        pose = _pose(document, element)
        if kind == "mesh":
            found, why = _mesh(document, link, shapes[0], pose)
        elif kind in _SIZES:
            found, why = _solid(document, link, shapes[0], kind, pose)
        else:
            found, why = None, f"<{kind}> is none of {', '.join((*_SIZES, 'mesh'))}"
        if found is not None:
            return found
    document.warnings.append(f"{title(link)}: a <collision> is left out: {why}")
    return None


def _mesh(document: Document, link: Element, shape: Element, pose: np.ndarray) -> tuple[Collision | None, str]:
    name = shape.get("filename")
    scale = tuple(numbers(document, shape, "scale", 3)) if shape.get("scale") else (1.0, 1.0, 1.0)
    if not name:
        return None, "<mesh> has no filename"
    if 0.0 in scale:
        return None, "the scale of its <mesh> has a zero"
    return Collision(link.get("name"), "mesh", scale, pose, name), ""


def _solid(
    document: Document, link: Element, shape: Element, kind: str, pose: np.ndarray
) -> tuple[Collision | None, str]:
    sizes: list[float] = []
    for name in _SIZES[kind]:
        if shape.get(name) is None:
            raise document.source.error(f'{title(link)}: <{kind}> lacks {name}; add {name}="..." in m', shape)
        sizes += numbers(document, shape, name, 3 if name == "size" else 1)
    if not all(size > 0.0 for size in sizes):
        return None, f"<{kind}> has no volume ({' '.join(f'{s:g}' for s in sizes)} m)"
    return Collision(link.get("name"), kind, tuple(sizes), pose), ""


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _child(element: Element, name: str) -> Element | None:
    return next((child for child in element if isinstance(child.tag, str) and _local(child) == name), None)


def _pose(document: Document, element: Element) -> np.ndarray:
    """<origin> as a matrix; roll, pitch and yaw turn about fixed axes."""
    pose, origin = np.eye(4), _child(element, "origin")
    if origin is None:
        return pose
    if origin.get("xyz"):
        pose[:3, 3] = numbers(document, origin, "xyz", 3)
    if origin.get("rpy"):
        pose[:3, :3] = Rotation.from_euler("xyz", numbers(document, origin, "rpy", 3)).as_matrix()
    return pose


def add_shapes(
    collisions: Sequence[Collision],
    groups: Bodies,
    builder: ModelBuilder,
    bodies: dict[str, int],
    base: np.ndarray,
    search: Search,
    self_collisions: bool,
    report: ImportReport,
) -> None:
    """Add the shapes to ``builder`` and list them in ``report.shapes``.

    Args:
        collisions: what links have.
        groups: which bodies the links became.
        builder, bodies: where the bodies are, and their indices by name.
        base: (4, 4) pose of the root link in the world.
        search: where meshes are looked for.
        self_collisions: let shapes of the robot touch each other.
        report: gets the indices, and a sentence for every mesh that cannot be read.
    """
    for collision in collisions:
        label = _label(builder, collision.link)
        if collision.link == groups.world:
            body, frame = -1, base
        else:
            name = groups.body_of[collision.link]
            body, frame = bodies[name], groups.bodies[name].frames[collision.link]
        xform = Transform.from_matrix(frame @ collision.pose)
        try:
            index = _add(builder, body, collision, xform, label, search)
        except ModelError as error:
            report.warnings.append(f"link {collision.link!r}: a <collision> is left out: {error}")
            continue
        report.shapes.setdefault(collision.link, []).append(index)
    if not self_collisions:
        _keep_apart(builder, report)


def _label(builder: ModelBuilder, link: str) -> str:
    taken = {shape.label for shape in builder.shapes}
    label, number = link, 1
    while label in taken:
        number += 1
        label = f"{link}_{number}"
    return label


def _add(builder: ModelBuilder, body: int, c: Collision, xform: Transform, label: str, search: Search) -> int:
    if c.kind == "box":
        x, y, z = c.sizes
        return builder.add_shape_box(body, (0.5 * x, 0.5 * y, 0.5 * z), xform, label=label)
    if c.kind == "sphere":
        return builder.add_shape_sphere(body, c.sizes[0], xform, label=label)
    if c.kind in ("cylinder", "capsule"):
        add = builder.add_shape_cylinder if c.kind == "cylinder" else builder.add_shape_capsule
        return add(body, c.sizes[0], 0.5 * c.sizes[1], xform, label=label)
    path = search.find(c.mesh)
    if path is None:
        raise ModelError(f"no file {c.mesh!r}; give load_urdf(package_dirs=[...]) the folder of its package")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a hull of fewer vertices is what is asked for
        return builder.add_shape_mesh(body, str(path), c.sizes, xform, label=label, max_vertices=HULL_VERTICES)


def _keep_apart(builder: ModelBuilder, report: ImportReport) -> None:
    """Links overlap at their joints, and often beyond their neighbors."""
    own = [index for indices in report.shapes.values() for index in indices]
    for a, b in combinations(own, 2):
        if builder.shapes[a].body != builder.shapes[b].body:
            builder.exclude_collision_pair(a, b)
