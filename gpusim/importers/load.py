"""``gpusim.load`` and ``ModelBuilder.add_model``: loading of models in all formats."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD
from gpusim.errors import ModelError, unknown_name
from gpusim.importers.arguments import check_arguments
from gpusim.importers.report import ImportReport
from gpusim.transform import Transform

_ROOTS = {"mujoco": "mjcf", "robot": "urdf", "sdf": "sdf", "gazebo": "sdf"}
"""Tag of the root element in an XML file -> format."""
_USD = (b"PXR-USDC", b"#usda", b"PK\x03\x04")
"""First bytes of a binary, a text and a packaged USD file."""
_HEAD = 1 << 20
"""Number of bytes at the start of a file in which the loader searches for the root element."""
_NOT_ELEMENTS = re.compile(rb"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<![A-Z].*?(?:>|\Z)", re.DOTALL)
_KNOWN = "give MJCF (<mujoco>), URDF (<robot>), SDF (<sdf>) or USD"


def load(source: Any, **arguments: Any) -> tuple[ModelBuilder, ImportReport]:
    """Read a model from a file or from text. gpusim detects the format (MJCF, URDF, SDF or USD) from the content.

    Args:
        source: path or text of the model, or an object such as ``mujoco.MjSpec``.
        arguments: keyword arguments of ``load_mjcf``, ``load_urdf``, ``load_sdf`` or ``load_usd`` in
            ``gpusim.importers``. All four loaders have the arguments ``fixed_base``, ``gravity``, ``xform``,
            ``merge_fixed``, ``keep``, ``collisions``, ``self_collisions``, ``visuals``, ``meshes``, ``actuators``,
            ``asset_dirs``, ``assets``, ``pose`` and ``strict``.

    Returns:
        The builder, which you can extend, and the report.

    Raises:
        ModelError: the format is unknown, the package that reads the format is missing, or the model is invalid.
        UnknownNameError: the loader of the format does not accept one of the ``arguments``.
    """
    return _loader("load", source, False)(source, arguments)


def format_of(where: str, source: Any) -> str:
    """Return the format of a model: "mjcf", "urdf", "sdf" or "usd".

    Args:
        where: the caller, for error messages.
        source: path or text of the model, or an object.

    Raises:
        ModelError: the file does not exist, or has an unknown format.
    """
    if not isinstance(source, str | os.PathLike):
        package = type(source).__module__.partition(".")[0]
        kind = {"mujoco": "mjcf", "pxr": "usd"}.get(package)
        if kind is None:
            raise ModelError(f"{where}: {type(source).__name__} is not a model; give a path or text")
        return kind
    text = source.lstrip("\ufeff \t\r\n") if isinstance(source, str) else ""
    if text.startswith(("<", "#usda")):
        return _format_of_content(f"{where}: the text", text.encode(errors="replace"))
    path = Path(source)
    if str(source).strip() and os.path.isdir(path):
        raise ModelError(f"{where}: {str(source)!r} is a folder; give the path of a model in it")
    if path.suffix in (".yaml", ".yml"):
        rule = f"{str(source)!r} is not a model, but the name of a machine file"
        raise ModelError(f"{where}: {rule}; read it with gpusim.machine_files.load_machine")
    if not str(source).strip() or not os.path.isfile(path):  # Path.is_file raises an error for long names
        raise ModelError(f"{where}: there is no file {str(source)!r}; give the path of a model, or its text")
    if path.suffix == ".xacro":
        return "urdf"
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ModelError(f"{where}: {path.name} cannot be read ({error.strerror}); check its permissions") from None
    return _format_of_content(f"{where}: {path.name}", head)


def _format_of_content(where: str, content: bytes) -> str:
    if content.startswith(_USD):
        return "usd"
    root = re.search(rb"<\s*([A-Za-z_][\w:.-]*)", _NOT_ELEMENTS.sub(b"", content))
    if root is None:
        raise ModelError(f"{where} is neither XML nor USD; {_KNOWN}")
    name = root.group(1).decode()
    if name not in _ROOTS:
        raise ModelError(f"{where} has the root element <{name}>, which is not a model; {_KNOWN}")
    return _ROOTS[name]


def _loader(
    where: str, source: Any, mounted: bool
) -> Callable[[Any, Mapping[str, Any]], tuple[ModelBuilder, ImportReport]]:
    """Return the loader for the format of ``source``. If ``mounted``, prefer ``load_mounted_<format>``."""
    kind = format_of(where, source)
    try:
        module = importlib.import_module(f"gpusim.importers.{kind}")
    except ModuleNotFoundError as error:
        if error.name != f"gpusim.importers.{kind}":
            raise
        raise ModelError(f"{where}: this version of gpusim does not read {kind.upper()}; convert the model") from None
    public = getattr(module, f"load_{kind}")
    function = getattr(module, f"load_mounted_{kind}", public) if mounted else public
    known = inspect.signature(public).parameters

    def checked(source: Any, arguments: Mapping[str, Any]) -> tuple[ModelBuilder, ImportReport]:
        for name in arguments:
            if name not in known:
                raise unknown_name(f"argument of load_{kind}", name, known)
        check_arguments(public, arguments)
        result: tuple[ModelBuilder, ImportReport] = function(source, **arguments)
        return result

    return checked


@builder_method
def add_model(
    self: ModelBuilder,
    source: Any,
    parent: int | str | None = None,
    xform: Transform | None = None,
    label_prefix: str = "",
    **arguments: Any,
) -> ImportReport:
    """Add a model from an MJCF, URDF, SDF or USD file.

    A model with a fixed base is mounted on ``parent``. The starting pose of a floating base is relative to ``parent``.
    The gravity of the builder replaces the gravity of the file.

    Args:
        source: path or text of the model, as in ``gpusim.load``.
        parent: body (index or label) or site (label) on which the model is mounted (default: the world). Importers add
            a site for each merged link, so ``parent`` can also be the label of a merged link.
        xform: pose of the model's world frame in the frame of ``parent``.
        label_prefix: prefix of all labels of the model. Give each copy a different prefix.
        arguments: keyword arguments of ``gpusim.load``.

    Returns:
        The report. Labels in the report have the prefix. Indices in the report are indices of this builder.

    Raises:
        ModelError: ``gpusim.load`` fails, no body has the index ``parent``, or a label already exists in the builder.
        UnknownNameError: no body or site has the label ``parent``, or an argument is unknown.
    """
    where = "ModelBuilder.add_model"
    validate.transform(where, "xform", xform)
    body, mount = _mount_frame(self, where, parent)
    xform = mount if xform is None else mount * xform
    other, report = _loader(where, source, body != WORLD)(source, {"gravity": tuple(self.gravity), **arguments})
    for shape in other.shapes:
        if body != WORLD and shape.body == WORLD and not shape_type(shape.kind).movable:
            rule = f"{where}: the model's {shape.element} is ground, which cannot move with '{self.bodies[body].label}'"
            raise ModelError(f"{rule}; give collisions=False, or mount the model on the world")
    first = {"joint": len(self.joints), "shape": len(self.shapes), "visual": len(self.visuals)}
    self.add_builder(other, xform, label_prefix, body)
    _update_report(report, label_prefix, first, self.body_label(body), xform or Transform())
    return report


def _mount_frame(builder: ModelBuilder, where: str, parent: int | str | None) -> tuple[int, Transform]:
    """Return the index of the body that contains ``parent``, and the pose of ``parent`` in the body's frame."""
    if not isinstance(parent, str):
        return builder.check_body(where, "parent", WORLD if parent is None else parent), Transform()
    bodies = {body.label: (index, Transform()) for index, body in enumerate(builder.bodies)}
    frames = {site.label: (site.body, site.xform) for site in builder.sites} | bodies
    if parent not in frames:
        raise unknown_name("body or site", parent, frames)
    return frames[parent]


