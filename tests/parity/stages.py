"""Results of every stage, by the names of the kernels' arrays.

``made(sim, stage)`` returns the results of the NumPy reference. ``written`` returns the names of the arrays that the
kernels write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gpusim import Simulation
from gpusim.actuators.hydraulic.circuit import MAX_CONSUMERS, MAX_NODES
from gpusim.backends.kinds import kinds_of
from gpusim.backends.native.backend import NativeBackend
from gpusim.backends.tables import slots_taken
from gpusim.model.fields import WORK_FIELDS, state_fields
from gpusim.reference.step_buffers import StepBuffers
from gpusim.solver import schedule
from gpusim.solver.launch_plan import Plan, Repeat
from gpusim.solver.nodes import Run, Sizes, reached
from gpusim.solver.phases import PHASES
from gpusim.typing import Array

BY_NAME = {stage.name: stage for stage in schedule.stages()}
Made = tuple[Array, Array | None]

NAMED = {field.name for field in WORK_FIELDS} & set(StepBuffers.__annotations__) - {"delta"}
OF_WORK = ("prepare", "actuate", "kick", "solve", "relax")
UPDATES: dict[str, tuple[str, ...]] = {
    "prepare": ("angle", "coupling_offset", "tension_stiffness"),
    "actuate": ("limit_left", "limit_now", "limit_rate"),
    "solve": (
        "twist", "spin_peak", "actuator_term",
        "motor_scratch", "cylinder_scratch", "strut_scratch", "joint_strut_scratch",
        "overflow_change", "law_impulse", "law_slope", "clamped_impulse", "clamped_slope", "clamped_bound",
        "coupled_gamma", "coupled_impulse", "coupled_slope", "coupled_target", "oil_circuit_guess",
        "oil_circuit_matrix", "oil_circuit_reply", "oil_circuit_speed", "oil_valve_scratch",
    ),
    "sense": ("joint_slack",),
    "split_impulses": ("overflow_change",),
    "advance_actuators": (
        "motor_state", "cylinder_state", *(f"oil_{k}_state" for k in ("node", "valve", "edge", "pump", "cylinder")),
        "void_peak", "jump_peak",
        "motor_scratch", "cylinder_scratch", "strut_scratch", "joint_strut_scratch",
        "oil_valve_scratch", "oil_circuit_guess", "oil_circuit_matrix", "oil_circuit_reply", "oil_circuit_speed",
    ),
    "drift": (
        "position", "orientation", "angle", "midpoint", "time", "step_before", "posed", "not_converged",
        "linear_velocity", "angular_momentum",
        "velocity_before", "velocity_before_last", "kick_before", "kick_before_last",
        "joint_drift_peak", "joint_tilt_peak", "loop_gap", "loop_open",
        "contact_streak", "inexact", "impulse",
    ),
    "positions": (
        "position", "orientation", "overflow_change",
        # only worlds with dependent rows, or whose loops do not close at once, are factored again
        "angle", "coupling_offset", "coupling_value", "diagonal", "element_value", "element_vectors", "jacobian",
        "mass_blocks", "mass_jacobian", "gamma", "softening", "softens", "weak", "factored_gamma",
        "scale", "scaled_diagonal", "factor_blocks", "inverse", "lower",
    ),
}  # fmt: skip


def written(kernels: NativeBackend, stage: str) -> set[str]:
    """Return the names of the arrays that the kernels of a stage write."""
    names: set[str] = set()
    for phase in planned(kernels.plan.stages[stage], kernels.plan.sizes):
        names |= set(PHASES[phase].writes.split()) if phase in PHASES else set()
    for kind in kernels.kinds:
        for part in ("state", "scratch"):
            names |= {f"{kind.name}_{part}"} if f"actuator_{part}" in names else set()
        names |= {f.name for f in kind.kernel_fields} if "actuator_scratch" in names else set()
    return names & set(kernels.layout.fields)


def planned(plan: Plan, sizes: Sizes) -> Iterator[str]:
    for part in plan:
        if isinstance(part, Repeat):
            yield from planned(part.body, sizes)
            continue
        for launch in part:
            whole = BY_NAME.get(launch.phase.removesuffix("_world"))
            if whole is None:
                yield launch.phase
            else:
                yield from (node.phase.name for node in reached(whole, sizes) if isinstance(node, Run))


def _flat(array: Array, like: tuple[int, ...]) -> Array:
    return np.asarray(array).reshape(array.shape[0], *like)


class Reference:
    def __init__(self, sim: Simulation, work: StepBuffers | None = None) -> None:
        self.sim, self.w, self.t = sim, work or sim.backend.work, sim.model.topology
        self.n = sim.num_worlds
        self.rows = self.t.num_constraints * self.t.block
        used = np.zeros(self.rows, bool)
        used[self.t.element_row_index] = True
        used[self.t.coupling.row] = True
        self.row_mask = used

    def state(self) -> dict[str, Made]:
        seen = {f.name for f in state_fields([group.type for group in self.sim.state.groups])}
        made: dict[str, Made] = {k: (v, None) for k, v in self.sim.state.arrays.items() if k in seen}
        made["impulse"] = (_flat(made["impulse"][0], (self.t.num_constraints, self.t.block)), None)
        for group in self.sim.state.groups:
            if group.type.variables:
                packed = np.stack([group.state[v.name] for v in group.type.variables], axis=1)
                made[f"{group.type.name}_state"] = (_flat(packed, (-1,)), None)
        return {name: (np.array(array), mask) for name, (array, mask) in made.items()}

    def work_of(self, names: set[str]) -> dict[str, Made]:
        t, shape = self.t, (self.t.num_constraints, self.t.slots, self.t.block, 1)
        sides = np.zeros(shape, bool)
        sides[:, :2] = self.row_mask.reshape(-1, 1, t.block, 1)
        coupled = np.zeros(self.rows, bool)
        coupled[t.coupling.row] = True
        sides |= coupled.reshape(-1, 1, t.block, 1)
        law = t.row_used[t.coupled_constraint]
        masks = {"jacobian": sides.reshape(-1, t.block, 1), "bias": self.row_mask}
        masks |= {"coupled_impulse": law, "coupled_slope": law[:, :, None] & law[:, None, :]}
        return {name: (getattr(self.w, name), masks.get(name)) for name in names & NAMED}

    def prepare(self) -> dict[str, Made]:
        return {"element_vectors": self._element_vectors()}

    def _element_vectors(self) -> Made:
        w, s = self.w, self.w.scratch
        out, mask = np.zeros((self.n, self.t.num_elements, 14), w.real), np.zeros((self.t.num_elements, 14), bool)
        dots, spins, lines = w.layout.dots, w.layout.spins, w.layout.lines
        if dots.stop > dots.start:
            parts = [*np.split(s["dot.vectors"], 3, axis=1), s["dot.sep"]]
            out[:, dots, :12], mask[dots, :12] = np.concatenate(parts, axis=-1), True
        if spins.stop > spins.start:
            out[:, spins, :3], mask[spins, :3] = s["spin.u"], True
        if lines.stop > lines.start:
            arms = s["line.arms"]
            parts = [arms[..., 0], arms[..., 1], s["line.sep"], s["line.unit"], s["line.length"][..., None]]
            out[:, lines, :13], mask[lines, :13] = np.concatenate(parts, axis=-1), True
        return out, mask

    def law(self) -> dict[str, Made]:
        law = self.w.law
        made: dict[str, Made] = {f"law_{part}": (getattr(law, part), None) for part in ("impulse", "slope", "friction")}
        groups = [g for g in self.sim.state.groups if g.clamp_index is not None]
        # Terms stand axis by axis; where none has a limit now, the reference has none.
        places = sorted((int(a), int(p)) for g in groups for a, p in zip(g.axis, g.clamp_index, strict=True))
        for name in ("impulse", "slope", "bound"):
            columns = [
                getattr(law.clamped_terms[p], name)[:, a] if law.clamped_terms else np.zeros(self.n) for a, p in places
            ]
            made[f"clamped_{name}"] = (
                np.array(columns).reshape(-1, self.n).T.astype(law.impulse.dtype),
                None,
            )
        made["actuator_term"] = self._shares()
        return made | self._scratch()

    def _shares(self) -> Made:
        law, columns = self.w.law, []
        for kind in kinds_of(self.sim.model):
            if "evaluate" not in kind.kernel or kind.name not in self.w.groups:
                continue
            own = np.zeros((self.n, len(self.w.groups[kind.name].specs), 8))
            if kind.name in law.terms:
                own[..., 0], own[..., 1] = law.terms[kind.name][1:]
            if kind.name in law.clamped:
                own[..., 2:5] = np.stack(law.clamped[kind.name][2], axis=-1)
            columns.append(own)
        # Friction and stops of a share go into law_friction and the velocity bounds at once.
        mask = np.broadcast_to(np.arange(8) < 5, (sum(c.shape[1] for c in columns), 8))
        return np.concatenate([np.zeros((self.n, 0, 8)), *columns], axis=1), mask

    def _scratch(self) -> dict[str, Made]:
        s, made = self.w.scratch, {}
        if "motor.law" in s:
            made["motor_scratch"] = (np.concatenate(list(s["motor.law"][:3]), axis=1), None)
        if "cylinder.oil" in s:
            opened = self.w.circuit.opened
            count = s["cylinder.oil"].shape[1]
            free = s.get("cylinder.free", np.zeros((5, self.n, count)))
            columns = [
                *s["cylinder.spool"], *opened[0], *opened[1], s["cylinder.oil"], *s["cylinder.compliance"],
                *s["cylinder.guess"], *s["cylinder.lines"][0], *s["cylinder.lines"][1], *s["cylinder.cushion"], *free,
                self.w.circuit.speed,
            ]  # fmt: skip
            wide = [np.broadcast_to(c, (self.n, count)) for c in columns]
            mask = np.ones(len(wide) * count, bool)
            mask[-6 * count : -count] = "cylinder.free" in s
            made["cylinder_scratch"] = (np.concatenate(wide, axis=1), mask)
        for kind in ("strut", "joint_strut"):
            if f"{kind}.guess" in s:
                made[f"{kind}_scratch"] = (np.concatenate(list(s[f"{kind}.guess"]), axis=1), None)
        if "oil_valve.spool" in s:
            columns = [*s["oil_valve.spool"], *s["oil_valve.opened"]]
            made["oil_valve_scratch"] = (np.concatenate(columns, axis=1), None)
        return made | self._circuits()

    def _circuits(self) -> dict[str, Made]:
        solves = {k: x for k, x in self.w.scratch.items() if k.startswith("oil_circuit.")}
        count = sum(group.type.name == "oil_circuit" and len(group.specs) for group in self.sim.state.groups)
        shapes = {"guess": (MAX_NODES,), "speed": (MAX_CONSUMERS,), "reply": (MAX_NODES, MAX_CONSUMERS)}
        arrays = {name: np.zeros((self.n, count, *shape)) for name, shape in shapes.items()}
        masks = {name: np.zeros((count, *shape), bool) for name, shape in shapes.items()}
        for key, solve in solves.items():
            k = int(key.rpartition(".")[2])
            for name, array in arrays.items():
                value = getattr(solve.fitted, name)
                at = (k, *map(slice, value.shape[1:]))
                array[(slice(None), *at)] = value
                masks[name][at] = True
        made: dict[str, Made] = {f"oil_circuit_{name}": (array, masks[name]) for name, array in arrays.items()}
        shape = count, MAX_NODES, MAX_NODES
        return made | {"oil_circuit_matrix": (np.zeros((self.n, *shape)), np.zeros(shape, bool))}

    def actuate(self) -> dict[str, Made]:
        return self.law() | {name: (getattr(self.w.law, name), None) for name in ("velocity_lower", "velocity_upper")}

    def solve(self) -> dict[str, Made]:
        return self.law() | (self._factor() if self.w.config.direct else self._sweeps())

    def _factor(self) -> dict[str, Made]:
        factor, b = self.w.factor, self.t.block
        lower = np.concatenate([np.zeros((self.n, 0, b, b)), *factor.lower], axis=1)
        scale = np.ones((self.n, self.rows)) if factor.scale is None else _flat(factor.scale, (-1,))
        return {"inverse": (factor.inverse, None), "lower": (lower, None), "scale": (scale, None)}

    def _sweeps(self) -> dict[str, Made]:
        w, t = self.w, self.t
        inverse = np.zeros((self.n, t.num_constraints, t.block, t.block), w.real)
        axes = t.axis_row.size
        reaction = np.zeros((self.n, axes, t.block), w.real)
        motion = np.zeros((self.n, axes, t.slots, 6), w.real)
        slots = slots_taken(t)[w.layout.axis_constraint]
        taken = np.broadcast_to((np.arange(t.slots) < slots[:, None])[..., None], motion.shape[1:])
        for batch in w.batches:
            inverse[:, batch.constraints] = batch.inverse
            inverse[:, batch.constraints[batch.coupled.k]] = batch.coupled.inverse
            for step in batch.axes:
                reaction[:, step.axis] = step.impulse
                motion[:, step.axis] = step.motion.reshape(self.n, -1, t.slots, 6)
        # Rows that do not exist are neither written nor read.
        used = t.row_used[w.layout.axis_constraint]
        return {
            "inverse": (inverse, None), "axis_reaction": (reaction, used), "axis_motion": (motion, taken),
        }  # fmt: skip

    def forward(self) -> dict[str, Made]:
        w = self.w
        kinds = [kind for kind in kinds_of(self.sim.model) if "evaluate" in kind.kernel and kind.name in w.groups]
        shares = [w.term_forces.get(k.name, np.zeros((self.n, len(w.groups[k.name].specs)))) for k in kinds]
        force = np.concatenate([np.zeros((self.n, 0)), *shares], axis=1)
        return {"actuator_term_force": (force, None)}

    def split_impulses(self) -> dict[str, Made]:
        return {"displacement": (self.w.displacement, None)}

    def state_of(self, names: set[str]) -> dict[str, Made]:
        return {name: made for name, made in self.state().items() if name in names}


def made(reference: Reference, stage: str, names: set[str]) -> dict[str, Made]:
    read: Callable[[], dict[str, Made]] | None = getattr(reference, stage, None)
    results = reference.state_of(names) | (reference.work_of(names) if stage in OF_WORK else {})
    results |= read() if read is not None else {}
    return {name: (np.array(array), mask) for name, (array, mask) in results.items()}
