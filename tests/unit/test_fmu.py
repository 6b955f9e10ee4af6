"""Co-simulation FMUs, run by FMPy."""

from __future__ import annotations

import math
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fmpy import read_model_description, simulate_fmu
from fmpy.validation import validate_fmu

import gpusim
from gpusim.control import Diagram
from gpusim.cosim.fmi_units import fmi_unit
from gpusim.cosim.fmu import write_fmu
from gpusim.scene import list_scenes, load_scene
from tests.backends import FASTEST
from tests.message_snapshot import names, naming
from tests.unit.fmu_host import Host

SEEN = ["cylinder.lift.position", "cylinder.lift.pressure_a", "body.load.position"]
NAMES = (*SEEN[:2], "body.load.position[2]")


def lift(backend: str = FASTEST) -> gpusim.Simulation:
    scene = load_scene("hydraulic_lift")
    return gpusim.Simulation(scene.builder.finalize(), config=scene.config, backend=backend)


def values(sim: gpusim.Simulation) -> list[float]:
    numbers = [float(sim.read(name, numpy=True)[0]) for name in SEEN[:2]]
    return [*numbers, float(sim.read(SEEN[2], numpy=True)[0, 2])]


def box() -> gpusim.Simulation:
    builder = gpusim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_shape_box(builder.add_body(mass=2.0, label="box"), half_extents=(0.1, 0.1, 0.1))
    return gpusim.Simulation(builder.finalize(), backend="numpy")


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_an_fmu_has_the_bits_of_the_simulation_and_rolls_back(backend: str, tmp_path: Path) -> None:
    sim, path = lift(backend), tmp_path / "lift.fmu"
    write_fmu(sim, path, SEEN, parameters="body.load.mass")
    assert validate_fmu(str(path)) == []
    one, other = (Host(path, tmp_path / name, name, **{"body.load.mass": 150.0}) for name in ("a", "b"))
    sim.write("body.load.mass", 150.0)

    def run(host: Host, steps: int) -> list[list[float]]:
        found = []
        for k in range(steps):
            host.set({"lift": math.sin(k / 7.0)})
            host.step(0.01)
            found.append(host.get(*NAMES))
        return found

    expected = []
    for k in range(20):
        sim.control["lift"] = math.sin(k / 7.0)
        sim.step(10)
        expected.append(values(sim))
    assert run(one, 20) == expected
    kept = one.fmu.getFMUState()
    after = run(one, 10)
    assert after[-1] != expected[-1]
    one.fmu.setFMUState(kept)
    one.time = 0.2
    assert run(one, 10) == after
    run(other, 3)
    other.fmu.setFMUState(other.fmu.deserializeFMUState(one.fmu.serializeFMUState(kept)))
    other.time = 0.2
    assert other.get("time", "body.load.mass") == pytest.approx([0.2, 150.0])
    assert run(other, 10) == after
    for host in (one, other):
        host.close()


def test_fmpy_simulates_an_fmu_like_gpusim(tmp_path: Path) -> None:
    sim, path = lift(), tmp_path / "lift.fmu"
    write_fmu(sim, path, SEEN, inputs="lift", step=0.02, stop_time=0.2)
    found = simulate_fmu(str(path), start_values={"lift": 0.7}, output=[NAMES[0]])
    sim.control["lift"] = 0.7
    expected = [values(sim)[0]]
    for _ in range(10):
        sim.step(20)
        expected.append(values(sim)[0])
    assert found[NAMES[0]].tolist() == expected


def test_steps_end_at_communication_points_of_any_distance(tmp_path: Path) -> None:
    path = tmp_path / "box.fmu"
    write_fmu(box(), path, ["sim.time", "body.box.position"], inputs="body.box.applied_force")
    host = Host(path, tmp_path / "box")
    host.set({"body.box.applied_force[0]": 4.0})
    for size in (0.01, 0.0123, 0.1, 0.0004):
        host.step(size)
        assert host.get("sim.time", "time") == pytest.approx([host.time] * 2, rel=1e-14)
    assert host.get("body.box.position[0]")[0] == pytest.approx(0.5 * 4.0 / 2.0 * host.time**2, rel=0.02)
    host.close()


