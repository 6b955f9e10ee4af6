from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import ModelError
from tests.message_snapshot import naming

PATIENCE = 240.0


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


class Viewer:
    """The server of the viewer without its window."""

    def __init__(self, file: Path) -> None:
        pytest.importorskip("rerun")
        # the program itself: the command of this name is a script that starts it and would leave it behind
        found = importlib.util.find_spec("rerun_cli")
        folder = found.submodule_search_locations[0] if found and found.submodule_search_locations else ""
        command = shutil.which("rerun", path=folder)
        if command is None:
            pytest.skip("rerun-sdk has no viewer here")
        self.file, self.port = file, free_port()
        self.address = f"rerun+http://127.0.0.1:{self.port}/proxy"
        self._process = subprocess.Popen(
            [command, "--port", str(self.port), "--save", str(file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + PATIENCE
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            assert time.monotonic() < end, "the server did not start"
            time.sleep(0.05)

    def rows(self, entity: str, column: str) -> list[Any]:
        found: list[tuple[int, Any]] = []
        for batch in self.batches(entity, column):
            times = batch.column("time").cast("int64").to_pylist()
            found += zip(times, batch.column(column).to_pylist(), strict=True)
        return [value for _, value in sorted(found, key=lambda pair: pair[0])]

    def statics(self, entity: str, column: str) -> list[Any]:
        return [value for batch in self.batches(entity, column) for value in batch.column(column).to_pylist()]

    def batches(self, entity: str, column: str) -> list[Any]:
        from rerun.chunk import RrdReader

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [c.to_record_batch() for c in RrdReader(self.file).stream() if c.entity_path == entity]
        return [batch for batch in found if column in batch.schema.names]

    def wait_for(self, entity: str, column: str, count: int) -> list[Any]:
        end = time.monotonic() + PATIENCE
        while len(rows := self.rows(entity, column)) < count:
            assert time.monotonic() < end, f"{len(rows)} rows of {entity}"
            time.sleep(0.1)
        return rows

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def viewer(tmp_path):
    found = Viewer(tmp_path / "seen.rrd")
    yield found
    found.close()


def falling() -> gpusim.Simulation:
    b = gpusim.ModelBuilder()
    ball = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=gpusim.Transform((0.0, 0.0, 5.0)), label="ball")
    b.add_shape_sphere(ball, 0.5)
    return gpusim.Simulation(b.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=0.01))


def test_a_viewer_gets_signals_poses_and_meshes_while_the_run_goes_on(viewer) -> None:
    sim = falling()
    with gpusim.record(sim, viewer.address, ["sim.kinetic_energy"], rate=50.0):
        for _ in range(10):
            sim.step(2)
            time.sleep(0.1)
        energy = viewer.wait_for("/signals/sim/kinetic_energy", "Scalars:scalars", 8)
        sim.step(20)
    assert np.ravel(energy) == pytest.approx(0.5 * (9.81 * 0.02 * np.arange(len(energy))) ** 2)
    places = viewer.wait_for("/scene/ball", "Transform3D:translation", 21)
    heights = np.array([place[0][2] for place in places])
    assert heights == pytest.approx(5.0 - 0.5 * 9.81 * (0.02 * np.arange(21)) ** 2, abs=1e-5)
    (ball,) = np.flatnonzero(gpusim.viewer.Stage(sim.model).shape == 0)
    assert len(viewer.statics(f"/scene/ball/{ball}", "Mesh3D:vertex_positions")[0]) > 100


@pytest.mark.messages_vary
def test_a_viewer_that_is_missing_is_named() -> None:
    pytest.importorskip("rerun")
    address = f"rerun+http://127.0.0.1:{free_port()}/proxy"
    with pytest.raises(ModelError, match=naming(f"'{address} 'rerun'")):
        gpusim.record(falling(), address, "sim.time")


@pytest.mark.parametrize("address", ["rerun+http://nowhere", "rerun+http://:9876/proxy", "rerun+http://a:b/proxy"])
def test_addresses_that_are_none(address: str) -> None:
    pytest.importorskip("rerun")
    with pytest.raises(ModelError, match=naming(f"'{address} rerun+http")):
        gpusim.record(falling(), address, "sim.time")
