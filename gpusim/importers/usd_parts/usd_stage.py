"""USD stage of the importer: the open file, its units and axes, and objects from usd-core's physics parser."""

from __future__ import annotations

import math
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.importers.mesh_search import Search
from gpusim.importers.report import ImportReport
from gpusim.transform import Transform
from gpusim.typing import Array

SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
DEGREE = math.pi / 180.0
UNLIMITED = 1e30
"""The importer treats numbers above this limit as infinite. USD files often contain 3.4e38 for an infinite limit or
force."""


def import_pxr() -> ModuleType:
    """Return usd-core's package ``pxr``, or raise a ModelError that says how to install it."""
    try:
        import pxr
        import pxr.UsdPhysics
    except ImportError:
        raise ModelError('USD files need usd-core, which is not installed; pip install "gpusim[usd]"') from None
    module: ModuleType = pxr
    return module


class UsdStage:
    """An opened USD file.

    Attributes:
        meters, kilograms: the file's units.
        world: pose of the file's world in the builder's world, including the rotation from y up to z up.
        objects: dict from an object type, such as "RevoluteJoint", to pairs (path, descriptor) from usd-core's parser.
        surfaces: cache of looks (material path -> look).
        assets: files in memory (file name -> content), which replace files on disk.
        search: folders in which the importer searches for referenced files.
    """

    def __init__(self, stage: Any, xform: Transform | None, report: ImportReport) -> None:
        from pxr import UsdGeom, UsdPhysics

        self.stage = stage
        self.report = report
        self.meters = float(UsdGeom.GetStageMetersPerUnit(stage))
        self.kilograms = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
        if not (self.meters > 0.0 and self.kilograms > 0.0):
            rule = f"metersPerUnit = {self.meters:g} and kilogramsPerUnit = {self.kilograms:g} must be positive"
            raise ModelError(f"{report.source}: {rule}; correct them in the file")
        upright = Transform()
        if UsdGeom.GetStageUpAxis(stage) == "Y":
            upright = Transform.from_axis_angle((0, 0, 0), (1, 0, 0), math.pi / 2.0)
        _check_types(stage)
        self.upright = upright
        self.world = (xform or Transform()) * upright
        self.objects = _parse(stage)
        self._cache = UsdGeom.XformCache()
        self._labels: dict[str, set[str]] = {}
        # For mirrored bodies, the parser's joint frames refer to the parser's body frames.
        self._mirrored = {
            path: self.world * self.frame(body.position, body.rotation, path)
            for path, body in self.of("RigidBody")
            if np.prod([float(x) for x in body.scale]) < 0.0
        }
        self.used: set[tuple[str, str]] = set()
        self.surfaces: dict[str, Any] = {}
        self.assets: Mapping[str, bytes] = {}
        self.search = Search(Path())

    def of(self, *kinds: str) -> list[tuple[str, Any]]:
        """Return pairs (path, descriptor) of all objects of the types ``kinds``, sorted by type."""
        return [pair for kind in kinds for pair in self.objects.get(kind, ())]

    def prim(self, path: str) -> Any:
        """Return the prim at ``path``."""
        return self.stage.GetPrimAtPath(path)

    def prims(self) -> list[Any]:
        """Return all active prims, including prims of instances."""
        from pxr import Usd

        return list(self.stage.Traverse(Usd.TraverseInstanceProxies()))

    def schemas(self, prim: Any) -> list[str]:
        """Return the names of a prim's API schemas, including schemas that usd-core does not know."""
        applied = prim.GetMetadata("apiSchemas")
        return [str(name) for name in applied.GetAddedOrExplicitItems()] if applied else []

    def value(self, path: str, name: str) -> Any:
        """Return the authored value of an attribute, or None, and mark the attribute as read."""
        attribute = self.prim(path).GetAttribute(name)
        self.used.add((path, name))
        return attribute.Get() if attribute and attribute.HasAuthoredValue() else None

    def number(self, path: str, name: str, default: float = 0.0) -> float:
        """Return the authored value of an attribute if it is a finite number, else ``default``."""
        value = self.value(path, name)
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else default

    def matrix(self, path: str) -> Array:
        """Return the (4, 4) matrix from a prim's coordinates to the builder's world (m), including the prim's scale."""
        local = np.array(self._cache.GetLocalToWorldTransform(self.prim(path))).T
        local[:3] *= self.meters
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.world.matrix(), self.world.position
        with np.errstate(invalid="ignore"):  # pose() checks the matrix
            return np.asarray(pose @ local)

    def pose(self, path: str) -> Transform:
        """Return the pose of a prim in the builder's world."""
        if path in self._mirrored:
            return self._mirrored[path]
        matrix = self.matrix(path)
        if not np.all(np.isfinite(matrix)):
            raise ModelError(f"prim '{path}': its transform is not finite; correct its xformOps in the file")
        return Transform.from_matrix(_rigid(matrix))

    def frame(self, position: Any, rotation: Any, path: str) -> Transform:
        """Convert a position and a rotation from usd-core's physics parser to a pose in m."""
        numbers = [*map(float, position), *_xyzw(rotation)]
        if not all(math.isfinite(number) for number in numbers):
            raise ModelError(f"prim '{path}': its position or rotation is not finite; correct it in the file")
        return Transform([self.meters * float(x) for x in position], _xyzw(rotation))

    def label(self, space: str, path: str) -> str:
        """Return an unused label for a prim, usually the prim's name.

        If another element already has the prim's name, the label contains more of the path.
        """
        taken, parts = self._labels.setdefault(space, set()), path.strip("/").split("/")
        names = ["_".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        name = next((name for name in names if name not in taken), names[-1])
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def content(self, asset: Any) -> bytes:
        """Return the content of the file that an attribute (``Sdf.AssetPath``) names.

        The file may be in a .usdz package.

        Raises:
            ModelError: the file is missing.
        """
        from pxr import Ar

        name = asset.path.replace("\\", "/")
        for asset_name, content in self.assets.items():
            if name == asset_name or name.endswith("/" + asset_name.removeprefix("./")):
                return bytes(content)
        opened = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(asset.resolvedPath)) if asset.resolvedPath else None
        if opened:
            return bytes(opened.GetBuffer())
        return Path(self.search.require(name)).read_bytes()

    def gravity(self) -> tuple[float, float, float]:
        """Return the gravity vector (m/s2) of the file's first physics scene, in the builder's axes (z up)."""
        size, direction = 9.81, np.array([0.0, 0.0, -1.0])
        scenes = self.of("Scene")
        for path, scene in scenes[:1]:
            magnitude = float(scene.gravityMagnitude)
            size = magnitude * self.meters if 0.0 <= magnitude < math.inf else size
            vector = np.array([float(x) for x in scene.gravityDirection])
            if np.linalg.norm(vector) > 0.0:
                direction = self.upright.rotate(vector / np.linalg.norm(vector))
            if self.value(path, "mjc:flag:gravity") is False or self.value(path, "newton:gravityEnabled") is False:
                size = 0.0
        if len(scenes) > 1:
            names = ", ".join(path for path, _ in scenes[1:])
            what = f"one of {len(scenes)} physics scenes"
            self.report.add("motion", f"scene '{scenes[0][0]}'", what, f"its gravity applies to {names} too")
        x, y, z = (float(v) * size for v in direction)
        return x, y, z


