from __future__ import annotations

import numpy as np
import pytest

import gpusim
from gpusim.exporters import to_mjcf
from gpusim.importers import load_mjcf

from .mjcf_tools import facts, mjcf, mujoco, positions_after, solid

SITE = "<site name='{}' pos='{}'/>"
GEOM = (
    "<geom name='{}' type='{}' size='0.2 0.3' pos='0.02 -0.01 0.03' quat='0.9 0.3 0.2 0.1' "
    "contype='0' conaffinity='0'/>"
)
BODIES = "".join(
    solid("<freejoint/>" + inner, pos=pos, name=name, off=False)
    for name, pos, inner in (
        ("left", "0.6 0.1 -0.4", SITE.format("a", "0.05 0 0.1")),
        ("right", "-0.7 0 -0.5", SITE.format("b", "0 0.02 0.1") + SITE.format("far", "0 0 -2")),
        (
            "drum",
            "0 0 0",
            GEOM.format("tube", "cylinder") + GEOM.format("ball", "sphere") + SITE.format("in", "0.05 0.03 0")
            + SITE.format("up", "0 0 0.7"),
        ),
    )
)  # fmt: skip
PATHS = {
    "sphere": "<site site='a'/><geom geom='ball'/><site site='b'/>",
    "cylinder": "<site site='a'/><geom geom='tube'/><site site='b'/>",
    "side of a sphere": "<site site='a'/><geom geom='ball' sidesite='up'/><site site='b'/>",
    "side of a cylinder": "<site site='a'/><geom geom='tube' sidesite='up'/><site site='b'/>",
    "side on another body": "<site site='a'/><geom geom='tube' sidesite='far'/><site site='b'/>",
    "inside of a sphere": "<site site='a'/><geom geom='ball' sidesite='in'/><site site='b'/>",
    "inside of a cylinder": "<site site='a'/><geom geom='tube' sidesite='in'/><site site='b'/>",
    "both": "<site site='w'/><geom geom='tube'/><site site='b'/><geom geom='ball' sidesite='up'/><site site='a'/>"
    "<pulley divisor='2'/><site site='w'/><geom geom='ball'/><site site='w2'/>",
}
WORLD = SITE.format("w", "0.5 0.4 0.6") + SITE.format("w2", "-0.5 -0.2 0.3")
POSTURES = 500


def tendons(attributes: str = "", paths: dict[str, str] = PATHS) -> str:
    inner = "".join(
        f"<spatial name='{name}' stiffness='1' {attributes}>{path}</spatial>" for name, path in paths.items()
    )
    return f"<tendon>{inner}</tendon>"


