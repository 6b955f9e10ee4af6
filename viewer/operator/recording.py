"""Operator recordings: JSON lines with all changes of inputs.

The file has a header, one line for each step with changes, and an end line:

    {"format": "gpusim operator recording", "version": 1, "scene": "boom_crane", "parameters": {}, "dt": 0.001,
     "time": 0.0, "solver": {"dtype": "float64", "substeps": 4}, "inputs": ["lift", "lift.brake"]}     (on one line)
    {"step": 120, "time": 0.12, "set": {"lift": 0.35}}
    {"step": 900, "time": 0.9, "set": {"lift": null}}          null: back to the scene's own schedule
    {"step": 990, "time": 0.99, "set": {"lift": 0.0}, "stop": true}    emergency stop; false: released
    {"step": 1500, "time": 1.5, "end": true}

A value can be a list with one number for each world. Numbers have all digits, so a replay is bit-identical.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusim import validate
from gpusim.errors import ModelError
from gpusim.input_files import bounded_text
from gpusim.output_files import atomic_file, check_output_file

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

FORMAT, VERSION = "gpusim operator recording", 1
SUFFIX = ".jsonl"

Value = float | tuple[float, ...]
"""Value of an input: one number for all worlds, or one number for each world."""


@dataclass
class OperatorRecording:
    """Recorded changes of inputs.

    Attributes:
        inputs: names of all inputs.
        dt: step size of the simulation (s).
        scene, parameters: name and parameters of the recorded scene.
        time: simulation time at the beginning (s).
        solver: precision and SolverConfig settings of the simulation, which a bit-identical replay needs.
        changes: step index -> new values before the step. The value None releases the input.
        stops: step index -> True if the emergency stop is latched before the step, False if it is released.
        steps: length of the recording in steps.
    """

    inputs: tuple[str, ...]
    dt: float
    scene: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    time: float = 0.0
    solver: Mapping[str, Any] = field(default_factory=dict)
    changes: dict[int, dict[str, Value | None]] = field(default_factory=dict)
    stops: dict[int, bool] = field(default_factory=dict)
    steps: int = 0

    def note(self, step: int, name: str, value: Value | None) -> None:
        """Record one change."""
        self.changes.setdefault(step, {})[name] = value

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file. An error leaves no partial file.

        Raises:
            ModelError: the name does not end in .jsonl, or its folder cannot be written.
            OSError: the disk fails while writing.
        """
        header = {
            **{"format": FORMAT, "version": VERSION, "scene": self.scene, "parameters": dict(self.parameters)},
            **{"dt": self.dt, "time": self.time, "solver": dict(self.solver), "inputs": list(self.inputs)},
        }
        lines: list[dict[str, Any]] = [header]
        for step in sorted({*self.changes, *self.stops}):
            stop = {"stop": self.stops[step]} if step in self.stops else {}
            lines.append({"step": step, "time": self.time + step * self.dt, "set": self.changes.get(step, {}), **stop})
        lines.append({"step": self.steps, "time": self.time + self.steps * self.dt, "end": True})
        text = "".join(json.dumps(line, default=str) + "\n" for line in lines)
        with atomic_file(check_output_file(path, (SUFFIX,), "operator recording")) as stream:
            stream.write(text.encode())

    def save_new(self, path: str | os.PathLike[str], base: str | os.PathLike[str]) -> Path:
        """Write a new file with the name ``base``. If the file exists, use the next free name.

        Returns:
            The path of the file.

        Raises:
            ModelError, OSError: see :meth:`save`.
        """
        file = check_output_file(path, (SUFFIX,), "operator recording")
        while not _reserved(file):
            file = next_free(base)
        try:
            self.save(file)
        except BaseException:
            file.unlink()
            raise
        return file

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OperatorRecording:
        """Read a file.

        Raises:
            ModelError: the file cannot be read or is not an operator recording.
        """
        element = f"operator recording {str(path)!r}"
        try:
            text = bounded_text(path)
        except UnicodeDecodeError:
            raise validate.fail(element, "it is not text", "give a file that a viewer has recorded") from None
        except OSError as error:
            reason = error.strerror or error
            raise validate.fail(element, f"it cannot be read ({reason})", "check path and permissions") from None
        lines = [_parsed(element, number, line) for number, line in enumerate(text.splitlines(), start=1)]
        if not lines or lines[0].get("format") != FORMAT or lines[0].get("version") != VERSION:
            raise validate.fail(element, "it has no header", "give a file that a viewer has recorded")
        return _from_lines(cls, element, lines)


