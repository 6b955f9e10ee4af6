from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform, UnknownNameError
from gpusim.command_schedule import Schedule, drive
from tests.message_snapshot import naming

from .helpers import FRAME_A, NO_GRAVITY, PLACE, ball_body, bits, different, simulate, slider
from .machine import machine

BACKENDS = ("numpy", pytest.param("native", marks=pytest.mark.native))


def running(backend: str = "native", worlds: int = 3, steps: int = 20) -> Simulation:
    sim = Simulation(machine().finalize(), worlds, backend=backend, config=SolverConfig(dt=2e-3))
    sim.control["motor"] = np.linspace(0.2, 0.6, worlds)
    sim.control["lift"] = np.linspace(-0.5, 0.9, worlds)
    sim.step(steps)
    return sim


# The array.


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_observation_keeps_its_array(backend: str) -> None:
    b = ModelBuilder()
    b.add_joint_revolute(-1, ball_body(b, com=(0.1, 0, 0)), axis=(0, 1, 0), label="hinge")
    sim = simulate(b, backend=backend)
    seen = sim.observe(["joint.hinge.position", "joint.hinge.reaction"])
    held, before, rows = seen.array, seen.read().copy(), len(sim.model.axes)
    sim.write("joint.hinge.damping", 1.0)
    sim.step(3)
    assert len(sim.model.axes) == rows + 1
    assert seen.read() is held and seen.array is held
    assert held[0, 0] == sim.read("joint.hinge.position")[0] != before[0, 0]


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_observation_in_float32_has_rounded_numbers(backend: str) -> None:
    sim = running(backend)
    names = ["joint.hinge.position", "joint.hinge.damping", "cylinder.lift.pressure_a"]
    exact, single = sim.observe(names), sim.observe(names, dtype="float32")
    held = single.array
    for _ in range(2):
        sim.step(3)
        assert single.read() is held and held.dtype == np.float32
        np.testing.assert_array_equal(held, exact.read().astype(np.float32))
    with pytest.raises(UnknownNameError, match=naming("float16")):
        sim.observe(names, dtype="float16")


# The step in use.


def test_forces_are_those_of_the_step_in_use() -> None:
    usual = Simulation(machine().finalize(), config=SolverConfig(dt=1e-2))
    given = Simulation(machine().finalize(), config=SolverConfig(dt=1e-3))
    for sim in (usual, given):
        sim.control["motor"] = 0.5
        for _ in range(5):
            sim.step(1, dt=1e-2)
    assert different(bits(usual, 0), bits(given, 0)) == []
    for name in usual.signals():
        np.testing.assert_array_equal(usual.read(name), given.read(name), err_msg=name)
    assert given.step_size == 1e-2
    given.reset()
    assert given.step_size == 1e-3


def test_schedules_hold_over_the_step_in_use() -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    ball_body(b, label="x")
    b.add_force(0, (1.0, 0.0, 0.0), label="push")
    sim = simulate(b, dt=1e-3)
    write = drive({"push": Schedule([(0.0, 0.0), (1.0, 1.0)])})
    sim.step(1, dt=1e-2)
    write(sim, sim.time)
    assert sim.control["push"][0] == pytest.approx(0.015, rel=1e-12)


# Lists.


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_list_reads_as_its_signals_do(backend: str) -> None:
    sim = running(backend)
    seen = sim.observe("*")
    assert seen.names == list(sim.signals())
    for _ in range(2):
        array = seen.read()
        assert array is seen.array and array.shape == (3, max(s.stop for s in seen.slices.values()))
        for name, columns in seen.slices.items():
            np.testing.assert_array_equal(array[:, columns], sim.read(name).reshape(3, -1), err_msg=name)
        sim.step(3)


@pytest.mark.native
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
def test_kernels_read_what_numpy_reads(scheme: str) -> None:
    sims = []
    for backend in ("numpy", "native"):
        sims.append(Simulation(machine().finalize(), 2, backend=backend, config=SolverConfig(dt=2e-3, scheme=scheme)))
        sims[-1].control["motor"] = 0.4
    sims[1].step(15)
    sims[0].backend.memory.state.restore(sims[1].state, np.arange(2))
    sims[0].invalidate()
    infos = sims[0].signals()
    names = [name for name, info in infos.items() if info.device]
    assert len(names) > 60
    for name in names:
        reference, value = (sim.read(name) for sim in sims)
        np.testing.assert_allclose(value, reference, rtol=1e-12, atol=1e-12 * np.abs(reference).max(), err_msg=name)


def test_wildcards_and_their_errors() -> None:
    sim = running(worlds=1, steps=0)
    seen = sim.observe(["sim.time", "joint.*.position", "joint.hinge.position", "body.boom.orient*"])
    joints = [n for n in sim.signals() if n.startswith("joint.") and n.endswith(".position")]
    assert seen.names == ["sim.time", *joints, "body.boom.orientation"]
    assert seen.slices["sim.time"] == slice(0, 1) and seen.array.shape[1] == seen.slices[seen.names[-1]].stop
    with pytest.raises(UnknownNameError, match=naming("joint.hinge.position")):
        sim.observe(["sim.time", "joint.hinge.positon"])
    with pytest.raises(UnknownNameError, match=naming("signal")):
        sim.observe("joint.*.positon")
    with pytest.raises(UnknownNameError, match=naming("'motor'")):
        sim.command("moter")


