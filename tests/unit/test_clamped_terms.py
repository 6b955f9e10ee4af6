from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig
from gpusim.actuators.servo import Servo
from gpusim.backends.native import backend as native_backend
from gpusim.description.actuator_kinds import _KINDS, MAX_CLAMPED, register
from gpusim.errors import ModelError
from gpusim.reference.joints import laws, modes
from gpusim.reference.solve import direct_solve
from gpusim.typing import Array
from tests.builds import optimize_less
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, slider, wheel

MASS = 2.0
both_solvers = pytest.mark.parametrize("solver", SOLVERS)
all_backends = pytest.mark.parametrize(
    "backend",
    ["numpy", pytest.param("native", marks=pytest.mark.native), pytest.param("cuda", marks=pytest.mark.gpu)],
)


def simulate(
    b: ModelBuilder, backend: str, num_worlds: int | None = None, launch: str = "auto", **config: Any
) -> Simulation:
    return Simulation(b.finalize(), num_worlds, backend, "float64", SolverConfig(**config), launch=launch)


def two_servos(soft: dict[str, float], stiff: dict[str, float]) -> ModelBuilder:
    """A mass on a slider with two servos with force limits."""
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(b, MASS)
    b.add_servo(joint, label="soft", **soft)
    b.add_servo(joint, label="stiff", **stiff)
    return b


@pytest.mark.nightly
@all_backends
@both_solvers
def test_one_saturates_and_the_other_holds_the_rest(solver: str, backend: str) -> None:
    """At rest, q = (F - 2)/k."""
    for label, limits in (("soft", (100.0, 2.0)), ("stiff", (2.0, 100.0))):
        gains = {"stiffness": 1e3, "damping": 90.0}, {"stiffness": 1e6, "damping": 100.0}
        if label == "stiff":
            gains = gains[1], gains[0]
        b = two_servos(*({**g, "effort_limit": s} for g, s in zip(gains, limits, strict=True)))
        b.add_force(0, (11.0, 0, 0))
        sim = simulate(b, backend, dt=1e-2, joint_solver=solver)
        sim.step(160)
        assert sim.read("joint.slide.position", numpy=True)[0] == pytest.approx(9.0 / 1e3, rel=1e-6)
        other = "stiff" if label == "soft" else "soft"
        assert sim.read(f"servo.{label}.force", numpy=True)[0] == pytest.approx(-9.0, rel=1e-6)
        assert sim.read(f"servo.{other}.force", numpy=True)[0] == pytest.approx(-2.0, rel=1e-9)
        assert sim.read("joint.slide.drive_force", numpy=True)[0] == pytest.approx(-11.0, rel=1e-6)


@all_backends
@both_solvers
def test_opposite_limits_leave_their_difference(solver: str, backend: str) -> None:
    """Closed form: x = 4 N t^2/(2 m)."""
    b = two_servos(
        {"stiffness": 1e5, "damping": 1e4, "target": 50.0, "effort_limit": 6.0},
        {"stiffness": 1e6, "damping": 10.0, "target": -50.0, "effort_limit": 2.0},
    )
    sim = simulate(b, backend, dt=5e-3, joint_solver=solver)
    sim.step(20)
    assert sim.read("joint.slide.position", numpy=True)[0] == pytest.approx(0.5 * 4.0 / MASS * 0.01, rel=1e-9)
    assert sim.read("servo.soft.force", numpy=True)[0] == pytest.approx(6.0, rel=1e-12)
    assert sim.read("servo.stiff.force", numpy=True)[0] == pytest.approx(-2.0, rel=1e-12)


@pytest.mark.nightly
@all_backends
@both_solvers
def test_one_inside_its_limit_swings_about_the_push_of_the_other(solver: str, backend: str) -> None:
    """Closed form: x = (S/k)(1 - cos w t) with w^2 = k/m."""
    k, push, time = 800.0, 5.0, 0.15
    b = two_servos({"stiffness": k, "effort_limit": 50.0}, {"stiffness": 1e7, "target": 9.0, "effort_limit": push})
    sim = simulate(b, backend, dt=1e-3, joint_solver=solver)
    sim.step(round(time / 1e-3))
    wanted = push / k * (1.0 - np.cos(np.sqrt(k / MASS) * time))
    assert sim.read("joint.slide.position", numpy=True)[0] == pytest.approx(wanted, rel=1e-3)
    assert sim.read("servo.soft.force", numpy=True)[0] == pytest.approx(-k * wanted, rel=1e-3)


