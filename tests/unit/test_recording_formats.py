from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import ModelError, UnknownNameError
from gpusim.recording import stream
from gpusim.recording.recorder import Recorder, load_recording
from gpusim.recording.stream import StreamRecorder, recover
from gpusim.scene import list_scenes, load_scene
from gpusim.stage import Stage
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.test_recording import Clock

FORMATS = ["npz", "parquet", "mcap", "csv", "rrd"]


def pendulum(worlds: int = 1, **options: Any) -> gpusim.Simulation:
    b = gpusim.ModelBuilder()
    arm = b.add_body(mass=2.0, inertia=(0.1, 0.1, 0.1), label="arm", com=(0.0, 0.0, -0.5))
    b.add_joint_revolute(-1, arm, axis=(0, 1, 0), label="hinge")
    b.add_shape_box(arm, (0.1, 0.1, 0.4), label="box")
    config = gpusim.SolverConfig(dt=0.005)
    sim = gpusim.Simulation(b.finalize(), num_worlds=worlds, backend=FASTEST, config=config, **options)
    sim.write("joint.hinge.position", np.linspace(0.2, 1.0, worlds))
    return sim


@pytest.fixture(params=FORMATS)
def suffix(request) -> str:
    return str(request.param)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("samples", [1, 6, 13])
def test_the_numbers_are_those_of_a_recorder_in_memory(
    tmp_path: Path, suffix: str, dtype: str, samples: int, monkeypatch
) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 6)
    sim = Clock()
    memory = Recorder(sim, sim.signals())
    with StreamRecorder(sim, list(sim.signals()), tmp_path / f"a.{suffix}", dtype=dtype) as recorder:
        for _ in range(samples):
            recorder.sample()
            memory.sample()
            sim.step()
    assert os.listdir(tmp_path) == [f"a.{suffix}"]
    found, wanted = load_recording(tmp_path / f"a.{suffix}"), memory.recording()
    np.testing.assert_allclose(found.time, wanted.time, atol=1e-9)
    assert list(found.signals) == list(wanted.signals)
    for name, values in wanted.signals.items():
        assert found[name].shape == values.shape
        np.testing.assert_array_equal(found[name], values.astype(dtype))


def test_chosen_worlds_and_components_come_back(tmp_path: Path, suffix: str) -> None:
    sim = pendulum(4)
    with gpusim.record(sim, tmp_path / f"a.{suffix}", ["joint.*.position", "body.arm.position"], worlds=[3, 1]):
        sim.step(3)
    found = load_recording(tmp_path / f"a.{suffix}")
    np.testing.assert_array_equal(found["joint.hinge.position"][-1], sim.read("joint.hinge.position")[[3, 1]])
    np.testing.assert_array_equal(found["body.arm.position"][-1], sim.read("body.arm.position")[[3, 1]])
    assert len(found) == 4


def test_the_growing_file_is_readable_and_can_be_recovered(tmp_path: Path, suffix: str, monkeypatch) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 4)
    sim, path = Clock(), tmp_path / f"a.{suffix}"
    recorder = StreamRecorder(sim, ["sim.angle", "body.ball.position"], path)
    for _ in range(11):
        recorder.sample()
        sim.step()
    part = tmp_path / f"a.{suffix}.part"
    assert len(load_recording(part)) == 8  # the last three samples are in memory
    recorder._stop(), recorder._lock.close()  # as if its process had died
    if suffix != "rrd":  # its library still holds the file open
        assert recover(part) == path and not part.exists()
        np.testing.assert_array_equal(load_recording(path)["sim.angle"][:, 2], 0.5 * np.arange(8))


def test_a_file_that_ends_anywhere_keeps_its_whole_blocks(tmp_path: Path, suffix: str, monkeypatch) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 4)
    sim, part = Clock(), tmp_path / f"a.{suffix}.part"
    recorder, ends = StreamRecorder(sim, ["sim.angle"], tmp_path / f"a.{suffix}"), list[int]()
    for _ in range(13):
        recorder.sample()
        sim.step()
        ends += [part.stat().st_size] if part.is_file() else []
    if not ends:
        pytest.skip("each block is a separate file")
    data, chance = part.read_bytes(), random.Random(3)
    for size in [ends[4], len(data), *(chance.randrange(ends[4], len(data)) for _ in range(30))]:
        part.write_bytes(data[:size])
        found = load_recording(part)
        assert len(found) >= (4 if size < len(data) else 12)
        np.testing.assert_array_equal(found["sim.angle"][:, 2], 0.5 * np.arange(len(found)))


