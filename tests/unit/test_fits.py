"""Fits of parameters and linearization, against closed forms."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import gpusim
from gpusim.errors import ModelError, UnknownNameError
from gpusim.recording.recorder import Recorder
from gpusim.recording.samples import Recording
from tests.message_snapshot import naming

MASS, STIFFNESS, DAMPING, DT = 2.0, 80.0, 3.0, 1e-3


def slider(worlds: int = 1, backend: str = "numpy", springs: tuple[str, ...] = ("spring",)) -> gpusim.Simulation:
    """A mass on parallel springs with a damper, which a force drives along x."""
    b = gpusim.ModelBuilder()
    box = b.add_body(mass=MASS, inertia=(0.1, 0.1, 0.1), label="box")
    slide = b.add_joint_prismatic(-1, box, axis=(1, 0, 0), label="slide", damping=DAMPING)
    for label in springs:
        b.add_torsion_spring(slide, STIFFNESS / len(springs), rest_angle=0.0, label=label)
    b.add_joint_force(slide, label="force")
    return gpusim.Simulation(b.finalize(), worlds, backend, config=gpusim.SolverConfig(dt=DT))


@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
@pytest.mark.parametrize("steps", [1, 40])
def test_linearization_is_the_closed_form(backend: str, steps: int) -> None:
    """Linear oscillator: x' = exp(Ac t) x + Ac^-1 (exp(Ac t) - 1) Bc u."""
    sim = slider(3, backend)
    sim.write("joint.slide.position", [0.0, 0.1, -0.3])
    sim.control["force"] = 4.0
    sim.step(5)
    before = sim.read("joint.slide.position").copy()
    found = sim.linearize(steps=steps, world=2)
    continuous = np.array([[0.0, 1.0], [-STIFFNESS / MASS, -DAMPING / MASS]])
    a = expm(continuous * steps * DT)
    b = np.linalg.solve(continuous, (a - np.eye(2)) @ [[0.0], [1.0 / MASS]])
    assert found.states == ["joint.slide.position", "joint.slide.velocity"] and found.commands == ["force"]
    np.testing.assert_allclose(found.a, a, rtol=1e-3, atol=2e-6)
    np.testing.assert_allclose(found.b, b, rtol=2e-3, atol=3e-7)
    assert found.dt == steps * DT and found.command.tolist() == [4.0]
    np.testing.assert_array_equal(sim.read("joint.slide.position"), before)
    sim.step(steps)
    assert found.next_state[0] == pytest.approx(sim.read("joint.slide.position")[2], abs=1e-6)


def test_derivatives_do_not_depend_on_the_change() -> None:
    b = gpusim.ModelBuilder()
    rod = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.0, 0.0, -1.0), label="rod")
    b.add_joint_revolute(-1, rod, axis=(0, 1, 0), label="rod")
    sim = gpusim.Simulation(b.finalize(), 1, "numpy", config=gpusim.SolverConfig(dt=2e-3))
    sim.write("joint.rod.position", 0.7)
    first, *others = (sim.linearize(commands=(), steps=50, step=step).a for step in (1e-4, 1e-3, 1e-5))
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5, atol=1e-7)
    assert sim.linearize(commands=()).b.shape == (2, 0)