def test_only_forces_cost_a_trial() -> None:
    sim = running(worlds=1)
    infos = sim.signals()
    assert {n.rpartition(".")[2] for n, i in infos.items() if i.forward} == {
        "drive_force", "reaction", "contacts", "penetration", "contact_force", "contact_torque",
        "kinetic_energy",
    }  # fmt: skip
    for name, info in infos.items():
        sim.invalidate()
        sim.read(name)
        assert (sim.runtime._forward is not None) == info.forward, name


@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_as_a_list(backend: str) -> None:
    sim = running(backend)
    before = {label: sim.control[label] for label in sim.control}
    command = sim.command(["lift*", "motor"])
    assert command.names == ["lift", "lift.brake", "motor"]
    np.testing.assert_array_equal(command.array[:, 0], before["lift"])
    command.array[:] = np.arange(9.0).reshape(3, 3) / 10.0
    command.write()
    np.testing.assert_array_equal(sim.control["lift.brake"], (0.1, 0.4, 0.7))
    np.testing.assert_array_equal(sim.control["push"], before["push"])
    command.write((0.5, 0.0, -0.5))
    np.testing.assert_array_equal(sim.read("motor.motor.command"), (-0.5, -0.5, -0.5))
    with pytest.raises(ModelError, match=naming("command 'lift.brake'")):
        command.write((0.0, float("nan"), 0.0))
    with pytest.raises(ModelError, match=naming("3")):
        command.write(np.zeros((2, 3)))


# Writing many at once.


def tree() -> ModelBuilder:
    b = ModelBuilder(gravity=NO_GRAVITY)
    base = ball_body(b, xform=PLACE, label="base")
    parent = {"l": base, "r": base}
    kinds = ("revolute", "universal", "prismatic", "cylindrical", "ball", "planar", "d6")
    axes = {"d6": {"linear_axes": [(0, 0, 1)], "angular_axes": [(0, 0, 1), (1, 0, 0), (0, -1, 0)]}}
    for k, kind in enumerate(kinds):
        for side in "lr":
            body = ball_body(b, xform=PLACE, label=f"{side}{k}", com=(0.1, 0.0, 0.2))
            add = getattr(b, f"add_joint_{kind}")
            frames = FRAME_A, Transform((0.0, 0.1, 0.0))
            add(parent[side], body, *frames, label=f"{side}{k}", **axes.get(kind, {}))
            parent[side] = body
    return b


def posture(sim: Simulation, seed: int) -> dict[str, Any]:
    rng, values = np.random.default_rng(seed), dict[str, Any]()
    for name, info in sim.signals().items():
        if info.writable and name.startswith("joint.") and name.endswith((".position", ".velocity")):
            values[name] = rng.uniform(-0.8, 0.8, (sim.num_worlds, *info.shape))
            if info.shape == (4,):
                values[name] /= np.linalg.norm(values[name], axis=-1, keepdims=True)
                values[name] *= np.sign(values[name][:, 3:])
    values["body.base.position"] = rng.normal(size=(sim.num_worlds, 3))
    values["body.base.angular_velocity"] = rng.normal(size=(sim.num_worlds, 3))
    return values


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_whole_posture_at_once(backend: str) -> None:
    once, singly = (Simulation(tree().finalize(), 2, backend=backend) for _ in range(2))
    values = posture(once, 1)
    once.write_state(values)
    singly.write("body.base.position", values["body.base.position"])
    for name in values:
        if name.endswith(".position") and name.startswith("joint"):
            singly.write(name, values[name])
    singly.write("body.base.angular_velocity", values["body.base.angular_velocity"])
    for name in values:
        if name.endswith(".velocity"):
            singly.write(name, values[name])
    for name, value in values.items():
        np.testing.assert_allclose(once.read(name), value, atol=1e-12, err_msg=name)
    for name, array in once.state.arrays.items():
        if name.startswith(("velocity_before", "kick_before", "step_before", "posed")):
            continue
        other = singly.state.arrays[name]
        if name == "orientation":
            other = other * np.sign(np.sum(array * other, axis=-1, keepdims=True))
        np.testing.assert_allclose(array, other, atol=1e-12, err_msg=name)
    assert np.all(once.read("sim.joint_drift") < 1e-12)