def test_the_description_has_units_ranges_and_all_digits(tmp_path: Path) -> None:
    path = tmp_path / "my lift 2.fmu"
    write_fmu(lift(), path, SEEN, parameters=["body.load.inertia", "cylinder.lift.flow_gain*"], description="A lift.")
    found = read_model_description(str(path))
    assert (found.modelName, found.description, found.generationTool) == (
        "my lift 2", "A lift.", f"gpusim {gpusim.__version__}",
    )  # fmt: skip
    by_name = {v.name: v for v in found.modelVariables}
    command, inertia, pressure = (by_name[n] for n in ("lift", "body.load.inertia[4]", "cylinder.lift.pressure_a"))
    assert (command.causality, float(command.min), float(command.max)) == ("input", -1.0, 1.0)
    assert float(inertia.start) == lift().read("body.load.inertia")[0].flat[4] and inertia.unit == "kg m2"
    gain = by_name["cylinder.lift.flow_gain"]
    assert gain.unit is None and "sqrt(Pa)" in gain.description
    pascal = {u.name: u for u in found.unitDefinitions}["Pa"].baseUnit
    assert (pascal.kg, pascal.m, pascal.s, pressure.unit) == (1, -1, -2, "Pa")
    with zipfile.ZipFile(path) as archive:
        needs = archive.read("documentation/externalDependencies.txt").decode()
    assert f"gpusim {gpusim.__version__}" in needs and "Linux" in needs


def test_a_label_with_brackets_is_no_wildcard(tmp_path: Path) -> None:
    b = gpusim.ModelBuilder()
    rail = b.add_joint_prismatic(-1, b.add_body(1.0, (1, 1, 1)), label="rail")
    b.add_joint_force(rail, label="push[0]")
    sim = gpusim.Simulation(b.finalize(), backend="numpy")
    write_fmu(sim, tmp_path / "push.fmu", "joint.rail.position")
    found = read_model_description(tmp_path / "push.fmu").modelVariables
    assert [v.name for v in found if v.causality == "input"] == ["push[0]"]


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("N", {"kg": 1, "m": 1, "s": -2}),
        ("N m s/rad", {"kg": 1, "m": 2, "s": -1, "rad": -1}),
        ("rad/s", {"rad": 1, "s": -1}),
        ("bar", {"kg": 1, "m": -1, "s": -2, "factor": 1e5}),
        ("deg", {"rad": 1, "factor": math.pi / 180.0}),
        ("l/s", {"m": 3, "s": -1, "factor": 1e-3}),
        ("-", None), ("m3/s/sqrt(Pa)", None), ("N, N m", None),
    ],
)  # fmt: skip
def test_units_are_powers_of_base_units(text: str, base: dict[str, float] | None) -> None:
    assert fmi_unit(text) == base


def test_a_failed_world_ends_the_run_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "box.fmu"
    write_fmu(box(), path, "body.box.position", inputs="body.box.applied_force")
    host = Host(path, tmp_path / "box")
    host.set({"body.box.applied_force[0]": 1e300})
    with pytest.warns(UserWarning, match="world 0"), pytest.raises(Exception, match="error"):
        host.step(1.0)
    assert any("world 0" in line for line in host.logged)
    with pytest.raises(Exception, match="error"):
        host.step(1.0)
    host.close()


def test_errors_reach_the_host_and_a_roll_back_ends_them(tmp_path: Path) -> None:
    path = tmp_path / "box.fmu"
    write_fmu(box(), path, "body.box.position", inputs="body.box.applied_force", parameters="body.box.mass")
    host = Host(path, tmp_path / "box")
    kept = host.fmu.getFMUState()
    packed = host.fmu.serializeFMUState(kept)
    for name, wrong, words in (
        ("body.box.applied_force[0]", math.nan, "applied_force"), ("body.box.mass", -1.0, "mass"),
    ):  # fmt: skip
        host.set({name: wrong})
        with pytest.raises(Exception, match="error"):
            host.step(0.1)
        assert words in host.logged[-1]
        host.fmu.setFMUState(kept)
        host.step(0.1)
    host.set({"body.box.mass": -1.0})
    assert math.isnan(host.get("body.box.position[0]")[0])
    host.fmu.setFMUState(host.fmu.deserializeFMUState(packed[:-1] + b"0"))
    assert "damaged" in host.logged[-1]
    with pytest.raises(Exception, match="error"):
        host.step(0.1)
    host.fmu.setFMUState(host.fmu.deserializeFMUState(packed))
    host.step(0.1)
    host.close()


