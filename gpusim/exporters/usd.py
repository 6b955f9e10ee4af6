"""USD export: ``to_usd`` writes a model with USD physics (UsdPhysics)."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import BodySpec
from gpusim.errors import ModelError
from gpusim.exporters.report import ExportReport, check_model_name
from gpusim.exporters.usd_document import ROOT, UsdDocument, quatf, set_custom, set_pose, vec3f
from gpusim.exporters.usd_joints import add_coupling, add_drives, add_joints
from gpusim.exporters.usd_shapes import add_shapes
from gpusim.importers.usd_parts.usd_stage import import_pxr
from gpusim.model.model import Model
from gpusim.output_files import atomic_file, check_output_file
from gpusim.transform import Transform

SUFFIXES = (".usda", ".usd", ".usdc")
_DEGREES = 180.0 / math.pi


def to_usd(
    model: ModelBuilder | Model, path: str | os.PathLike[str] | None = None, *, name: str = "gpusim"
) -> tuple[str, ExportReport]:
    """Convert a model to USD with USD physics, for Isaac Sim, Newton and other programs. The file contains the meshes.

    The bodies are below ``/World``, the joints in ``/World/Joints``. Units are m and kg, and z is up. USD stores masses
    and joint frames in single precision. Damping, friction and armature of joints become attributes of MuJoCo's schema,
    such as ``mjc:damping``, since USD physics has no such attributes. Mimic joints use Newton's schema. The file omits
    everything that USD cannot represent, such as hydraulics, tires and block diagrams. The report lists all omissions.

    Args:
        model: a builder, or a finalized model. If worlds have different parameters, the file has the parameters of
            world 0.
        path: a .usda (text), .usd or .usdc (binary) file to write, or None.
        name: display name of ``/World``.

    Returns:
        The file as text (USDA), and the report.

    Raises:
        ModelError: usd-core is missing, the model is invalid, the name is empty, or the path is not writable.
    """
    import_pxr()
    if not isinstance(model, ModelBuilder | Model):
        raise ModelError(f"to_usd: {type(model).__name__} is not a model; give a ModelBuilder or a Model")
    check_model_name("to_usd", name)
    file = None if path is None else check_output_file(path, SUFFIXES, "to_usd")
    compiled = model.finalize() if isinstance(model, ModelBuilder) else model
    report = ExportReport("USD", "" if file is None else str(file))
    doc = UsdDocument(compiled, report)
    doc.stage.GetDefaultPrim().SetDisplayName(name)
    _add_scene(doc)
    for index, body in enumerate(compiled.bodies):
        _add_body(doc, index, body)
    add_joints(doc)
    add_drives(doc)
    for coupling in compiled.couplings:
        add_coupling(doc, coupling)
    add_shapes(doc)
    _add_sites(doc)
    _report_omissions(doc)
    layer = doc.stage.GetRootLayer()
    if file is not None:
        _write(layer, file)
    return layer.ExportToString(), report


def _write(layer: Any, file: Path) -> None:
    """Write the file. If an error occurs, leave an existing file unchanged."""
    with tempfile.TemporaryDirectory() as scratch:
        part = os.path.join(scratch, "model.usda" if file.suffix.lower() == ".usda" else "model.usdc")
        layer.Export(part)
        with open(part, "rb") as written, atomic_file(file) as stream:
            stream.write(written.read())


def _add_scene(doc: UsdDocument) -> None:
    from pxr import UsdPhysics

    gravity = np.ravel(doc.model.parameters["gravity"])[:3]
    size = float(np.linalg.norm(gravity))
    scene = UsdPhysics.Scene.Define(doc.stage, f"{ROOT}/PhysicsScene")
    scene.CreateGravityMagnitudeAttr(size)
    scene.CreateGravityDirectionAttr(vec3f(gravity / size if size else (0.0, 0.0, -1.0)))


def _add_body(doc: UsdDocument, index: int, spec: BodySpec) -> None:
    from pxr import UsdGeom, UsdPhysics

    path = doc.bodies[index] = doc.path(ROOT, spec.label)
    prim = UsdGeom.Xform.Define(doc.stage, path).GetPrim()
    set_pose(prim, spec.xform)
    body = UsdPhysics.RigidBodyAPI.Apply(prim)
    if spec.kinematic:
        body.CreateKinematicEnabledAttr(True)
    if np.any(spec.linear_velocity):
        body.CreateVelocityAttr(vec3f(spec.linear_velocity))
    if np.any(spec.angular_velocity):
        body.CreateAngularVelocityAttr(vec3f(spec.angular_velocity * _DEGREES))
    moments, axes = np.linalg.eigh(spec.inertia)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    mass = UsdPhysics.MassAPI.Apply(prim)
    mass.CreateMassAttr(float(spec.mass))
    mass.CreateCenterOfMassAttr(vec3f(spec.com))
    mass.CreateDiagonalInertiaAttr(vec3f(moments))
    mass.CreatePrincipalAxesAttr(quatf(Transform.from_matrix(axes)))
    scale = getattr(spec, "gravity_scale", 1.0)
    if scale == 0.0:
        set_custom(prim, "PhysxRigidBodyAPI", physxRigidBody__disableGravity=True)
    elif scale != 1.0:
        doc.report_loss(spec.element, f"has a gravity scale of {scale:g}")
    if getattr(spec, "conveyor", False):
        doc.report_loss(spec.element, "its surface moves as a conveyor")


def _add_sites(doc: UsdDocument) -> None:
    from pxr import UsdGeom

    for site in doc.model.sites:
        prim = UsdGeom.Xform.Define(doc.stage, doc.path(doc.bodies[site.body], site.label)).GetPrim()
        set_pose(prim, site.xform)
        set_custom(prim, "MjcSiteAPI")


def _report_omissions(doc: UsdDocument) -> None:
    model, report = doc.model, doc.report
    counts = {"bodies": model.bodies, "joints": doc.joints, "shapes": model.shapes, "visuals": model.visuals}
    report.counts = {name: len(elements) for name, elements in counts.items()}
    if model.diagrams:
        names = ", ".join(diagram.label for diagram in model.diagrams)
        doc.report_loss(f"diagram '{names}'", "USD has no block diagrams", "compute the commands in your own loop")
    if model.sensors:
        names = ", ".join(sensor.label for sensor in model.sensors)
        report.add("info", f"sensor '{names}'", "sensors are not in the file")
    if model.poses:
        report.add("info", "", "named postures are not in the file")
