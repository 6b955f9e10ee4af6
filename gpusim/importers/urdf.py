"""URDF import: ``load_urdf`` converts a file to a ModelBuilder and a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import WORLD
from gpusim.errors import ModelError, unknown_name
from gpusim.importers.arguments import checks_arguments
from gpusim.importers.mesh_search import Search, asset_folder
from gpusim.importers.mesh_shapes import check_meshes
from gpusim.importers.poses import add_poses, label_of
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_forces import add_forces
from gpusim.importers.urdf_parts.urdf_bodies import group_links
from gpusim.importers.urdf_parts.urdf_check import check_document
from gpusim.importers.urdf_parts.urdf_drives import add_drives, read_drives
from gpusim.importers.urdf_parts.urdf_extras import read_extras
from gpusim.importers.urdf_parts.urdf_geometry import Placement
from gpusim.importers.urdf_parts.urdf_joints import add_bodies_and_joints
from gpusim.importers.urdf_parts.urdf_shapes import CollisionRules, add_shapes, read_collisions
from gpusim.importers.urdf_parts.urdf_srdf import Semantics, read_srdf
from gpusim.importers.urdf_parts.urdf_tree import read_tree
from gpusim.importers.urdf_parts.urdf_visuals import add_visuals, read_visuals
from gpusim.importers.urdf_parts.urdf_xacro import expand
from gpusim.importers.urdf_parts.urdf_xml import read_document
from gpusim.input_files import is_xml_text
from gpusim.renamed import checks_old_names
from gpusim.transform import Transform, homogeneous_matrix
from gpusim.typing import Vector


@checks_old_names
@checks_arguments
def load_urdf(
    path_or_string: str | os.PathLike[str],
    *,
    fixed_base: bool | None = None,
    gravity: Vector | None = None,
    xform: Transform | None = None,
    merge_fixed: bool = True,
    keep: Sequence[str] = (),
    collisions: bool = True,
    self_collisions: bool | None = None,
    visuals: bool = True,
    meshes: str = "hull",
    actuators: bool = True,
    asset_dirs: Sequence[str | os.PathLike[str]] = (),
    assets: Mapping[str, bytes] | None = None,
    pose: str | Mapping[str, float] | None = None,
    strict: bool = False,
    srdf: str | os.PathLike[str] | None = None,
    mappings: Mapping[str, str] | None = None,
) -> tuple[ModelBuilder, ImportReport]:
    """Read a robot from a URDF or xacro file, or from URDF text.

    The frame of a body is the frame of its link. The frame of a joint is the frame of its child link. By default,
    joints start at 0 or at the nearest limit. The starting position of a mimic joint is computed from the joint that it
    mimics. Labels are the names in the file. Shapes come from <collision>. By default, collision meshes become convex
    hulls.

    Visuals come from <visual> and only affect the viewer. A visual is a box, cylinder, sphere, capsule, or a mesh that
    trimesh reads (STL, OBJ, DAE, ...). For DAE files, the importer uses the length unit in the file, but ignores the up
    axis. A visual uses the colors in its mesh file. If the mesh file has no colors, the visual uses the color of its
    <material>. The last choice is the viewer's default color. The <material> may be defined anywhere in the file.

    The importer reads these extensions in <gazebo>: friction, self-collision, gravity, springs, colors, sensors, and
    joints that close loops. The importer also reads <contact> of PyBullet, collision filter groups, and transmissions
    with an effort interface. The report lists all other extensions that have an effect.

    The importer repairs impossible masses and inertias, and adds a finding for each repair.

    * A parent body without mass, inertia and collision shapes gets 2e-7 of the mass of its heaviest child.
    * Other bodies without mass get 1 % of the mean mass of the bodies with mass.
    * An inertia that is zero, or below a millionth of the inertia of an osmium ball of the same mass, becomes the
      inertia of a sphere of water.
    * For all other impossible inertias, the importer increases the principal moments to possible values.

    These errors only cause findings: more than three numbers in a vector, an unknown XML version, and XML errors
    without loss of an element. The importer uses only the first <axis> of a joint.

    Args:
        path_or_string: a path, or URDF text (a string that starts with "<"). Xacro files need the extra ``xacro``.
        fixed_base: True (default) fixes the root link to the world. With ``fixed_base=False``, the root link floats.
            With a fixed base, a massless root link named "world" is the world itself.
        gravity: gravitational acceleration in the world frame, m/s2 (default: 0, 0, -9.81).
        xform: pose of the root link in the world (default: the world frame).
        merge_fixed: True merges links connected by fixed joints into one body. Each merged link becomes a site, and
            ``report.merged`` lists the merged links. With ``merge_fixed=False``, all links become bodies, and all fixed
            joints become joints.
        keep: patterns of link names, such as ``["imu*", "camera"]``. Matching links are not merged.
        collisions: True imports the collision shapes. The first shape of a link has the label of the link. The labels
            of the link's further shapes end with a number.
        self_collisions: True enables collisions between the robot's links. Two links never collide if they are welded,
            share a joint, or overlap at the start (``report.overlaps``). Links also never collide if all links between
            them have no shapes, as in a hip with three hinges. By default, only links with <selfCollide> in <gazebo>
            have self-collisions.
        visuals: True imports visuals. With ``visuals=False``, the viewer draws the collision shapes.
        meshes: how to make collision shapes of meshes: "hull" (one convex hull), or "decompose" (several convex
            hulls, needs the package coacd).
        actuators: True adds a joint force for each transmission with an effort interface. ``report.commands`` lists the
            commands.
        asset_dirs: folders to search for ``package://name/...`` and relative names. The importer also searches the
            folders above the file and the folders in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.
        assets: files in memory (name -> content). ``path_or_string`` and ``srdf`` may also name files in memory.
        pose: name of the posture in the SRDF file to start in, or starting positions by joint label (rad or m). A
            floating base starts in the base pose of the posture.
        strict: True raises an error if a finding has severity "motion".
        srdf: path or text of an SRDF file. The group states of the SRDF file become ``report.poses``. Link pairs that
            the SRDF file disables do not collide.
        mappings: xacro argument -> value.

    Returns:
        The builder, which you can extend with actuators, and the report.

    Raises:
        ModelError: yourdfpy or the file is missing, the file is not XML, or the file breaks a URDF rule. The message
            names the file, the line, the element, the rule and the fix.
        UnknownNameError: ``pose`` names an unknown posture or joint, or ``mappings`` names an unknown argument.
    """
    yourdfpy = _import_yourdfpy()
    source = _checked_argument(path_or_string)
    check_meshes(meshes)
    with asset_folder(assets) as folders:
        search = Search(_folder(source), [*folders, *map(Path, asset_dirs)])
        resolved = _resolve_source(source, folders)
        document = read_document(resolved, lambda is_text: expand(resolved, mappings, search, is_text), source)
        check_document(document)
        extras = read_extras(document)
        semantics = read_srdf(_resolve_source(srdf, folders), document, srdf) if srdf is not None else Semantics()
        if isinstance(pose, str):  # accepts the posture's label, too
            pose = next((name for name in semantics.poses if label_of(name) == pose), pose)
        tree = read_tree(document, yourdfpy, _start_positions(pose, semantics))
        drives = read_drives(document, tree)
        groups = group_links(tree, fixed_base=fixed_base is not False, merge_fixed=merge_fixed, keep=keep)
        builder = ModelBuilder() if gravity is None else ModelBuilder(gravity=gravity)
        report = ImportReport(document.source.name, tree.name, tree.root, None, fixed_base is not False)
        report.ignored = document.ignored
        origin = xform or Transform()
        root = semantics.roots.get(pose) if isinstance(pose, str) and not report.fixed_base else None
        base = homogeneous_matrix(origin if root is None else origin * root)
        bodies = add_bodies_and_joints(tree, groups, builder, base, report)
        _add_sites(builder, report)
        shapes = read_collisions(document) if collisions else []
        looks = read_visuals(document) if visuals else []
        add_poses(builder, report, semantics.poses, {name: origin * root for name, root in semantics.roots.items()})
        for text, severity in document.warnings + tree.warnings:
            report.warn(text, severity)
        placement = Placement(groups, bodies, base)
        self_colliding = (
            extras.self_colliding if self_collisions is None else set(tree.links) if self_collisions else set()
        )
        rules = CollisionRules(
            meshes, self_colliding, extras.excluded_pairs | semantics.excluded_pairs, extras.material
        )
        search.packages += [search.folder / name for name in extras.mesh_folders]
        add_shapes(shapes, placement, builder, search, rules, report)
        add_visuals(looks, placement, builder, search, extras.colors, report)
        add_forces(document, tree, groups, builder, extras, report)
        if actuators:
            add_drives(drives, builder, report)
        _report_guesses(search, report)
    if strict:
        report.raise_if_not_exact()
    return builder, report


def _add_sites(builder: ModelBuilder, report: ImportReport) -> None:
    """Add a site for every merged link, such as a tool frame."""
    index = {body.label: k for k, body in enumerate(builder.bodies)} | {"world": WORLD}
    for link, body in report.merged.items():
        if link == "world":  # world frame
            continue
        frame = report.link_frames[link]
        builder.add_site(index[body], Transform.from_matrix(frame), label=link)


def _start_positions(pose: str | Mapping[str, float] | None, semantics: Semantics) -> Mapping[str, float]:
    if pose is None or isinstance(pose, Mapping):
        return pose or {}
    if pose not in semantics.poses:
        raise unknown_name("pose", pose, semantics.poses)
    return semantics.poses[pose]


def _report_guesses(search: Search, report: ImportReport) -> None:
    for name, path in search.guessed.items():
        report.add("info", f"mesh {name!r}", "is not found", f"{path} is used, since its path has the same end")


def _import_yourdfpy() -> ModuleType:
    try:
        import yourdfpy
    except ImportError:
        raise ModelError('reading URDF needs yourdfpy, which is not installed; pip install "gpusim[urdf]"') from None
    module: ModuleType = yourdfpy
    return module


def _checked_argument(path_or_string: object) -> str | os.PathLike[str]:
    if not isinstance(path_or_string, str | os.PathLike):
        raise ModelError(f"load_urdf: {type(path_or_string).__name__} is not a path; give a path or URDF text")
    if isinstance(path_or_string, str) and not path_or_string.strip():
        raise ModelError("load_urdf: the path is empty; give a path or URDF text")
    return path_or_string


def _folder(source: str | os.PathLike[str]) -> Path:
    try:
        return Path.cwd() if is_xml_text(source) else Path(source).resolve().parent
    except (OSError, ValueError):  # for names with a NUL byte, the reader raises an error
        return Path.cwd()


def _resolve_source(source: str | os.PathLike[str], folders: Sequence[Path]) -> str | os.PathLike[str]:
    """Return the URDF text or the path of the URDF file."""
    if is_xml_text(source):
        return source
    inside = [
        folder / source for folder in folders if not Path(source).is_absolute() and os.path.isfile(folder / source)
    ]
    return inside[0] if inside else source