def scattered(sim: gpusim.Simulation, m: object, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write random postures and velocities, and return MuJoCo's lengths and rates, (worlds, tendons)."""
    rng, d = np.random.default_rng(seed), mujoco.MjData(m)
    names, count = ("left", "right", "drum"), sim.num_worlds
    turn = rng.normal(size=(count, 3, 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    place = rng.uniform(-0.6, 0.6, (count, 3, 3)) * np.array([1.0, 1.0, 0.2])[:, None]
    speed = rng.normal(size=(count, 3, 6))
    lengths, rates, points = [], [], []
    for w in range(count):
        d.qpos[:] = np.concatenate([np.concatenate([place[w, k], turn[w, k, [3, 0, 1, 2]]]) for k in range(3)])
        for k in range(3):
            local = np.zeros(3)
            mujoco.mju_rotVecQuat(local, speed[w, k, 3:], turn[w, k, [3, 0, 1, 2]] * [1, -1, -1, -1])
            d.qvel[6 * k : 6 * k + 6] = np.concatenate([speed[w, k, :3], local])
        mujoco.mj_forward(m, d)
        lengths.append(d.ten_length.copy()), rates.append(d.ten_velocity.copy()), points.append(d.ten_wrapnum.copy())
    for k, name in enumerate(names):
        sim.write(f"body.{name}.position", place[:, k])
        sim.write(f"body.{name}.orientation", turn[:, k])
    for k, name in enumerate(names):
        sim.write(f"body.{name}.linear_velocity", speed[:, k, :3])
        sim.write(f"body.{name}.angular_velocity", speed[:, k, 3:])
    return np.array(lengths), np.array(rates), np.array(points)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_lengths_and_rates_are_those_of_mujoco(backend: str) -> None:
    text = mjcf(WORLD + BODIES, tendons(), "gravity='0 0 0'")
    builder, report = load_mjcf(text)
    assert not facts(report, "motion")
    sim = gpusim.Simulation(builder.finalize(), POSTURES, backend=backend)
    length, rate, points = scattered(sim, mujoco.MjModel.from_xml_string(text), 3)
    for k, name in enumerate(PATHS):
        label = f"joint.{name.replace(' ', '_')}"
        wrapped = points[:, k] > points[:, k].min()
        assert 50 < np.count_nonzero(wrapped) < POSTURES
        ours = sim.read(f"{label}.position", numpy=True), sim.read(f"{label}.velocity", numpy=True)
        assert np.abs(ours[0] - length[:, k]).max() < 1e-9
        assert np.abs(ours[1] - rate[:, k]).max() < (3e-4 if name.startswith("inside") else 1e-9)


def hoist() -> str:
    ring = "<geom name='ring' type='{}' size='0.2 0.3' pos='0 0 -0.6' quat='1 1 0 0' contype='0' conaffinity='0'/>"
    drum = GEOM.format("tube", "cylinder").replace("0.9 0.3 0.2 0.1", "1 1 0 0")
    bodies = (
        solid("<joint type='hinge' axis='1 0.2 0.3' damping='0.3' stiffness='20'/>" + drum, name="drum")
        + solid("<freejoint/>" + SITE.format("a", "0.02 0 0.1"), pos="0.4 0.05 -1", name="left")
        + solid("<freejoint/>" + SITE.format("b", "0 0.02 0.1"), pos="-0.5 0 -1.2", mass=1.3, name="right")
    )
    sites = SITE.format("w", "0.5 0.1 -2") + SITE.format("up", "0 0 9") + SITE.format("mid", "0 0 -0.6")
    over = "<site site='a'/><geom geom='tube' sidesite='up'/><site site='b'/>"
    through = "<site site='w'/><geom geom='{}' sidesite='mid'/><site site='{}'/>"
    paths = f"<spatial name='over' stiffness='60' springlength='2.4' damping='0.4'>{over}</spatial>"
    for number, (shape, site) in enumerate((("cylinder", "a"), ("sphere", "b"))):
        sites += ring.format(shape).replace("ring", f"ring{number}")
        path = through.format(f"ring{number}", site)
        paths += f"<spatial name='through{number}' stiffness='3' springlength='1'>{path}</spatial>"
    motor = "<actuator><motor name='m' tendon='over' gear='2'/></actuator>"
    return mjcf(sites + bodies, f"<tendon>{paths}</tendon>{motor}")


@pytest.mark.native
def test_motion_is_that_of_mujoco() -> None:
    coarse, fine = (positions_after(hoist(), 0.5, ctrl=[-1.5], step=step) for step in (1e-4, 5e-5))
    exact = 2.0 * fine[1] - coarse[1]
    assert np.abs(fine[0] - exact).max() < 2e-5


def test_wrapped_ropes_come_back_from_mjcf() -> None:
    text = mjcf(WORLD + BODIES, tendons("range='0.1 5' limited='true' damping='0.2'"))
    first, _ = load_mjcf(text)
    again = to_mjcf(first)[0]
    second, report = load_mjcf(again)
    assert not facts(report, "motion")
    d = [mujoco.MjData(m) for m in map(mujoco.MjModel.from_xml_string, (text, again))]
    for data in d:
        mujoco.mj_forward(data.model, data)
    model = second.finalize()
    sim, old = gpusim.Simulation(model, backend="numpy"), gpusim.Simulation(first.finalize(), backend="numpy")
    for name in PATHS:
        label = name.replace(" ", "_")
        lengths = [float(np.asarray(s.read(f"joint.{label}.position"))[0]) for s in (old, sim)]
        assert lengths[0] == pytest.approx(lengths[1], abs=1e-12)
        assert d[0].tendon(name).length[0] == pytest.approx(d[1].tendon(label).length[0], abs=1e-12)
        joints = [s.model.joints[[j.label for j in s.model.joints].index(label)] for s in (old, sim)]
        assert joints[0].params["limit_upper"] == pytest.approx(joints[1].params["limit_upper"])


def test_constant_parts_count_in_limits() -> None:
    path = "<site site='w'/><geom geom='post'/><site site='w2'/><site site='a'/>"
    post = "<geom name='post' type='cylinder' size='0.2 1' contype='0' conaffinity='0'/>"
    text = mjcf(WORLD + post + BODIES, tendons("range='0 3' limited='true'", {"t": path}))
    builder, _ = load_mjcf(text)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    sim = gpusim.Simulation(builder.finalize(), backend="numpy")
    room = float(np.asarray(sim.read("joint.t.limit_upper"))[0]) - float(np.asarray(sim.read("joint.t.position"))[0])
    assert room == pytest.approx(3.0 - d.ten_length[0], abs=1e-12)
    assert d.ten_wrapnum[0] == 5
