"""Reader of machine files. docs/guides/machine_files.md shows the sections and calls."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpusim import machines, sensors, validate
from gpusim.builder.builder import ModelBuilder
from gpusim.command_schedule import Path as CommandPath
from gpusim.command_schedule import Schedule, drive, follow_paths
from gpusim.control import Diagram, files, yaml_text
from gpusim.control.yaml_text import line
from gpusim.description.config import SolverConfig
from gpusim.errors import GpusimError, ModelError, unknown_name
from gpusim.importers import ImportReport
from gpusim.input_files import bounded_text
from gpusim.machine_files.expressions import evaluate
from gpusim.machine_files.values import Located, Values, located
from gpusim.scene import Camera, Plot, Scene

SUFFIXES = (".yaml", ".yml")
DURATION = 5.0
"""Default duration of a machine file, s."""
_MAX_CALLS = 100_000
_NOT_IN_FILES = {"add_builder", "add_diagram", "add_coupling", "add_actuator"}
_MODEL_KEYS = ("file", "label_prefix", "parent", "xform")
_CONTROL = ("as", "for", "if", "add", "values")
"""Keys in an entry of ``add`` that are not method names."""


def methods() -> dict[str, tuple[Callable[..., Any], int]]:
    """Return the functions for the section ``add``: key -> (function, number of leading builder arguments).

    The key is the function name without "add_": ``servo`` for ``add_servo``.
    """
    functions: dict[str, tuple[Callable[..., Any], int]] = {}
    for name in sorted(dir(ModelBuilder)):
        if name.startswith(("add_", "set_", "exclude_")) and name not in _NOT_IN_FILES:
            functions[name.removeprefix("add_")] = getattr(ModelBuilder, name), 1
    macros = [(name, getattr(machines, name)) for name in machines.__all__]
    macros += [(name, getattr(sensors, name)) for name in ("add_encoder", "add_imu", "add_range_finder")]
    for name, function in macros:
        if name.startswith("add_") and inspect.isfunction(function):
            functions[name.removeprefix("add_")] = function, 1
    return functions


def load_machine(path: str | os.PathLike[str], **values: Any) -> Scene:
    """Build the scene of a machine file.

    Args:
        path: path of the .yaml file. Paths in the file are relative to the folder of the file.
        values: name -> value, which replaces the value in the section ``values`` of the file.

    Returns:
        The scene, with a builder that you can still extend.

    Raises:
        ModelError: the file cannot be read or breaks a rule. The message names the file, and the line if possible.
    """
    file = validate.path("load_machine", "path", path)
    name = f"machine file {str(file)!r}"
    try:
        text = bounded_text(file)
    except UnicodeDecodeError:
        raise validate.fail(name, "is not UTF-8 text", "name a YAML file") from None
    except OSError as error:
        raise validate.fail(name, f"can't be read ({error.strerror or error})", "check the path") from None
    return machine_from_text(text, name, file.parent, file.stem, values)


def machine_values(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of all numbers, booleans and plain texts in a file's section ``values``."""
    section = yaml_text.parse(bounded_text(Path(path)), str(path)).get("values") or {}
    literals = {key: value for key, value in section.items() if isinstance(value, bool | int | float | str)}
    return [key for key, value in literals.items() if not str(value).startswith("=")]


def machine_from_text(
    text: str, name: str, folder: Path, stem: str = "machine", values: Mapping[str, Any] | None = None
) -> Scene:
    """Build the scene of a machine file from its text (see :func:`load_machine`).

    Error messages use ``name`` as the name of the file.
    """
    content = yaml_text.parse(text, name)
    if not isinstance(content, dict):
        rule = "is empty" if content is None else "is not a mapping"
        raise validate.fail(name, rule, "begin with 'add:' and a list of calls")
    try:
        return _Loader(folder, name).scene(content, stem, values or {})
    except GpusimError as error:
        if str(error).startswith(name):
            raise ModelError(str(error)) from None
        location = f"{name} line {error.line}" if isinstance(error, Located) and error.line else name
        raise ModelError(f"{location}: {error}") from None


