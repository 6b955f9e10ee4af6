"""Writes from arrays on a GPU, and captured steps, over a mock of CuPy that runs the kernels on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Simulation, SolverConfig
from tests.message_snapshot import naming
from tests.unit import fake_cupy
from tests.unit.test_cuda_backend_host import bits, machine

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("stand_in")]


def crate(backend: str) -> Simulation:
    """Return a box with a lid, which a servo opens, in three worlds."""
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1, label="floor")
    box = b.add_body(5.0, (0.1, 0.2, 0.3), xform=gpusim.Transform((0.0, 0.0, 0.5)), label="box")
    lid = b.add_body(1.0, (0.01, 0.01, 0.02), xform=gpusim.Transform((0.0, 0.0, 0.75)), label="lid")
    b.add_shape_box(box, half_extents=(0.2, 0.2, 0.2), label="wall")
    hinge = b.add_joint_revolute(box, lid, axis=(0, 1, 0), at=(0.2, 0.0, 0.75), damping=0.1, label="hinge")
    b.add_servo(hinge, stiffness=5.0, damping=0.5, label="servo")
    return Simulation(b.finalize(), 3, backend, config=SolverConfig(dt=2e-3))


def test_postures_from_the_device_wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sims = [machine("double_pendulum", backend) for backend in ("cuda", "native")]
    shapes = {n: i.shape for n, i in sims[0].signals().items() if i.writable and n.startswith("joint.")}
    joint = next(n for n, shape in shapes.items() if n.endswith(".position") and not shape)
    body = sims[0].model.bodies[-1].label
    chance = np.random.default_rng(4)
    wide = chance.uniform(-0.1, 0.1, (3, sum(n.endswith(".velocity") for n in shapes)))
    values: dict[str, Any] = {joint: chance.uniform(0.0, 0.2, 3), "joint.*.velocity": wide}
    one = {f"body.{body}.linear_velocity": np.array([0.1, 0.0, 0.2])}
    mask = np.array([True, False, True])
    for sim in sims:
        sim.step(4)
        sim.write_state(values)
    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.FakeArray, "get", None)
        given = {name: fake_cupy.fake(value) for name, value in values.items()}
        sims[0].write_state(given, fake_cupy.fake(mask))
        sims[0].write_state({name: fake_cupy.fake(x) for name, x in one.items()}, worlds=[2, 0])
        sims[0].write_state({joint: 0.15}, fake_cupy.fake(mask))
    sims[1].write_state({name: value[mask] for name, value in values.items()}, mask)
    sims[1].write_state(one, worlds=[2, 0])
    sims[1].write_state({joint: 0.15}, mask)
    for sim in sims:
        sim.step(2)
    assert bits(sims[0]) == bits(sims[1])
    with pytest.raises(gpusim.ModelError, match=naming(f"signal '{joint}' (2,) 3")):
        sims[0].write_state({joint: fake_cupy.fake(np.zeros(2))}, fake_cupy.fake(mask))


@pytest.mark.parametrize("mask", [(True, False, True), (False, True, False)])
def test_parameters_from_the_device_wait_for_nothing(mask: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    sims, chance = [crate(backend) for backend in ("cuda", "native")], np.random.default_rng(5)
    given = {
        "body.box.mass": chance.uniform(1.0, 9.0, 3), "sim.gravity": chance.uniform(-9.0, 9.0, (3, 3)),
        "body.*.gravity_scale": chance.uniform(0.0, 1.0, (3, 2)), "body.lid.applied_force": chance.normal(size=(3, 3)),
        "joint.hinge.damping": chance.uniform(0.0, 1.0, 3), "joint.hinge.position": chance.uniform(0.0, 0.2, 3),
        "shape.floor.friction": chance.uniform(0.0, 1.0, 3), "shape.floor.restitution": chance.uniform(0.2, 0.9, 3),
        "servo.servo.stiffness": chance.uniform(1.0, 9.0, 3),
    }  # fmt: skip
    chosen = np.array(mask)
    for sim in sims:
        assert set(given) - {"body.*.gravity_scale"} < set(sim.signals())
        sim.step(3)
    with monkeypatch.context() as patch:
        patch.setattr(fake_cupy.FakeArray, "get", None)
        sims[0].write_state({n: fake_cupy.fake(x) for n, x in given.items()}, fake_cupy.fake(chosen))
        sims[0].write_state({"body.lid.mass": fake_cupy.fake(np.array([0.7]))}, worlds=[2, 0])
        sims[0].step(40)
    sims[1].write_state({n: x[chosen] for n, x in given.items()}, chosen)
    sims[1].write_state({"body.lid.mass": 0.7}, worlds=[2, 0])
    sims[1].step(40)
    assert bits(sims[0]) == bits(sims[1])
    for name in given:
        np.testing.assert_array_equal(sims[0].read(name.replace("*", "lid"), numpy=True),
                                      sims[1].read(name.replace("*", "lid")), err_msg=name)  # fmt: skip


def test_values_for_all_worlds_also_reach_the_host() -> None:
    sims, mask = [crate(backend) for backend in ("cuda", "native")], np.array([True, False, True])
    inertia = np.diag([0.1, 0.2, 0.25]) * np.array([1.0, 2.0, 3.0])[:, None, None]
    values = {"body.box.inertia": inertia, "joint.hinge.velocity": np.array([0.1, 0.2, 0.3])}
    sims[0].write_state({name: fake_cupy.fake(x) for name, x in values.items()}, fake_cupy.fake(mask))
    sims[1].write_state({name: x[mask] for name, x in values.items()}, mask)
    for sim in sims:
        sim.step(5)
    assert bits(sims[0]) == bits(sims[1])


def test_a_host_write_follows_one_on_the_device() -> None:
    sims = [crate(backend) for backend in ("cuda", "native")]
    for sim in sims:
        on_device = sim.backend_name == "cuda"
        for mass in (2.0, 3.0):
            value = np.array([mass])
            sim.write_state({"body.box.mass": fake_cupy.fake(value) if on_device else value}, worlds=[1])
            sim.write("body.lid.mass", mass, worlds=2)
            sim.write("servo.servo.damping", mass, worlds=0)
        kept = sim.snapshot()
        sim.write("body.box.mass", 9.0)
        sim.restore(kept)
        sim.step(20)
        np.testing.assert_array_equal(sim.read("body.box.mass", numpy=True), [5.0, 3.0, 5.0])
    assert bits(sims[0]) == bits(sims[1])


def test_a_graph_replays_steps() -> None:
    sims = [crate(backend) for backend in ("cuda", "native")]
    seen = [sim.observe(["body.box.position", "joint.hinge.position"]) for sim in sims]
    targets = [sim.command(["servo"]) for sim in sims]
    values = np.array([[0.1], [0.2], [0.3]])
    given = fake_cupy.fake(values)

    def once(k: int) -> None:
        seen[k].read()
        targets[k].write(values if k else given)
        sims[k].step(2)

    def replay(graph: fake_cupy.Graph) -> None:
        targets[0].write(given)  # the stand-in records launches only
        graph.launch(None)
        sims[0].invalidate()
        once(1)

    once(0), once(1)
    with sims[0].capture():
        stream = fake_cupy.Stream()
        stream.begin_capture()
        once(0)
        graph = stream.end_capture()
    for round_ in range(3):
        replay(graph)
        assert bits(sims[0]) == bits(sims[1])
        np.testing.assert_allclose(seen[0].array.get(), seen[1].array, rtol=1e-12)
        for sim in sims:
            sim.write("body.lid.mass", 1.0 + round_, worlds=1)
            sim.write("joint.hinge.velocity", 0.1 * round_, worlds=[0, 2])
    replay(graph)
    assert sims[0].read("body.lid.contact_force", numpy=True).any() == sims[1].read("body.lid.contact_force").any()
    assert bits(sims[0]) == bits(sims[1])


def test_a_capture_refuses_what_needs_the_host() -> None:
    sim = crate("cuda")
    sim.step(1)
    with pytest.raises(gpusim.ModelError, match=naming("Simulation.capture Observation.read")), sim.capture():
        sim.read("body.box.mass")
    with pytest.raises(gpusim.ModelError, match=naming("Simulation.capture Observation.read")), sim.capture():
        sim.control["servo"] = 1.0
        sim.step(1)
    crank = machine("slider_crank", "cuda")
    with crank.capture():
        pass
    bare = next(j.label for k, j in enumerate(crank.model.joints) if (k, 0) not in crank.model.axis_of)
    with pytest.raises(gpusim.ModelError, match=naming("Simulation Simulation.capture")):
        crank.write(f"joint.{bare}.friction", 0.1)  # needs a new row
    with pytest.raises(gpusim.ModelError, match=naming("Simulation.capture native")), crate("native").capture():
        pass
    staged = machine("boom_crane", "cuda", launch="staged")
    with pytest.raises(gpusim.ModelError, match=naming("Simulation.capture staged")), staged.capture():
        pass
