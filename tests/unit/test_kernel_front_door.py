from __future__ import annotations

import gc
import pickle
import re
import tracemalloc
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import GpusimError, ModelBuilder, Simulation, SolverConfig
from gpusim.backends.native import backend as native_backend
from tests.message_snapshot import naming

from .helpers import SOLVERS, ball_body, bits, different
from .machine import machine, scatter
from .test_coloring import chain, grid, star

pytestmark = pytest.mark.native
MODEL = machine().finalize()
DT = 2e-3


def make(num_worlds: int = 1, backend: str = "native", dtype: str = "float64", **options: Any) -> Simulation:
    given = {k: options.pop(k) for k in ("launch", "threads") if k in options}
    if given.get("launch") == "staged":
        # Threads that share a busy core would wait for each other after every phase.
        given.setdefault("threads", 1)
    sim = Simulation(MODEL, num_worlds, backend=backend, dtype=dtype, config=SolverConfig(dt=DT, **options), **given)
    sim.control["motor"], sim.control["lift"] = 0.6, 0.3
    return sim


# Parameters and writes.


WRITES: list[tuple[str, Any]] = [
    ("body.bucket.mass", 5.5), ("body.boom.inertia", np.diag([0.7, 2.5, 2.2])), ("joint.hinge.damping", 17.0),
    ("joint.swing.friction_0", 1.3), ("joint.swing.limit_upper_0", -0.05), ("joint.crank.armature", 0.08),
    ("motor.motor.stall_torque", 1.1), ("cylinder.lift.supply_pressure", 2e7), ("cylinder.lift.valve_frequency", 60.0),
    ("cylinder.lift.overlap_supply", 0.2), ("cylinder.lift.flow_gain", 1e-8), ("spring.spring.stiffness", 300.0),
    ("servo.servo.stiffness", 80.0), ("servo.servo.effort_limit", 0.5), ("force.push.force_x", 12.0),
    ("sim.gravity", (0.0, 1.0, -5.0)), ("motor.motor.command", -0.4), ("cylinder.lift.brake", 0.7),
    ("joint.hinge.position", -0.2), ("joint.swing.velocity", (0.5, -1.0)),
    ("body.bucket.linear_velocity", (0.1, 0.2, 0.3)), ("cylinder.lift.pressure_a", 9e5), ("cylinder.lift.spool", 0.1),
    ("motor.motor.torque", 0.05),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_what_one_world_is_given_acts_as_in_a_simulation_of_its_own(launch: str) -> None:
    known = make().signals()
    writes = [(name, value) for name, value in WRITES if known[name].writable]
    assert len(writes) >= len(WRITES) - 1
    sim = make(len(writes) + 1, launch=launch)
    sim.step(5)
    for world, (name, value) in enumerate(writes):
        sim.write(name, value, worlds=world)
    sim.step(20)
    for world in range(len(writes) + 1):
        alone = make(launch="fused")
        alone.step(5)
        if world < len(writes):
            alone.write(*writes[world])
        alone.step(20)
        assert different(bits(sim, world), bits(alone, 0)) == [], world
    plain = bits(sim, len(writes))
    for world, (name, _) in enumerate(writes):
        assert different(bits(sim, world), plain) != [], name


@pytest.mark.nightly
@pytest.mark.parametrize("solver", SOLVERS)
def test_scattered_worlds_run_as_on_numpy(solver: str) -> None:
    sims = [make(4, backend, joint_solver=solver) for backend in ("native", "numpy")]
    for steps in (0, 1, 10):
        for sim in sims:
            if steps == 0:
                for name, value in scatter(4).items():
                    sim.write(name, value)
            sim.step(steps)
        compare_signals(*sims)


def compare_signals(native: Simulation, reference: Simulation) -> None:
    assert native.signals().keys() == reference.signals().keys()
    size = {"N": 100.0, "N m": 10.0, "Pa": 1e5, "J": 100.0, "rad/s": 1.0, "m/s": 1.0, "m": 1.0, "rad": 1.0}
    for name, info in reference.signals().items():
        got, expected = native.read(name), reference.read(name)
        assert got.shape == expected.shape, name
        # If a loop locks a motion twice, only the sum of its reactions is determined. The motion shows the sum.
        if name.endswith("reaction") and re.search("crank|coupler|rocker|closing", name):
            continue
        atol = 1e-9 * size.get(info.unit, 1.0)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=atol, err_msg=name)