def _update_report(report: ImportReport, prefix: str, first: Mapping[str, int], parent: str, pose: Transform) -> None:
    """Update a report after the model was mounted on body ``parent`` at ``pose``."""

    def named(label: str) -> str:
        return parent if label == "world" else prefix + label

    report.displace(pose)
    report.link_frames = {prefix + link: frame for link, frame in report.link_frames.items()}
    report.sensors = {prefix + name: info.moved(prefix, Transform()) for name, info in report.sensors.items()}
    report.cameras = [prefix + name for name in report.cameras]
    report.merged = {prefix + link: named(body) for link, body in report.merged.items()}
    for attribute, kind in (("shapes", "shape"), ("visuals", "visual")):
        shifted = {
            prefix + link: [i + first[kind] for i in indices] for link, indices in getattr(report, attribute).items()
        }
        setattr(report, attribute, shifted)
    report.joints = {
        prefix + label: dataclasses.replace(
            joint,
            label=prefix + joint.label,
            index=joint.index + first["joint"],
            parent=named(joint.parent),
            child=prefix + joint.child,
            mimic=joint.mimic and joint.mimic._replace(leader=prefix + joint.mimic.leader),
        )
        for label, joint in report.joints.items()
    }
    report.joint_limits = {prefix + label: limits for label, limits in report.joint_limits.items()}
    report.overlaps = {(prefix + a, prefix + b): depth for (a, b), depth in report.overlaps.items()}
    report.commands = {
        prefix + name: dataclasses.replace(info, command=prefix + info.command)
        for name, info in report.commands.items()
    }
    report.findings = [
        item
        if item.element.startswith("mesh")  # names of files get no prefix
        else dataclasses.replace(item, element=re.sub("'([^']*)'", lambda name: f"'{prefix}{name[1]}'", item.element))
        for item in report.findings
    ]
    report.poses = [prefix + name for name in report.poses]
    report.base_link = named(report.base_link)
    report.base_joint = report.base_joint and prefix + report.base_joint
