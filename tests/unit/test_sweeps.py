from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import gpusim
from gpusim.errors import ModelError, UnknownNameError
from gpusim.scene import Scene, load_scene
from gpusim.signals.model_batch import structure
from gpusim.sweeps import runs
from gpusim.sweeps.points import Span, grid, parse_values, sample, whole_ranges
from gpusim.sweeps.runs import Plan, run_points, sample_steps
from tests.backends import FASTEST
from tests.message_snapshot import naming

SIGNALS = ("joint.slide.*", "body.box.position")


def build(mass: float = 1.0, stiffness: float = 50.0, start: float = 0.1, damping: float = 0.5, extra: bool = False,
          reads: str = "") -> Scene:  # fmt: skip
    b = gpusim.ModelBuilder()
    box = b.add_body(mass=mass, inertia=(0.1, 0.1, 0.1), label="box", xform=gpusim.Transform((start, 0.0, 0.0)))
    slide = b.add_joint_prismatic(-1, box, axis=(1, 0, 0), damping=damping, label="slide")
    b.add_torsion_spring(slide, stiffness, label="spring")
    b.add_joint_force(slide, label="force")
    if extra:
        b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), label="second")

    def schedule(sim: Any, t: float) -> None:
        feedback = float(np.ravel(sim.read("joint.slide.velocity"))[0]) if reads == "signals" else 0.0
        if reads == "observe":
            feedback = float(sim.observe("joint.slide.velocity").read()[0, 0])
        sim.control["force"] = mass * np.sin(40.0 * t) - 0.3 * feedback

    return Scene("mass", "a driven mass", b, gpusim.SolverConfig(dt=0.005), 0.2, schedule=schedule)


def alone(point: dict[str, Any], plan: Plan) -> np.ndarray:
    scene = build(**point)
    sim = gpusim.Simulation(scene.builder.finalize(), 1, plan.backend, config=scene.config)
    seen, found = sim.observe(list(plan.signals)), []
    for step in range(41):
        if step % 2 == 0:
            found.append(seen.read()[0].copy())
        if step < 40:
            scene.schedule(sim, sim.time)
            sim.step()
    return np.array(found)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("reads", ["", "signals", "observe"])
def test_points_together_have_the_bits_of_points_alone(backend: str, reads: str) -> None:
    points = [
        {"mass": m, "start": s, "damping": d, "stiffness": k, "reads": reads}
        for m, s, d, k in [(1.0, 0.1, 0.5, 50.0), (3.0, -0.2, 0.5, 50.0), (0.7, 0.0, 2.0, 80.0)]
    ]
    plan = Plan(SIGNALS, rate=100.0, backend=backend)
    found = run_points(lambda point: build(**point), points, plan)
    for k, point in enumerate(points):
        np.testing.assert_array_equal(found.values[k], alone(point, plan))
    assert not np.array_equal(found.values[0], found.values[1]) and not found.failed.any()


def test_a_schedule_that_needs_the_whole_simulation_runs_alone(monkeypatch) -> None:
    made: list[int] = []
    simulation = runs.Simulation
    monkeypatch.setattr(runs, "Simulation", lambda *a, **k: made.append(1) or simulation(*a, **k))
    plan = Plan(SIGNALS, backend=FASTEST, duration=0.01)
    for reads, expected in (("signals", 1), ("observe", 3)):
        made.clear()
        run_points(lambda point: build(**point), [{"reads": reads}, {"reads": reads, "mass": 2.0}], plan)
        assert len(made) == expected


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"mass": 2.0}, True),
        ({"start": 0.5}, True),
        ({"damping": 1.0}, True),
        ({"stiffness": 70.0}, True),
        ({"damping": 0.0}, True),
        ({"extra": True}, False),
    ],
)
def test_models_that_differ_in_numbers_have_one_structure(change: dict[str, Any], same: bool) -> None:
    first, second = build(), build(**change)
    found = [structure(scene.builder.finalize(), scene.config) for scene in (first, second)]
    assert (found[0] == found[1]) is same


