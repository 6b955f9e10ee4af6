"""Base class of blocks: parameters, ports and operations. trace.py records the operations for kernels and NumPy."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from gpusim import validate
from gpusim.control import units
from gpusim.control.parameters import check_bounds, check_type
from gpusim.control.trace import Num, Number, StateSlot, Trace, Truth
from gpusim.control.units import Unit
from gpusim.description.program import Tuned
from gpusim.errors import ModelError, unknown_name

Shape = tuple[int, ...]
Wire = list[Num]
"""The numbers on a wire, one per component."""


@dataclass(frozen=True)
class Kind:
    """Shape and unit of a wire. The compiler determines shapes and units before the simulation starts."""

    shape: Shape = ()
    unit: Unit = None

    @property
    def size(self) -> int:
        """Number of components."""
        return self.shape[0] if self.shape else 1


class Context:
    """Data and operations for a block while the compiler traces the block.

    Attributes:
        period: sample period (s). With ``max_rate``, worlds can have different periods, so the period is a variable.
        min_period: shortest possible sample period (s).
        kinds: maps each input and each known output to its shape and unit (:class:`Kind`).
    """

    def __init__(
        self, trace: Trace, element: str, period: Number, min_period: float, kinds: dict[str, Kind]
    ) -> None:  # fmt: skip
        self.trace, self.element, self.period, self.min_period, self.kinds = trace, element, period, min_period, kinds
        self.tuned: dict[str, Tuned] = {}
        self.memory: dict[str, Any] = {}
        self.signals: dict[str, list[int]] = {}
        self.commands: dict[str, int] = {}

    def tune(self, name: str, value: float, **rule: Any) -> Num:
        """Return a parameter that users can change during the simulation.

        ``rule`` contains range, unit and description (fields of :class:`Tuned`).
        """
        if name not in self.tuned:
            self.memory[f"parameter {name}"] = self.trace.parameter(value)
            self.tuned[name] = Tuned(len(self.trace.parameters) - 1, **rule)
        found: Num = self.memory[f"parameter {name}"]
        return found

    def add_states(self, name: str, initial: Sequence[float]) -> list[StateSlot]:
        """Return the state variables with the given ``name``. The first call allocates the variables."""
        if name not in self.memory:
            self.memory[name] = [self.trace.add_state(value) for value in initial]
        found: list[StateSlot] = self.memory[name]
        return found

    def add_state(self, name: str, initial: float = 0.0) -> StateSlot:
        """Return the state variable with the given ``name``. The first call allocates the variable."""
        return self.add_states(name, [initial])[0]

    def read_state(self, name: str) -> Wire:
        """Return the values of state variables at the start of the sample."""
        return [self.trace.read_state(slot) for slot in self.memory[name]]

    def write_state(self, name: str, values: Sequence[Number]) -> None:
        """Set the values of state variables for the next sample."""
        for slot, value in zip(self.memory[name], values, strict=True):
            self.trace.write_state(slot, value)

    def select(self, condition: Truth, a: Number, b: Number) -> Num:
        """Return ``a`` if the condition holds, else ``b``."""
        return self.trace.select(condition, a, b)

    def decay(self, time: float) -> Number:
        """Return exp(-period / time), the fraction of an exponential decay that remains after one sample period."""
        if isinstance(self.period, Num):
            return self.trace.function("exp", (-1.0 / time) * self.period)
        return math.exp(-self.period / time)

    def fixed_period(self) -> float:
        """Return the sample period as a plain number.

        Raises:
            ModelError: the period differs between worlds.
        """
        if isinstance(self.period, Num):
            rule = "needs one period for all worlds, but with max_rate the worlds can have different periods"
            raise validate.fail(self.element, rule, "move it to another diagram with a fixed rate")
        return self.period


class Block(ABC):
    """Base class of blocks. :func:`block` registers a subclass and makes it a dataclass of the parameters.

    Class attributes:
        kind: name of the block type, such as "pid".
        inputs, outputs: names of the ports.
        waits: inputs that affect only the outputs of later samples. A loop of wires through an input in ``waits`` is
            not an algebraic loop.
        optional: default values of the optional inputs, by port.
        host: whether the block calls Python code on the host (CPU).
    """

    kind: ClassVar[str]
    inputs: tuple[str, ...] = ("in",)
    outputs: tuple[str, ...] = ("out",)
    waits: ClassVar[frozenset[str]] = frozenset()
    optional: dict[str, float] = {}  # noqa: RUF012 (an instance may set its own)
    host: ClassVar[bool] = False
    same_units: ClassVar[bool] = True
    """Whether the default :meth:`wires` requires the same unit for all inputs and outputs."""
    unit: str | None
    """Unit of the outputs. Only some blocks have the parameter ``unit``."""

    def check(self, element: str) -> None:  # noqa: B027 (many blocks check nothing)
        """Check the parameters. :func:`make_block` has already checked types, and that ``lower`` is below ``upper``.

        Raises:
            ModelError: a parameter is invalid.
        """

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return shapes and units of the outputs. ``inputs``: known shapes and units of the inputs.

        By default, the outputs have the common shape of the inputs. The unit of the outputs is the block's parameter
        ``unit``. Blocks without this parameter use the common unit of the inputs.

        Raises:
            ModelError: the shapes or units of the inputs do not match.
        """
        shape = common_shape(inputs)
        if "unit" in self.parameters():
            return dict.fromkeys(self.outputs, Kind(shape, units.parse(self.unit)))
        return dict.fromkeys(self.outputs, Kind(shape, common_unit(inputs) if self.same_units else None))

    @abstractmethod
    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the outputs of a sample. ``inputs`` contains all inputs except the inputs in ``waits``."""

    def update(self, c: Context, inputs: dict[str, Wire]) -> None:  # noqa: B027 (most blocks have no state)
        """Update the state variables from all inputs, including the inputs in ``waits``."""

    @classmethod
    def parameters(cls) -> dict[str, dataclasses.Field[Any]]:
        """Return the parameters by name."""
        return {f.name: f for f in dataclasses.fields(cls)}  # type: ignore[arg-type]


def common_shape(inputs: dict[str, Kind]) -> Shape:
    """Return the common shape of the inputs. All vectors must have the same length. Numbers match any shape."""
    shapes = {kind.shape for kind in inputs.values()} - {()}
    if len(shapes) > 1:
        listed = ", ".join(f"{port} {kind.shape or 'a number'}" for port, kind in inputs.items())
        raise ModelError(f"its inputs have different shapes ({listed}); connect vectors of equal length, or numbers")
    return shapes.pop() if shapes else ()


def common_unit(inputs: dict[str, Kind]) -> Unit:
    """Return the common unit of all inputs."""
    found: Unit = None
    for kind in inputs.values():
        if not units.fits(found, kind.unit):
            listed = ", ".join(f"{port} in {units.shown(k.unit)}" for port, k in inputs.items())
            raise ModelError(f"its inputs have different units ({listed}); insert a gain with a unit")
        found = kind.unit if found is None else found
    return found


def check_numbers(inputs: dict[str, Kind]) -> None:
    """Raise an error if an input is a vector."""
    for port, kind in inputs.items():
        if kind.shape:
            rule = f"{port} takes a number, and the wire has {kind.shape[0]} numbers"
            raise ModelError(f"{rule}; select one number with a block 'select_element'")


def check_sizes(inputs: dict[str, Kind], sizes: dict[str, int]) -> None:
    """Check the number of components of each input. ``sizes`` maps each input to the required number."""
    for port, size in sizes.items():
        if port in inputs and inputs[port].size != size:
            rule = f"{port} takes {size} number{'s' * (size > 1)}, and the wire has {inputs[port].size}"
            raise ModelError(f"{rule}; connect {size}")


def each(function: Callable[..., Num], *wires: Wire) -> Wire:
    """Apply a function component by component. A wire with one number is combined with all components."""
    count = max(map(len, wires), default=1)
    return [function(*(wire[k] if len(wire) > 1 else wire[0] for wire in wires)) for k in range(count)]


_KINDS: dict[str, type[Block]] = {}
_B = TypeVar("_B", bound=type[Block])


def block(name: str) -> Callable[[_B], _B]:
    """Return a class decorator that registers a block under its name and makes it a dataclass."""

    def register(cls: _B) -> _B:
        cls.kind = name
        dataclass(cls)
        _KINDS[name] = cls
        return cls

    return register


def block_kinds() -> dict[str, type[Block]]:
    """Return all block classes by the name of the block type."""
    return dict(sorted(_KINDS.items()))


def make_block(element: str, kind: str, parameters: dict[str, Any]) -> Block:
    """Make a block of the type ``kind``.

    Raises:
        ModelError: the block type or a parameter is unknown, or a parameter is missing or invalid.
    """
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ModelError(f"{element}: {unknown_name('kind of block', kind, _KINDS)}")
    fields = _KINDS[kind].parameters()
    for name in parameters:
        if name not in fields:
            raise ModelError(f"{element}: {unknown_name(f'parameter of {kind}', name, fields)}")
    required = [n for n, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in parameters]
    if missing:
        rule = f"a block '{kind}' needs {', '.join(missing)}"
        raise validate.fail(element, rule, f"give {missing[0]}=...")
    parameters = {name: x.item() if isinstance(x, np.generic) else x for name, x in parameters.items()}
    for name, value in parameters.items():
        check_type(element, name, str(fields[name].type), value)
    new = _KINDS[kind](**parameters)
    if {"lower", "upper"} <= fields.keys():
        check_bounds(element, new.lower, new.upper)  # type: ignore[attr-defined]
    new.check(element)
    return new
