"""Compare an imported MJCF or URDF file with MuJoCo: poses, mass matrix, motion."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np

from gpusim import rotations
from gpusim.builder.builder import ModelBuilder
from gpusim.description.config import SolverConfig
from gpusim.errors import GpusimError, ModelError
from gpusim.importers.mjcf_parts.mjcf_source import compile_model
from gpusim.importers.report import ImportReport
from gpusim.machine_files.model_files import load_model
from gpusim.robotics import Tree
from gpusim.simulation import Simulation
from gpusim.typing import Array

POSTURES, SECONDS, STEP = 3, 0.5, 1e-3
POSE_LIMIT, MASS_LIMIT, MOTION_LIMIT = 1e-9, 1e-5, 1e-4
"""Tolerances: poses (m, or sine of an angle), mass matrix (relative), motion (m, or sine of an angle)."""
_FREE, _BALL, _HINGE = 0, 1, 3
_FILES = (".xml", ".mjcf", ".urdf")


@dataclass
class Comparison:
    """Differences between gpusim and MuJoCo. Values of skipped comparisons are None (see ``skipped``).

    Attributes:
        bodies: number of moving bodies that both simulators have.
        poses: maximum difference of body positions (m) and of body axes (components), at random postures.
        mass_matrix: maximum difference of the entries of the mass matrices, relative to the diagonal entries.
        motion: like ``poses``, after a simulation of 0.5 s without contacts, limits, friction and actuators.
        skipped: reasons for the missing comparisons.
    """

    bodies: int = 0
    poses: float | None = None
    mass_matrix: float | None = None
    motion: float | None = None
    skipped: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """Return one text for each difference that is too large."""
        limits = (("poses", POSE_LIMIT), ("mass_matrix", MASS_LIMIT), ("motion", MOTION_LIMIT))
        differences = [(name, getattr(self, name), limit) for name, limit in limits]
        return [
            f"{name.replace('_', ' ')} differ by {value:.3g}, more than {limit:g}"
            for name, value, limit in differences
            if value is not None and not value <= limit
        ]


def compare_with_mujoco(path: str | Path, seed: int = 0) -> Comparison:
    """Load a file in gpusim and MuJoCo, and compare both models.

    Args:
        path: path of an MJCF or URDF file.
        seed: seed of the random postures.

    Raises:
        ModelError: MuJoCo is not installed, gpusim cannot read the file, or the file has another format.
    """
    if Path(path).suffix.lower() not in _FILES:
        raise ModelError(f"--against mujoco: {str(path)!r} is not a {', '.join(_FILES)} file; leave the option out")
    mj, result = _mujoco(), Comparison()
    builder, report = load_model(path, collisions=False, visuals=False)
    try:
        m = _read(mj, Path(path))
    except Exception as error:  # mujoco raises ValueError and FatalError
        result.skipped.append(f"everything: MuJoCo cannot read the file ({error!s:.200})")
        return result
    try:
        pair = _Pair(mj, m, _unconstrained(builder), report)
    except ModelError as error:  # for example, ropes are not coordinates of the tree
        result.skipped.append(f"poses, mass matrix and motion: {error}")
        return result
    result.bodies = len(pair.bodies)
    missing = pair.missing()
    if not pair.bodies or missing:
        reason = f"{', '.join(missing[:3])} of MuJoCo's joints have no counterpart in gpusim" if missing else ""
        result.skipped.append(f"poses, mass matrix and motion: {reason or 'nothing in the file moves'}")
        return result
    rng = np.random.default_rng(seed)
    result.poses, result.mass_matrix = pair.kinematics(rng)
    if m.neq or pair.tree.loop_rows or builder.couplings:
        result.skipped.append("motion: the file has equality constraints")
        return result
    try:
        result.motion = pair.motion(rng)
    except GpusimError as error:
        result.skipped.append(f"motion: {error}")
    return result


def _read(mj: ModuleType, path: Path) -> Any:
    """Return MuJoCo's model of a file. The model of a URDF file has no meshes."""
    if path.suffix.lower() != ".urdf":
        return compile_model(path).model
    root = ElementTree.fromstring(path.read_bytes())
    for link in root.iter("link"):
        for name in ("visual", "collision"):
            for element in link.findall(name):
                link.remove(element)
    return mj.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError:
        raise ModelError('--against mujoco: mujoco is not installed; pip install "gpusim[mjcf]"') from None
    module: ModuleType = mujoco
    return module


