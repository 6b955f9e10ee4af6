"""What an actuator is made of, and the law of an axis row that actuators add to.

An axis row acts along one scalar motion u (a joint coordinate, or the distance of two points). Over one
substep its impulse obeys

    p = P - D u  +  sum_j clamp(Ps_j - Ds_j u, -S_j, S_j)  -  F sign(u)  +  (what keeps u within [u_min, u_max])

P, D: springs, dampers, motors, cylinders; Ps_j, Ds_j, S_j: actuators with a limit of their own, such as servos with an
effort limit, at most MOST_CLAMPED on a row; F: dry friction; u_min, u_max: limits and stops. Every actuator is one file
that adds its share.

A kind that is ``coupled`` acts on several axes at once, with a force on each that depends on the rates of all:

    p = P - D u,   P (n,), D (n, n) symmetric and positive definite

These are rows of their own, one constraint for each actuator, beside what others add to the axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from gpusim.model.elements import Elements
from gpusim.model.field import Field
from gpusim.model.references import AS_IS, BODY, JOINT, Reference, point_on
from gpusim.model.registry import Registry
from gpusim.model.specs import ActuatorSpec, BodySpec
from gpusim.model.steering import Steering
from gpusim.typing import Array

# Velocity at t_n from the row velocities of three half steps: u_n = (9 u+ + 6 u- + u--)/16.
# Second order, and stiff dampers lose 2/3 of a disturbance each step (double root -1/3 of
# 9 r^2 + 6 r + 1 = 0), where the plain mean (u+ + u-)/2 rings without end. The weights place u_n at t_n for equal
# steps; at a change of step size the damping force is off by a share of that change for two steps.
NEXT, LAST, BEFORE_LAST = 9.0 / 16.0, 6.0 / 16.0, 1.0 / 16.0
# Clamped terms of one axis row: each takes two bits of its mode (reference/laws.py).
MOST_CLAMPED = 14


LINE_REFERENCES: Mapping[str, Reference] = {
    "body_a": BODY,
    "point_a": point_on("body_a"),
    "body_b": BODY,
    "point_b": point_on("body_b"),
}
"""Of a kind between two points."""
ON_TRAVELS = {"rad": "m", "rad/s": "m/s", "N m": "N", "N m/rad": "N/m", "N m s/rad": "N s/m"}
"""Units of kinds that say ``turns`` where they act on a travel."""
JOINT_REFERENCES: Mapping[str, Reference] = {"joint": JOINT, "axis": AS_IS}
"""Of a kind on a joint's coordinate."""


@dataclass(frozen=True)
class Parameter:
    """A number that an actuator has; may differ per world.

    The index of another actuator, by the kind's ``references``, becomes its number among those of its own kind.
    """

    name: str
    unit: str
    doc: str
    signal: bool = True
    """False: it is no signal, as of points of a table and indices, and stays what the builder gave."""


@dataclass(frozen=True)
class StateVariable:
    """A number that an actuator carries from step to step; ``initial`` reads it from the parameters."""

    name: str
    unit: str
    doc: str
    initial: Callable[[dict[str, Any]], float] = field(default=lambda params: 0.0)
    may_be_unset: bool = False
    """True where NaN stands for a value that the first step finds."""


@dataclass(frozen=True)
class Reading:
    """A signal of an actuator at t: ``read(group, now)`` returns (num_worlds, n).

    ``device`` is the same as the body of a C++ function (reference/quantities.py); without it only the host reads the
    signal. ``range`` tells the least and
    greatest value, in ``unit``, from the parameters of one actuator, for gauges; None where nothing bounds the signal.
    """

    name: str
    unit: str
    doc: str
    read: Callable[[Group, Now], Array]
    device: str = ""
    range: Callable[[Mapping[str, Any]], tuple[float, float]] | None = None


