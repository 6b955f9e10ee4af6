"""Write the generated pages of docs/reference: builder methods, signals, command line, scenes.

    python ci/docs/docs_reference.py --write
    python ci/docs/docs_reference.py --check

``--check`` exits with code 1 and names the pages that differ.
"""

from __future__ import annotations

import argparse
import enum
import re
import sys
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer.main

import gpusim
from gpusim.cli.main import app
from gpusim.description.actuator_kinds import actuator_kinds
from gpusim.scene import list_scenes, scene_parameters
from gpusim.signals.elements.actuator_signals import BRAKE_SIGNALS

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
NOTE = "<!-- made by ci/docs/docs_reference.py --write -->\n\n"
GROUPS = {
    "Bodies and assembly": ("gpusim.builder.", "gpusim.importers."),
    "Joints": ("gpusim.joints",),
    "Actuators": ("gpusim.actuators",),
    "Shapes, sites and sensors": ("gpusim.shapes", "gpusim.sensors"),
}
VARIABLES = (
    ("GPUSIM_CACHE", "folder of compiled kernels", "the user's cache folder"),
    ("GPUSIM_THREADS", "threads of the native backend", "all cores"),
    (
        "GPUSIM_CUDA_BUILD",
        "`auto`, `full` (wait for optimized GPU code) or `quick` (without optimized GPU code)",
        "`auto`",
    ),
    ("GPUSIM_GL_DEBUG", "check every OpenGL call", "off"),
    ("CXX", "C++ compiler of the native backend", "g++ or clang++"),
)
"""Environment variables: name, meaning, default."""
COMMANDS = ("run", "sweep", "view", "render", "list", "check", "diagram", "convert", "fmu", "doctor", "bench")


