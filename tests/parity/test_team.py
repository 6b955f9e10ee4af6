from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from ci.ptx.models import walkers
from ci.state_hashes import robot
from gpusim import Material, Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.native import backend as native_backend
from gpusim.model import paths
from gpusim.scene import list_scenes, load_scene
from gpusim.shapes.placing import ALL_GROUPS
from tests.builds import optimize_less
from tests.message_snapshot import naming

pytestmark = pytest.mark.native

SPOILED = 0xFF
"""Value of all bytes of the slabs before a step. Shared memory is not initialized, so steps must not read old data."""


def leg() -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    sizes = ((0.12, 0.08, 0.03), (0.03, 0.03, 0.2), (0.03, 0.03, 0.2))
    heights = (0.03, 0.26, 0.66)
    bodies = [b.add_body(xform=Transform((0.0, 0.0, z)), label=f"link{k}") for k, z in enumerate(heights)]
    for body, size in zip(bodies, sizes, strict=True):
        b.add_shape_box(body, half_extents=size)
    for k, drop in ((1, 0.03), (2, 0.2)):
        j = b.add_joint_revolute(
            bodies[k - 1], bodies[k], Transform((0, 0, drop)), Transform((0, 0, -0.2)), axis=(0, 1, 0),
            limit_lower=-0.1, limit_upper=0.1, limit_restitution=0.5, label=f"joint{k}",
        )  # fmt: skip
        b.add_servo(j, stiffness=20.0, damping=1.0, label=f"servo{k}")
    box = b.add_body(xform=Transform((0.1, 0.0, 0.14)), label="box", angular_velocity=(0.0, 1.0, 0.0))
    b.add_shape_box(box, half_extents=(0.06, 0.06, 0.06))
    return b


