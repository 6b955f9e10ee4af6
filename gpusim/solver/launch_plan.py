"""Launch plan of the staged launch: lists of kernel launches that run the schedule for large worlds.

The CUDA backend captures each list of launches in a CUDA graph. A launch can have conditions, which each world
evaluates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpusim.compiler.contact_topology import PARTS
from gpusim.solver import schedule
from gpusim.solver.nodes import (
    If,
    LaterSweeps,
    Levels,
    Lists,
    Node,
    Routine,
    Run,
    Sizes,
    Stage,
    Sweeps,
    TicketRun,
    While,
    Whole,
    reached,
)

_BIT = {flag.name: 1 << number for number, flag in enumerate(schedule.FLAGS)}


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes:
        condition: bit mask of conditions. The launch runs only in worlds that meet all of these conditions.
        level: level of the elimination tree, or number of the color.
        stage: name that profiles show for the launch.
        items: maximum number of work items per world, or None if unknown. 0 means that one block runs a whole world.
        tickets: True if several blocks share a world. They take tickets, which order their work
            (cuda_kernels/tickets.cuh).
    """

    phase: str
    condition: int = 0
    level: int = 0
    stage: str = field(default="", compare=False)
    items: int | None = field(default=None, compare=False)
    tickets: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Repeat:
    """Loop in a plan. The body repeats while the direct solver needs another pass in at least one world."""

    body: tuple[list[Launch] | Repeat, ...]


Part = list[Launch] | Repeat
Plan = tuple[Part, ...]
_JOINED = (Run, Lists, If, Sweeps, LaterSweeps, Routine)
"""Types of nodes that one launch can run together."""
PUBLISH_ACTIVE = [Launch("publish_active")]
"""Launch that sets the flag ``active`` if the direct solver needs another pass in a world."""
LOAD = Stage("start", (If(schedule.JOINTS, (Whole("clear_rows"),)), Whole("load_state")))
STORE = Routine("store", (*schedule.run("conclude"), Whole("store_healthy")), label="store")