def open_stage(
    path: str | os.PathLike[str],
    asset_dirs: Sequence[str | os.PathLike[str]],
    assets: Mapping[str, bytes] | None,
    report: ImportReport,
) -> Any:
    """Open a USD file, or text that starts with ``#usda``.

    Raises:
        ModelError: the file is missing or usd-core cannot read it.
    """
    from pxr import Ar, Sdf, Tf, Usd

    folders = [os.fspath(folder) for folder in asset_dirs]
    with tempfile.TemporaryDirectory() as scratch:
        if assets:
            for name, content in assets.items():
                if not isinstance(content, bytes | bytearray):
                    raise ModelError(f"assets: {name!r} is {type(content).__name__}; give its content as bytes")
                _inside(Path(scratch), name).write_bytes(content)
            folders.append(scratch)
        context = Ar.DefaultResolverContext(folders)
        try:
            if str(path).lstrip().startswith("#usda"):
                layer = Sdf.Layer.CreateAnonymous(".usda")
                layer.ImportFromString(str(path))
                stage = Usd.Stage.Open(layer, context)
            else:
                stage = Usd.Stage.Open(_existing(path, assets, scratch), context)
        except Tf.ErrorException as error:
            raise ModelError(f"{report.source}: usd-core cannot read it ({_reason(error)}); give a USD file") from None
        if assets:  # the temporary files are deleted later
            stage = Usd.Stage.Open(stage.Flatten())
    return stage


