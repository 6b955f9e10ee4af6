from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Transform
from gpusim.importers import load_mjcf

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo")


def mjcf(bodies: str, more: str = "", option: str = "") -> str:
    """Return the MJCF text of a model, from bodies, further sections, and attributes of <option>."""
    return f"<mujoco model='test'><option {option}/><worldbody>{bodies}</worldbody>{more}</mujoco>"


def solid(inner: str = "", mass: float = 1.0, pos: str = "0 0 0", name: str = "body", off: bool = True) -> str:
    """Return a body with an unsymmetrical inertia. With ``off``, the center of mass is not at the origin."""
    com = "0.05 -0.03 0.1" if off else "0 0 0"
    inertial = f"<inertial pos='{com}' mass='{mass}' fullinertia='0.02 0.03 0.04 0.002 -0.001 0.003'/>"
    return f"<body name='{name}' pos='{pos}'>{inertial}{inner}</body>"


def positions_after(
    text: str, seconds: float = 0.5, ctrl: Any = None, pose: str | None = None, step: float = 1e-4, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of two points of all bodies of the report by gpusim and by MuJoCo (see ``_mujoco_run``).

    MuJoCo's positions are extrapolated from implicit steps of ``2 step`` and ``step``. The points are the body's
    origin, and a point 0.2 m along each of its axes.
    """
    builder, report = load_mjcf(text, pose=pose, **options)
    sim = gpusim.Simulation(builder.finalize(), backend="native", config=gpusim.SolverConfig(dt=1e-3, substeps=4))
    if ctrl is not None:
        for info, value in zip(report.commands.values(), ctrl, strict=True):
            sim.control[info.command] = info.value(value)
    sim.step(round(seconds / 1e-3))
    m = mujoco.MjModel.from_xml_string(text)
    key = None if pose is None else report.poses.index(pose)
    coarse, fine = (_mujoco_run(m, seconds, h, ctrl, key) for h in (2.0 * step, step))
    bodies = {b: m.body(b).name for b in range(1, m.nbody) if m.body(b).name not in report.merged}
    ours = np.array([np.asarray(sim.read(f"body.{name}.position"))[0] for name in bodies.values()])
    turned = [Transform((0, 0, 0), sim.read(f"body.{name}.orientation")[0]).matrix() for name in bodies.values()]
    ours = np.concatenate([ours, ours + np.sum(turned, axis=2) * 0.2])
    theirs = 2.0 * fine[:, list(bodies)] - coarse[:, list(bodies)]
    return ours, np.concatenate(theirs)


def _mujoco_run(m: Any, seconds: float, step: float, ctrl: Any, key: int | None) -> np.ndarray:
    """Return two points of all bodies after implicit steps."""
    m.opt.timestep, m.opt.integrator = step, mujoco.mjtIntegrator.mjINT_IMPLICIT
    d = mujoco.MjData(m)
    if key is not None:
        mujoco.mj_resetDataKeyframe(m, d, key)
    if ctrl is not None:
        d.ctrl[:] = ctrl
    mujoco.mj_step(m, d, round(seconds / step))
    mujoco.mj_kinematics(m, d)
    return np.stack([d.xpos, d.xpos + 0.2 * d.xmat.reshape(-1, 3, 3).sum(axis=2)])


def facts(report: Any, severity: str) -> str:
    assert all(f.element and f.effect and f.fix for f in report.findings if f.severity == "motion"), report.findings
    return "\n".join(f.sentence for f in report.findings if f.severity == severity)
