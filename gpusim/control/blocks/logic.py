"""Logic blocks: comparisons, gates, switches, memories, counters, state machines. A number above 0.5 is true."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from gpusim import validate
from gpusim.control import units
from gpusim.control.block import Block, Context, Kind, Wire, block, check_numbers, common_shape, common_unit, each
from gpusim.control.blocks.arithmetic import Counted
from gpusim.control.trace import Num, Truth

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
LOGIC = ("and", "or", "xor", "not", "nand", "nor")


class Logic(Block):
    """Base class of blocks whose outputs are 1 or 0."""

    same_units = False

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return unitless outputs."""
        return dict.fromkeys(self.outputs, Kind(common_shape(inputs), units.NONE))


@block("compare")
class Compare(Logic):
    """Compare a and b: 1 if ``a sign b`` is true, else 0. ``sign``: <, <=, >, >=, == or !=.

    If the input b has no wire, ``value`` replaces b.
    """

    sign: str = ">"
    value: float = 0.0
    inputs = ("a", "b")

    def __post_init__(self) -> None:
        self.optional = {"b": self.value}

    def check(self, element: str) -> None:
        """Check the sign."""
        validate.choice(element, "sign", self.sign, COMPARISONS)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Check that a and b have the same unit."""
        common_unit(inputs)
        return super().wires(inputs, period)

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Compare each component."""
        return {"out": each(lambda a, b: compared(a, self.sign, b).number(), inputs["a"], inputs["b"])}


def compared(a: Num, sign: str, b: Num) -> Truth:
    """Return the result of the comparison ``a sign b``."""
    made = {
        "<": lambda: a < b, "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b,
        "==": lambda: a.equals(b), "!=": lambda: ~a.equals(b),
    }  # fmt: skip
    return made[sign]()


