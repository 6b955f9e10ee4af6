"""Scenes: predefined models, each with plots, a camera and commands."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import math
import operator
import pkgutil
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from gpusim.errors import ModelError, unknown_name

if TYPE_CHECKING:
    from gpusim.builder.builder import ModelBuilder
    from gpusim.description.config import SolverConfig
    from gpusim.simulation import Simulation

__all__ = [
    *("Camera", "Check", "NotNegative", "ParameterInfo", "Plot", "Positive", "Range", "Scene"),
    *("list_scenes", "load_scene", "scene_parameters", "scene_values"),
]
PACKAGE = "gpusim.scenes"
DURATION = 2.0
"""Default duration of a run, s."""
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


@dataclass(frozen=True)
class Plot:
    """A plot of signals over time. The vertical axis has the unit ``unit``.

    ``labels`` are the names of the signals in the legend, by default the signal names. A signal with several components
    has one line per component. ``scale`` multiplies the values. For example, a ``scale`` of 1e-5 converts Pa to bar.
    """

    title: str
    unit: str
    signals: Sequence[str]
    labels: Sequence[str] = ()
    scale: float = 1.0


@dataclass(frozen=True)
class Camera:
    """Initial camera of a viewer. ``position`` and the viewed point ``target`` are in the world frame (m)."""

    position: tuple[float, float, float] = (4.0, -6.0, 3.0)
    target: tuple[float, float, float] = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Check:
    """Condition on the signals of a run with the default parameters of the scene.

    The function ``passes`` gets a dict with n samples: "time" (n,), in s, and signals (n, num_worlds[, components]).
    """

    statement: str
    passes: Callable[[Mapping[str, np.ndarray]], bool]


def _default_config() -> SolverConfig:
    from gpusim.description.config import SolverConfig

    return SolverConfig()


@dataclass
class Scene:
    """A model, together with plots, a camera, commands and solver settings for a run.

    Attributes:
        name: name of the scene, as in ``gpusim run NAME``.
        description: description in one line.
        builder: builder of the model. You can still add elements to it.
        config: solver settings.
        duration: duration of a run (s).
        plots: plots that the option ``--plot`` shows.
        camera: initial camera.
        schedule: function ``(sim, time)`` that writes ``sim.control`` before each step. The time is in s.
        checks: conditions for a run with default parameters.
        reports: import reports (``ImportReport``) of the model files.
        decoration: whether images also show joints, springs, cylinders, and bodies without shapes.
    """

    name: str
    description: str
    builder: ModelBuilder
    config: SolverConfig = field(default_factory=_default_config)
    duration: float = DURATION
    plots: list[Plot] = field(default_factory=list)
    camera: Camera = field(default_factory=Camera)
    schedule: Callable[[Simulation, float], None] | None = None
    checks: Sequence[Check] = ()
    reports: Sequence[Any] = ()
    decoration: bool = True

    def signals(self) -> list[str]:
        """Return the names of all signals in the plots, in order. Each name occurs once."""
        return list(dict.fromkeys(name for plot in self.plots for name in plot.signals))


@dataclass(frozen=True)
class ParameterInfo:
    """A scene parameter. If the default is None, the documentation shows the text in ``left_out`` instead of "None"."""

    name: str
    type: str
    default: Any
    doc: str
    left_out: str = ""


def list_scenes() -> dict[str, str]:
    """Return a dict from scene names to one-line descriptions, sorted by name."""
    return {name: _description(module) for name, module in sorted(scene_modules().items())}


def scene_modules() -> dict[str, str]:
    """Return a dict from scene names to module names."""
    package = importlib.import_module(PACKAGE)
    found = [m.name for m in pkgutil.walk_packages(package.__path__, f"{PACKAGE}.") if not m.ispkg]
    names = {module.rpartition(".")[2]: module for module in found}
    return {name: module for name, module in names.items() if not name.startswith("_")}


def load_scene(name: str, **parameters: Any) -> Scene:
    """Build the scene ``name``.

    The function converts strings, such as values from a command line, to the annotated type of the parameter.

    Raises:
        UnknownNameError: the scene or a parameter does not exist. The message lists similar names, or all names.
        ModelError: a value does not fit the parameter.
    """
    values = _converted(name, parameters)
    try:
        return _build_function(name)(**values)
    except (ArithmeticError, np.linalg.LinAlgError):
        given = ", ".join(f"{key}={value!r}" for key, value in values.items())
        rule = f"the numbers that follow from {given} are too large or too small"
        raise ModelError(f"scene {name!r}: {rule}; give other values") from None


def scene_values(name: str, **parameters: Any) -> dict[str, Any]:
    """Return the parameter values of a scene: the given values, and defaults for all other parameters.

    Raises:
        UnknownNameError: the scene or a parameter does not exist.
        ModelError: a value does not fit the parameter.
    """
    defaults = {parameter.name: parameter.default for parameter in scene_parameters(name)}
    return defaults | _converted(name, parameters)


def scene_parameters(name: str) -> list[ParameterInfo]:
    """Return the parameters of the scene ``name`` with types, defaults and docstring texts.

    If a default is None, the documentation shows the text ``DEFAULTS[parameter]`` of the scene module, if it exists.

    Raises:
        UnknownNameError: the scene does not exist.
    """
    build = _build_function(name)
    hints = typing.get_type_hints(build)
    docs = argument_docs(inspect.getdoc(build) or "")
    left_out: Mapping[str, str] = getattr(importlib.import_module(build.__module__), "DEFAULTS", {})
    return [
        ParameterInfo(p.name, _type_words(hints[p.name]), p.default, docs.get(p.name, ""), left_out.get(p.name, "none"))
        for p in inspect.signature(build).parameters.values()
    ]


def _converted(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(build := _build_function(name), include_extras=True)
    known = list(inspect.signature(build).parameters)
    values = {}
    for key, value in parameters.items():
        if key not in known:
            raise unknown_name(f"parameter of scene {name!r}", key, known)
        values[key] = convert(value, hints[key], f"scene {name!r}: parameter {key!r}")
    return values


@dataclass(frozen=True)
class Range:
    """Allowed values of a scene parameter, as an annotation: ``Annotated[float, Range(0.0, 1.0)]``.

    A value v is allowed if minimum <= v <= maximum and above < v < below.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None

    def check(self, value: float, what: str) -> None:
        """Raise a ModelError if ``value`` is out of range. ``what`` is the name of the value in the error."""
        rules = {
            "at least": (self.minimum, operator.ge), "above": (self.above, operator.gt),
            "at most": (self.maximum, operator.le), "below": (self.below, operator.lt),
        }  # fmt: skip
        limits = {words: (limit, holds) for words, (limit, holds) in rules.items() if limit is not None}
        if not all(holds(value, limit) for limit, holds in limits.values()):
            rule = " and ".join(f"{words} {limit:g}" for words, (limit, _) in limits.items())
            raise ModelError(f"{what} must be {rule}, got {value!r}; give another value")


