"""Slave that runs inside an FMU.

The slave loads a simulation from the checkpoint in the FMU. The library pythonfmu3 calls the slave.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from gpusim.arrays import on_host
from gpusim.signals.saving.checkpoint_file import Settings, packed_checkpoint, unpacked_checkpoint
from gpusim.signals.saving.snapshot import Snapshot, check_model
from gpusim.simulation import Simulation
from gpusim.typing import Array

CHECKPOINT, PLAN = "checkpoint.npz", "fmu.json"
"""Names of the files in the resources folder of the FMU."""
_TIME = "fmu/time"


class SavedState:
    """Saved state of an FMU in memory. :meth:`to_bytes` caches its result."""

    def __init__(self, snapshot: Snapshot, time: float, pack: Callable[[Snapshot, float], bytes]) -> None:
        self.snapshot, self.time, self._pack = snapshot, time, pack
        self._bytes: bytes | None = None

    def to_bytes(self) -> bytes:
        """Convert the state and ``time`` to the bytes of a checkpoint file."""
        if self._bytes is None:
            self._bytes = self._pack(self.snapshot, self.time)
        return self._bytes


class CheckpointSlave:
    """Functions of an FMU, as a mix-in class for pythonfmu3's ``Fmi3Slave``.

    The FMU runs world 0 of a checkpoint.
    """

    log: Callable[..., None]
    register_variable: Callable[..., None]
    register_units: Callable[..., None]
    resources: str
    vars: Mapping[int, Any]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        folder = Path(self.resources)
        self.plan: dict[str, Any] = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        self.sim = Simulation.load(folder / CHECKPOINT)
        self.time = 0.0
        self._values: dict[str, Array] = {}
        self._commands: dict[str, float] = {}
        self._failure: str | None = None
        outputs = list(dict.fromkeys(v["source"] for v in self.plan["variables"] if v["causality"] == "output"))
        self._observation = self.sim.observe(outputs) if outputs else None
        self._fresh = False
        self._describe()
        self._register()

    def _describe(self) -> None:
        from pythonfmu3 import DefaultExperiment
        from pythonfmu3.unit import Unit

        self.guid, self.description = self.plan["token"], self.plan["description"]
        self.default_experiment = DefaultExperiment(0.0, self.plan["stop_time"], self.plan["step"])
        self.register_units([Unit(name, **base) for name, base in self.plan["units"].items()])

    def _register(self) -> None:
        from pythonfmu3 import Float64, Fmi3Causality, Fmi3Variability

        continuous = Fmi3Variability.continuous
        time = Float64("time", causality=Fmi3Causality.independent, variability=continuous, getter=lambda: self.time)
        self.register_variable(time, nested=False)
        for variable in self.plan["variables"]:
            causality = Fmi3Causality[variable["causality"]]
            tunable = causality == Fmi3Causality.parameter
            read, write = self._access(variable)
            fmu_variable = Float64(
                variable["name"], causality=causality, unit=variable["unit"], description=variable["description"],
                variability=Fmi3Variability.tunable if tunable else continuous, getter=read, setter=write,
            )  # fmt: skip
            self.register_variable(fmu_variable, nested=False)

    def _access(self, variable: dict[str, Any]) -> tuple[Callable[[], float], Callable[[float], None] | None]:
        """Return the functions that read and write a variable. For outputs, the second function is None."""
        source, component = variable["source"], variable["component"]
        if variable["command"]:
            return self._reader(partial(self._command, source)), partial(self._set_command, source)
        if variable["causality"] != "output":
            return self._reader(partial(self._value, source, component)), partial(self._set, source, component)
        assert self._observation is not None
        return self._reader(partial(self._output, self._observation.slices[source].start + component)), None

    # The host sets the components of a vector one by one. A vector with only some new components may be invalid, so
    # ``_write`` writes all values together before the next step or read. The code catches all errors, because an
    # uncaught error would crash the host.

    def _set_command(self, label: str, value: float) -> None:
        self._commands[label] = value

    def _set(self, name: str, component: int, value: float) -> None:
        if name not in self._values:
            self._values[name] = np.array(self.sim.read(name, numpy=True)[0])
        self._values[name].reshape(-1)[component] = value

    def _write(self) -> None:
        if self._values or self._commands:
            values, commands = self._values, self._commands
            self._values, self._commands, self._fresh = {}, {}, False
            if values:
                self.sim.write_state(values)
            for label, value in commands.items():
                self.sim.control[label] = value

    def _fail(self, error: Exception | str) -> None:
        """Log an error. The FMU stays in the failed state until the host restores a saved state."""
        from pythonfmu3 import Fmi3Status

        self._failure = str(error)
        self.log(self._failure, Fmi3Status.error)

    def _reader(self, read: Callable[[], float]) -> Callable[[], float]:
        def value() -> float:
            try:
                self._write()
                return read()
            except Exception as error:
                self._fail(error)
                return math.nan

        return value

    def _command(self, label: str) -> float:
        return float(self.sim.control[label][0])

    def _value(self, name: str, component: int) -> float:
        return float(self.sim.read(name, numpy=True)[0].reshape(-1)[component])

    def _output(self, column: int) -> float:
        assert self._observation is not None
        if not self._fresh:
            self._observation.read()
            self._fresh = True
        return float(on_host(self._observation.array)[0, column])

    def do_step(self, current_time: float, step_size: float) -> Any:
        """Advance by ``step_size`` seconds, with simulation steps of at most ``config.dt``."""
        from pythonfmu3 import Fmi3Status
        from pythonfmu3.fmi3slave import Fmi3StepResult

        if self._failure is None:
            try:
                self._write()
                self._advance(step_size)
                self.time = current_time + step_size
            except Exception as error:
                self._fail(error)
        return Fmi3StepResult(status=Fmi3Status.ok if self._failure is None else Fmi3Status.error)

    def _advance(self, duration: float) -> None:
        size = self.sim.config.dt
        count = max(math.ceil(duration / size - 1e-6), 1)
        if abs(duration - count * size) > 1e-6 * size:
            size = duration / count
        self._fresh = False
        self.sim.step(count, size)
        if not self.sim.health()[0]:
            self._fail(self.sim.health_report())

    def to_xml(self, *options: Any) -> Element:
        """Return the model description. Add names, ranges and exact numbers, which pythonfmu3 omits."""
        root: Element = super().to_xml(*options)  # type: ignore[misc]
        root.set("modelName", self.plan["name"])
        root.set("generationTool", self.plan["tool"])
        root.set("variableNamingConvention", "flat")
        ranges = {variable["name"]: variable["range"] for variable in self.plan["variables"]}
        for number, element in enumerate(root.iter("Float64")):
            for bound, value in zip(("min", "max"), ranges.get(element.get("name", "")) or (), strict=False):
                element.set(bound, repr(value))
            if element.get("start") is not None:
                element.set("start", repr(self.vars[number].getter()))
        return root

    def _get_fmu_state(self) -> SavedState:
        try:
            self._write()
        except Exception as error:
            self._fail(error)
        return SavedState(self.sim.snapshot(), self.time, self._pack_state)

    def _set_fmu_state(self, state: SavedState | bytes) -> None:
        self._values, self._commands, self._fresh = {}, {}, False
        try:
            if isinstance(state, bytes):
                snapshot, self.time = self._unpack_state(state)
            else:
                snapshot, self.time = state.snapshot, state.time
            self.sim.restore(snapshot)
            self._failure = None
        except Exception as error:
            self._fail(error)

    def _unpack_state(self, state: bytes) -> tuple[Snapshot, float]:
        checkpoint, model = unpacked_checkpoint("FMU state", state), self.sim.runtime.built
        check_model("FMU state", model, checkpoint.header["digest"])
        return checkpoint.snapshot(model.groups), float(checkpoint.arrays[_TIME])

    def _pack_state(self, snapshot: Snapshot, time: float) -> bytes:
        sim = self.sim
        settings = Settings(sim.backend_name, sim.dtype, sim.fast, sim.config)
        return packed_checkpoint(snapshot, sim.runtime.built, settings, {_TIME: np.array(time)})

    @staticmethod
    def _fmu_state_to_bytes(state: SavedState | bytes) -> bytes:
        return state if isinstance(state, bytes) else state.to_bytes()

    @staticmethod
    def _fmu_state_from_bytes(state: bytes) -> bytes:
        return state
