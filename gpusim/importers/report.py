"""Report of an import: findings, merged links, joint limits, commands and names."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from gpusim.errors import ModelError, unknown_name
from gpusim.importers.sensor_info import SensorInfo
from gpusim.output_files import finite_json
from gpusim.transform import Transform, homogeneous_matrix

SEVERITIES = ("motion", "contact", "look", "info")


@dataclass(frozen=True)
class Finding:
    """A difference between file and model: an element that the import changed, repaired or omitted.

    Attributes:
        severity: "motion" (changes the motion even without contacts), "contact" (changes only contacts), "look"
            (changes only the appearance) or "info" (no effect, for example a corrected typo).
        element: type and name in the file, for example "joint 'knee'", or empty for the file itself.
        what: what the file contains.
        effect: how the model differs from the file, or empty.
        fix: how you can avoid the difference, or empty.
    """

    severity: str
    element: str
    what: str
    effect: str = ""
    fix: str = ""

    @property
    def sentence(self) -> str:
        """Return the finding as one line: element, what, effect and fix."""
        text = "; ".join(text for text in (self.what, self.effect, self.fix) if text)
        return f"{self.element}: {text}" if self.element else text


@dataclass(frozen=True)
class CommandInfo:
    """Linear rule that converts an actuator value in the file's units to a command of the model.

    Set ``sim.control[command] = factor * clip(value, lower, upper) + offset``, where ``value`` is in the file's units.

    Attributes:
        command: name in ``sim.control``.
        factor, offset: linear map from a value in the file's units to the command.
        lower, upper: range of ``value`` in the file's units, infinite if unlimited.
    """

    command: str
    factor: float = 1.0
    offset: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf

    def value(self, control: Any) -> Any:
        """Return the command for a value (or an array of values) in the file's units."""
        return self.factor * np.clip(control, self.lower, self.upper) + self.offset


class JointLimits(NamedTuple):
    """Effort and velocity limits of a joint in the file. A missing limit is ``inf``.

    Attributes:
        effort: maximum torque (N m) of a revolute joint, or maximum force (N) of a prismatic joint.
        velocity: maximum speed, in rad/s for a revolute joint and m/s for a prismatic joint.
    """

    effort: float = math.inf
    velocity: float = math.inf


