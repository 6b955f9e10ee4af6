"""Report of an import: warnings, merged links, limits, names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class JointLimits(NamedTuple):
    """Effort and velocity limits of a joint in the file, ``inf`` if missing.

    Attributes:
        effort: N m for a revolute joint, N for a prismatic joint.
        velocity: rad/s for a revolute joint, m/s for a prismatic joint.
    """

    effort: float = math.inf
    velocity: float = math.inf


class Mimic(NamedTuple):
    """A joint that follows another one: ``position = multiplier * position_of_leader + offset``."""

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class JointInfo:
    """One joint of the imported model.

    Attributes:
        label: label of the joint in the model.
        index: joint index in the builder.
        kind: type in the file: "revolute", "continuous", "prismatic", "fixed", "floating" or "planar".
        parent: label of the parent body, or "world".
        child: label of the child body.
        lower, upper: position limits (rad or m), infinite if unlimited.
        limits: effort and velocity limits.
        damping: N m s/rad or N s/m.
        friction: dry friction, N m or N.
        mimic: the joint that it follows, or None.
        initial_position: position (rad or m) in the imported pose, nonzero only for followers with an offset.
        load_inertia: inertia about the joint's axis (kg m2) of all bodies behind it, in the imported pose. For a
            prismatic joint it is their mass (kg). Use it to scale gains.
    """

    label: str
    index: int
    kind: str
    parent: str
    child: str
    lower: float = -math.inf
    upper: float = math.inf
    limits: JointLimits = JointLimits()
    damping: float = 0.0
    friction: float = 0.0
    mimic: Mimic | None = None
    initial_position: float = 0.0
    load_inertia: float = 0.0


@dataclass
class ImportReport:
    """Result of an import.

    Attributes:
        source: the file name, or a short description of text input.
        robot_name: name of the robot in the file.
        base_link: name of the root link.
        base_joint: label of the joint between the world and the base, or None if the root link is the world.
        fixed_base: True if the base is fixed to the world.
        total_mass: mass of all bodies (kg), including repaired values.
        added_mass: mass (kg) that repairs added.
        warnings: one sentence for each repair, ignored element or guess. If several links or joints share a fact, the
            sentence describes the first and names the others (``one_for_each_fact``).
        merged: link name -> label of the body that it was merged into.
        link_frames: link name -> (4, 4) pose of the link's frame in the frame of its body, for every link.
        shapes: link name -> indices of its shapes in the builder.
        overlaps: pairs of links -> overlap (m) in the imported pose. With self-collisions on, these pairs are excluded.
        visuals: link name -> indices of its visuals in the builder.
        triangles: number of triangles of all visuals, with 32 segments around a circle.
        joints: joint label -> JointInfo, in the order of the builder.
        joint_limits: joint label -> (effort, velocity) of every movable joint.
        ignored: element name -> number of ignored elements.
    """

    source: str
    robot_name: str
    base_link: str
    base_joint: str | None
    fixed_base: bool
    total_mass: float = 0.0
    added_mass: float = 0.0
    warnings: list[str] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    link_frames: dict[str, np.ndarray] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    overlaps: dict[tuple[str, str], float] = field(default_factory=dict)
    visuals: dict[str, list[int]] = field(default_factory=dict)
    triangles: int = 0
    joints: dict[str, JointInfo] = field(default_factory=dict)
    joint_limits: dict[str, JointLimits] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)

    def body_of(self, link: str) -> str:
        """Return the label of the body that contains ``link``. It is "world" for a root link that is the world.

        Raises:
            UnknownNameError: no such link in the file.
        """
        from gpusim.errors import unknown_name

        if link not in self.link_frames:
            raise unknown_name("link", link, self.link_frames)
        return self.merged.get(link, link)

    def summary(self) -> str:
        """Return a short text: bodies, masses, shapes, merged links and every warning."""
        movable = [joint for joint in self.joints.values() if joint.kind != "fixed"]
        bodies = len(self.link_frames) - len(self.merged)
        base = "fixed to the world" if self.fixed_base else "floating"
        lines = [
            f"{self.robot_name} from {self.source}: {_count(bodies, 'body', 'bodies')}, "
            f"{_count(len(movable), 'movable joint')}, {self.total_mass:.6g} kg, base {self.base_link!r} {base}"
        ]
        for found, what, more in (
            (self.shapes, "collision shape", ""),
            (self.visuals, "visual", f", {_count(self.triangles, 'triangle')}"),
        ):
            if found:
                number = sum(map(len, found.values()))
                lines.append(f"  {_count(number, what)} on {_count(len(found), 'link')}{more}")
        if self.merged:
            lines.append(f"  {_count(len(self.merged), 'link')} merged: {_merged_line(self.merged)}")
        if self.ignored:
            parts = ", ".join(f"{number} <{tag}>" for tag, number in sorted(self.ignored.items()))
            lines.append(f"  not imported: {parts}")
        lines += [f"  warning: {text}" for text in self.warnings]
        return "\n".join(lines)


# Details that may differ between sentences about one fact: names, numbers, and text in brackets.
_DETAILS = re.compile(r""" \([^()]*\)|'[^']*'|"[^"]*"|[-+]?\b(?:\d[\w.+-]*|inf|nan)\b""")


def one_for_each_fact(sentences: Iterable[str], shown: int = 3) -> list[str]:
    """Merge sentences that differ only in names and numbers: the first sentence, plus the other names."""
    facts: dict[str, dict[str, str]] = {}
    for sentence in sentences:
        name = re.search("'[^']*'", sentence)
        fact, who = _DETAILS.sub("", sentence), name.group() if name else ""
        facts.setdefault(fact if name else sentence, {}).setdefault(who, sentence)
    return [next(iter(reported.values())) + _others(list(reported)[1:], shown) for reported in facts.values()]


def _others(names: list[str], shown: int) -> str:
    if not names:
        return ""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"; also {', '.join(names[:shown])}{more}"


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def _merged_line(merged: Mapping[str, str], shown: int = 3) -> str:
    groups: dict[str, list[str]] = {}
    for link, body in merged.items():
        groups.setdefault(body, []).append(link)
    texts = []
    for body, links in list(groups.items())[:shown]:
        more = f" and {len(links) - shown} more" if len(links) > shown else ""
        texts.append(f"{', '.join(links[:shown])}{more} into {body!r}")
    return "; ".join(texts) + ("; ..." if len(groups) > shown else "")
