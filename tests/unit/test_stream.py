from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gpusim.errors import ModelError
from gpusim.recording import stream
from gpusim.recording.recorder import Recorder, load_recording
from gpusim.recording.stream import StreamRecorder
from tests.message_snapshot import naming
from tests.unit.test_recording import Clock


@pytest.mark.parametrize("samples", [1, 5, 6, 7, 40])
def test_the_file_is_that_of_a_recorder_in_memory(tmp_path: Path, samples: int, monkeypatch) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 6)
    clock = Clock()
    memory = Recorder(clock, clock.signals())
    with StreamRecorder(clock, clock.signals(), tmp_path / "a.npz") as recorder:
        for _ in range(samples):
            for one in (memory, recorder):
                one.sample()
            clock.step()
        assert len(recorder) == samples
    memory.recording().save(tmp_path / "b.npz")
    found, wanted = (load_recording(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "b.npz"] and list(found.signals) == list(wanted.signals)
    for a, b in zip([found.time, *found.signals.values()], [wanted.time, *wanted.signals.values()], strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_two_recorders_do_not_share_a_file(tmp_path: Path) -> None:
    clock = Clock()
    with StreamRecorder(clock, clock.signals(), tmp_path / "a.npz") as recorder:
        recorder.sample()
        with pytest.raises(ModelError, match=naming("a.npz another recorder close")):
            StreamRecorder(clock, clock.signals(), tmp_path / "a.npz")
    with StreamRecorder(clock, clock.signals(), tmp_path / "a.npz") as again:
        again.sample()
    assert len(load_recording(tmp_path / "a.npz")) == 1


def test_a_closed_recorder_takes_no_sample(tmp_path: Path) -> None:
    with StreamRecorder(Clock(), ["sim.angle"], tmp_path / "a.npz") as recorder:
        recorder.sample()
    with pytest.raises(ModelError, match=naming("a.npz closed")):
        recorder.sample()
    assert len(recorder) == len(load_recording(tmp_path / "a.npz")) == 1


def test_without_a_sample_there_is_no_file(tmp_path: Path) -> None:
    with StreamRecorder(Clock(), ["sim.angle"], tmp_path / "a.npz"):
        pass
    assert os.listdir(tmp_path) == []


def broken_off(path: Path, samples: int) -> Path:
    """The growing file of a recorder that was never closed."""
    clock = Clock()
    recorder = StreamRecorder(clock, clock.signals(), path)
    for _ in range(samples):
        recorder.sample()
        clock.step()
    recorder._writer.close()
    return path.with_name("a.npz.part")


def test_whole_blocks_of_a_broken_file_can_be_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 4)
    part = broken_off(tmp_path / "a.npz", 11)
    found = load_recording(part)
    assert len(found) == 8 and found["body.ball.position"].shape == (8, 3, 3)
    np.testing.assert_array_equal(found.time, 0.5 * np.arange(8))
    part.write_bytes(part.read_bytes()[:-3])
    assert len(load_recording(part)) == 4
    recorder = StreamRecorder(Clock(), ["sim.angle"], tmp_path / "a.npz")
    recorder.close()
    assert recorder.rescued == tmp_path / "a-broken.npz.part" and len(load_recording(recorder.rescued)) == 4


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"[" * 100_000,
        b'{"format": "gpusim signals 1"}\n',
        b'{"format": "gpusim signals 1", "arrays": [["time", "O", []]]}\n',
        b'{"format": "gpusim signals 1", "arrays": [["time", "<f8", [-1]]]}\n' + b"\1" * 99,
        b'{"format": "gpusim signals 1", "arrays": [["time", "<f8", [1000000000000]]]}\n' + b"\1" * 99,
        b'{"format": "gpusim signals 1", "arrays": [["tim", "<f8", []]]}\n' + b"\1\0\0\0\0\0\0\0" * 2,
    ],
)
def test_other_files_get_one_sentence(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.npz.part"
    path.write_bytes(text)
    try:
        assert len(load_recording(path)) == 0
    except ModelError as error:
        assert "a.npz.part" in str(error)


LONG = """
import resource, sys
import numpy as np
from gpusim.recording.stream import StreamRecorder
from tests.unit.test_recording import Clock, Info

class Wide(Clock):
    values = np.zeros((3, 10_000))
    def signals(self):
        return {"sim.time": Info(()), "sim.wide": Info((10_000,))}
    def read(self, name, numpy=False):
        return self._time if name == "sim.time" else self.values

with StreamRecorder(Wide(), ["sim.wide"], sys.argv[1]) as recorder:
    for _ in range(int(sys.argv[2])):
        recorder.sample()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="asks for the peak of memory in kB")
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    peaks = []
    for samples in (1, 500):
        command = [sys.executable, "-c", LONG, str(tmp_path / "a.npz"), str(samples)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
        peaks.append(int(done.stdout))
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert sum(part.file_size for part in archive.infolist()) > 120e6
    assert peaks[1] - peaks[0] < 20_000


@pytest.mark.nightly
def test_a_full_disk_names_the_file_and_keeps_what_there_was(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "from gpusim.cli.main import main\n"
        "sys.argv[:1] = 'gpusim run double_pendulum --duration 3 --backend numpy --out'.split()\n"
        "main()\n"
    )
    out = tmp_path / "run.npz"
    done = subprocess.run([sys.executable, "-c", code, str(out)], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "run.npz" in done.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == ["run.npz.part"] and len(load_recording(tmp_path / "run.npz.part")) >= 1024
