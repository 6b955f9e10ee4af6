from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusim import Material, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.native import compile as compile_native
from gpusim.backends.native.backend import NativeBackend
from gpusim.description.contact_record import by_slot
from tests.builds import optimize_as_shipped, optimize_less

from .contact_models import tires
from .test_team import SPOILED, add_defines, heap, leg

pytestmark = pytest.mark.native

STEPS = 15
# Each pair uses kernels that other tests compile too.
LAUNCHES = {"float32": "staged", "float64": "fused"}
LAYOUTS = {"float32": [(16, {}), (8, {}), (32, {"GPUSIM_PLAIN": "1"})], "float64": [(8, {}), (4, {})]}


def run(
    dtype: str,
    lanes: int,
    defines: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    launch: str,
    solver: str = "colored",
    builder: ModelBuilder | None = None,
) -> Simulation:
    monkeypatch.setattr(NativeBackend, "lanes", lambda self: lanes)
    config = SolverConfig(dt=2e-3, substeps=2, iterations=3, max_colors=5, joint_solver=solver)
    builder = builder or (heap(70) if solver == "colored" else leg())
    with monkeypatch.context() as own:
        add_defines(defines, own)
        fitting = lanes == compile_native.vector_bytes() // np.dtype(dtype).itemsize
        if lanes > 1 and not fitting or defines:
            optimize_less(own)
        elif fitting and dtype == "float32" and launch == "staged":
            optimize_as_shipped(own)
        sim = Simulation(builder.finalize(), 2, "native", dtype=dtype, launch=launch, threads=1, config=config)
    sim.backend._slab[:] = SPOILED  # type: ignore[union-attr]
    sim.write("sim.gravity", (0.5, 0.0, -9.0), worlds=1)
    sim.step(STEPS)
    assert sim.health().all()
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", sorted(LAYOUTS))
def test_same_bits(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run(dtype, 1, {}, monkeypatch, "fused")
    expected = {name: array.tobytes() for name, array in alone.state.variables().items()}
    for lanes, defines in LAYOUTS[dtype]:
        found = run(dtype, lanes, defines, monkeypatch, LAUNCHES[dtype])
        for name, array in found.state.variables().items():
            assert array.tobytes() == expected[name], (lanes, name)
    backend: Any = found.backend
    # with one thread, both worlds of a fused launch share a slab
    sizes = backend.layout.view(backend._slab, "color_size", 2 if backend.staged else 1)
    assert sizes[:, 5].all(), "no overflow"
    assert (sizes[:, :5] % lanes).any(), "all lists fill their vectors"


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", sorted(LAYOUTS))
def test_same_bits_of_tires_among_balls(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, _ = tires()
    for k in range(7):
        ball = builder.add_body(xform=Transform((1.0, 0.5 * k, 0.0999)), linear_velocity=(0.3, 0.1 * k, 0.0))
        builder.add_shape_sphere(ball, 0.1, material=Material(rolling_friction=1e-3 * (k % 2)), group=4, mask=1)
    alone = run(dtype, 1, {}, monkeypatch, "fused", builder=builder).state.variables()
    for lanes, defines in LAYOUTS[dtype]:
        found = run(dtype, lanes, defines, monkeypatch, LAUNCHES[dtype], builder=builder).state.variables()
        for name, array in found.items():
            assert array.tobytes() == alone[name].tobytes(), (lanes, name)


@pytest.mark.nightly
def test_same_bits_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("float32", 1, {}, monkeypatch, "fused").state.variables()
    monkeypatch.setattr(compile_native, "_vector_flags", lambda: ())
    found = run("float32", 8, {"GPUSIM_ANY_PROCESSOR": "1"}, monkeypatch, "fused").state.variables()
    for name, array in found.items():
        assert array.tobytes() == expected[name].tobytes(), name


@pytest.mark.nightly
def test_same_bits_with_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    states = [run("float64", lanes, {}, monkeypatch, "fused", "direct").state.variables() for lanes in (1, 4)]
    for name, array in states[0].items():
        assert array.tobytes() == states[1][name].tobytes(), name


def test_records_come_back_by_place() -> None:
    memory = np.arange(2 * 8 * 3).reshape(2, 8, 3)
    records = by_slot(memory, 4)
    flat = memory.reshape(2, 2, 3, 4)
    for world in range(2):
        for place in range(8):
            np.testing.assert_array_equal(records[world, place], flat[world, place // 4, :, place % 4])


@pytest.mark.nightly
def test_contacts_read_the_same() -> None:
    found = []
    for dtype in ("float32", "float64"):
        config = SolverConfig(dt=2e-3, joint_solver="colored")
        sim = Simulation(heap(70).finalize(), backend="native", dtype=dtype, launch="fused", config=config)
        assert sim.backend.sizes["lanes"] > 1  # type: ignore[union-attr]
        sim.step(3)
        found.append(sim.contacts())
    assert len(found[0].gap) == len(found[1].gap) > 100
    np.testing.assert_allclose(found[0].point, found[1].point, atol=1e-5)
    np.testing.assert_allclose(found[0].normal, found[1].normal, atol=1e-5)
