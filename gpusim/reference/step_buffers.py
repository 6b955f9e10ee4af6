"""Work arrays of the current substep. The stages fill these arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import add_columns
from gpusim.compiler.topology import axes_in_loops
from gpusim.description.actuator_kinds import BEFORE_LAST, LAST, NEXT, Group
from gpusim.description.config import SolverConfig
from gpusim.model.coordinates import coordinates
from gpusim.model.fields import WORK_FIELDS, allocate
from gpusim.model.model import Model
from gpusim.model.parameters import derived_parameters, refresh_derived
from gpusim.model.ropes import rope_table
from gpusim.model.sensors import sensor_table
from gpusim.model.state import State
from gpusim.reference.contact_work import contact_work
from gpusim.reference.layout import Layout
from gpusim.reference.light_bodies import heavy_share
from gpusim.reference.limits import accuracy_limits
from gpusim.reference.pair_tables import PairTables
from gpusim.reference.rotors import rotors
from gpusim.typing import Array


class StepBuffers:
    """Work arrays of one substep in all worlds, with shapes (num_worlds, ...).

    ``kick_time`` is the time over which stage kick applies forces (s). ``h`` is the duration of the drift (s).
    """

    def __init__(
        self, model: Model, state: State, parameters: dict[str, Array], config: SolverConfig, real: Any
    ) -> None:
        self.model, self.state, self.parameters, self.config = model, state, parameters, config
        self.topology = model.topology
        self.layout, self.accuracy_limits = Layout(model.topology), accuracy_limits(model)
        self.real = np.dtype(real)
        self.num_worlds = state.num_worlds
        self.scheme = config.scheme
        self.groups = {g.type.name: g for g in state.groups}
        self.scratch: dict[str, Array] = {}
        self.sensors = sensor_table(model, model.topology.constraint_labels)
        self.coordinates = coordinates(model) if model.sensors else None
        self.ropes, self.trial = rope_table(model), False
        self.rotors, self.spinning = rotors(model, config), np.zeros(self.num_worlds, bool)
        self.heavy_share = heavy_share(model).reshape(-1, model.topology.block)
        self.looped_axes = axes_in_loops(model.topology, self.ropes["rope_axis"])
        self.term_forces: dict[str, Array] = {}
        self.control = np.zeros((self.num_worlds, len(model.controls)))
        self.check: Callable[[], None] = lambda: None
        self.h = 0.0
        self.trial = False
        worlds, t = self.num_worlds, self.topology
        sizes = {
            "worlds": worlds, "bodies": t.num_bodies + 1, "elements": t.num_elements, "couplings": t.coupling.row.size,
            "constraints": t.num_constraints, "block": t.block, "sides": t.num_constraints * t.slots,
            "rows": t.num_constraints * t.block, "axes": t.axis_row.size, "coupled": t.coupled_constraint.size,
        }  # fmt: skip
        fields = (replace(f, dims=("worlds", *f.dims)) for f in WORK_FIELDS if f.name in StepBuffers.__annotations__)
        for name, array in allocate(tuple(fields), sizes, self.real).items():
            setattr(self, name, array)
        self.element_jacobian = np.zeros((worlds, t.num_elements, 2, 6), self.real)
        # Tests set record_changes to record the residual after every sweep of the colored solver.
        self.record_changes = False
        self.residual_history: list[Array] = []
        self.contacts = contact_work(model, worlds, config, self.real)
        self.pair_tables = PairTables(model.contact)
        self.touch: Any = None  # ContactRows of the substep (manifolds.py), or None without contacts
        self.clamps = sum(g.axis.size for g in state.groups if g.type.clamped)
        self.nonlinear = any(g.type.nonlinear for g in self.groups.values())
        self.refresh_parameters()

    # Arrays of WORK_FIELDS (model/fields.py) that NumPy uses. The stages fill the arrays.
    step_last: Array
    loop_gap: Array
    rotation: Array
    inertia_inverse: Array
    inertia_inverse_effective: Array
    element_value: Array
    element_bias: Array
    coupling_value: Array
    jacobian: Array
    mass_jacobian: Array
    bias: Array
    twist_before: Array
    twist: Array
    twist_kicked: Array
    twist_predicted: Array
    momentum_kicked: Array
    midpoint: Array
    displacement: Array
    force: Array
    torque: Array
    axis_position: Array
    rate: Array
    rate_old: Array
    rate_next: Array
    coupled_impulse: Array
    coupled_slope: Array
    coupled_gamma: Array
    coupled_target: Array
    response: Array
    delta: Array
    solved: Array
    mode: Array
    residual_now: Array
    last_change: Array
    contact_residual_now: Array
    island_count: Array
    condensed_fits: Array
    sweeps: Array
    unconverged: Array
    stalled: Array
    factor_damping: Array
    softening: Array
    spun: Array

    # Values that kernels compute locally, or store in several arrays.
    kick_time: Array
    rotation_real: Array
    element_jacobian: Array
    active: Array
    factor: Any
    direct: Any
    batches: Any
    law: Any
    circuit: Any

    @property
    def h_prev(self) -> Array:
        """Return the duration of the previous substep (s) in the number type ``real``, (num_worlds, 1)."""
        return self.step_last[:, None].astype(self.real)

    def refresh_parameters(self) -> None:
        """Recompute all values that depend on parameters, after parameters have changed."""
        self.derived = derived_parameters(self.topology, self.parameters, self.real)
        self._take_derived()
        self._take_parameters()

    def parameter_written(self, name: str, worlds: Array) -> None:
        """Recompute the values that depend on parameter ``name``, after it has changed in ``worlds``."""
        if refresh_derived(self.derived, name, worlds, self.topology, self.parameters, self.real):
            self._take_derived()
        self._take_parameters()

    def _take_derived(self) -> None:
        derived, dynamic = self.derived, self.topology.dynamic
        self.gravity, self.inertia = derived["body_gravity"], derived["inertia"]
        self.inverse_mass = derived["inverse_mass"]
        self.system_inverse_mass = derived["system_inverse_mass"]
        self.inertia_inverse_body, self.inertia_largest = derived["inertia_inverse_body"], derived["inertia_largest"]
        moving = np.trace(self.inertia_inverse_body[:, dynamic], axis1=-2, axis2=-1)
        self.min_inertia = 1.0 / float(moving.max()) if moving.size else 0.0

    def _take_parameters(self) -> None:
        p = self.parameters
        self.bounces = any(bool((p[name] > 0.0).any()) for name in ("limit_restitution", "shape_restitution"))
        self.axis_parameters = {k: p[k] for k in ("limit_lower", "limit_upper", "damping", "friction", "armature")}

    def broadcast(self, array: Array) -> Array:
        """Broadcast an array (1 or num_worlds, n) to (num_worlds, n)."""
        if array.shape[0] == self.num_worlds:
            return array
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:]))

    # Commands are constant during a step. A kick covers the second half of the last substep and the first half of the
    # coming substep.

    def command_now(self, group: Group, name: str) -> Array:
        """Return the values of command ``name`` for n actuators in the next step, (num_worlds, n)."""
        return self.model.acting(self.control, group.control[name]).astype(self.real)

    def command_before(self, group: Group, name: str) -> Array:
        """Return the values of command ``name`` for n actuators in the last step, (num_worlds, n)."""
        return self.state.arrays["command_before"][:, group.control[name]].astype(self.real)

    def command(self, group: Group, name: str) -> Array:
        """Return the mean of command ``name`` over the kick time for n actuators, (num_worlds, n)."""
        now = self.command_now(group, name)
        if self.scheme == "semi_implicit":
            return now
        total = self.h_prev + self.h
        mean: Array = (self.h_prev * self.command_before(group, name) + self.h * now) / total
        return mean

    def add_law(self, group: Group, impulse: Array, slope: Array) -> None:
        """Set the linear laws ``impulse - slope * velocity`` of an actuator group. A later call replaces these laws."""
        self.law.terms[group.type.name] = (group, self.broadcast(impulse), self.broadcast(slope))

    def add_clamped_law(self, group: Group, impulse: Array, slope: Array, bound: Array) -> None:
        """Add impulses ``clamp(impulse - slope * velocity, -bound, bound)`` of an actuator group.

        Raises:
            ModelError: the kind of actuator does not declare itself ``clamped``.
        """
        if group.clamp_index is None:
            kind = f"actuator kind '{group.type.name}'"
            raise validate.fail(kind, "adds a clamped term and does not declare it", "set clamped = True in its class")
        values = self.broadcast(impulse), self.broadcast(slope), self.broadcast(bound)
        self.law.clamped[group.type.name] = (group, group.clamp_index, values)

    def add_coupled_law(self, group: Group, number: int, impulse: Array, slope: Array) -> None:
        """Set the law ``impulse - slope @ velocity`` of an actuator that couples several axes.

        Raises:
            ModelError: the kind of actuator does not declare itself ``coupled``.
        """
        if group.coupled is None:
            kind = f"actuator kind '{group.type.name}'"
            raise validate.fail(kind, "adds a coupled law and does not declare it", "set coupled = True in its class")
        count, at = group.axes[number].size, group.coupled[number]
        self.coupled_impulse[:, at, :count] = impulse
        self.coupled_slope[:, at, :count, :count] = slope

    def add_friction(self, group: Group, force: Array) -> None:
        """Add the dry friction (N or N m) of an actuator group to the axes of the group."""
        impulse = self.kick_time * force
        self.law.rubbing[group.type.name] = group, impulse
        self.law.friction = self.law.friction + self._columns(group, impulse)

    def add_limits(self, group: Group, lower: Array, upper: Array) -> None:
        """Add the position limits of an actuator group to the axes of the group."""
        law, axis = self.law, group.axis
        law.lower[:, axis] = np.maximum(law.lower[:, axis], lower)
        law.upper[:, axis] = np.minimum(law.upper[:, axis], upper)

    def _columns(self, group: Group, values: Array) -> Array:
        total = np.zeros((self.num_worlds, self.topology.axis_row.size), self.real)
        add_columns(total, group.axis, self.broadcast(values))
        return total

    def damper_law(self, damping: Array) -> tuple[Array, Array]:
        """Return the impulse and slope of the law ``impulse - slope * velocity`` for viscous damping on each axis."""
        if self.scheme == "semi_implicit":
            return np.zeros_like(self.rate), self.kick_time * damping
        known = LAST * self.rate + BEFORE_LAST * self.rate_old
        return -self.kick_time * damping * known, self.kick_time * NEXT * damping

    def row_velocity(self, twist: Array) -> Array:
        """Return the row velocities J v, (num_worlds, constraints, block), for the twists v of all bodies."""
        sides = rotations.matvec(self.jacobian, twist[:, self.layout.side_body])
        return self.layout.sum_slots(sides)

    def axis_response(self, axes: Array) -> Array:
        """Return the velocity change per unit impulse of n axis rows, (num_worlds, n)."""
        response = self.layout.sum_slots(rotations.dot(self.jacobian, self.mass_jacobian))
        return np.asarray(response.reshape(self.num_worlds, -1)[:, self.topology.axis_row[axes]])

    def apply_impulse(self, impulse: Array) -> Array:
        """Return M^-1 J^T p, the velocity change from impulses p, (num_worlds, bodies, 6)."""
        layout = self.layout
        sides = np.zeros((impulse.shape[0], layout.num_sides + 1, 6), impulse.dtype)
        np.matmul(impulse[:, layout.side_constraint][:, :, None, :], self.mass_jacobian, out=sides[:, :-1, None, :])
        return layout.sum_sides(sides)