def test_a_simulation_takes_a_model_for_each_world() -> None:
    changes = [{}, {"mass": 2.0}, {"start": 0.5}, {"stiffness": 70.0}]
    scenes = [build(**change) for change in changes]
    models = [scene.builder.finalize() for scene in scenes]
    together = gpusim.Simulation(models, backend=FASTEST, config=scenes[0].config)
    alone = [gpusim.Simulation(model, backend=FASTEST, config=scenes[0].config) for model in models]
    for _ in range(2):
        for sim in (together, *alone):
            sim.step(20)
        for name, array in together.read_state().items():
            for k, sim in enumerate(alone):
                assert array[k].tobytes() == sim.read_state()[name][0].tobytes(), (name, changes[k])
        for sim in (together, *alone):
            sim.reset()
    other = build(extra=True).builder.finalize()
    for wrong, words in (([models[0], other], "model 1 0"), ([], "0"), ([models[0], "x"], "str")):
        with pytest.raises(ModelError, match=naming(words)):
            gpusim.Simulation(wrong, backend=FASTEST)
    with pytest.raises(ModelError, match=naming("4 num_worlds 3")):
        gpusim.Simulation(models, 3)


def test_another_step_is_another_structure() -> None:
    scene = build()
    model = scene.builder.finalize()
    assert structure(model, scene.config) != structure(model, dataclasses.replace(scene.config, dt=0.001))


NUMBERS = [
    ("hydraulic_lift", {"mass": [60.0, 140.0, 300.0]}),
    ("hydraulic_lift", {"supply_pressure": [8e6, 1.2e7], "dry_friction": [0.0, 300.0]}),
    ("double_pendulum", {"angle1": [0.3, 1.0], "damping": [0.1, 0.2]}),
    ("krt100m", {"friction": [0.5, 0.9], "speed": [1.0, 1.5]}),
]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("scene", "axes"), NUMBERS)
def test_scenes_together_have_the_bits_of_scenes_alone(scene: str, axes: dict[str, list[float]]) -> None:
    points, plan = grid(axes), Plan(duration=0.3, rate=100.0, backend="native")
    found = [
        run_points(lambda point: load_scene(scene, **point), some, plan) for some in (points, *([p] for p in points))
    ]
    for k, one in enumerate(found[1:]):
        np.testing.assert_array_equal(found[0].values[k], one.values[0])


# Points.


def test_values_are_read_from_text() -> None:
    assert parse_values("a", "1:3:5") == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert parse_values("a", "x, y") == ["x", "y"] and parse_values("a", "7,x") == ["7", "x"]
    assert list(map(str, parse_values("a", "7, 8"))) == ["7", "8"] and parse_values("a", "nan") == ["nan"]
    assert list(map(str, parse_values("a", "7,8.5"))) == ["7.0", "8.5"]
    assert parse_values("a", "1:3") == Span((1.0, 3.0))


@pytest.mark.parametrize("text", ["", "1:2:0", "3:1", "a:b", "1:2:3:4", "a,,b"])
def test_unreadable_values_name_the_parameter(text: str) -> None:
    with pytest.raises(ModelError, match=naming("'mass'")):
        parse_values("mass", text)


def test_a_text_with_too_many_values_is_refused() -> None:
    with pytest.raises(ModelError, match=naming("100000000 1000000")):
        parse_values("mass", "1:2:100000000")


def counted(count: Annotated[int, "bodies"], mass: float) -> Scene:
    raise NotImplementedError


def test_grid_and_samples() -> None:
    assert grid({"a": [1, 2], "b": ["x", "y"]})[1] == {"a": 1, "b": "y"}
    drawn = sample({"a": Span((2.0, 3.0)), "b": ["x", "y"]}, 50, seed=3)
    assert drawn == sample({"a": Span((2.0, 3.0)), "b": ["x", "y"]}, 50, seed=3)
    assert all(2.0 <= point["a"] < 3.0 for point in drawn) and {point["b"] for point in drawn} == {"x", "y"}
    whole = whole_ranges("chain", {"links": Span((2.5, 5.0)), "link_mass": Span((1.0, 3.0))})
    assert list(whole["links"]) == [3, 4, 5] and whole["link_mass"] == (1.0, 3.0)
    ranges = {"count": Span((2.5, 5.0)), "mass": Span((1.0, 3.0))}
    assert list(whole_ranges(counted, ranges)["count"]) == [3, 4, 5] and whole_ranges(counted, ranges)["mass"] == (1, 3)
    for bad in (lambda: grid({"a": Span((1.0, 2.0))}), lambda: grid({"a": []}), lambda: sample({"a": [1]}, 0)):
        with pytest.raises(ModelError, match=naming("sweep")):
            bad()