def plain(text: str) -> str:
    """Return a text as one line for a table cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    cells = head.split(" | ")
    lines = [f"| {head} |", "|" + " --- |" * len(cells)]
    escaped = ([re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row] for row in rows)
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in escaped)]) + "\n"


def builder() -> str:
    """Return the page of all methods of ModelBuilder, including methods from other modules."""
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    bases = gpusim.ModelBuilder.__mro__[:3]  # the class, methods from other modules, and the dictionary format
    for name in sorted({name for base in bases for name in vars(base)}):
        method = getattr(gpusim.ModelBuilder, name)
        if name.startswith("_") or not callable(method):
            continue
        group = next(g for g, modules in GROUPS.items() if method.__module__.startswith(modules))
        found[group].append(f"{method.__module__}.{method.__qualname__}")
    text = "# ModelBuilder\n\nEvery function on this page is a method of `gpusim.ModelBuilder`.\n\n"
    text += "::: gpusim.ModelBuilder\n    options:\n      members: false\n\n"
    for group, paths in found.items():
        text += f"## {group}\n\n" + "".join(f"::: {path}\n\n" for path in paths)
    return text.rstrip() + "\n"


def _sample() -> gpusim.Simulation:
    """Return a small model with all types of elements except actuators, and with one actuator."""
    b = gpusim.ModelBuilder()
    ground = b.add_shape_plane(-1, label="ground")
    body, other = (b.add_body(1.0, (1, 1, 1), label=name) for name in ("BODY", "other"))
    ball = b.add_shape_sphere(body, 0.1, label="SHAPE")
    joint = b.add_joint_revolute(-1, body, label="JOINT")
    b.add_joint_distance(body, other, max_distance=2.0, label="ROPE")
    b.add_latch(-1, other, label="LATCH")
    b.add_joint_ball(-1, other, cone_limit=1.0, label="BALL")
    b.add_joint_force(joint, label="LABEL", delay=0.01)
    b.set_command_map("LABEL", time_constant=0.1)
    site = b.add_site(other, label="SITE")
    b.add_force_sensor(joint, label="JOINT_SENSOR")
    b.add_contact_sensor(other, label="CONTACT_SENSOR")
    b.add_ray_sensor(site, label="RAY_SENSOR")
    b.add_collision_pair(ground, ball, material=gpusim.Material())
    return gpusim.Simulation(b.finalize(), backend="numpy")


SECTIONS = {
    "Simulation": ("sim.",),
    "Bodies": ("body.BODY.",),
    "Joints": ("joint.JOINT.",),
    "Ropes, rods and tendons": ("joint.ROPE.",),
    "Latches and cone limits": ("joint.LATCH.attached", "joint.BALL.cone_limit"),
    "Shapes": ("shape.SHAPE.",),
    "Pairs with a custom material": ("pair.",),
    "Sites": ("site.SITE.",),
    "Sensors": ("sensor.",),
    "Delays and activations of commands": tuple(f"force.LABEL.{x}" for x in ("delay", "time_constant", "activation")),
}
NOTES = {
    "Joints": "With several coordinates, the names of the parameters end with the index of the coordinate, such as "
    "`joint.JOINT.limit_lower_0`.\n\n",
    "Sensors": "A sensor of `gpusim.sensors` with noise is a block diagram. Its wires are signals `sensor.LABEL.WIRE`."
    "\n\n",
    "Delays and activations of commands": "Other actuators with a delay or an activation have the same signals, with "
    "their prefixes.\n\n",
}


def _shape(shape: tuple[int, ...]) -> str:
    return "number" if not shape else " x ".join(str(n) for n in shape)


def signals() -> str:
    """Return the page of signals."""
    known = _sample().signals()
    text = (
        "# Signals\n\nRead a signal with `sim.read(name)`. Write a writable signal with `sim.write(name, value, "
        "worlds=...)`. The first\naxis of the array is the world index. `sim.signals()` lists the signals of your "
        "model.\n\nReading a signal marked *trial* runs a trial step, which costs about as much as a step. Block "
        "diagrams cannot\nread these signals.\n\n"
    )
    for title, starts in SECTIONS.items():
        rows = []
        for name, info in known.items():
            if not name.startswith(starts) or (title.startswith("Ropes") and not name.endswith("tension")):
                continue
            marks = ", ".join(word for word, holds in (("writable", info.writable), ("trial", info.forward)) if holds)
            rows.append([f"`{name}`", _shape(info.shape), info.unit, marks, plain(info.doc)])
        text += f"## {title}\n\n" + NOTES.get(title, "") + table("signal | shape | unit | access | what", rows) + "\n"
    text += "## Actuators\n\nLABEL is the actuator's label. Commands are written with `sim.control[LABEL]`.\n\n"
    for kind in sorted(actuator_kinds(), key=lambda kind: kind.prefix):
        start = f"{kind.prefix}.LABEL"
        stored = {*kind.commands, *(variable.name for variable in kind.variables)}
        rows = [
            [f"`{start}.{r.name}`", r.unit, "writable" if r.name in stored else "", plain(r.doc)] for r in kind.readings
        ]
        taken = {reading.name for reading in kind.readings}
        rows += [
            [f"`{start}.{p.name}`", p.unit, "writable", plain(p.doc)]
            for p in kind.parameters
            if p.signal and p.name not in taken
        ]
        rows += [[f"`{start}.{name}`", unit, "trial", doc] for name, unit, doc in BRAKE_SIGNALS if kind.brakes]
        if rows:
            commands = ", ".join(f"`{c}`" for c in kind.commands) or "none"
            text += f"### `{kind.name}`\n\nCommands: {commands}.\n\n"
            text += table("signal | unit | access | what", rows) + "\n"
    text += "## Block diagrams\n\nEvery wire of a diagram is a signal. [Block diagrams](../guides/block_diagrams.md) "
    text += "lists the names.\n"
    return text


def _value(option: Any, hints: dict[str, Any]) -> str:
    """Return the value of an option for the table: its metavar, choices or type."""
    hint = hints[option.name]
    types = [t for t in (typing.get_args(hint) or (hint,)) if t is not type(None)]
    if option.metavar:
        return f"`{option.metavar}`"
    if types[0] is bool:
        return ""
    if isinstance(types[0], type) and issubclass(types[0], enum.Enum):
        return ", ".join(f"`{choice.value}`" for choice in types[0])
    return getattr(types[0], "__name__", str(types[0]))


def _option(option: Any, hints: dict[str, Any]) -> list[str]:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    default = option.default
    hidden = default is None or default is False or callable(default) or default in ((), [])
    shown = "" if hidden else f"`{getattr(default, 'value', default)}`"
    return [names, _value(option, hints), shown, plain(option.help or "")]


def cli() -> str:
    """Return the page of the command line."""
    commands: Any = typer.main.get_command(app)
    text = (
        "# Command line\n\n| exit code | meaning |\n| --- | --- |\n| 0 | done, also with warnings |\n| 1 | a world "
        "failed, a joint opened by 1 cm or 0.02 rad, or a scene with its defaults does not meet its checks |\n"
        "| 2 | invalid input, or drawing is not possible |\n| 130 | interrupted |\n\n"
    )
    for name in COMMANDS:
        command = commands.commands[name]
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
        hints = typing.get_type_hints(command.callback)
        words = " ".join(p.metavar or p.name or "" for p in arguments)
        text += f"## gpusim {name}\n\n{plain((command.help or '').split(chr(12))[0])}\n\n"
        text += f"Usage: `gpusim {name} [OPTIONS] {words}`\n\n".replace(" ` ", "` ")
        text += "".join(f"* `{p.metavar or p.name}`: {plain(getattr(p, 'help', '') or '')}\n" for p in arguments) + "\n"
        text += table("option | value | default | what", (_option(option, hints) for option in options)) + "\n"
    text += "## Environment variables\n\n"
    text += table("variable | what | default", ([f"`{name}`", what, default] for name, what, default in VARIABLES))
    return text.rstrip() + "\n"


def _pictures() -> dict[str, str]:
    """Return the options of ci/docs/make_gallery.sh for the picture of each scene."""
    script = (Path(__file__).parent / "make_gallery.sh").read_text(encoding="utf-8")
    lines = script.split("<<'SCENES'\n", 1)[1].split("SCENES", 1)[0].splitlines()
    return {line.split()[0]: line.strip() for line in lines if line.strip()}


def scenes() -> str:
    """Return the page of the scenes."""
    pictures = _pictures()
    text = (
        "# Scenes\n\nRun a scene with `gpusim run NAME`. Look at it with `gpusim view NAME`. Change a parameter with "
        "`--set NAME=VALUE`.\nFrom Python: `gpusim.scene.load_scene(name, **parameters)`.\n\n"
    )
    for name, description in list_scenes().items():
        text += f"## {name}\n\n{description}\n\n"
        if name in pictures:
            text += f"![{name}](../gallery/{name}.png){{ width=480 }}\n\n"
            text += f"Picture: `gpusim render {pictures[name]} --quality high --out {name}.png`\n\n"
        rows = [[f"`{p.name}`", p.type, f"`{p.default}`", plain(p.doc)] for p in scene_parameters(name)]
        text += table("parameter | type | default | what", rows) + "\n" if rows else ""
    return text.rstrip() + "\n"


PAGES = {"api/builder.md": builder, "signals.md": signals, "cli.md": cli, "scenes.md": scenes}


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", action="store_true")
    task.add_argument("--check", action="store_true")
    options = parser.parse_args()
    different = []
    for name, page in PAGES.items():
        path, text = FOLDER / name, NOTE + page()
        if options.write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            different.append(name)
    if different:
        print(f"These pages are out of date: {', '.join(different)}. Run python ci/docs/docs_reference.py --write.")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
