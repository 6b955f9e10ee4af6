from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.control import Diagram
from gpusim.description.actuator_kinds import _KINDS, register
from gpusim.reference.accuracy import MODES
from gpusim.scene import list_scenes, load_scene
from gpusim.signals.saving import checkpoint_file
from tests.message_snapshot import naming

from .checkpoint_runs import (
    EVERYTHING,
    ROOT,
    continued,
    digest,
    everything,
    in_a_new_process,
    run,
    under_way,
)
from .helpers import ball_body, bits, different
from .test_own_kinds import Shove

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
SLOW_ON_NUMPY = (
    *("biped_valve", "biped_walk", "card_house", "krt100m", "mecanum_vehicle", "omni_vehicle", "pile", "robot_arm"),
    *("rtk_m", "slope"),
)
# A step of these takes NumPy a second.
LARGE = ("excavator", "pyramid")
SCENES = [
    *(pytest.param(name, "native", marks=pytest.mark.native) for name in list_scenes()),
    *((name, "numpy") for name in list_scenes() if name not in LARGE),
]


def pendulum(
    mass: float = 1.0, worlds: int = 2, own: Callable[[ModelBuilder, int], Any] | None = None, **config: Any
) -> Simulation:
    b = ModelBuilder()
    rod = ball_body(b, mass, 0.05, com=(0.1, 0, 0), label="rod")
    joint = b.add_joint_revolute(-1, rod, axis=(0, 1, 0), label="rod")
    b.add_joint_force(joint, label="drive", delay=0.01)
    if own is not None:
        own(b, joint)
    return Simulation(b.finalize(), worlds, "numpy", config=SolverConfig(dt=2e-3, **config))


def job(path: Path, name: str = EVERYTHING, steps: int = 20, **options: Any) -> dict[str, Any]:
    return {"path": str(path), "name": name, "steps": steps, "options": options}


# The same bits.


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_new_process_continues_with_the_same_bits(backend: str, tmp_path: Path) -> None:
    sim, path = under_way(EVERYTHING, backend, 9, 30), tmp_path / "a.npz"
    assert list(np.flatnonzero(~sim.health())) == [1, 2] and sim.overridden.all(axis=1)[5]
    assert len(sim.model.axes) > len(sim.runtime.built.axes)
    sim.save(path)
    (found,) = in_a_new_process([job(path)])
    assert found == continued(sim, EVERYTHING, 20)


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(
    ("dtype", "config", "worlds"),
    [
        ("float64", {"substeps": 3}, 1),
        ("float64", {"substeps": 3}, 37),
        ("float32", {}, 37),
        ("float32", {"joint_solver": "colored"}, 1),
        ("float64", {"scheme": "semi_implicit"}, 37),
    ],
)
def test_settings_and_launches(dtype: str, config: dict[str, Any], worlds: int, tmp_path: Path) -> None:
    # groups of float32 worlds would need their own build, which takes half a minute
    groups = () if dtype == "float32" else ("simd",)
    jobs, expected = [], []
    for first, later in (("fused", ("fused", "staged", *groups)), ("staged", ("fused",))):
        sim = under_way(EVERYTHING, "native", worlds, 40, dtype=dtype, config=config, launch=first)
        path = tmp_path / f"{first}.npz"
        sim.save(path)
        jobs += [job(path, steps=60, launch=launch) for launch in later]
        expected += [continued(sim, EVERYTHING, 60)] * len(later)
    assert in_a_new_process(jobs) == expected


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "backend"), SCENES)
def test_every_scene(name: str, backend: str, tmp_path: Path) -> None:
    # test_a_new_process_continues_with_the_same_bits covers what a process could remember outside the file
    few = backend == "numpy" and name in SLOW_ON_NUMPY
    steps = 1 if few else 12
    config = {"iterations": 2} if few else {}
    for worlds in (1,) if few else (1, 9):
        sim, path = under_way(name, backend, worlds, steps, config=config), tmp_path / f"{worlds}.npz"
        assert np.count_nonzero(~sim.health()) == (0 if worlds == 1 else 2)
        sim.save(path)
        again = Simulation.load(path)
        assert continued(again, name, steps) == continued(sim, name, steps)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fork_continues_like_its_source(backend: str) -> None:
    sim = under_way(EVERYTHING, backend, 9, 6)
    kept, other = sim.snapshot(), [bits(sim, k) for k in (5, 6, 7)]
    sim.restore(kept, worlds=[2, 3], source=0)
    sim.restore(kept, worlds=4, source=1)
    assert not sim.health()[4] and "world 4" in sim.health_report()
    assert [bits(sim, k) for k in (5, 6, 7)] == other
    for _ in range(6):
        sim.step()
    for k in (2, 3):
        assert different(bits(sim, k), bits(sim, 0)) == []
        assert sim.read("body.bucket.mass")[k] == sim.read("body.bucket.mass")[0]
    one = under_way(EVERYTHING, backend, 3, 4)
    one.restore(kept, worlds=[2, 0, 1], source=[0, 5, 6])
    again = under_way(EVERYTHING, backend, 9, 6)
    for simulation in (one, again):
        for _ in range(5):
            simulation.step()
    for k, source in ((2, 0), (0, 5), (1, 6)):
        assert different(bits(one, k), bits(again, source)) == []