class LaunchPlan:
    """Launch plans of a model: for a step, for a trial substep, for poses, and for each single stage.

    Args:
        sizes: model sizes (``tables.model_tables``), and integer settings of the run ("semi_implicit", "direct", ...).
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        step, trial = (Launch("set_forward", level=number, stage="start") for number in (0, 1))
        self.begin = self.plan(LOAD, step, *schedule.CONTACTS)
        self.substep = self.plan(*schedule.SUBSTEP)
        self.end = self.plan(schedule.STORE_CONTACTS, schedule.CHECK, STORE)
        self.trial = self.plan(LOAD, trial, *schedule.TRIAL)
        self.pose = self.plan(LOAD, schedule.POSE)
        self.stages = {stage.name: self.plan(stage) for stage in (LOAD, *schedule.stages())} | {"end": self.end}

    def step(self, run: Callable[[list[Launch]], None], any_active: Callable[[], bool], substeps: int) -> None:
        """Run one step with ``substeps`` substeps. ``run`` executes a list of launches."""
        execute(self.begin, run, any_active)
        for _ in range(substeps):
            execute(self.substep, run, any_active)
        execute(self.end, run, any_active)

    def plan(self, *nodes: Node | Launch) -> Plan:
        """Return the plan that runs the given schedule nodes."""
        parts: list[Part] = []
        for node in nodes:
            if isinstance(node, Launch):
                _append(parts, node)
            else:
                self._add(node, 0, 0, "", parts)
        return tuple(parts)

    def _add(self, node: Node, mask: int, level: int, label: str, parts: list[Part]) -> None:
        add = lambda phase, items=None, tickets=False: _append(  # noqa: E731
            parts, Launch(phase, mask, level, label, items, tickets)
        )
        if isinstance(node, Run):
            if not node.phase.idle(self.sizes):
                add(node.phase.name, node.phase.max_items({**self.sizes, "PARTS": PARTS}), isinstance(node, TicketRun))
        elif isinstance(node, Whole):
            add(node.name)
        elif isinstance(node, Lists):
            add(node.phase.name, self.sizes["pairs"], tickets=True)
        elif isinstance(node, Stage) and node.together is not None and node.together.host(self.sizes):
            _append(parts, Launch(f"{node.name}_world", 0, 0, node.name, 0))
        elif isinstance(node, While):
            inner: list[Part] = []
            self._add_all(node.body, mask, level, label, inner)
            parts.append(Repeat(tuple(inner)))
        else:
            self._add_nested(node, mask, level, label, parts)

    def _add_nested(self, node: Node, mask: int, level: int, label: str, parts: list[Part]) -> None:
        if isinstance(node, Routine):
            label = node.name if isinstance(node, Stage) else node.label or label
            self._add_all(node.body, mask, level, label, parts)
        elif isinstance(node, If):
            if node.when.host(self.sizes):
                bit = _BIT[node.when.name] if node.when.each_world else 0
                if node.joined and self._joins(node):
                    name = _label(node) or label
                    _append(parts, Launch(node.joined, mask | bit, level, name, self._max_items(node), tickets=True))
                else:
                    self._add_all(node.body, mask | bit, level, label, parts)
        elif isinstance(node, Sweeps):
            bit = _BIT[node.condition.name] if node.condition else 0
            count = self.sizes[node.count] if isinstance(node.count, str) else node.count
            for sweep in range(count):
                body = [n for n in node.body if not isinstance(n, LaterSweeps) or _takes_part(n, sweep)]
                self._add_all(tuple(body), mask | bit, level, label, parts)
        elif isinstance(node, LaterSweeps):
            self._add_all(node.body, mask, level, label, parts)
        elif isinstance(node, Levels):
            levels = range(self.sizes[node.size])
            for number in reversed(levels) if node.backward else levels:
                self._add_all(node.body, mask, number, label, parts)

    def _joins(self, node: If) -> bool:
        """Return whether a single launch can run everything inside the conditional node ``node``."""
        parts = list(reached(node, self.sizes))
        by_level = any(isinstance(part, Run) and part.by_level for part in parts)
        return self.sizes["incident_slots"] > 0 and not by_level and all(isinstance(part, _JOINED) for part in parts)

    def _max_items(self, node: If) -> int:
        """Return the maximum number of work items over all phases in a node."""
        sizes = {**self.sizes, "PARTS": PARTS}
        runs = (part.phase for part in reached(node, self.sizes) if isinstance(part, Run))
        return max([self.sizes["pairs"], *(phase.max_items(sizes) or 0 for phase in runs)])

    def _add_all(self, nodes: tuple[Node, ...], mask: int, level: int, label: str, parts: list[Part]) -> None:
        for node in nodes:
            self._add(node, mask, level, label, parts)


def launched_levels(sizes: Sizes, direct: bool) -> int:
    """Return how many levels of the elimination tree get separate launches in a staged solve.

    The number is 0 if one block solves a whole world.
    """
    together = schedule.SOLVE.together
    assert together is not None
    return 0 if together.host({**sizes, "direct": int(direct)}) else sizes["levels"]


def _label(node: If) -> str:
    return next((part.label for part in node.body if isinstance(part, Routine)), "")


def _takes_part(node: LaterSweeps, sweep: int) -> bool:
    return sweep > 0 and (node.last is None or sweep <= node.last)


def _append(parts: list[Part], launch: Launch) -> None:
    if not parts or isinstance(parts[-1], Repeat):
        parts.append([])
    segment = parts[-1]
    assert isinstance(segment, list)
    segment.append(launch)


def execute(plan: Plan, run: Callable[[list[Launch]], None], any_active: Callable[[], bool]) -> None:
    """Run all launches of a plan in order. Repeat its loops while ``any_active`` returns True."""
    for part in plan:
        if isinstance(part, Repeat):
            while any_active():
                execute(part.body, run, any_active)
        else:
            run(part)