def test_samples_are_at_the_steps_of_a_run() -> None:
    assert sample_steps(10, 0.01, None) == [10]
    assert sample_steps(10, 0.01, 50.0) == [0, 2, 4, 6, 8, 10] and sample_steps(5, 0.01, 40.0) == [0, 2, 5]
    with pytest.raises(ModelError, match=naming("rate 200.0")):
        sample_steps(10, 0.01, 200.0)


# Tables and files.


def test_nothing_to_sample_is_named() -> None:
    with pytest.raises(ModelError, match=naming("num_samples 3 parameters")):
        sample({}, 3)


def swept(**options: Any) -> Any:
    given = {"signals": SIGNALS, "backend": "numpy", "duration": 0.02, "together": 2} | options
    return gpusim.sweep(build, **{"parameters": {"mass": [1.0, 2.0, 3.0], "extra": [False, True]}} | given)


def test_the_table_has_a_row_for_each_point_and_sample() -> None:
    table = swept(rate=100.0)
    assert table.column_names[:5] == ["point", "mass", "extra", "failed", "time"]
    assert table.column("point").to_pylist() == [k for k in range(6) for _ in range(3)]
    assert table.column("mass").to_pylist()[::3] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert len(swept()) == 6


@pytest.mark.messages_vary
@pytest.mark.parametrize("reads", ["", "observe"])
def test_warnings_name_the_point(reads: str) -> None:
    """The simulations of a sweep have their own numbers of worlds."""
    points = {"start": [0.1, 9e8], "stiffness": [1e4], "reads": [reads]}
    with pytest.warns(UserWarning, match=rf"^point \(start=900000000.0, .*, reads={reads}\) failed") as found:
        table = gpusim.sweep(build, points, signals=SIGNALS, backend="numpy")
    assert table.column("failed").to_pylist() == [False, True]
    assert not any("world" in str(one.message) for one in found)


@pytest.mark.parametrize("together", [1, 9])
def test_models_of_other_structure_share_a_table(tmp_path: Path, together: int) -> None:
    from pyarrow import parquet

    axes: dict[str, Any] = {"extra": np.array([False, True]), "mass": [1, np.float32(1.5)], "reads": ["", "signals"]}
    options: dict[str, Any] = {"signals": "body.*.mass", "backend": "numpy", "duration": 0.01, "together": together}
    table = gpusim.sweep(build, axes, **options)
    assert table.column("body.second.mass").to_pylist() == [None] * 4 + [1.0] * 4
    assert table.column("body.box.mass").to_pylist() == table.column("mass").to_pylist() == [1.0, 1.0, 1.5, 1.5] * 2
    assert table.column("extra").to_pylist() == [False] * 4 + [True] * 4
    assert table.column("reads").to_pylist() == ["", "signals"] * 4
    gpusim.sweep(build, axes, out=tmp_path / "a.parquet", **options)
    assert parquet.read_table(tmp_path / "a.parquet").equals(table)


def test_a_signal_may_exist_at_some_points_only() -> None:
    table = swept(signals="body.second.mass")
    assert table.column("body.second.mass").to_pylist() == [None, 1.0] * 3