def test_reset_by_mask() -> None:
    sim, calm = make(4), make(4)
    for s in (sim, calm):
        s.write("body.bucket.mass", (2.0, 3.0, 4.0, 5.0))
        s.step(12)
    first = [bits(sim, world) for world in range(4)]
    sim.reset(np.array([False, True, False, True]))
    np.testing.assert_array_equal(sim.control["motor"], (0.6, 0.0, 0.6, 0.0))
    np.testing.assert_allclose(sim.read("sim.time"), (12 * DT, 0.0, 12 * DT, 0.0), rtol=1e-12)
    sim.control["motor"], sim.control["lift"] = 0.6, 0.3
    sim.step(12)
    calm.step(12)
    for world in range(4):
        assert different(bits(sim, world), first[world] if world % 2 else bits(calm, world)) == []
    np.testing.assert_array_equal(sim.read("body.bucket.mass"), (2.0, 3.0, 4.0, 5.0))


# Health.


def _huge_force(sim: Simulation, world: int) -> None:
    sim.write("force.push.force_x", 1e300, worlds=world)


def _nan_velocity(sim: Simulation, world: int) -> None:
    sim.state.arrays["linear_velocity"][world, 4] = np.nan
    sim.invalidate()


def _infinite_pressure(sim: Simulation, world: int) -> None:
    sim.state.groups[0].state[sim.state.groups[0].type.variables[0].name][world] = np.inf
    sim.invalidate()


@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("spoil", [_huge_force, _nan_velocity, _infinite_pressure])
def test_a_failed_world_stops_alone(spoil: Callable[[Simulation, int], None], dtype: str, launch: str) -> None:
    sim, calm = (make(8, dtype=dtype, launch=launch) for _ in range(2))
    for s in (sim, calm):
        s.step(10)
    spoil(sim, 5)
    with pytest.warns(UserWarning, match=naming("5")) as caught:
        sim.step(3)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(7)
    calm.step(10)
    expected = np.arange(8) != 5
    np.testing.assert_array_equal(sim.health(), expected)
    word = sim.backend.read_health()  # type: ignore[union-attr]
    assert word[5] != 0 and not word[expected].any()
    assert re.fullmatch(r"world 5: (body|cylinder|motor) '\w+' has .* after t = [\d.]+ s", sim.health_report())
    np.testing.assert_allclose(sim.read("sim.time")[5], 10 * DT)
    for world in np.flatnonzero(expected):
        assert different(bits(sim, int(world)), bits(calm, int(world))) == []
    sim.reset(5)
    assert sim.health().all() and sim.health_report() == "all worlds are fine"
    if spoil is _huge_force:
        sim.write("force.push.force_x", 0.0, worlds=5)
    fresh = make(1, dtype=dtype)
    sim.control["motor"], sim.control["lift"] = 0.6, 0.3
    for s in (sim, fresh):
        s.step(10)
    assert different(bits(sim, 5), bits(fresh, 0)) == [] and sim.health().all()


# Settings.


@pytest.mark.parametrize(
    "options",
    [
        {"launch": "graph"},
        {"launch": 3},
        {"threads": 0},
        {"threads": -1},
        {"threads": 1.5},
    ],
)
def test_bad_settings_are_reported(options: dict[str, Any]) -> None:
    with pytest.raises(GpusimError, match=naming(next(iter(options)))):
        make(**options)


@pytest.mark.parametrize("launch", ["fused", pytest.param("staged", marks=pytest.mark.nightly)])
def test_sweeps_stop_at_the_tolerance(launch: str) -> None:
    b = star(12)
    b.gravity[:] = 0.0
    for body in b.bodies:
        body.linear_velocity[:] = body.angular_velocity[:] = 0.0
    model = b.finalize()
    counts = {}
    for tolerance in (1e-9, 0.0):
        sims = [
            colored(model, backend, launch, 2, iterations=50, max_colors=3, impulse_tolerance=tolerance)
            for backend in BACKENDS
        ]
        for sim in sims:
            sim.write("body.hub.linear_velocity", (0.3, -0.2, 0.1), worlds=1)
            sim.step()
            sim.read("body.hub.linear_velocity")
        native, reference = sims
        counts[tolerance] = native.backend.slab_array("sweeps").copy() if launch == "staged" else None  # type: ignore[union-attr]
        np.testing.assert_allclose(native.state.arrays["impulse"], reference.state.arrays["impulse"], atol=1e-12)
        if launch == "staged":
            np.testing.assert_array_equal(counts[tolerance], reference.backend.work.sweeps)
    if launch == "staged":
        assert counts[1e-9][0] == 1 and 2 < counts[1e-9][1] < 50 and counts[0.0][1] == 50


