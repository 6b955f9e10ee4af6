"""URDF robots: ``load_urdf`` turns a file into a ModelBuilder and a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from gpusim.errors import ModelError
from gpusim.geometry import Transform
from gpusim.importers.report import ImportReport, one_for_each_fact
from gpusim.importers.urdf_bodies import group_links
from gpusim.importers.urdf_check import check_document
from gpusim.importers.urdf_geometry import Placement, Search
from gpusim.importers.urdf_joints import emit
from gpusim.importers.urdf_shapes import add_shapes, read_collisions
from gpusim.importers.urdf_tree import read_tree
from gpusim.importers.urdf_visuals import add_visuals, read_visuals
from gpusim.importers.urdf_xml import read_document
from gpusim.model.builder import ModelBuilder
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

    A body's frame is its link's frame, a joint's frame is its child link's frame, and all bodies stand where forward
    kinematics puts them with every joint at 0 (followers of ``<mimic>`` at their offset). Bodies and joints are
    labeled as in the file. Shapes come from <collision>, meshes as their convex hulls; a mesh whose file is missing is
    left out with a warning. Sensors and transmissions are not read.

    What links look like comes from <visual>, for the viewer alone: box, cylinder, sphere, capsule, and meshes as
    trimesh reads them (STL, OBJ, DAE, ...; units and axes in a DAE file are not looked at). The color is that of its
    <material>, its own or the one of that name anywhere in the file; else the colors in the mesh's file, of a texture
    the mean; else one that the viewer chooses. All are opaque. Nothing about a visual is an error: one that cannot be
    read is told once in ``report.warnings``, and its link is drawn by its shapes.

    Masses and inertias that no body can have are repaired, with a sentence in ``report.warnings``: a body without mass
    gets one hundredth of the mean mass of the others and the inertia of a sphere of water; so does one whose inertia is
    zero or its round-off, below a millionth of that of a ball of the densest metal. Principal moments that are not
    positive or that break the triangle rule are raised to the nearest possible ones. Slips that other readers pass over
    are passed over too, and told: a repeated <axis> (the first counts), a fourth number of a position, an angle or a
    scale, an XML version that there is not.

    Args:
        path_or_string: a path, or the text itself (a string that starts with "<").
        fixed_base: fix the root link to the world; otherwise it floats. With a fixed base a root link named "world"
            without mass is the world itself.
        gravity: acceleration of free fall in the world frame, m/s2.
        xform: pose of the root link in the world; the world's frame if left out.
        merge_fixed: make links that fixed joints join one body (mass, center of mass and inertia by the parallel axis
            theorem); ``report.merged`` and ``report.link_frames`` say where they are. Otherwise each link is a body
            and each fixed joint a joint.
        collisions: read the shapes; their labels are the links' names, with a number from the second one on.
        self_collisions: let shapes of the robot touch each other, but for those of links that are welded or neighbors
            at a joint, also through links without shapes, such as the two inner links of a hip with three hinges, and
            but for those of links that overlap with all joints at 0 (``report.overlaps``): hulls are thicker than
            meshes, and what a file lays into each other nothing could part.
        visuals: read what links look like; False saves the time for their meshes, and bodies are drawn by their shapes.
        package_dirs: folders in which ``package://name/...`` is looked for, besides those above the file and those of
            ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.

    Returns:
        The builder, to which actuators can be added, and the report.

    Raises:
        ModelError: yourdfpy is not installed, no such file, not XML, or a rule of URDF is broken; one sentence names
            the file, the line, the element, the rule and the mend.
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
    report.warnings = document.warnings + tree.warnings
    search = Search(_folder(path_or_string), [Path(folder) for folder in package_dirs])
    placement = Placement(groups, bodies, _pose(xform))
    add_shapes(found, placement, builder, search, self_collisions, report)
    add_visuals(looks, placement, builder, search, report)
    report.warnings = one_for_each_fact(report.warnings)
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