class Work(Protocol):
    """What kinds see of the running substep (reference/work.py); arrays (num_worlds, ...)."""

    num_worlds: int
    scheme: str
    state: Any
    config: Any
    h: float
    """Step of the drift, s."""
    kick_time: Array
    """Time that the kick covers, s; (num_worlds, 1)."""
    control: Array
    active: Array
    rotation_real: Array
    axis_position: Array
    rate: Array
    """Before the kick, u-; ``rate_old`` one half step earlier, ``rate_next`` after the solve, u+."""
    rate_old: Array
    rate_next: Array
    response: Array
    """Row velocity for a unit impulse, from the first guess on that ``contribute`` gets."""
    law: Any
    force: Array
    torque: Array
    term_forces: dict[str, Array]
    scratch: dict[str, Array]
    """Whatever a kind keeps within the substep."""
    groups: dict[str, Group]
    """All actuators by kind, for those that work together."""
    circuit: Any

    @property
    def h_prev(self) -> Array:
        """The substep before this one, s, (num_worlds, 1)."""

    def broadcast(self, array: Array) -> Array:
        """(1 or num_worlds, n) as (num_worlds, n)."""

    def command_now(self, group: Group, name: str) -> Array:
        """Command over the coming step, (num_worlds, n)."""

    def command_before(self, group: Group, name: str) -> Array:
        """Command over the last step."""

    def command(self, group: Group, name: str) -> Array:
        """Mean command over the kick."""

    def add_law(self, group: Group, impulse: Array, slope: Array) -> None:
        """Share ``P - D u`` of a group; replaces what the group gave before in this substep."""

    def add_clamped_law(self, group: Group, impulse: Array, slope: Array, most: Array) -> None:
        """Terms ``clamp(Ps - Ds u, -S, S)`` of a group, one for each actuator; zeros where one has no limit."""

    def add_coupled_law(self, group: Group, number: int, impulse: Array, slope: Array) -> None:
        """Law ``P - D u`` of one coupled actuator over its axes; P (num_worlds, n), D (num_worlds, n, n)."""

    def add_friction(self, group: Group, force: Array) -> None:
        """Dry friction of a group, N."""

    def add_limits(self, group: Group, lower: Array, upper: Array) -> None:
        """Stops on the axis position."""


class Now(Protocol):
    """What readings see of the state at t (reference/now.py); arrays (num_worlds, ...)."""

    semi_implicit: bool

    @property
    def num_worlds(self) -> int:
        """How many worlds."""

    @property
    def groups(self) -> list[Group]:
        """All actuators by kind."""

    @property
    def control(self) -> Array:
        """Commands, (num_worlds, controls)."""

    @property
    def state(self) -> dict[str, Array]:
        """The state's arrays by name."""

    def broadcast(self, array: Array) -> Array:
        """(1 or num_worlds, n) as (num_worlds, n)."""

    def axis_value(self, axes: Array) -> Array:
        """Coordinates of axis rows, m or rad."""

    def axis_rate(self, axes: Array) -> Array:
        """Rates of axis rows, m/s or rad/s."""

    def command_before(self, group: Group, name: str) -> Array:
        """Command over the last step, (num_worlds, n)."""

    def group(self, kind: str) -> Group:
        """All actuators of a kind."""


class AxisMaker(Protocol):
    """How an actuator asks finalize for the axis row that it acts on."""

    def joint_axis(self, joint: int, coordinate: int) -> int:
        """Axis row of a joint coordinate; shared by all who ask for it."""

    def actuator_axis(self, actuator: int) -> int:
        """Axis row of an actuator, for ``axes`` of a coupled kind."""

    def line_axis(
        self, label: str, body_a: int, point_a: Array, body_b: int, point_b: Array, limit_restitution: float = 0.0
    ) -> int:
        """Axis row of the distance between two points, a constraint of its own."""


