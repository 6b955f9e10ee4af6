"""Base class of the native and the CUDA backend: kernel arguments and host arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from gpusim.arrays import on_host
from gpusim.backends.codegen.header import READ_PARAMETERS, SETTINGS_DOUBLE, SETTINGS_INT, argument_members, kept_fields
from gpusim.backends.codegen.slab import actuator_sizes, slab_layout
from gpusim.backends.contact_tables import add_lanes
from gpusim.backends.health import KernelQuarantine
from gpusim.backends.kinds import Kinds, check_kernels, kinds_of
from gpusim.backends.tables import model_tables
from gpusim.description.actuator_kinds import Group
from gpusim.description.config import SolverConfig
from gpusim.description.contact_record import by_slot, unpack
from gpusim.description.program import Program
from gpusim.description.step_plan import StepPlan
from gpusim.errors import unknown_name
from gpusim.model.fields import DERIVED_FIELDS, check_fields
from gpusim.model.model import Model
from gpusim.model.parameters import derived_parameters, refresh_derived
from gpusim.model.state import State, apply_overrides
from gpusim.reference.contacts.contact_report import PACKED, ForwardContacts, touching_pairs
from gpusim.reference.joints import prepare
from gpusim.reference.limits import accuracy_limits
from gpusim.reference.step_buffers import StepBuffers
from gpusim.solver.launch_plan import LaunchPlan, launched_levels
from gpusim.typing import Array

_OF_SIGNALS = tuple(
    "rotation jacobian twist_before twist axis_position rate rate_old rate_next solved force torque".split()
)
"""Work arrays that signals read."""
_NUMPY_TYPES = {"int": np.int32, "double": np.float64, "long long": np.int64}
_READ = frozenset(f.name for f in READ_PARAMETERS)
BOUNCING = ("limit_restitution", "shape_restitution")
LAUNCHES = ("auto", "fused", "simd", "staged")
# If the work arrays of a world exceed this size (bytes), many blocks work on one world together. Work arrays of this
# size are much larger than the shared memory of a block.
STAGED_ABOVE = 1 << 20
# Minimum bytes of work arrays per level of the elimination tree for a staged launch. A level needs about 17 launches
# per step, and a launch takes 2 to 4 us.
STAGED_ABOVE_A_LEVEL = 1 << 18


def use_staged(launch: str, world_bytes: int, levels: int = 0) -> bool:
    """Return whether a world of this size runs in staged launch.

    Args:
        launch: see ``Simulation``.
        world_bytes: bytes of the work arrays of the world.
        levels: number of levels of the elimination tree with separate launches (``launched_levels``).

    Raises:
        UnknownNameError: ``launch`` has an unknown value.
    """
    if not isinstance(launch, str) or launch not in LAUNCHES:
        raise unknown_name("launch", str(launch), LAUNCHES)
    large = world_bytes > max(STAGED_ABOVE, levels * STAGED_ABOVE_A_LEVEL)
    return launch == "staged" or (launch == "auto" and large)


def _why_launch(launch: str, staged: bool, world_bytes: int, levels: int) -> str:
    """Return a text with the launch mode and the reason for the choice."""
    name = "staged" if staged else "fused"
    if launch != "auto":
        return f"launch {name}: as requested"
    size = f"a world has {world_bytes / (1 << 20):.1f} MiB of work arrays"
    if staged or world_bytes <= STAGED_ABOVE:
        return f"launch {name}: {size}"
    return f"launch {name}: {size}, but too little for {levels} levels of joints"


def arguments_type(kinds: Kinds) -> np.dtype:  # type: ignore[type-arg]
    """Return the structure ``Arguments`` of the kernels as a dtype."""
    fields = [(name, np.uint64 if kind.endswith("*") else _NUMPY_TYPES[kind]) for kind, name in argument_members(kinds)]
    return np.dtype(fields, align=True)


class KernelBackend(ABC):
    """Base class of the backends that run cuda_kernels/.

    Args:
        model, state, parameters, config: the simulation to run.
        real: number type of the computations in a substep. Numbers in the state may have another type.
        launch: "fused", "staged" or "auto".

    Attributes:
        launch_reason: text with the launch mode and the reason for the choice.
    """

    name: str
    colors_side_by_side: ClassVar[bool] = False
    """Whether many threads color the contacts of large worlds in parallel, in staged launch."""

    def __init__(
        self,
        model: Model,
        state: State,
        parameters: dict[str, Array],
        config: SolverConfig,
        real: Any,
        launch: str = "auto",
    ) -> None:
        self.model, self.config, self.real = model, config, np.dtype(real)
        self.stored = state.arrays["impulse"].dtype
        self._state, self._parameters = state, parameters
        self.num_worlds = state.num_worlds
        self.tables, self.sizes = model_tables(model, config, self.num_worlds)
        self.kinds = kinds_of(model)
        check_kernels(self.kinds)
        self.sizes |= actuator_sizes(model, self.kinds)
        for kind in self.kinds:
            check_fields(kind, kind.kernel_fields, self.sizes, first=())
        if not self.colors_side_by_side:
            self.sizes |= dict.fromkeys(("incident_slots", "incidents", "color_parts"), 0)
        add_lanes(self.sizes, 1)
        size = slab_layout(self.sizes, self.real, self.stored, self.kinds).size
        levels = launched_levels(self.sizes, config.direct)
        self.staged = use_staged(launch, size, levels)
        self.launch_reason = _why_launch(launch, self.staged, size, levels)
        add_lanes(self.sizes, self.lanes() if self.sizes["pairs"] else 1)
        self.layout = slab_layout(self.sizes, self.real, self.stored, self.kinds)
        self._pack_actuators()
        self._work: StepBuffers | None = None
        self._work_stale = False
        self._packed_parameters: dict[str, Array] = {}
        self._seen = self._seen_overflowed = self._seen_inexact = 0
        self._limits = accuracy_limits(model)
        self.direct = config.direct
        self.make_plan()
        self.arguments = np.zeros((), arguments_type(self.kinds))

    @property
    def launch(self) -> str:
        """Return the launch mode: "fused", "simd" or "staged"."""
        return "staged" if self.staged else "fused"

    def make_plan(self) -> None:
        """Make the plan of staged launches for the current settings."""
        if self.staged:
            settings = {name: self._setting(name) for name in SETTINGS_INT}
            self.plan = LaunchPlan(self.sizes | settings | {"direct": int(self.direct)})

    @abstractmethod
    def lanes(self) -> int:
        """Return the number of adjacent manifold records in memory.

        The results do not depend on the number of lanes.
        """

    @abstractmethod
    def bind_array(self, name: str, array: Array, worlds: Array | None = None) -> int:
        """Pass an array to the kernels under a name, and return the address of the array.

        ``worlds``: rows that have changed since the last call with this name.
        """

    @abstractmethod
    def bind(self, control: Array) -> None:
        """Use the array ``control`` (num_worlds, controls) for the commands."""

    @abstractmethod
    def run(self, n: int, dt: float) -> bool:
        """Run ``n`` steps of ``dt`` seconds. Return True if a world failed."""

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds. Call ``check`` if a world failed. The kernels check every step."""
        if self.run(n, dt):
            check()

    def step_loop(self, plan: StepPlan) -> Callable[[int, int, float], bool] | None:
        """Return None: the caller launches the steps one by one."""
        return None

    def make_quarantine(self, drivers: Mapping[str, str]) -> KernelQuarantine:
        """Return the quarantine.

        ``drivers`` maps the label of a command to the label of the diagram that writes the command.
        """
        return KernelQuarantine(self, drivers)

    @abstractmethod
    def run_forward(self, h: float) -> StepBuffers:
        """Compute velocities and forces at the current time (stage forward)."""

    @abstractmethod
    def current_angles(self) -> None:
        """Compute the joint angles of the current poses. The angles count full rotations."""

    def invalidate(self) -> None:  # noqa: B027 (nothing to do with shared memory)
        """Invalidate the results of stage forward after a write."""

    def is_mask(self, worlds: Any) -> bool:
        """Return False, because the backend has no device memory."""
        return False

    def restore(self, initial: State, worlds: Array) -> None:
        """Reset worlds to a state and the default commands."""
        self.state.copy_worlds(initial, worlds)
        self.control[worlds] = self.model.default_controls

    def initial_changed(self) -> None:  # noqa: B027 (nothing to do with shared memory)
        """Invalidate copies of the reset state after a write."""

    def host_control(self) -> Array:
        """Return writable commands on the host (num_worlds, controls)."""
        return self.control

    def read_control(self) -> Array:
        """Return the commands on the host for reading only (num_worlds, controls)."""
        return self.control

    def hold_overridden(self) -> None:
        """Set overridden commands to the values in the state array OVERRIDE."""
        apply_overrides(self.control, self._state)

    def write_commands(self, columns: Any, values: Any) -> None:
        """Write n commands of all worlds. ``values``: (num_worlds, n). ``columns``: a slice or indices."""
        given = values if type(values) is np.ndarray else on_host(values).reshape(self.num_worlds, -1)
        self.control[:, columns] = given

    def last_substep(self) -> float:
        """Return the size of the last substep (s), or 0 right after a reset."""
        return float(self._state.arrays["step_before"].max())

    @abstractmethod
    def write_operations(self, operations: Array, values: Any, worlds: Any) -> bool:
        """Write poses and velocities in chosen worlds (reference/signals/writes.py)."""

    def rows_of(self, worlds: Array) -> Array:
        """Return the position of each world in the list ``worlds``, or -1 for other worlds (num_worlds,)."""
        rows = np.full(self.num_worlds, -1, np.int32)
        rows[worlds] = np.arange(len(worlds))
        return rows

    @abstractmethod
    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Any, Callable[[], None]]:
        """Return an array (num_worlds, width), and a function that runs kernels to fill the array with signals."""

    def register_array(self, name: str) -> None:  # noqa: B027 (nothing to do with shared memory)
        """Register an additional state array that the step does not use."""

    @abstractmethod
    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None]:
        """Return a function that samples a diagram. The state variables are in the state array ``name``."""

    def kept_columns(self, name: str, columns: tuple[int, ...]) -> Any:
        """Return columns of a state array (worlds, n)."""
        return self.read_state().arrays[name][:, list(columns)]

    def to_device(self, array: Array) -> Any:
        """Convert an array to the type that :meth:`Simulation.read` returns."""
        return array

    def read_health(self) -> Array:
        """Return the health word of every world (num_worlds,)."""
        return self.health

    def read_health_value(self) -> Array:
        """Return the invalid value of each failed world (num_worlds,)."""
        return self.health_value

    def newly_failed(self) -> bool:
        """Return whether any world has failed since the last call."""
        seen, self._seen = self._seen, int(self.failed[0])
        return self._seen > seen

    def newly_overflowed(self) -> bool:
        """Return whether the pair buffer of a world overflowed since the last call."""
        seen, self._seen_overflowed = self._seen_overflowed, int(self.overflowed[0])
        return self._seen_overflowed > seen

    def newly_inexact(self) -> bool:
        """Return whether a world exceeded an accuracy limit since the last call."""
        seen, self._seen_inexact = self._seen_inexact, int(self.inexact[0])
        return self._seen_inexact > seen

    def release(self, worlds: Array) -> None:
        """Let worlds run again."""
        self.health[worlds] = 0
        self.failed[0] = self._seen = int(np.count_nonzero(self.health))

    def keep_stopped(self, words: Array, values: Array) -> None:
        """Stop the worlds that failed on another backend. ``words``: health words."""
        self.health[:], self.health_value[:] = words, values
        self.failed[0] = self._seen = int(np.count_nonzero(words))

    @abstractmethod
    def sync_arguments(self) -> None:
        """Pass changed ``arguments`` to the kernels."""

    def _groups(self) -> dict[str, Group]:
        return {g.type.name: g for g in self._state.groups}

    def _pack_actuators(self) -> None:
        """Pack the variables of each kind into one array (num_worlds, variables, n)."""
        self.packed_state: dict[str, Array] = {}
        for group in self._state.groups:
            if not group.type.variables:
                continue
            packed = np.stack([group.state[v.name] for v in group.type.variables], axis=1).astype(self.stored)
            self.packed_state[group.type.name] = np.ascontiguousarray(packed)
            group.state = {v.name: self.packed_state[group.type.name][:, k] for k, v in enumerate(group.type.variables)}

    def kept_array(self, name: str) -> Array:
        """Return a state array by field name."""
        if name in self._state.arrays:
            return self._state.arrays[name]
        return self.packed_state.get(name.removesuffix("_state"), np.zeros(0))

    def fill_arguments(self, control: Array) -> None:
        """Fill all kernel arguments."""
        a = self.arguments
        self.control = control
        for name, value in self.sizes.items():
            a[f"n_{name}"] = value
        for name in SETTINGS_INT:
            a[name] = self._setting(name)
        for name in SETTINGS_DOUBLE:
            a[name] = self._limits[name] if name in self._limits else getattr(self.config, name)
        for name, place in self.layout.places.items():
            a[f"offset_{name}"] = place.offset
        a["slab_bytes"] = self.layout.size
        for name, table in self.tables.items():
            a[name] = self.bind_array(name, table)
        groups = self._groups()
        for f in kept_fields(self.kinds):
            a[f"kept_{f.name}"] = self.bind_array(f"kept_{f.name}", self.kept_array(f.name))
        for actuator in self.kinds:
            group = groups.get(actuator.name)
            axis = group.axis if group else np.zeros(0)
            commands = [group.control[c] for c in actuator.commands] if group else []
            columns = np.stack(commands) if commands else np.zeros(0)
            a[f"{actuator.name}_axis"] = self.bind_array(f"{actuator.name}_axis", axis.astype(np.int32))
            a[f"{actuator.name}_columns"] = self.bind_array(f"{actuator.name}_columns", columns.astype(np.int32))
        self.health = np.zeros(self.num_worlds, np.int32)
        self.failed = np.zeros(1, np.int32)
        self.active = np.zeros(1, np.int32)
        self.overflowed, self.inexact = (np.zeros(1, np.int32) for _ in range(2))
        self.health_value = np.zeros(self.num_worlds)
        for name in ("control", "health", "health_value", "failed", "active", "overflowed", "inexact"):
            a[name] = self.bind_array(name, getattr(self, name))
        self.refresh_parameters()

    def _setting(self, name: str) -> int:
        special: dict[str, Any] = {
            **self._limits,
            "semi_implicit": self.config.scheme == "semi_implicit",
            "geometric_stiffness": self.config.geometric_stiffness and self.config.scheme != "semi_implicit",
            "bounces": any(np.any(self._parameters[name] > 0.0) for name in BOUNCING),
        }
        return int(special[name] if name in special else getattr(self.config, name))

    def refresh_parameters(self) -> None:
        """Pass all parameters and derived values to the kernels."""
        self._derived = derived_parameters(self.model.topology, self._parameters, self.real)
        for f in READ_PARAMETERS:
            self._upload_parameter(f.name, np.asarray(self._parameters[f.name], np.float64))
        for f in DERIVED_FIELDS:
            self._upload_parameter(f.name, self._derived[f.name])
        for group in self._state.groups:
            self._upload_actuators(group)
        self.sync_arguments()

    def parameter_written(self, name: str, worlds: Array) -> None:
        """Update a parameter after a write in ``worlds``, and all values that depend on the parameter."""
        before = self.arguments.tobytes()
        if name in BOUNCING and self.arguments["bounces"] != self._setting("bounces"):
            self.arguments["bounces"] = self._setting("bounces")
            self.make_plan()
        if name in _READ:
            self._upload_parameter(name, self._parameters[name], worlds)
        topology = self.model.topology
        for field in refresh_derived(self._derived, name, worlds, topology, self._parameters, self.real):
            self._upload_parameter(field, self._derived[field], worlds)
        self._pass_on(before)

    def pull_parameters(self) -> None:  # noqa: B027 (nothing to do with shared memory)
        """Copy parameters that were written on a device to the host."""

    def actuator_written(self, kind: str, names: Iterable[str], worlds: Array) -> None:
        """Update parameters of an actuator kind that were written in some worlds."""
        group, before = self._groups()[kind], None
        packed, known = self._packed_parameters[kind], [p.name for p in group.type.parameters]
        if packed.shape[0] == self.num_worlds:
            for name in names:
                packed[worlds, known.index(name)] = group.params[name][worlds]
            self.bind_array(f"{kind}_parameters", packed, worlds)
        else:
            before = self.arguments.tobytes()
            self._upload_actuators(group)
        self._pass_on(before)

    def _pass_on(self, before: bytes | None) -> None:
        """Pass changed arguments to the kernels, and mark the work arrays on the host as outdated."""
        if self._work is not None:
            self._work_stale = True
        if before is not None and self.arguments.tobytes() != before:
            self.sync_arguments()

    def _upload_actuators(self, group: Group) -> None:
        if not group.type.parameters:
            return
        arrays, name = [group.params[p.name] for p in group.type.parameters], group.type.name
        rows = max(x.shape[0] for x in arrays)
        wide = [np.broadcast_to(x, (rows, x.shape[1])) for x in arrays]
        packed = self._packed_parameters[name] = np.ascontiguousarray(np.stack(wide, axis=1), np.float64)
        self.arguments[f"{name}_parameters"] = self.bind_array(f"{name}_parameters", packed)
        self.arguments[f"stride_{name}"] = 0 if rows == 1 else packed[0].size

    def _upload_parameter(self, name: str, array: Array, worlds: Array | None = None) -> None:
        self.arguments[name] = self.bind_array(name, np.ascontiguousarray(array), worlds)
        self.arguments[f"stride_{name}"] = 0 if array.shape[0] == 1 else array[0].size

    @property
    def state(self) -> State:
        """Return the state."""
        return self._state

    def read_state(self) -> State:
        """Return the state for reading only."""
        return self._state

    @property
    def work(self) -> StepBuffers:
        """Return the work arrays of a substep on the host."""
        self.read_state()
        if self._work is None:
            self._work = StepBuffers(self.model, self._state, self._parameters, self.config, self.real)
        elif self._work_stale:
            self._work.refresh_parameters()
        self._work_stale = False
        return self._work

    @abstractmethod
    def slab_array(self, name: str) -> Array:
        """Return a host view or copy of a slab array after stage forward (num_worlds, ...)."""

    def forward_contacts(self) -> ForwardContacts | None:
        """Return copies of the contacts of the last trial step, or None if the model has no pair capacity."""
        if not self.sizes["pairs"]:
            return None
        slab = self.slab_array
        world, pair = touching_pairs(slab("pair_points"), slab("pair_count"))
        records = by_slot(slab("manifold"), self.sizes["lanes"])[world, slab("record_index")[world, pair]]
        return ForwardContacts(
            world=world,
            shape=slab("pair_shapes")[world, pair],
            points=slab("pair_points")[world, pair],
            color=slab("manifold_color")[world, pair],
            sweep_change=slab("sweep_change"),
            sweep_count=slab("sweep_count"),
            **unpack(records, PACKED),
        )

    def fill_work(self, h: float) -> StepBuffers:
        """Copy work arrays from the slabs after stage forward, for signals. Return the work arrays."""
        w, slab = self.work, self.slab_array
        w.control = self.control
        prepare.set_times(w, h)
        for name in _OF_SIGNALS:
            setattr(w, name, slab(name))
        w.element_value = slab("element_value").copy()
        self._fill_actuators(w)
        return w

    def _fill_actuators(self, w: StepBuffers) -> None:
        force, first = self.slab_array("actuator_term_force"), 0
        w.term_forces = {}
        groups = self._groups()
        for kind in self.kinds:
            if kind.name not in groups:
                continue
            count = len(groups[kind.name].specs)
            if "evaluate" in kind.kernel:
                w.term_forces[kind.name] = force[:, first : first + count]
                first += count
