"""Host of FMUs for the tests. It calls FMI 3.0 with FMPy, by names of variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fmpy import extract, read_model_description
from fmpy.fmi3 import FMU3Slave


class Host:
    def __init__(
        self, path: Path, folder: Path, name: str = "one", logged: list[str] | None = None, **values: float
    ) -> None:
        self.description = read_model_description(str(path))
        extract(str(path), unzipdir=str(folder))
        self.numbers = {v.name: v.valueReference for v in self.description.modelVariables}
        self.logged: list[str] = [] if logged is None else logged
        self.fmu = FMU3Slave(
            instanceName=name, guid=self.description.instantiationToken, unzipDirectory=str(folder),
            modelIdentifier=self.description.coSimulation.modelIdentifier,
        )  # fmt: skip
        self.fmu.instantiate(loggingOn=True, logMessage=self._log)
        self.fmu.enterInitializationMode(startTime=0.0)
        self.set(values)
        self.fmu.exitInitializationMode()
        self.time = 0.0

    def _log(self, environment: Any, status: int, category: bytes, message: bytes) -> None:
        self.logged.append(message.decode())

    def set(self, values: dict[str, float]) -> None:
        if values:
            self.fmu.setFloat64([self.numbers[name] for name in values], list(values.values()))

    def get(self, *names: str) -> list[float]:
        return list(self.fmu.getFloat64([self.numbers[name] for name in names]))

    def step(self, size: float) -> None:
        self.fmu.doStep(currentCommunicationPoint=self.time, communicationStepSize=size)
        self.time += size

    def close(self) -> None:
        self.fmu.terminate()
        self.fmu.freeInstance()
