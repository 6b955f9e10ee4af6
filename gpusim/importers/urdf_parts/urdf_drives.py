"""Actuators of URDF files: <transmission> and <ros2_control>."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpusim.builder.builder import ModelBuilder
from gpusim.importers.report import CommandInfo, ImportReport
from gpusim.importers.urdf_parts.urdf_check import SINGLE_AXIS
from gpusim.importers.urdf_parts.urdf_extras import children, value_of
from gpusim.importers.urdf_parts.urdf_tree import Tree
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, local_name

_ROTORS = {"rotor_inertia", "rotorInertia", "motor_inertia", "motorInertia"}
_RATIOS = {"mechanicalReduction", "gear_ratio"}


@dataclass(frozen=True)
class Drive:
    """An actuator whose command is the effort (N m or N) on a joint.

    Attributes:
        name: name of the actuator in the file.
        joint: label of the joint.
        limit: maximum effort (N m or N).
    """

    name: str
    joint: str
    limit: float


def read_drives(document: Document, tree: Tree) -> list[Drive]:
    """Return the actuators with an effort interface, and add the inertia of rotors to the joints of ``tree``."""
    drives: list[Drive] = []
    for _, element in document.extras:
        if local_name(element) == "transmission":
            drives += _transmission(document, tree, element)
        elif local_name(element) == "ros2_control":
            drives += _ros2_control(document, tree, element)
    return drives


def add_drives(drives: list[Drive], builder: ModelBuilder, report: ImportReport) -> None:
    """Add a joint force for each drive and list its command in ``report.commands``."""
    driven: set[str] = set()
    labels = {actuator.label for actuator in builder.actuators}
    for drive in drives:
        if drive.joint in driven:
            report.warn(f"transmission {drive.name!r}: joint {drive.joint!r} has an actuator already; it is left out")
            continue
        driven.add(drive.joint)
        label = re.sub(r"[.\s]+", "_", drive.name)
        while label in labels or label in report.joints:  # servos of add_holding_servos have the joints' labels
            label += "_effort"
        labels.add(label)
        limit = drive.limit if math.isfinite(drive.limit) else None
        builder.add_joint_force(report.joints[drive.joint].index, limit=limit, label=label)
        report.commands[drive.name] = CommandInfo(label, lower=-drive.limit, upper=drive.limit)


def _transmission(document: Document, tree: Tree, element: Element) -> Iterator[Drive]:
    name = element.get("name") or "transmission"
    title, joints = f"transmission {name!r}", [e for e in children(element) if local_name(e) == "joint"]
    if not joints:
        document.warn(f"{title}: it names no <joint>; its actuators are left out, add them to the builder", "motion")
    elif len(joints) == 1:
        _add_rotor(document, tree, joints[0], element, title)
    for item in joints:
        joint = tree.joints.get(document.joint_labels.get(item.get("name") or "", ""))
        if joint is None or joint.kind not in SINGLE_AXIS:
            what = "is not in the file" if joint is None else f"is {joint.kind}"
            document.warn(f"{title}: its joint {item.get('name')!r} {what}; it is left out")
            continue
        interfaces = _interfaces(item) or _interfaces(element)
        if not interfaces or any("effort" in text.lower() for text in interfaces):
            # Controllers command joint efforts, even if a transmission couples several joints.
            yield Drive(name if len(joints) == 1 else f"{joint.name}_effort", joint.name, joint.limits.effort)
        else:
            _warn_no_effort(document, title, interfaces[0], joint.name)


def _interfaces(element: Element) -> list[str]:
    items = [e for e in element.iter() if isinstance(e.tag, str) and local_name(e) == "hardwareInterface"]
    return [(item.text or "").strip().rpartition("/")[2] for item in items]


def _warn_no_effort(document: Document, title: str, interface: str, joint: str) -> None:
    fix = f"add a servo to joint {joint!r}, or call add_holding_servos"
    document.warn(f"{title}: its interface is {interface!r}; no actuator added; {fix}")


def _add_rotor(document: Document, tree: Tree, item: Element, element: Element, title: str) -> None:
    """Add a rotor's reflected inertia to its joint."""
    joint = document.joint_labels.get(item.get("name") or "", "")
    if joint not in tree.joints or tree.joints[joint].kind not in SINGLE_AXIS:
        return
    values: dict[str, float] = {}
    for item in element.iter():
        tag = local_name(item) if isinstance(item.tag, str) else ""
        if tag in _ROTORS | _RATIOS and (number := value_of(document, title, item)) is not None:
            values["rotor" if tag in _ROTORS else "ratio"] = number
    ratio, rotor = values.get("ratio", 1.0), values.get("rotor", 0.0)
    if rotor < 0.0:
        document.warn(f"{title}: rotor inertia {rotor:g} is negative; it is ignored", "motion")
    elif rotor > 0.0:
        old = tree.joints[joint]
        tree.joints[joint] = replace(old, armature=old.armature + ratio * ratio * rotor)
    elif ratio != 1.0:
        document.warn(f"{title}: gear ratio {ratio:g} is not needed; the command is the effort of the joint")


def _ros2_control(document: Document, tree: Tree, element: Element) -> Iterator[Drive]:
    for item in children(element):
        if local_name(item) != "joint":
            continue
        name = item.get("name") or ""
        joint = tree.joints.get(document.joint_labels.get(name, ""))
        commands = {e.get("name") or "": e for e in children(item) if local_name(e) == "command_interface"}
        if not commands:
            continue
        title = f"ros2_control of joint {name!r}"
        if joint is None or joint.kind not in SINGLE_AXIS:
            document.warn(f"{title}: no joint with an axis has that name; it is left out")
        elif "effort" in commands:
            yield Drive(f"{joint.name}_effort", joint.name, _limit(document, commands["effort"], joint.limits.effort))
        else:
            _warn_no_effort(document, title, next(iter(commands)), joint.name)


def _limit(document: Document, command: Element, effort: float) -> float:
    """Return the effort limit: the minimum of the limits of the joint and of the command interface."""
    for item in children(command):
        if local_name(item) == "param" and item.get("name") in ("min", "max"):
            number = value_of(document, "ros2_control", item)
            effort = effort if not number else min(effort, abs(number))
    return effort
