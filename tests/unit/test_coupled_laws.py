from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from scipy.linalg import expm

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.description.actuator_kinds import _KINDS, BEFORE_LAST, LAST, NEXT, ActuatorType, Group, Parameter, register
from gpusim.description.references import JOINT
from tests.backends import FASTEST
from tests.message_snapshot import naming

from .helpers import NO_GRAVITY, SOLVERS, bits, different, history, slider

MASSES = (1.0, 2.0, 0.5)
K = np.array([[400.0, -150.0, 80.0], [-150.0, 300.0, -60.0], [80.0, -60.0, 200.0]])
C = np.array([[3.0, -1.0, 0.5], [-1.0, 4.0, 0.0], [0.5, 0.0, 2.0]])
ENTRIES = [(i, j) for i in range(3) for j in range(i, 3)]
SOURCE = """
GPUSIM_FN void web_evaluate_coupled(const World& w, int k, const CoupledLaw& law) {
    const double stiffness[9] = {w.web_k00(k), w.web_k01(k), w.web_k02(k), w.web_k01(k), w.web_k11(k), w.web_k12(k),
                                 w.web_k02(k), w.web_k12(k), w.web_k22(k)};
    const double damping[9] = {w.web_c00(k), w.web_c01(k), w.web_c02(k), w.web_c01(k), w.web_c11(k), w.web_c12(k),
                               w.web_c02(k), w.web_c12(k), w.web_c22(k)};
    for (int r = 0; r < law.count; ++r) {
        law.impulse[r] = 0.0;
        for (int c = 0; c < law.count; ++c) {
            double impulse, slope;
            const int axis = law.axis[c], entry = 3 * r + c;
            spring_law(w, axis, stiffness[entry], damping[entry], w.axis_position()[axis], &impulse, &slope);
            law.impulse[r] += impulse;
            law.slope[r * law.width + c] = slope;
        }
    }
}
"""


class Web(ActuatorType):
    """F = -K q - C q' over three joints."""

    name: ClassVar[str] = "web"
    prefix: ClassVar[str] = "web"
    coupled: ClassVar[bool] = True
    references: ClassVar = {"joints": JOINT}
    kernel: ClassVar[tuple[str, ...]] = ("evaluate_coupled",)
    kernel_source: ClassVar[str] = SOURCE
    parameters: ClassVar[tuple[Parameter, ...]] = tuple(
        Parameter(f"{letter}{i}{j}", "SI", "entry") for letter in "kc" for i, j in ENTRIES
    )

    def axes(self, spec, maker):  # noqa: ANN001, ANN201
        return [maker.joint_axis(joint, 0) for joint in spec.params["joints"]]

    def evaluate(self, group: Group, work, velocity) -> None:  # noqa: ANN001
        if velocity is not None:
            return
        p = group.params
        for k, axes in enumerate(group.axes):
            stiffness, damping = (
                np.array([[p[f"{x}{min(i, j)}{max(i, j)}"][0, k] for j in range(3)] for i in range(3)]) for x in "kc"
            )
            now, before = work.rate[:, axes], work.rate_old[:, axes]
            kick, semi = work.kick_time[:, :, None], work.scheme == "semi_implicit"
            spring = (work.axis_position[:, axes] - (0.0 if semi else 0.25 * work.h_prev * now)) @ stiffness
            damper = (0.0 * now if semi else LAST * now + BEFORE_LAST * before) @ damping
            slope = damping + kick * stiffness if semi else 0.25 * work.h * stiffness + NEXT * damping
            work.add_coupled_law(group, k, -work.kick_time * (spring + damper), kick * slope)


@pytest.fixture(scope="module", autouse=True)
def kind() -> Iterator[None]:
    register(Web)
    yield
    _KINDS.forget("web")


def build(webs: int = 1) -> ModelBuilder:
    b = ModelBuilder(gravity=NO_GRAVITY)
    joints = [slider(b, mass, f"s{n}", float(n)) for n, mass in enumerate(MASSES)]
    share = 1.0 / webs
    params = {f"k{i}{j}": share * K[i, j] for i, j in ENTRIES} | {f"c{i}{j}": share * C[i, j] for i, j in ENTRIES}
    for n in range(webs):
        b.add_actuator("web", f"web{n}", {"joints": list(joints), **params})
    return b


def exact(start: np.ndarray, time: float) -> np.ndarray:
    inverse = np.diag(1.0 / np.array(MASSES))
    rates = np.block([[np.zeros((3, 3)), np.eye(3)], [-inverse @ K, -inverse @ C]])
    return (expm(rates * time) @ np.concatenate([start, np.zeros(3)]))[:3]


def run(
    webs: int,
    solver: str,
    dt: float,
    backend: str = FASTEST,
    num_worlds: int = 1,
    launch: str = "fused",
    **config: object,
) -> Simulation:
    config_ = SolverConfig(dt=dt, joint_solver=solver, iterations=40, **config)  # type: ignore[arg-type]
    launch = launch if backend == "native" else "auto"
    sim = Simulation(build(webs).finalize(), num_worlds, backend, config=config_, launch=launch)
    for n, x in enumerate((0.02, -0.01, 0.015)):
        sim.write(f"joint.s{n}.position", x)
    return sim


@pytest.mark.nightly
@pytest.mark.parametrize("webs", [1, 2])
@pytest.mark.parametrize("solver", SOLVERS)
def test_full_matrices_follow_the_exponential(solver: str, webs: int) -> None:
    start = np.array([0.02, -0.01, 0.015])

    def error(dt: float) -> float:
        sim = run(webs, solver, dt)
        sim.step(round(0.4 / dt))
        return float(np.abs([sim.read(f"joint.s{n}.position")[0] for n in range(3)] - exact(start, 0.4)).max())

    coarse, fine = error(4e-3), error(2e-3)
    assert fine < 2e-5 and 3.2 < coarse / fine < 4.8


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_backends_and_worlds_agree(solver: str, scheme: str) -> None:
    sims = [run(1, solver, 5e-3, *at, scheme=scheme) for at in (("numpy", 1), ("native", 1), ("native", 5))]
    numpy, native, many = [history(sim, "joint.s1.position", 40)[:, 0] for sim in sims]
    assert native == pytest.approx(numpy, rel=1e-9, abs=1e-13)
    assert np.array_equal(native, many)
    assert not different(bits(sims[1], 0), bits(sims[2], 4))


@pytest.mark.nightly
@pytest.mark.native
def test_staged_and_fused_have_the_same_bits() -> None:
    sims = [run(2, "direct", 5e-3, "native", 3, launch=launch) for launch in ("fused", "staged")]
    for sim in sims:
        sim.step(50)
    assert not different(bits(sims[0], 1), bits(sims[1], 1))


def test_kinds_that_are_not_coupled_are_reported() -> None:
    sim = run(1, "direct", 5e-3, "numpy")
    group = sim.state.groups[0]
    group.coupled = None
    with pytest.raises(ModelError, match=naming("coupled True")):
        sim.step()
