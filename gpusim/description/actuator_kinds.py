"""Base class of actuator kinds. Actuators add terms to the force law of an axis.

An axis row is a constraint row along one scalar motion: a joint coordinate, or the distance between two points. The
force law gives the impulse p in a substep as a function of the velocity u along the axis:

    p = P - D u  +  sum_j clamp(Ps_j - Ds_j u, -S_j, S_j)  -  F sign(u)  +  (impulse that keeps u in [u_min, u_max])

Springs, dampers, motors and cylinders determine the impulse P and the slope D. Each actuator j with an effort limit,
such as a servo, adds a clamped term. An axis row has at most MAX_CLAMPED clamped terms. The term ``F sign(u)`` is dry
friction. Joint limits and end stops determine the velocity bounds u_min and u_max.

An actuator of a ``coupled`` kind acts on n axes at once. The force on each axis depends on the velocities of all axes
of the actuator:

    p = P - D u,   P (n,), D (n, n) symmetric and positive definite

Each coupled actuator adds one constraint with n rows. Other actuators can act on the same axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from gpusim import validate
from gpusim.description.elements import Elements
from gpusim.description.field import Field
from gpusim.description.references import AS_IS, BODY, JOINT, Reference, point_on
from gpusim.description.registry import Registry
from gpusim.description.specs import ActuatorSpec, BodySpec
from gpusim.description.ui_hints import UiHints
from gpusim.errors import ModelError
from gpusim.renamed import OF_ACTUATORS, since
from gpusim.typing import Array

# Velocity at t_n from the row velocities of three half steps: u_n = (9 u+ + 6 u- + u--)/16.
# The formula is of second order. Each step of a stiff damper removes 2/3 of a disturbance (double root -1/3 of 9 r^2 +
# 6 r + 1 = 0). The plain mean (u+ + u-)/2 would oscillate forever. The formula is exact for equal steps. After a change
# of the step size, the damping force has an error proportional to the change for two steps.
NEXT, LAST, BEFORE_LAST = 9.0 / 16.0, 6.0 / 16.0, 1.0 / 16.0
# Maximum number of clamped terms on an axis row. Each term uses two bits of the row's mode (reference/joints/laws.py).
MAX_CLAMPED = 14


LINE_REFERENCES: Mapping[str, Reference] = {
    "body_a": BODY,
    "point_a": point_on("body_a"),
    "body_b": BODY,
    "point_b": point_on("body_b"),
}
"""Parameters that refer to bodies and points, for kinds that act between two points."""
ON_TRAVELS = {"rad": "m", "rad/s": "m/s", "N m": "N", "N m/rad": "N/m", "N m s/rad": "N s/m", "rad/s3": "m/s3"}
"""Translational unit for each rotational unit, for ``rotational`` kinds that act on a translational coordinate."""
JOINT_REFERENCES: Mapping[str, Reference] = {"joint": JOINT, "axis": AS_IS}
"""Parameters that refer to a joint and an axis of the joint, for kinds that act on a joint coordinate."""


@dataclass(frozen=True)
class Parameter:
    """A numeric parameter of an actuator. Each world can have its own value."""

    name: str
    unit: str
    doc: str
    signal: bool = True
    """Whether the parameter is a signal. Table points and indices are not signals."""
    default: float | None = None
    """Default value for old machine files that do not contain the parameter. None if every file contains it."""
    computed: bool = False
    """Whether ``ActuatorType.completed`` computes the parameter if the builder does not set it."""


@dataclass(frozen=True)
class StateVariable:
    """A number that an actuator keeps from step to step. ``initial`` computes the initial value from the parameters."""

    name: str
    unit: str
    doc: str
    initial: Callable[[dict[str, Any]], float] = field(default=lambda params: 0.0)
    may_be_unset: bool = False
    """True if the initial value may be NaN. The first step then computes the value."""


@dataclass(frozen=True)
class Reading:
    """A signal of an actuator at time t. ``read(group, now)`` returns its values, (num_worlds, actuators).

    ``device`` is the body of a C++ function that computes the same values (reference/signals/quantities.py). Without
    ``device``, only the host can read the signal. ``range`` computes the limits of the signal's gauge, in ``unit``,
    from the actuator's parameters. Unbounded signals have no ``range``.
    """

    name: str
    unit: str
    doc: str
    read: Callable[[Group, StateReader], Array]
    device: str = ""
    range: Callable[[Mapping[str, Any]], tuple[float, float]] | None = None


class StepBuffers(Protocol):
    """Data that actuators use in the current substep (reference/step_buffers.py). Arrays are (num_worlds, ...)."""

    num_worlds: int
    scheme: str
    state: Any
    config: Any
    h: float
    """Duration of the position update (drift), s."""
    kick_time: Array
    """Duration of the velocity update (kick), s, (num_worlds, 1)."""
    control: Array
    active: Array
    rotation_real: Array
    inverse_mass: Array
    inertia_inverse: Array
    """Inverse inertia in the world frame, 1/(kg m2), (num_worlds, bodies, 3, 3)."""
    twist_before: Array
    """(v, w) of the bodies before the kick, (num_worlds, bodies, 6)."""
    axis_position: Array
    rate: Array
    """Velocity of each axis row before the current velocity update (kick), u-. ``rate_old`` is the row velocity before
    the previous kick. ``rate_next`` is the row velocity after the solve."""
    rate_old: Array
    rate_next: Array
    response: Array
    """Change of the row velocity per unit impulse. The array is not yet valid in the first ``evaluate`` of a
    substep."""
    law: Any
    force: Array
    torque: Array
    term_forces: dict[str, Array]
    scratch: dict[str, Array]
    """Arrays by name in which actuator kinds keep data until the end of the substep."""
    groups: dict[str, Group]
    """All actuators, grouped by kind. A kind can read the groups of other kinds here."""
    circuit: Any

    @property
    def h_prev(self) -> Array:
        """Return the duration of the previous substep (s), (num_worlds, 1)."""

    def broadcast(self, array: Array) -> Array:
        """Broadcast (1 or num_worlds, n) to (num_worlds, n)."""

    def command_now(self, group: Group, name: str) -> Array:
        """Return the command for the step that starts now, (num_worlds, n)."""

    def command_before(self, group: Group, name: str) -> Array:
        """Return the command from the previous step, (num_worlds, n)."""

    def command(self, group: Group, name: str) -> Array:
        """Return the mean command during the velocity update (kick), (num_worlds, n)."""

    def add_law(self, group: Group, impulse: Array, slope: Array) -> None:
        """Set the linear term ``impulse - slope * u`` of each actuator in the force law of its axis row.

        u is the velocity along the axis. A second call in a substep replaces the linear term.
        """

    def add_clamped_law(self, group: Group, impulse: Array, slope: Array, bound: Array) -> None:
        """Add the term ``clamp(impulse - slope * u, -bound, bound)`` of each actuator to the force law of its axis row.

        u is the velocity along the axis. Pass zeros for actuators without an effort limit.
        """

    def add_coupled_law(self, group: Group, number: int, impulse: Array, slope: Array) -> None:
        """Add the force law ``P - D u`` of a coupled actuator on n axes: P (num_worlds, n) and D (num_worlds, n, n)."""

    def add_friction(self, group: Group, force: Array) -> None:
        """Add dry friction (N or N m) to the axis rows of a group."""

    def add_limits(self, group: Group, lower: Array, upper: Array) -> None:
        """Limit the axis coordinates (m or rad) of a group to the range from ``lower`` to ``upper``."""


class StateReader(Protocol):
    """State at time t, from which actuator signals are computed (reference/signals/state_reader.py).

    Arrays are (num_worlds, ...).
    """

    semi_implicit: bool

    @property
    def num_worlds(self) -> int:
        """Return the number of worlds."""

    @property
    def groups(self) -> list[Group]:
        """Return the groups of actuators, one for each kind."""

    @property
    def control(self) -> Array:
        """Return the commands, (num_worlds, controls)."""

    @property
    def state(self) -> dict[str, Array]:
        """Return the state's arrays by name."""

    def broadcast(self, array: Array) -> Array:
        """Broadcast (1 or num_worlds, n) to (num_worlds, n)."""

    def axis_value(self, axes: Array) -> Array:
        """Return the coordinates of the axes ``axes`` (m or rad)."""

    def axis_rate(self, axes: Array) -> Array:
        """Return the velocities of the axes ``axes`` (m/s or rad/s)."""

    def command_before(self, group: Group, name: str) -> Array:
        """Return the command from the previous step, (num_worlds, n)."""

    def group(self, kind: str) -> Group:
        """Return all actuators of a kind."""


