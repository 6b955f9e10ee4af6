"""SDF import: ``load_sdf`` converts a file to a ModelBuilder and a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError, unknown_name
from gpusim.importers.arguments import checks_arguments
from gpusim.importers.mesh_search import Search, asset_folder
from gpusim.importers.mesh_shapes import check_meshes
from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_assembly import Assembly
from gpusim.importers.sdf_parts.sdf_bodies import add_bodies, complete_masses, disable_gravity, read_links
from gpusim.importers.sdf_parts.sdf_frames import Scope, file_in, read_scopes
from gpusim.importers.sdf_parts.sdf_shapes import add_collisions, add_ground, add_visuals, exclude_self_collisions
from gpusim.importers.sdf_parts.sdf_unread import report_unread
from gpusim.importers.sdf_parts.sdf_views import add_lights
from gpusim.importers.sdf_parts.sdf_xml import read_sdf
from gpusim.input_files import is_xml_text
from gpusim.transform import Transform
from gpusim.typing import Vector


@checks_arguments
def load_sdf(
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
    pose: str | None = None,
    strict: bool = False,
) -> tuple[ModelBuilder, ImportReport]:
    """Read one or more models, or a world, from an SDF file (Gazebo) or from SDF text.

    The frame of a body is the frame of its link. All joints are at 0 in the starting pose. Labels are the names in the
    file, with the names of the enclosing models as a prefix ("robot::arm"). If the file has only one model, labels have
    no prefix. Links of static models become part of the world. The importer searches for included models in
    ``asset_dirs``, in the folders above the file and in GZ_SIM_RESOURCE_PATH.

    Friction is as in Gazebo, with a default coefficient of 1. The friction of a contact is the minimum friction of the
    two shapes. Two links of a model collide only if both links have <self_collide>. Each sensor becomes a site at the
    sensor's frame, and image sensors also become cameras. Plugins do not run. The report lists all elements of the file
    that the importer omits.

    Args:
        path_or_string: a path, a model's folder, or SDF text (a string that starts with "<").
        fixed_base: True fixes the first link of each floating model to the world. With ``fixed_base=False``, the
            importer omits the file's fixed joints between links and the world. Default: as in the file.
        gravity: gravitational acceleration (m/s2) in the world frame. Default: as in the file, or (0, 0, -9.8).
        xform: pose of the file's world frame in the model's world frame (default: the identity).
        merge_fixed: True merges links connected by fixed joints into one body. ``report.merged`` lists the merged
            links.
        keep: patterns of link names, such as ``["imu*"]``. Matching links are not merged.
        collisions: True imports the collision shapes. The first shape of a link has the link's label. The labels of the
            link's further shapes end with a number.
        self_collisions: True enables collisions between links of a model. Neighbors, and links that overlap at the
            start, never collide. Default: <self_collide> of the file.
        visuals: True imports visuals.
        meshes: how to make collision shapes of meshes: "hull" (one convex hull), or "decompose" (several convex
            hulls, needs the package coacd).
        actuators: has no effect, since SDF has no actuators.
        asset_dirs: folders to search for models, packages and meshes.
        assets: files in memory, as a dict: file name -> content (bytes).
        pose: must be None, since SDF has no named postures.
        strict: True raises an error if a finding has severity "motion".

    Returns:
        The builder, which you can extend, and the report.

    Raises:
        ModelError: the file is missing, is not XML, or breaks a rule of SDF. The message names the file, the line, the
            element and the fix.
        UnknownNameError: ``pose`` is not None.
    """
    check_meshes(meshes)
    if pose is not None:
        raise unknown_name("pose", pose, ())
    with asset_folder(assets) as folders:
        path = _resolve_source(path_or_string, folders)
        root = read_sdf(path, os.fspath(path_or_string))
        folder = Path.cwd() if is_xml_text(path) else Path(path).resolve().parent
        search = Search(folder, [*folders, *map(Path, asset_dirs)])
        report = ImportReport(root.source, "", "", None, bool(fixed_base))
        world = read_scopes(root, folder, search, xform or Transform(), report)
        if not world.models:
            raise root.error("it contains no model; add one <model> with links")
        builder = ModelBuilder(gravity=_gravity(world, gravity))
        report_unread(root, world, report)
        assembly = Assembly(builder, report, read_links(world, report), world)
        assembly.read_joints()
        if merge_fixed:
            assembly.merge_fixed(keep)
        links = list(assembly.links.values())
        add_bodies(builder, links, report)
        assembly.add_joints(fixed_base)
        disable_gravity(builder, links, report)
        assembly.add_sensors()
        add_lights(builder, root, world, links, report)
        if collisions:
            add_collisions(builder, links, search, meshes, report)
            exclude_self_collisions(builder, links, self_collisions, report)
            if world.needs_ground:
                add_ground(builder, xform)
        complete_masses(builder, links, report)
        assembly.add_load_inertias()
        if visuals:
            add_visuals(builder, links, search, report)
        for name, file in search.guessed.items():
            effect = f"{file} is used, since its path has the same end"
            report.add("info", f"file {name!r}", "is not found", effect)
    if strict:
        report.raise_if_not_exact()
    return builder, report


def _resolve_source(source: str | os.PathLike[str], folders: Sequence[Path]) -> str | os.PathLike[str]:
    """Return the SDF text or the path of the SDF file."""
    if not isinstance(source, str | os.PathLike):
        raise ModelError(f"load_sdf: {type(source).__name__} is not a path; give a path or SDF text")
    if is_xml_text(source):
        return source
    if not os.fspath(source).strip():
        raise ModelError("load_sdf: the path is empty; give a path or SDF text")
    for folder in folders:
        if not Path(source).is_absolute() and os.path.isfile(folder / source):
            return folder / source
    return (file_in(Path(source)) or source) if os.path.isdir(source) else source


def _gravity(world: Scope, gravity: Vector | None) -> Vector:
    if gravity is not None:
        return gravity
    return world.node.vector("gravity", (0.0, 0.0, -9.8)) if not world.is_model else (0.0, 0.0, -9.8)
