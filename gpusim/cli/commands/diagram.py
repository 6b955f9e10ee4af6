"""``gpusim diagram``: draw a block diagram of a scene or a file, save it to a file, or list the diagrams."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from gpusim.cli.console import note, out_console
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.cli.target_files import MODEL
from gpusim.cli.targets import load_target
from gpusim.errors import unknown_name
from gpusim.input_files import bounded_text
from gpusim.output_files import check_output_file
from gpusim.scene import scene_parameters

if TYPE_CHECKING:
    from gpusim.control import Diagram

_FILES = (".yaml", ".yml")
_DRAWING = ".svg"


@dataclass(frozen=True)
class DiagramOptions:
    """Options of the command ``gpusim diagram``. If ``out`` is None, the command lists the diagrams."""

    target: str
    label: str | None = None
    out: Path | None = None
    settings: tuple[str, ...] = ()


def diagram(options: DiagramOptions) -> None:
    """Run the command ``gpusim diagram``.

    Raises:
        GpusimError: the input is invalid.
    """
    if options.out is not None:
        check_output_file(options.out, (_DRAWING, *_FILES), "--out")
    found = _all(options)
    if options.out is None:
        _show(_chosen(options, found) if options.label else found, options.target)
        return
    one = _chosen(options, found)[0]
    if options.out.suffix.lower() in _FILES:
        one.save(options.out)
    else:
        from gpusim.control.drawing import save_svg

        save_svg(one, options.out)
    note(f"wrote {options.out}")


def _all(options: DiagramOptions) -> list[Diagram]:
    """Load all diagrams of a scene, or the only diagram of a diagram file."""
    from gpusim.control import Diagram

    if _is_diagram(options.target):
        if options.settings:
            raise OptionError("--set: a diagram's file has no parameters; drop the option")
        return [Diagram.load(options.target)]
    run = RunOptions(options.target, settings=options.settings)
    if run.kind() == MODEL:
        raise OptionError(f"SCENE|FILE {options.target!r} is a model file, which has no diagrams; give a scene")
    check(run)
    found = [spec for spec in load_target(run, visuals=False).builder.diagrams if isinstance(spec, Diagram)]
    if not found:
        rule = f"scene {options.target!r} has no diagrams"
        chosen = not run.is_file() and any(
            p.name == "control" and "diagram" in p.type for p in scene_parameters(options.target)
        )
        hint = "give --set control=diagram" if chosen else "give one whose model calls add_diagram, or a .yaml file"
        raise OptionError(f"{rule}; {hint}")
    return found


def _is_diagram(target: str) -> bool:
    """Return True if the target is a diagram file, or False if it is a machine file."""
    path = Path(target)
    if path.suffix.lower() not in _FILES:
        return False
    try:
        text = bounded_text(path)
    except (OSError, UnicodeDecodeError):
        return True  # treat it as a diagram: the reader of diagrams explains the error
    return not any(line.startswith(("add:", "models:", "diagrams:")) for line in text.splitlines())


def _chosen(options: DiagramOptions, found: list[Diagram]) -> list[Diagram]:
    """Return the diagram that ``--label`` selects, or the only diagram, as a list.

    Raises:
        OptionError: the label is unknown, or there are several diagrams and no label is given.
    """
    labels = [one.label for one in found]
    if options.label is not None and options.label not in labels:
        raise OptionError(f"--label: {unknown_name('diagram', options.label, labels)}")
    if options.label is None and len(found) > 1:
        listed = ", ".join(labels)
        raise OptionError(f"{options.target!r} has several diagrams ({listed}); choose one, as --label {labels[0]}")
    return [one for one in found if options.label in (None, one.label)]


def _show(found: list[Diagram], target: str) -> None:
    """Print a table with the sample rate, blocks, inputs, signals and commands of each diagram."""
    table = Table(title=f"Diagrams of {target}", title_justify="left")
    table.add_column("diagram", style="bold", no_wrap=True)
    for name in ("samples a second", "blocks", "operator inputs", "signals", "commands"):
        table.add_column(name)
    for one in found:
        flat = one.flat()
        read = [b.signal for b in flat.blocks.values() if b.kind == "signal"]  # type: ignore[attr-defined]
        signals = dict.fromkeys(name for names in read for name in ([names] if isinstance(names, str) else names))
        table.add_row(
            Text(one.label),
            "every step" if one.rate is None else f"{one.rate:g}",
            str(len(flat.blocks)),
            Text(", ".join(item.label for item in flat.operator_inputs) or "-"),
            Text(", ".join(signals) or "-"),
            Text(", ".join(flat.driven) or "-"),
        )
    console = out_console()
    console.print(table)
    console.print(f"Draw one with 'gpusim diagram {target} --label {found[0].label} --out {found[0].label}.svg'.")