def test_an_interrupted_sweep_continues(tmp_path: Path, monkeypatch) -> None:
    from pyarrow import parquet

    out, run, count = tmp_path / "a.parquet", runs.run_points, 0

    def interrupted(*given: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return run(*given)

    monkeypatch.setattr("gpusim.sweeps.sweep.run_points", interrupted)
    with pytest.raises(KeyboardInterrupt):
        swept(out=out)
    assert len(list((tmp_path / "a.parquet.part").glob("*.parquet"))) == 2
    with pytest.raises(ModelError, match=naming("a.parquet.part")):
        swept(out=out, duration=0.03)
    with pytest.raises(ModelError, match=naming("a.parquet.part model")), monkeypatch.context() as changed:
        changed.setattr(build, "__defaults__", (1.0, 50.0, 0.2, 0.5, False, ""))
        swept(out=out)
    progress: list[tuple[int, int]] = []
    assert swept(out=out, progress=lambda *done: progress.append(done)) is None
    assert count == 5 and progress == [(5, 6), (6, 6)]
    assert parquet.read_table(out).equals(swept()) and os.listdir(tmp_path) == ["a.parquet"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"signals": "joint.slid.position"}, UnknownNameError, "joint.slide.position"),
        ({"signals": 3}, ModelError, "signals 3"),
        ({"together": 0}, ModelError, "together 0"),
        ({"out": "a.csv"}, ModelError, "a.csv .parquet"),
        ({"num_samples": -1}, ModelError, "num_samples -1"),
        ({"num_samples": "3"}, ModelError, "num_samples '3'"),
        ({"num_samples": 10**9}, ModelError, "1000000000 1000000"),
        ({"num_samples": 3, "seed": "x"}, ModelError, "seed 'x'"),
        ({"num_samples": 3, "seed": -1}, ModelError, "seed -1"),
        ({"progress": 5}, ModelError, "progress 5"),
        ({"duration": "1 s"}, ModelError, "duration '1 s'"),
        ({"duration": -1.0}, ModelError, "duration -1"),
        ({"num_samples": 2, "seed": -1}, ModelError, "seed -1"),
        ({"num_samples": 2, "parameters": {"mass": (2.0, 1.0)}}, ModelError, "'mass' (2, 1) low high"),
        ({"num_samples": 2, "parameters": {"mass": (1.0, np.inf)}}, ModelError, "'mass' (1, inf) finite"),
        ({"num_samples": 2, "parameters": {"mass": {1.0, 2.0}}}, ModelError, "'mass' {1.0, 2.0} list"),
        ({"num_samples": 2, "parameters": {"mass": {"a": 1.0}}}, ModelError, "'mass' {'a': 1.0} list"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=naming(words)):
        swept(**options)


@pytest.mark.parametrize(
    ("scene", "parameters", "words"),
    [
        (3, {"mass": [1.0]}, "scene 3"),
        ("hydraulic_lift", ["mass"], "parameters ['mass']"),
        ("hydraulic_lift", {"mass": 3.0}, "'mass' 3.0"),
        ("hydraulic_lift", {"mass": "heavy"}, "'mass' 'heavy'"),
        (lambda mass: None, {"mass": [1.0]}, "function None Scene"),
        (build, {"weight": [1.0]}, "function 'weight'"),
        (build, {"mass": [1.0, -2.0]}, "point 1 mass -2"),
        (build, {"mass": (np.float64(1.0), np.int64(2))}, "'mass' range"),
        (lambda time: build(), {"time": [1.0]}, "'time' column"),
    ],
)
def test_what_is_no_scene_or_list_is_named(scene: Any, parameters: Any, words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)):
        gpusim.sweep(scene, parameters, backend=FASTEST)


@pytest.mark.nightly
def test_a_killed_worker_of_ray_loses_nothing() -> None:
    ray = pytest.importorskip("ray")
    psutil = pytest.importorskip("psutil")
    killed: list[int] = []

    def kill() -> None:
        end = time.monotonic() + 60.0
        while time.monotonic() < end and not killed:
            for process in psutil.Process().children(recursive=True):
                try:
                    if "run_points" in " ".join(process.cmdline()):
                        os.kill(process.pid, signal.SIGKILL)
                        killed.append(process.pid)
                        return
                except (psutil.Error, ProcessLookupError):
                    continue
            time.sleep(0.01)

    axes: dict[str, Any] = {"mass": np.linspace(50.0, 300.0, 16).tolist()}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        killer = threading.Thread(target=kill)
        killer.start()
        found = gpusim.sweep("hydraulic_lift", axes, rate=50.0, together=4, ray="local")
        killer.join()
    finally:
        ray.shutdown()
    assert killed and found.equals(gpusim.sweep("hydraulic_lift", axes, rate=50.0))
