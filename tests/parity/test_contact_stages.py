"""Compare every stage of a step with contacts, as in test_stages.py.

The reference uses the kernels' manifolds, because its narrow phase is a different algorithm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.description.contact_record import unpack
from gpusim.reference.contacts.contact_rows import to_frame
from gpusim.reference.contacts.contact_tire import tires
from gpusim.solver.step import find_contacts, run_stage
from gpusim.typing import Array

from ..unit.collide.kernels import kernel_manifolds  # noqa: F401
from . import stages
from .contact_models import MODELS
from .harness import WORLDS, Outcome, Walk
from .stages import Made, Reference, written
from .test_stages import difference, greatest

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("kernel_manifolds")]

NAMES = (
    "ball_half", "slope_slides", "slope_sticks", "slope_papers", "stack", "heap", "pendulum_colored", "leg_colored",
    "leg_papers", "hunt_crossley", "volumetric", "disk_hertz", "disk_torques", "rolling_ball", "own_material",
    "tires", "tires_papers",
)  # fmt: skip
TOLERANCE = {"float64": 1e-11, "float32": 3e-5}
FLOOR = {"float64": 1e-5, "float32": 1e-3}
MADE: dict[str, str] = {
    "prepare_contacts": "frame arm friction rolling spinning restitution torque shear offset mass impulse gap push "
    "push_yield "
    "impact slip arm_before age passes response",
    "solve": "bias gamma impact push pushed carried impulse torque shear rolling camber tire_known tire_slope "
    "tire_stiffness tire_shares tire_kept tire_gain",
    "drift": "slip arm_before age",
    "relax": "bias gamma impact impulse torque shear",
}
WRITTEN = {
    "prepare_contacts": "arm response offset mass gap push push_yield impact passes",
    "solve": "bias gamma impact push pushed carried inverse_mass",
    "relax": "inverse_mass",
}
KEPT = ("contact_age", "contact_arm", "contact_impulse", "contact_slip", "pair_force", "pair_torque")
UPDATES = {
    "color_contacts": "pair_points",
    "prepare_contacts": "pair_guess",
    "relax": "twist solved linear_velocity angular_momentum axis_velocity axis_velocity_before velocity_lower "
    "velocity_upper actuator_term overflow_change law_impulse law_slope mode bias part_change last_change sweeps "
    "law_friction rate_next substep unconverged contact_residual_now",
    "solve": "pushing",
    "split_impulses": "displacement",
    "drift": "substep",
    "store_contacts": "contact_anchor pair_normal contact_mode",
}
STAGES = (
    "color_contacts", "prepare", "prepare_contacts", "actuate", "kick", "solve", "split_impulses", "advance_actuators",
    "drift", "relax", "store_contacts",
)  # fmt: skip


def make_pair(name: str, dtype: str) -> tuple[Simulation, Simulation]:
    builder, config = MODELS[name]()
    model, settings = builder.finalize(), SolverConfig(**config)
    sims = [
        Simulation(model, WORLDS, backend=b, dtype=dtype, config=settings, launch="staged") for b in ("numpy", "native")
    ]
    for sim in sims:
        sim.write("sim.gravity", np.array([[0.0, 0.0, -9.81], [0.3, -0.2, -9.7], [-0.5, 0.1, -9.9]]))
    sims[1].step(3)
    sims[0].backend.memory.state.restore(sims[1].state, np.arange(WORLDS))
    sims[0].invalidate()
    return sims[0], sims[1]


class Touching(Reference):
    def found(self) -> dict[str, Made]:
        c = self.w.contacts
        assert c is not None
        made = self.state() | {name: (c.arrays[name], None) for name in ("pair_bend", "forward_only", "substep")}
        return made | {"rotation": (self.w.rotation, None)}

    def color_contacts(self) -> dict[str, Made]:
        c, s = self.w.contacts, self.sim.state.arrays
        assert c is not None
        listed = np.arange(c.num_pairs) < s["pair_count"][:, None]
        return {
            "manifold_color": (c.manifold_color, listed),
            "touching": (c.touching, None),
            "body_parts": (np.maximum(c.body_parts, 1), c.body_parts > 0),
        }

    def work_of(self, names: set[str]) -> dict[str, Made]:
        return super().work_of(names - {"midpoint"})

    def solve(self) -> dict[str, Made]:
        pushing = self.w.contacts.pushing
        moved = np.broadcast_to(pushing[:, None, None] != 0, self.w.displacement.shape)
        made = {"pushing": (pushing, None), "displacement": (self.w.displacement, moved)}
        return made | (super().solve() if self.t.num_constraints else {})

    def relax(self) -> dict[str, Made]:
        assert self.w.contacts is not None
        return {"relaxing": (self.w.contacts.relaxing, None)}

    def store_contacts(self) -> dict[str, Made]:
        s = self.sim.state.arrays
        pairs = np.arange(s["pair_points"].shape[1]) < s["pair_count"][:, None]
        held = pairs[..., None] & (np.arange(4) < s["pair_points"][..., None])
        made: dict[str, Made] = {}
        for name in KEPT:
            mask = held if name.startswith("contact") else held.any(axis=-1)
            made[name] = (s[name], mask.reshape(*mask.shape, *(1,) * (s[name].ndim - mask.ndim)))
        return made

    def part(self, name: str) -> Array:
        m, s = self.w.touch.all, self.sim.state.arrays
        if name == "slip":
            slip = s["contact_slip"][m.world, m.pair].astype(self.w.real)
            return np.where(tires(m)[:, None, None], slip, to_frame(m, slip))
        if name == "arm_before":
            return s["contact_arm"][m.world, m.pair].reshape(-1, 4, 2, 3)
        return np.array(s["contact_age"][m.world, m.pair] if name == "age" else getattr(m, name))

    def is_real(self, values: Array) -> Array:
        m = self.w.touch.all
        mask = m.exists if values.shape[1:2] == (4,) else np.ones(values.shape[:1], bool)
        return np.broadcast_to(mask.reshape(*mask.shape, *(1,) * (values.ndim - mask.ndim)), values.shape)


class ContactWalk(Walk):
    reference: Touching

    def __init__(self, reference: Simulation, native: Simulation, h: float) -> None:
        super().__init__(reference, native, h)
        self.reference = Touching(reference)
        self.parts: dict[str, Array] = {}
        """Parts of the records as the reference has them, (n, ...)."""

    def search(self) -> None:
        list(self.start())
        backend = self.reference.sim.backend
        find_contacts(backend.work, self.h)  # type: ignore[arg-type]
        self.known = {name: (np.array(a), mask) for name, (a, mask) in self.reference.found().items()}

    def stage(self, stage: str) -> Iterator[Outcome]:
        self._load()
        for name, values in self.parts.items():
            self._put(name, values)
        writes = written(self.kernels, stage)
        updates = {*stages.UPDATES.get(stage, ()), *UPDATES.get(stage, "").split()}
        self._poison(writes - updates - ({"manifold"} if stage != "color_contacts" else set()))
        for memory in self.kernels.slab_array("manifold"):
            for part in unpack(memory, WRITTEN.get(stage, "").split()).values():
                part[...] = np.nan
        inputs, before = dict(self.known), self._snapshot()
        with np.errstate(all="ignore"):
            run_stage(self.reference.sim.backend.work, stages.BY_NAME[stage])  # type: ignore[arg-type]
        results = stages.made(self.reference, stage, writes)
        self.kernels.run_stage(stage, self.h)
        self._check_untouched(stage, before)
        self.known |= results
        for name, (array, mask) in results.items():
            yield self._outcome(stage, name, array, mask, inputs)
        for name in MADE.get(stage, "").split():
            values = self.parts[name] = self.reference.part(name)
            real = self.reference.is_real(values)
            yield Outcome(stage, name, np.where(real, values, 0), np.where(real, self._get(name), 0), inputs)

    def _records(self) -> tuple[Array, Array]:
        m = self.reference.w.touch.all
        return m.world, self.kernels.slab_array("record_index")[m.world, m.pair]

    def _put(self, name: str, values: Array) -> None:
        real = self.reference.is_real(values)
        for world, place, value, mask in zip(*self._records(), values, real, strict=True):
            view = unpack(self.kernels.slab_array("manifold")[world], (name,))[name]
            view[place] = np.where(mask, value, view[place])

    def _get(self, name: str) -> Array:
        return unpack(self.kernels.slab_array("manifold")[self._records()], (name,))[name]


def check(outcome: Outcome, dtype: str) -> str:
    apart, own = difference(outcome).max(initial=0.0), greatest(outcome.expected).max(initial=0.0)
    if outcome.name == "contact_residual_now":
        own = np.inf if outcome.stage == "relax" else 1.0
    if outcome.name == "residual_now":  # a difference of rates of about 1 m/s
        own = max(own, 1.0)
    if apart <= TOLERANCE[dtype] * max(own, FLOOR[dtype]):
        return ""
    return f"{outcome.stage}: {outcome.name} differs by {apart} of {own}"


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_every_stage_with_contacts(name: str, dtype: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference, native = make_pair(name, dtype)
    walk = ContactWalk(reference, native, reference.config.dt)
    assert walk.kernels.sizes["lanes"] == 1
    walk.search()
    order = [s for s in STAGES if s != "split_impulses" or walk.semi_implicit]
    faults = [check(outcome, dtype) for stage in order for outcome in walk.stage(stage)]
    assert walk.reference.w.touch is not None
    assert not any(faults), "\n".join(f for f in faults if f)