def test_a_kink_is_reported() -> None:
    b = gpusim.ModelBuilder()
    box = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), label="box")
    b.add_joint_prismatic(-1, box, axis=(1, 0, 0), limit_lower=0.0, limit_upper=1.0, label="slide")
    sim = gpusim.Simulation(b.finalize(), 1, "numpy", config=gpusim.SolverConfig(dt=DT))
    with pytest.warns(UserWarning, match="kink at 'joint.slide"):
        sim.linearize(commands=())
    sim.write("joint.slide.position", 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.linearize(commands=())


def test_a_command_at_its_limit_has_the_slope_inside() -> None:
    b = gpusim.ModelBuilder()
    box = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), label="box")
    slide = b.add_joint_prismatic(-1, box, axis=(1, 0, 0), label="slide")
    b.add_joint_force(slide, label="force")
    b.set_command_map("force", lower=-1.0, upper=1.0)
    sim = gpusim.Simulation(b.finalize(), 1, "numpy", config=gpusim.SolverConfig(dt=DT))
    sim.control["force"] = 1.0
    at_limit = sim.linearize().b
    sim.control["force"] = 0.5
    np.testing.assert_allclose(at_limit, sim.linearize().b, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"states": "joint.slid.position"}, UnknownNameError, "joint.slide.position"),
        ({"states": "sim.kinetic_energy"}, ModelError, "sim.kinetic_energy"),
        ({"states": "body.box.orientation"}, ModelError, "body.box.orientation"),
        ({"commands": "forse"}, UnknownNameError, "force"),
        ({"steps": 0}, ModelError, "steps 0"),
        ({"step": -1.0}, ModelError, "step"),
        ({"step": 1e-300}, ModelError, "step 1e-300 float64"),
        ({"step": 1e308}, ModelError, "failed smaller step"),
        ({"world": 4}, ModelError, "4"),
    ],
)
def test_bad_linearizations_are_named(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=naming(words)):
        slider().linearize(**given)


def test_joints_without_a_pose_are_no_states() -> None:
    """A rod between two bodies has a signal of its length, which is read-only."""
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    ends = [b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), xform=gpusim.Transform((k, 0, 0))) for k in range(2)]
    b.add_joint_prismatic(-1, ends[0], axis=(1, 0, 0), label="slide")
    alone = gpusim.Simulation(b.finalize(), backend="numpy").linearize().states
    b.add_joint_distance(*ends, label="rod")
    assert gpusim.Simulation(b.finalize(), backend="numpy").linearize().states == alone
    b = gpusim.ModelBuilder()
    b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1))
    with pytest.raises(ModelError, match=naming("no joints states")):
        gpusim.Simulation(b.finalize(), backend="numpy").linearize()


# Fits.

TRUTH = {"body.box.mass": 2.6, "spring.spring.stiffness": 95.0, "joint.slide.damping": 4.5}
BOUNDS = {name: (0.3 * value, 3.0 * value) for name, value in TRUTH.items()}
NOISE, FIT_DT, SAMPLE = 1e-4, 5e-3, 1e-2