@contextmanager
def usd_warnings(report: ImportReport) -> Iterator[None]:
    """Convert the warnings of usd-core into findings."""
    from pxr import Tf, UsdUtils

    diagnostics = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield
    except Tf.ErrorException as error:
        raise ModelError(f"{report.source}: usd-core rejects it ({_reason(error)}); correct it in the file") from None
    for item in diagnostics.TakeUncoalescedDiagnostics():
        message = " ".join(item.commentary.split())
        if "invalid inertia tensor" not in message:
            report.add("motion", "", f"usd-core warns: {message[:300]}", "the affected element may be missing")


def _existing(path: str | os.PathLike[str], assets: Mapping[str, bytes] | None, scratch: str) -> str:
    name = os.fspath(path)
    if assets and name in assets:
        return str(Path(scratch) / name)
    if "\n" in name:
        raise ModelError("load_usd: the text is not USD; begin it with '#usda 1.0', or give a path")
    if not os.path.isfile(name):
        raise ModelError(f"load_usd: there is no file {name!r}; give the path of a {', '.join(SUFFIXES)} file")
    if not name.lower().endswith(SUFFIXES):
        raise ModelError(f"load_usd: {name!r} is not a USD file; give one that ends in {', '.join(SUFFIXES)}")
    return name


def _inside(folder: Path, name: str) -> Path:
    target = (folder / name).resolve()
    if not target.is_relative_to(folder.resolve()):
        raise ModelError(f"load_usd: assets: the name {name!r} leaves its folder; give relative names without '..'")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _reason(error: BaseException) -> str:
    """Return the first message of a USD error without its C++ location."""
    text = " ".join(str(error).split())
    match = re.search(r"in file \S+ : '(.*?)'(?: Error in|$)", text)
    return (match.group(1) if match else text)[:300]


_TYPED = ("physics:", "primvars:displayOpacity", "points", "faceVertex", "holeIndices", "normals")
"""Name prefixes of attributes whose value types the importer checks."""


def _check_types(stage: Any) -> None:
    """Raise a ModelError if the type of an attribute's value differs from the type in the prim's schema."""
    from pxr import Usd

    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        schema = prim.GetPrimDefinition()
        for attribute in prim.GetAuthoredAttributes():
            name = attribute.GetName()
            declared = schema.GetAttributeDefinition(name) if name.startswith(_TYPED) else None
            value = attribute.Get() if declared else None
            if declared and value is not None and _form(value) != _form(declared.GetTypeName().defaultValue):
                rule = f"{name} has a value of another type than {declared.GetTypeName()}"
                raise ModelError(f"prim '{prim.GetPath()}': {rule}; correct it in the file")


def _form(value: Any) -> tuple[str, bool, tuple[int, ...]]:
    """Return a key for the type of a value. Compatible types have equal keys."""
    name, array = type(value).__name__, np.asarray(value)
    numeric = array.dtype.kind in "biuf" and not name.startswith(("Token", "String"))
    many = name.endswith("Array")
    kind = "number" if numeric else name[:4]  # first letters of Quatf and Quatd
    return kind, many, array.shape[1:] if many else array.shape


def _parse(stage: Any) -> dict[str, list[tuple[str, Any]]]:
    from pxr import UsdPhysics

    # usd-core 26.11 deprecates the name of this function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        parsed = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    objects: dict[str, list[tuple[str, Any]]] = {}
    for kind, (paths, descriptors) in parsed.items():
        name = str(kind).split(".")[-1]
        objects[name] = [(str(path), item) for path, item in zip(paths, descriptors, strict=True) if item.isValid]
    return objects


def _xyzw(rotation: Any) -> tuple[float, ...]:
    x, y, z, w = (*map(float, rotation.GetImaginary()), float(rotation.GetReal()))
    return (x, y, z, w) if x or y or z or w else (0.0, 0.0, 0.0, 1.0)


def quaternion(rotation: Any) -> Transform:
    """Return a USD quaternion as a rotation, or the identity for None or a zero quaternion."""
    return Transform() if rotation is None else Transform((0.0, 0.0, 0.0), _xyzw(rotation))


def _rigid(matrix: Array) -> Array:
    """Return the rotation and translation of an affine matrix."""
    columns = matrix[:3, :3]
    lengths = np.linalg.norm(columns, axis=0)
    axes = columns / np.where(lengths > 0.0, lengths, 1.0)
    if np.linalg.det(axes) < 0.0:
        axes = -axes
    u, _, vt = np.linalg.svd(axes)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = u @ vt, matrix[:3, 3]
    return pose