class _Loader:
    """Loader that builds the scene of one file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._builder = ModelBuilder()
        self._values = Values(self._builder, folder)
        self._reports: list[ImportReport] = []
        self._folder, self._name = folder, name
        self._methods, self._calls = methods(), 0
        self._sections: dict[str, Callable[[Any], Any]] = {
            "gravity": self._gravity,
            "values": self._define,
            "models": lambda content: self._for_each("models", content, self._model),
            "add": lambda content: self._for_each("add", content, self._entry),
            "diagrams": lambda content: self._for_each("diagrams", content, self._diagram),
            "operator_commands": self._builder.set_operator_commands,
        }
        """Sections that build the model, in this order."""

    def scene(self, content: dict[str, Any], stem: str, values: Mapping[str, Any]) -> Scene:
        """Return the scene of the file."""
        makers = {"config": self._config, "camera": self._camera, "plots": self._plots}
        known = (*self._sections, *makers, "name", "description", "duration", "commands", "paths")
        if "blocks" in content:
            fix = "show it with 'gpusim diagram', or name it under diagrams in a machine file"
            error = validate.fail("blocks", "belong in the file of a block diagram", fix)
            raise Located(line(content, "blocks"), str(error))
        for key in content:
            if key not in known:
                raise Located(line(content, key), str(unknown_name("section", key, known)))
        for key in values:
            if key not in (content.get("values") or {}):
                raise unknown_name("value", key, content.get("values") or {})
        for key, make in self._sections.items():
            if key in content:
                with _located_errors(content, key):
                    make(content[key] if key != "values" else {**content[key], **values} if values else content[key])
        sections: dict[str, Any] = {"config": SolverConfig(), "camera": Camera(), "plots": []}
        for key in makers:
            if key in content:
                with _located_errors(content, key, f"{key}: "):
                    sections[key] = makers[key](content[key])
        with _located_errors(content, "duration"):
            duration = validate.positive("duration", "seconds", self._values.convert(content.get("duration", DURATION)))
        return Scene(
            name=self._line_of_text(content, "name", stem),
            description=self._line_of_text(content, "description", "machine file"),
            builder=self._builder,
            duration=duration,
            schedule=self._schedule(content),
            reports=self._reports,
            **sections,
        )

    def _line_of_text(self, content: dict[str, Any], key: str, default: str) -> str:
        text = content.get(key, default)
        if not isinstance(text, str) or not text.strip() or not text.isprintable():
            rule = f"{key} = {text!r:.60} is not a line of text"
            raise Located(line(content, key), str(validate.fail(key, rule, "give a line of text in quotes")))
        return text

    def _gravity(self, content: Any) -> None:
        self._builder.gravity = validate.numbers("ModelBuilder", "gravity", self._values.convert(content), 3)

    def _for_each(self, section: str, content: Any, handle: Callable[[Any], None]) -> None:
        if not isinstance(content, list):
            raise validate.fail(section, f"{content!r:.60} is not a list", "give lines that begin with '- '")
        for number, item in enumerate(content):
            with _located_errors(content, number):
                handle(item)

    def _define(self, content: Any) -> None:
        if not isinstance(content, dict):
            raise validate.fail("values", f"{content!r:.60} is not a mapping", "give lines 'name: value'")
        for key, value in content.items():
            with _located_errors(content, key, f"value '{key}': "):
                if not key.isidentifier() or key.startswith("_"):
                    raise validate.fail("values", f"{key!r} is not a valid name", "give letters, digits and _")
                self._values.names[key] = self._values.convert(value, key)

    # Entries of "add".

    def _entry(self, item: Any) -> None:
        if not isinstance(item, dict):
            raise validate.fail("add", f"{item!r:.60} is not a call", "write '- body: {label: cage, mass: 80}'")
        if "if" in item and not self._values.convert(item["if"]):
            return
        if "for" in item:
            self._loop(item)
            return
        calls = [key for key in item if key not in _CONTROL]
        if "add" in item and not calls:
            self._for_each("add", item["add"], self._entry)
        elif "values" in item and not calls:
            self._define(item["values"])
        elif len(calls) != 1:
            rule = f"an entry has {'no call' if not calls else 'the calls ' + ', '.join(calls)}"
            raise validate.fail("add", rule, "write one call in each line that begins with '- '")
        else:
            with _located_errors(item, calls[0]):
                self._call(calls[0], item)

    def _call(self, key: str, item: dict[str, Any]) -> None:
        self._calls += 1
        self._count("add")
        function, first = self._function(key)
        result = self._values.call(key, function, item[key], first)
        if isinstance(result, ImportReport):
            self._reports.append(result)
        if "as" in item:
            name = self._values.convert(item["as"])
            if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
                raise validate.fail(key, f"as = {name!r:.60} is not a valid name", "give letters, digits and _")
            self._values.names[name] = result

    def _count(self, key: str, extra: int = 0) -> None:
        """Raise a ModelError if ``extra`` further calls exceed the maximum number of calls per file."""
        if self._calls + extra > _MAX_CALLS:
            raise validate.fail(key, f"makes more than {_MAX_CALLS} calls", "give smaller loops")

    def _function(self, key: str) -> tuple[Callable[..., Any], int]:
        owner, dot, method = key.rpartition(".")
        if not dot:
            if key not in self._methods:
                raise unknown_name("call", key, self._methods)
            return self._methods[key]
        holder = evaluate(owner, self._values.names)
        known = {name.removeprefix("add_"): name for name in dir(holder) if name.startswith("add_")}
        if method not in known or not type(holder).__module__.startswith("gpusim."):
            raise unknown_name(f"call of {owner}", method, known)
        return getattr(holder, known[method]), 0

    def _loop(self, item: dict[str, Any]) -> None:
        extra = [key for key in item if key not in ("for", "if", "add")]
        if extra or "add" not in item:
            rule = f"has {extra[0]!r}" if extra else "has no 'add'"
            raise validate.fail("for", rule, "write '- for: {k: 3}' and below it 'add:' with the calls to repeat")
        for row in self._rows(item["for"]):
            names = self._values.names
            saved = {key: names[key] for key in row if key in names}
            with _located_errors(item, "for"):
                self._define(row)
            self._for_each("add", item["add"], self._entry)
            for key in row:  # names of the loop are unknown after it
                names.pop(key, None)
            names.update(saved)
            self._calls += 1
            self._count("for")

    def _rows(self, content: Any) -> Iterator[Any]:
        if isinstance(content, list):
            yield from content
            return
        if not isinstance(content, dict) or not content:
            rule = f"{content!r:.60} is neither a list nor a mapping"
            raise validate.fail("for", rule, "give {k: 3}, {name: [left, right], y: [1, -1]}, or rows")
        columns = {key: self._values.convert(value) for key, value in content.items()}
        sizes = {
            key: value if isinstance(value, int) else len(value)
            for key, value in columns.items()
            if _is_countable(value)
        }
        if len(sizes) != len(columns) or len(set(sizes.values())) != 1:
            raise validate.fail(
                "for", f"{', '.join(content)} differ in length", "give lists of one length, or a number"
            )
        count = next(iter(sizes.values()))
        if count < 0:
            raise validate.fail("for", f"{', '.join(content)} = {count} is negative", "give 0 or more")
        self._count("for", count)
        for k in range(count):
            yield {key: k if isinstance(value, int) else value[k] for key, value in columns.items()}

    # Other sections.

    def _model(self, item: Any) -> None:
        if not isinstance(item, dict) or "file" not in item:
            raise validate.fail("models", f"{item!r:.60} has no file", "write '- {file: arm.urdf}'")
        arguments = {key: self._values.convert(value, key, _MODEL_TYPES.get(key, "Any")) for key, value in item.items()}
        options = {key: value for key, value in arguments.items() if key not in _MODEL_KEYS}
        placement = {key: arguments[key] for key in _MODEL_KEYS[1:] if key in arguments}
        self._reports.append(self._builder.add_model(arguments["file"], **placement, **options))

    def _diagram(self, item: Any) -> None:
        if isinstance(item, str):
            self._builder.add_diagram(Diagram.load(self._folder / item))
            return
        self._evaluate_expressions(item)
        self._builder.add_diagram(files.from_layout(Diagram, item, self._name))

    def _evaluate_expressions(self, content: Any) -> None:
        """Replace the expressions in a diagram by their values. The entries keep their line numbers."""
        for key in content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ():
            if isinstance(content[key], str) and content[key].startswith("="):
                with _located_errors(content, key):
                    value = evaluate(content[key][1:], self._values.names)
                    content[key] = value.tolist() if hasattr(value, "tolist") else value
            else:
                self._evaluate_expressions(content[key])

    def _config(self, content: Any) -> SolverConfig:
        return self._record(SolverConfig, content)

    def _camera(self, content: Any) -> Camera:
        camera: Camera = self._record(Camera, content)
        points = {key: validate.numbers("camera", key, getattr(camera, key), 3) for key in ("position", "target")}
        return Camera(**{key: tuple(point.tolist()) for key, point in points.items()})

    def _plots(self, content: Any) -> list[Plot]:
        plots: list[Plot] = []
        self._for_each("plots", content, lambda item: plots.append(self._plot(item)))
        return plots

    def _plot(self, item: Any) -> Plot:
        plot: Plot = self._record(Plot, item)
        texts = [plot.title, plot.unit, *_texts(plot.signals), *_texts(plot.labels)]
        if not all(isinstance(text, str) for text in texts):
            raise validate.fail("plot", "has a value that is not text", "give title, unit, signals and labels")
        scale = validate.number("plot", "scale", plot.scale)
        return dataclasses.replace(plot, scale=scale)

    def _record(self, cls: type, content: Any) -> Any:
        return self._values.call(cls.__name__, cls, content, first=0)

    def _schedule(self, content: dict[str, Any]) -> Callable[[Any, float], None] | None:
        """Return the schedule from the sections ``commands`` and ``paths``, or None without these sections."""
        writers: list[Callable[[Any, float], None]] = []
        makers: tuple[tuple[str, Any, Any], ...] = (("commands", Schedule, drive), ("paths", CommandPath, follow_paths))
        for key, kind, make in makers:
            if key not in content:
                continue
            if not isinstance(content[key], dict):
                rule = f"{content[key]!r:.60} is not a mapping"
                raise Located(line(content, key), str(validate.fail(key, rule, "give 'label: [[time, value], ...]'")))
            tables = {}
            for label, points in content[key].items():
                with _located_errors(content[key], label, f"{key} '{label}': "):
                    tables[label] = kind(self._values.convert(points))
            writers.append(make(tables))
        if len(writers) < 2:
            return writers[0] if writers else None

        def write(sim: Any, t: float) -> None:
            for writer in writers:
                writer(sim, t)

        return write


_MODEL_TYPES = {"xform": "Transform", "parent": "int"}


def _is_countable(value: Any) -> bool:
    return isinstance(value, list | tuple) or hasattr(value, "tolist") or type(value) is int


def _texts(content: Any) -> list[Any]:
    return list(content) if isinstance(content, list | tuple) else [None]


@contextmanager
def _located_errors(content: Any, key: Any, prefix: str = "") -> Iterator[None]:
    """Add the line number of the entry ``content[key]`` to errors in the ``with`` block."""
    try:
        yield
    except GpusimError as error:
        raise located(error, line(content, key), prefix) from None