def test_a_host_without_gpusim_is_told_what_the_fmu_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "box.fmu"
    write_fmu(box(), path, "body.box.position")
    monkeypatch.setitem(sys.modules, "gpusim.cosim.fmu_slave", None)
    logged: list[str] = []
    with pytest.raises(Exception, match="instantiate"):
        Host(path, tmp_path / "box", logged=logged)
    assert names(logged[-1], f"needs gpusim {gpusim.__version__} {sys.prefix}")


def test_bad_arguments_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sim, path = lift(), tmp_path / "lift.fmu"
    with pytest.raises(gpusim.ModelError, match=naming("'lift.zip' .fmu")):
        write_fmu(sim, "lift.zip", SEEN)
    with pytest.raises(gpusim.UnknownNameError, match=naming("'body.lod.mass' 'body.load.mass'")):
        write_fmu(sim, path, SEEN, parameters="body.lod.mass")
    with pytest.raises(gpusim.UnknownNameError, match=naming("command or signal 'lif' 'lift'")):
        write_fmu(sim, path, SEEN, inputs="lif")
    with pytest.raises(gpusim.ModelError, match=naming("parameter 'sim.kinetic_energy' written")):
        write_fmu(sim, path, SEEN, parameters="sim.kinetic_energy")
    with pytest.raises(gpusim.ModelError, match=naming("'body.load.mass' once")):
        write_fmu(sim, path, "body.load.mass", parameters="body.load.mass")
    with pytest.raises(gpusim.ModelError, match=naming("step = 0")):
        write_fmu(sim, path, SEEN, step=0.0)
    two = gpusim.Simulation(box().model, num_worlds=2, backend="numpy")
    with pytest.raises(gpusim.ModelError, match=naming("2 worlds")):
        write_fmu(two, path, "body.box.position")
    monkeypatch.setitem(sys.modules, "pythonfmu3.builder", None)
    with pytest.raises(gpusim.ModelError, match=naming("pythonfmu3 gpusim[fmu]")):
        write_fmu(sim, path, SEEN)
    assert not path.exists()


def test_a_model_with_python_functions_is_refused(tmp_path: Path) -> None:
    builder = gpusim.ModelBuilder()
    builder.add_shape_box(builder.add_body(mass=2.0, label="box"), half_extents=(0.1, 0.1, 0.1))
    diagram = Diagram("half", rate=100.0)
    diagram.add("python", "own", function=lambda time, given: 0.1, names=())
    diagram.connect("own", "command:push")
    builder.add_force(0, (1.0, 0.0, 0.0), label="push")
    builder.add_diagram(diagram)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    with pytest.raises(gpusim.ModelError, match=naming("model cannot be stored")):
        write_fmu(sim, tmp_path / "half.fmu", "body.box.position")
    with pytest.raises(gpusim.ModelError, match=naming("command 'push' diagram 'half'")):
        write_fmu(sim, tmp_path / "half.fmu", "body.box.position", inputs="push")


@pytest.mark.nightly
@pytest.mark.parametrize("name", list_scenes())
def test_fmus_of_all_scenes_are_valid(name: str, tmp_path: Path) -> None:
    scene, path = load_scene(name), tmp_path / f"{name}.fmu"
    sim = gpusim.Simulation(scene.builder.finalize(), config=scene.config, backend="numpy")
    write_fmu(sim, path, scene.signals(), stop_time=scene.duration)
    assert validate_fmu(str(path)) == []


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("name", ["krt100m", "robot_arm"])
def test_fmus_with_contacts_and_diagrams_have_the_bits(name: str, tmp_path: Path) -> None:
    scene, path = load_scene(name), tmp_path / f"{name}.fmu"
    sim = gpusim.Simulation(scene.builder.finalize(), config=scene.config, backend="native")
    sim.step(20)
    write_fmu(sim, path, scene.signals(), stop_time=scene.duration)
    host = Host(path, tmp_path / "one")
    kept = host.fmu.getFMUState()
    outputs = [v.name for v in host.description.modelVariables if v.causality == "output"]
    found = []
    for _ in range(2):
        for _ in range(10):
            host.step(sim.config.dt)
        found.append(host.get(*outputs))
        host.fmu.setFMUState(kept)
    sim.step(10)
    signals = sim.observe(scene.signals()).names
    expected = np.concatenate([sim.read(signal, numpy=True)[0].ravel() for signal in signals])
    np.testing.assert_array_equal(found, [expected, expected])
    host.close()
