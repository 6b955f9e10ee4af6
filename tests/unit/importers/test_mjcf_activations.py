"""MJCF actuators with an activation: integrators, filters and muscles, against MuJoCo's steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.importers import load_mjcf

from .mjcf_tools import facts, mjcf, solid

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo")
pytestmark = pytest.mark.native

SLIDER = solid("<joint name='rail' type='slide' axis='1 0 0'/>", mass=2.0, off=False)
PENDULUM = solid("<joint name='pin' axis='0 1 0' damping='0.1'/>")
ARM = """
<site name='a0' pos='-.06 0 1'/><site name='p0' pos='.06 0 1'/>
<body name='upper' pos='0 0 1'>
  <inertial pos='0 0 -.15' mass='1' diaginertia='.01 .01 .002'/><joint name='shoulder' axis='0 1 0' damping='.1'/>
  <site name='a1' pos='-.04 0 -.15'/><site name='p1' pos='.04 0 -.15'/>
  <body name='lower' pos='0 0 -.3'>
    <inertial pos='0 0 -.15' mass='.6' diaginertia='.006 .006 .001'/><joint name='elbow' axis='0 1 0' damping='.05'/>
    <site name='a2' pos='-.03 0 -.1'/><site name='p2' pos='.03 0 -.1'/>
  </body>
