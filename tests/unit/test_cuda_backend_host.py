from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Simulation, SolverConfig
from gpusim.description.actuator_kinds import _KINDS, register
from gpusim.scene import load_scene
from tests.message_snapshot import naming
from tests.unit import fake_cupy
from tests.unit.test_own_kinds import Lag, slide

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("stand_in")]


def machine(name: str, backend: str, worlds: int = 3, **options: Any) -> Simulation:
    config = SolverConfig(dt=1e-3, joint_solver=options.pop("solver", "direct"))
    model = load_scene(name).builder.finalize()
    sim = Simulation(model, worlds, backend, config=config, **options)
    for world in range(worlds):
        sim.write("sim.gravity", (0.0, 0.1 * world, -9.81), worlds=world)
    return sim


def bits(sim: Simulation) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in sim.state.variables().items()}


@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("name", ["hydraulic_lift", "dc_motor_rig", "flyball"])
def test_runs_as_native_does(name: str, solver: str, launch: str) -> None:
    sims = [machine(name, backend, launch=launch, solver=solver) for backend in ("cuda", "native")]
    for sim in sims:
        for command in sim.control:
            sim.control[command] = np.array([0.1, 0.5, -0.3])
        sim.step(3)
        sim.step(2, dt=5e-4)
        sim.step(4)
    assert bits(sims[0]) == bits(sims[1])


