"""Conversion of values in machine files to arguments of builder methods: labels to indices, mappings to objects."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpusim
from gpusim import machines, validate
from gpusim.control.yaml_text import line
from gpusim.errors import GpusimError, ModelError, unknown_name
from gpusim.machine_files.expressions import evaluate, filled
from gpusim.transform import Transform

POSE_KEYS = ("position", "rotation", "rpy", "axis", "angle", "in")
RECORDS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(gpusim, name) for name in ("Material", "ContactLaw", "Tire", "Rays", "BumpStop", "Wrap", "Pulley")
    },
    **{f"Rays.{name}": getattr(gpusim.Rays, name) for name in ("line", "fan", "grid", "camera")},
    **{name: found for name in machines.__all__ if inspect.isclass(found := getattr(machines, name))},
}
"""Objects that a mapping in a file can create, such as "Material": class name -> constructor."""
_ALIASES = {
    "Springs": ("Coil", "TorsionBar"),
    "WheelDrive": ("DcMotor", "SpeedDrive", "TorqueDrive"),
}
"""Argument types that accept several classes: name in the annotation -> class names."""
_POSES = ("Transform", "Anchor")
_JOINTS = {"joint", "joints", "joint_a", "joint_b", "leader", "left", "right", "shaft", "terms"}
_BODIES = {"parent", "child", "body", "body_a", "body_b", "hub", "chassis", "upper", "base", "platform", "tractor"}
_SPACES = {
    **dict.fromkeys(_JOINTS, "joint"),
    **dict.fromkeys((*_BODIES, "trailer", "side_body", "path"), "body"),
    **dict.fromkeys(("shape_a", "shape_b"), "shape"),
    "site": "site",
}
"""Arguments that accept a label: argument name -> type of the labeled element."""
_FILES = ("mesh", "file", "path", "source")


def names_of(annotation: Any) -> set[str]:
    """Return the names in a type annotation."""
    return set(re.findall(r"[A-Za-z_][\w.]*", annotation if isinstance(annotation, str) else str(annotation)))


def records_of(annotation: Any) -> list[str]:
    """Return the names of the classes in RECORDS that an argument accepts."""
    names = names_of(annotation)
    return [*(name for name in RECORDS if name in names), *(n for a in names & _ALIASES.keys() for n in _ALIASES[a])]


def space_of(name: str, annotation: Any) -> str | None:
    """Return the element type ("body", "joint", ...) of an argument that is a label, or None for other arguments."""
    names = names_of(annotation)
    return _SPACES.get(name, "actuator") if "int" in names and "str" not in names else None


class Values:
    """Converter of values in one machine file.

    Attributes:
        builder: builder that contains the labeled elements.
        names: name -> value, result of a call, or loop variable.
        folder: folder of the machine file.
    """

    def __init__(self, builder: Any, folder: Path) -> None:
        self.builder, self.folder = builder, folder
        self.names: dict[str, Any] = {}
        for space in ("body", "joint", "shape", "site", "actuator"):
            self.names[space] = self._lookup(space)

    def _lookup(self, space: str) -> Callable[[Any], int]:
        def find(label: Any) -> int:
            return self.index(space, label)

        find.for_expressions = True  # type: ignore[attr-defined]
        return find

    def index(self, space: str, label: Any) -> int:
        """Return the index of the element with a label. The label "world" gives body -1.

        Raises:
            UnknownNameError: no element has this label.
        """
        known: dict[str, int] = self.builder._labels[space]
        if space == "body" and label == "world":
            return -1
        if label not in known:
            raise unknown_name(space, str(label), [*known, "world"] if space == "body" else known)
        return known[label]

    def convert(self, value: Any, name: str = "", annotation: Any = "Any") -> Any:
        """Convert a value of the file to an argument.

        Args:
            value: value in the file.
            name: name of the argument, which determines the element type of a label.
            annotation: type annotation of the argument.

        Raises:
            ModelError: an expression or the data of an object is invalid.
            UnknownNameError: a label, name or key is unknown.
        """
        if isinstance(value, str):
            return self._text(value, name, annotation)
        if isinstance(value, dict):
            return self._mapping(value, name, annotation)
        if isinstance(value, list):
            names = names_of(annotation)
            if "Transform" in names and len(value) == 3 and not any(isinstance(x, list | dict) for x in value):
                return Transform([self.convert(x) for x in value]) if "Vector" not in names else self._items(value)
            items = [self.convert(item, name, annotation) for item in value]
            return tuple(items) if "tuple" in names else items
        return value

    def _items(self, value: list[Any]) -> list[Any]:
        return [self.convert(item) for item in value]

    def _text(self, value: str, name: str, annotation: Any) -> Any:
        if value.startswith("="):
            return evaluate(value[1:], self.names)
        text = filled(value, self.names)
        if (space := space_of(name, annotation)) is not None:
            return self.index(space, text)
        if name in _FILES:
            return str(self.folder / text)
        return text

    def _mapping(self, value: dict[str, Any], name: str, annotation: Any) -> Any:
        key = next(iter(value), "")
        if len(value) == 1 and key in RECORDS:
            return self.call(key, RECORDS[key], value[key], first=0)
        if (names := names_of(annotation)) & {"Mapping", "dict"}:  # such as joints= of add_pose
            inner = " | ".join(sorted(names - {"Mapping", "dict", "str"}))
            return {key: self.convert(item, key, inner) for key, item in value.items()}
        if names & set(_POSES) or len(value) == 1 and key == "Transform":
            return self.pose(value["Transform"] if key == "Transform" else value)
        records = records_of(annotation)
        if len(records) == 1:
            return self.call(records[0], RECORDS[records[0]], value, first=0)
        if records:
            raise ModelError(f"{name}: {unknown_name('record', key, records)}")
        return {key: self.convert(item, key) for key, item in value.items()}

    def pose(self, value: Any) -> Transform:
        """Convert a mapping to a transform. The rotation is a quaternion xyzw, rpy, or axis and angle (rad).

        Raises:
            ModelError: the mapping specifies two rotations, or an axis without an angle.
            UnknownNameError: a key is unknown.
        """
        if not isinstance(value, dict):
            return Transform(self.convert(value))
        for key in value:
            if key not in POSE_KEYS:
                raise unknown_name("key of a pose", key, POSE_KEYS)
        fields = {key: self.convert(item) for key, item in value.items()}
        position = fields.get("position", (0.0, 0.0, 0.0))
        rotations = [key for key in ("rotation", "rpy", "axis") if key in fields]
        if len(rotations) > 1 or ("axis" in fields) != ("angle" in fields):
            raise validate.fail("pose", f"has {', '.join(fields)}", "give one of rotation, rpy, or axis and angle")
        if "axis" in fields:
            transform = Transform.from_axis_angle(position, fields["axis"], fields["angle"])
        elif "rpy" in fields:
            transform = Transform.from_rpy(position, fields["rpy"])
        else:
            transform = Transform(position, fields.get("rotation", (0.0, 0.0, 0.0, 1.0)))
        if "in" not in fields:
            return transform
        if not isinstance(fields["in"], Transform):
            raise validate.fail("pose", f"in = {fields['in']!r:.60} is not a pose", "give '= NAME' of a pose in values")
        return fields["in"] * transform

    def call(self, name: str, function: Callable[..., Any], given: Any, first: int) -> Any:
        """Call a function with the values of a mapping.

        Args:
            name: name of the function for messages.
            function: function to call.
            given: arguments by name, or None for no arguments.
            first: 1 if the first argument is the builder, else 0.

        Raises:
            ModelError: an argument is unknown or missing, or breaks a rule.
        """
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise validate.fail(name, f"its arguments {given!r:.60} are not a mapping", "give '{name: value}'")
        parameters = dict(list(inspect.signature(function).parameters.items())[first:])
        kinds = {p.kind for p in parameters.values()}
        variadic = next((p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL), None)
        named = {key: p for key, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        for key in given:
            if key not in named and key != variadic and inspect.Parameter.VAR_KEYWORD not in kinds:
                raise Located(line(given, key), str(unknown_name(f"argument of {name}", key, named)))
        missing = [key for key, p in named.items() if p.default is p.empty and key not in given]
        if missing:
            unknown = next((key for key in given if key not in named and key != variadic), None)
            fix = f"give it instead of {unknown!r}" if unknown else "give it"
            raise validate.fail(name, f"has no {' and no '.join(missing)}", fix)
        converted = {key: self._argument(given, key, named.get(key)) for key in given if key != variadic}
        positional = [self.builder] * first
        if variadic in given:  # functions such as builder.add_visual(body, kind, *sizes)
            positional += [
                converted.pop(key) for key in named if key in converted and named[key].kind is not _ONLY_BY_NAME
            ]
            positional += list(self.convert(given[variadic]))
        try:
            return function(*positional, **converted)
        except GpusimError:
            raise
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            raise validate.fail(name, f"an argument has a wrong type or value ({error!s:.120})", "check it") from None

    def _argument(self, arguments: dict[str, Any], key: str, parameter: inspect.Parameter | None) -> Any:
        annotation = "Any" if parameter is None else parameter.annotation
        try:
            return self.convert(arguments[key], key, annotation)
        except GpusimError as error:
            raise located(error, line(arguments, key), f"{key}: ") from None


_ONLY_BY_NAME = inspect.Parameter.KEYWORD_ONLY


class Located(ModelError):
    """Error with a line number of the file."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def located(error: GpusimError, line: int, prefix: str = "") -> Located:
    """Return the error with a text prefix and a line number. An existing line number does not change."""
    known = error.line if isinstance(error, Located) else 0
    return Located(known or line, f"{prefix}{error}")
