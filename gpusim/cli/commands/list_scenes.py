"""``gpusim list``: print the scenes, the parameters of one scene, or the content of a file."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from gpusim.cli.console import out_console
from gpusim.cli.options import RunOptions, check
from gpusim.scene import list_scenes, scene_parameters


def show_target(target: str | None) -> None:
    """Print the parameters of a scene or the content of a file. If ``target`` is None, print all scenes.

    Raises:
        GpusimError: the scene does not exist, or the file cannot be read.
    """
    if target is None:
        show_scenes()
        return
    options = RunOptions(target)
    if not options.is_file():
        show_parameters(target)
        return
    from gpusim.cli.commands.list_model import show_model

    check(options)
    show_model(options)


def show_scenes() -> None:
    """Print every scene with its one-line description."""
    table = Table(title="Scenes", title_justify="left")
    table.add_column("scene", style="bold", no_wrap=True)
    table.add_column("what it shows")
    for name, description in list_scenes().items():
        table.add_row(Text(name), Text(description))
    console = out_console()
    console.print(table)
    console.print("Run one with 'gpusim run SCENE'; see its parameters with 'gpusim list SCENE'.")


def show_parameters(scene: str) -> None:
    """Print the parameters of ``scene`` with types, defaults and meanings.

    Raises:
        UnknownNameError: the scene does not exist.
    """
    parameters = scene_parameters(scene)  # raises an error for unknown names, so call it first
    console = out_console()
    console.print(Text(f"{scene}: {list_scenes()[scene]}"))
    if not parameters:
        console.print("It has no parameters.")
        return
    table = Table()
    table.add_column("parameter", style="bold", no_wrap=True)
    table.add_column("default")
    table.add_column("value")
    table.add_column("meaning")
    for p in parameters:
        table.add_row(*(Text(cell) for cell in (p.name, _shown(p.default, p.left_out), p.type, p.doc)))
    console.print(table)
    console.print(f"Set them with 'gpusim run {scene} --set NAME=VALUE'.")


def _shown(default: Any, left_out: str) -> str:
    if default is None:
        return left_out
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{default:g}"
    return str(default)