def heap(count: int, mask: int = ALL_GROUPS) -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(count):
        place = (0.09 * (k % 3), 0.1 * (k // 3 % 3), 0.06 + 0.11 * (k // 9))
        body = b.add_body(xform=Transform.from_axis_angle(place, (1.0, 2.0, k), 0.3 * k), label=f"body{k}")
        material = Material(restitution=0.3 * (k % 2), rolling_friction=1e-3, spinning_friction=1e-3)
        if k % 3:
            b.add_shape_box(body, half_extents=(0.05, 0.04, 0.06), material=material, mask=mask)
        else:
            b.add_shape_sphere(body, radius=0.05, material=material, mask=mask)
    return b


def crawler() -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    for k in range(5):
        body = b.add_body(xform=Transform((0.22 * k, 0.0, 0.05)), label=f"link{k}")
        b.add_shape_box(body, half_extents=(0.1, 0.06, 0.05 - 2e-4 * (k % 2)))
        if k:
            ends = Transform((0.11, 0.0, 0.0)), Transform((-0.11, 0.0, 0.0))
            b.add_joint_revolute(body - 1, body, *ends, axis=(0, 1, 0), friction=0.01, label=f"joint{k}")
    return b


def walker() -> ModelBuilder:
    """Two robots whose contacts Newton's method solves, island by island."""
    return walkers()


SCHEMES = ("second_order", "semi_implicit")
TOUCHING: dict[str, Callable[[], ModelBuilder]] = {
    "leg": leg, "crawler": crawler, "walker": walker, "robot": robot,
    "heap of 14": lambda: heap(14), "heap of 70": lambda: heap(70),
}  # fmt: skip
# Each scene with both solvers and both schemes, in two of the four combinations.
CASES = [
    (scene, solver, SCHEMES[(number + swapped) % 2])
    for number, scene in enumerate(sorted(list_scenes()))
    for swapped, solver in enumerate(("direct", "colored"))
]
UNLIKE = {"GPUSIM_REVERSED": "1", "GPUSIM_TEAM": "1"}
TEAMS: dict[str, tuple[dict[str, str], int]] = {"plain": ({}, 1), "reversed": (UNLIKE, 1), "team": (UNLIKE, 3)}


def start(model: Model, team: str, monkeypatch: pytest.MonkeyPatch, **config: object) -> Simulation:
    defines, threads = TEAMS[team]
    # A single world would else get a single thread.
    monkeypatch.setattr(native_backend.NativeBackend, "team", threads)
    options = SolverConfig(dt=1e-3, **config)  # type: ignore[arg-type]
    with monkeypatch.context() as own:
        if defines:
            add_defines(defines, own)
            optimize_less(own)
        return Simulation(model, backend="native", threads=threads, launch="fused", config=options)


def add_defines(defines: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = native_backend.model_variant

    def with_defines(*args: object) -> object:
        variant = plain(*args)  # type: ignore[arg-type]
        return dataclasses.replace(variant, defines=variant.defines | defines)

    monkeypatch.setattr(native_backend, "model_variant", with_defines)


def end(sim: Simulation) -> dict[str, bytes]:
    library = sim.backend._library  # type: ignore[union-attr]
    if hasattr(library, "team_report"):
        report = (ctypes.c_int * 4).in_dll(library, "team_report")
        size, count, first, other = report
        report[1] = 0
        assert size == sim.backend.threads  # type: ignore[union-attr]
        assert not count, f"threads of a block have met at different barriers, called in lines {first} and {other}"
    assert sim.health().all()
    return {name: array.tobytes() for name, array in sim.state.variables().items()}


def run(
    model: Model, team: str, monkeypatch: pytest.MonkeyPatch, steps: int, reaches: str = "", **config: object
) -> dict[str, bytes]:
    sim = start(model, team, monkeypatch, **config)
    driven = sim.runtime.drivers
    for command in sim.control:
        if command not in driven:
            sim.control[command] = 0.6
    for part in (steps // 2, steps - steps // 2):
        sim.backend._slab[:] = SPOILED  # type: ignore[union-attr]
        sim.step(part)
    if reaches:
        backend: Any = sim.backend
        assert backend.layout.view(backend._slab, reaches, 1)[0], f"{reaches} is 0: no part behind it has run"
    monkeypatch.undo()
    return end(sim)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:world:UserWarning")
@pytest.mark.parametrize(("scene", "solver", "scheme"), CASES)
def test_scenes(scene: str, solver: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_scene(scene).builder.finalize()
    ends = [run(model, team, monkeypatch, 8, joint_solver=solver, scheme=scheme) for team in TEAMS]
    assert ends[0] == ends[1], "the order of items matters"
    assert ends[0] == ends[2], "threads of a block step on each other"


def star(arms: int) -> Model:
    """A hub with many arms, so that few colors leave an overflow."""
    b = ModelBuilder()
    hub = b.add_body(mass=5.0, inertia=(1.0, 1.0, 1.0), label="hub")
    for k in range(arms):
        arm = b.add_body(mass=0.1, inertia=(0.01, 0.01, 0.01), xform=Transform((1.0, 0.1 * k, 0.0)), label=f"arm{k}")
        pins = Transform((0.5, 0.1 * k, 0.0)), Transform((-0.5, 0.0, 0.0))
        b.add_joint_revolute(
            hub, arm, *pins, axis=(0.0, 1.0, 0.0), label=f"pin{k}", friction=0.01 * k, limit_lower=-0.1, limit_upper=0.2
        )
    return b.finalize()


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", SCHEMES)
def test_overflow(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(UserWarning, match=naming("max_colors")):
        ends = [
            run(star(9), team, monkeypatch, 15, joint_solver="colored", max_colors=3, scheme=scheme) for team in TEAMS
        ]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.nightly
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize("build", TOUCHING.values(), ids=TOUCHING)
def test_contacts(build: Callable[[], ModelBuilder], solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build().finalize()
    options: dict[str, Any] = {"joint_solver": solver, "substeps": 2, "max_colors": 3}
    steps = 6 if build in (crawler, robot) else 25
    reaches = "condensed_fits" if solver == "direct" and build is walker else ""
    ends = [run(model, team, monkeypatch, steps, reaches, **options) for team in TEAMS]
    assert ends[0] == ends[1], "the order of items matters"
    assert ends[0] == ends[2], "threads of a block step on each other"


@pytest.mark.nightly
def test_a_flag_without_a_barrier_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    right = "RUN(1, end_contact_sweep(w, i));"
    wrong = "if (w.tid == 0) { usleep(200); end_contact_sweep(w, 0); }"
    plain = native_backend.model_variant

    def without_barrier(*args: object) -> object:
        variant = plain(*args)  # type: ignore[arg-type]
        order = variant.generated["order.cuh"]
        assert right in order
        return dataclasses.replace(variant, generated=variant.generated | {"order.cuh": order.replace(right, wrong)})

    monkeypatch.setattr(native_backend, "model_variant", without_barrier)
    monkeypatch.setattr(paths, "MAX_CONDENSED", 0)
    with pytest.raises(AssertionError, match="different barriers"):
        run(robot().finalize(), "team", monkeypatch, 8, joint_solver="direct")


@pytest.mark.nightly
def test_memory_of_another_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    free = start(heap(70, mask=0).finalize(), "team", monkeypatch, joint_solver="colored")
    piles = [start(heap(70).finalize(), team, monkeypatch, joint_solver="colored") for team in ("plain", "team")]
    for _ in range(2):
        free.step(2)
        slabs = [sim.backend._slab for sim in (piles[1], free)]  # type: ignore[union-attr]
        size = min(slab.size for slab in slabs)
        slabs[0][:size] = slabs[1][:size]
        for pile in piles:
            pile.step(2)
    assert len(piles[0].contacts()) > len(free.contacts())
    assert end(piles[0]) == end(piles[1])


@pytest.mark.nightly
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_sizes_as_constants(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    for specialize in (False, True):
        if specialize:  # test_specialization.py has such builds as users get them
            optimize_less(monkeypatch)
        model = load_scene("slider_crank").builder.finalize()
        config = SolverConfig(dt=1e-3, joint_solver=solver)
        sim = Simulation(model, 3, "native", config=config, specialize=specialize)
        sim.step(20)
        ends.append({name: array.tobytes() for name, array in sim.state.variables().items()})
    assert ends[0] == ends[1]