Positive: TypeAlias = Annotated[float, Range(above=0.0)]
"""Annotation of a scene parameter above 0."""
NotNegative: TypeAlias = Annotated[float, Range(0.0)]
"""Annotation of a scene parameter that is 0 or more."""


def require(condition: bool, scene: str, parameter: str, value: Any, rule: str) -> None:
    """Raise a ModelError if ``condition`` is false. ``rule``: text for the message, such as "must be at least 1"."""
    if not condition:
        raise ModelError(f"scene {scene!r}: parameter {parameter!r} {rule}, got {value!r}; give another value")


def convert(value: Any, hint: Any, what: str) -> Any:
    """Convert ``value`` to the annotated type ``hint``. ``what`` is the name of the value in errors.

    Raises:
        ModelError: the value does not fit.
    """
    origin = typing.get_origin(hint)
    if origin is Annotated:
        bare, allowed = typing.get_args(hint)
        number = convert(value, bare, what)
        allowed.check(number, what)
        return number
    if origin in (typing.Union, types.UnionType):
        return _convert_optional(value, typing.get_args(hint), what)
    if origin is typing.Literal:
        choices = typing.get_args(hint)
        if value in choices:
            return value
        raise ModelError(f"{what} must be one of {', '.join(map(repr, choices))}, got {value!r}; give one of these")
    if hint in _CONVERTERS:
        try:
            return _CONVERTERS[hint](value)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"{what} must be {_type_words(hint)}, got {value!r}; give such a value") from None
    return value


def _convert_optional(value: Any, members: Sequence[Any], what: str) -> Any:
    if value is None or (isinstance(value, str) and value.lower() == "none"):
        return None
    (member,) = (m for m in members if m is not type(None))
    return convert(value, member, what)


def _to_float(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not math.isfinite(number):
        raise ValueError
    return number


def _to_int(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or (not isinstance(value, str) and number != value):
        raise ValueError
    return number


def _to_bool(value: Any) -> bool:
    word = str(value).lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


_CONVERTERS: dict[Any, Callable[[Any], Any]] = {float: _to_float, int: _to_int, bool: _to_bool, str: str}
WHOLE = "a whole number"
"""Type of a parameter that is a whole number, in :class:`ParameterInfo`."""
_WORDS = {float: "a finite number", int: WHOLE, bool: "true or false", str: "a word"}


def _type_words(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type_words(m) for m in typing.get_args(hint) if m is not type(None))
    if origin is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return _WORDS.get(hint, str(hint))


def _build_function(name: str) -> Callable[..., Scene]:
    known = scene_modules()
    if not isinstance(name, str) or name not in known:
        raise unknown_name("scene", str(name), known)
    build: Callable[..., Scene] = importlib.import_module(known[name]).build
    return build


@functools.cache
def _description(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    doc = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return doc.splitlines()[0] if doc else ""


def argument_docs(doc: str) -> dict[str, str]:
    """Return a dict from argument names to their texts in the "Args:" section of a docstring."""
    block = re.search(r"^Args:\n((?:[ ]{4}.*\n?|\n)*)", doc, flags=re.MULTILINE)
    docs: dict[str, str] = {}
    last = ""
    for line in block.group(1).splitlines() if block else []:
        match = re.match(r"^ {4}(\w+): (.*)$", line)
        if match:
            last = match.group(1)
            docs[last] = match.group(2).strip()
        elif last and line.strip():
            docs[last] += " " + line.strip()
    return docs