class Mimic(NamedTuple):
    """Rule of a joint that follows a leader joint: ``position = multiplier * position_of_leader + offset``.

    For a polynomial rule, ``Mimic`` contains only the constant and linear coefficients. The model has the whole
    polynomial.
    """

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class JointInfo:
    """One joint of the imported model.

    Attributes:
        label: label of the joint in the model.
        index: joint index in the builder.
        kind: type in the file, such as "revolute", "continuous", "prismatic", "fixed", "floating" or "ball".
        parent: label of the parent body, or "world".
        child: label of the child body.
        lower, upper: position limits (rad or m), infinite if unlimited.
        limits: effort and velocity limits.
        damping: viscous damping (N m s/rad or N s/m).
        friction: dry friction (N m or N).
        mimic: the joint that this joint follows, or None.
        initial_position: position (rad or m) in the imported pose.
        load_inertia: inertia or mass that the joint moves in the imported pose, for the choice of servo gains. For a
            revolute joint, the load is the inertia (kg m2) of all bodies that the joint moves, about the joint axis.
            For a prismatic joint, the load is the mass (kg) of all bodies that the joint moves.
        axis: index of the coordinate in the builder's joint, usually 0. An MJCF body with several joints can get one
            joint with several coordinates.
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
    axis: int = 0


class Findings:
    """Base class of reports: a list of findings."""

    findings: list[Finding]

    def add(self, severity: str, element: str, what: str, effect: str = "", fix: str = "") -> None:
        """Add a finding, see :class:`Finding`."""
        if severity not in SEVERITIES:
            raise ValueError(f"severity {severity!r} is unknown; give one of {', '.join(SEVERITIES)}")
        self.findings.append(Finding(severity, element, what, effect, fix))

    @property
    def exact(self) -> bool:
        """Return True if no finding has severity "motion". The model then moves as the file describes."""
        return not any(finding.severity == "motion" for finding in self.findings)

    @property
    def warnings(self) -> list[str]:
        """Return the findings as sentences. A sentence combines similar findings, and names up to four elements."""
        return merge_similar_sentences(finding.sentence for finding in self.findings)

    def first_loss(self) -> str:
        """Return a text with the first "motion" finding and the number of other "motion" findings, or an empty text."""
        losses = merge_similar_sentences(finding.sentence for finding in self.findings if finding.severity == "motion")
        return losses[0] + (f" (and {len(losses) - 1} more)" if len(losses) > 1 else "") if losses else ""


@dataclass(repr=False)
class ImportReport(Findings):
    """Result of an import.

    Attributes:
        source: the file name, or a short description of text input.
        robot_name: name of the robot in the file.
        base_link: name of the root link.
        base_joint: label of the fixed or free joint between the world and the base. None if a different joint, such as
            a hinge, connects the base.
        fixed_base: True if a joint such as a weld or a hinge connects the base to the world, False if the base floats.
        total_mass: mass of all bodies (kg), including repaired values.
        added_mass: total mass (kg) that repairs added.
        findings: all changes, repairs and ignored elements, in the order of the import.
        merged: name of a merged link -> label of the body that now contains the link.
        link_frames: link name -> (4, 4) pose of the link's frame in the frame of the link's body.
        shapes: link name -> indices of its shapes in the builder.
        overlaps: pair of links -> overlap (m) in the imported pose. Overlapping links never collide, even if
            self-collisions are enabled.
        visuals: link name -> indices of its visuals in the builder.
        triangles: number of triangles of all visuals. Circles have 32 segments.
        joints: joint label -> JointInfo, in the order of the builder's joints.
        joint_limits: joint label -> (effort, velocity) of every movable joint.
        ignored: element name, such as "sensor" -> number of ignored elements.
        commands: actuator in the file -> its command in the model.
        poses: labels of the postures, in the order of the file. ``sim.reset(pose=label)`` starts in a posture.
        cameras: labels of the cameras from the file.
        sensors: sensor in the file -> signal in the model. ``report.sensors["gyro"].read(sim)`` returns the value of a
            sensor.
    """

    source: str
    robot_name: str
    base_link: str
    base_joint: str | None
    fixed_base: bool
    total_mass: float = 0.0
    added_mass: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    link_frames: dict[str, np.ndarray] = field(default_factory=dict)
    shapes: dict[str, list[int]] = field(default_factory=dict)
    overlaps: dict[tuple[str, str], float] = field(default_factory=dict)
    visuals: dict[str, list[int]] = field(default_factory=dict)
    triangles: int = 0
    joints: dict[str, JointInfo] = field(default_factory=dict)
    joint_limits: dict[str, JointLimits] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    commands: dict[str, CommandInfo] = field(default_factory=dict)
    poses: list[str] = field(default_factory=list)
    cameras: list[str] = field(default_factory=list)
    sensors: dict[str, SensorInfo] = field(default_factory=dict)

    def displace(self, pose: Transform) -> None:
        """Apply the displacement ``pose`` to all sensors, and to all links merged into the world."""
        matrix = homogeneous_matrix(pose)
        for link in [link for link, body in self.merged.items() if body == "world"]:
            self.link_frames[link] = matrix @ self.link_frames[link]
        self.sensors = {name: sensor.moved("", pose) for name, sensor in self.sensors.items()}

    def add_mimic(
        self, follower: tuple[int, int], leader: tuple[int, int], multiplier: float, offset: float = 0.0
    ) -> None:
        """Store that ``follower`` mimics ``leader``. Both are pairs (joint index, coordinate index)."""
        names = {(info.index, info.axis): name for name, info in self.joints.items()}
        if follower in names and leader in names:
            name, mimic = names[follower], Mimic(names[leader], multiplier, offset)
            self.joints[name] = replace(self.joints[name], mimic=mimic)

    def __repr__(self) -> str:
        """Return one line: the source, and the numbers of bodies, joints and findings."""
        movable = sum(joint.kind != "fixed" for joint in self.joints.values())
        parts = [_count(len(self.link_frames) - len(self.merged), "body", "bodies"), _count(movable, "movable joint")]
        counts = Counter(finding.severity for finding in self.findings)
        severities = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES if counts[severity])
        parts.append(_count(len(self.findings), "finding") + (f" ({severities})" if severities else ""))
        return f"<ImportReport of {self.source}: {', '.join(parts)}>"

    def warn(self, text: str, severity: str = "info") -> None:
        """Add a finding from a sentence "element: what; effect; fix"."""
        element, colon, message = text.partition(": ")
        if not colon or ";" in element:
            element, message = "", text
        self.add(severity, element, *message.split("; ", 2))

    def raise_if_not_exact(self) -> None:
        """Raise an error for the first finding of severity "motion". Importers call it with ``strict=True``.

        Raises:
            ModelError: a finding has severity "motion".
        """
        if loss := self.first_loss():
            raise ModelError(f"{self.source}: {loss}; omit strict=True to import it anyway")

    def json(self) -> str:
        """Return the report as JSON text, with null instead of infinite numbers."""
        frames = {link: frame.tolist() for link, frame in self.link_frames.items()}
        overlaps = [[a, b, depth] for (a, b), depth in self.overlaps.items()]
        limits = {label: limit._asdict() for label, limit in self.joint_limits.items()}
        content = asdict(self) | {"link_frames": frames, "overlaps": overlaps, "joint_limits": limits}
        content |= {"exact": self.exact, "ignored": dict(self.ignored)}
        return json.dumps(finite_json(content), indent=2)

    def body_of(self, link: str) -> str:
        """Return the label of the body that contains ``link``, or "world" for a link that is part of the world.

        Raises:
            UnknownNameError: the file has no link with the name ``link``.
        """
        if link not in self.link_frames:
            raise unknown_name("link", link, self.link_frames)
        return self.merged.get(link, link)

    def summary(self) -> str:
        """Return a short text: bodies, masses, shapes, merged links and all warnings."""
        movable = [joint for joint in self.joints.values() if joint.kind != "fixed"]
        bodies = len(self.link_frames) - len(self.merged)
        base = "fixed to the world" if self.fixed_base else "floating"
        lines = [
            f"{self.robot_name} from {self.source}: {_count(bodies, 'body', 'bodies')}, "
            f"{_count(len(movable), 'movable joint')}, {self.total_mass:.6g} kg, base {self.base_link!r} {base}"
        ]
        for indices, what, more in (
            (self.shapes, "collision shape", ""),
            (self.visuals, "visual", f", {_count(self.triangles, 'triangle')}"),
        ):
            if indices:
                number = sum(map(len, indices.values()))
                lines.append(f"  {_count(number, what)} on {_count(len(indices), 'link')}{more}")
        if self.merged:
            lines.append(f"  {_count(len(self.merged), 'link')} merged: {_merged_line(self.merged)}")
        if self.ignored:
            parts = ", ".join(f"{number} <{tag}>" for tag, number in sorted(self.ignored.items()))
            lines.append(f"  not imported: {parts}")
        lines += [f"  warning: {text}" for text in self.warnings]
        return "\n".join(lines)


def combined(reports: Sequence[ImportReport]) -> ImportReport | None:
    """Combine several reports, each about one model of a file, into one report."""
    if len(reports) < 2:
        return reports[0] if reports else None
    result = ImportReport("", "", "", None, all(report.fixed_base for report in reports))
    for name in ("source", "robot_name", "base_link"):
        setattr(result, name, ", ".join(dict.fromkeys(getattr(report, name) for report in reports)))
    for part in fields(result):
        values = [getattr(report, part.name) for report in reports]
        if part.name == "ignored":
            result.ignored = dict(sum((Counter(value) for value in values), Counter()))
        elif isinstance(values[0], Mapping):
            setattr(result, part.name, {key: item for value in values for key, item in value.items()})
        elif isinstance(values[0], list):
            setattr(result, part.name, [item for value in values for item in value])
        elif isinstance(values[0], int | float) and part.name != "fixed_base":
            setattr(result, part.name, sum(values))
    return result


# Text that may differ between sentences about the same fact: names, numbers, and text in brackets.
_DETAILS = re.compile(r""" \([^()]*\)|'[^']*'|"[^"]*"|[-+]?\b(?:\d[\w.+-]*|inf|nan)\b""")


def merge_similar_sentences(sentences: Iterable[str], shown: int = 3) -> list[str]:
    """Merge sentences that differ only in names and numbers.

    The merged sentence ends with up to ``shown`` names from the other sentences.
    """
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
