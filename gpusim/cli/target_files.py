"""Build scenes from files: models of other programs, machine files, and Python files or modules with ``build``."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.description.specs import WORLD
from gpusim.errors import GpusimError, unknown_name
from gpusim.scene import Plot, Scene, convert

if TYPE_CHECKING:
    from gpusim.builder.builder import ModelBuilder
    from gpusim.importers import ImportReport

MODEL, MACHINE, PYTHON = "model", "machine", "python"
"""Kinds of files."""
STILL = "nothing_moves"
"""Label of the body that is added to a scene without bodies."""
BUILD = "build"
"""Default name of the Python function that returns the scene."""

_MODELS = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world", ".usd", ".usda", ".usdc", ".usdz")
_MACHINES = (".yaml", ".yml")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
XACRO = ".xacro"
"""Suffix of xacro files, the only model files with arguments."""
_SERVO_FORMATS = (".urdf", XACRO)
"""Types of model files for which gpusim can add servos that hold the joints."""
_LINES_IN_A_PANEL = 8
_MAX_FINDINGS = 10
_SLIDING = "prismatic"
_ROTARY_KINDS = ("revolute", "continuous")


def kind_of(target: str) -> str | None:
    """Return MODEL, MACHINE or PYTHON for a target that names a file or module, else None."""
    path, _ = split(target)
    suffix = Path(path).suffix.lower()
    if suffix in _MODELS:
        return MODEL
    if suffix in _MACHINES:
        return MACHINE
    return PYTHON if suffix == ".py" or _MODULE.fullmatch(target) else None


def split(target: str) -> tuple[str, str]:
    """Split a target such as ``machine.py:build`` into path and function name. The function name may be empty."""
    path, colon, function = target.rpartition(":")
    return (path, function) if colon and Path(path).suffix == ".py" else (target, "")


def is_module(target: str) -> bool:
    """Return whether a target is ``module:function`` and not a path."""
    return Path(split(target)[0]).suffix != ".py" and _MODULE.fullmatch(target) is not None


# Models of other programs.


def model_scene(
    path: str,
    *,
    hold: bool = True,
    fixed_base: bool | None = None,
    pose: str | None = None,
    arguments: Mapping[str, str] | None = None,
    floor: bool = False,
    visuals: bool = True,
    reports: list[ImportReport] | None = None,
    still: bool = False,
) -> Scene:
    """Read a model file and build a scene with the model.

    Args:
        path: path of the file.
        hold: if a URDF or xacro file has no actuators, add position servos that hold its joints in the imported pose.
        fixed_base: True fixes the base to the world, False lets it float, and None uses the file's setting.
        pose: name of the starting posture. An SRDF file with the name of the URDF file can define additional postures.
        arguments: xacro arguments by name.
        floor: add a horizontal plane below the model.
        visuals: also read the visual shapes, which appear in pictures.
        reports: list to which the report of the import is added, or None to print the findings on stderr.
        still: accept a file in which nothing can move.

    Raises:
        ModelError: the file, or a package that reads this type of file, is missing or broken.
        OptionError: nothing in the file can move.
    """
    from gpusim.description.config import SolverConfig
    from gpusim.importers import add_holding_servos
    from gpusim.machine_files.model_files import load_model

    given = {"fixed_base": fixed_base, "pose": pose, "mappings": arguments or None, "srdf": _semantics(path)}
    options = {name: value for name, value in given.items() if value is not None}
    builder, report = load_model(path, visuals=visuals, **options)
    if reports is None:
        show_findings(report, path)
    else:
        reports.append(report)
    if not builder.bodies and not still:
        fix = "give a file with bodies" if fixed_base is False else "give --floating to free its base"
        raise OptionError(f"{path!r}: everything in the file is fixed to the world, so nothing can move; {fix}")
    held = hold and Path(path).suffix.lower() in _SERVO_FORMATS and not builder.actuators
    if held:
        add_holding_servos(builder, report)
    if floor:
        add_floor(builder)
    rotary = [joint.label for joint in report.joints.values() if joint.kind in _ROTARY_KINDS]
    sliding = [joint.label for joint in report.joints.values() if joint.kind == _SLIDING]
    plots = _panels("joint angles", "rad", rotary) + _panels("joint positions", "m", sliding)
    return Scene(
        name=report.robot_name or Path(path).stem,
        description="held at its zero pose" if held else "swinging from its base" if report.fixed_base else "free",
        builder=builder,
        config=SolverConfig(dt=1e-3),
        plots=plots or [_energy_panel()],
        decoration={s.body for s in builder.shapes} | {v.body for v in builder.visuals} <= {WORLD},
    )


def _semantics(path: str) -> Path | None:
    """Return the SRDF file in the folder of a URDF or xacro file, such as robot.srdf for robot.urdf."""
    file = Path(path)
    name = file.name.removesuffix(XACRO).removesuffix(".urdf")
    found = file.with_name(f"{name}.srdf")
    return found if file.suffix.lower() in _SERVO_FORMATS and found.is_file() else None


def add_still_body(scene: Scene) -> None:
    """Add a body without shapes to a scene without bodies, since every model needs a body."""
    builder = scene.builder
    if not builder.bodies and (builder.shapes or builder.visuals):
        builder.add_body(kinematic=True, gravity_scale=0.0, label=STILL)
        scene.decoration = False


def show_findings(report: ImportReport, path: str) -> None:
    """Print at most ten findings of an import on stderr."""
    from gpusim.importers.report import SEVERITIES, merge_similar_sentences

    lines = [
        f"warning: {severity}: {sentence}" if severity != "info" else f"warning: {sentence}"
        for severity in SEVERITIES
        for sentence in merge_similar_sentences(f.sentence for f in report.findings if f.severity == severity)
    ]
    for line in lines[:_MAX_FINDINGS]:
        note(line)
    if len(lines) > _MAX_FINDINGS:
        note(f"{len(lines) - _MAX_FINDINGS} more findings; see 'gpusim check {path}'")


def add_floor(builder: ModelBuilder) -> None:
    """Add a horizontal plane at the lowest point of the shapes."""
    from gpusim.cli.extents import lowest_point
    from gpusim.transform import Transform

    taken = {shape.label for shape in builder.shapes}
    label = next(name for name in ("floor", *(f"floor{k}" for k in range(len(taken) + 1))) if name not in taken)
    builder.add_shape_plane(-1, xform=Transform((0.0, 0.0, lowest_point(builder))), label=label)


def _panels(title: str, unit: str, joints: Sequence[str]) -> list[Plot]:
    """Return plots of joint positions, with at most eight joints in each plot."""
    groups = [joints[i : i + _LINES_IN_A_PANEL] for i in range(0, len(joints), _LINES_IN_A_PANEL)]
    return [
        Plot(
            title=title if len(groups) == 1 else f"{title} ({number} of {len(groups)})",
            unit=unit,
            signals=[f"joint.{label}.position" for label in group],
            labels=list(group),
        )
        for number, group in enumerate(groups, start=1)
    ]


def _energy_panel() -> Plot:
    signals = ("sim.kinetic_energy", "sim.potential_energy")
    return Plot(title="energy", unit="J", signals=signals, labels=("kinetic", "potential"))


# Machine files and Python.


def machine_scene(path: str, parameters: Mapping[str, str]) -> Scene:
    """Read a machine file.

    Raises:
        ModelError: the file is missing or broken.
    """
    from gpusim.machine_files import load_machine

    return load_machine(path, **{name: _plain(value) for name, value in parameters.items()})


def python_scene(target: str, parameters: Mapping[str, str]) -> Scene:
    """Call the function of a Python file or module that builds a scene, and return the scene.

    Args:
        target: ``machine.py``, ``machine.py:function`` or ``module:function``.
        parameters: arguments as text, which are converted to the annotated types.

    Raises:
        OptionError: the module or function does not exist, an argument is unknown, or the file has an error.
        ModelError: the function raised a ModelError.
    """
    from gpusim.builder.builder import ModelBuilder

    build = python_function(target)
    hints, known = _hints(build), list(inspect.signature(build).parameters)
    values: dict[str, Any] = {}
    for name, text in parameters.items():
        if name not in known:
            raise OptionError(f"--set: {unknown_name('parameter', name, known)}; see 'gpusim list {target}'")
        hint = hints.get(name)
        values[name] = _plain(text) if hint is None else convert(text, hint, f"{target}: parameter {name!r}")
    found = _run(target, lambda: build(**values))
    if isinstance(found, ModelBuilder):
        return Scene(split(target)[1] or Path(target).stem, "model of a Python file", found)
    if not isinstance(found, Scene):
        rule = f"{target!r}: {build.__name__}() returned a {type(found).__name__}"
        raise OptionError(f"{rule}; return a gpusim.scene.Scene or a ModelBuilder")
    return found


@contextmanager
def modules_of_folder() -> Iterator[None]:
    """Add the working directory to the import path, so that Python finds modules there."""
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")


def python_function(target: str) -> Callable[..., Any]:
    """Return the Python function that a target such as ``machine.py:build`` names.

    Raises:
        OptionError: the module or function does not exist, or the file has an error.
    """
    if is_module(target):
        module_name, _, name = target.partition(":")
        with modules_of_folder():
            module = _run(target, lambda: importlib.import_module(module_name))
    else:
        path, name = split(target)
        module = _run(target, lambda: _module_of(Path(path)))
    name = name or BUILD
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise OptionError(f"{target!r}: {unknown_name('function', name, known)}; add '{name}()', which returns a Scene")
    return function


def _module_of(path: Path) -> ModuleType:
    """Import a Python file as a module, and return the module."""
    spec = importlib.util.spec_from_file_location(f"gpusim_file_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # the suffix is .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the decorator ``dataclass`` searches for its module in ``sys.modules``
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec.loader.exec_module(module)
    return module


def _run(target: str, action: Callable[[], Any]) -> Any:
    """Call ``action``, which runs user code. Convert an error to an OptionError with the line in the user's file.

    Raises:
        OptionError: the user code raised an error that is not a GpusimError.
    """
    try:
        return action()
    except GpusimError:
        raise
    except ModuleNotFoundError as error:
        raise OptionError(f"{target!r}: {error}; check the name, or install the package") from None
    except Exception as error:
        if isinstance(error, SyntaxError):
            line: int | None = error.lineno
        else:
            frames = [
                f for f in traceback.extract_tb(error.__traceback__) if "gpusim" not in Path(f.filename).parts[:-1]
            ]
            line = frames[-1].lineno if frames else None
        position = f" line {line}" if line else ""
        raise OptionError(f"{target!r}{position}: {type(error).__name__}: {error}; fix the file") from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # annotations of user code may raise any error
        return {}


def _plain(text: str) -> Any:
    """Convert text to a bool, an int or a float. Return other text unchanged."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
