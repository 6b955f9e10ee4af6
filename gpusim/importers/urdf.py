"""URDF import: ``load_urdf`` turns a file into a ModelBuilder and a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_bodies import group_links
from gpusim.importers.urdf_check import check_document
from gpusim.importers.urdf_geometry import Placement, Search
from gpusim.importers.urdf_joints import emit
from gpusim.importers.urdf_shapes import add_shapes, read_collisions
from gpusim.importers.urdf_tree import read_tree
from gpusim.importers.urdf_visuals import add_visuals, read_visuals
from gpusim.importers.urdf_xml import read_document
from gpusim.transform import Transform
from gpusim.typing import Vector


def load_urdf(
    path_or_string: str | os.PathLike[str],
    *,
    fixed_base: bool = True,
    gravity: Vector = (0.0, 0.0, -9.81),
    xform: Transform | None = None,
    merge_fixed: bool = True,
    collisions: bool = True,
    self_collisions: bool = False,
    visuals: bool = True,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> tuple[ModelBuilder, ImportReport]:
    """Read a robot from a URDF file or from URDF text.

    A body's frame is its link's frame. A joint's frame is its child link's frame. All joints start at 0 (followers of
    ``<mimic>`` at their offset). Labels are the names in the file. Shapes come from <collision>, and meshes become
    convex hulls. A missing mesh file is skipped with a warning. Sensors and transmissions are not read.

    Visuals come from <visual> and only affect the viewer: box, cylinder, sphere, capsule, and meshes that trimesh reads
    (STL, OBJ, DAE, ...). Units and axes in a DAE file are ignored. The color comes from the <material>, or from the
    material with that name anywhere in the file, or from the mesh file (the mean of a texture), or from the viewer. All
    visuals are opaque. A visual never raises an error: ``report.warnings`` lists an unreadable one once, and the viewer
    draws the link's shapes.

    Impossible masses and inertias are repaired, with a sentence in ``report.warnings``:

    * A body without mass gets 1 % of the mean mass of the others and the inertia of a sphere of water.
    * A zero inertia, or one below a millionth of a ball's of the densest metal, becomes that of a sphere of water.
    * Principal moments that are not positive or break the triangle rule are raised to the nearest possible values.

    The importer accepts errors that other readers ignore, with a warning: a repeated <axis> (the first one counts), a
    fourth number in a position, an angle or a scale, and an unknown XML version.

    Args:
        path_or_string: a path, or URDF text (a string that starts with "<").
        fixed_base: fix the root link to the world. Otherwise it floats. With a fixed base, a massless root link named
            "world" is the world itself.
        gravity: gravitational acceleration in the world frame, m/s2.
        xform: pose of the root link in the world. Default: the world frame.
        merge_fixed: merge links at fixed joints into one body (mass, center of mass and inertia by the parallel axis
            theorem). ``report.merged`` and ``report.link_frames`` list them. Otherwise each link is a body and each
            fixed joint a joint.
        collisions: read the shapes. Their labels are the links' names, with a number from the second one on.
        self_collisions: enable collisions between the robot's links, except welded links, neighbors at a joint, and
            neighbors through links without shapes (such as the inner links of a three-hinge hip). Links that overlap
            with all joints at 0 are excluded too (``report.overlaps``), since hulls are thicker than meshes and
            contact could not separate them.
        visuals: read visuals. False skips loading their meshes, and bodies are drawn by their shapes.
        package_dirs: folders to search for ``package://name/...``, in addition to the folders above the file and those
            in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.

    Returns:
        The builder, which you can extend with actuators, and the report.

    Raises:
        ModelError: yourdfpy or the file is missing, the file is not XML, or it breaks a URDF rule. The message names
            the file, the line, the element, the rule and the fix.
    """
    yourdfpy = _import_yourdfpy()
    document = read_document(_checked_argument(path_or_string))
    check_document(document)
    tree = read_tree(document, yourdfpy)
    groups = group_links(tree, fixed_base=fixed_base, merge_fixed=merge_fixed)
    builder = ModelBuilder(gravity=gravity)
    report = ImportReport(
        source=document.source.name,
        robot_name=tree.name,
        base_link=tree.root,
        base_joint=None,
        fixed_base=fixed_base,
        ignored=dict(document.ignored),
    )
    bodies = emit(tree, groups, builder, _pose(xform), report)
    found = read_collisions(document) if collisions else []
    looks = read_visuals(document) if visuals else []
    for text in document.warnings + tree.warnings:
        report.warn(text)
    search = Search(_folder(path_or_string), [Path(folder) for folder in package_dirs])
    placement = Placement(groups, bodies, _pose(xform))
    add_shapes(found, placement, builder, search, self_collisions, report)
    add_visuals(looks, placement, builder, search, report)
    return builder, report


def _import_yourdfpy() -> ModuleType:
    try:
        import yourdfpy
    except ImportError:
        raise ModelError('reading URDF needs yourdfpy, which is not installed; pip install "gpusim[urdf]"') from None
    module: ModuleType = yourdfpy
    return module


def _checked_argument(path_or_string: object) -> str | os.PathLike[str]:
    if not isinstance(path_or_string, str | os.PathLike):
        raise ModelError(f"load_urdf: {type(path_or_string).__name__} is no path and no text; give a path or URDF text")
    if isinstance(path_or_string, str) and not path_or_string.strip():
        raise ModelError("load_urdf: the path is empty; give a path or URDF text")
    return path_or_string


def _folder(path_or_string: str | os.PathLike[str]) -> Path:
    text = isinstance(path_or_string, str) and path_or_string.lstrip("\ufeff \t\r\n").startswith("<")
    return Path.cwd() if text else Path(path_or_string).resolve().parent


def _pose(xform: Transform | None) -> np.ndarray:
    pose = np.eye(4)
    if xform is not None:
        pose[:3, :3] = xform.matrix()
        pose[:3, 3] = xform.position
    return pose
