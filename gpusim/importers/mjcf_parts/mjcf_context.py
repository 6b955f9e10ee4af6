"""Data that all modules of the MJCF importer share: MuJoCo model, builder, report, and maps between their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.description.specs import WORLD
from gpusim.importers.report import CommandInfo, ImportReport
from gpusim.transform import Transform
from gpusim.typing import Array

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3
"""Values of mjtJoint."""

NAMED_IN_FINDINGS = 3
_PLURALS = {"body": "bodies", "equality": "equalities", "flex": "flexes"}


@dataclass(frozen=True)
class Options:
    """Arguments of ``load_mjcf``. If ``mount`` is True, a fixed base becomes a body with a fixed joint to the world.

    During the import, ``xform`` only rotates actuator wrenches in world axes. After the import, ``move_builder`` moves
    the model by ``xform``.
    """

    fixed_base: bool | None = None
    gravity: Any = None
    merge_fixed: bool = True
    keep: Sequence[str] = ()
    collisions: bool = True
    self_collisions: bool | None = None
    visuals: bool = True
    visual_groups: Sequence[int] = (0, 1, 2)
    meshes: str = "hull"
    actuators: bool = True
    switchable: Sequence[str] = ()
    mount: bool = False
    xform: Transform = Transform()


@dataclass(frozen=True)
class Coordinate:
    """Joint and coordinate of the builder that represent one MuJoCo joint.

    Attributes:
        index: index of the joint in the builder.
        label: label of the joint in the builder.
        axis: index of the coordinate in the joint.
    """

    index: int
    label: str
    axis: int = 0


@dataclass
class Losses:
    """Findings about elements of the file: one finding for each problem, with all affected elements."""

    facts: dict[tuple[str, str, str, str, str], list[str]] = field(default_factory=dict)

    def add(self, severity: str, kind: str, name: str, what: str, effect: str = "", fix: str = "") -> None:
        """Add the element ``name`` to the finding about the problem ``what``."""
        self.facts.setdefault((severity, kind, what, effect, fix), []).append(name)

    def write(self, report: ImportReport) -> None:
        """Write one finding for each problem to the report."""
        for (severity, kind, what, effect, fix), names in self.facts.items():
            quoted = ", ".join(f"'{name}'" for name in names[:NAMED_IN_FINDINGS] if name)
            hidden = len(names) - NAMED_IN_FINDINGS
            text = f"{_PLURALS.get(kind, kind + 's') if len(names) > 1 else kind} {quoted}" + (
                f" and {hidden} more" if hidden > 0 else ""
            )
            report.add(severity, text if quoted else kind, what, effect, fix)


class Context:
    """State of one import.

    Attributes:
        mj: the package ``mujoco``.
        m: the MjModel.
        at_zero, now: MjData with kinematics, at qpos0 (``at_zero``) and in the starting posture (``now``).
        placements: MuJoCo body -> (body index in the builder, pose). The index is -1 for the world. The pose of the
            MuJoCo body is in the frame of the builder's body.
        members: body index in the builder -> indices of the MuJoCo bodies in this body. The first index is the main
            body. All other bodies are merged into the main body.
        labels: MuJoCo body -> label in the builder. Merged bodies have no label.
        joint_labels: MuJoCo joint -> joint label in the report.
        coordinates: MuJoCo joint -> :class:`Coordinate` with the builder's joint.
        tendons: MuJoCo tendon -> joint index in the builder.
        offsets: MuJoCo tendon -> constant difference (m): tendon length minus the coordinate of the builder's joint.
        shapes: MuJoCo geom -> index of its first shape.
        parts: MuJoCo geom -> indices of all its shapes. A decomposed mesh has several shapes.
        pieces: MuJoCo mesh -> triangles that the viewer draws.
        actuators: number of actuators.
        controls: pairs (index in MuJoCo's ctrl, command in the model).
        activations: tuples (index in MuJoCo's act, command in the model, minimum activation, maximum activation).
    """

    def __init__(self, mj: ModuleType, model: Any, options: Options, builder: ModelBuilder, report: ImportReport):
        self.mj, self.m, self.options = mj, model, options
        self.builder, self.report, self.losses = builder, report, Losses()
        self.at_zero, self.now = mj.MjData(model), mj.MjData(model)
        self.placements: dict[int, tuple[int, Transform]] = {0: (WORLD, Transform())}
        self.members: dict[int, list[int]] = {}
        self.labels: dict[int, str] = {}
        self.joint_labels: dict[int, str] = {}
        self.coordinates: dict[int, Coordinate] = {}
        self.tendons: dict[int, int] = {}
        self.offsets: dict[int, float] = {}
        self.shapes: dict[int, int] = {}
        self.parts: dict[int, list[int]] = {}
        self.pieces: dict[int, Any] = {}
        self.actuators = int(getattr(model, "nactuator", model.nu))
        self.controls: list[tuple[int, CommandInfo]] = []
        self.activations: list[tuple[int, str, float, float]] = []
        self._used: dict[str, set[str]] = {}

    def is_disabled(self, *names: str) -> bool:
        """Return True if the file disables at least one of the MuJoCo features ``names``, such as "LIMIT"."""
        bits = self.mj.mjtDisableBit
        passive = getattr(bits, "mjDSBL_PASSIVE", 0)  # one flag for springs and dampers before MuJoCo 3.4
        return any(int(self.m.opt.disableflags) & int(getattr(bits, f"mjDSBL_{name}", passive)) for name in names)

    def is_passive_disabled(self) -> bool:
        """Return True if the file disables springs and dampers. MuJoCo then also disables drag and gravcomp."""
        return self.is_disabled("SPRING") and self.is_disabled("DAMPER")

    def gravcomp(self) -> Array:
        """Return ``gravcomp`` of all bodies, or zeros if MuJoCo ignores ``gravcomp``."""
        values = np.array(self.m.body_gravcomp)
        return values if np.any(values > 0.0) and not self.is_passive_disabled() else np.zeros_like(values)

    def field(self, name: str, default: Any = 0.0) -> Any:
        """Return a field of the model, or ``default`` if the installed MuJoCo version lacks the field."""
        return getattr(self.m, name, default)

    def name(self, kind: str, index: int) -> str:
        """Return the name of an element in the file. For an unnamed element, return a generated name such as "body3".

        ``kind`` is the element's kind as in mjtObj, such as "BODY".
        """
        number = getattr(self.mj.mjtObj, f"mjOBJ_{kind}")
        name = self.mj.mj_id2name(self.m, number, index)
        if name:
            return str(name)
        name = f"{kind.lower()}{index}"
        while self.mj.mj_name2id(self.m, number, name) >= 0:
            name += "_"
        return name

    def label(self, space: str, text: str) -> str:
        """Convert a name to an unused label without dots and spaces. ``space`` is a name space of the builder."""
        label, used = clean_label(text, space), self._used.setdefault(space, set())
        while label in used:
            label += "_"
        used.add(label)
        return label

    def report_loss(self, severity: str, kind: str, index: int, what: str, effect: str = "", fix: str = "") -> None:
        """Add a finding about element ``index``."""
        self.losses.add(severity, kind.lower(), self.name(kind, index), what, effect, fix)

    def limited(self, flag: Any, bounds: Any) -> tuple[float, float]:
        """Return ``bounds`` (lower, upper), or infinite bounds if ``flag`` is false."""
        if not flag:
            return -math.inf, math.inf
        lower, upper = sorted(float(x) for x in bounds)
        return lower, upper

    def site(self, site: int) -> tuple[int, Transform]:
        """Return the body index in the builder for a MuJoCo site, and the pose of the site in the body's frame."""
        body, pose = self.placements[int(self.m.site_bodyid[site])]
        return body, pose * frame(self.m.site_pos[site], self.m.site_quat[site])

    def subtree(self, b: int) -> list[int]:
        """Return a MuJoCo body and all its descendants in the tree."""
        bodies = {b}
        for child in range(b + 1, self.m.nbody):  # parents come first
            if int(self.m.body_parentid[child]) in bodies:
                bodies.add(child)
        return sorted(bodies)


def clean_label(text: str, default: str) -> str:
    """Replace dots, spaces and control characters by ``_``. An empty text becomes ``default``."""
    return "".join(c if c.isprintable() and not c.isspace() and c != "." else "_" for c in text) or default


def frame(position: Any, quaternion: Any) -> Transform:
    """Return a pose from MuJoCo's position and quaternion (w, x, y, z)."""
    w, x, y, z = (float(c) for c in quaternion)
    return Transform(vector(position), (x, y, z, w))


def vector(values: Any) -> tuple[float, ...]:
    """Return a tuple of floats."""
    return tuple(float(x) for x in values)


def rotation_about(axis: Any, angle: float) -> Transform:
    """Return a rotation about an axis through the origin."""
    return Transform.from_axis_angle((0.0, 0.0, 0.0), vector(axis), angle)


def shift(offset: Any) -> Transform:
    """Return a translation."""
    return Transform(vector(offset))
