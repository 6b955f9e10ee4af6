"""Forces on an imported robot: springs at joints, links without gravity, and joints that close loops."""

from __future__ import annotations

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import ImportReport
from gpusim.importers.urdf_bodies import Bodies
from gpusim.importers.urdf_extras import Extras
from gpusim.importers.urdf_tree import Tree


def add_forces(tree: Tree, groups: Bodies, builder: ModelBuilder, extras: Extras, report: ImportReport) -> None:
    """Add the springs and links without gravity of a file's extensions."""
    for joint, (stiffness, rest) in extras.springs.items():
        if joint not in report.joints or tree.joints[joint].kind not in ("revolute", "continuous", "prismatic"):
            report.warn(f"joint {joint!r}: springStiffness needs a joint with one axis; the spring is left out")
            continue
        label = f"{joint}_spring"
        builder.add_torsion_spring(report.joints[joint].index, stiffness, rest_angle=rest, label=label)
    for link in extras.weightless:
        _lift(tree, groups, builder, link, report)
    for element in extras.loops:
        name = element.get("name") or ""
        report.warn(f"joint {name!r} of <gazebo>: it is not read; close the loop with the builder", "motion")


def _lift(tree: Tree, groups: Bodies, builder: ModelBuilder, link: str, report: ImportReport) -> None:
    """Cancel the gravity of a link by a force at its center of mass."""
    mass, gravity = tree.links[link].mass, np.asarray(builder.gravity)
    if mass is None or mass.mass == 0.0 or link in groups.still or not np.any(gravity):
        return
    body = groups.bodies[groups.body_of[link]]
    frame = body.frames[link]
    point = frame[:3, :3] @ mass.com + frame[:3, 3]
    index = next(i for i, spec in enumerate(builder.bodies) if spec.label == body.name)
    builder.add_force(index, tuple(-mass.mass * gravity), point=tuple(point), label=f"{link}_no_gravity")
    report.warn(f"link {link!r}: gravity is off; a constant force cancels its weight")
