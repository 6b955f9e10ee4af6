"""Arguments of a wrong type or size get one sentence that names the element and the value."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Rays, Simulation, Transform, UnknownNameError, cosim, envs, machines, robotics, sensors
from gpusim.command_schedule import Schedule
from gpusim.control import Diagram
from gpusim.errors import GpusimError
from gpusim.importers import load_mjcf, load_urdf
from gpusim.machine_files import load_machine
from gpusim.output_files import check_output_file
from gpusim.recording.recorder import load_recording
from gpusim.recording.samples import Recording
from gpusim.robotics import IK, PointTask, PostureTask, Tree
from tests.message_snapshot import naming

HUGE = 10**400
ROBOT = """<robot name="stone"><link name="a"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
LABEL = "'b{k}'"
BALL = '<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'


@cache
def simulation() -> Simulation:
    """A hinged arm with a force, and a free body."""
    b = ModelBuilder()
    arm = b.add_body(1.0, (1, 1, 1), label="arm")
    b.add_joint_force(b.add_joint_revolute(-1, arm, axis=(0, 1, 0), label="hinge"), label="push")
    b.add_body(1.0, (1, 1, 1), label="free")
    return Simulation(b.finalize(), 2, backend="numpy")


@cache
def tree() -> Tree:
    return Tree(simulation().model)


def fit(**changes: Any) -> Any:
    trace = Recording(np.array([0.0, 1e-3, 2e-3]), {"joint.hinge.position": np.zeros((3, 1))})
    given: dict[str, Any] = {"trace": trace, "parameters": {"body.arm.mass": (0.5, 2.0)}, "backend": "numpy"}
    return gpusim.fit(simulation().model, **given | changes)


def trace(samples: Any, times: Any = (0.0, 1e-3, 2e-3)) -> Recording:
    return Recording(np.array(times), {"joint.hinge.position": np.asarray(samples)})


def solve(q: Any = None, targets: Any = None, task: Any = None, **options: Any) -> Any:
    ik = IK(tree(), [task or PointTask("free", name="p")], **options)
    return ik.solve(tree().start if q is None else q, {"p": (0, 0, 0)} if targets is None else targets)


