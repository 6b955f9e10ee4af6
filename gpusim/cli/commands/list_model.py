"""``gpusim list FILE``: print joints, commands, sensors, postures and shapes of a model."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from gpusim.cli.console import out_console
from gpusim.cli.options import RunOptions
from gpusim.cli.target_files import MACHINE, MODEL, PYTHON, STILL, XACRO, python_function
from gpusim.cli.targets import load_target
from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import JointSpec

if TYPE_CHECKING:
    from gpusim.model.model import Model

_MAX_ROWS = 200


def show_model(options: RunOptions) -> None:
    """Print the joints, commands, sensors, postures and shapes of a file.

    Raises:
        GpusimError: the file cannot be read.
    """
    scene = load_target(options, visuals=False, still=True)
    model = scene.builder.finalize()
    console = out_console()
    mass = sum(body.mass for body in model.bodies if not body.kinematic)
    visuals = "" if options.kind() == MODEL else f", {len(model.visuals)} visuals"  # the import skips visuals
    count = sum(body.label != STILL for body in model.bodies)
    console.print(Text(f"{scene.name}: {count} bodies, {mass:.6g} kg{visuals}"))
    for table in (_joints(model), _commands(model), _sensors(model), _shapes(model)):
        if table is not None:
            console.print(table)
    if model.poses:
        console.print(Text(f"Postures: {', '.join(pose.label for pose in model.poses)}"))
    parameters = _parameters(options)
    if parameters:
        console.print(Text(f"Parameters, for --set NAME=VALUE: {', '.join(parameters)}"))


def _joints(model: Model) -> Table | None:
    rows = []
    for joint in model.joints:
        kind = joint_type(joint.kind)
        units = [kind.unit_of(joint, axis) for axis in range(kind.moves(joint))]
        ends = (model.body_label(joint.parent), model.body_label(joint.child))
        rows.append((joint.label, joint.kind.replace("_", " "), *ends, _limits(joint), _words(units)))
    return _table("Joints", ("joint", "kind", "parent", "child", "limits", "unit"), rows)


def _limits(joint: JointSpec) -> str:
    shown = [
        f"{name} {_range(lower, upper)}".strip()
        for name, lower, upper in joint_type(joint.kind).limits(joint)
        if not name or math.isfinite(upper)
    ]
    return "-" if set(shown) <= {"-"} else ", ".join(shown)


def _range(lower: float, upper: float) -> str:
    if math.isfinite(lower):
        return f"{lower:.4g} to {upper:.4g}" if math.isfinite(upper) else f"from {lower:.4g}"
    return f"up to {upper:.4g}" if math.isfinite(upper) else "-"


def _commands(model: Model) -> Table | None:
    named = {name: spec for spec in model.actuators for name in (spec.label, f"{spec.label}.")}
    operator = set(model.operator_commands)
    rows = []
    for name, column in model.controls.items():
        spec = named.get(name) or named.get(f"{name.partition('.')[0]}.")
        lower, upper = model.control_map[:2, column]
        what = "input of a diagram" if spec is None else spec.kind.replace("_", " ")
        default = f"{model.default_controls[column]:.4g}"
        rows.append((name, what, _range(lower, upper), default, "yes" if name in operator else ""))
    return _table("Commands", ("command", "actuator", "range", "default", "operator"), rows)


def _sensors(model: Model) -> Table | None:
    rows = [(s.label, f"{s.kind} sensor") for s in model.sensors]
    rows += [(d.label, "measured") for d in model.diagrams if getattr(d, "senses", False)]
    rows += [(s.label, f"site on {model.body_label(s.body)}") for s in model.sites]
    return _table("Sensors and sites", ("label", "what"), rows)


def _shapes(model: Model) -> Table | None:
    kinds: dict[str, Counter[str]] = {}
    for shape in model.shapes:
        kinds.setdefault(model.body_label(shape.body), Counter())[shape.kind.replace("_", " ")] += 1
    rows = [(body, ", ".join(f"{n} {kind}" for kind, n in found.items())) for body, found in kinds.items()]
    return _table("Shapes", ("body", "shapes"), rows)


def _parameters(options: RunOptions) -> list[str]:
    if options.kind() == PYTHON:
        return list(inspect.signature(python_function(options.target)).parameters)
    if Path(options.target).suffix.lower() == XACRO:
        return re.findall(r"""<xacro:arg\s[^>]*?name=["']([^"']+)""", Path(options.target).read_text(errors="replace"))
    if options.kind() != MACHINE:
        return []
    from gpusim.machine_files import machine_values

    return machine_values(options.target)


def _words(items: Iterable[str]) -> str:
    return ", ".join(items) or "-"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table | None:
    if not rows:
        return None
    more = f", the first {_MAX_ROWS}" if len(rows) > _MAX_ROWS else ""
    table = Table(title=f"{title} ({len(rows)}{more})", title_justify="left")
    for number, name in enumerate(columns):
        table.add_column(name, style="bold" if number == 0 else None, no_wrap=number == 0)
    for row in rows[:_MAX_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    return table
