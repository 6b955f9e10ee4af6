"""``write_fmu``: write a simulation as a co-simulation FMU (FMI 3.0) with the library pythonfmu3."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpusim import validate
from gpusim.builder.commands import command_hints
from gpusim.cosim.fmi_units import fmi_unit
from gpusim.cosim.fmu_slave import CHECKPOINT, PLAN
from gpusim.description.ui_hints import UiHints
from gpusim.errors import ModelError, unknown_name
from gpusim.model.model import Model
from gpusim.output_files import atomic_file, check_output_file
from gpusim.signals.control_map import check_free
from gpusim.signals.observe import chosen_commands
from gpusim.signals.saving.checkpoint_file import read_checkpoint, version
from gpusim.signals.signal import SignalInfo
from gpusim.simulation import Simulation
from gpusim.validate import matching, name_list

_SCRIPT = '''"""{name}: an FMU that gpusim {version} runs. See documentation/index.html."""

import sys

try:
    from pythonfmu3 import Fmi3Slave

    from gpusim.cosim.fmu_slave import CheckpointSlave
except Exception as error:  # an import error would crash the host, but the host logs an error in __init__
    MISSING = "this FMU needs Python 3.10 or newer with gpusim {version}, and the host has Python %s in %s (%s)" % (
        sys.version.split()[0], sys.prefix, error)

    class CheckpointSlave(object):
        def __init__(self, **options):
            raise ImportError(MISSING)

    Fmi3Slave = object


class {identifier}(CheckpointSlave, Fmi3Slave):
    """The FMU."""
'''
_NEEDS = """This FMU needs Python 3.10 or newer with gpusim {version} and NumPy on the computer that runs it.
The host must be a Python program (such as FMPy), or must load the shared library of this Python before the FMU.
The FMU has binaries for Linux and Windows on x86-64. The backend is "{backend}"{compiler}.
"""
_PAGE = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{name}</title></head>
<body><h1>{name}</h1><p>{description}</p><h2>Requirements</h2><p>{needs}</p></body></html>
"""


def write_fmu(
    sim: Simulation,
    path: str | os.PathLike[str],
    outputs: str | Sequence[str],
    inputs: str | Sequence[str] | None = None,
    parameters: str | Sequence[str] = (),
    *,
    step: float | None = None,
    stop_time: float = 10.0,
    description: str = "",
) -> None:
    """Write a simulation as a co-simulation FMU (FMI 3.0). Install pythonfmu3 with ``pip install "gpusim[fmu]"``.

    The FMU starts in the current state of the simulation. The computer that runs the FMU needs Python and this version
    of gpusim. After equal steps, the outputs of the FMU and the signals of ``sim`` are bit-identical.

    Args:
        sim: simulation with one world.
        path: path of the file, which must end in .fmu. The file name without .fmu is the name of the FMU.
        outputs: names or wildcards of signals. A vector becomes one variable per component, such as
            ``body.load.position[2]``.
        inputs: names or wildcards of commands or writable signals, such as applied forces. None selects all operator
            commands.
        parameters: names or wildcards of writable signals, such as ``body.load.mass``.
        step: default communication step (s), or None for the step size of the simulation.
        stop_time: default end time of a run (s).
        description: one-line description.

    Raises:
        UnknownNameError: a signal or command does not exist.
        ModelError: pythonfmu3 is not installed, the file cannot be written, an input or parameter is not writable,
            ``sim`` has several worlds, or the model contains Python functions, which a file cannot store.
    """
    file = check_output_file(path, (".fmu",), "FMU")
    validate.simulation("FMU", sim)
    builder = _library()
    if not isinstance(description, str):
        raise validate.fail("FMU", f"description = {validate.shown(description)} is not text", "give one line of text")
    if sim.num_worlds != 1:
        raise validate.fail("FMU", f"the simulation has {sim.num_worlds} worlds", "give a simulation with one world")
    size = sim.config.dt if step is None else validate.positive("FMU", "step", step)
    plan: dict[str, Any] = {
        "name": file.stem, "description": description, "tool": f"gpusim {version()}", "step": size,
        "stop_time": validate.positive("FMU", "stop_time", stop_time), "variables": [], "units": {},
    }  # fmt: skip
    plan["variables"] = [*_inputs(sim, inputs), *_signals(sim, parameters, "parameter"), *_outputs(sim, outputs)]
    _check_names(plan["variables"])
    _collect_units(plan)
    with tempfile.TemporaryDirectory() as folder:
        fmu = _build(sim, plan, builder, Path(folder))
        with atomic_file(file) as stream:
            stream.write(fmu.read_bytes())


def _library() -> Any:
    try:
        from pythonfmu3.builder import FmuBuilder
    except ImportError:
        raise ModelError('FMUs need pythonfmu3, which is not installed; pip install "gpusim[fmu]"') from None
    return FmuBuilder


