"""SRDF files of MoveIt: named postures, and pairs of links that never collide."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from gpusim.errors import unknown_name
from gpusim.importers.urdf_parts.urdf_check import SINGLE_AXIS
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, Source, local_name, parse_xml
from gpusim.transform import Transform


@dataclass
class Semantics:
    """Postures of an SRDF file, and pairs of links that never collide.

    Attributes:
        poses: posture -> joint label -> position.
        roots: posture -> pose of the root link in the world.
        excluded_pairs: pairs of links that never collide.
    """

    poses: dict[str, dict[str, float]] = field(default_factory=dict)
    roots: dict[str, Transform] = field(default_factory=dict)
    excluded_pairs: set[frozenset[str]] = field(default_factory=set)


def read_srdf(path_or_text: str | os.PathLike[str], document: Document, name: str | os.PathLike[str] = "") -> Semantics:
    """Read an SRDF file or SRDF text for the robot in ``document``.

    Group states with the same name become one posture if their joint positions agree. In messages, ``name`` replaces
    the path of the file.

    Raises:
        ModelError: the file is missing, is not XML or has no <robot>, or a joint position is not a number.
    """
    root, source, warnings = parse_xml(path_or_text, "SRDF", name)
    document.warnings += warnings
    if local_name(root) != "robot":
        raise source.error(
            f"the outermost element is <{local_name(root)}>, but an SRDF file contains one <robot>", root
        )
    result = Semantics()
    for element in root:
        tag = local_name(element) if isinstance(element.tag, str) else ""
        if tag == "group_state":
            _group_state(result, source, document, element)
        elif tag == "disable_collisions":
            names = [element.get("link1"), element.get("link2")]
            unknown = [name for name in names if name not in document.link_labels]
            if unknown:
                document.warn(f"<disable_collisions>: no link is called {unknown[0]!r}; it is ignored", "contact")
            else:
                result.excluded_pairs.add(frozenset(document.link_labels[name] for name in names))
    return result


def _group_state(result: Semantics, source: Source, document: Document, element: Element) -> None:
    name, group = element.get("name") or "state", element.get("group") or ""
    positions: dict[str, float] = {}
    movable = {joint.get("name") for joint in document.robot.findall("joint") if joint.get("type") in SINGLE_AXIS}
    for joint in element:
        if not isinstance(joint.tag, str) or local_name(joint) != "joint":
            continue
        label, text = joint.get("name") or "", (joint.get("value") or "").strip()
        if label not in document.joint_labels and (root := _root_pose(text)) is not None:
            result.roots[name] = root
            continue
        if label not in document.joint_labels:
            # Unknown joints are not an error, since SRDF files have virtual joints and often describe several robots.
            document.warn(f"pose {name!r}: {unknown_name('joint', label, document.joint_labels)}; it is ignored")
            continue
        values = [_number(word) for word in text.split()]
        if document.joint_labels[label] not in movable:
            document.warn(f"pose {name!r}: joint {label!r} is not a joint with one axis; its position is ignored")
        elif len(values) != 1 or values[0] is None:
            raise source.error(f'group_state {name!r}: joint {label!r}: value="{text}" must be one number', joint)
        else:
            positions[document.joint_labels[label]] = values[0]
    if not positions and name not in result.roots:
        return
    known = result.poses.setdefault(name, {})
    if any(known.get(label, position) != position for label, position in positions.items()):
        name = f"{group}/{name}"  # groups with contradictory positions
        known = result.poses.setdefault(name, {})
    known.update(positions)


def _root_pose(text: str) -> Transform | None:
    """Return the root link's world pose from a text (position, quaternion x y z w), or None if the text is invalid."""
    values = [number for word in text.split() if (number := _number(word)) is not None and math.isfinite(number)]
    return Transform(values[:3], values[3:]) if len(values) == 7 and any(values[3:]) else None


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