@block("logic")
class LogicGate(Logic, Counted):
    """Logic gate: "and", "or", "xor", "nand" or "nor" of the inputs a, b, ..., or "not" of one input."""

    operation: str = "and"
    count: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inputs = self.inputs[:1] if self.operation == "not" else self.inputs

    def check(self, element: str) -> None:
        """Check the operation and the number of inputs."""
        validate.choice(element, "operation", self.operation, LOGIC)
        super().check(element)

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Apply the operation to each component."""
        return {"out": each(self._of, *(inputs[port] for port in self.inputs))}

    def _of(self, *x: Num) -> Num:
        truths = [v.is_true() for v in x]
        if self.operation == "xor":
            return reduce(lambda a, b: (a & ~b) | (~a & b), truths).number()
        whole = reduce(lambda a, b: a & b if self.operation in ("and", "nand") else a | b, truths)
        return (~whole if self.operation in ("not", "nand", "nor") else whole).number()


@block("switch")
class Switch(Block):
    """Switch: the output is ``a`` while ``on`` is above 0.5, else ``b``."""

    inputs = ("on", "a", "b")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the common shape and unit of a and b."""
        return {"out": Kind(common_shape(inputs), common_unit({k: v for k, v in inputs.items() if k != "on"}))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Select each component."""
        wires = inputs["on"], inputs["a"], inputs["b"]
        return {"out": each(lambda on, a, b: c.select(on.is_true(), a, b), *wires)}


@block("select")
class Select(Counted):
    """Select one of the inputs a, b, ... by ``index``. The index counts from 0, and is rounded and clipped."""

    count: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inputs = ("index", *self.inputs)

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the common shape and unit of the inputs a, b, ..."""
        check_numbers({port: kind for port, kind in inputs.items() if port == "index"})
        rest = {k: v for k, v in inputs.items() if k != "index"}
        return {"out": Kind(common_shape(rest), common_unit(rest))}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Select each component."""
        index, ports = inputs["index"][0], self.inputs[1:]

        def chosen(*values: Num) -> Num:
            out = values[0]
            for k, value in enumerate(values[1:], 1):
                out = c.select(index > k - 0.5, value, out)
            return out

        return {"out": each(chosen, *(inputs[p] for p in ports))}


@block("sr_latch")
class SrLatch(Logic):
    """SR latch: ``set`` switches the output to 1, and ``reset`` switches the output to 0. ``reset`` has priority."""

    initial: bool = False
    inputs = ("set", "reset")

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Update each component."""
        c.add_states("on", [float(self.initial)] * c.kinds["out"].size)
        wires = inputs["set"], inputs["reset"], c.read_state("on")
        out = each(lambda s, r, y: (~r.is_true() & (s.is_true() | y.is_true())).number(), *wires)
        c.write_state("on", out)
        return {"out": out}


@block("sample_hold")
class SampleHold(Block):
    """Sample-and-hold: while ``sample`` is above 0.5, the output follows the input.

    Otherwise, the output is constant.
    """

    initial: float = 0.0
    inputs = ("in", "sample")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shape and unit of the input."""
        check_numbers({"sample": inputs["sample"]})
        return {"out": inputs["in"]}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Update each component."""
        c.add_states("held", [self.initial] * c.kinds["out"].size)
        takes = inputs["sample"][0].is_true()
        out = [c.select(takes, u, y) for u, y in zip(inputs["in"], c.read_state("held"), strict=True)]
        c.write_state("held", out)
        return {"out": out}


@block("edge_detector")
class EdgeDetector(Logic):
    """Edge detector: the output is 1 in each sample with an edge ("rising", "falling" or "both"), else 0."""

    which: str = "rising"
    initial: bool = False

    def check(self, element: str) -> None:
        """Check ``which``."""
        validate.choice(element, "which", self.which, ("rising", "falling", "both"))

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Compare the input with its value in the previous sample."""
        c.add_states("before", [float(self.initial)] * c.kinds["out"].size)
        out = []
        for x, y in zip(inputs["in"], c.read_state("before"), strict=True):
            now, before = x.is_true(), y.is_true()
            rises, falls = now & ~before, ~now & before
            out.append({"rising": rises, "falling": falls, "both": rises | falls}[self.which].number())
        c.write_state("before", [x.is_true().number() for x in inputs["in"]])
        return {"out": out}


@block("counter")
class Counter(Block):
    """Counter of rising edges: each edge of ``up`` adds 1, each edge of ``down`` subtracts 1.

    The count is 0 while ``reset`` is true. With ``modulo``, the count wraps around in the range 0 to ``modulo`` - 1.
    """

    modulo: int | None = None
    inputs = ("up", "down", "reset")
    optional = {"down": 0.0, "reset": 0.0}
    same_units = False

    def check(self, element: str) -> None:
        """Check ``modulo``."""
        if self.modulo is not None and self.modulo < 2:
            raise validate.fail(element, f"modulo = {self.modulo!r} is below 2", "give 2 or more")

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return a unitless number."""
        check_numbers(inputs)
        return {"out": Kind((), units.NONE)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Update the count with the rising edges in this sample."""
        c.add_states("before", [0.0, 0.0])
        c.add_state("count")
        (count,) = c.read_state("count")
        for (port, sign), before in zip((("up", 1.0), ("down", -1.0)), c.read_state("before"), strict=True):
            count = count + sign * (inputs[port][0].is_true() & ~before.is_true()).number()
        if self.modulo is not None:
            whole = float(self.modulo)
            count = count - whole * c.trace.floor(count / whole)
        count = c.select(inputs["reset"][0].is_true(), 0.0, count)
        c.write_state("before", [inputs[port][0].is_true().number() for port in ("up", "down")])
        c.write_state("count", [count])
        return {"out": [count]}


@block("state_machine")
class StateMachine(Block):
    """State machine: named states with transitions.

    The transition [from, to, port] is possible while the input ``port`` is true. The transition [from, to, seconds] is
    possible after the state ``from`` has been active for ``seconds`` s. In each sample, the block executes the first
    possible transition in the list. A transition from a state to itself also resets ``time`` to 0.

    Outputs: ``state`` is the index of the active state, counted from 0. ``time`` is the time since the last transition,
    or since the start (s). Each state also has an output, which is 1 while the state is active.
    """

    states: Sequence[str]
    transitions: Sequence[Sequence[Any]]
    initial: str = ""
    same_units = False

    def __post_init__(self) -> None:
        ports: dict[str, None] = {}
        try:
            for transition in self.transitions:
                if isinstance(transition[2], str):
                    ports[transition[2]] = None
            self.inputs = tuple(ports)
            self.outputs = ("state", "time", *self.states)
        except (TypeError, IndexError):
            self.inputs, self.outputs = (), ("state", "time")

    def check(self, element: str) -> None:
        """Check the states and transitions."""
        listed = [] if isinstance(self.states, str) else list(self.states)
        if not listed or not all(s.isidentifier() for s in listed):
            raise validate.fail(
                element, f"states = {self.states!r} are not names", 'give names, such as ["idle", "run"]'
            )
        taken = [s for s in listed if s in ("state", "time")]
        if taken:
            raise validate.fail(element, f"the state {taken[0]!r} has the name of another output", "rename it")
        if self.initial and self.initial not in listed:
            raise validate.fail(element, f"initial = {self.initial!r} is unknown", f"give one of {', '.join(listed)}")
        if not isinstance(self.transitions, list | tuple):
            rule = f"transitions = {self.transitions!r} is not a list"
            raise validate.fail(element, rule, 'give a list such as [["idle", "run", "start"], ["run", "idle", 2.5]]')
        for transition in self.transitions:
            self._check_transition(element, transition, listed)

    @staticmethod
    def _check_transition(element: str, transition: Any, listed: list[str]) -> None:
        good = isinstance(transition, Sequence) and not isinstance(transition, str) and len(transition) == 3
        if not good:
            rule = f"transition {transition!r} is not [from, to, port or seconds]"
            raise validate.fail(element, rule, "give three entries")
        for state in transition[:2]:
            if state not in listed:
                rule = f"transition {list(transition)!r} names {state!r}, which is not a state"
                raise validate.fail(element, rule, f"give one of {', '.join(listed)}")
        if isinstance(transition[2], str):
            if not transition[2].isidentifier():
                raise validate.fail(
                    element, f"the port {transition[2]!r} is not a valid name", "give letters, digits and _"
                )
        else:
            validate.positive(element, "seconds of a transition", transition[2])

    def wires(self, inputs: dict[str, Kind], period: float) -> dict[str, Kind]:
        """Return the shapes and units of the outputs. All outputs are unitless numbers, except the time (s)."""
        check_numbers(inputs)
        kinds = dict.fromkeys(self.outputs, Kind((), units.NONE))
        return kinds | {"time": Kind((), units.SECOND)}

    def run(self, c: Context, inputs: dict[str, Wire]) -> dict[str, Wire]:
        """Return the state after the transition of this sample."""
        names, t = list(self.states), c.trace
        start = float(names.index(self.initial)) if self.initial else 0.0
        c.add_states("state", [start, 0.0])
        state, since = c.read_state("state")
        after: Num | float = state
        now = since
        for begin, end, why in reversed([tuple(x) for x in self.transitions]):
            waited = since >= float(why) - 1e-6 * c.period if not isinstance(why, str) else None
            holds = waited if waited is not None else inputs[why][0].is_true()
            possible = state.equals(float(names.index(begin))) & holds
            after = t.select(possible, float(names.index(end)), after)
            now = t.select(possible, 0.0, now)
        after = t.constant(start) if isinstance(after, float) else after
        c.write_state("state", [after, now + c.period])
        flags = {name: [after.equals(float(k)).number()] for k, name in enumerate(names)}
        return {"state": [after], "time": [now], **flags}