@dataclass
class Group:
    """All actuators of one kind.

    ``params`` and ``state`` hold (1 or num_worlds, n) arrays by name; ``axis`` the axis rows (n,);
    ``control`` the columns of the control array by command name, each (n,).
    """

    type: ActuatorType
    specs: list[ActuatorSpec]
    axis: Array
    control: dict[str, Array]
    params: dict[str, Array] = field(default_factory=dict)
    state: dict[str, Array] = field(default_factory=dict)
    unique_axes: bool = True
    axes: list[Array] = field(default_factory=list)
    """Axis rows of each one of a coupled kind."""
    coupled: Array | None = None
    """Number of each one's coupled law, (n,); None if the kind has none."""
    clamp_place: Array | None = None
    """Number of each one's clamped term among those of its axis row, (n,); None if the kind has none."""
    derived: dict[str, Any] = field(default_factory=dict)
    """Values that follow from the parameters alone, for the type's own use; emptied when one is written."""

    @property
    def labels(self) -> list[str]:
        """Labels in order."""
        return [s.label for s in self.specs]

    def alone(self, n: int, worlds: Any = slice(None)) -> Group:
        """A group of the ``n``-th one, with its parameters in chosen worlds; for checks."""
        params = {k: p[slice(None) if p.shape[0] == 1 else worlds, n : n + 1] for k, p in self.params.items()}
        axes = self.axes[n : n + 1]
        return replace(self, specs=self.specs[n : n + 1], axis=self.axis[n : n + 1], axes=axes, params=params)