@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_contacts(launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.compiler.contact_topology.MAX_SEQUENTIAL", 8)
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(12):
        place = (0.09 * (k % 2), 0.1 * (k // 2 % 2), 0.06 + 0.11 * (k // 4))
        body = b.add_body(xform=gpusim.Transform.from_axis_angle(place, (1.0, 2.0, k), 0.3 * k), label=f"box{k}")
        b.add_shape_box(body, half_extents=(0.05, 0.04, 0.06))
    config = SolverConfig(dt=1 / 120, substeps=2)
    sims = [Simulation(b.finalize(), 2, backend, config=config, launch=launch) for backend in ("cuda", "native")]
    for sim in sims:
        for _ in range(3):
            sim.step(10)
    assert bits(sims[0]) == bits(sims[1])
    found = [sim.contacts() for sim in sims]
    assert len(found[0]) == len(found[1]) > 10
    np.testing.assert_array_equal(found[0].force, found[1].force)
    for name in ("body.box0.contact_force", "sim.penetration", "sim.pair_peak"):
        np.testing.assert_array_equal(sims[0].read(name, numpy=True), sims[1].read(name), err_msg=name)


@pytest.mark.nightly
@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.parametrize("name", ["boom_crane", "dc_motor_rig", "slider_crank", "quarter_car"])
def test_every_signal(name: str, launch: str) -> None:
    cuda, native = machine(name, "cuda", launch=launch), machine(name, "native")
    for sim in (cuda, native):
        sim.step(7)
    by_kernels = 0
    for signal in native.signals():
        device, host = cuda.read(signal), native.read(signal)
        assert isinstance(device, fake_cupy.FakeArray)
        by_kernels += native.signals()[signal].device
        np.testing.assert_allclose(device.get(), host, rtol=1e-12, atol=1e-12, err_msg=signal)
        assert type(cuda.read(signal, numpy=True)) is np.ndarray
    assert by_kernels >= 13


@pytest.mark.nightly
def test_a_kind_from_outside_the_package() -> None:
    register(Lag)
    try:
        model = slide(Lag)
        config = SolverConfig(dt=1e-3)
        sims = [Simulation(model, 2, backend, config=config, launch="fused") for backend in ("cuda", "native")]
        for sim in sims:
            sim.control["own"] = [1.0, 2.0]
            sim.step(6)
            sim.reset(np.array([True, False]))
            sim.step(2)
        assert bits(sims[0]) == bits(sims[1])
        assert sims[0].signals()["lag.own.given"].device
        given = sims[0].read("lag.own.given")
        assert isinstance(given, fake_cupy.FakeArray)
        np.testing.assert_allclose(given.get(), [0.0, 2.0 * 1e-3 * 5], rtol=1e-12)
    finally:
        _KINDS.forget("lag")


@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_rows_that_come_while_it_runs(launch: str) -> None:
    sims = [machine("slider_crank", backend, launch=launch) for backend in ("cuda", "native")]
    body = sims[0].model.bodies[0].label
    for sim in sims:
        sim.step(5)
        sim.write(f"body.{body}.linear_velocity", (0.0, 0.0, 1e200), worlds=1)
        with pytest.warns(UserWarning, match=naming("1")):
            sim.step(1)
            sim.health()
            sim.step(1)
        axes = len(sim.model.axes)
        for joint in sim.model.joints:
            if f"joint.{joint.label}.friction" in sim.signals():
                sim.write(f"joint.{joint.label}.friction", (0.1, 0.2, 0.3))
        assert len(sim.model.axes) > axes
        sim.step(5)
        np.testing.assert_array_equal(sim.health(), (True, False, True))
    assert bits(sims[0]) == bits(sims[1])


def test_read_follows_every_write() -> None:
    sim = machine("boom_crane", "cuda")
    label = sim.model.bodies[0].label
    before = sim.read(f"body.{label}.position").get()
    sim.write(f"body.{label}.position", (1.0, 2.0, 3.0), worlds=1)
    np.testing.assert_allclose(sim.read(f"body.{label}.position").get()[1], (1.0, 2.0, 3.0), atol=1e-12)
    np.testing.assert_array_equal(sim.read(f"body.{label}.position").get()[[0, 2]], before[[0, 2]])
    sim.write(f"body.{label}.linear_velocity", (0.0, 0.0, 1.0))
    np.testing.assert_allclose(sim.read(f"body.{label}.linear_velocity", numpy=True), [(0, 0, 1)] * 3, atol=1e-6)
    sim.write(f"body.{label}.mass", 77.0, worlds=2)
    sim.step()
    np.testing.assert_allclose(sim.read("sim.time").get(), 1e-3)


def test_commands_from_the_device() -> None:
    sims = [machine("hydraulic_lift", backend) for backend in ("cuda", "native")]
    values = np.array([0.2, 0.4, 0.9])
    command = next(iter(sims[0].control))
    sims[0].control[command] = fake_cupy.fake(values)
    sims[1].control[command] = values
    np.testing.assert_array_equal(sims[0].control[command], values)
    for sim in sims:
        sim.step(20)
    assert bits(sims[0]) == bits(sims[1])
    sims[0].control[command] = 0.3
    np.testing.assert_array_equal(sims[0].control[command], [0.3] * 3)


@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_reset_by_mask_and_quarantine(launch: str) -> None:
    sim, other = machine("boom_crane", "cuda", launch=launch), machine("boom_crane", "cuda", launch=launch)
    start = sim.state.copy()
    for s in (sim, other):
        s.step(5)
    sim.reset(np.array([False, True, False]))
    np.testing.assert_allclose(sim.read("sim.time").get(), [5e-3, 0.0, 5e-3])
    for name, array in sim.state.variables().items():
        np.testing.assert_array_equal(array[1], start.variables()[name][1])
        np.testing.assert_array_equal(array[0], other.state.variables()[name][0])
    sim.state.arrays["linear_velocity"][2, 0] = np.nan
    with pytest.warns(UserWarning, match=naming("2")):
        sim.step()
        sim.step()
    assert sim.health().tolist() == [True, True, False]
    assert "boom" in sim.health_report() or "body" in sim.health_report()
    sim.reset(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step(2)
    assert sim.health().all()
    sim.reset(fake_cupy.fake(np.array([True, False, False])))
    assert sim.read("sim.time").get()[0] == 0.0 < sim.read("sim.time").get()[1]


def test_checkpoints_change_the_backend(tmp_path: Path) -> None:
    sim, path = machine("boom_crane", "native"), tmp_path / "a.npz"
    sim.step(5)
    sim.write("body.boom.linear_velocity", (0.0, 1e30, 0.0), worlds=2)
    with pytest.warns(UserWarning, match=naming("2")):
        sim.step()
    sim.save(path)
    cuda = Simulation.load(path, backend="cuda", launch="fused")
    cuda.step(5)
    cuda.save(path)
    again, native = Simulation.load(path, launch="fused"), Simulation.load(path, backend="native")
    assert again.backend_name == "cuda"
    sim.step(10)
    for loaded in (again, native):
        loaded.step(5)
        assert bits(loaded) == bits(sim)
        assert loaded.health_report() == sim.health_report() and list(loaded.health()) == [True, True, False]


def test_two_simulations() -> None:
    sims = [machine(name, "cuda") for name in ("chain", "double_pendulum")]
    large, small = (sim.backend.layout.size for sim in sims)  # type: ignore[union-attr]
    assert large > small
    for sim in sims:
        sim.step(2)
        assert sim.health().all()


def test_lists_and_resets_wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sims = [machine("hydraulic_lift", backend) for backend in ("cuda", "native")]
    seen = [sim.observe(["joint.*", "body.*velocity", "cylinder.*.pressure_?"][1:]) for sim in sims]
    commands = [sim.command("*") for sim in sims]
    values = np.linspace(-0.5, 0.5, commands[0].array.size).reshape(commands[0].array.shape)
    cylinder = next(n for n in sims[0].signals() if n.endswith(".flow_gain"))
    body = sims[0].model.bodies[0].label
    gain = sims[0].read(cylinder, numpy=True)
    for sim in sims:
        sim.write(f"body.{body}.mass", sim.read(f"body.{body}.mass", numpy=True)[:1] * 1.0)
        sim.write(cylinder, gain)

    def refused(self: Any, out: Any = None) -> Any:
        raise AssertionError("waits for the device")

    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.FakeArray, "get", refused)
        for sim, observed, command in zip(sims, seen, commands, strict=True):
            on_device = sim.backend_name == "cuda"
            sim.step(3)
            command.write(fake_cupy.fake(values) if on_device else values)
            sim.write(f"body.{body}.mass", 5.0, worlds=1)
            sim.write(cylinder, 1.1 * gain[2], worlds=2)
            sim.step(3)
            mask = np.array([False, True, False])
            sim.reset(fake_cupy.fake(mask) if on_device else mask)
            sim.step(2)
            observed.read()
    np.testing.assert_allclose(seen[0].array.get(), seen[1].array, rtol=1e-12, atol=1e-12)
    assert bits(sims[0]) == bits(sims[1])
    np.testing.assert_array_equal(sims[0].control.array, sims[1].control.array)


def test_a_posture_is_written_on_the_device() -> None:
    sims = [machine("boom_crane", backend) for backend in ("cuda", "native")]
    for sim in sims:
        sim.step(4)
        shapes = {n: i.shape for n, i in sim.signals().items() if i.writable and n.startswith("joint.")}
        values = {n: np.full(shape, 0.1) for n, shape in shapes.items() if n.endswith(".position")}
        sim.write_state(values, worlds=[0, 2])
        sim.step(2)
    assert bits(sims[0]) == bits(sims[1])


def test_devices() -> None:
    assert machine("boom_crane", "cuda", device=1).backend.memory.device == 1  # type: ignore[union-attr]
    with pytest.raises(gpusim.ModelError, match=naming("device 5 2")):
        machine("boom_crane", "cuda", device=5)


def test_held_commands() -> None:
    sims = [machine("hydraulic_lift", backend) for backend in ("cuda", "native")]
    for sim in sims:
        held = sim.control.array
        for value in (0.2, 0.7):
            held[:, 0] = value
            sim.invalidate()
            sim.step(5)
    assert bits(sims[0]) == bits(sims[1])
    name = next(iter(sims[0].control))
    with pytest.raises(gpusim.ModelError, match=naming(f"command '{name}' 2 3")):
        sims[0].control[name] = fake_cupy.fake(np.zeros(2))


def test_another_stream_waits_for_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_cupy.Stream, "waits", [])
    sim = machine("boom_crane", "cuda")
    sim.step()
    sim.step()
    assert fake_cupy.Stream.waits == []
    monkeypatch.setattr(fake_cupy.Stream, "current", 7)
    sim.read("sim.time")
    sim.step()
    monkeypatch.setattr(fake_cupy.Stream, "current", 8)
    sim.state.copy()
    assert fake_cupy.Stream.waits == [(7, 0), (8, 7)]


def test_a_block_runs_on_the_stream_of_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_cupy.Stream, "waits", [])
    sim = machine("boom_crane", "cuda")
    sim.step()
    with gpusim.on_stream(SimpleNamespace(cuda_stream=7, device_index=0)):
        sim.step()
        with gpusim.on_stream(9):
            sim.step()
    sim.step()
    assert fake_cupy.Stream.waits == [(7, 0), (9, 7), (0, 9)]
    with pytest.raises(gpusim.ModelError, match=naming("'side'")), gpusim.on_stream("side"):
        pass


@pytest.mark.parametrize(
    "look",
    [
        lambda sim: sim.step(),
        lambda sim: sim.backend.read_health(),
        lambda sim: sim.backend.read_health_value(),
        lambda sim: sim.backend.memory.read_control(),
        lambda sim: sim.backend.memory.to_device(np.zeros(3)),
        lambda sim: sim.write("body.boom.mass", 5.0, worlds=1),
        lambda sim: sim.reset([1]),
    ],
)
def test_whatever_follows_on_another_stream_waits(monkeypatch: pytest.MonkeyPatch, look: Any) -> None:
    sim = machine("boom_crane", "cuda")
    for name in sim.control:
        sim.control[name] = fake_cupy.fake(np.zeros(3))
    monkeypatch.setattr(fake_cupy.Stream, "waits", [])
    monkeypatch.setattr(fake_cupy.Stream, "current", 7)
    look(sim)
    assert fake_cupy.Stream.waits == [(7, 0)]


def test_numbers_of_worlds_mean_the_same_on_the_device() -> None:
    for chosen in (np.array([0, 2]), np.array([1, 0, 1]), np.array([True, False, True])):
        sims = [machine("boom_crane", backend) for backend in ("cuda", "native")]
        for sim in sims:
            sim.step(3)
            sim.reset(fake_cupy.fake(chosen) if sim.backend_name == "cuda" else chosen)
        assert bits(sims[0]) == bits(sims[1])
    for wrong in (np.array([1.0, 0.4, 0.0]), np.array([0, 3]), np.array([True, False])):
        with pytest.raises(gpusim.ModelError, match=naming("Simulation.reset")):
            sims[0].reset(fake_cupy.fake(wrong))


@pytest.mark.parametrize("launch", ["fused", "staged"])
def test_rays_are_cast_on_the_device(launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1)
    body = b.add_body(1.0, (1, 1, 1), xform=gpusim.Transform((0, 0, 2)), angular_velocity=(1, 0, 0), label="body")
    b.add_ray_sensor(b.add_site(body), gpusim.Rays.grid((1, 1), (3, 2)), label="down")
    model = b.finalize()
    sims = [Simulation(model, 2, backend, launch=launch) for backend in ("cuda", "native")]
    seen = [sim.observe(["sensor.down", "body.body.position", "sensor.down.normal"]) for sim in sims]
    alone = [sim.observe("sensor.down") for sim in sims]
    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.FakeArray, "get", lambda self: pytest.fail("waits for the device"))
        for sim, *observed in zip(sims, seen, alone, strict=True):
            sim.write("body.body.linear_velocity", (1.0, 0.0, 0.0), worlds=1)
            sim.step(5)
            for each in observed:
                each.read()
    assert seen[0].array.get().tobytes() == seen[1].array.tobytes()
    assert alone[0].array.get().tobytes() == alone[1].array.tobytes()
    assert seen[1].array[0, :6] == pytest.approx(np.full(6, 2.0), rel=0.01) and seen[1].array[0, 11] == 1.0
