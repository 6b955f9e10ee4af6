"""SDF links: poses, masses and conversion to bodies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.compiler.mass import mass_properties
from gpusim.importers.inertia import MASSLESS_FRACTION, MassProperties, combine, inertia_fault, repair_inertia
from gpusim.importers.report import ImportReport
from gpusim.importers.sdf_parts.sdf_frames import Scope
from gpusim.importers.sdf_parts.sdf_joints import WORLD, clean_name
from gpusim.importers.sdf_parts.sdf_xml import Node
from gpusim.transform import Transform, homogeneous_matrix
from gpusim.validate import GREATEST


@dataclass(eq=False)
class Link:
    """A link of the SDF file.

    Attributes:
        node: <link>.
        scope: the model that contains the link.
        label: label in the builder: the names of the enclosing models and the name of the link.
        pose: pose in the world.
        mass: mass properties in the link's frame, or None to compute them from the link's shapes (<inertial
            auto="true">).
        static: True if the link is fixed to the world.
        carrier: the link that this link is merged into, or this link itself.
        body: body index, -1 for a static link.
    """

    node: Node
    scope: Scope
    label: str
    pose: Transform
    mass: MassProperties | None
    static: bool
    carrier: Link = field(init=False, repr=False)
    body: int = WORLD

    def __post_init__(self) -> None:
        self.carrier = self

    @property
    def root(self) -> Link:
        """Return the main link of the body. The frame of the main link is the body's frame."""
        return self if self.carrier is self else self.carrier.root

    @property
    def frame(self) -> Transform:
        """Return the link's pose in the frame of its body, or in the world for a static link."""
        if self.static:
            return self.pose
        return Transform() if self.root is self else self.root.pose.inverse() * self.pose

    @property
    def folder(self) -> Path:
        """Return the folder of the link's file."""
        return self.node.folder or self.scope.folder

    @property
    def kinematic(self) -> bool:
        """Return whether the link is kinematic. Forces do not move a kinematic link."""
        return self.node.flag("kinematic")


def read_links(world: Scope, report: ImportReport) -> dict[tuple[Scope, str], Link]:
    """Return a dict of all links: (model, link name) -> link."""
    models = [scope for scope in world.all_models() if scope.is_model]
    tops = list(world.models.values())
    single_model = tops[0].path() if len(tops) == 1 else None
    links: dict[tuple[Scope, str], Link] = {}
    taken: set[str] = set()
    for scope in models:
        base = scope.world_pose()
        for node in scope.node.all("link"):
            name = node.get("name")
            if not name.strip():
                raise node.error(f"a <link> of {scope.title} has no name; give it one")
            if (scope, name) in links:
                raise node.error(f"link {name!r} exists already in {scope.title}; rename one")
            label = scoped_label(scope, name, single_model)
            if label in taken:
                raise node.error(f"link {label!r} exists twice after dots and spaces became '_'; rename one")
            taken.add(label)
            pose = base * scope.local(name, node)
            mass = _mass_of(node, label, report, scope.static)
            links[scope, name] = Link(node, scope, label, pose, mass, scope.static)
    return links


def scoped_label(scope: Scope, name: str, single_model: str | None) -> str:
    """Return a label: the names of the enclosing models and ``name``. The label omits the path ``single_model``."""
    path = scope.path()
    if single_model is not None and (path == single_model or path.startswith(f"{single_model}::")):
        path = path[len(single_model) :].lstrip(":")
    return clean_name(f"{path}::{name}" if path else name)


def _mass_of(node: Node, label: str, report: ImportReport, static: bool) -> MassProperties | None:
    title, inertial = f"link {label!r}", node.find("inertial")
    if node.find("origin") is not None:
        raise node.error(f"{title} has an <origin>, as in SDF 1.2; convert the file to SDF 1.5 or newer")
    if inertial is None:
        if not static:
            report.add("info", title, "has no <inertial>", "1 kg and 1 kg m2 used instead, as SDF specifies")
        return MassProperties(1.0, np.zeros(3), np.eye(3))
    if inertial.get("auto") in ("true", "1"):
        return None
    mass = inertial.number("mass", 1.0)
    if not 0.0 <= mass < GREATEST:
        raise inertial.error(f"{title}: mass {mass:g} kg must be positive; correct it")
    unit = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = {name: inertial.number(f"inertia/{name}", unit.get(name, 0.0)) for name in names}
    tensor = np.array([[values["".join(("i", *sorted(a + b)))] for b in "xyz"] for a in "xyz"])
    if not np.all(np.abs(tensor) < GREATEST):
        raise inertial.error(f"{title}: its inertia must be finite; correct it")
    properties = MassProperties(mass, np.zeros(3), tensor)
    pose = inertial.find("pose")
    added = inertial.find("fluid_added_mass")
    if added is not None and not static:
        report.add("motion", title, "has <fluid_added_mass>", "left out")
    return properties if pose is None else properties.moved(homogeneous_matrix(pose.pose()))


