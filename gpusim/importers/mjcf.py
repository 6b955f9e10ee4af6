"""MJCF import: ``load_mjcf`` converts a MuJoCo model to a ModelBuilder and a report.

MuJoCo's compiler parses the file.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from gpusim import validate
from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError, unknown_name
from gpusim.importers.arguments import checks_arguments
from gpusim.importers.mesh_shapes import check_meshes
from gpusim.importers.mjcf_parts.mjcf_actuators import add_actuators
from gpusim.importers.mjcf_parts.mjcf_bodies import add_bodies
from gpusim.importers.mjcf_parts.mjcf_constraints import add_equalities
from gpusim.importers.mjcf_parts.mjcf_context import Context, Options, clean_label
from gpusim.importers.mjcf_parts.mjcf_drag import add_drag
from gpusim.importers.mjcf_parts.mjcf_filters import Filters
from gpusim.importers.mjcf_parts.mjcf_joints import add_joints
from gpusim.importers.mjcf_parts.mjcf_losses import report_losses
from gpusim.importers.mjcf_parts.mjcf_poses import add_poses
from gpusim.importers.mjcf_parts.mjcf_sensors import add_sensors
from gpusim.importers.mjcf_parts.mjcf_shapes import add_shapes
from gpusim.importers.mjcf_parts.mjcf_source import Compiled, compile_model, model_name
from gpusim.importers.mjcf_parts.mjcf_tendons import add_gravity_compensation, add_springs, add_tendons
from gpusim.importers.mjcf_parts.mjcf_views import add_cameras, add_headlight, add_lights
from gpusim.importers.mjcf_parts.mjcf_visuals import add_sites, add_visuals
from gpusim.importers.report import ImportReport
from gpusim.transform import Transform
from gpusim.typing import Vector

_LAST_GROUP = 5


@checks_arguments
def load_mjcf(
    source: Any,
    *,
    fixed_base: bool | None = None,
    gravity: Vector | None = None,
    xform: Transform | None = None,
    merge_fixed: bool = True,
    keep: Sequence[str] = (),
    collisions: bool = True,
    self_collisions: bool | None = None,
    visuals: bool = True,
    visual_groups: Sequence[int] = (0, 1, 2),
    meshes: str = "hull",
    actuators: bool = True,
    switchable: Sequence[str] = (),
    asset_dirs: Sequence[str | os.PathLike[str]] = (),
    assets: Mapping[str, bytes] | None = None,
    pose: str | None = None,
    strict: bool = False,
) -> tuple[ModelBuilder, ImportReport]:
    """Read a MuJoCo model from an MJCF file, from MJCF text, or from a compiled model.

    All body and joint frames are the same as in MuJoCo. For hinges and slides, ``joint.<label>.position`` equals
    MuJoCo's qpos. Labels are the file's names, with ``_`` instead of dots and spaces. By default, a body without joints
    becomes part of its parent. Several hinges and slides of a body become one d6 joint. Combinations that a d6 joint
    cannot represent become a chain of joints with light bodies in between.

    ``report.findings`` lists each feature of the file that gpusim omits or changes. ``report.commands`` maps MuJoCo's
    ctrl to commands of the model. ``report.poses`` names the keyframes.

    Args:
        source: path, MJCF text (starts with "<"), ``mujoco.MjSpec``, or ``mujoco.MjModel``.
        fixed_base: True welds the base to the world in its starting pose. With ``fixed_base=False``, the base floats.
            Default: as in the file. The base is the child of the world with the most joints in its subtree.
        gravity: gravitational acceleration in the world frame, m/s2 (default: as in the file).
        xform: pose of the file's world frame in the model's world frame.
        merge_fixed: True merges bodies without joints into their parents. With ``merge_fixed=False``, fixed joints
            connect bodies without joints to their parents.
        keep: names or wildcards of bodies that are never merged, such as "camera*".
        collisions: True imports the geoms that collide.
        self_collisions: True lets all moving bodies collide with each other, except neighbors. With
            ``self_collisions=False``, moving bodies do not collide with each other. By default, contype, conaffinity,
            <exclude> and <pair> in the file define the collisions.
        visuals: True imports the visible geoms and sites.
        visual_groups: groups (0 to 5) of geoms and sites that are visible (default: the groups that MuJoCo shows).
        meshes: how to make collision shapes of meshes: "hull" (one convex hull, as in MuJoCo), or "decompose" (several
            convex hulls, needs coacd).
        actuators: True imports the actuators.
        switchable: names or wildcards of connect and weld constraints that you want to activate or deactivate during
            the simulation. Switchable and inactive constraints become latches. To close a latch:
            ``sim.write("joint.<label>.attached", 1.0, worlds)``.
        asset_dirs: additional folders to search for files.
        assets: file name -> content (bytes). Files in memory take precedence over files on disk.
        pose: name of the keyframe to start in (default: qpos0).
        strict: True raises an error if a finding has severity "motion".

    Returns:
        The builder, which you can extend, and the report.

    Raises:
        ModelError: mujoco is not installed, its compiler rejects the model, or an argument is invalid. With
            ``strict=True``, a finding of severity "motion" is also an error.
        UnknownNameError: no keyframe has the name ``pose``.
    """
    options = _options(
        fixed_base=fixed_base,
        gravity=gravity,
        merge_fixed=merge_fixed,
        keep=keep,
        collisions=collisions,
        self_collisions=self_collisions,
        visuals=visuals,
        visual_groups=visual_groups,
        meshes=meshes,
        actuators=actuators,
        switchable=switchable,
    )
    return _load(source, options, xform, asset_dirs, assets, pose, strict)


def load_mounted_mjcf(
    source: Any,
    *,
    xform: Transform | None = None,
    asset_dirs: Sequence[str | os.PathLike[str]] = (),
    assets: Mapping[str, bytes] | None = None,
    pose: str | None = None,
    strict: bool = False,
    **options: Any,
) -> tuple[ModelBuilder, ImportReport]:
    """Read a model like ``load_mjcf``, but add each fixed base as a body with a fixed joint to the world.

    ``add_builder`` can connect the fixed bases to a parent body.
    """
    return _load(source, _options(mount=True, **options), xform, asset_dirs, assets, pose, strict)


def _options(
    *,
    meshes: str = "hull",
    keep: Sequence[str] = (),
    switchable: Sequence[str] = (),
    visual_groups: Sequence[int] = (0, 1, 2),
    **options: Any,
) -> Options:
    check_meshes(meshes)
    options |= {"keep": _patterns("keep", keep), "switchable": _patterns("switchable", switchable)}
    return Options(meshes=meshes, visual_groups=_groups(visual_groups), **options)


def _groups(groups: Any) -> tuple[int, ...]:
    try:
        numbers = tuple(operator.index(group) for group in groups)
    except TypeError:
        numbers = (-1,)
    if not all(0 <= group <= _LAST_GROUP for group in numbers):
        raise ModelError(f"load_mjcf: visual_groups = {groups!r} are not whole numbers from 0 to 5; give (0, 1, 2)")
    return numbers


def _load(
    source: Any, options: Options, xform: Transform | None, asset_dirs: Any, assets: Any, pose: str | None, strict: bool
) -> tuple[ModelBuilder, ImportReport]:
    validate.transform("load_mjcf", "xform", xform)
    options = replace(options, xform=xform or Transform())
    builder, report = import_model(compile_model(source, assets, asset_dirs), options, pose)
    if strict:
        report.raise_if_not_exact()
    if xform is not None:
        report.displace(xform)
    return move_builder(builder, xform), report


def import_model(
    compiled: Compiled, options: Options, pose: str | None = None, posture: tuple[Any, Any] | None = None
) -> tuple[ModelBuilder, ImportReport]:
    """Convert a compiled MuJoCo model to a builder and a report.

    Args:
        compiled: the model.
        options: arguments of ``load_mjcf``.
        pose: name of the keyframe that defines the initial state.
        posture: initial qpos and qvel, instead of a keyframe.
    """
    context = _context(compiled, options)
    _start(context, pose, posture)
    add_bodies(context)
    add_joints(context)
    add_springs(context)
    add_gravity_compensation(context)
    add_drag(context)
    add_tendons(context)
    add_equalities(context)
    if options.actuators:
        add_actuators(context)
    add_poses(context)
    if options.collisions and not context.is_disabled("CONTACT", "CONSTRAINT"):
        filters = Filters(context)
        add_shapes(context, filters.group_of)
        filters.write()
    if options.visuals:
        add_visuals(context)
    add_sites(context)
    add_sensors(context)
    add_cameras(context)
    add_lights(context)
    add_headlight(context)
    report_losses(context)
    for text in dict.fromkeys(compiled.warnings):
        context.report.add("info", "", f"MuJoCo's compiler warns: {text}")
    context.losses.write(context.report)
    return context.builder, context.report


def move_builder(builder: ModelBuilder, xform: Transform | None) -> ModelBuilder:
    """Move everything in the builder by ``xform``, and return the builder."""
    if xform is None:
        return builder
    moved = ModelBuilder(gravity=builder.gravity)
    moved.add_builder(builder, xform)
    return moved


def _patterns(name: str, patterns: Sequence[str]) -> Sequence[str]:
    if not isinstance(patterns, list | tuple | set) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ModelError(f"load_mjcf: {name} = {patterns!r} is not a list of names; give a list such as ['camera*']")
    return tuple(patterns)


def _context(compiled: Compiled, options: Options) -> Context:
    mj: ModuleType = compiled.mujoco
    gravity = compiled.model.opt.gravity if options.gravity is None else options.gravity
    gravity_off = int(compiled.model.opt.disableflags) & int(mj.mjtDisableBit.mjDSBL_GRAVITY)
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0) if gravity_off and options.gravity is None else gravity)
    name = clean_label(model_name(compiled.model), "model")
    report = ImportReport(compiled.source, name, "world", None, True)
    context = Context(mj, compiled.model, options, builder, report)
    return context


def _start(context: Context, pose: str | None, posture: tuple[Any, Any] | None) -> None:
    """Set the starting posture and compute the kinematics."""
    mj, m = context.mj, context.m
    if pose is not None:
        names = [clean_label(context.name("KEY", k), "pose") for k in range(m.nkey)]
        if pose not in names:
            raise unknown_name("pose", pose, names)
        mj.mj_resetDataKeyframe(m, context.now, names.index(pose))
    if posture is not None:
        context.now.qpos[:], context.now.qvel[:] = posture
    mj.mj_normalizeQuat(m, context.now.qpos)
    mj.mj_kinematics(m, context.at_zero)
    mj.mj_fwdPosition(m, context.now)
    mj.mj_fwdVelocity(m, context.now)