class AxisMaker(Protocol):
    """Factory that creates axis rows. ``finalize`` passes the factory to the actuators."""

    def joint_axis(self, joint: int, coordinate: int) -> int:
        """Return the index of the axis row of a joint coordinate. All actuators on this coordinate share the row."""

    def actuator_axis(self, actuator: int) -> int:
        """Return the index of the axis row on which an actuator acts. ``actuator`` is an actuator index."""

    def line_axis(
        self, label: str, body_a: int, point_a: Array, body_b: int, point_b: Array, limit_restitution: float = 0.0
    ) -> int:
        """Add a constraint with an axis row for the distance between two points. Return the index of the row."""


@dataclass
class Group:
    """All n actuators of one kind.

    ``params`` and ``state`` map each name to an array (1 or num_worlds, n). ``axis`` (n,) contains the index of each
    actuator's axis row. ``control`` maps each command name to column indices (n,) of the control array.
    """

    type: ActuatorType
    specs: list[ActuatorSpec]
    axis: Array
    control: dict[str, Array]
    params: dict[str, Array] = field(default_factory=dict)
    state: dict[str, Array] = field(default_factory=dict)
    unique_axes: bool = True
    axes: list[Array] = field(default_factory=list)
    """Axis rows of each actuator, for a coupled kind."""
    coupled: Array | None = None
    """Index of each actuator's coupled law, (n,), or None if the kind has no coupled laws."""
    clamp_index: Array | None = None
    """Index of each actuator's clamped term on its axis row, (n,), or None if the kind has no clamped terms."""
    derived: dict[str, Any] = field(default_factory=dict)
    """Cache of values that depend only on the parameters. Writing a parameter clears the cache."""

    @property
    def labels(self) -> list[str]:
        """Return the labels of all actuators in the group."""
        return [s.label for s in self.specs]

    def check_signs(self, positive: Iterable[str] = (), not_negative: Iterable[str] = ()) -> None:
        """Raise a ModelError if a parameter has the wrong sign."""
        for names, wrong, rule, sign in (
            (positive, np.less_equal, "must be above zero", ">"),
            (not_negative, np.less, "must not be negative", ">="),
        ):
            for name in names:
                if np.any(wrong(self.params[name], 0.0)):
                    raise validate.fail(self.specs[0].element, f"{name} {rule}", f"write {name} {sign} 0")

    def alone(self, n: int, worlds: Any = slice(None)) -> Group:
        """Return a group that contains only actuator ``n``, with the parameters of ``worlds``."""
        params = {k: p[slice(None) if p.shape[0] == 1 else worlds, n : n + 1] for k, p in self.params.items()}
        axes = self.axes[n : n + 1]
        return replace(self, specs=self.specs[n : n + 1], axis=self.axis[n : n + 1], axes=axes, params=params)