@pytest.fixture
def second_kind() -> Iterator[type[Servo]]:
    class SecondServo(Servo):
        name: ClassVar[str] = "second_servo"

    register(SecondServo)
    yield SecondServo
    _KINDS.forget("second_servo")


@pytest.mark.parametrize("together", [False, True])
@both_solvers
def test_two_kinds_with_limits_act_each_on_its_own(solver: str, together: bool, second_kind: type[Servo]) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints = [wheel(b, label=f"w{k}", y=float(k)) for k in range(2)]
    for k in range(2):
        b.add_servo(
            joints[0 if together else k], stiffness=1e4, damping=10.0, effort_limit=3.0, target=90.0, label=f"s{k}"
        )
    b.actuators[1].kind = "second_servo"
    sim = simulate(b, "numpy", dt=1e-2, joint_solver=solver)
    sim.step(20)
    wanted = 0.5 * 3.0 / 0.1 * 0.2**2
    ends = [sim.read(f"joint.w{k}.position")[0] for k in range(2)]
    assert ends == pytest.approx([2.0 * wanted, 0.0] if together else [wanted, wanted], rel=1e-9)
    assert [sim.read(f"servo.s{k}.force")[0] for k in range(2)] == pytest.approx([3.0, 3.0], rel=1e-12)


def test_a_kind_that_does_not_declare_its_limit_is_refused(
    second_kind: type[Servo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_kind, "clamped", False)
    b = ModelBuilder()
    b.add_servo(wheel(b), stiffness=10.0, effort_limit=1.0)
    b.actuators[0].kind = "second_servo"
    sim = simulate(b, "numpy")
    with pytest.raises(ModelError, match=naming("'second_servo' clamped True")):
        sim.step(1)


@all_backends
@both_solvers
def test_as_many_terms_as_a_mode_has_bits_for(solver: str, backend: str) -> None:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joint = slider(b, MASS)
    forces = [(k + 1.0) * (-1) ** k for k in range(MAX_CLAMPED)]
    for k, force in enumerate(forces):
        b.add_servo(joint, stiffness=1e5, target=50.0 * np.sign(force), effort_limit=abs(force), label=f"s{k}")
    sim = simulate(b, backend, dt=5e-3, joint_solver=solver)
    sim.step(20)
    assert [sim.read(f"servo.s{k}.force", numpy=True)[0] for k in range(MAX_CLAMPED)] == pytest.approx(forces)
    assert sim.read("joint.slide.position", numpy=True)[0] == pytest.approx(0.5 * sum(forces) / MASS * 0.01, rel=1e-9)
    b.add_servo(joint, stiffness=1.0, effort_limit=1.0, label="last")
    with pytest.raises(ModelError, match=naming("servo 'last' 15")):
        b.finalize()


class Law(laws.AxisLaw):
    def __init__(self, rng: np.random.Generator, worlds: int, count: int) -> None:
        def some(low: float, high: float, share: float = 1.0) -> Array:
            values = 10.0 ** rng.uniform(low, high, (worlds, 1))
            return np.asarray(np.where(rng.random((worlds, 1)) < share, values, 0.0))

        def signed(low: float, high: float, share: float = 1.0) -> Array:
            return some(low, high, share) * rng.choice([-1.0, 1.0], (worlds, 1))

        self.impulse, self.slope = signed(-3, 3, 0.5), some(-3, 3, 0.5)
        self.friction = some(-2, 2, 0.4)
        self.velocity_lower = np.where(rng.random((worlds, 1)) < 0.6, -np.inf, -some(-2, 2))
        above = np.where(np.isinf(self.velocity_lower), 0.0, self.velocity_lower)
        self.velocity_upper = np.where(rng.random((worlds, 1)) < 0.6, np.inf, above + some(-2, 2))
        self.clamped_terms = [
            laws.ClampedTerm(signed(-2, 4, 0.9), some(-3, 4, 0.8), some(-2, 3, 0.8)) for _ in range(count)
        ]
        self.clamped, self.rubs, self.limited, self.switches = {}, True, True, True

    def given(self, u: Array) -> Array:
        total = self.impulse - self.slope * u - self.friction * np.sign(u)
        for t in self.clamped_terms:
            total = total + np.clip(t.impulse - t.slope * u, -t.bound, t.bound)
        return np.asarray(total)


def root(law: Law, free: Array, response: Array) -> Array:
    low, high = np.maximum(law.velocity_lower, -1e9), np.minimum(law.velocity_upper, 1e9)
    for _ in range(200):
        middle = 0.5 * (low + high)
        slow = free + response * law.given(middle) > middle
        low, high = np.where(slow, middle, low), np.where(slow, high, middle)
    return np.asarray(0.5 * (low + high))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 9])
