"""MJCF export: ``to_mjcf`` writes a model as a file for MuJoCo."""

from __future__ import annotations

import os
from typing import Any
from xml.etree import ElementTree

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import WORLD
from gpusim.errors import ModelError
from gpusim.exporters.mjcf_actuators import add_actuators
from gpusim.exporters.mjcf_document import Document, pose
from gpusim.exporters.mjcf_joints import (
    CARRIERS,
    FREE,
    SINGLE_COORDINATES,
    add_closures,
    add_coupling,
    add_tree_joint,
    has_closure,
    start_pose,
)
from gpusim.exporters.mjcf_shapes import add_geoms
from gpusim.exporters.report import ExportReport, check_model_name
from gpusim.importers.inertia import repair_inertia
from gpusim.model.model import Model
from gpusim.output_files import atomic_file, check_output_file
from gpusim.transform import Transform

TIME_STEP = 1e-3
"""Time step in the file, s. With MuJoCo's default of 2 ms, some stiff kinematic loops are unstable."""


def to_mjcf(
    model: ModelBuilder | Model, path: str | os.PathLike[str] | None = None, *, name: str = "gpusim"
) -> tuple[str, ExportReport]:
    """Convert a model to MJCF, the format of MuJoCo. The file contains the meshes, and needs no other files.

    For each hinge and slide, qpos in MuJoCo equals ``joint.<label>.position`` in gpusim. The first keyframe, "start",
    has the initial positions, velocities and commands of the model.

    Bodies of a kinematic tree become nested bodies. A joint that closes a loop becomes an equality constraint. A rope
    or a spring between two points becomes a tendon. In MuJoCo, friction, contacts and equality constraints are soft.
    The file omits everything that MJCF cannot represent, such as hydraulics, brakes, tires and block diagrams. The
    report lists all omissions.

    Args:
        model: a builder, or a finalized model. If worlds have different parameters, the file has the parameters of
            world 0.
        path: an .xml file to write, or None.
        name: name of the model in the file.

    Returns:
        The MJCF text, and the report.

    Raises:
        ModelError: the model is invalid, the name is empty, or the path is not writable.
    """
    if not isinstance(model, ModelBuilder | Model):
        raise ModelError(f"to_mjcf: {type(model).__name__} is not a model; give a ModelBuilder or a Model")
    check_model_name("to_mjcf", name)
    file = None if path is None else check_output_file(path, (".xml",), "to_mjcf")
    compiled = model.finalize() if isinstance(model, ModelBuilder) else model
    report = ExportReport("MJCF", "" if file is None else str(file))
    doc = Document(compiled, report)
    _add_head(doc, name)
    closing = _add_bodies(doc)
    add_closures(doc, closing)
    for coupling in compiled.couplings:
        add_coupling(doc, coupling)
    add_geoms(doc)
    for site in compiled.sites:
        doc.site(site.body, site.xform, site.label)
    add_actuators(doc)
    _add_start(doc)
    _report_omissions(doc)
    for name in ("tendon", "equality", "actuator", "contact", "asset"):  # sections without content
        for empty in [e for e in doc.root.findall(name) if not len(e)]:
            doc.root.remove(empty)
    ElementTree.indent(doc.root)
    content = ElementTree.tostring(doc.root, encoding="unicode") + "\n"
    if file is not None:
        with atomic_file(file) as stream:
            stream.write(content.encode())
    return content, report


def _add_head(doc: Document, name: str) -> None:
    doc.root.set("model", name)
    doc.add(doc.root, "compiler", angle="radian", autolimits="true")
    gravity = np.ravel(doc.model.parameters["gravity"])[:3]
    doc.add(doc.root, "option", timestep=TIME_STEP, integrator="implicitfast", gravity=gravity)
    doc.section("asset")
    doc.bodies[WORLD] = doc.section("worldbody")


def _add_bodies(doc: Document) -> list[int]:
    """Add all bodies with their joints, and return the indices of the joints that close loops."""
    model = doc.model
    carrier: dict[int, tuple[int, int]] = {}
    closing = []
    # Joints that no equality can replace come first.
    for index, joint in sorted(enumerate(model.joints), key=lambda pair: has_closure(pair[1])):
        if joint.kind in CARRIERS and joint.child not in carrier and _can_nest(carrier, joint.child, joint.parent):
            carrier[joint.child] = index, joint.parent
        else:
            closing.append(index)
    closing.sort()
    children: dict[int, list[int]] = {}
    for body in range(len(model.bodies)):
        children.setdefault(carrier[body][1] if body in carrier else WORLD, []).append(body)
    # Depth first, because qpos must be in the order of the file.
    stack = list(reversed(children.get(WORLD, [])))
    while stack:
        body = stack.pop()
        _add_body(doc, body, carrier.get(body))
        stack += reversed(children.get(body, []))
    scales = [spec.gravity_scale for spec in model.bodies]
    if scales and max(scales) > 1.0 and min(scales) >= 1.0:  # MuJoCo ignores gravcomp if no body has gravcomp > 0
        doc.add(doc.bodies[WORLD], "body", name="gravity_scale", gravcomp=1)
    doc.report.counts = {"bodies": len(model.bodies), "joints": len(model.joints), "shapes": len(model.shapes)}
    return closing


def _can_nest(carrier: dict[int, tuple[int, int]], child: int, parent: int) -> bool:
    """Return whether ``child`` can be nested in ``parent``."""
    if child == WORLD:
        return False
    while parent != WORLD:
        if parent == child:
            return False
        parent = carrier[parent][1] if parent in carrier else WORLD
    return True