class ActuatorType:
    """Base class of actuator kinds. Each kind is registered under its ``name``.

    The signals of an actuator are named ``<prefix>.<label>.<reading>``.
    """

    name: ClassVar[str]
    prefix: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    references: ClassVar[Mapping[str, Reference]] = {}
    """Builder parameters that refer to model elements, or that are points or directions in a body frame."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names of further builder parameters, which are neither ``parameters`` nor ``references``."""
    options: ClassVar[tuple[str, ...]] = ()
    """Names of further builder parameters that a builder may leave out."""
    variables: ClassVar[tuple[StateVariable, ...]] = ()
    voids: ClassVar[Mapping[str, int]] = {}
    """State variables that store the volume of voids (cavitation) in oil, m3."""
    jumps_from: ClassVar[float] = 0.0
    """Speed limit (m/s or rad/s). A prescribed motion that needs a higher joint speed is a ``jump``. The limit is 0 if
    the kind prescribes no motion."""
    commands: ClassVar[tuple[str, ...]] = ()
    """Names of the commands. ``control[label]`` is the first command. Each other command is
    ``control[label + "." + name]``."""
    readings: ClassVar[tuple[Reading, ...]] = ()
    picture: ClassVar[str | None] = None
    """Picture in the viewer. The pictures "coil" and "barrel_and_rod" need the parameters ``body_a``, ``point_a``,
    ``body_b`` and ``point_b``. The pictures "motor_can" and "torsion_coil" need ``joint``. None if the kind has no
    picture."""
    nonlinear: ClassVar[bool] = False
    """True if the force law is nonlinear in the velocity of the axis row."""
    clamped: ClassVar[bool] = False
    """True if the kind may add a term with a force limit. In Python, the kind calls ``StepBuffers.add_clamped_law``.
    Kernels set ``term.clamped_impulse``, ``term.clamped_slope`` and ``term.clamped_bound`` (``ActuatorTerm``)."""
    coupled: ClassVar[bool] = False
    """True if the kind acts on several ``axes`` together. In Python, the kind calls ``StepBuffers.add_coupled_law``. In
    kernels, ``<name>_evaluate_coupled(w, k, law)`` sets the ``CoupledLaw``, and ``<name>_relinearize_coupled`` updates
    the law."""
    brakes: ClassVar[bool] = False
    """True if the kind has two additional signals: the dissipated power, and the force during the next velocity update
    (kick)."""
    extra: ClassVar[bool] = False
    """True if kernels omit the kind's code in models without actuators of this kind."""
    rotational: ClassVar[bool] = False
    """True if parameters and readings have rotational units. For a translational axis, m and N replace rad and N m."""
    kernel_file: ClassVar[str] = ""
    """File in cuda_kernels/actuators/ that defines the kind's functions ``<name>_<function>``."""
    kernel_source: ClassVar[str] = ""
    """Kernel source of a user-defined kind: C++ text, or the name of a .cuh file in the folder of the Python file."""
    kernel: ClassVar[tuple[str, ...]] = ()
    """Kernel functions of the kind. Possible names are "evaluate", "relinearize", "evaluate_coupled",
    "relinearize_coupled", "advance" and "push"."""
    kernel_scratch: ClassVar[tuple[str, ...]] = ()
    """Names of the numbers that an actuator's kernel functions keep within a substep."""
    state_fields: ClassVar[tuple[Field, ...]] = ()
    """State arrays of the kind, for data that is not one number per actuator. The first dimension is "worlds". The
    dimension "<name>_count" is the number of actuators of the kind. Python reads an array as
    ``work.state.arrays[name]``, kernels as ``w.name()``."""
    kernel_fields: ClassVar[tuple[Field, ...]] = ()
    """Work arrays of one world for the kind's kernels, declared like ``state_fields``. The data is only valid within
    one substep."""

    def __init_subclass__(cls) -> None:
        """Reject subclasses that define attributes with old names."""
        for name in (*vars(cls), *vars(cls).get("kernel", ())):
            if name in OF_ACTUATORS:
                raise ModelError(f"class {cls.__name__}: {name!r} is {OF_ACTUATORS[name]!r} {since(name)}")

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return the initial value of a command."""
        return 0.0

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of a command: range, safe value and behavior.

        The default range is -1 to 1, extended to include the default command. By default, gpusim does not clip the
        command, and the safe value is 0.

        Args:
            model: the model that contains the actuator.
            spec: the actuator.
            name: command name, as in ``commands``.
        """
        value = self.default_command(spec, name)
        return UiHints(lower=min(-1.0, value), upper=max(1.0, value), limited=False)

    def completed(self, spec: ActuatorSpec, bodies: list[BodySpec]) -> ActuatorSpec:
        """Return a copy of the actuator with additional parameters that depend on the masses of bodies."""
        return spec

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """Return the index of the actuator's axis row, or -1 if the actuator acts on a body directly."""
        return -1

    def axes(self, spec: ActuatorSpec, maker: AxisMaker) -> list[int]:
        """Return the indices of a coupled actuator's axis rows, without duplicates."""
        return []

    def check_model(self, specs: Sequence[ActuatorSpec], builder: Elements) -> None:
        """Check all actuators of this kind in ``finalize``, and raise a ModelError if one is invalid."""

    def check(self, group: Group) -> None:
        """Check the parameters of the actuators in ``group``.

        Raises:
            ModelError: a parameter is invalid. The message names ``group.specs[0]``.
        """

    def check_together(self, groups: Mapping[str, Group]) -> None:
        """Check parameters that depend on other actuator kinds.

        Args:
            groups: all groups of actuators, by name of the kind.

        Raises:
            ModelError: a parameter is invalid.
        """

    def inertia(self, group: Group) -> Array | None:
        """Return the inertia that each actuator adds to its axis (kg or kg m2), (1 or num_worlds, n)."""
        return None

    def potential(self, group: Group, now: StateReader) -> Array | None:
        """Return the stored energy at the current poses (J), (num_worlds, n)."""
        return None

    def works(self, group: Group, now: StateReader, h: float) -> Callable[[StateReader], dict[str, Array]] | None:
        """Record the state before a step of ``h`` s, for an energy audit.

        Returns:
            A function to call after the step, or None if the actuators do work only on joint axes. The function returns
            a dict: name -> work (J), (num_worlds,).
        """
        return None

    def push(self, group: Group, work: StepBuffers) -> None:
        """Add forces and torques on bodies to ``work.force`` and ``work.torque``."""

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the terms of the actuators to the force law of the axis rows.

        ``velocity`` contains the best estimates of the axis velocities after the step.
        """

    def advance(self, group: Group, work: StepBuffers) -> None:
        """Update the state variables after the solve."""

    def jump(self, group: Group, work: StepBuffers) -> Array | None:
        """Return the position jump of each of n prescribed motions in this step (m or rad), (num_worlds, n).

        Return None if the kind has no jumps.
        """
        return None


class JointActuator(ActuatorType):
    """Base class of actuator kinds that act on a joint coordinate."""

    references: ClassVar[Mapping[str, Reference]] = JOINT_REFERENCES

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """Return the index of the joint coordinate's axis row."""
        return maker.joint_axis(spec.params["joint"], spec.params["axis"])