def test_the_next_recording_keeps_an_unfinished_one(tmp_path: Path, suffix: str) -> None:
    first = StreamRecorder(Clock(), ["sim.angle"], tmp_path / f"a.{suffix}")
    first.sample()
    first.flush()
    first._stop(), first._lock.close()
    first._writer.close()
    second = StreamRecorder(Clock(), ["sim.angle"], tmp_path / f"a.{suffix}")
    second.close()
    assert second.rescued == tmp_path / f"a-broken.{suffix}.part" and len(load_recording(second.rescued)) == 1
    assert os.listdir(tmp_path) == [second.rescued.name]


# Fed by stepping.


def times_of(path: Path, rate: float | None, calls: list[tuple[int, float | None]]) -> np.ndarray:
    sim = pendulum()
    with gpusim.record(sim, path, "joint.hinge.position", rate=rate):
        for n, dt in calls:
            sim.step(n, dt)
    return load_recording(path).time


def test_steps_take_the_samples_at_the_nearest_steps(tmp_path: Path) -> None:
    at_once = times_of(tmp_path / "a.npz", 30.0, [(100, None)])
    one_by_one = times_of(tmp_path / "b.npz", 30.0, [(1, None)] * 100)
    np.testing.assert_array_equal(at_once, one_by_one)
    np.testing.assert_allclose(at_once, 0.005 * np.round(np.arange(16) / 30.0 / 0.005), atol=1e-12)
    np.testing.assert_allclose(times_of(tmp_path / "c.npz", None, [(7, None)]), 0.005 * np.arange(8), atol=1e-12)


def test_steps_of_other_sizes_keep_the_rate(tmp_path: Path) -> None:
    times = times_of(tmp_path / "a.npz", 100.0, [(4, None), (20, 0.001), (2, 0.03), (4, None)])
    expected = [0.0, 0.01, 0.02, 0.03, 0.04, 0.07, 0.1, 0.11, 0.12]
    np.testing.assert_allclose(times, expected, atol=1e-12)


@pytest.mark.parametrize(("suffix", "most"), [("npz", 3.3), ("parquet", 3.2)])
def test_compressed_numbers_are_small(tmp_path: Path, suffix: str, most: float) -> None:
    sim, path = pendulum(32), tmp_path / f"a.{suffix}"
    with gpusim.record(sim, path, ["joint.hinge.position", "joint.hinge.velocity"], dtype="float32") as recorder:
        sim.step(400)
    numbers = 401 * 32 * recorder.layout.width
    assert path.stat().st_size / numbers < most


def test_recording_changes_no_bit_and_ends(tmp_path: Path) -> None:
    sim, other = pendulum(2), pendulum(2)
    recorder = gpusim.record(sim, tmp_path / "a.csv", "joint.*", rate=50.0)
    sim.step(30)
    recorder.close()
    recorder.close()
    sim.step(10)
    other.step(40)
    assert not sim.runtime.samplers and len(load_recording(tmp_path / "a.csv")) == 8
    np.testing.assert_array_equal(sim.read("joint.hinge.position"), other.read("joint.hinge.position"))