def test_a_row_alone_against_bisection(count: int) -> None:
    rng = np.random.default_rng(count)
    worlds = 4000
    law = Law(rng, worlds, count)
    free, response = rng.normal(size=(worlds, 1)) * 10.0, 10.0 ** rng.uniform(-2, 1, (worlds, 1))
    velocity, mode = laws.solve_row(law, free, response)
    size = 1.0 + np.abs(free) + response * (np.abs(law.impulse) + sum(np.abs(t.bound) for t in law.clamped_terms))
    assert np.max(np.abs(velocity - root(law, free, response)) / size) < 1e-11
    impulse, slope = law.total(mode)
    loose = (mode & laws.CONTACT_BITS) < laws.STICK
    missed = np.where(loose, free + response * (impulse - slope * velocity) - velocity, 0.0)
    assert np.max(np.abs(missed) / (size * (1.0 + response * slope))) < 1e-11
    if count > 1:
        both = [(mode & (bits << 2 * 1)) > 0 for bits in (laws.CLAMP_UP, laws.CLAMP_DOWN)]
        assert all(b.mean() > 0.1 for b in both)


def train(masses: int, servos: int) -> ModelBuilder:
    b = ModelBuilder(gravity=NO_GRAVITY)
    rng = np.random.default_rng(5)
    for k in range(masses):
        body = b.add_body(mass=1.0 + k, inertia=(0.1, 0.1, 0.1))
        limits = {"limit_lower": -0.02, "limit_upper": 0.03} if k % 2 else {}
        joint = b.add_joint_prismatic(k - 1, body, axis=(1, 0, 0), friction=2.0 * (k % 3), label=f"j{k}", **limits)
        for n in range(servos):
            gain, target = 10.0 ** rng.uniform(1, 7), rng.uniform(-0.05, 0.05)
            limit = 10.0 ** rng.uniform(0, 2)
            b.add_servo(joint, "position", gain, gain * 1e-3, limit, target, label=f"s{k}_{n}")
    return b


def excited(sim: Simulation, masses: int, servos: int) -> Simulation:
    rng = np.random.default_rng(11)
    for k in range(masses):
        sim.write(f"joint.j{k}.velocity", rng.normal(size=sim.num_worlds) * 2.0)
        for n in range(servos):
            for name in ("effort_limit", "stiffness"):
                value = sim.read(f"servo.s{k}_{n}.{name}", numpy=True)[0]
                sim.write(f"servo.s{k}_{n}.{name}", value * 10.0 ** rng.uniform(-1, 1, sim.num_worlds))
    return sim


@pytest.mark.parametrize("careful_after", [0, direct_solve.CAREFUL_AFTER])
@pytest.mark.parametrize("servos", [2, 4])
def test_the_law_holds_on_every_axis_of_a_train(
    servos: int, careful_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_solve, "CAREFUL_AFTER", careful_after)
    masses, worlds = 3, 16
    sim = excited(simulate(train(masses, servos), "numpy", worlds, dt=5e-3, iterations=40), masses, servos)
    w, met = sim.backend.work, set()
    for _ in range(8):
        sim.step(1)
        law, u = w.law, w.rate_next
        impulse = w.solved.reshape(worlds, -1)[:, w.topology.axis_row]
        given = law.impulse - law.slope * u
        for number, t in enumerate(law.clamped_terms):
            given = given + np.clip(t.impulse - t.slope * u, -t.bound, t.bound)
            met |= set(laws.clamp_of(w.mode, number).ravel().tolist())
        rest, size = impulse - given, 1e-8 * (1.0 + np.abs(impulse) + sum(np.abs(t.slope) for t in law.clamped_terms))
        # A limit pushes back in addition to friction; sliding takes all of the friction, sticking what it needs.
        at_upper, at_lower = u > law.velocity_upper - 1e-7, u < law.velocity_lower + 1e-7
        rubbed = np.where(np.abs(u) > 1e-7, np.abs(rest + law.friction * np.sign(u)), np.abs(rest) - law.friction)
        assert np.all((rubbed < size) | at_upper | at_lower)
        assert np.all(~at_upper | (rest < law.friction + size))
        assert np.all(~at_lower | (rest > -law.friction - size))
        assert not w.unconverged.any()
    assert met == {0, laws.CLAMP_UP, laws.CLAMP_DOWN}


