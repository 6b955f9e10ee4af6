"""Assembly of SDF models: joints between links, merged bodies, fixed bases and sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import unknown_name
from gpusim.importers.inertia import MassProperties, combine, parallel_axis
from gpusim.importers.report import ImportReport, JointInfo
from gpusim.importers.sdf_parts.sdf_bodies import Link, merge, scoped_label
from gpusim.importers.sdf_parts.sdf_frames import Scope
from gpusim.importers.sdf_parts.sdf_joints import (
    JOINT_TYPES,
    SINGLE_AXIS,
    WORLD,
    Axis,
    BodyJoint,
    Gear,
    add_couplings,
    add_joint,
    clean_name,
    describe,
    read_axes,
)
from gpusim.importers.sdf_parts.sdf_views import add_sensor
from gpusim.importers.sdf_parts.sdf_xml import Node
from gpusim.importers.urdf_parts.urdf_bodies import matching
from gpusim.transform import Transform, homogeneous_matrix

AXES_IN_MODEL = (1, 4)
"""Last SDF version (1.4) whose joint axes are in the model's frame by default."""


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint of the file.

    Attributes:
        parent, child: the links that the joint connects, or None for the world.
        pose: pose of the joint frame in the world.
    """

    node: Node
    scope: Scope
    label: str
    parent: Link | None
    child: Link | None
    pose: Transform
    axes: list[Axis]


@dataclass
class Assembly:
    """The links and joints of a file, and the builder that receives them."""

    builder: ModelBuilder
    report: ImportReport
    links: dict[tuple[Scope, str], Link]
    world: Scope
    joints: list[Joint] = field(default_factory=list)
    gears: list[Joint] = field(default_factory=list)
    body_joints: list[BodyJoint] = field(default_factory=list)

    @property
    def single_model(self) -> str | None:
        """Return the path of the model if the file has exactly one model, else None."""
        return next(iter(self.world.models.values())).path() if len(self.world.models) == 1 else None

    def read_joints(self) -> None:
        """Read the joints of all models and of the world.

        Raises:
            ModelError: a joint has an unknown type, link or frame, or two joints have the same name.
        """
        taken: set[str] = set()
        for scope in self.world.all_models():
            for node in scope.node.all("joint"):
                label = scoped_label(scope, node.get("name"), self.single_model)
                if not node.get("name").strip():
                    raise node.error(f"a <joint> of {scope.title} has no name; give it one")
                if label in taken:
                    raise node.error(f"joint {label!r} exists already; rename one")
                taken.add(label)
                joint = self._joint(node, scope, label)
                if joint is not None:
                    (self.gears if node.get("type") == "gearbox" else self.joints).append(joint)

    def _joint(self, node: Node, scope: Scope, label: str) -> Joint | None:
        kind = node.get("type")
        if kind not in JOINT_TYPES:
            raise node.error(f"{node.title} has type {kind!r}; the types are {', '.join(JOINT_TYPES)}")
        ends = [self._end(node, scope, node.words(end), end) for end in ("parent", "child")]
        parent, child = (None if end is None or end.static else end for end in ends)
        if parent is child:
            if parent is None and kind != "fixed":
                self.report.add("info", node.title, "joins parts of the world", "left out")
            elif parent is not None:
                raise node.error(f"{node.title} joins link {parent.label!r} to itself; give two different links")
            return None
        pose = scope.world_pose() * scope.local(node.get("name"), node)
        rotation = pose.matrix().T @ scope.world_pose().matrix()
        old = scope.version <= AXES_IN_MODEL
        axes = read_axes(node, old, lambda name: rotation @ scope.local(name, node).matrix(), self.report)
        return Joint(node, scope, label, parent, child, pose, axes)

    def _end(self, node: Node, scope: Scope, name: str, end: str) -> Link | None:
        if not name:
            raise node.error(f"{node.title} has no <{end}>; add the name of a link")
        if name == "world":
            return None
        key = scope.link(name)
        link = None if key is None else self.links.get(key)
        if link is None:
            known = [other for owner, other in self.links if owner is scope]
            raise node.error(f"{node.title}: {end}: {unknown_name('link', name, known)}")
        return link

    def merge_fixed(self, keep: Sequence[str]) -> None:
        """Merge links connected by fixed joints. Links that match a pattern of ``keep`` are not merged.

        Raises:
            ModelError: a pattern matches no link.
        """
        unmerged = matching(keep, [link.label for link in self.links.values()])
        remaining = []
        for joint in self.joints:
            ends = [end for end in (joint.parent, joint.child) if end is not None]
            if joint.node.get("type") != "fixed" or len(ends) < 2 or self._is_kept(ends, unmerged):
                remaining.append(joint)
            else:
                merge(ends[0], ends[1])
        self.joints = remaining

    @staticmethod
    def _is_kept(ends: list[Link], unmerged: set[str]) -> bool:
        return ends[1].label in unmerged or any(end.mass is None or end.kinematic for end in ends)

    def add_joints(self, fixed_base: bool | None) -> None:
        """Add all joints and couplings to the builder and describe them in the report."""
        body_joints: list[BodyJoint] = []
        for joint in self.joints:
            to_world = joint.parent is None or joint.child is None
            if fixed_base is False and to_world and joint.node.get("type") == "fixed":
                self.report.add(
                    "info", joint.node.title, "fixes its link to the world", "left out because of fixed_base=False"
                )
                continue
            item = self._body_joint(joint)
            if item.parent == item.child:
                self.report.add("info", joint.node.title, "joins links of one body", "left out")
                continue
            body_joints.append(item)
        self._describe_base(body_joints, bool(fixed_base))
        for item in body_joints:
            self.report.joints[item.label] = describe(item, len(self.builder.joints), *self._ends(item), 0.0)
            add_joint(self.builder, item, self.report)
            if item.kind != "fixed":
                self.report.joint_limits[item.label] = self.report.joints[item.label].limits
            self._check_start(item)
        self.body_joints = body_joints
        gears = [gear for joint in self.gears if (gear := self._gear(joint)) is not None]
        add_couplings(self.builder, body_joints, gears, self.report)

    def _check_start(self, item: BodyJoint) -> None:
        info = self.report.joints[item.label]
        if not info.lower <= 0.0 <= info.upper:
            limits = f"starts at 0, outside its limits {info.lower:g} to {info.upper:g}"
            self.report.add("info", f"joint {item.label!r}", limits, "the limit will push it back")

    def _body_joint(self, joint: Joint) -> BodyJoint:
        """Convert a joint of the file to a joint between bodies of the builder."""
        parent, child, axes = joint.parent, joint.child, joint.axes
        if child is None:
            parent, child, axes = None, parent, [axis.reversed() for axis in axes]
            if len(axes) == 2:
                axes = axes[::-1]
        frames = [joint.pose if end is None else end.root.pose.inverse() * joint.pose for end in (parent, child)]
        bodies = [WORLD if end is None else end.body for end in (parent, child)]
        return BodyJoint(joint.node, joint.label, axes, bodies[0], bodies[1], frames[0], frames[1])

    def _gear(self, joint: Joint) -> Gear | None:
        name = joint.node.words("gearbox_reference_body")
        reference = self._end(joint.node, joint.scope, name, "gearbox_reference_body")
        bodies = [WORLD if end is None else end.body for end in (joint.parent, joint.child, reference)]
        axes = np.array([joint.pose.matrix() @ axis.direction for axis in joint.axes])
        return Gear(joint.node, joint.label, bodies[0], bodies[1], bodies[2], axes)

    def _ends(self, item: BodyJoint) -> tuple[str, str]:
        return self.builder.body_label(item.parent), self.builder.body_label(item.child)

    def _describe_base(self, body_joints: list[BodyJoint], fix: bool) -> None:
        """Describe the base in the report."""
        carried = {item.child for item in body_joints}
        by_scope: dict[Scope, list[Link]] = {}
        for link in self.links.values():
            by_scope.setdefault(link.scope, []).append(link)
        models = self.world.models.values()
        links = {m: [link for scope in m.all_models() for link in by_scope.get(scope, [])] for m in models}
        for model, members in sorted(links.items(), key=lambda item: all(link.static for link in item[1])):
            moving = [link for link in members if not link.static]
            first = next((link for link in moving if link.body not in carried), None)
            base = first or next(iter(moving or members), None)
            if not self.report.base_link and base is not None:
                self.report.base_link, self.report.robot_name = base.label, clean_name(model.name)
                bodies = {link.body for link in members}
                at_world = [item for item in body_joints if item.parent == WORLD and item.child in bodies]
                self.report.base_joint = next((item.label for item in at_world if item.kind == "fixed"), None)
                self.report.fixed_base = fix or base.static or bool(at_world)
            if fix and first is not None:
                self._fix(first)
        if self.world.node.get("name"):
            self.report.robot_name = clean_name(self.world.node.get("name"))

    def _fix(self, link: Link) -> None:
        label = f"world_to_{link.label}"
        while any(joint.label == label for joint in self.joints):
            label += "_"
        index = self.builder.add_joint_fixed(WORLD, link.body, parent_xform=link.root.pose, label=label)
        self.report.base_joint = self.report.base_joint or label
        self.report.joints[label] = JointInfo(label, index, "fixed", parent="world", child=link.root.label)

    def add_load_inertias(self) -> None:
        """Compute the load (moved inertia or mass) of each joint with one axis."""
        body_joints = self.body_joints
        carrier: dict[int, BodyJoint] = {}
        for item in body_joints:
            carrier.setdefault(item.child, item)
        subtrees: dict[str, list[int]] = {item.label: [] for item in body_joints}
        for body in range(len(self.builder.bodies)):
            seen: set[int] = set()
            ancestor = body
            while ancestor in carrier and ancestor not in seen:
                seen.add(ancestor)
                subtrees[carrier[ancestor].label].append(body)
                ancestor = carrier[ancestor].parent
        for item in body_joints:
            if item.kind in SINGLE_AXIS:
                load = self._load(item, subtrees[item.label] or [item.child])
                self.report.joints[item.label] = replace(self.report.joints[item.label], load_inertia=load)

    def _load(self, item: BodyJoint, bodies: list[int]) -> float:
        parts = []
        for index in bodies:
            spec = self.builder.bodies[index]
            properties = MassProperties(spec.mass, np.asarray(spec.com), np.asarray(spec.inertia))
            parts.append(properties.moved(homogeneous_matrix(spec.xform)))
        total = combine(parts) if parts else MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
        if item.kind == "prismatic":
            return total.mass
        pose = self.builder.bodies[item.child].xform * item.child_xform
        axis = pose.matrix() @ item.axes[0].direction
        inertia = total.inertia + total.mass * parallel_axis(total.com - pose.position)
        return float(axis @ inertia @ axis)

    def add_sensors(self) -> None:
        """Add a site for each sensor of a link, and a camera for each image sensor."""
        for link in self.links.values():
            for node in link.node.all("sensor"):
                add_sensor(self.builder, link.body, link.frame, node, link.label, self.report)
