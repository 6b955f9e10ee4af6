"""``gpusim convert``: read a model file, a machine or a scene, and write it as MJCF or USD."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpusim.cli.options import RunOptions, check
from gpusim.cli.target_files import MACHINE, PYTHON, kind_of
from gpusim.cli.targets import load_target
from gpusim.errors import unknown_name
from gpusim.output_files import check_apart, check_output_file
from gpusim.scene import list_scenes

if TYPE_CHECKING:
    from gpusim.builder.builder import ModelBuilder
    from gpusim.exporters.report import ExportReport
    from gpusim.importers.report import ImportReport

SUFFIXES = (".xml", ".usda", ".usd", ".usdc")


@dataclass(frozen=True)
class ConvertOptions:
    """Options of the command ``gpusim convert``."""

    source: str
    out: Path
    json: bool = False
    strict: bool = False
    fixed_base: bool | None = None


def convert_command(
    source: Annotated[
        str,
        typer.Argument(metavar="IN", help="A model (URDF, MJCF, SDF, USD), a machine (.yaml, .py) or a scene."),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Write it to this .xml (MJCF), .usda or .usd file.")],
    json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if the conversion would change the motion.")] = False,
    fixed_base: Annotated[
        bool | None, typer.Option("--fixed-base/--floating", help="Fix or free the base (default: as in the file).")
    ] = None,
) -> None:
    """Convert a model file, a machine or a scene to MJCF (MuJoCo) or USD, and report what is lost."""
    convert(ConvertOptions(source, out, json, strict, fixed_base))


def convert(options: ConvertOptions) -> None:
    """Run the command ``gpusim convert``.

    Raises:
        GpusimError: the input is invalid.
    """
    check_output_file(options.out, SUFFIXES, "OUT")
    check_apart({"IN": options.source, "OUT": options.out})
    builder, read = _read(options)
    if read is not None and options.strict:
        read.raise_if_not_exact()
    written = _write(builder, options, _name(options, read))
    if options.json:
        content = {"import": None if read is None else json.loads(read.json()), "export": json.loads(written.json())}
        typer.echo(json.dumps(content, indent=2))
        return
    if read is not None:
        typer.echo(read.summary())
    typer.echo(written.summary())


def _read(options: ConvertOptions) -> tuple[ModelBuilder, ImportReport | None]:
    """Load a scene or a file."""
    from gpusim.importers.load import load
    from gpusim.importers.report import combined

    source, scenes = options.source, list_scenes()
    target = RunOptions(source, fixed_base=options.fixed_base is True, floating=options.fixed_base is False)
    kind = None if source in scenes else kind_of(source)
    if source in scenes or kind in (MACHINE, PYTHON):
        check(target)
        reports: list[ImportReport] = []
        return load_target(target, reports=reports).builder, combined(reports)
    if not Path(source).suffix and not Path(source).exists():
        raise unknown_name("scene or model file", source, scenes)
    more = {} if options.fixed_base is None else {"fixed_base": options.fixed_base}
    return load(Path(source), **more)


def _name(options: ConvertOptions, read: ImportReport | None) -> str:
    """Return the name of the robot, the scene or the file."""
    name = "" if read is None else read.robot_name.strip()
    return name if name and name.isprintable() else Path(options.source).stem


def _write(builder: ModelBuilder, options: ConvertOptions, name: str) -> ExportReport:
    from gpusim.exporters import to_mjcf, to_usd

    if options.out.suffix.lower() == ".xml":
        if options.strict:
            to_mjcf(builder)[1].raise_if_not_exact()
        return to_mjcf(builder, options.out, name=name)[1]
    if options.strict:
        to_usd(builder)[1].raise_if_not_exact()
    return to_usd(builder, options.out, name=name)[1]
