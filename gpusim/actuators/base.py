"""What an actuator is made of, and the law of an axis row that actuators add to.

An axis row acts along one scalar motion u (a joint coordinate, or the distance of two points). Over one
substep its impulse obeys

    p = P - D u  +  clamp(Ps - Ds u, -S, S)  -  F sign(u)  +  (what keeps u within [u_min, u_max])

P, D: springs, dampers, motors, cylinders; Ps, Ds, S: servos with an effort limit; F: dry friction;
u_min, u_max: limits and stops. Every actuator is one file that adds its share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from gpusim.actuators.steering import Steering
from gpusim.model.registry import Registry
from gpusim.model.specs import ActuatorSpec, BodySpec
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.reference.now import Now
    from gpusim.reference.work import Work

# Velocity at t_n from the row velocities of three half steps: u_n = (9 u+ + 6 u- + u--)/16.
# Second order, and stiff dampers lose 2/3 of a disturbance each step (double root -1/3 of
# 9 r^2 + 6 r + 1 = 0), where the plain mean (u+ + u-)/2 rings without end. The weights place u_n at t_n for equal
# steps; at a change of step size the damping force is off by a share of that change for two steps.
NEXT, LAST, BEFORE_LAST = 9.0 / 16.0, 6.0 / 16.0, 1.0 / 16.0


@dataclass(frozen=True)
class Parameter:
    """A number that an actuator has; may differ per world."""

    name: str
    unit: str
    doc: str


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

    ``device`` is the same as the body of a C++ function (reference/quantities.py). ``range`` tells the least and
    greatest value, in ``unit``, from the parameters of one actuator, for gauges; None where nothing bounds the signal.
    """

    name: str
    unit: str
    doc: str
    read: Callable[[Group, Now], Array]
    device: str
    range: Callable[[Mapping[str, Any]], tuple[float, float]] | None = None


class AxisMaker(Protocol):
    """How an actuator asks finalize for the axis row that it acts on."""

    def joint_axis(self, joint: int, coordinate: int) -> int:
        """Axis row of a joint coordinate; shared by all who ask for it."""

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
    derived: dict[str, Any] = field(default_factory=dict)
    """Values that follow from the parameters alone, for the type's own use; emptied when one is written."""

    @property
    def labels(self) -> list[str]:
        """Labels in order."""
        return [s.label for s in self.specs]


class ActuatorType:
    """Base of an actuator kind; registered by ``name``. Signals are ``<prefix>.<label>.<reading>``."""

    name: ClassVar[str]
    prefix: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    variables: ClassVar[tuple[StateVariable, ...]] = ()
    commands: ClassVar[tuple[str, ...]] = ()
    """Names of the commands; the first is ``control[label]``, another one ``control[label + "." + name]``."""
    readings: ClassVar[tuple[Reading, ...]] = ()
    curved: ClassVar[bool] = False
    """True if the law depends on the row velocity beyond P - D u, so that a better guess refits it."""
    kernel_file: ClassVar[str] = ""
    """File in cuda_kernels/actuators/ that holds the kind's functions ``<name>_<function>``."""
    kernel: ClassVar[tuple[str, ...]] = ()
    """Which functions it holds: "contribute", "refresh", "commit", "push"."""
    kernel_scratch: ClassVar[tuple[str, ...]] = ()
    """Numbers that one actuator keeps within a substep."""

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Value of a command before the user gives one."""
        return 0.0

    def steering(self, model: Model, spec: ActuatorSpec, name: str) -> Steering:
        """How people move a command, and where it is safe; unless the kind says more, -1 to 1, and 0 is safe.

        Args:
            model: that the actuator is in.
            spec: of the actuator.
            name: of the command, as in ``commands``.
        """
        value = self.default_command(spec, name)
        return Steering(lower=min(-1.0, value), upper=max(1.0, value))

    def placed(self, spec: ActuatorSpec, bodies: list[BodySpec]) -> ActuatorSpec:
        """The spec with what follows from the bodies' masses, which are known when the model is finalized."""
        return spec

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """Axis row of one actuator; -1 if it acts on a body directly."""
        return -1

    def check(self, group: Group) -> None:
        """Check the group's parameter arrays after a user wrote one; raises ModelError."""

    def inertia(self, group: Group) -> Array | None:
        """Inertia that moves with the axis, kg or kg m2, (1 or num_worlds, n), for the kinetic energy."""
        return None

    def potential(self, group: Group, now: Now) -> Array | None:
        """Stored energy at the current poses, J, (num_worlds, n)."""
        return None

    def push(self, group: Group, work: Work) -> None:
        """Add forces on bodies to ``work.force`` and ``work.torque``."""

    def contribute(self, group: Group, work: Work, velocity: Array | None) -> None:
        """Add to the law of the axis rows; ``velocity`` is the last guess of the row velocity after the step."""

    def commit(self, group: Group, work: Work) -> None:
        """Update the state variables after the solve."""


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
