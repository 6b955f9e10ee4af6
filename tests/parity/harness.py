from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import Simulation, SolverConfig
from gpusim.backends.native.backend import NativeBackend
from gpusim.reference.joints import prepare
from gpusim.reference.solve import colored_solve, direct_solve, positions
from gpusim.reference.step_buffers import StepBuffers
from gpusim.solver import schedule
from gpusim.solver.step import run_stage
from gpusim.typing import Array

from .machines import machine_model, moving_state, scatter
from .stages import BY_NAME, UPDATES, Made, Reference, made, written

WORLDS = 3
OF_CONTACTS = {"broad_phase", "narrow_phase", "color_contacts", "prepare_contacts", "relax"}
TRIED = (*schedule.TRIAL, *schedule.SUBSTEP[len(schedule.IMPULSES) :])
STAGES = [stage.name for stage in schedule.stages(TRIED) if stage.name not in OF_CONTACTS]
POISON = {"f": np.nan, "i": 1 << 29}


@dataclass
class Outcome:
    stage: str
    name: str
    expected: Array
    got: Array
    inputs: dict[str, Made]


def make_pair(seed: int, dtype: str, **config: Any) -> tuple[Simulation, Simulation]:
    sims = []
    for backend in ("numpy", "native"):
        sim = Simulation(
            machine_model(seed), WORLDS, backend=backend, dtype=dtype, config=SolverConfig(**config), launch="staged"
        )
        scatter(sim, seed)
        sim.backend.memory.state.restore(moving_state(seed, WORLDS), np.arange(WORLDS))
        sim.invalidate()
        sims.append(sim)
    # Restoring rounds to the simulation's numbers; the reference replaces its actuators' arrays, so they keep float64.
    for group in sims[0].state.groups:
        group.state = {name: array.astype(sims[0].backend.work.real) for name, array in group.state.items()}
    return sims[0], sims[1]


class Walk:
    def __init__(self, reference: Simulation, native: Simulation, h: float) -> None:
        assert isinstance(native.backend, NativeBackend)
        self.reference, self.native, self.kernels, self.h = Reference(reference), native, native.backend, h
        config = reference.config
        self.direct, self.semi_implicit = config.joint_solver == "direct", config.scheme == "semi_implicit"
        self.known: dict[str, Made] = {}
        reference.backend.work.h = h  # type: ignore[attr-defined]
        self._before: StepBuffers = copy.copy(reference.backend.work)
        self._moved: list[dict[str, Array]] = []

    def stages(self) -> list[str]:
        skipped = "positions" if self.semi_implicit else "split_impulses"
        return [s for s in STAGES if s != skipped]

    def start(self) -> Iterator[Outcome]:
        names = list(self.kernels.layout.fields)
        self._poison(names)
        self.kernels.run_stage("start", self.h)
        self.known = self.reference.state()
        for name, (array, _) in self.known.items():
            yield self._outcome("start", name, array, None)
        for name in ("jacobian", "bias", "overflow_change"):
            view = self.kernels.slab_array(name)
            yield self._outcome("start", name, np.zeros_like(view), None)

    def stage(self, stage: str) -> Iterator[Outcome]:
        self._load()
        writes = written(self.kernels, stage)
        self._poison(writes - set(UPDATES.get(stage, ())))
        inputs, before = dict(self.known), self._snapshot()
        self._before, self._moved = _work_copy(self.reference.w), []
        with np.errstate(all="ignore"):
            run_stage(self.reference.sim.backend.work, BY_NAME[stage])  # type: ignore[arg-type]
        results = made(self.reference, stage, writes)
        self.kernels.run_stage(stage, self.h)
        self._check_untouched(stage, before)
        self.known |= results
        for name, (array, mask) in results.items():
            yield self._outcome(stage, name, array, mask, inputs)

    def end(self) -> Iterator[Outcome]:
        self._load()
        for array in self.native.state.variables().values():
            array[...] = POISON[array.dtype.kind]
        self.kernels.run_stage("end", self.h)
        assert not self.kernels.read_health().any()
        state = Reference(self.native).state()
        for name, (array, _) in state.items():
            # The reference keeps its actuators' variables in float64.
            yield Outcome("end", name, self.known[name][0].astype(array.dtype), array, {})

    def movement(self, outcome: Outcome) -> Array:
        total = np.zeros(WORLDS)
        self._moved = self._moved or [self._results(outcome.stage, seed) for seed in range(8)]
        for results in self._moved:
            result = results[outcome.name if outcome.stage == "solve" else ""]
            with np.errstate(invalid="ignore"):
                change = np.abs(result.reshape(WORLDS, -1) - outcome.expected.reshape(WORLDS, -1))
            total = np.maximum(total, np.nan_to_num(change).max(axis=1, initial=0.0))
        return total

    def _results(self, stage: str, seed: int) -> dict[str, Array]:
        again = _shaken(self._before, seed)
        if stage != "solve":
            return {"": positions.split_impulse_velocity(again)}
        with np.errstate(all="ignore"):
            (direct_solve if self.direct else colored_solve).solve(again)
        results = made(Reference(self.reference.sim, again), stage, written(self.kernels, stage))
        return {name: np.array(array) for name, (array, _) in results.items()}

    def _outcome(
        self, stage: str, name: str, array: Array, mask: Array | None, inputs: dict[str, Made] | None = None
    ) -> Outcome:
        got = self.kernels.slab_array(name).reshape(array.shape)
        if mask is not None:
            array, got = np.where(mask, array, 0), np.where(mask, got, 0)
        return Outcome(stage, name, array, np.array(got), inputs or {})

    def _load(self) -> None:
        for name, (array, mask) in self.known.items():
            view = self.kernels.slab_array(name)
            np.copyto(view, array.reshape(view.shape), casting="same_kind", where=True if mask is None else mask)

    def _poison(self, names: Any) -> None:
        for name in names:
            view = self.kernels.slab_array(name)
            keep = ~self.reference.row_mask if name == "bias" and self.known else np.zeros((), bool)
            if name == "jacobian" and self.known:
                keep = view == 0.0
            np.copyto(view, POISON[view.dtype.kind], where=~keep)

    def _snapshot(self) -> dict[str, bytes]:
        return {name: self.kernels.slab_array(name).tobytes() for name in self.kernels.layout.fields}

    def _check_untouched(self, stage: str, before: dict[str, bytes]) -> None:
        allowed = written(self.kernels, stage)
        changed = {name for name, old in before.items() if self.kernels.slab_array(name).tobytes() != old}
        assert changed <= allowed, (stage, sorted(changed - allowed))


def _work_copy(w: StepBuffers) -> StepBuffers:
    twin = copy.copy(w)
    twin.scratch = {name: copy.copy(value) for name, value in w.scratch.items()}
    for name in ("bias", "element_bias", "coupled_impulse", "coupled_slope", "coupled_gamma", "coupled_target"):
        setattr(twin, name, getattr(w, name).copy())
    if hasattr(w, "law"):
        twin.law = copy.copy(w.law)
        twin.law.terms = dict(w.law.terms)
    return twin


def _shaken(w: StepBuffers, seed: int) -> StepBuffers:
    twin = _work_copy(w)
    rng = np.random.default_rng(seed)
    noise = 16.0 * np.finfo(w.real).eps * rng.uniform(-1.0, 1.0, w.jacobian.shape)
    twin.jacobian = (w.jacobian * (1.0 + noise)).astype(w.real)
    twin.mass_jacobian = prepare._mass_jacobian(twin, twin.inertia_inverse_effective)
    return twin