def _build(sim: Simulation, plan: dict[str, Any], builder: Any, folder: Path) -> Path:
    """Build the FMU in ``folder`` and return the path of the .fmu file."""
    checkpoint = folder / CHECKPOINT
    sim.save(checkpoint)
    stored = read_checkpoint(checkpoint)
    if stored.model_text is None:
        raise ModelError(
            f"FMU: the model cannot be stored, since {stored.header['unstored']}; use blocks without Python"
        )
    digest = hashlib.sha256(checkpoint.read_bytes() + json.dumps(plan).encode()).hexdigest()
    plan["token"] = digest
    (folder / PLAN).write_text(json.dumps(plan), encoding="utf-8")
    identifier = re.sub(r"\W", "_", plan["name"], flags=re.ASCII)
    identifier = identifier if identifier[0].isalpha() else f"fmu_{identifier}"
    # A host may load several FMUs into one Python process, so each FMU needs a unique module name.
    script = folder / f"{identifier}_{digest[:12]}.py"
    text = _SCRIPT.format(name=plan["name"], version=version(), identifier=identifier)
    script.write_text(text, encoding="utf-8")
    documents = _write_documents(sim, plan, folder)
    fmu: Path = builder.build_FMU(
        script, dest=folder / "made", project_files=[checkpoint, folder / PLAN], documentation_folder=documents,
        canGetAndSetFMUState=True, canSerializeFMUState=True, canHandleVariableCommunicationStepSize=True,
    )  # fmt: skip
    return fmu


def _write_documents(sim: Simulation, plan: dict[str, Any], folder: Path) -> Path:
    """Write the FMU's documentation, and return its folder."""
    compiler = ", which also needs a C++ compiler" if sim.backend_name == "native" else ""
    needs = _NEEDS.format(version=version(), backend=sim.backend_name, compiler=compiler)
    documents = folder / "documents"
    documents.mkdir()
    page = _PAGE.format(name=plan["name"], description=plan["description"], needs=needs)
    (documents / "index.html").write_text(page, encoding="utf-8")
    (documents / "externalDependencies.txt").write_text(needs, encoding="utf-8")
    return documents


# Variables.


def _matches(pattern: str, known: Collection[str]) -> bool:
    """Return whether a name or wildcard matches one of the known names."""
    return pattern in known or bool(fnmatch.filter(known, pattern))


def _inputs(sim: Simulation, inputs: str | Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the variables of the inputs (commands or writable signals)."""
    if inputs is None:
        names = list(sim.model.operator_commands)
    else:
        names = validate.name_list("FMU: inputs", inputs)
    hints, signals, variables = _hints(sim.model), sim.signals(), []
    for name in names:
        if _matches(name, sim.model.controls):
            labels = chosen_commands(sim.runtime, name)
            for label in labels:
                check_free(sim.runtime, label)
            variables += [_command(label, hints.get(label)) for label in labels]
        elif _matches(name, signals):
            variables += _signals(sim, [name], "input")
        else:
            raise unknown_name("command or signal", name, [*sim.model.controls, *signals])
    return variables


def _hints(model: Model) -> dict[str, UiHints]:
    """Return ranges and units of the commands and diagram inputs."""
    hints = dict(command_hints(model))
    for diagram in model.diagrams:
        for item in diagram.operator_inputs:
            hints[item.label] = UiHints(item.lower, item.upper, unit=item.unit or "-", limited=False)
    return hints


def _command(label: str, hints: UiHints | None) -> dict[str, Any]:
    unit = "-" if hints is None else hints.unit
    limits = [hints.lower, hints.upper] if hints is not None and hints.limited else None
    return _variable(label, "input", label, 0, unit, f"command '{label}'", limits, command=True)


def _signals(sim: Simulation, names: str | Sequence[str], causality: str) -> list[dict[str, Any]]:
    """Return the variables of writable signals."""
    known = sim.signals()
    chosen = name_list("FMU: parameters", names)
    found = matching("signal", chosen, known) if chosen else []
    for name in found:
        if not known[name].writable:
            raise validate.fail(f"FMU {causality} '{name}'", "the signal cannot be written", "give a writable signal")
    return [variable for name in found for variable in _components(known[name], causality)]


def _outputs(sim: Simulation, names: str | Sequence[str]) -> list[dict[str, Any]]:
    known = sim.signals()
    return [v for name in sim.observe(names).names for v in _components(known[name], "output")]


def _components(info: SignalInfo, causality: str) -> Iterator[dict[str, Any]]:
    """Yield the variables of one signal."""
    for k in range(math.prod(info.shape)):
        name = f"{info.name}[{k}]" if info.shape else info.name
        yield _variable(name, causality, info.name, k, info.unit, info.doc, None)


def _variable(
    name: str, causality: str, source: str, component: int, unit: str, doc: str, limits: list[float] | None,
    command: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the JSON entry of a variable."""
    return {
        "name": name, "causality": causality, "source": source, "component": component, "unit": unit,
        "description": doc, "range": limits, "command": command,
    }  # fmt: skip


def _check_names(variables: Sequence[dict[str, Any]]) -> None:
    seen = {"time"}
    for name in (variable["name"] for variable in variables):
        if name in seen:
            raise validate.fail("FMU", f"two variables have the name '{name}'", "give each name once")
        seen.add(name)


def _collect_units(plan: dict[str, Any]) -> None:
    """Add the FMI units of all variables to the plan. Write units unknown to FMI into the variables' descriptions."""
    for variable in plan["variables"]:
        base = fmi_unit(variable["unit"])
        if base is None:
            if variable["unit"] not in ("-", "?", ""):
                variable["description"] += f", {variable['unit']}"
            variable["unit"] = None
        else:
            plan["units"][variable["unit"]] = base
