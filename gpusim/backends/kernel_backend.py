"""Base class of the native and the CUDA backend: kernel arguments and host arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from gpusim.backends.codegen.header import SETTINGS_DOUBLE, SETTINGS_INT, argument_members, kept_fields
from gpusim.backends.codegen.slab import actuator_sizes, slab_layout
from gpusim.backends.contact_tables import add_lanes
from gpusim.backends.health import KernelQuarantine
from gpusim.backends.kinds import Kinds, check_kernels
from gpusim.backends.memory import KernelMemory
from gpusim.backends.parameters import BOUNCING, KernelParameters
from gpusim.backends.tables import model_tables
from gpusim.description.config import SolverConfig
from gpusim.description.contact_record import by_slot, unpack
from gpusim.description.program import Program
from gpusim.description.step_plan import StepPlan
from gpusim.errors import unknown_name
from gpusim.model.fields import check_fields
from gpusim.model.model import Model
from gpusim.model.state import State
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
PROBLEMS = ("failed", "overflowed", "inexact")
"""Names of the problems that the kernels count."""
LAUNCHES = ("auto", "fused", "simd", "staged")
# If the work arrays of a world exceed this size (bytes), many blocks work on one world together. Work arrays of this
# size are much larger than the shared memory of a block.
STAGED_ABOVE = 1 << 20
# Minimum bytes of work arrays per level of the elimination tree for a staged launch. A level needs about 17 launches
# per step, and a launch takes 2 to 4 us.
STAGED_ABOVE_A_LEVEL = 1 << 18


def use_staged(launch: str, world_bytes: int, levels: int = 0) -> bool:
    """Return whether to use the staged launch for worlds of this size.

    Args:
        launch: launch mode of ``Simulation``: "fused", "staged", "simd" or "auto".
        world_bytes: size of the work arrays of one world (bytes).
        levels: result of ``launched_levels`` (solver/launch_plan.py).

    Raises:
        UnknownNameError: ``launch`` has an unknown value.
    """
    if not isinstance(launch, str) or launch not in LAUNCHES:
        raise unknown_name("launch", str(launch), LAUNCHES)
    large = world_bytes > max(STAGED_ABOVE, levels * STAGED_ABOVE_A_LEVEL)
    return launch == "staged" or (launch == "auto" and large)


def _why_launch(launch: str, staged: bool, world_bytes: int, levels: int) -> str:
    """Return a text with the launch mode and the reason for its choice."""
    name = "staged" if staged else "fused"
    if launch != "auto":
        return f"launch {name}: as requested"
    size = f"a world has {world_bytes / (1 << 20):.1f} MiB of work arrays"
    if staged or world_bytes <= STAGED_ABOVE:
        return f"launch {name}: {size}"
    return f"launch {name}: {size}, but too little for {levels} levels of joints"


def arguments_type(kinds: Kinds) -> np.dtype:  # type: ignore[type-arg]
    """Return the NumPy dtype that matches the C++ struct ``Arguments`` of the kernels."""
    fields = [(name, np.uint64 if kind.endswith("*") else _NUMPY_TYPES[kind]) for kind, name in argument_members(kinds)]
    return np.dtype(fields, align=True)


class KernelBackend(ABC):
    """Base class of the backends that run cuda_kernels/.

    Args:
        model, parameters, config: the simulation to run.
        memory: memory with the state, the commands, and the arrays of the kernels.
        real: number type of the computations in a substep. The state can have another number type.
        launch: "fused", "staged" or "auto".

    Attributes:
        launch_reason: text with the launch mode and the reason for its choice.
    """

    name: str
    colors_side_by_side: ClassVar[bool] = False
    """Whether many threads do the graph coloring of contacts in a large world (only in staged launch)."""

    def __init__(
        self,
        model: Model,
        memory: KernelMemory,
        parameters: dict[str, Array],
        config: SolverConfig,
        real: Any,
        launch: str = "auto",
    ) -> None:
        self.model, self.config, self.real = model, config, np.dtype(real)
        self.memory, self.stored, self.num_worlds = memory, memory.stored, memory.num_worlds
        self.tables, self.sizes = model_tables(model, config, self.num_worlds)
        self.kinds = memory.kinds
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
        self._work: StepBuffers | None = None
        self._work_stale = False
        self._seen = dict.fromkeys(PROBLEMS, 0)
        self._limits = accuracy_limits(model)
        self.direct = config.direct
        self.arguments = np.zeros((), arguments_type(self.kinds))
        self.parameters = self.make_parameters(parameters)
        self.make_plan()

    @property
    def launch(self) -> str:
        """Return the launch mode: "fused", "simd" or "staged"."""
        return "staged" if self.staged else "fused"

    def make_parameters(self, values: dict[str, Array]) -> KernelParameters:
        """Create the parameters in the memory of this backend."""
        return KernelParameters(self.model, self.memory, values, self.real, self.arguments)

    def make_plan(self) -> None:
        """Create the plan of staged launches for the current settings."""
        if self.staged:
            settings = {name: self._setting(name) for name in SETTINGS_INT}
            self.plan = LaunchPlan(self.sizes | settings | {"direct": int(self.direct)})

    @abstractmethod
    def lanes(self) -> int:
        """Return how many contact manifolds are interleaved in memory. The results do not depend on this number."""

    @abstractmethod
    def run(self, n: int, dt: float) -> bool:
        """Run ``n`` steps of ``dt`` seconds. Return True if a world failed."""

    def advance(self, n: int, dt: float, check: Callable[[], None]) -> None:
        """Run ``n`` steps of ``dt`` seconds. Call ``check`` if a world failed."""
        if self.run(n, dt):
            check()

    def step_loop(self, plan: StepPlan) -> Callable[[int, int, float], bool] | None:
        """Return None: the caller launches the steps one by one."""
        return None

    def make_quarantine(self, drivers: Mapping[str, str]) -> KernelQuarantine:
        """Create the quarantine of failed worlds.

        ``drivers`` maps the label of each command to the label of the diagram that writes it.
        """
        return KernelQuarantine(self, drivers)

    @abstractmethod
    def run_forward(self, h: float) -> StepBuffers:
        """Compute velocities and forces at the current time (stage forward), and return work arrays on the host."""

    @abstractmethod
    def current_angles(self) -> None:
        """Compute the joint angles at the current poses, including full rotations."""

    def invalidate(self, initial: bool = False) -> None:  # noqa: B027 (nothing to do with shared memory)
        """Invalidate the results of stage forward.

        If ``initial`` is True, also invalidate copies of the reset state.
        """

    def restore(self, initial: State, worlds: Array) -> None:
        """Reset ``worlds`` to the state ``initial`` and the default commands."""
        self.memory.state.copy_worlds(initial, worlds)
        self.memory.control[worlds] = self.model.default_controls

    def last_substep(self) -> float:
        """Return the duration of the last substep (s), or 0 right after a reset."""
        return float(self.memory.read_state().arrays["step_before"].max())

    @abstractmethod
    def write_operations(self, operations: Array, values: Any, worlds: Any) -> bool:
        """Write poses and velocities in chosen worlds (reference/signals/writes.py)."""

    @abstractmethod
    def observer(self, entries: Array, width: int, array: Any = None) -> tuple[Any, Callable[[], None]]:
        """Return an array for signals (num_worlds, width), and a function that fills the array with kernels."""

    @abstractmethod
    def program_launcher(self, program: Program, name: str) -> Callable[[Any, Array], None]:
        """Return a function that runs a block diagram with its state variables in the state array ``name``."""

    def read_health(self) -> Array:
        """Return the failure code of each world, or 0 for a valid world, (num_worlds,)."""
        return self.memory.read_array("health")

    def read_health_value(self) -> Array:
        """Return the invalid number that stopped each failed world, (num_worlds,)."""
        return self.memory.read_array("health_value")

    def newly(self, problem: str) -> bool:
        """Return whether the counter of ``problem`` (see PROBLEMS) has increased since the last call."""
        seen = self._seen[problem]
        count = self._seen[problem] = self.counters[problem].item()
        return count > seen

    def release(self, worlds: Array) -> None:
        """Release ``worlds`` from quarantine."""
        self.health[worlds] = 0
        self.counters["failed"][0] = self._seen["failed"] = int(np.count_nonzero(self.health))

    def keep_stopped(self, words: Array, values: Array) -> None:
        """Stop the worlds that failed on the previous backend. ``words`` contains the failure codes of all worlds."""
        self.health[:], self.health_value[:] = words, values
        self.counters["failed"][0] = self._seen["failed"] = int(np.count_nonzero(words))

    def fill_arguments(self) -> None:
        """Fill all kernel arguments."""
        a, bind = self.arguments, self.memory.bind_array
        for name, value in self.sizes.items():
            a[f"n_{name}"] = value
        for name in SETTINGS_INT:
            a[name] = self._setting(name)
        for name in SETTINGS_DOUBLE:
            a[name] = self._limits[name] if name in self._limits else getattr(self.config, name)
        for name, field in self.layout.fields.items():
            a[f"offset_{name}"] = field.offset
        a["slab_bytes"] = self.layout.size
        for name, table in self.tables.items():
            a[name] = bind(name, table)
        groups = self.parameters.groups
        for f in kept_fields(self.kinds):
            a[f"kept_{f.name}"] = bind(f"kept_{f.name}", self.memory.kept_array(f.name))
        for actuator in self.kinds:
            group = groups.get(actuator.name)
            axis = group.axis if group else np.zeros(0)
            commands = [group.control[c] for c in actuator.commands] if group else []
            columns = np.stack(commands) if commands else np.zeros(0)
            a[f"{actuator.name}_axis"] = bind(f"{actuator.name}_axis", axis.astype(np.int32))
            a[f"{actuator.name}_columns"] = bind(f"{actuator.name}_columns", columns.astype(np.int32))
        self.health = np.zeros(self.num_worlds, np.int32)
        self.active = np.zeros(1, np.int32)
        self.health_value = np.zeros(self.num_worlds)
        self.counters = {name: np.zeros(1, np.int32) for name in PROBLEMS}
        a["control"] = bind("control", self.memory.control)
        for name in ("health", "health_value", "active"):
            a[name] = bind(name, getattr(self, name))
        for name, counter in self.counters.items():
            a[name] = bind(name, counter)
        self.parameters.upload()
        self.sync_arguments()

    def _setting(self, name: str) -> int:
        special: dict[str, Any] = {
            **self._limits,
            "semi_implicit": self.config.scheme == "semi_implicit",
            "geometric_stiffness": self.config.geometric_stiffness and self.config.scheme != "semi_implicit",
            "bounces": self.parameters.bounces(),
        }
        return int(special[name] if name in special else getattr(self.config, name))

    def written(self, names: Iterable[str], worlds: Array, kind: str | None = None) -> None:
        """Pass the changed parameters ``names`` of ``worlds`` to the kernels."""
        before, names = self.arguments.tobytes(), tuple(names)
        self.parameters.written(names, worlds, kind)
        if kind is None and set(names) & set(BOUNCING):
            self.set_bounces(self.parameters.bounces())
        self.pass_on(before)

    def set_bounces(self, bounces: bool) -> None:
        """Set the kernel argument ``bounces``. If it changes, create a new launch plan."""
        if bool(self.arguments["bounces"]) != bounces:
            self.arguments["bounces"] = bounces
            self.make_plan()

    def pass_on(self, before: bytes) -> None:
        """Pass the kernel arguments to the device if they differ from ``before``. Mark host work arrays as outdated."""
        if self._work is not None:
            self._work_stale = True
        if self.arguments.tobytes() != before:
            self.sync_arguments()

    @property
    def work(self) -> StepBuffers:
        """Return work arrays of a substep on the host."""
        state = self.memory.read_state()
        if self._work is None:
            self._work = StepBuffers(self.model, state, self.parameters.values, self.config, self.real)
        elif self._work_stale:
            self._work.refresh_parameters()
        self._work_stale = False
        return self._work

    def sync_arguments(self) -> None:  # noqa: B027 (nothing to do with shared memory)
        """Pass the changed attribute ``arguments`` to the kernels."""

    @abstractmethod
    def slab_array(self, name: str) -> Array:
        """Return a host view or copy of the slab array ``name`` after stage forward, (num_worlds, ...)."""

    def forward_contacts(self) -> ForwardContacts | None:
        """Return copies of the contacts after stage forward, or None if the capacity of the pair buffer is 0."""
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
        """Return host copies of the work arrays after stage forward. Signals read these copies."""
        w, slab = self.work, self.slab_array
        w.control = self.memory.control
        prepare.set_times(w, h)
        for name in _OF_SIGNALS:
            setattr(w, name, slab(name))
        w.element_value = slab("element_value").copy()
        self._fill_actuators(w)
        return w

    def _fill_actuators(self, w: StepBuffers) -> None:
        force, first = self.slab_array("actuator_term_force"), 0
        w.term_forces = {}
        groups = self.parameters.groups
        for kind in self.kinds:
            if kind.name not in groups:
                continue
            count = len(groups[kind.name].specs)
            if "evaluate" in kind.kernel:
                w.term_forces[kind.name] = force[:, first : first + count]
                first += count