def merge(parent: Link, child: Link) -> None:
    """Merge the child's body into the parent's body. The parent's body frame does not change."""
    if parent.root is not child.root:
        child.root.carrier = parent.root


def add_bodies(builder: ModelBuilder, links: Iterable[Link], report: ImportReport) -> None:
    """Add a body for every link that moves, with repaired mass properties."""
    groups: dict[Link, list[Link]] = {}
    for link in links:
        if link.static:
            report.merged[link.label] = "world"
        else:
            groups.setdefault(link.root, []).append(link)
        report.link_frames[link.label] = homogeneous_matrix(link.frame)
    totals = {root: _total(root, members) for root, members in groups.items()}
    known = [total.mass for total in totals.values() if total is not None and total.mass > 0.0]
    substitute = MASSLESS_FRACTION * math.fsum(known) / len(known) if known else 1.0
    for root, members in groups.items():
        for link in members:
            if link is not root:
                report.merged[link.label] = root.label
        body = _add_body(builder, root, totals[root], substitute, report)
        for link in members:
            link.body = body


def _total(root: Link, members: Sequence[Link]) -> MassProperties | None:
    parts = []
    for link in members:
        if link.mass is None:
            return None
        parts.append(link.mass if link is root else link.mass.moved(homogeneous_matrix(link.frame)))
    return combine(parts)


def _add_body(
    builder: ModelBuilder, link: Link, total: MassProperties | None, substitute: float, report: ImportReport
) -> int:
    if total is None:
        return builder.add_body(xform=link.pose, label=link.label, kinematic=link.kinematic)
    title, mass, inertia = f"link {link.label!r}", total.mass, total.inertia
    severity = "info" if link.kinematic else "motion"
    if mass == 0.0:
        mass = substitute
        report.added_mass += mass
        report.add(severity, title, "has mass 0, but every body needs a mass", f"{mass:.3g} kg used instead")
    fault = inertia_fault(inertia, mass)
    if fault is not None:
        inertia = repair_inertia(inertia, mass)
        moments = ", ".join(f"{value:.3g}" for value in np.linalg.eigvalsh(inertia))
        report.add(severity, title, f"inertia {fault}", f"principal moments ({moments}) kg m2 used instead")
    report.total_mass += mass
    return builder.add_body(
        mass=mass,
        inertia=inertia,
        com=tuple(total.com),
        xform=link.pose,
        label=link.label,
        kinematic=link.kinematic,
    )


def complete_masses(builder: ModelBuilder, links: Iterable[Link], report: ImportReport) -> None:
    """Compute the mass properties of links with <inertial auto="true"> from the shapes and an optional <mass>."""
    for link in links:
        if link.static or link.root is not link or builder.bodies[link.body].complete:
            continue
        spec, shapes = builder.bodies[link.body], [shape for shape in builder.shapes if shape.body == link.body]
        mass, com, inertia = mass_properties(shapes)
        if mass == 0.0:
            mass, inertia = 1.0, np.eye(3)
            text = 'has <inertial auto="true"> and no shapes'
            report.add("motion", f"link {link.label!r}", text, "1 kg and 1 kg m2 used instead")
        total_mass = link.node.number("inertial/mass", mass)
        factor = total_mass / mass if 0.0 < total_mass < GREATEST else 1.0
        spec.mass, spec.com, spec.inertia = mass * factor, com, inertia * factor
        report.total_mass += spec.mass


def disable_gravity(builder: ModelBuilder, links: Sequence[Link], report: ImportReport) -> None:
    """Disable gravity for links with <gravity> false.

    If only some links of a merged body have no gravity, constant forces compensate the weights of these links.
    """
    gravity = np.asarray(builder.gravity)
    heavy = {link.root for link in links if link.node.flag("gravity", True) and (link.mass is None or link.mass.mass)}
    for link in links:
        if link.static or link.kinematic or link.node.flag("gravity", True):
            continue
        if link.root not in heavy or link.mass is None:
            builder.bodies[link.body].gravity_scale = 0.0
            continue
        title = f"link {link.label!r}"
        point = link.frame.apply(link.mass.com)
        force = tuple(-link.mass.mass * gravity)
        if link.mass.mass > 0.0 and np.any(gravity):
            builder.add_force(link.body, force, point=tuple(point), label=f"{link.label}_no_gravity")
            report.add("info", title, "has no gravity, but its body has", "a constant force cancels its weight")