def test_what_a_fork_refuses() -> None:
    sim = pendulum()
    kept = sim.snapshot()
    for words, call in {
        "Simulation.restore source 2": lambda: sim.restore(kept, 0, source=2),
        "Simulation.restore source 2 1": lambda: sim.restore(kept, 0, source=[0, 1]),
        "Simulation.restore 2 3": lambda: sim.restore(pendulum(worlds=3).snapshot()),
    }.items():
        with pytest.raises(ModelError, match=naming(words)):
            call()


def test_a_reset_of_a_loaded_simulation(tmp_path: Path) -> None:
    def odd_diagram(b: ModelBuilder, joint: int) -> None:
        d = Diagram("a\\ü", rate=100.0)
        d.connect(d.add("noise", "noise", sigma=0.3), "command:drive")
        b.add_diagram(d)

    sim = pendulum(own=odd_diagram, strict=np.True_)
    sim.write("joint.rod.position", [0.3, 0.4])
    sim.step(5)
    sim.save(tmp_path / "a.npz")
    again = Simulation.load(tmp_path / "a.npz")
    for one in (sim, again):
        one.reset()
    np.testing.assert_array_equal(again.read("joint.rod.position"), sim.read("joint.rod.position"))
    assert digest(again) == digest(sim)


def test_a_reset_of_worlds_with_their_own_models(tmp_path: Path) -> None:
    scenes = [load_scene("hydraulic_lift", mass=m, position=0.001 * m) for m in (50.0, 100.0, 150.0)]
    sim = Simulation([scene.builder.finalize() for scene in scenes], backend="numpy", config=scenes[0].config)
    first = sim.read("cylinder.lift.pressure_a").copy()
    assert np.unique(first).size == 3
    sim.step(3)
    sim.save(tmp_path / "a.npz")
    again = Simulation.load(tmp_path / "a.npz")
    again.restore(sim.snapshot(), worlds=2, source=1)
    again.reset()
    np.testing.assert_array_equal(again.read("cylinder.lift.pressure_a"), first[[0, 1, 1]])


@pytest.mark.native
def test_another_backend_takes_the_state(tmp_path: Path) -> None:
    sim = under_way(EVERYTHING, "numpy", 2, 4, dtype="float32", config={"substeps": 2})
    sim.save(tmp_path / "a.npz")
    again = Simulation.load(tmp_path / "a.npz")
    assert (again.backend_name, again.dtype, again.config, again.fast) == ("numpy", "float32", sim.config, False)
    native = Simulation.load(tmp_path / "a.npz", backend="native", threads=1)
    assert native.backend_name == "native" and digest(native) == digest(again) == digest(sim)


def test_a_warning_of_an_earlier_process_is_not_repeated(tmp_path: Path) -> None:
    sim = pendulum()
    sim.state.arrays["inexact"][1] = MODES
    sim.state.arrays["not_converged"][1] = 3
    with pytest.warns(UserWarning, match=naming("1 3")):
        sim.step()
    sim.save(tmp_path / "a.npz")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = Simulation.load(tmp_path / "a.npz")
        again.step()
    assert again.health_report() == sim.health_report() != ""


# Files.


def test_the_file_is_plain_arrays_and_json(tmp_path: Path) -> None:
    sim = pendulum()
    sim.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as found:
        header = json.loads(found["header"].tobytes())
        assert header["num_worlds"] == 2 and header["settings"]["config"]["dt"] == 2e-3
        np.testing.assert_array_equal(found["state/position"], sim.read_state()["position"])
        builder = ModelBuilder.from_dict(json.loads(found["model"].tobytes()))
    assert builder.finalize().digest == sim.model.digest


