"""What an importer tells about the model that it read: warnings, merged links, limits, names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class JointLimits(NamedTuple):
    """Greatest effort and speed of a joint as its file gives them; ``inf`` where it gives none.

    Attributes:
        effort: N m for a turning joint, N for a sliding one.
        velocity: rad/s for a turning joint, m/s for a sliding one.
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
        label: label of the joint in the model (its name in the file).
        index: what the builder returned for it.
        kind: type in the file: "revolute", "continuous", "prismatic", "fixed", "floating" or "planar".
        parent: label of the body that carries it, "world" for the world.
        child: label of the body that it moves.
        lower, upper: position limits (rad or m), infinite where there are none.
        limits: greatest effort and velocity.
        damping: N m s/rad or N s/m.
        friction: dry friction, N m or N.
        mimic: the joint that it follows, or None.
        initial_position: position (rad or m) in the imported pose; not 0 only for followers with an offset.
        load_inertia: inertia about the joint's axis (kg m2; for a sliding joint the mass, kg) of all bodies
            that the joint carries, in the imported pose: a scale for gains.
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
    """What came out of an import.

    Attributes:
        source: the file name, or a few words for text that was given directly.
        robot_name: name of the robot in the file.
        base_link: name of the root link.
        base_joint: label of the joint between the world and the base; None if the file's own root is the world.
        fixed_base: True if the base is fixed to the world.
        total_mass: mass of all bodies (kg), repaired values included.
        added_mass: the part of it (kg) that repairs put in.
        warnings: one sentence for every fact that was repaired, ignored or guessed; where several links or joints share
            it, it tells of the first and names the others (``one_for_each_fact``).
        merged: link name -> label of the body that it became a part of.
        link_frames: link name -> (4, 4) pose of the link's frame in the frame of its body; every link has one.
        shapes: link name -> indices of its shapes in the builder.
        overlaps: pairs of links -> by how much (m) they overlap in the imported pose, where shapes of the robot may
            touch each other; these may not.
        visuals: link name -> indices of its visuals in the builder.
        triangles: how many a picture of all visuals has, with 32 around a circle.
        joints: joint label -> JointInfo, in the order of the builder.
        joint_limits: joint label -> (effort, velocity) of every movable joint.
        ignored: element name -> how many of them the importer passed over.
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
        """Label of the body that carries ``link``: itself unless it was merged ("world" for a world root).

        Raises:
            UnknownNameError: no such link in the file.
        """
        from gpusim.errors import unknown_name

        if link not in self.link_frames:
            raise unknown_name("link", link, self.link_frames)
        return self.merged.get(link, link)

    def summary(self) -> str:
        """A few lines for people: what was read, what was merged, and every warning."""
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


# What may differ between sentences about one fact: names, numbers, and what stands in brackets.
_DETAILS = re.compile(r""" \([^()]*\)|'[^']*'|"[^"]*"|[-+]?\b(?:\d[\w.+-]*|inf|nan)\b""")


def one_for_each_fact(sentences: Iterable[str], shown: int = 3) -> list[str]:
    """Sentences that differ in names and numbers alone as one: the first, and "; also 'b', 'c' and 4 more"."""
    facts: dict[str, dict[str, str]] = {}
    for sentence in sentences:
        name = re.search("'[^']*'", sentence)
        fact, who = _DETAILS.sub("", sentence), name.group() if name else ""
        facts.setdefault(fact if name else sentence, {}).setdefault(who, sentence)
    return [next(iter(told.values())) + _likewise(list(told)[1:], shown) for told in facts.values()]


def _likewise(names: list[str], shown: int) -> str:
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
