from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from gpusim.backends import why_not
from gpusim.compiler.coloring import color_constraints
from gpusim.compiler.topology import ColorSets
from tests.message_snapshot import names, naming

from .helpers import bits, different

LEAVES = 200


def star(leaves: int = LEAVES, revolute: bool = False) -> ModelBuilder:
    b, rng = ModelBuilder(), np.random.default_rng(1)
    hub = b.add_body(mass=5.0, inertia=(0.5, 0.5, 0.5), label="hub")
    for k in range(leaves):
        out = rng.normal(size=3)
        out /= np.linalg.norm(out)
        turning = np.cross(out, rng.normal(size=3))
        leaf = b.add_body(
            mass=0.05, inertia=(5e-4,) * 3, xform=Transform(tuple(0.6 * out)), angular_velocity=tuple(turning),
            linear_velocity=tuple(np.cross(turning, 0.3 * out)),
        )  # fmt: skip
        frames = {"parent_xform": Transform(tuple(0.3 * out)), "child_xform": Transform(tuple(-0.3 * out))}
        if revolute and k % 2:
            b.add_joint_revolute(hub, leaf, axis=(0, 0, 1), damping=1e-3, label=f"joint{k}", **frames)
        else:
            b.add_joint_ball(hub, leaf, label=f"joint{k}", **frames)
    return b


def chain(links: int, closed: bool = False) -> ModelBuilder:
    b, length = ModelBuilder(), 0.1
    half = Transform((0.5 * length, 0.0, 0.0)), Transform((-0.5 * length, 0.0, 0.0))
    turn = 2.0 * np.pi / links
    radius = 0.5 * length / np.tan(0.5 * turn)
    for k in range(links):
        place = Transform((k * length, 0.0, 0.0))
        if closed:
            at = radius * np.array([np.sin(k * turn), -np.cos(k * turn), 0.0])
            place = Transform.from_rpy(tuple(at), (0.0, 0.0, k * turn))
        b.add_body(mass=0.1, inertia=(1e-4,) * 3, xform=place)
    if not closed:
        b.add_joint_ball(-1, 0, parent_xform=half[1], child_xform=half[1])
    for k in range(links if closed else links - 1):
        b.add_joint_ball(k, (k + 1) % links, parent_xform=half[0], child_xform=half[1])
    return b


def grid(n: int) -> ModelBuilder:
    """A net of n x n bodies, 0.1 m apart, with ball joints along x and rods along y."""
    b, a = ModelBuilder(), 0.1
    half = Transform((0.5 * a, 0.0, 0.0)), Transform((-0.5 * a, 0.0, 0.0))
    for k in range(n * n):
        x, y = divmod(k, n)
        b.add_body(
            mass=0.1, inertia=(1e-4,) * 3, xform=Transform((x * a, y * a, 0.0)), kinematic=k in (0, n - 1)
        )  # fmt: skip
    for k in range(n * n):
        x, y = divmod(k, n)
        if x + 1 < n:
            b.add_joint_ball(k, k + n, parent_xform=half[0], child_xform=half[1])
        if y + 1 < n:
            b.add_joint_distance(k, k + 1, min_distance=a, max_distance=a)
    return b


def colored(builder: ModelBuilder, num_worlds: int = 1, **config: Any) -> Simulation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {"dt": 1e-3, "iterations": 20, **config}
        # The tests look into the work arrays of the reference.
        solver = SolverConfig(joint_solver="colored", **settings)
        return Simulation(builder.finalize(), num_worlds, "numpy", config=solver)


def energy(sim: Simulation) -> float:
    """Kinetic and potential energy, J."""
    return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])


def residuals(sim: Simulation) -> np.ndarray:
    work = sim.backend.work
    work.record_changes, work.residual_history = True, []
    sim.step()
    work.record_changes = False
    return np.array([r[0] for r in work.residual_history])


def check_sets(sets: ColorSets, bodies: np.ndarray, dynamic: np.ndarray, max_colors: int) -> None:
    assert len(sets.colors) <= max_colors
    together = np.concatenate([*sets.colors, sets.overflow])
    assert np.array_equal(np.sort(together), np.arange(bodies.shape[0]))
    used: list[set[int]] = []
    for k, members in enumerate(sets.colors):
        assert members.size and np.all(np.diff(members) > 0) and np.all(sets.color_of[members] == k)
        moved = bodies[members][dynamic[bodies[members]]]
        assert np.unique(moved).size == moved.size
        used.append(set(moved.tolist()))
    assert np.all(np.diff(sets.overflow) > 0) and np.all(sets.color_of[sets.overflow] == -1)
    load = np.ones(dynamic.size, int)
    for body in np.flatnonzero(dynamic):
        load[body] = max(1, int(np.sum(bodies[sets.overflow] == body)))
    assert np.array_equal(sets.overflow_load, load)
    for c in sets.overflow:
        own = {int(x) for x in bodies[c] if dynamic[x]}
        assert len(sets.colors) == max_colors and all(own & color for color in used)