def measured(noise: float = NOISE, samples: int = 150, seed: int = 1) -> tuple[Recording, np.ndarray]:
    mass, stiffness, damping = TRUTH.values()
    draws = np.random.default_rng(seed)
    force = np.repeat(draws.uniform(-20.0, 20.0, samples // 20 + 1), 20)[:samples]
    continuous = np.array([[0.0, 1.0, 0.0], [-stiffness / mass, -damping / mass, 1.0 / mass], [0.0, 0.0, 0.0]])
    move, state, found = expm(continuous * SAMPLE), np.zeros(3), []
    for value in force:
        found.append(state[0])
        state[2] = value
        state = move @ state
    position = np.array(found) + draws.normal(0.0, noise, samples)
    return Recording(SAMPLE * np.arange(samples), {"joint.slide.position": position[:, None]}), force


def fitted(**options: Any) -> Any:
    trace, force = measured()
    given: dict[str, Any] = {"commands": {"force": force}, "scale": {"joint.slide.position": NOISE}}
    given |= {"config": gpusim.SolverConfig(dt=FIT_DT), "backend": "native"} | options
    return gpusim.fit(slider().model, trace, BOUNDS, **given)


@pytest.mark.native
def test_a_fit_finds_the_parameters_of_the_closed_form() -> None:
    found = fitted()
    for name, value in TRUTH.items():
        assert abs(found.values[name] - value) < 4.0 * found.sigma[name] + 1e-3 * value
        assert found.sigma[name] < 0.02 * value
    assert found.residual["joint.slide.position"] == pytest.approx(NOISE, rel=0.2)
    assert found.covariance.shape == (3, 3) and found.evaluations < 30


@pytest.mark.native
@pytest.mark.nightly
def test_the_covariance_is_that_of_many_traces() -> None:
    values, sigma = list[float](), 0.0
    for seed in range(12):
        trace, force = measured(seed=1)
        noise = np.random.default_rng(100 + seed).normal(0.0, NOISE, len(trace))
        clean, _ = measured(noise=0.0, seed=1)
        trace = Recording(clean.time, {"joint.slide.position": clean["joint.slide.position"] + noise[:, None]})
        found = gpusim.fit(
            slider().model, trace, {"body.box.mass": BOUNDS["body.box.mass"]}, commands={"force": force},
            scale={"joint.slide.position": NOISE}, config=gpusim.SolverConfig(dt=FIT_DT), backend="native",
        )  # fmt: skip
        values.append(found.values["body.box.mass"])
        sigma = found.sigma["body.box.mass"]
    assert 0.5 < np.std(values) / sigma < 2.0


@pytest.mark.native
def test_without_a_scale_the_covariance_follows_the_residual() -> None:
    known, unknown = fitted(), fitted(scale=None)
    for name in TRUTH:
        assert unknown.values[name] == pytest.approx(known.values[name], rel=1e-3)
        assert unknown.sigma[name] == pytest.approx(known.sigma[name], rel=0.25)


@pytest.mark.native
def test_a_parameter_without_effect_has_infinite_variance() -> None:
    trace, force = measured(samples=30)
    bounds = {"body.box.mass": (1.0, 5.0), "joint.slide.limit_upper": (10.0, 20.0)}
    b_model = slider().model
    found = gpusim.fit(
        b_model, trace, bounds, commands={"force": force}, config=gpusim.SolverConfig(dt=FIT_DT), backend="native"
    )
    assert np.isinf(found.sigma["joint.slide.limit_upper"]) and np.isfinite(found.sigma["body.box.mass"])


def test_the_signals_of_a_trace_may_be_a_wildcard() -> None:
    trace, force = measured(samples=20)
    given: dict[str, Any] = {"commands": {"force": force}, "config": gpusim.SolverConfig(dt=FIT_DT), "backend": "numpy"}
    found = gpusim.fit(slider().model, trace, {"body.box.mass": (1.0, 5.0)}, signals="joint.*", **given)
    assert list(found.residual) == list(trace.signals)


@pytest.mark.native
def test_an_effect_of_round_off_gives_infinite_variance() -> None:
    """The mass of a frame on a vertical hinge changes a pendulum on it only by rounding."""
    b = gpusim.ModelBuilder()
    frame = b.add_body(mass=80.0, inertia=(5.0, 5.0, 5.0), com=(0.3, 0.2, 0.1), label="frame")
    b.add_joint_revolute(-1, frame, axis=(0, 0, 1), label="frame")
    rod = b.add_body(mass=2.0, inertia=(0.1, 0.3, 0.3), com=(0.5, 0, 0), label="rod")
    b.add_joint_revolute(frame, rod, axis=(0, 1, 0), damping=0.4, label="rod")
    sim = gpusim.Simulation(b.finalize(), backend="native", config=gpusim.SolverConfig(dt=FIT_DT))
    recorder = Recorder(sim, ["joint.rod.position"])
    for _ in range(60):
        recorder.sample()
        sim.step()
    bounds = {"body.rod.mass": (1.0, 5.0), "body.frame.mass": (50.0, 90.0)}
    found = gpusim.fit(sim.model, recorder.recording(), bounds, config=sim.config, backend="native")
    assert found.values["body.rod.mass"] == pytest.approx(2.0, rel=1e-6)
    assert np.isinf(found.sigma["body.frame.mass"]) and found.sigma["body.rod.mass"] < 1e-3


@pytest.mark.native
def test_parameters_that_act_alike_have_infinite_variance() -> None:
    """A trace shows the sum of two parallel springs, not each of them."""
    trace, force = measured(samples=60)
    bounds = {"body.box.mass": (1.0, 5.0), "spring.a.stiffness": (20.0, 80.0), "spring.b.stiffness": (20.0, 90.0)}
    config, model = gpusim.SolverConfig(dt=FIT_DT), slider(springs=("a", "b")).model
    found = gpusim.fit(model, trace, bounds, commands={"force": force}, config=config, backend="native")
    assert np.isinf(found.covariance[1:]).all() and np.isfinite(found.sigma["body.box.mass"])


@pytest.mark.native
def test_a_fit_reaches_its_bounds() -> None:
    """The best damping is 0. A difference with a negative damping is refused."""
    sim = slider(backend="native")
    sim.write("joint.slide.damping", 0.0)
    sim.control["force"] = 10.0
    recorder = Recorder(sim, ["joint.slide.position"])
    for _ in range(200):
        recorder.sample()
        sim.step()
    force = {"force": np.full(200, 10.0)}
    bounds = {"joint.slide.damping": (0.0, 5.0)}
    found = gpusim.fit(sim.model, recorder.recording(), bounds, commands=force, config=sim.config, backend="native")
    assert found.values["joint.slide.damping"] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"commands": {"forse": [0.0]}}, UnknownNameError, "force"),
        ({"commands": {"force": [0.0]}}, ModelError, "'force' 150"),
        ({"scale": {}}, ModelError, "joint.slide.position"),
        ({"signals": []}, ModelError, "signals []"),
        ({"signals": 3}, ModelError, "signals 3"),
        ({"signals": ["joint.slide.velocity"]}, UnknownNameError, "joint.slide.velocity"),
        ({"config": gpusim.SolverConfig(dt=3e-3)}, ModelError, "dt"),
        ({"scale": 0.1}, ModelError, "scale 0.1"),
        ({"scale": {"joint.slide.position": "wide"}}, ModelError, "'joint.slide.position' 'wide'"),
        ({"scale": {"joint.slide.position": -1.0}}, ModelError, "'joint.slide.position' -1"),
        ({"commands": "force"}, ModelError, "commands 'force'"),
        ({"commands": {"force": "strong"}}, ModelError, "'force'"),
        ({"commands": {"force": lambda t: float("nan")}}, ModelError, "'force' finite"),
        ({"start": np.ones(3)}, ModelError, "start"),
        ({"start": {"body.box.mas": 1.0}}, UnknownNameError, "'body.box.mas' 'body.box.mass'"),
        ({"start": {"body.box.mass": "1 kg"}}, ModelError, "'body.box.mass' '1 kg'"),
    ],
)
def test_bad_fits_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=naming(words)):
        fitted(**options, backend="numpy")


def test_what_is_no_trace_is_named() -> None:
    trace, _ = measured(samples=5)
    gap = Recording(trace.time, {"joint.slide.position": np.full((5, 1), np.nan)})
    for given, words in (("run.npz", "trace 'run.npz'"), (gap, "trace finite")):
        with pytest.raises(ModelError, match=naming(words)):
            gpusim.fit(slider().model, given, BOUNDS, backend="numpy")  # type: ignore[arg-type]
    assert repr(trace) == "<Recording: 5 samples from 0 to 0.04 s of joint.slide.position>"


@pytest.mark.parametrize("bounds", [(2.0, 1.0), 3.0, (0.0, float("inf"))])
def test_bad_bounds_are_named(bounds: Any) -> None:
    trace, _ = measured()
    with pytest.raises(ModelError, match=naming("'body.box.mass'")):
        gpusim.fit(slider().model, trace, {"body.box.mass": bounds}, backend="numpy")
    with pytest.raises(UnknownNameError, match=naming("body.box.mass")):
        gpusim.fit(slider().model, trace, {"body.box.mas": (1.0, 2.0)}, backend="numpy")
