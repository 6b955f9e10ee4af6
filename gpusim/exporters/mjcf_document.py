"""MJCF document that an export builds, with exact numbers and unique names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import numpy as np

from gpusim.exporters.report import ExportReport
from gpusim.model.model import Model
from gpusim.transform import Transform

# MuJoCo needs both ends of a range. This number replaces an infinite limit.
MAX_LIMIT = 1e10


def text(value: Any) -> str:
    """Convert a value to XML text without rounding."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Iterable):
        return " ".join(text(item) for item in value)
    number = float(value)
    return repr(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def pose(transform: Transform) -> dict[str, Any]:
    """Return the XML attributes of a pose. A zero position or rotation gets no attribute."""
    x, y, z, w = (float(v) for v in transform.rotation)
    result: dict[str, Any] = {}
    if np.any(transform.position):
        result["pos"] = transform.position
    if x or y or z:
        result["quat"] = (w, x, y, z)
    return result


@dataclass
class Coordinate:
    """A joint coordinate in the file: name of the hinge, slide or tendon, and the coordinate's starting position.

    ``rope`` is True for a spatial tendon.
    """

    name: str
    start: float
    rope: bool = False


@dataclass
class Document:
    """MJCF document of an export.

    Attributes:
        model: the model to export.
        report: receives findings.
        bodies: body index (-1 for the world) -> XML element of the body.
        coordinates: (joint index, coordinate index) -> coordinate in the file.
        qpos, qvel: initial positions and velocities of all coordinates, in the order of the file.
        ctrl: initial commands of the actuators.
        qpos_index: ("joint" or "body", label) -> first index in ``qpos``, for joints and floating bodies.
        inputs: command -> index of the actuator that receives the command.
        act: initial activations.
        activations: command -> index in ``act``.
        paths: joint index -> path elements (tag, attributes) of the spatial tendon.
    """

    model: Model
    report: ExportReport
    root: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("mujoco"))
    bodies: dict[int, ElementTree.Element] = field(default_factory=dict)
    coordinates: dict[tuple[int, int], Coordinate] = field(default_factory=dict)
    qpos: list[float] = field(default_factory=list)
    qvel: list[float] = field(default_factory=list)
    ctrl: list[float] = field(default_factory=list)
    qpos_index: dict[tuple[str, str], int] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    act: list[float] = field(default_factory=list)
    activations: dict[str, int] = field(default_factory=dict)
    paths: dict[int, list[tuple[str, dict[str, str]]]] = field(default_factory=dict)
    _names: set[tuple[str, str]] = field(default_factory=lambda: {("body", "world")})

    def section(self, name: str) -> ElementTree.Element:
        """Return a section below the root element, and create the section if it does not exist."""
        found = self.root.find(name)
        return ElementTree.SubElement(self.root, name) if found is None else found

    def find(self, section: str, name: str, tag: str | None = None) -> ElementTree.Element | None:
        """Return the element of a section with a name. ElementTree's paths do not support quotes in names."""
        return next((element for element in self.section(section).iter(tag) if element.get("name") == name), None)

    def add(self, parent: ElementTree.Element, tag: str, **attributes: Any) -> ElementTree.Element:
        """Add an XML element. Attributes with the value None are omitted. Underscores make a repeated name unique."""
        present = {name.rstrip("_"): value for name, value in attributes.items() if value is not None}
        if "name" in present:
            present["name"] = self.name(_SPACES.get(tag, tag), present["name"])
        return ElementTree.SubElement(parent, tag, {name: text(value) for name, value in present.items()})

    def name(self, space: str, name: str) -> str:
        """Return ``name``. If the name already exists, append underscores."""
        while (space, name) in self._names:
            name += "_"
        self._names.add((space, name))
        return name

    def site(self, body: int, frame: Transform, name: str) -> str:
        """Add a site and return its name."""
        element = self.add(self.bodies[body], "site", name=name, **pose(frame))
        return str(element.get("name"))

    def report_loss(self, element: str, what: str, fix: str = "") -> None:
        """Report a feature that affects the motion and that MJCF cannot represent."""
        self.report.add("motion", element, what, "it is not in the file", fix)


_SPACES = {
    "freejoint": "joint",
    "fixed": "tendon",
    "spatial": "tendon",
    "connect": "equality",
    "weld": "equality",
    "motor": "actuator",
    "general": "actuator",
}


def finite_limits(lower: float, upper: float) -> tuple[float, float] | None:
    """Return the limits with ``MAX_LIMIT`` instead of infinity, or None if both limits are infinite."""
    if math.isinf(lower) and math.isinf(upper):
        return None
    return max(lower, -MAX_LIMIT), min(upper, MAX_LIMIT)