@pytest.mark.native
def test_kernels_write_what_numpy_writes() -> None:
    reference, sim = running("numpy", steps=0), running("native")
    before = bits(sim, 0)
    reference.backend.memory.state.restore(sim.state, np.arange(3))
    reference.invalidate()
    infos = sim.signals()
    writable = [n for n, i in infos.items() if i.writable and n.startswith("joint.") and n.endswith(".position")]
    values = {name: np.full(infos[name].shape, 0.1) for name in writable} | {
        "body.boom.linear_velocity": (1.0, 2.0, 3.0), "joint.hinge.velocity": 2.0,
        "body.bucket.orientation": (0, 0, 1, 1),
    }  # fmt: skip
    for each in (reference, sim):
        each.write_state(values, worlds=[1])
    for name, array in reference.state.arrays.items():
        np.testing.assert_allclose(sim.state.arrays[name], array, rtol=1e-12, atol=1e-12, err_msg=name)
    assert different(before, bits(sim, 0)) == []


def test_write_state_takes_wildcards_parameters_and_commands() -> None:
    sim = running(worlds=2)
    names = sim.observe("motor.motor.*_constant").names
    sim.write_state({"motor.motor.*_constant": (0.02, 0.03), "body.boom.mass": 7.0, "motor.motor.command": 0.1})
    assert [float(sim.read(n)[0]) for n in names] == [0.02, 0.03]
    assert sim.read("body.boom.mass")[1] == 7.0 and sim.control["motor"][0] == 0.1
    before = bits(sim, 0)
    for bad, words in (
        ({"joint.hinge.position": 0.1, "joint.hinge.reaction": 0.0}, ""),
        ({"joint.hinge.position": 0.1, "body.boom.position": (0.0, 0.0, float("nan"))}, ""),
        ({"joint.hinge.position": 0.1, "body.boom.orientation": (0.0, 0.0, 0.0, 0.0)}, ""),
        ({"joint.hinge.position": np.zeros(3)}, "joint.hinge.position 3"),
    ):
        with pytest.raises(ModelError, match=naming(words)):
            sim.write_state(bad)
    assert different(before, bits(sim, 0)) == []


@pytest.mark.native
def test_parameters_of_chosen_worlds() -> None:
    sim = running(worlds=4, steps=1)
    sim.write("body.boom.mass", 9.0, worlds=2)
    sim.write("motor.motor.stall_torque", 2.0, worlds=[0, 3])
    sim.write("body.boom.mass", 3.0, worlds=1)
    alone = []
    for world in range(4):
        one = running(worlds=4, steps=1)
        for name in ("body.boom.mass", "motor.motor.stall_torque"):
            one.write(name, float(sim.read(name)[world]))
        alone.append(one)
    sim.step(5)
    for world, one in enumerate(alone):
        one.step(5)
        assert different(bits(sim, world), bits(one, world)) == []
    with pytest.raises(ModelError, match=naming("mass")):
        sim.write("body.boom.mass", -1.0, worlds=3)
    assert sim.read("body.boom.mass")[3] > 0.0


# Values at t.


def oscillator(dt: float) -> tuple[Simulation, float]:
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, label="x")
    b.add_torsion_spring(0, stiffness=400.0)
    sim = simulate(b, dt=dt)
    sim.write("joint.x.position", 0.1)
    return sim, float(np.sqrt(400.0 / sim.read("body.x.mass")[0]))


@pytest.mark.nightly
def test_velocities_at_t_are_second_order() -> None:
    errors = []
    for dt in (4e-3, 2e-3, 1e-3):
        sim, w = oscillator(dt)
        worst = np.zeros(2)
        for _ in range(round(0.5 / dt)):
            sim.step(1)
            wanted = -0.1 * w * np.sin(w * sim.time), -400.0 * 0.1 * np.cos(w * sim.time)
            force = sim.read(next(n for n in sim.signals() if n.endswith(".force")))[0]
            got = sim.read("joint.x.velocity")[0], force
            if sim.time > 0.02:
                worst = np.maximum(worst, np.abs(np.subtract(got, wanted)))
        errors.append(worst)
    for coarse, fine in zip(errors, errors[1:], strict=False):
        assert np.all(coarse > 3.5 * fine), errors
    assert errors[-1][0] < 0.1 * w * (w * 1e-3) ** 2


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_no_velocity_beyond_an_impact(restitution: float) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    slider(b, label="x", limit_upper=0.05, limit_restitution=restitution)
    sim = simulate(b, dt=1e-3)
    sim.write("joint.x.velocity", 1.0)
    speeds = []
    for _ in range(100):
        sim.step(1)
        speeds.append(sim.read("joint.x.velocity")[0])
    assert max(speeds) < 1.0 + 1e-9 and min(speeds) > -restitution - 1e-9
    assert speeds[0] == pytest.approx(1.0, rel=1e-9) and speeds[-1] == pytest.approx(-restitution, abs=1e-6)


def test_velocities_go_through_changes_of_step() -> None:
    b = ModelBuilder()
    ball_body(b, label="x")
    sim = simulate(b)
    for dt in (1e-3, 1e-3, 4e-3, 2e-3, 2e-3, 5e-4):
        sim.step(1, dt=dt)
        assert sim.read("body.x.linear_velocity")[0, 2] == pytest.approx(-9.81 * sim.time, rel=1e-12)