def site() -> ModelBuilder:
    b = ModelBuilder()
    b.add_site(b.add_body(1.0, (1, 1, 1)), label="tip")
    return b


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "zero quaternion": (lambda: tree().pose(np.zeros(tree().size), "free"), "quaternion (0, 0, 0, 0)"),
    "zero quaternion of the start": (lambda: solve(np.zeros(tree().size)), "quaternion (0, 0, 0, 0)"),
    "postures of two lengths": (lambda: tree().difference(*(np.tile(tree().start, (n, 1)) for n in (2, 3))), "2 3"),
    "frames": (lambda: tree().pose(tree().start, []), "frames []"),
    "joint of a tree": (lambda: tree().slice([1]), "'[1]' hinge"),
    "simulation of a tree": (lambda: tree().posture(None), "sim None"),
    "loads": (lambda: tree().inverse_dynamics(tree().start, np.zeros(7), np.zeros(7), external=3), "external 3"),
    "tasks": (lambda: IK(tree(), 3), "tasks 3"),
    "name of a task": (lambda: IK(tree(), [PointTask("free", name=3)]), "3"),
    "locked": (lambda: solve(locked=3), "locked 3"),
    "limits": (lambda: solve(limits="no"), "limits 'no' True False"),
    "targets": (lambda: solve(targets=3), "targets 3"),
    "ragged target": (lambda: solve(targets={"p": [[1], [1, 2]]}), "'p' [[1], [1, 2]]"),
    "ragged weight": (lambda: IK(tree(), [PostureTask(weight=[[1], [1, 2]])]), "PostureTask weight"),
    "flag as text": (lambda: load_urdf(ROBOT, fixed_base="no"), "load_urdf fixed_base 'no' True False"),
    "flag in add_model": (lambda: ModelBuilder().add_model(BALL, merge_fixed="no"), "load_mjcf merge_fixed 'no'"),
    "one folder": (lambda: load_urdf(ROBOT, asset_dirs="meshes"), "asset_dirs 'meshes'"),
    "folder": (lambda: load_urdf(ROBOT, asset_dirs=[3]), "asset_dirs 3"),
    "pose of a file": (lambda: load_mjcf(BALL, pose=[1]), "load_mjcf pose [1]"),
    "xform of a file": (lambda: load_urdf(ROBOT, xform=(0, 0, 1)), "xform (0, 0, 1)"),
    "keep": (lambda: load_urdf(ROBOT, keep=3), "keep 3"),
    "mappings": (lambda: load_urdf(ROBOT, mappings=3), "mappings 3"),
    "meshes": (lambda: load_urdf(ROBOT, meshes=[1]), "meshes [1]"),
    "SRDF": (lambda: load_urdf(ROBOT, srdf=3), "srdf 3"),
    "body of a model": (lambda: simulation().model.index("body", [1]), "'[1]' arm"),
    "recording": (lambda: load_recording(3), "path 3"),
    "recorded signal": (lambda: trace(np.zeros((3, 1)))[[1]], "'[1]' joint.hinge.position"),
    "machine file": (lambda: load_machine(3), "path 3"),
    "NUL in a name": (lambda: load_machine("a\0.yaml"), "NUL"),
    "diagram file": (lambda: Diagram.load(3), "path 3"),
    "constant": (lambda: Diagram("d").connect(HUGE, "command:push"), "diagram 'd' constant"),
    "whole number of a block": (lambda: Diagram("d").add("counter", "c", modulo=HUGE), "block 'c' modulo = 1e400"),
    "audited simulation": (lambda: gpusim.EnergyAudit(3), "EnergyAudit sim 3"),
    "simulation of an FMU": (lambda: cosim.write_fmu(3, "a.fmu", "*"), "FMU sim 3"),
    "simulation of UDP": (lambda: cosim.UdpPoses(3, "127.0.0.1:9870"), "UDP sim 3"),
    "simulation of a clock": (lambda: cosim.run_clock(3, duration=1.0), "run_clock sim 3"),
    "rate of a clock": (lambda: cosim.run_clock(simulation(), duration=1.0, rate=1e-308), "run_clock rate = 1e-308"),
    "policy of a clock": (lambda: cosim.StepClock(0.01, overrun=np.zeros(3)), "overrun"),
    "bounds of a fit": (lambda: fit(parameters={"body.arm.mass": (0, HUGE)}), "'body.arm.mass'"),
    "shape of a trace": (lambda: fit(trace=trace(np.zeros(3))), "'joint.hinge.position' (3,)"),
    "length of a trace": (lambda: fit(trace=trace(np.zeros((2, 1)))), "'joint.hinge.position' (2, 1)"),
    "text in a trace": (lambda: fit(trace=trace([["a"]] * 3)), "'joint.hinge.position'"),
    "time of a trace": (lambda: fit(trace=trace(np.zeros((3, 1)), (0.0, 1e-3, 1e300))), "fit time"),
    "range of a sweep": (lambda: gpusim.sweep("chain", {"count": (0, HUGE)}, num_samples=2), "'count'"),
    "seed of a sensor": (lambda: sensors.add_imu(site(), "tip", "imu", seed="x"), "imu seed 'x'"),
    "site of a sensor": (lambda: sensors.add_imu(site(), np.zeros(3), "imu"), "imu site"),
    "layers": (lambda: envs.MlpPolicy([1.0], "tanh", "task"), "policy layers [1.0]"),
    "weights": (lambda: envs.MlpPolicy([([[np.nan]], [0.0])], "tanh", "task"), "policy weight"),
    "activation": (lambda: envs.MlpPolicy([([[1.0]], [0.0])], ["tanh"], "task"), "['tanh']"),
    "id of a task": (lambda: envs.register(3, "task"), "id 3"),
    "angle": (lambda: Transform.from_axis_angle((0, 0, 0), (0, 0, 1), None), "Transform angle"),
    "infinite angle": (lambda: Transform.from_axis_angle((0, 0, 0), (0, 0, 1), np.inf), "Transform angle"),
    "ragged matrix": (lambda: Transform.from_matrix([[1], [1, 2]]), "Transform.from_matrix [[1], [1, 2]]"),
    "period": (lambda: Schedule([(0, 1), (1, 2)], period="x"), "schedule period = 'x'"),
    "size of a grid": (lambda: Rays.grid(1.0, 3), "Rays size count"),
    "rays of a camera": (lambda: Rays.camera(1.0, 10**6, 10**6), "Rays 1000000000000"),
    "rays of a fan": (lambda: Rays.fan(1.0, 10**9), "Rays 1000000000"),
    "ragged pixels": (lambda: gpusim.Texture([[1], [1, 2]]), "texture shape"),
    "arm": (lambda: machines.add_arm_cylinders(site(), 3, 3, [], hold=()), "arm 3 BoomArm"),
    "arm of a linkage": (lambda: machines.add_bucket_linkage(site(), 3, *[None] * 7), "arm 3 BoomArm"),
    "power pack": (lambda: machines.add_hydraulic_drive(site(), 3, 0, 1e-4, None, "x"), "pack 3 PowerPack"),
    "wheels": (lambda: machines.add_omni_drive(site(), 3), "wheels 3"),
    "iterations": (lambda: simulation().assemble(iterations=1.5), "iterations = 1.5"),
    "NumPy's True": (lambda: simulation().assemble(tolerance=np.True_), "tolerance np.True_"),
}


@pytest.mark.parametrize("what", CALLS)
def test_one_sentence_names_the_fault(what: str) -> None:
    call, words = CALLS[what]
    with pytest.raises(GpusimError, match=naming(words)) as error:
        call()
    assert "\n" not in str(error.value)


def test_names_of_a_loop_end_with_it(tmp_path: Path) -> None:
    file, body = tmp_path / "machine.yaml", "body: {label: %s, mass: = k + 1, inertia: [1, 1, 1]}"
    loop = f"add:\n  - for: {{k: 2}}\n    add:\n      - {body % LABEL}\n"
    file.write_text(loop)
    assert [b.mass for b in load_machine(file).builder.bodies] == [1.0, 2.0]
    file.write_text(loop + "  - body: {label: last, mass: = k}\n  - shape_sphere: {body: last, radius: 1}\n")
    with pytest.raises(GpusimError, match=naming("line 5 name 'k'")):
        load_machine(file)
    file.write_text(loop.replace("k: 2", "k: -2"))
    with pytest.raises(GpusimError, match=naming("line 2 k = -2")):
        load_machine(file)


def test_a_link_to_a_missing_folder(tmp_path: Path) -> None:
    link = tmp_path / "run.npz"
    link.symlink_to(tmp_path / "missing" / "run.npz")
    with pytest.raises(GpusimError, match=naming("folder missing")):
        check_output_file(link, (".npz",))


def test_unknown_frames_are_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match=naming("'arms' arm")):
        robotics.Tree(simulation().model, "arms")