# Sets.


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(2, 30), constraints=st.integers(0, 120), slots=st.integers(2, 4), max_colors=st.integers(1, 62),
    still=st.floats(0.0, 0.6), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_sets_of_random_graphs(
    count: int, constraints: int, slots: int, max_colors: int, still: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    dynamic = np.append(rng.random(count) >= still, False)
    bodies = np.full((constraints, slots), count)
    for c in range(constraints):
        own = rng.choice(count, size=min(count, int(rng.integers(1, slots + 1))), replace=False)
        bodies[c, : own.size] = own
    sets = color_constraints(bodies, dynamic, max_colors)
    check_sets(sets, bodies, dynamic, max_colors)
    again = color_constraints(bodies, dynamic, max_colors)
    assert np.array_equal(again.color_of, sets.color_of)


def test_chain_ring_and_cached_sets() -> None:
    ring, open_chain = (chain(20, closed=c).finalize().topology for c in (True, False))
    assert len(ring.coloring_for(32).colors) <= 3 and not ring.coloring_for(32).overflow.size
    assert len(open_chain.coloring_for(32).colors) == 2
    assert ring.coloring_for(1).overflow.size >= 10
    assert ring.coloring_for(1) is ring.coloring_for(1) and ring.coloring_for(32) is not ring.coloring_for(1)


@pytest.mark.parametrize("value", [0, 63, -1, 2.5, True, "32"])
def test_max_colors_is_checked(value: Any) -> None:
    with pytest.raises(ModelError, match=naming("max_colors 62")):
        SolverConfig(max_colors=value)


@pytest.mark.nightly
def test_overflow_is_never_silent() -> None:
    model = star(70).finalize()
    for max_colors, count in ((32, 38), (62, 8)):
        with pytest.warns(UserWarning) as caught:
            Simulation(model, config=SolverConfig(joint_solver="colored", max_colors=max_colors))
        first = model.topology.constraint_labels[model.topology.coloring_for(max_colors).overflow[0]]
        text = str(caught[0].message)
        assert len(caught) == 1 and caught[0].filename == __file__
        assert names(text, f"{count} 70 '{first}' joint_solver")
        assert text.count("max_colors") == 1 + (max_colors < 62)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulation(model, config=SolverConfig(joint_solver="direct"))
        Simulation(star(30).finalize(), config=SolverConfig(joint_solver="colored"))


# The solve.


def test_one_sweep_by_hand() -> None:
    sim = colored(star(3), iterations=1, max_colors=1)
    sim.step()
    w = sim.backend.work
    t, sets = w.topology, w.topology.coloring_for(1)
    assert sets.overflow.size == 2 and sets.overflow_load[0] == 2
    velocity = w.twist_kicked[0].copy()
    jacobian, mass_jacobian = (
        a[0].reshape(t.num_constraints, t.slots, t.block, 6) for a in (w.jacobian, w.mass_jacobian)
    )
    bias = w.bias[0].reshape(-1, t.block)
    for members, load in ((sets.overflow, sets.overflow_load), (sets.colors[0], np.ones_like(sets.overflow_load))):
        change = np.zeros_like(velocity)
        for c in members:
            body = t.constraint_bodies[c]
            a = sum(load[b] * jacobian[c, s] @ mass_jacobian[c, s].T for s, b in enumerate(body))
            error = sum(jacobian[c, s] @ velocity[b] for s, b in enumerate(body)) + bias[c]
            impulse = -np.linalg.solve(a, error)
            for s, b in enumerate(body):
                change[b] += mass_jacobian[c, s].T @ impulse
        velocity = velocity + change
    np.testing.assert_allclose(w.twist[0], velocity, rtol=0.0, atol=1e-12)


@pytest.mark.nightly
def test_star_of_200_joints() -> None:
    sim = colored(star())
    sets = sim.model.topology.coloring_for(32)
    assert len(sets.colors) == 32 and sets.overflow.size == 168 and sets.overflow_load[0] == 168
    check_sets(sets, sim.model.topology.constraint_bodies, sim.model.topology.dynamic, 32)
    start = energy(sim)
    ends = []
    for _ in range(8):
        sim.step(25)
        ends.append(energy(sim))
    print("star: energy", start, ends)
    assert max(ends) - start < 1e-6 * sim.read("sim.kinetic_energy")[0]
    assert start - min(ends) < 1e-4 * sim.read("sim.kinetic_energy")[0]
    assert sim.read("sim.joint_drift")[0] < 1e-7
    history = residuals(sim)
    print("star: residual after each sweep", history)
    assert np.all(np.diff(history) < 0.0) and history[-1] < 1e-3 * history[0]


@pytest.mark.nightly
def test_more_colors_converge_faster() -> None:
    ends = {}
    for colors in (1, 32, 62, LEAVES):
        sim = colored(star(), iterations=10, max_colors=min(colors, 62))
        if colors > 62:
            alone = [np.array([k]) for k in range(colors)]
            load = np.ones(sim.model.topology.dynamic.size, int)
            sim.model.topology._colorings[62] = ColorSets(alone, np.arange(colors), np.array([], int), load)
        sim.step(2)
        ends[colors] = residuals(sim)[-1]
    print("star: residual after 10 sweeps by number of colors", ends)
    assert ends[LEAVES] <= ends[62] <= ends[32] <= ends[1]


@pytest.mark.nightly
def test_chain_of_one_color() -> None:
    sim = colored(chain(12), max_colors=1, dt=2e-3)
    assert sim.model.topology.coloring_for(1).overflow.size == 6
    start, most = energy(sim), -np.inf
    for _ in range(25):
        sim.step(20)
        most = max(most, energy(sim))
    assert np.all(sim.health()) and most < start + 0.01
    assert sim.read("sim.joint_drift")[0] < 5e-3


@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_same_bits_with_overflow(dtype: str, scheme: str) -> None:
    model = star(12, revolute=True).finalize()
    rates = np.random.default_rng(3).uniform(-3.0, 3.0, (8, 3)) * np.logspace(-3, 0, 8)[:, None]

    def run(worlds: np.ndarray) -> Simulation:
        options = {"scheme": scheme, "joint_solver": "colored", "impulse_tolerance": 1e-6}
        config = SolverConfig(dt=2e-3, iterations=12, max_colors=3, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sim = Simulation(model, worlds.size, dtype=dtype, config=config)
        sim.write("body.hub.angular_velocity", rates[worlds])
        sim.step(25)
        return sim

    together = run(np.arange(8))
    order = np.random.default_rng(5).permutation(8)
    permuted = run(order)
    for place, world in enumerate(order):
        assert different(bits(permuted, place), bits(together, int(world))) == []
    for world in (0, 7):
        assert different(bits(run(np.array([world])), 0), bits(together, world)) == []


def test_sweeps_and_last_change_are_counted() -> None:
    b = star(12)
    b.gravity[:] = 0.0
    for body in b.bodies:
        body.linear_velocity[:] = body.angular_velocity[:] = 0.0
    sim = colored(b, 2, iterations=50, impulse_tolerance=1e-9, max_colors=3)
    sim.write("body.hub.linear_velocity", (0.3, -0.2, 0.1), worlds=1)
    sim.step()
    w = sim.backend.work
    assert w.sweeps[0] == 1 and w.last_change[0] == 0.0
    assert 2 < w.sweeps[1] < 50 and 0.0 < w.last_change[1] <= 1e-9
    # Without the early stop all sweeps run.
    free = colored(b, 2, iterations=7, max_colors=3)
    free.write("body.hub.linear_velocity", (0.3, -0.2, 0.1), worlds=1)
    free.step()
    assert free.backend.work.sweeps[1] == 7


# Grids.


@pytest.mark.nightly
def test_grid_of_400_bodies_hangs() -> None:
    sim = colored(grid(20))
    start = energy(sim)
    history = residuals(sim)
    print("grid 20: residual after each sweep", history)
    assert np.all(np.diff(history) < 0.0) and history[-1] < 1e-2 * history[0]
    for _ in range(4):
        sim.step(20)
        assert energy(sim) < start + 1e-6
    assert sim.read("sim.joint_drift")[0] < 1e-3 and np.all(sim.health())


@pytest.mark.nightly
def test_grid_of_2500_bodies() -> None:
    began = time.perf_counter()
    builder = grid(50)
    built = time.perf_counter()
    model = builder.finalize()
    finalized = time.perf_counter()
    sets = model.topology.coloring_for(32)
    done = time.perf_counter()
    print(f"grid 50: build {built - began:.2f} s, finalize {finalized - built:.2f} s, color {done - finalized:.3f} s")
    assert model.topology.num_constraints == 4900
    assert len(sets.colors) <= 6 and not sets.overflow.size
    check_sets(sets, model.topology.constraint_bodies, model.topology.dynamic, len(sets.colors))
    sim = Simulation(model, backend="numpy", config=SolverConfig(dt=1e-3, iterations=10, joint_solver="colored"))
    history = residuals(sim)
    print("grid 50: residual after each sweep", history)
    assert np.all(np.diff(history) < 0.0) and history[-1] < 1e-2 * history[0]
    if why_not("native"):
        return
    # The kernels leave the same residual after as many sweeps, staged and fused.
    config = SolverConfig(dt=1e-3, iterations=10, joint_solver="colored")
    ends = []
    for launch in ("staged", "fused"):
        native = Simulation(model, backend="native", config=config, launch=launch, threads=1)
        native.step()
        assert native.read("sim.residual")[0] == pytest.approx(history[-1], rel=1e-6)
        ends.append(bits(native, 0))
    assert ends[0] == ends[1]