class ActuatorType:
    """Base of an actuator kind; registered by ``name``. Signals are ``<prefix>.<label>.<reading>``."""

    name: ClassVar[str]
    prefix: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    references: ClassVar[Mapping[str, Reference]] = {}
    """Which of the builder's parameters are indices of bodies, joints or others, or lie in the frame of a body."""
    variables: ClassVar[tuple[StateVariable, ...]] = ()
    voids: ClassVar[Mapping[str, int]] = {}
    """Which variables are voids in oil, m3, and the number of the first actuator's in the state's ``void_peak``."""
    jumps_from: ClassVar[float] = 0.0
    """Speed from which on a motion of its joint is a jump, m/s or rad/s (``jump``); 0: the kind moves no joint."""
    commands: ClassVar[tuple[str, ...]] = ()
    """Names of the commands; the first is ``control[label]``, another one ``control[label + "." + name]``."""
    readings: ClassVar[tuple[Reading, ...]] = ()
    picture: ClassVar[str | None] = None
    """What the viewer draws: "coil" or "barrel_and_rod" from ``point_a`` of ``body_a`` to ``point_b`` of ``body_b``,
    "motor_can" or "torsion_coil" on the axis of ``joint`` (names of parameters); None: nothing."""
    curved: ClassVar[bool] = False
    """True if the law depends on the row velocity beyond P - D u, so that a better guess refits it."""
    clamped: ClassVar[bool] = False
    """True if the kind may add a term with a limit of its own: ``Work.add_clamped_law``; in kernels
    ``own.clamped_impulse``, ``own.clamped_slope`` and ``own.clamped_bound`` (``ActuatorTerm``)."""
    coupled: ClassVar[bool] = False
    """True if the kind acts on several axes at once, those of ``axes``: ``Work.add_coupled_law``; in kernels the
    function ``<name>_couple(w, k, law)`` (``CoupledLaw``), and ``<name>_recouple`` that fits it anew."""
    brakes: ClassVar[bool] = False
    """True: its force over the coming kick and its heat are signals."""
    turns: ClassVar[bool] = False
    """True: the units of parameters and readings are those on a turn; on a travel m and N stand for rad and N m."""
    kernel_file: ClassVar[str] = ""
    """File in cuda_kernels/actuators/ that holds the kind's functions ``<name>_<function>``."""
    kernel_source: ClassVar[str] = ""
    """The same of a kind outside the package: their text, or the name of a .cuh file beside that of the class."""
    kernel: ClassVar[tuple[str, ...]] = ()
    """Which functions it holds: "contribute", "refresh", "couple", "recouple", "advance", "push"."""
    kernel_scratch: ClassVar[tuple[str, ...]] = ()
    """Numbers that one actuator keeps within a substep."""
    state_fields: ClassVar[tuple[Field, ...]] = ()
    """Arrays that the kind adds to the state, for what is no number of one actuator; the first dimension is "worlds",
    and "<name>_count" is the number of its actuators. ``work.state.arrays[name]``; in kernels ``w.name()``."""
    kernel_fields: ClassVar[tuple[Field, ...]] = ()
    """Arrays of one world that its kernels work in, likewise; what is in them is lost after the substep."""

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Value of a command before the user gives one."""
        return 0.0

    def steering(self, model: Elements, spec: ActuatorSpec, name: str) -> Steering:
        """How people move a command, its range, and where it is safe.

        Unless the kind declares more, people are offered -1 to 1, nothing is limited, and 0 is safe.

        Args:
            model: that the actuator is in.
            spec: of the actuator.
            name: of the command, as in ``commands``.
        """
        value = self.default_command(spec, name)
        return Steering(lower=min(-1.0, value), upper=max(1.0, value), limited=False)

    def placed(self, spec: ActuatorSpec, bodies: list[BodySpec]) -> ActuatorSpec:
        """The spec with what follows from the bodies' masses, which are known when the model is finalized."""
        return spec

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """Axis row of one actuator; -1 if it acts on a body directly."""
        return -1

    def axes(self, spec: ActuatorSpec, maker: AxisMaker) -> list[int]:
        """Axis rows of one actuator of a coupled kind, each once; they may belong to others as well."""
        return []

    def check_model(self, specs: Sequence[ActuatorSpec], builder: Elements) -> None:
        """Check all actuators of the kind when the model is finalized; raises ModelError."""

    def check(self, group: Group) -> None:
        """Check parameters when the model is finalized, and those of one actuator after a user wrote one.

        Raises:
            ModelError: naming ``group.specs[0]``; of several, each one is checked alone then.
        """

    def inertia(self, group: Group) -> Array | None:
        """Inertia that moves with the axis, kg or kg m2, (1 or num_worlds, n), for the kinetic energy."""
        return None

    def potential(self, group: Group, now: Now) -> Array | None:
        """Stored energy at the current poses, J, (num_worlds, n)."""
        return None

    def works(self, group: Group, now: Now, h: float) -> Callable[[Now], dict[str, Array]] | None:
        """For an audit of energy: keeps what the coming step of h s starts from.

        Returns:
            What tells after it the works of all parts, J, (num_worlds,), by name; None: those on the axes.
        """
        return None

    def push(self, group: Group, work: Work) -> None:
        """Add forces on bodies to ``work.force`` and ``work.torque``."""

    def contribute(self, group: Group, work: Work, velocity: Array | None) -> None:
        """Add to the law of the axis rows; ``velocity`` is the last guess of the row velocity after the step."""

    def advance(self, group: Group, work: Work) -> None:
        """Update the state variables after the solve."""

    def jump(self, group: Group, work: Work) -> Array | None:
        """How far each one jumps in this step, m or rad, (num_worlds, n), 0 where it moves; None: it never jumps."""
        return None


_KINDS: Registry[ActuatorType] = Registry("actuator kind")
register = _KINDS.register


def actuator_type(kind: str) -> ActuatorType:
    """The registered actuator kind.

    Raises:
        ModelError: unknown kind.
    """
    return _KINDS[kind]


def actuator_kinds() -> list[ActuatorType]:
    """All registered kinds by name."""
    return _KINDS.all()


def fitted_weight(ratio: Array | float) -> Array:
    """Weight of the new value in an implicit step of z' = -z/T over ``ratio`` = h/T that is exact for one mode.

    1/(1 - exp(-r)) - 1/r: 1/2 for slow modes (second order), 1 for infinitely fast ones (no ringing).
    """
    r = np.asarray(ratio)
    safe = np.maximum(r, 1e-3)
    exact = 1.0 / -np.expm1(-safe) - 1.0 / safe
    weight: Array = np.where(r < 1e-3, 0.5 + r / 12.0, exact)
    return weight
