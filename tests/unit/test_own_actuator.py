from __future__ import annotations

import contextlib
import importlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from gpusim import Model, ModelBuilder, Simulation, SolverConfig
from gpusim.description.actuator_kinds import _KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "own_actuator.md").read_text(encoding="utf-8")
CODE = re.findall(r"```(python|cpp)\n(.*?)```", PAGE, re.DOTALL)
MASS, FORCE_CONSTANT, RESISTANCE, INDUCTANCE, VOLTAGE = 0.5, 8.0, 4.0, 0.02, 2.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user's folder with the two files of the page, from which Python imports."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "voice_coil.py").write_text(CODE[0][1], encoding="utf-8")
    (folder / "voice_coil.cuh").write_text(CODE[1][1], encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    _KINDS.forget("voice_coil")
    del sys.modules["voice_coil"]


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    """A coil that drives a mass along x."""
    importlib.import_module("voice_coil")
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    mover = b.add_body(mass=MASS, inertia=(1e-3,) * 3, label="mover")
    slide = b.add_joint_prismatic(-1, mover, label="slide")
    constants = {"force_constant": FORCE_CONSTANT, "resistance": RESISTANCE, "inductance": INDUCTANCE}
    b.add_actuator("voice_coil", "coil", {"joint": slide, "axis": 0, **constants})
    return b.finalize()


def run(model: Model, time: float, dt: float, **options: object) -> Simulation:
    sim = Simulation(model, 2, config=SolverConfig(dt=dt), **options)  # type: ignore[arg-type]
    sim.control["coil"] = [VOLTAGE, 0.5 * VOLTAGE]
    sim.step(round(time / dt))
    return sim


def exact(time: float) -> np.ndarray:
    """Velocity and current of the first world: a linear system from rest."""
    rates = np.array([[0.0, FORCE_CONSTANT / MASS], [-FORCE_CONSTANT / INDUCTANCE, -RESISTANCE / INDUCTANCE]])
    steady = np.linalg.solve(rates, [0.0, -VOLTAGE / INDUCTANCE])
    return steady - expm(rates * time) @ steady


def found(sim: Simulation) -> np.ndarray:
    return np.stack([sim.read("joint.slide.velocity"), sim.read("coil.coil.current")], axis=1)


@pytest.mark.nightly
def test_the_page_prints_what_it_says(folder: Path) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(CODE[2][1], "own_actuator.md", "exec"), {})
    numbers = [float(x) for x in re.findall(r"\[(.*?)\]", printed.getvalue())]
    said = re.search(r"# ([\d.]+) A, ([\d.]+) m/s", PAGE)
    assert said is not None
    assert numbers == pytest.approx([float(x) for x in said.groups()], abs=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_second_order_towards_the_closed_form(model: Model, backend: str) -> None:
    errors = []
    for dt in (1e-3, 5e-4):
        got = found(run(model, 0.05, dt, backend=backend))
        np.testing.assert_allclose(got[1], 0.5 * got[0], rtol=1e-12)
        errors.append(np.abs(got[0] - exact(0.05)))
    assert errors[0].max() < 1e-3
    assert np.all(errors[1] < 0.27 * errors[0])


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("dtype", "solver", "tolerance"), [("float64", "direct", 1e-12), ("float32", "colored", 1e-5)])
def test_kernels_follow_the_reference(model: Model, dtype: str, solver: str, tolerance: float) -> None:
    config = SolverConfig(dt=1e-3, joint_solver=solver)
    sims = [Simulation(model, 2, backend="numpy", dtype=dtype, config=config)]
    launches = ("fused", "staged") if solver == "direct" else ("fused",)  # each takes its own build
    sims += [Simulation(model, 2, backend="native", dtype=dtype, config=config, launch=launch) for launch in launches]
    states = []
    for sim in sims:
        sim.control["coil"] = [VOLTAGE, -VOLTAGE]
        sim.step(30)
        sim.write("coil.coil.current", 0.3, worlds=1)
        sim.step(30)
        for name in ("coil.coil.force", "coil.coil.current", "joint.slide.velocity", "joint.slide.position"):
            np.testing.assert_allclose(sim.read(name), sims[0].read(name), rtol=tolerance, err_msg=name)
        states.append({name: np.array(array) for name, array in sim.state.variables().items()})
    assert all(states[1][name].tobytes() == states[-1][name].tobytes() for name in states[1])
    sims[1].reset()
    assert not sims[1].read("coil.coil.current").any()
    sims[1].control["coil"] = VOLTAGE
    sims[1].step(60)
    assert sims[1].read("coil.coil.current")[1] == sims[1].read("coil.coil.current")[0] > 0.0


def test_terms_are_those_of_the_kernels() -> None:
    root = Path(__file__).parents[2]
    laws = (root / "cuda_kernels/joints/laws.cuh").read_text(encoding="utf-8")
    struct = laws.split("struct ActuatorTerm {", 1)[1].split("};", 1)[0]
    fields = set(re.findall(r"\w+", re.sub("//.*", "", struct)))
    kinds = (root / "gpusim/description/actuator_kinds.py").read_text(encoding="utf-8")
    for text in (PAGE, kinds):
        named = set(re.findall(r"\b(?:own|term)\.(\w+)", text))
        assert {"clamped_impulse", "clamped_slope", "clamped_bound"} <= named <= fields