class LineActuator(ActuatorType):
    """Base class of actuator kinds that act between two points."""

    references: ClassVar[Mapping[str, Reference]] = LINE_REFERENCES

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """Return the index of the axis row of the line between the points."""
        p = spec.params
        return maker.line_axis(spec.label, p["body_a"], p["point_a"], p["body_b"], p["point_b"])


_KINDS: Registry[ActuatorType] = Registry("actuator kind")
register = _KINDS.register


def actuator_type(kind: str) -> ActuatorType:
    """Return the registered actuator kind with this name.

    Raises:
        ModelError: unknown kind.
    """
    return _KINDS[kind]


def actuator_kinds() -> list[ActuatorType]:
    """Return all registered kinds, sorted by name."""
    return _KINDS.all()


def fitted_weight(ratio: Array | float) -> Array:
    """Return the weight theta that makes a theta-method step of z' = -z/T exact.

    theta = 1/(1 - exp(-r)) - 1/r is the weight of the value at the end of the step, with r = ``ratio`` = h/T. The
    weight rises from 1/2 (small r) to 1 (large r).
    """
    r = np.asarray(ratio)
    safe = np.maximum(r, 1e-3)
    exact = 1.0 / -np.expm1(-safe) - 1.0 / safe
    weight: Array = np.where(r < 1e-3, 0.5 + r / 12.0, exact)
    return weight
