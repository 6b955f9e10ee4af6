"""USD import: ``load_usd`` converts a file with USD physics to a ModelBuilder and a report."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError, unknown_name
from gpusim.importers.arguments import checks_arguments
from gpusim.importers.mesh_search import Search
from gpusim.importers.report import ImportReport, JointInfo, JointLimits
from gpusim.importers.usd_parts.usd_actuators import Actuators, Passive, add_damping, add_mimics, read_passive
from gpusim.importers.usd_parts.usd_bodies import UsdBody, host_of, merge_fixed, read_bodies
from gpusim.importers.usd_parts.usd_extras import report_unread
from gpusim.importers.usd_parts.usd_joints import WORLD, Dof, UsdJoint, coordinate_name, coordinates, read_joints
from gpusim.importers.usd_parts.usd_shapes import add_shapes, filter_pairs, measure, read_colliders
from gpusim.importers.usd_parts.usd_stage import DEGREE, UsdStage, import_pxr, open_stage, usd_warnings
from gpusim.importers.usd_parts.usd_tree import (
    Tree,
    carried_masses,
    connect_hosts,
    free_bases,
    load_of,
    satisfy_joints,
    set_base,
    set_rates,
    spanning_tree,
)
from gpusim.importers.usd_parts.usd_views import add_cameras, add_lights, body_frame
from gpusim.importers.usd_parts.usd_visuals import add_visuals
from gpusim.transform import Transform, homogeneous_matrix
from gpusim.typing import Vector

MESHES = ("hull", "decompose")


@checks_arguments
def load_usd(
    path: str | os.PathLike[str],
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
    """Read a USD file with USD physics (UsdPhysics). The physics parser of usd-core reads the file.

    The model has SI units and z up. The importer converts lengths, masses and angles, and rotates files with y up.
    Labels in the model are the names of the prims. Joint coordinates are 0 if the joint frames on both bodies coincide.
    If the pose of a body contradicts its joints, the importer uses the pose from the joints and warns. Drives become
    servos (``add_tracking_servo``). ``report.commands`` maps ``<joint's path>:<axis>`` to the command of the servo.

    Args:
        path: a .usd, .usda, .usdc or .usdz file, or text that starts with "#usda".
        fixed_base: True fixes the root body of every kinematic tree to the world. With ``fixed_base=False``, all root
            bodies float. Default: as in the file.
        gravity: gravitational acceleration (m/s2) in the world frame. Default: as in the file, or 9.81 downward.
        xform: pose of the file's world frame in the model's world frame.
        merge_fixed: True merges bodies connected by fixed joints into one body. ``report.merged`` lists the merged
            bodies.
        keep: names, paths or patterns (such as ``"camera*"``) of bodies that are not merged.
        collisions: True imports the colliders.
        self_collisions: True lets the links of an articulation collide with each other. Default: as in the file
            (``physxArticulation:enabledSelfCollisions``, ``newton:selfCollisionEnabled``).
        visuals: True imports the visible prims of purpose "default" and "render", with colors, textures and normals.
        meshes: how to make collision shapes of meshes: "hull" (one convex hull), or "decompose" (several convex
            hulls, needs coacd).
        actuators: True imports drives and actuators.
        asset_dirs: folders to search for references and payloads.
        assets: files in memory (relative name -> content).
        pose: must be None, since USD has no named postures.
        strict: True raises an error if a finding has severity "motion".

    Returns:
        The builder, which you can extend, and the report.

    Raises:
        ModelError: usd-core or the file is missing, or the file cannot be read or has no physics. With ``strict=True``,
            a finding of severity "motion" is also an error.
        UnknownNameError: ``pose`` is not None.
    """
    import_pxr()
    if meshes not in MESHES:
        raise ModelError(f"load_usd: meshes = {meshes!r} is unknown; give one of {', '.join(MESHES)}")
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise ModelError(f"load_usd: {path!r} is not a path; give the path of a USD file")
    if pose is not None:
        raise unknown_name("pose", pose, ())
    text = str(path).lstrip().startswith("#usda")
    report = ImportReport("USD text" if text else Path(path).name, "", "", None, False)
    with usd_warnings(report):
        stage = UsdStage(open_stage(path, asset_dirs, assets, report), xform, report)
        stage.assets = assets or {}
        stage.search = Search(Path() if text else Path(path).parent, [Path(folder) for folder in asset_dirs])
        builder = ModelBuilder(gravity=stage.gravity() if gravity is None else gravity)
        _Import(stage, builder, report).run(
            fixed_base, merge_fixed, keep, collisions, self_collisions, visuals, meshes, actuators
        )
    if strict:
        report.raise_if_not_exact()
    return builder, report


class _Import:
    """State of one import: the stage, the builder and the report."""

    def __init__(self, stage: UsdStage, builder: ModelBuilder, report: ImportReport) -> None:
        self.stage, self.builder, self.report = stage, builder, report
        self.passive: dict[int, Passive] = {}
        self.indices: dict[int, int] = {}
        self.tree = Tree()

    def run(
        self,
        fixed_base: bool | None,
        merge: bool,
        keep: Sequence[str],
        collisions: bool,
        self_collisions: bool | None,
        visuals: bool,
        meshes: str,
        actuators: bool,
    ) -> None:
        """Read the file into the builder."""
        stage, report = self.stage, self.report
        colliders = read_colliders(stage, meshes)
        bodies = read_bodies(stage, lambda path: measure(colliders[path]) if path in colliders else None)
        if not bodies and not colliders:
            raise ModelError(f"{report.source}: has no rigid body and no collider; apply PhysicsRigidBodyAPI to a prim")
        joints = self._merge_and_pose(bodies, merge, keep, fixed_base)
        self._add_bodies(bodies)
        self._add_joints(bodies, joints)
        add_damping(stage, self.builder, bodies, joints)
        if actuators:
            carried = carried_masses(bodies, self.tree)
            load = lambda joint, axis: load_of(bodies, carried, joint, axis)  # noqa: E731
            Actuators(stage, self.builder, joints, self.indices, self.passive, load).add()
        if collisions:
            add_shapes(stage, self.builder, bodies, colliders)
            filter_pairs(stage, self.builder, bodies, colliders, joints, self_collisions)
        if visuals:
            add_visuals(stage, self.builder, bodies, colliders if collisions else {})
        self._add_sites(bodies)
        add_cameras(stage, self.builder, bodies)
        add_lights(stage, self.builder, bodies)
        self._describe(bodies, joints)
        add_mimics(stage, self.builder, joints, self.indices)
        report_unread(stage)

    def _merge_and_pose(
        self, bodies: dict[str, UsdBody], merge: bool, keep: Sequence[str], fixed_base: bool | None
    ) -> list[UsdJoint]:
        """Merge bodies, set bases and poses, and return the joints between the resulting bodies."""
        stage = self.stage
        joints = connect_hosts(bodies, merge_fixed(bodies, read_joints(stage, set(bodies)), keep, merge))
        roots = [str(p) for path, item in stage.of("Articulation") for p in (path, *item.rootPrims) if str(p) in bodies]
        joints = set_base(bodies, joints, spanning_tree(bodies, joints, roots), fixed_base)
        joints += free_bases(bodies, joints, spanning_tree(bodies, joints, roots))
        self.tree = spanning_tree(bodies, joints, roots)
        satisfy_joints(bodies, joints, self.tree, self.report)
        set_rates(bodies, self.tree)
        return joints

    def _add_bodies(self, bodies: dict[str, UsdBody]) -> None:
        for body in bodies.values():
            if body.host == body.path:
                body.index = self.builder.add_body(
                    mass=body.mass.mass,
                    inertia=body.mass.inertia,
                    com=tuple(body.mass.com),
                    xform=body.pose,
                    label=body.label,
                    linear_velocity=tuple(body.linear),
                    angular_velocity=tuple(body.angular),
                    kinematic=body.kinematic,
                    gravity_scale=body.gravity_scale,
                )

    def _add_joints(self, bodies: dict[str, UsdBody], joints: list[UsdJoint]) -> None:
        for joint in joints:
            for dof in joint.dofs:
                self.passive[id(dof)] = read_passive(self.stage, joint, dof)
            passive = [self.passive[id(dof)] for dof in joint.dofs]
            if joint.kind in _FREE_ROTATION:
                passive = [read_passive(self.stage, joint, Dof("angular", np.zeros(3), False, DEGREE, path=joint.path))]
            self.indices[id(joint)] = _add_joint(self.builder, bodies, joint, passive)
            if joint.kind in _FREE_ROTATION and passive[0].stiffness > 0.0:
                parent, child = (-1 if path == WORLD else bodies[path].index for path in joint.bodies)
                springs = (*3 * (0.0,), *3 * (passive[0].stiffness,))
                name = self.stage.label("joint", f"{joint.label}_spring")
                self.builder.add_bushing(parent, child, *joint.frames, stiffness=springs, label=name)
            for axis, dof in enumerate(joint.dofs):
                spring = self.passive[id(dof)]
                if spring.stiffness > 0.0:
                    label = self.stage.label("actuator", f"{joint.label}_spring" + (f"{axis}" if axis else ""))
                    self.builder.add_torsion_spring(
                        self.indices[id(joint)], spring.stiffness, 0.0, spring.rest_position, axis, label
                    )

    def _add_sites(self, bodies: dict[str, UsdBody]) -> None:
        for prim in self.stage.prims():
            if "MjcSiteAPI" in self.stage.schemas(prim):
                path = str(prim.GetPath())
                index, pose = body_frame(self.stage, bodies, path)
                self.builder.add_site(index, pose, self.stage.label("site", path))

    def _describe(self, bodies: dict[str, UsdBody], joints: list[UsdJoint]) -> None:
        report, tree = self.report, self.tree
        hosts = [body for body in bodies.values() if body.host == body.path]
        report.total_mass = math.fsum(body.mass.mass for body in hosts if not body.kinematic)
        default = self.stage.stage.GetDefaultPrim()
        report.robot_name = default.GetDisplayName() or default.GetName() if default else Path(report.source).stem
        for body in bodies.values():
            report.link_frames[body.label] = homogeneous_matrix(body.offset)
            if body.host != body.path:
                report.merged[body.label] = host_of(bodies, body).label
        if tree.roots:
            root = max(tree.roots, key=lambda path: tree.roots[path])
            base = tree.carrier.get(root)
            report.base_link = bodies[root].label
            report.fixed_base = base is not None and base.kind != "free"
            report.base_joint = base.label if base is not None and base.kind in ("fixed", "latch", "free") else None
            for joint in joints:
                if base is None and joint.kind == "free" and root in joint.bodies:
                    report.base_joint = joint.label
        carried = carried_masses(bodies, tree)
        for joint in joints:
            load = lambda axis, of=joint: load_of(bodies, carried, of, axis) if of.dofs else 0.0  # noqa: E731
            self._describe_joint(bodies, joint, load)

    def _describe_joint(self, bodies: dict[str, UsdBody], joint: UsdJoint, load: Callable[[int], float]) -> None:
        names = ["world" if path == WORLD else bodies[path].label for path in joint.bodies]
        kind = {"free": "floating", "latch": "fixed"}.get(joint.kind, joint.kind)
        info = JointInfo(joint.label, self.indices[id(joint)], kind, names[0], names[1], load_inertia=load(0))
        if not joint.dofs:
            self.report.joints[joint.label] = info
            return
        first, second = (Transform() if path == WORLD else bodies[path].pose for path in joint.bodies)
        start = coordinates(joint, (first * joint.frames[0]).inverse() * second * joint.frames[1])
        for axis, (dof, position) in enumerate(zip(joint.dofs, start, strict=True)):
            passive = self.passive[id(dof)]
            limits = JointLimits(effort=min(-passive.lower, passive.upper))
            name = joint.label if joint.kind != "d6" else coordinate_name(joint, dof)
            if not dof.lower - 1e-6 <= position <= dof.upper + 1e-6:  # the file has single precision
                what = f"starts at {position:g}, outside its limits {dof.lower:g} to {dof.upper:g}"
                self.report.add("info", f"joint '{name}'", what, "the limit will push it back")
            self.report.joint_limits[name] = limits
            self.report.joints[name] = replace(
                info,
                kind="prismatic" if dof.linear else "revolute",
                lower=dof.lower,
                upper=dof.upper,
                limits=limits,
                damping=passive.damping,
                friction=passive.friction,
                initial_position=position,
                load_inertia=load(axis),
                axis=axis,
            )


_FREE_ROTATION = frozenset({"ball"})


def _add_joint(builder: ModelBuilder, bodies: dict[str, UsdBody], joint: UsdJoint, passive: list[Passive]) -> int:
    parent, child = (-1 if path == WORLD else bodies[path].index for path in joint.bodies)
    ends = (parent, child, *joint.frames)
    if joint.kind == "latch":
        force, torque = joint.breaks
        return builder.add_latch(*ends, attached=True, break_force=force, break_torque=torque, label=joint.label)
    add = getattr(builder, f"add_joint_{joint.kind}")
    if joint.kind in _FREE_ROTATION:
        properties = passive[0]
        laws: dict[str, Any] = {
            "damping": properties.damping,
            "friction": properties.friction,
            "armature": properties.armature,
        }
        if joint.cone is not None:
            laws |= {"cone_limit": joint.cone[0], "cone_axis": joint.cone[1]}
        return int(add(*ends, label=joint.label, **laws))
    if joint.kind in ("fixed", "free"):
        index: int = add(*ends, label=joint.label)
        return index
    if joint.kind == "distance":
        lower, upper = joint.distances
        return builder.add_joint_distance(*ends, min_distance=lower, max_distance=upper, label=joint.label)
    values: dict[str, Any] = {
        "limit_lower": [dof.lower for dof in joint.dofs],
        "limit_upper": [dof.upper for dof in joint.dofs],
        "damping": [properties.damping for properties in passive],
        "friction": [properties.friction for properties in passive],
        "armature": [properties.armature for properties in passive],
    }
    if joint.kind == "d6":
        linear = [tuple(dof.axis) for dof in joint.dofs if dof.linear]
        angular = [tuple(dof.axis) for dof in joint.dofs if not dof.linear]
        return builder.add_joint_d6(*ends, linear_axes=linear, angular_axes=angular, label=joint.label, **values)
    index = add(*ends, axis=tuple(joint.dofs[0].axis), label=joint.label, **{k: v[0] for k, v in values.items()})
    return index