def solver_of(sim: Simulation) -> dict[str, Any]:
    """Return the settings that a recording stores: ``dtype`` and four fields of the solver configuration."""
    names = ("substeps", "iterations", "joint_solver", "scheme")
    return {"dtype": sim.dtype, **{name: getattr(sim.config, name) for name in names}}


def next_free(base: str | os.PathLike[str]) -> Path:
    """Return ``base`` if no recording exists, else NAME-N.jsonl. N is one more than the highest existing number."""
    path = Path(base)
    last = max((number for number, _ in _numbered(path)), default=0)
    return path if last == 0 else path.with_name(f"{path.stem}-{last + 1}{path.suffix}")


def newest(base: str | os.PathLike[str]) -> Path | None:
    """Return the newest file with the name ``base`` or a numbered name (NAME-2.jsonl), or None without files."""
    found = [(file.stat().st_mtime_ns, number, file) for number, file in _numbered(Path(base)) if file.is_file()]
    return max(found)[2] if found else None


def _numbered(path: Path) -> list[tuple[int, Path]]:
    """Return (1, ``path``), and (N, path) for each existing file NAME-N.jsonl."""
    name = re.compile(re.escape(path.stem) + r"(?:-([1-9]\d*))?" + re.escape(path.suffix))
    try:
        files = list(path.parent.iterdir())
    except OSError:
        return []
    return [(int(match[1] or 1), file) for file in files if (match := name.fullmatch(file.name))]


def _reserved(file: Path) -> bool:
    """Create an empty file to reserve the name. Return False if the file exists already."""
    try:
        with open(file, "x"):
            return True
    except FileExistsError:
        return False


def _from_lines(cls: type[OperatorRecording], element: str, lines: list[dict[str, Any]]) -> OperatorRecording:
    head = lines[0]
    try:
        names, scene = tuple(str(name) for name in head["inputs"]), str(head.get("scene", ""))
        parameters, solver = dict(head.get("parameters", {})), dict(head.get("solver", {}))
        found = cls(names, float(head["dt"]), scene, parameters, float(head["time"]), solver)
        validate.positive(element, "dt", found.dt)
        validate.not_negative(element, "time", found.time)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise validate.fail(
            element, f"line 1 lacks a value, or a value is invalid ({error})", "record it again"
        ) from None
    for number, line in enumerate(lines[1:], start=2):
        step = line.get("step")
        if not isinstance(step, int) or isinstance(step, bool) or step < found.steps:
            raise validate.fail(element, f"line {number} has no step, or goes back to step {step!r}", "record it again")
        found.steps = step
        if (stop := line.get("stop")) is not None:
            if not isinstance(stop, bool):
                raise validate.fail(element, f"line {number} has stop {stop!r}", "give true or false")
            found.stops[step] = stop
        changes = line.get("set", {})
        if not isinstance(changes, dict):
            raise validate.fail(element, f"line {number} has set {changes!r}", "give values by name, or leave it out")
        for name, value in changes.items():
            found.note(step, name, _checked(element, number, name, value, names))
    return found


def _parsed(element: str, number: int, line: str) -> dict[str, Any]:
    try:
        table = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise validate.fail(element, f"line {number} is broken ({error})", "record it again") from None
    if not isinstance(table, dict):
        raise validate.fail(element, f"line {number} is not a table", "record it again")
    return table


def _checked(element: str, number: int, name: str, value: Any, names: Sequence[str]) -> Value | None:
    if name not in names:
        raise validate.fail(element, f"line {number} sets {name!r}, which line 1 does not list", "record it again")
    if value is None:
        return None
    values = value if isinstance(value, list) and value else [value]
    if not all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in values):
        raise validate.fail(element, f"line {number} sets {name!r} to {value!r}, no finite number", "correct it")
    return tuple(float(x) for x in values) if isinstance(value, list) else float(value)
