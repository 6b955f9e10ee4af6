"""``gpusim fmu``: write a scene or a file as a co-simulation FMU."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from gpusim.cli.arguments import (
    Backend,
    BackendOption,
    DtOption,
    FixedBaseOption,
    FloatingOption,
    FloorOption,
    PoseOption,
    SeedOption,
    SettingsOption,
    TargetArgument,
    pick,
)
from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.output_files import check_output_file


def fmu_command(
    target: TargetArgument,
    out: Annotated[Path, typer.Option(metavar="X.FMU", help="Write the FMU to this file.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Commands or writable signals (default: the operator's commands)."),
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Signals (default: those that the scene plots).")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Writable signals, such as body.load.mass.")
    ] = None,
    step: Annotated[
        float | None, typer.Option(metavar="S", help="Default communication step (default: the simulation's step).")
    ] = None,
    settings: SettingsOption = None,
    dt: DtOption = None,
    backend: BackendOption = Backend.auto,
    seed: SeedOption = None,
    fixed_base: FixedBaseOption = False,
    floating: FloatingOption = False,
    pose: PoseOption = None,
    floor: FloorOption = False,
) -> None:
    """Write a scene or a file as a co-simulation FMU (FMI 3.0). To run the FMU, a computer needs Python and gpusim."""
    run = pick(RunOptions, locals(), out=None)
    names = {"inputs": inputs, "outputs": outputs, "parameters": parameters}
    _fmu(run, out, {kind: _names(given) for kind, given in names.items()}, step)


def _fmu(run: RunOptions, out: Path, names: Mapping[str, list[str] | None], step: float | None) -> None:
    """Build the simulation and write it as an FMU.

    ``names`` maps "inputs", "outputs" and "parameters" to the chosen names, or to None for the default names.

    Raises:
        GpusimError: the input is invalid.
    """
    from gpusim.cli.commands.run import check_backend, make_simulation
    from gpusim.cli.targets import load_target
    from gpusim.cosim.fmu import write_fmu

    check(run)
    check_output_file(out, (".fmu",), "--out")
    check_backend(run)
    scene = load_target(run, visuals=False)
    outputs = names["outputs"]
    if outputs is None and not scene.plots:
        raise OptionError(f"{scene.name!r} names no signals; name the outputs with --outputs")
    config = dataclasses.replace(scene.config, **run.config_changes())
    sim = make_simulation(run, config, scene.builder.finalize())
    write_fmu(
        sim, out, scene.signals() if outputs is None else outputs, names["inputs"], names["parameters"] or [],
        step=step, stop_time=scene.duration, description=scene.description,
    )  # fmt: skip
    if scene.schedule is not None:
        note("the scene's schedule is not part of the FMU; the host sets the inputs")
    print(f"wrote {out}; the computer that runs it needs Python with gpusim")


def _names(given: Sequence[str] | None) -> list[str] | None:
    """Split the comma-separated value of an option into names."""
    if given is None:
        return None
    return [name.strip() for text in given for name in text.split(",") if name.strip()]