# The hybrid of colors and overflow.


BACKENDS = ("native", "numpy")


def colored(model: Any, backend: str, launch: str = "auto", num_worlds: int = 1, **config: Any) -> Simulation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = SolverConfig(dt=1e-3, joint_solver="colored", **config)
        return Simulation(model, num_worlds, backend=backend, config=settings, launch=launch)


@pytest.mark.nightly
@pytest.mark.parametrize("max_colors", [1, 32])
@pytest.mark.parametrize(
    "builder", [lambda: star(200, revolute=True), lambda: grid(20), lambda: chain(20, closed=True)],
    ids=["star", "grid", "ring"],
)  # fmt: skip
def test_same_colors_and_residuals_as_numpy(builder: Callable[[], ModelBuilder], max_colors: int) -> None:
    model = builder().finalize()
    sims = [colored(model, backend, iterations=20, max_colors=max_colors) for backend in BACKENDS]
    sets, tables = model.topology.coloring_for(max_colors), sims[0].backend.tables  # type: ignore[union-attr]
    np.testing.assert_array_equal(tables["color_of"], sets.color_of)
    np.testing.assert_array_equal(tables["overflow"], sets.overflow)
    np.testing.assert_array_equal(tables["overflow_load"], sets.overflow_load)
    for k, members in enumerate(sets.colors):
        start, end = tables["color_start"][k : k + 2]
        np.testing.assert_array_equal(tables["color_constraint"][start:end], members)
    for _ in range(5):
        for sim in sims:
            sim.step(2)
        got, expected = (float(sim.state.arrays["residual"][0]) for sim in sims)
        speed = float(np.abs(sims[1].state.arrays["linear_velocity"]).max())
        assert abs(got - expected) < 1e-9 * speed
    for name in ("position", "orientation", "linear_velocity"):
        got, expected = (sim.state.arrays[name] for sim in sims)
        np.testing.assert_allclose(got, expected, rtol=0.0, atol=1e-9, err_msg=name)


# Memory.


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return 1024 * int(line.split()[1])
    return 0


@pytest.mark.nightly
def test_simulations_leave_no_memory_behind() -> None:
    b = ModelBuilder()
    ball_body(b, label="stone")
    b.add_joint_ball(-1, 0)
    model, config = b.finalize(), SolverConfig(dt=1e-3)

    def cycles(count: int) -> None:
        for _ in range(count):
            sim = Simulation(model, 2, backend="native", config=config)
            sim.step()
            del sim
        gc.collect()

    # The first cycles fill caches and the allocator's pools.
    cycles(100)
    resident = _resident_bytes()
    cycles(300)
    grown = _resident_bytes() - resident
    assert grown < 2e6, grown
    tracemalloc.start()
    try:
        cycles(25)
        growths = []
        for _ in range(3):
            before = tracemalloc.get_traced_memory()[0]
            cycles(25)
            growths.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    # A leak grows every time; other threads of the test process may fill a cache of theirs once.
    assert min(growths) < 10e3, growths


@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.parametrize("worlds", [2, 3, 8])
def test_more_threads_than_worlds(worlds: int, launch: str) -> None:
    ends = []
    for threads in (1, 16):
        sim = Simulation(machine().finalize(), worlds, "native", launch=launch, threads=threads)
        sim.control["motor"] = np.linspace(-1.0, 1.0, worlds)
        for _ in range(3):
            sim.step(4 if launch == "fused" else 1)
        ends.append([bits(sim, world) for world in range(worlds)])
    assert ends[0] == ends[1]


def test_memory_is_freed_with_the_last_reference() -> None:
    sim = Simulation(machine().finalize(), 2, "native")
    sim.step()
    sim.read("sim.kinetic_energy")
    assert sim.health().all()
    gone = weakref.ref(sim)
    gc.disable()
    try:
        del sim
        assert gone() is None
    finally:
        gc.enable()


def test_long_runs_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_backend, "MAX_STEPS", 7)
    pieces = Simulation(machine().finalize(), 2, "native")
    pieces.step(40)
    monkeypatch.undo()
    whole = Simulation(machine().finalize(), 2, "native")
    whole.step(40)
    assert bits(pieces, 1) == bits(whole, 1)
    np.testing.assert_allclose(pieces.read("sim.time"), 40e-3)


def test_a_simulation_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(Simulation(machine().finalize(), backend="native"))