def test_refused_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    sim = pendulum()
    sim.save(path)
    whole = path.read_bytes()
    (tmp_path / "text.npz").write_text("time 0\n")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "other.npz", time=np.zeros(3))
    for name in ("text", "empty", "other", "missing"):
        with pytest.raises(ModelError, match=naming(f"{name}.npz")) as caught:
            Simulation.load(tmp_path / f"{name}.npz")
        assert ";" in str(caught.value) and not re.search(r"\. ", str(caught.value))
    with pytest.raises(ModelError, match="folder"):
        Simulation.load(tmp_path)
    with pytest.raises(ModelError, match=naming("checkpoint 3")):
        Simulation.load(3)  # type: ignore[arg-type]
    broken = tmp_path / "broken.npz"
    rng = np.random.default_rng(5)
    for at in [*range(40), *rng.integers(0, len(whole), 60).tolist(), *range(len(whole) - 90, len(whole))]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(rng.integers(8))
        for data in (bytes(flipped), whole[:at], whole + whole[:at] if at else b"PK"):
            broken.write_bytes(data)
            with pytest.raises(ModelError, match=naming("broken.npz")):
                Simulation.load(broken)
    with pytest.raises(ModelError, match=naming("a.npz bodies")):
        Simulation.load(path, model=pendulum(1.5).model)
    with pytest.raises(ModelError, match=naming("model ModelBuilder")):
        Simulation.load(path, model=ModelBuilder())  # type: ignore[arg-type]
    for name, value in (("FORMAT", "gpusim checkpoint 2"), ("version", lambda: "9.9")):
        with monkeypatch.context() as patched:
            patched.setattr(checkpoint_file, name, value)
            with pytest.raises(ModelError, match=naming("a.npz 2") if name == "FORMAT" else naming("a.npz 9.9")):
                Simulation.load(path)
    assert digest(Simulation.load(path)) == digest(sim)


def test_refused_paths(tmp_path: Path) -> None:
    sim = pendulum()
    for path in (tmp_path / "a.ckpt", tmp_path / "missing" / "a.npz", tmp_path, tmp_path / "a\0.npz"):
        with pytest.raises(ModelError, match=naming("checkpoint")):
            sim.save(path)


def test_a_python_block_needs_the_model(tmp_path: Path) -> None:
    def add(b: ModelBuilder, joint: int) -> None:
        d = Diagram("d", rate=100.0)
        d.add("python", "own", function=lambda time, given: 0.1, names=())
        d.connect("own", "command:drive")
        b.add_diagram(d)

    sim = pendulum(own=add)
    sim.step(5)
    sim.save(tmp_path / "a.npz")
    with pytest.raises(ModelError, match=naming("a.npz diagram d block own")):
        Simulation.load(tmp_path / "a.npz")
    again = Simulation.load(tmp_path / "a.npz", model=sim.model)
    for one in (sim, again):
        one.step(5)
    assert digest(again) == digest(sim)


def test_a_kind_of_the_user_must_be_registered(tmp_path: Path) -> None:
    register(Shove)
    try:
        own = {"axis": 0, "strength": 2.0}
        sim = pendulum(own=lambda b, joint: b.add_actuator("shove", "own", {"joint": joint, **own}))
        sim.step(5)
        sim.save(tmp_path / "a.npz")
        assert digest(Simulation.load(tmp_path / "a.npz")) == digest(sim)
    finally:
        _KINDS.forget("shove")
    with pytest.raises(ModelError, match=naming("a.npz shove import")):
        Simulation.load(tmp_path / "a.npz")


@pytest.mark.nightly
def test_a_killed_save_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.unit.killed_saves", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    within, newer = map(int, done.stdout.split())
    assert within >= 5 and newer >= 2, done.stdout


@pytest.mark.nightly
def test_reset_to_a_checkpoint_of_everything(tmp_path: Path) -> None:
    sim = under_way(EVERYTHING, "numpy", 5, 20)
    kept = sim.snapshot()
    sim.save(tmp_path / "a.npz")
    run(sim, EVERYTHING, 5)
    sim.write("joint.rod.friction", 3.0)
    sim.reset()
    sim.restore(kept)
    again = Simulation.load(tmp_path / "a.npz", model=everything(False).finalize())
    assert continued(sim, EVERYTHING, 10) == continued(again, EVERYTHING, 10)
