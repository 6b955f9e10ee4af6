"""USD stage that an export builds: prims with unique names, poses, and attributes of MuJoCo's and Newton's schemas."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.contact.material import Material
from gpusim.description.specs import WORLD
from gpusim.exporters.report import ExportReport
from gpusim.model.model import Model
from gpusim.transform import Transform

ROOT = "/World"


class UsdDocument:
    """USD stage of an export.

    Attributes:
        model: the model to export.
        report: receives findings.
        stage: the stage in memory, in m, kg and z up.
        bodies: body index (-1 for the world) -> path of its prim.
        joints: joint index -> path of its prim.
        axes: (joint, coordinate) -> name ("angular", "linear", "rotX", ...) and sign of the axis.
        materials: material -> name of its prim.
    """

    def __init__(self, model: Model, report: ExportReport) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.model, self.report = model, report
        self.stage = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.stage.SetDefaultPrim(UsdGeom.Xform.Define(self.stage, ROOT).GetPrim())
        self.bodies: dict[int, str] = {WORLD: ROOT}
        self.joints: dict[int, str] = {}
        self.axes: dict[tuple[int, int], tuple[str, float]] = {}
        self.materials: dict[Material, str] = {}

    def path(self, parent: str, label: str) -> str:
        """Return an unused path below ``parent``. The last part is ``label`` as a valid USD identifier."""
        from pxr import Tf

        name = Tf.MakeValidIdentifier(label)
        while self.stage.GetPrimAtPath(f"{parent}/{name}"):
            name += "_"
        return f"{parent}/{name}"

    def report_loss(self, element: str, what: str, fix: str = "") -> None:
        """Report a feature that affects the motion and that USD cannot represent."""
        self.report.add("motion", element, what, "it is not in the file", fix)


def set_pose(prim: Any, pose: Transform, scale: Any = None) -> None:
    """Set the pose and the scale of a prim relative to its parent, in double precision."""
    from pxr import Gf, UsdGeom

    precise = UsdGeom.XformOp.PrecisionDouble
    form = UsdGeom.Xformable(prim)
    x, y, z, w = (float(v) for v in pose.rotation)
    form.AddTranslateOp(precise).Set(Gf.Vec3d(*map(float, pose.position)))
    form.AddOrientOp(precise).Set(Gf.Quatd(w, x, y, z))
    if scale is not None:
        form.AddScaleOp(precise).Set(Gf.Vec3d(*map(float, scale)))


def quatf(pose: Transform) -> Any:
    """Convert the rotation of a pose to USD's single-precision quaternion."""
    from pxr import Gf

    x, y, z, w = (float(v) for v in pose.rotation)
    return Gf.Quatf(w, x, y, z)


def vec3f(values: Any) -> Any:
    """Convert three numbers to USD's single-precision vector."""
    from pxr import Gf

    return Gf.Vec3f(*(float(v) for v in np.ravel(values)))


def set_custom(prim: Any, schema: str, **values: Any) -> None:
    """Apply a schema that usd-core lacks, and set attributes of the schema.

    For example, the argument ``mjc__damping`` sets the attribute "mjc:damping".
    """
    from pxr import Sdf

    if schema not in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
        prim.AddAppliedSchema(schema)
    kinds = {bool: Sdf.ValueTypeNames.Bool, str: Sdf.ValueTypeNames.Token, int: Sdf.ValueTypeNames.Int}
    for name, value in values.items():
        kind = kinds.get(type(value), Sdf.ValueTypeNames.Double)
        prim.CreateAttribute(name.replace("__", ":"), kind).Set(value)
