"""``gpusim fmu``: write a scene or a file as a co-simulation FMU."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import RunOptions, check
from gpusim.cli.run import check_backend, make_simulation
from gpusim.cli.targets import load_target
from gpusim.cosim.fmu import write_fmu
from gpusim.output_files import check_output_file


@dataclass(frozen=True)
class FmuOptions:
    """Options of one ``gpusim fmu`` command line. Lists of names are comma-separated; None means the default."""

    run: RunOptions
    out: Path
    inputs: Sequence[str] | None
    outputs: Sequence[str] | None
    parameters: Sequence[str] | None
    step: float | None


def fmu(options: FmuOptions) -> None:
    """Run one ``gpusim fmu`` command line.

    Raises:
        GpusimError: bad input; the message names the option, the rule and the fix.
    """
    check(options.run)
    check_output_file(options.out, (".fmu",), "--out")
    check_backend(options.run)
    scene = load_target(options.run, visuals=False)
    outputs = _names(options.outputs)
    if outputs is None and not scene.plots:
        raise OptionError(f"{scene.name!r} names no signals; name the outputs with --outputs")
    config = dataclasses.replace(scene.config, **options.run.config_changes())
    sim = make_simulation(options.run, scene, config, scene.builder.finalize())
    inputs = _names(options.inputs)
    write_fmu(
        sim, options.out, scene.signals() if outputs is None else outputs, inputs, _names(options.parameters) or [],
        step=options.step, stop_time=scene.duration, description=scene.description,
    )  # fmt: skip
    if scene.schedule is not None:
        note("the scene's schedule is not part of the FMU; the host sets the inputs")
    print(f"{options.out}: needs Python with gpusim on the computer that runs it")


def _names(given: Sequence[str] | None) -> list[str] | None:
    """Return the names of a comma-separated option."""
    if given is None:
        return None
    return [name.strip() for text in given for name in text.split(",") if name.strip()]