</body>"""
LINES = (
    "<tendon><spatial name='front'><site site='a0'/><site site='a1'/><site site='a2'/></spatial>"
    "<spatial name='back'><site site='p0'/><site site='p1'/><site site='p2'/></spatial></tendon>"
)
CASES: dict[str, tuple[str, str, list[tuple[float, ...]]]] = {
    "integrator to both ends": (
        SLIDER,
        "<actuator><intvelocity name='u' joint='rail' kp='400' kv='60' actrange='-0.1 0.2'/></actuator>"
        "<keyframe><key name='k' qpos='0.05' act='0.05' ctrl='0.4'/></keyframe>",
        [(0.7,), (-1.5,)],
    ),
    "muscle of a pendulum": (
        PENDULUM,
        "<actuator><muscle name='u' joint='pin' gear='0.05' force='90' lengthrange='-.06 .06'/></actuator>"
        "<keyframe><key name='k' qpos='0.3' act='0.2' ctrl='0.3'/></keyframe>",
        [(0.8,), (0.1,)],
    ),
    "smooth muscle that pushes the coordinate up": (
        PENDULUM,
        "<actuator><muscle name='u' joint='pin' gear='-0.05' scale='60' lengthrange='-.06 .06' tausmooth='.3' "
        "ctrlrange='0 .7'/></actuator><keyframe><key name='k' qpos='-0.2' act='0.6' ctrl='0.7'/></keyframe>",
        [(0.0,), (0.6,)],
    ),
    "antagonists on spatial tendons": (
        ARM,
        f"{LINES}<actuator><muscle name='f' tendon='front' force='200' lengthrange='.2 .34'/>"
        "<muscle name='b' tendon='back' scale='100' lengthrange='.2 .36' timeconst='.02 .06' tausmooth='.2'/>"
        "</actuator><keyframe><key name='k' qpos='.2 .3' act='.1 .4' ctrl='.2 .1'/></keyframe>",
        [(0.6, 0.1), (0.05, 0.7)],
    ),
    "muscle on a fixed tendon": (
        ARM,
        "<tendon><fixed name='sum'><joint joint='shoulder' coef='.04'/><joint joint='elbow' coef='-.03'/></fixed>"
        "</tendon><actuator><muscle name='u' tendon='sum' force='150' lengthrange='-.05 .04'/></actuator>"
        "<keyframe><key name='k' qpos='.2 .3' act='.1' ctrl='.2'/></keyframe>",
        [(0.9,), (0.2,)],
    ),
}  # fmt: skip


def in_mujoco(text: str, commands: list[tuple[float, ...]], step: float) -> tuple[Any, Any]:
    """Return model and data after a quarter of a second for each command, from the keyframe."""
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.timestep, m.opt.integrator = step, mujoco.mjtIntegrator.mjINT_IMPLICIT
    d = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    for ctrl in commands:
        d.ctrl[:] = ctrl
        mujoco.mj_step(m, d, round(0.25 / step))
    return m, d


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_activations_and_motions_are_those_of_mujoco(name: str) -> None:
    bodies, more, commands = CASES[name]
    text = mjcf(bodies, more)
    builder, report = load_mjcf(text, pose="k", strict=True)
    sim = gpusim.Simulation(builder.finalize(), backend="native", config=gpusim.SolverConfig(dt=5e-4))
    for values in commands:
        for info, value in zip(report.commands.values(), values, strict=True):
            sim.control[info.command] = value
        sim.step(500)
    (m, fine), (_, coarse) = in_mujoco(text, commands, 5e-5), in_mujoco(text, commands, 2e-4)
    activations = [float(sim.read(s)[0]) for s in sim.signals() if s.endswith(".activation")]
    positions = [float(sim.read(f"joint.{m.joint(j).name}.position")[0]) for j in range(m.njnt)]
    for ours, theirs, other in ((activations, fine.act, coarse.act), (positions, fine.qpos, coarse.qpos)):
        bound = 2.0 * np.abs(theirs - other) + 1e-9
        assert np.all(np.abs(ours - theirs) < bound) and np.all(bound < 5e-3)


def test_keyframes_set_the_activations() -> None:
    more = (
        "<actuator><intvelocity name='u' joint='rail' kp='4' actrange='-0.1 0.2'/>"
        "<general name='v' joint='rail' dyntype='filter' dynprm='0.2'/>"
        "<muscle name='w' joint='rail' force='9' lengthrange='-.06 .06'/></actuator>"
        "<keyframe><key name='k' act='0.05 -0.3 0.7' ctrl='0.4 0.6 0.1'/><key name='wide' act='0.3 0 2'/></keyframe>"
    )
    builder, _ = load_mjcf(mjcf(SLIDER, more))
    sim = gpusim.Simulation(builder.finalize(), 3, backend="numpy")
    sim.reset([1], pose="k")
    sim.reset([2], pose="wide")
    found = [sim.read(f"{kind}.activation") for kind in ("servo.u", "force.v", "muscle.w")]
    assert np.allclose(found, [(0.0, 0.05, 0.2), (0.0, -0.3, 0.0), (0.0, 0.7, 1.0)])


def test_what_muscles_lack_is_reported() -> None:
    curves = "gaintype='muscle' gainprm='.75 1.05 9 200 .5 1.6 1.5 1.3 1.2' lengthrange='-.1 .1'"
    cases = {
        f"<general name='u' joint='pin' dyntype='filter' dynprm='.1' {curves}/>": "curves with other activation",
        f"<general name='u' joint='pin' dyntype='muscle' dynprm='.1 .1' {curves} biastype='affine'/>": "another bias",
        f"<general name='u' joint='pin' dyntype='muscle' dynprm='.1 .1' {curves} biastype='muscle' "
        "biasprm='.75 1.05 9 200 .5 1.6 1.5 1 1.2'/>": "different parameters for its passive",
        "<muscle name='u' joint='pin' force='9' lengthrange='-.1 .1' forcerange='-2 0'/>": "a force range of a muscle",
        f"<general name='u' joint='pin' dyntype='muscle' dynprm='.1 .1' {curves} actrange='0 .5'/>": "activation range",
    }
    for actuator, fact in cases.items():
        _, report = load_mjcf(mjcf(PENDULUM, f"<actuator>{actuator}</actuator>"))
        assert fact in facts(report, "motion"), actuator
    active = f"<general name='u' joint='pin' dyntype='muscle' dynprm='.1 .1' {curves}/>"
    builder, report = load_mjcf(mjcf(PENDULUM, f"<actuator>{active}</actuator>"), strict=True)
    assert builder.actuators[0].params["fpmax"] == 0.0
    early = "<general name='u' joint='pin' dyntype='integrator' actearly='true'/>"
    _, report = load_mjcf(mjcf(PENDULUM, f"<actuator>{early}</actuator>"), strict=True)
    assert "actearly" in facts(report, "info")
