"""Compare a model file with MuJoCo, and print a line of JSON. ``check_models.py`` runs this script for many files.

    python ci/check_one_model.py FILE [simulated seconds [maximum processor time, s]]

For MJCF files, the script compares masses, kinematics and mass matrix at random postures, smooth motion, and a run with
contacts. For other formats, the script only loads the file and runs the model.
"""

from __future__ import annotations

import copy
import json
import math
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("GPUSIM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import gpusim
from gpusim import rotations
from gpusim.importers.mjcf import Options, import_model
from gpusim.importers.mjcf_parts.mjcf_source import Compiled
from gpusim.robotics import Tree

POSTURES, LIMIT_FRACTION = 3, 0.9
PASSIVE_SECONDS, PASSIVE_STEP = 0.5, 1e-3
LIFE_STEP, LIFE_CPU_SECONDS = 2e-3, 12.0
NUDGE, MUJOCO_CPU_SECONDS = 1e-6, 0.5
"""NUDGE: offset of the initial coordinates for the test whether MuJoCo's height repeats (m or rad). The script skips
the test for slow models."""


def random_posture(m: Any, rng: np.random.Generator, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Return random qpos and qvel. Joints without limits are within 0.5 rad or 0.2 m of qpos0."""
    import mujoco as mj

    q, v = np.array(m.qpos0), np.zeros(m.nv)
    for j in range(m.njnt):
        a, dof, kind = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]), int(m.jnt_type[j])
        if kind == 0:
            q[a : a + 3] += rng.uniform(-0.2, 0.2, 3)
            q[a + 3 : a + 7] += rng.uniform(-0.3, 0.3, 4)
            v[dof : dof + 6] = rng.uniform(-0.5, 0.5, 6)
        elif kind == 1:
            q[a : a + 4] += rng.uniform(-0.2, 0.2, 4)
            v[dof : dof + 3] = rng.uniform(-0.5, 0.5, 3)
        else:
            size = 0.5 if kind == 3 else 0.2
            lower, upper = sorted(m.jnt_range[j]) if m.jnt_limited[j] else (q[a] - size, q[a] + size)
            half = min(0.5 * (upper - lower) * fraction, size)
            q[a] = 0.5 * (lower + upper) + rng.uniform(-half, half)
            v[dof] = rng.uniform(-0.5, 0.5) * (1.0 if kind == 3 else 0.2)
    d = mj.MjData(m)
    d.qpos[:] = q
    mj.mj_normalizeQuat(m, d.qpos)
    return np.array(d.qpos), v


def bodies_of(m: Any, report: Any, builder: Any) -> dict[int, str]:
    """Return a dict: body index in MuJoCo -> label in gpusim. Kinematic and merged bodies are missing."""
    found = {}
    kinematic = {b.label for b in builder.bodies if b.kinematic}
    names = list(report.link_frames)
    for b, name in zip(range(1, m.nbody), names, strict=True):
        if name not in report.merged and name not in kinematic:
            found[b] = name
    return found


def velocity_map(m: Any, tree: Any, builder: Any, report: Any, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint tree's coordinates for qpos, and the matrix T with ``v_tree = T qvel``."""
    import mujoco as mj

    out, t = tree.start[0].copy(), np.zeros((tree.freedoms, m.nv))
    d = mj.MjData(m)
    d.qpos[:] = q
    mj.mj_kinematics(m, d)
    for j, info in enumerate(report.joints.values()):
        a, dof, kind = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]), int(m.jnt_type[j])
        carrier = info.child if kind == 0 else builder.joints[info.index].label
        s, r = tree.slice(carrier), tree.rate_slice(carrier)
        if kind == 0:
            out[s] = [*q[a : a + 3], *q[a + 4 : a + 7], q[a + 3]]
            t[r.start : r.start + 3, dof : dof + 3] = np.eye(3)
            t[r.start + 3 : r.stop, dof + 3 : dof + 6] = d.xmat[m.jnt_bodyid[j]].reshape(3, 3)
        elif kind == 1:
            out[s] = [*q[a + 1 : a + 4], q[a]]
            matrix = np.zeros(9)
            mj.mju_quat2Mat(matrix, q[a : a + 4])
            t[r, dof : dof + 3] = matrix.reshape(3, 3)
        else:
            out[s.start + info.axis] = q[a]
            t[r.start + info.axis, dof] = 1.0
    return out, t