def test_a_full_disk_ends_the_recording_and_keeps_its_blocks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 4)
    sim = pendulum()

    def full(block: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        with gpusim.record(sim, tmp_path / "a.parquet", "joint.hinge.position") as recorder:
            sim.step(6)
            monkeypatch.setattr(recorder._writer, "write", full)
            sim.step(6)
    assert not sim.runtime.samplers and len(load_recording(tmp_path / "a.parquet.part")) == 4
    sim.step()


def test_rerun_reports_a_full_disk_as_an_oserror(tmp_path: Path, monkeypatch) -> None:
    def full(**_: Any) -> None:
        raise RuntimeError("File-writer thread shut down prematurely")

    with pytest.raises(OSError, match=r"cannot write the file.*a\.rrd\.part"):
        with gpusim.record(pendulum(), tmp_path / "a.rrd", "joint.hinge.position") as recorder:
            monkeypatch.setattr(recorder._writer._stream, "flush", full)
            recorder.flush()


@pytest.mark.parametrize("steps", [0, 6])
def test_rerun_does_not_write_to_a_full_disk(tmp_path: Path, monkeypatch, steps: int) -> None:
    monkeypatch.setattr(stream, "_MAX_SAMPLES", 4)
    usage = shutil.disk_usage(tmp_path)
    sim = pendulum()
    with pytest.raises(OSError, match=r"No space left.*a\.rrd\.part"):
        if not steps:
            monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1000))
        with gpusim.record(sim, tmp_path / "a.rrd", "joint.hinge.position"):
            monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1000))
            sim.step(steps)
    assert not sim.runtime.samplers


# What other readers see.


def test_parquet_is_a_plain_table(tmp_path: Path, monkeypatch) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(stream, "_MAX_SAMPLES", 4)
    sim = pendulum(2)
    with gpusim.record(sim, tmp_path / "a.parquet", ["joint.hinge.position", "body.arm.position"], dtype="float32"):
        sim.step(5)
    table = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    columns = ["joint.hinge.position", *(f"body.arm.position[{k}]" for k in range(3))]
    assert list(table) == ["time", "world", *columns] and len(table["time"]) == 12
    assert parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == 2
    last = [k for k in range(12) if table["time"][k] == max(table["time"]) and table["world"][k] == 1]
    np.testing.assert_array_equal(
        [table[f"body.arm.position[{k}]"][last[0]] for k in range(3)], sim.read("body.arm.position")[1].astype("f4")
    )


