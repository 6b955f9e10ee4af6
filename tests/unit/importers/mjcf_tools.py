from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim.importers import load_mjcf

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo")


def mjcf(bodies: str, more: str = "", option: str = "") -> str:
    """Return the text of a model with bodies in the world, other sections, and attributes of <option>."""
    return f"<mujoco model='test'><option {option}/><worldbody>{bodies}</worldbody>{more}</mujoco>"


def solid(inner: str = "", mass: float = 1.0, pos: str = "0 0 0", name: str = "body", off: bool = True) -> str:
    """Return a body with an unsymmetrical inertia, with its center off the origin if ``off``."""
    com = "0.05 -0.03 0.1" if off else "0 0 0"
    inertial = f"<inertial pos='{com}' mass='{mass}' fullinertia='0.02 0.03 0.04 0.002 -0.001 0.003'/>"
    return f"<body name='{name}' pos='{pos}'>{inertial}{inner}</body>"


def positions_after(
    text: str, seconds: float = 0.5, ctrl: Any = None, pose: str | None = None, step: float = 1e-4, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of all bodies of the report by gpusim and by MuJoCo (implicit steps of ``step``)."""
    builder, report = load_mjcf(text, pose=pose, **options)
    sim = gpusim.Simulation(builder.finalize(), backend="native", config=gpusim.SolverConfig(dt=1e-3, substeps=2))
    if ctrl is not None:
        for info, value in zip(report.commands.values(), ctrl, strict=True):
            sim.control[info.command] = info.value(value)
    sim.step(round(seconds / 1e-3))
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.timestep, m.opt.integrator = step, mujoco.mjtIntegrator.mjINT_IMPLICIT
    d = mujoco.MjData(m)
    if pose is not None:
        mujoco.mj_resetDataKeyframe(m, d, report.poses.index(pose))
    if ctrl is not None:
        d.ctrl[:] = ctrl
    mujoco.mj_step(m, d, round(seconds / step))
    mujoco.mj_kinematics(m, d)
    bodies = {b: m.body(b).name for b in range(1, m.nbody) if m.body(b).name not in report.merged}
    ours = np.array([np.asarray(sim.read(f"body.{name}.position"))[0] for name in bodies.values()])
    return ours, np.array(d.xpos[list(bodies)])


def facts(report: Any, severity: str) -> str:
    return "\n".join(f.sentence for f in report.findings if f.severity == severity)