def full_mass_matrix(m: Any, d: Any) -> np.ndarray:
    """Return the mass matrix (nv, nv)."""
    import mujoco as mj

    full, unit = np.zeros((m.nv, m.nv)), np.eye(m.nv)
    for k in range(m.nv):
        mj.mj_mulM(m, d, full[k], unit[k])
    return full


def check_kinematics(m: Any, name: str, rng: np.random.Generator, row: dict[str, Any]) -> None:
    """Compare poses of all bodies and the mass matrix at random postures."""
    import mujoco as mj

    keep = int(m.opt.disableflags)
    m.opt.disableflags |= int(mj.mjtDisableBit.mjDSBL_CONSTRAINT) | int(mj.mjtDisableBit.mjDSBL_ACTUATION)
    builder, report = import_model(Compiled(mj, m, name), Options(collisions=False, visuals=False))
    m.opt.disableflags = keep
    moving = bodies_of(m, report, builder)
    masses = [x.mass for x in builder.bodies if not x.kinematic]
    row["mass"] = float(sum(masses)) - report.added_mass
    if not moving:
        row.update(fk=0.0, mass_matrix=0.0)
        return
    tree = Tree(builder.finalize())
    d, bodies, fk, error = mj.MjData(m), list(moving), 0.0, 0.0
    for _ in range(POSTURES):
        q, v = random_posture(m, rng, LIMIT_FRACTION)
        posture, t = velocity_map(m, tree, builder, report, q)
        d.qpos[:], d.qvel[:] = q, v
        mj.mj_fwdPosition(m, d)
        poses = tree.pose(posture, [f"body.{moving[b]}" for b in bodies])[0]
        body_rotations = np.array([rotations.matrix_from_quaternion(p[None, 3:])[0] for p in poses])
        scale = max(1.0, float(np.abs(d.xpos[bodies]).max()))
        fk = max(fk, np.abs(poses[:, :3] - d.xpos[bodies]).max() / scale)
        fk = max(fk, np.abs(body_rotations - d.xmat[bodies].reshape(-1, 3, 3)).max())
        full, ours = full_mass_matrix(m, d), t.T @ tree.mass_matrix(posture)[0] @ t
        size = np.sqrt(np.outer(np.diag(full), np.diag(full)))
        error = max(error, float((np.abs(ours - full) / np.maximum(size, 1e-30)).max(initial=0.0)))
    row.update(fk=float(fk), mass_matrix=error)


def check_passive(m: Any, name: str, rng: np.random.Generator, row: dict[str, Any]) -> None:
    """Compare smooth motion, without contacts, actuators, limits, dry friction and equalities."""
    import mujoco as mj

    off = mj.mjtDisableBit
    m.opt.disableflags |= int(off.mjDSBL_CONSTRAINT) | int(off.mjDSBL_ACTUATION)
    m.opt.enableflags &= ~int(getattr(mj.mjtEnableBit, "mjENBL_SLEEP", 0))
    q, v = random_posture(m, rng, 0.5)
    options = Options(collisions=False, visuals=False)
    builder, report = import_model(Compiled(mj, m, name), options, posture=(q, v))
    moving = bodies_of(m, report, builder)
    bodies = list(moving)
    if not bodies or not report.exact:  # without actuators, actuatorgravcomp is not exact
        return
    reference, row["passive_reference"] = _references(m, q, v)
    if reference is None:
        row["passive"] = "MuJoCo unstable"
        return
    model, found = builder.finalize(), {}
    for substeps in (1, 4):
        config = gpusim.SolverConfig(dt=PASSIVE_STEP, substeps=substeps)
        sim = gpusim.Simulation(model, backend="native", threads=1, config=config)
        sim.step(round(PASSIVE_SECONDS / PASSIVE_STEP))
        ours = np.array([np.asarray(sim.read(f"body.{moving[b]}.position"))[0] for b in bodies])
        found[substeps] = float(np.abs(ours - reference[bodies]).max())
    row.update(passive=found[1], passive_4=found[4])