def test_the_first_move_is_the_piece_then_the_least_term() -> None:
    at = laws.AT_LOWER + (laws.CLAMP_UP << 2)
    wanted = laws.FREE + laws.CLAMP_DOWN + (laws.CLAMP_DOWN << 4)
    moves = []
    while at != wanted:
        at = modes.first_move(at, wanted)
        moves.append(at)
    up = laws.CLAMP_UP << 2
    assert moves == [up, up + laws.CLAMP_DOWN, laws.CLAMP_DOWN, laws.CLAMP_DOWN + (laws.CLAMP_DOWN << 4)]


def switches(sim: Simulation, masses: int, servos: int) -> list[Array]:
    rng, count = np.random.default_rng(3), []
    for _ in range(6):
        for label in (f"s{k}_{n}" for k in range(masses) for n in range(servos)):
            sim.control[label] = rng.normal(size=sim.num_worlds)
        sim.step(1)
        numpy = sim.backend.name == "numpy"
        now = sim.backend.work.direct.passes.switches if numpy else sim.backend.slab_array("switches")
        count.append(np.ravel(now).copy())
    return count


@pytest.mark.nightly
@pytest.mark.native
def test_careful_worlds_make_one_move_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_solve, "CAREFUL_AFTER", 0)
    plain = native_backend.model_variant

    def careful(*args: Any) -> Any:
        variant = plain(*args)
        world = variant.generated["world.cuh"].replace("#define CAREFUL_AFTER 4\n", "#define CAREFUL_AFTER 0\n")
        return dataclasses.replace(variant, generated=variant.generated | {"world.cuh": world})

    monkeypatch.setattr(native_backend, "model_variant", careful)
    optimize_less(monkeypatch)  # no other test uses this build
    masses, servos = 1, 4
    sims = [
        excited(simulate(train(masses, servos), backend, 32, launch, dt=5e-3, iterations=40), masses, servos)
        for backend, launch in (("numpy", "auto"), ("native", "staged"))
    ]
    once, kernels = (switches(sim, masses, servos) for sim in sims)
    assert np.array_equal(once, kernels)
    monkeypatch.setattr(direct_solve, "first_move", lambda mode, wanted: wanted)
    together = switches(excited(sims[0], masses, servos), masses, servos)
    assert np.sum(once) > 1.2 * np.sum(together) > 0


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("launch", ["fused", "staged"])
@both_solvers
def test_native_goes_with_numpy(solver: str, launch: str) -> None:
    masses, servos, worlds = 3, 4, 16
    sims = []
    for backend in ("numpy", "native"):
        sim = simulate(train(masses, servos), backend, worlds, launch if backend == "native" else "auto", dt=5e-3,
                       joint_solver=solver, iterations=30)  # fmt: skip
        sims.append(excited(sim, masses, servos))
    for _ in range(3):
        for sim in sims:
            sim.step(2)
        for k in range(masses):
            for name, size in (("position", 1e-3), ("velocity", 1.0), ("drive_force", 100.0)):
                a, b = (sim.read(f"joint.j{k}.{name}", numpy=True) for sim in sims)
                assert np.max(np.abs(a - b)) < 1e-9 * size, name
            # What drive_force sums: means over the tried kick, while a servo's own signal is its law at t.
            shares, labels = sims[1].runtime.forward().term_forces["servo"], sims[1].model.groups[0].labels
            forces = [shares[:, labels.index(f"s{k}_{n}")] for n in range(servos)]
            for n, force in enumerate(forces):
                assert np.all(np.abs(force) <= sims[1].read(f"servo.s{k}_{n}.effort_limit", numpy=True) * (1 + 1e-12))
            assert np.allclose(sum(forces), b, rtol=1e-12)