def _unconstrained(builder: ModelBuilder) -> ModelBuilder:
    """Return a copy without couplings, limits and dry friction. The only remaining actuators are springs and forces."""
    reduced = copy.copy(builder)
    reduced.couplings = []
    springs = [spec for spec in builder.actuators if spec.kind in ("spring", "torsion_spring", "force")]
    reduced.actuators = springs
    reduced.joints = copy.deepcopy(builder.joints)
    for joint in reduced.joints:
        for name, value in (("limit_lower", -math.inf), ("limit_upper", math.inf), ("friction", 0.0)):
            if name in joint.params:
                joint.params[name] = np.full_like(joint.params[name], value)
    return reduced


def _label_of(name: str) -> str:
    return name.replace(".", "_").replace(" ", "_")


class _Pair:
    """One model, loaded in gpusim and in MuJoCo.

    Attributes:
        m: model of MuJoCo.
        builder: gpusim's model, with only bodies, joints, springs and forces.
        tree: the joints of ``builder``.
        bodies: dict from MuJoCo's body index to the body's label, for bodies that exist in both models.
        joints: dict from MuJoCo's joint index to the joint's label.
    """

    def __init__(self, mj: ModuleType, m: Any, builder: ModelBuilder, report: ImportReport) -> None:
        self.mj, self.m, self.builder, self._report = mj, m, builder, report
        self.model = builder.finalize()
        self.tree = Tree(self.model)
        labels = {body.label for body in builder.bodies if not body.kinematic}
        self.bodies = {k: name for k, name in self._labels("BODY", range(1, m.nbody)).items() if name in labels}
        self.joints = self._labels("JOINT", range(m.njnt))

    def _labels(self, kind: str, indices: range) -> dict[int, str]:
        """Return the labels of imported elements: the name in the file, or the element type and a number."""
        labels, number = dict[int, str](), getattr(self.mj.mjtObj, f"mjOBJ_{kind}")
        for k in indices:
            name = self.mj.mj_id2name(self.m, number, k) or f"{kind.lower()}{k}"
            while self.mj.mj_name2id(self.m, number, name) not in (-1, k):
                name += "_"
            label = _label_of(name)
            while label in labels.values():
                label += "_"
            labels[k] = label
        return labels

    def _carrier(self, j: int) -> tuple[str, int] | None:
        """Return (label, axis) of the gpusim joint that corresponds to MuJoCo's joint ``j``, or None."""
        m = self.m
        if m.jnt_type[j] == _FREE:
            label = self.bodies.get(int(m.jnt_bodyid[j]))
            return (label, 0) if label in self.tree.carriers else None
        name = self.mj.mj_id2name(m, self.mj.mjtObj.mjOBJ_JOINT, j)
        info = self._report.joints.get(self.joints[j]) or self._report.joints.get(name)
        if info is None:
            return None
        label = self.builder.joints[info.index].label
        return (label, int(getattr(info, "axis", 0))) if label in self.tree.carriers else None

    def missing(self) -> list[str]:
        """Return the names of MuJoCo's joints that have no coordinate in gpusim's model."""
        return [f"'{label}'" for j, label in self.joints.items() if self._carrier(j) is None]

    def _random(self, rng: np.random.Generator) -> Array:
        """Return a random qpos: near the middle of the limits, or near qpos0 for joints without limits."""
        m, q = self.m, np.array(self.m.qpos0)
        for j in range(m.njnt):
            at, kind = int(m.jnt_qposadr[j]), int(m.jnt_type[j])
            if kind == _FREE:
                q[at : at + 3] += rng.uniform(-0.2, 0.2, 3)
                q[at + 3 : at + 7] += rng.uniform(-0.3, 0.3, 4)
            elif kind == _BALL:
                q[at : at + 4] += rng.uniform(-0.2, 0.2, 4)
            else:
                size = 0.5 if kind == _HINGE else 0.2
                lower, upper = sorted(m.jnt_range[j]) if m.jnt_limited[j] else (q[at] - size, q[at] + size)
                q[at] = 0.5 * (lower + upper) + rng.uniform(-1.0, 1.0) * min(0.45 * (upper - lower), size)
        self.mj.mj_normalizeQuat(m, q)
        return q

    def _posture(self, d: Any) -> tuple[Array, Array]:
        """Return gpusim's joint coordinates for ``d.qpos``, and the matrix T of the joint velocities: v = T qvel."""
        m, out = self.m, self.tree.start[0].copy()
        t = np.zeros((self.tree.freedoms, m.nv))
        for j in range(m.njnt):
            at, dof, kind = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j]), int(m.jnt_type[j])
            carrier = self._carrier(j)
            assert carrier is not None  # every coordinate has a joint of MuJoCo
            s, r, q = self.tree.slice(carrier[0]), self.tree.rate_slice(carrier[0]), d.qpos
            if kind == _FREE:
                out[s] = [*q[at : at + 3], *q[at + 4 : at + 7], q[at + 3]]
                t[r.start : r.start + 3, dof : dof + 3] = np.eye(3)
                t[r.start + 3 : r.stop, dof + 3 : dof + 6] = d.xmat[m.jnt_bodyid[j]].reshape(3, 3)
            elif kind == _BALL:
                out[s] = [*q[at + 1 : at + 4], q[at]]
                rotation = np.zeros(9)
                self.mj.mju_quat2Mat(rotation, q[at : at + 4])
                t[r, dof : dof + 3] = rotation.reshape(3, 3)
            else:
                out[s.start + carrier[1]] = q[at]
                t[r.start + carrier[1], dof] = 1.0
        return out, t

    def _difference(self, poses: Array, d: Any) -> float:
        """Return the maximum difference of body positions (m) and axes between ``poses`` and MuJoCo's data ``d``."""
        indices, matrices = list(self.bodies), rotations.matrix_from_quaternion(poses[:, 3:])
        moved = np.abs(poses[:, :3] - d.xpos[indices]).max()
        return float(max(moved, np.abs(matrices - d.xmat[indices].reshape(-1, 3, 3)).max()))

    def kinematics(self, rng: np.random.Generator) -> tuple[float, float]:
        """Return the maximum difference of poses, and of the mass matrix, between both models at random postures."""
        mj, m = self.mj, self.m
        d, pose_error, mass_error = mj.MjData(m), 0.0, 0.0
        for _ in range(POSTURES):
            d.qpos[:] = self._random(rng)
            mj.mj_fwdPosition(m, d)
            posture, t = self._posture(d)
            poses = self.tree.pose(posture, [f"body.{label}" for label in self.bodies.values()])[0]
            pose_error = max(pose_error, self._difference(poses, d))
            full = np.zeros((m.nv, m.nv))
            for k in range(m.nv):
                mj.mj_mulM(m, d, full[k], np.eye(m.nv)[k])
            ours = t.T @ self.tree.mass_matrix(posture)[0] @ t
            scale = np.sqrt(np.outer(np.diag(full), np.diag(full)))
            error = np.abs(ours - full) / np.maximum(scale, 1e-30)
            mass_error = max(mass_error, float(error.max(initial=0.0)))
        return pose_error, mass_error

    def motion(self, rng: np.random.Generator) -> float:
        """Simulate both models from a random posture at rest. Return the maximum difference of the final poses.

        Raises:
            ModelError: MuJoCo is unstable.
        """
        mj, m, disable_bits = self.mj, self.m, self.mj.mjtDisableBit
        m.opt.disableflags |= int(disable_bits.mjDSBL_CONSTRAINT) | int(disable_bits.mjDSBL_ACTUATION)
        m.opt.integrator, m.opt.timestep = int(mj.mjtIntegrator.mjINT_RK4), 0.1 * STEP
        m.opt.density = m.opt.viscosity = 0.0
        d = mj.MjData(m)
        d.qpos[:] = self._random(rng)
        mj.mj_kinematics(m, d)
        posture, _ = self._posture(d)
        for _ in range(round(SECONDS / m.opt.timestep)):
            mj.mj_step(m, d)
        mj.mj_kinematics(m, d)
        if not np.isfinite(d.xpos).all() or d.warning[mj.mjtWarning.mjWARN_BADQACC].number:
            raise ModelError("MuJoCo is unstable without its limits and contacts")
        sim = Simulation(self.model, config=SolverConfig(dt=STEP, substeps=2))
        sim.write_state(self._signals(posture))
        sim.step(round(SECONDS / STEP))
        read = [[sim.read(f"body.{b}.{name}")[0] for name in ("position", "orientation")] for b in self.bodies.values()]
        return self._difference(np.array([np.concatenate(pose) for pose in read]), d)

    def _signals(self, posture: Array) -> dict[str, Any]:
        """Return the posture as a dict (signal -> value) for ``sim.write_state``."""
        joints = {joint.label for joint in self.builder.joints}
        values: dict[str, Any] = {}
        for label in self.tree.carriers:
            values_of_joint = posture[self.tree.slice(label)]
            if label in self.bodies.values() and (label not in joints or values_of_joint.size == 7):
                values[f"body.{label}.position"], values[f"body.{label}.orientation"] = (
                    values_of_joint[:3],
                    values_of_joint[3:],
                )
            elif values_of_joint.size:
                values[f"joint.{label}.position"] = (
                    values_of_joint if values_of_joint.size > 1 else float(values_of_joint[0])
                )
        return values