def _references(m: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Return MuJoCo's reference positions, and their computation method as text."""
    import mujoco as mj

    def run(integrator: int, step: float) -> np.ndarray | None:
        m.opt.integrator, m.opt.timestep = integrator, step
        d = mj.MjData(m)
        d.qpos[:], d.qvel[:] = q, v
        mj.mj_step(m, d, round(PASSIVE_SECONDS / step))
        mj.mj_kinematics(m, d)
        unstable = d.warning[int(mj.mjtWarning.mjWARN_BADQACC)].number or not np.isfinite(d.xpos).all()
        return None if unstable else np.array(d.xpos)

    for step in (2.5e-4, 1e-4):
        coarse, fine = run(1, 2.0 * step), run(1, step)
        if coarse is not None and fine is not None and np.abs(coarse - fine).max() < 1e-5:
            return fine, "RK4"
    step = 5e-5 if m.nv < 40 else 1e-4
    coarse, fine = run(2, 2.0 * step), run(2, step)
    if coarse is None or fine is None:
        return fine, "implicit"
    return 2.0 * fine - coarse, "implicit"


def check_life(m: Any, name: str, seconds: float, row: dict[str, Any]) -> None:
    """Run the model in gpusim and in MuJoCo for some seconds, from the keyframe "home" or the first keyframe."""
    import mujoco as mj

    keys = [mj.mj_id2name(m, mj.mjtObj.mjOBJ_KEY, k) or f"key{k}" for k in range(m.nkey)]
    pose = next((k for k in keys if "home" in k), keys[0] if keys else None)
    started = time.process_time()
    builder, report = import_model(Compiled(mj, m, name), Options(), pose)
    row["import_s"] = round(time.process_time() - started, 2)
    row["exact"] = report.exact
    row["findings"] = [[f.severity, f.sentence] for f in report.findings]
    row.update(bodies=len(builder.bodies), shapes=len(builder.shapes), pairs=len(builder.pairs))
    if not builder.bodies:
        row.update(healthy=True, gap=0.0, ran_s=0.0)
        return
    row.update(run(builder, seconds))
    moving = bodies_of(m, report, builder)
    heights = {x.label: row["heights"][i] for i, x in enumerate(builder.bodies)}
    del row["heights"]
    key = keys.index(pose) if pose is not None else None
    height = float(np.mean([heights[x] for x in moving.values()])) if moving else 0.0
    compare_heights(m, key, list(moving), height, row)


def compare_heights(m: Any, key: int | None, bodies: list[int], height: float, row: dict[str, Any]) -> None:
    """Add the mean height of the bodies in MuJoCo, and its uncertainty, to the results.

    MuJoCo runs with the contact settings of the file, and with rigid contacts.
    """
    m.opt.timestep = min(float(m.opt.timestep), LIFE_STEP)
    seconds, started = row["ran_s"], time.process_time()
    first = mujoco_run(m, key, seconds)
    spent = time.process_time() - started
    row["mujoco_us"] = round(1e6 * spent * m.opt.timestep / max(seconds, 1e-9), 1)
    if not bodies or not np.isfinite(first.xpos).all():
        return
    level = float(first.xpos[bodies, 2].mean())
    row.update(height=height, mujoco_height=level, mujoco_warnings=int(sum(w.number for w in first.warning)))
    if spent > MUJOCO_CPU_SECONDS:
        return
    row["mujoco_spread"] = _spread(m, key, seconds, bodies, level)
    make_rigid(m)
    level = float(mujoco_run(m, key, seconds).xpos[bodies, 2].mean())
    if np.isfinite(level):
        row.update(rigid_height=level, rigid_spread=_spread(m, key, seconds, bodies, level))


def _spread(m: Any, key: int | None, seconds: float, bodies: list[int], level: float) -> float:
    """Return the maximum change (m) of MuJoCo's height for half the time step or for other initial coordinates."""
    variants = [mujoco_run(m, key, seconds, split=2), *(mujoco_run(m, key, seconds, seed=seed) for seed in (1, 2))]
    return float(np.max(np.abs([d.xpos[bodies, 2].mean() - level for d in variants])))


def make_rigid(m: Any) -> None:
    """Make MuJoCo's contacts, limits, dry friction and equalities as rigid as the time step allows.

    The time step is a quarter of gpusim's.
    """
    import mujoco as mj

    m.opt.timestep = 0.25 * LIFE_STEP
    m.opt.cone, m.opt.impratio = int(mj.mjtCone.mjCONE_ELLIPTIC), 100.0
    for name in ("geom_sol", "pair_sol", "jnt_sol", "dof_sol", "eq_sol", "tendon_sol{}_lim", "tendon_sol{}_fri"):
        pattern = name if "{" in name else name + "{}"
        getattr(m, pattern.format("ref"))[:] = (2.0 * m.opt.timestep, 1.0)
        getattr(m, pattern.format("imp"))[:] = (0.99, 0.999, 1e-4, 0.5, 2.0)


def mujoco_run(m: Any, key: int | None, seconds: float, split: int = 1, seed: int | None = None) -> Any:
    """Run MuJoCo from a keyframe or qpos0. ``split`` divides the time step.

    With ``seed``, all coordinates start with a random offset of NUDGE or -NUDGE.
    """
    import mujoco as mj

    d = mj.MjData(m)
    if key is not None:
        mj.mj_resetDataKeyframe(m, d, key)
    if seed is not None:
        mj.mj_integratePos(m, d.qpos, np.random.default_rng(seed).choice((-NUDGE, NUDGE), m.nv), 1.0)
    step = float(m.opt.timestep)
    m.opt.timestep = step / split
    mj.mj_step(m, d, round(seconds / m.opt.timestep))
    m.opt.timestep = step
    mj.mj_kinematics(m, d)
    return d


def run(builder: gpusim.ModelBuilder, seconds: float) -> dict[str, Any]:
    """Run a model on one thread. Return its health, joint gap, time per step and final heights."""
    config = gpusim.SolverConfig(dt=LIFE_STEP)
    sim = gpusim.Simulation(builder.finalize(), backend="native", threads=1, config=config)
    sim.step(1)
    steps, done, cpu = round(seconds / LIFE_STEP), 1, 0.0
    while done < steps and cpu < LIFE_CPU_SECONDS and bool(np.all(sim.health())):
        started, count = time.process_time(), min(50, steps - done)
        sim.step(count)
        done, cpu = done + count, cpu + time.process_time() - started
    row: dict[str, Any] = {
        "ran_s": round(done * LIFE_STEP, 3),
        "us_per_step": round(1e6 * cpu / max(done - 1, 1), 1),
        "healthy": bool(np.all(sim.health())),
        "gap": float(np.max(sim.read("sim.joint_drift_peak"))),
        "heights": [float(np.asarray(sim.read(f"body.{x.label}.position"))[0][2]) for x in builder.bodies],
    }
    if not row["healthy"]:
        row["health"] = sim.health_report()[:300]
    return row


def check_life_alone(path: Path, seconds: float) -> dict[str, Any]:
    """Return the results of a file that MuJoCo cannot read."""
    try:
        builder, report = gpusim.load(path)
    except gpusim.ModelError as error:
        if "has no rigid body" not in str(error):
            raise
        return {"not_compiled": str(error)}
    if not builder.bodies:
        return {"not_compiled": "it has no moving body"}
    row = run(builder, seconds)
    row.pop("heights")
    row.update(exact=report.exact, findings=[[f.severity, f.sentence] for f in report.findings])
    return row


def check(path: Path, seconds: float) -> dict[str, Any]:
    """Return the results of one file."""
    row: dict[str, Any] = {}
    if path.suffix != ".xml":
        return check_life_alone(path, seconds)
    import mujoco as mj

    mj.set_mju_user_warning(lambda text: None)

    try:
        original = mj.MjModel.from_xml_path(str(path))
    except ValueError as error:
        return {"not_compiled": " ".join(str(error).split())[:160]}

    def compiled() -> Any:
        return copy.copy(original)

    m = original
    row.update(nv=int(m.nv), file_mass=_moving_mass(m))
    rng = np.random.default_rng(7)
    stages = [("life", lambda: check_life(compiled(), path.name, seconds, row))]
    if m.nv:
        stages.append(("kinematics", lambda: check_kinematics(compiled(), path.name, rng, row)))
        stages.append(("passive", lambda: check_passive(compiled(), path.name, rng, row) if row.get("exact") else None))
    for stage, job in stages:
        try:
            job()
        except Exception as error:
            row[f"{stage}_error"] = f"{type(error).__name__}: {error}"[:300]
    return row


def _moving_mass(m: Any) -> float:
    """Return the mass of all bodies with joints, kg."""
    moves = [int(m.body_weldid[b]) != 0 and m.body_mocapid[m.body_weldid[b]] < 0 for b in range(m.nbody)]
    return float(m.body_mass[moves].sum())


def limit_time(seconds: float) -> None:
    """End the current stage of the check when the process has used ``seconds`` of processor time.

    After this time, all later stages end immediately.
    """

    def end(number: int, frame: Any) -> None:
        raise TimeoutError(f"took more than {seconds:g} s of processor time")

    signal.signal(signal.SIGXCPU, end)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(2.0 * seconds)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) > 3:
        limit_time(float(sys.argv[3]))
    print(json.dumps(check(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 5.0)))