def test_mcap_messages_decode_by_their_schemas(tmp_path: Path) -> None:
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    sim = pendulum()
    with gpusim.record(sim, tmp_path / "a.mcap", ["joint.hinge.*ition", "joint.hinge.velocity", "body.arm.position"]):
        sim.step(3)
    seen: dict[str, list[tuple[int, Any]]] = {}
    with open(tmp_path / "a.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        assert reader.get_summary().statistics.chunk_count == 1
        for _, channel, message, decoded in reader.iter_decoded_messages():
            seen.setdefault(channel.topic, []).append((message.log_time, decoded))
    assert {topic: len(found) for topic, found in seen.items()} == {
        "/joint/hinge": 4, "/body/arm": 4, "/scene": 1, "/tf": 4,
    }  # fmt: skip
    time, hinge = seen["/joint/hinge"][-1]
    assert time == 15_000_000 and hinge.position == sim.read("joint.hinge.position")[0]
    assert hinge.velocity == sim.read("joint.hinge.velocity")[0]
    assert list(seen["/body/arm"][-1][1].position) == sim.read("body.arm.position")[0].tolist()
    frame = seen["/tf"][-1][1].transforms[0]
    assert frame.child_frame_id == "arm" and frame.timestamp.nanos == 15_000_000
    place, turn = frame.translation, frame.rotation
    assert [place.x, place.y, place.z] == sim.read("body.arm.position")[0].tolist()
    assert [turn.x, turn.y, turn.z, turn.w] == sim.read("body.arm.orientation")[0].tolist()
    (arm,) = np.flatnonzero(Stage(sim.model).shape == 0)
    entity = next(entity for entity in seen["/scene"][0][1].entities if entity.id == f"mesh_{arm}")
    assert entity.frame_id == "arm" and len(entity.triangles[0].indices) == 36
    assert max(point.z for point in entity.triangles[0].points) == pytest.approx(0.4)


def test_poses_of_mcap_have_the_precision_of_the_signals(tmp_path: Path) -> None:
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    scene, sizes, poses = load_scene("krt100m"), [], []
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    start = sim.snapshot()
    for dtype in ("float64", "float32"):
        path = tmp_path / f"{dtype}.mcap"
        sim.restore(start)
        with gpusim.record(sim, path, "sim.time", dtype=dtype):
            sim.step(100)
        sizes.append(path.stat().st_size)
        with open(path, "rb") as file:
            reader = make_reader(file, decoder_factories=[DecoderFactory()])
            frames = [m.transforms for *_, m in reader.iter_decoded_messages(topics=["/tf"])]
        places = [[frame.translation, frame.rotation] for sample in frames for frame in sample]
        poses.append(np.array([[p.x, p.y, p.z, q.x, q.y, q.z, q.w] for p, q in places]))
    assert 0.0 < np.abs(poses[1] - poses[0]).max() < 2e-7
    np.testing.assert_array_equal(np.rint(poses[1] * 2.0**24), poses[1] * 2.0**24)
    assert sizes[1] < 0.6 * sizes[0]


def test_rrd_holds_poses_and_shapes(tmp_path: Path) -> None:
    from rerun.chunk import RrdReader

    sim = pendulum(2)
    with gpusim.record(sim, tmp_path / "a.rrd", ["joint.hinge.position"]):
        sim.step(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chunks = {chunk.entity_path: chunk.to_record_batch() for chunk in RrdReader(tmp_path / "a.rrd").stream()}
    assert {"/world_0/signals/joint/hinge/position", "/world_1/signals/joint/hinge/position"} <= set(chunks)
    moved = chunks["/scene/arm"].column("Transform3D:translation").to_pylist()
    np.testing.assert_allclose(moved[-1][0], sim.read("body.arm.position")[0], rtol=1e-6)
    assert len(moved) == 4
    (arm,) = np.flatnonzero(Stage(sim.model).shape == 0)
    mesh = scene_chunk(tmp_path / "a.rrd", f"/scene/arm/{arm}", "Mesh3D:vertex_positions")
    corners = mesh.column("Mesh3D:vertex_positions")[0].as_py()
    placed = scene_chunk(tmp_path / "a.rrd", f"/scene/arm/{arm}", "InstancePoses3D:mat3x3")
    (offset,), (columns,) = (placed.column(f"InstancePoses3D:{name}")[0].as_py() for name in ("translations", "mat3x3"))
    points = np.array(corners) @ np.reshape(columns, (3, 3)) + offset
    assert np.max(np.abs(points), axis=0) == pytest.approx([0.1, 0.1, 0.4])


def scene_chunk(path: Path, entity: str, column: str) -> Any:
    from rerun.chunk import RrdReader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = [c.to_record_batch() for c in RrdReader(path).stream() if c.entity_path == entity]
    return next(batch for batch in batches if column in batch.schema.names)


def on_a_spring() -> gpusim.Simulation:
    b = gpusim.ModelBuilder()
    body = b.add_body(1.0, (0.1,) * 3, com=(0.0, 0.0, 0.2), xform=gpusim.Transform((0.0, 0.0, 1.0)), label="weight")
    b.add_spring(-1, body, (0.0, 0.0, 2.0), (0.0, 0.0, 0.3), stiffness=40.0, rest_length=0.7, label="spring")
    return gpusim.Simulation(b.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=5e-3))


def test_a_spring_in_an_rrd_file_reaches_from_end_to_end(tmp_path: Path) -> None:
    sim = on_a_spring()
    with gpusim.record(sim, tmp_path / "a.rrd", ["sim.time"]):
        sim.step(40)
    stage = Stage(sim.model)
    coil = next(batch.first for batch in stage.batches if batch.mesh.key.startswith("coil"))
    drawn = scene_chunk(tmp_path / "a.rrd", f"/scene/spans/{coil}", "InstancePoses3D:mat3x3")
    top, columns = (drawn.column(f"InstancePoses3D:{name}").to_pylist() for name in ("translations", "mat3x3"))
    assert len(top) == 41
    end = np.array(top[-1][0]) + np.reshape(columns[-1][0], (3, 3))[2]
    assert top[-1][0] == pytest.approx([0.0, 0.0, 2.0])
    assert end == pytest.approx(sim.read("body.weight.position")[0] + [0.0, 0.0, 0.3], abs=1e-6)
    assert end[2] < 1.28


def test_a_spring_in_an_mcap_file_is_a_cylinder_between_its_ends(tmp_path: Path) -> None:
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    sim = on_a_spring()
    with gpusim.record(sim, tmp_path / "a.mcap", ["sim.time"]):
        sim.step(40)
    stage = Stage(sim.model)
    spans = np.flatnonzero(~stage.fixed)
    coil = next(batch.first for batch in stage.batches if batch.mesh.key.startswith("coil"))
    with open(tmp_path / "a.mcap", "rb") as file:
        found = [
            decoded
            for *_, decoded in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages(["/spans"])
        ]
    assert len(found) == 41 and len(found[-1].entities[0].cylinders) == len(spans)
    drawn = found[-1].entities[0].cylinders[int(np.searchsorted(spans, coil))]
    low = sim.read("body.weight.position")[0, 2] + 0.3
    assert drawn.pose.position.z == pytest.approx(0.5 * (2.0 + low)) and drawn.size.z == pytest.approx(2.0 - low)
    assert drawn.pose.orientation.x**2 + drawn.pose.orientation.y**2 == pytest.approx(1.0)


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", ["mcap", "rrd"])
@pytest.mark.parametrize("name", list_scenes())
def test_every_scene_is_drawn_in_recordings(tmp_path: Path, name: str, suffix: str) -> None:
    scene = load_scene(name)
    sim = gpusim.Simulation(scene.builder.finalize(), backend=FASTEST, config=scene.config)
    with gpusim.record(sim, tmp_path / f"a.{suffix}", ["sim.time"]):
        sim.step(2)
    assert len(load_recording(tmp_path / f"a.{suffix}")) == 3


# Bad input.


LIBRARIES = [("parquet", "pyarrow.parquet"), ("mcap", "mcap.writer"), ("rrd", "rerun")]


@pytest.mark.parametrize(("suffix", "module"), LIBRARIES)
def test_a_missing_library_is_named_with_the_fix(tmp_path: Path, suffix: str, module: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match=naming(f".{suffix} gpusim[record]")):
        StreamRecorder(Clock(), ["sim.angle"], tmp_path / f"a.{suffix}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"rate": 1000.0}, ModelError, "rate 1000.0 200"),
        ({"rate": -1.0}, ModelError, "rate -1"),
        ({"dtype": "float16"}, UnknownNameError, "float16"),
        ({"worlds": 7}, ModelError, "7"),
        ({"worlds": []}, ModelError, "worlds"),
        ({"signals": "joint.hing.position"}, UnknownNameError, "joint.hinge.position"),
        ({"path": "a.txt"}, ModelError, "a.txt .parquet"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, change: dict[str, Any], error: type[Exception], words: str) -> None:
    given = {"path": "a.npz", "signals": "joint.hinge.position"} | change
    given["path"] = tmp_path / given["path"]
    sim = pendulum()
    with pytest.raises(error, match=naming(words)):
        gpusim.record(sim, **given)
    assert not os.listdir(tmp_path) and not sim.runtime.samplers


def test_recover_takes_growing_files_alone(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=naming("a.npz")):
        recover(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(b"")
    with pytest.raises(ModelError, match=naming("a.npz")):
        recover(tmp_path / "a.npz.part")


def test_recover_leaves_an_open_recording(tmp_path: Path, suffix: str) -> None:
    sim, path = pendulum(), tmp_path / f"a.{suffix}"
    again = "from gpusim.recording.stream import recover; recover({part!r})"
    with gpusim.record(sim, path, "joint.hinge.position") as recorder:
        sim.step(3)
        recorder.flush()
        with pytest.raises(ModelError, match=naming("recorder writes close")):
            recover(f"{path}.part")
        if suffix == "npz":  # from another process too
            line = [sys.executable, "-c", again.format(part=f"{path}.part")]
            run = subprocess.run(line, capture_output=True, text=True, check=False)
            assert "another recorder still writes it" in run.stderr
        sim.step(3)
    assert len(load_recording(path)) == 7


@pytest.mark.parametrize("content", [b"", b"PAR1", b"time,world\n1,x\n", b"\x89MCAP0\r\n", b"RRF2"])
def test_damaged_files_get_one_sentence(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=naming(f"a.{suffix}")):
        load_recording(path)


# Kills.


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_killed_recordings_keep_their_blocks(tmp_path: Path, suffix: str) -> None:
    command = [sys.executable, "-m", "tests.unit.killed_recordings", str(tmp_path), suffix, "50", "1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    within, ending = map(int, done.stdout.split())
    assert within + ending >= 10