def _add_body(doc: Document, index: int, carrier: tuple[int, int] | None) -> None:
    spec, parent = doc.model.bodies[index], WORLD if carrier is None else carrier[1]
    base = Transform() if parent == WORLD else doc.model.bodies[parent].xform
    local_pose = base.inverse() * spec.xform if parent != WORLD else spec.xform
    is_mocap = carrier is None and spec.kinematic
    gravcomp = 1.0 - spec.gravity_scale
    attributes = {"mocap": True if is_mocap else None, "gravcomp": gravcomp or None}
    body = doc.add(doc.bodies[parent], "body", name=spec.label, **pose(local_pose), **attributes)
    if spec.conveyor:
        doc.report_loss(spec.element, "its surface moves as a conveyor")
    doc.bodies[index] = body
    inertia = repair_inertia(np.asarray(spec.inertia), spec.mass)
    six = (*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2])
    doc.add(body, "inertial", pos=spec.com, mass=spec.mass, fullinertia=six)
    moving = bool(np.any(spec.linear_velocity) or np.any(spec.angular_velocity))
    if carrier is not None:
        add_tree_joint(doc, body, carrier[0])
    elif spec.kinematic:
        if moving:
            doc.report_loss(spec.element, "moves by its velocity", "move its mocap body in MuJoCo")
    else:
        _add_free_joint(doc, index, body)


def _add_free_joint(doc: Document, index: int, body: ElementTree.Element) -> None:
    spec = doc.model.bodies[index]
    free_joints = [j for j in doc.model.joints if j.child == index and j.kind in FREE and "damping" in j.params]
    values: dict[str, float] = {}
    for joint in free_joints:
        for name, attribute in (("damping", "damping"), ("friction", "frictionloss"), ("armature", "armature")):
            numbers = np.asarray(joint.params[name])
            values[attribute] = float(numbers.mean())
            if np.ptp(numbers) > 0.0 or (numbers.any() and np.any(joint.child_xform.position)):
                what = f"its {name} differs by axis, or acts at a point"
                doc.report.add("motion", joint.element, what, "the file has its mean for all six coordinates")
    nonzero = {name: value for name, value in values.items() if value}
    if nonzero:
        doc.add(body, "joint", name=f"{spec.label}_free", type="free", **nonzero)
    else:
        doc.add(body, "freejoint", name=f"{spec.label}_free")
    doc.qpos_index["body", spec.label] = len(doc.qpos)
    doc.qpos += _free_qpos(spec.xform)
    # qvel of a free joint: linear velocity of the frame's origin in world axes, and angular velocity in body axes.
    arm = spec.xform.rotate(spec.com)
    origin = spec.linear_velocity - np.cross(spec.angular_velocity, arm)
    doc.qvel += [*map(float, origin), *map(float, spec.xform.inverse().rotate(spec.angular_velocity))]


def _add_start(doc: Document) -> None:
    if not doc.qpos and not any(doc.ctrl):
        return
    key = {"qpos": doc.qpos or None, "qvel": doc.qvel if any(doc.qvel) else None, "act": doc.act or None}
    doc.add(doc.section("keyframe"), "key", name="start", **key, ctrl=doc.ctrl if any(doc.ctrl) else None)
    for posture in doc.model.poses:
        qpos, ctrl, act = list(doc.qpos), list(doc.ctrl), list(doc.act)
        for label, numbers in posture.joints.items():
            if ("joint", label) in doc.qpos_index:
                first = doc.qpos_index["joint", label]
                values = _joint_qpos(doc, label, numbers)
                qpos[first : first + len(values)] = values
        for label, xform in posture.bodies.items():
            if ("body", label) in doc.qpos_index:
                first = doc.qpos_index["body", label]
                qpos[first : first + 7] = _free_qpos(xform)
        for command, value in posture.commands.items():
            if command in doc.inputs:
                ctrl[doc.inputs[command]] = value
        for command, value in posture.activations.items():
            if command in doc.activations:
                act[doc.activations[command]] = value
        key = {"qpos": qpos or None, "act": act or None, "ctrl": ctrl or None}
        doc.add(doc.section("keyframe"), "key", name=posture.label, **key)


def _free_qpos(xform: Transform) -> list[float]:
    x, y, z, w = (float(v) for v in xform.rotation)
    return [*map(float, xform.position), w, x, y, z]


def _joint_qpos(doc: Document, label: str, numbers: Any) -> list[float]:
    """Return the position of a joint as MuJoCo's qpos."""
    joint = next(joint for joint in doc.model.joints if joint.label == label)
    values = [float(v) for v in np.ravel(numbers)]
    if joint.kind in SINGLE_COORDINATES:
        return values
    child_rotation = Transform((0, 0, 0), joint.child_xform.rotation)
    start_rotation = Transform((0, 0, 0), start_pose(doc, joint).rotation)
    rotation = child_rotation * start_rotation.inverse() * Transform((0, 0, 0), values) * child_rotation.inverse()
    return _free_qpos(rotation)[3:]


def _report_omissions(doc: Document) -> None:
    model, report = doc.model, doc.report
    report.counts |= {"actuators": len(doc.root.findall("actuator/*")), "visuals": len(model.visuals)}
    if model.diagrams:
        names = ", ".join(diagram.label for diagram in model.diagrams)
        doc.report_loss(f"diagram '{names}'", "MJCF has no block diagrams", "compute the commands in your own loop")
    if model.sensors:
        names = ", ".join(sensor.label for sensor in model.sensors)
        report.add("info", f"sensor '{names}'", "sensors are not in the file", "", "add MuJoCo's own sensors")
