"""Building blocks of the schedule: phases, conditions, and nodes. Nodes define the order of the phases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Sizes = Mapping[str, int]
"""Sizes of a model (backends/tables.py) and settings of a run by name."""
_PLAIN = re.compile(r"[a-z_]+( \* ([a-z_]+|\d+))*")


@dataclass(frozen=True)
class Build:
    """Properties of a build of the kernels.

    Attributes:
        direct: True for the direct solver of joints, False for colored sweeps.
        shapes: True if the build contains contacts.
        staged: True if the build is for the staged launch.
        swept: True if colored sweeps solve some joints, and the direct solver all others.
        coupled: True if the build contains actuators that couple several joint coordinates.
    """

    direct: bool
    shapes: bool
    staged: bool
    swept: bool = False
    coupled: bool = False


@dataclass(frozen=True)
class Phase:
    """Kernel function ``name(w, i)``, which processes work item i. All items are independent.

    A barrier separates consecutive phases.

    Attributes:
        items: number of items as a product of sizes and factors ("bodies * 6"), or as a C++ expression of ``w`` and
            ``level``.
        reads, writes: names of arrays (model/fields.py), separated by spaces. ``reads`` can omit arrays in ``writes``.
        room: upper bound of ``items`` over all worlds, for phases whose number of items depends on the world.
        bound: upper bound of the number of items as a product of sizes and factors. This bound is necessary if
            ``items`` and ``room`` are C++ expressions.
    """

    name: str
    items: str = "1"
    reads: str = ""
    writes: str = ""
    room: str = ""
    bound: str = ""

    def count(self, staged: bool = False) -> str:
        """Return the number of work items as a C++ expression."""
        items = self.room if staged and self.room else self.items
        if not _PLAIN.fullmatch(items):
            return items
        return re.sub(r"[a-z_]+", lambda m: f"w.{m[0]}()", items)

    def max_items(self, sizes: Sizes) -> int | None:
        """Return the maximum number of work items per world, or None if ``sizes`` does not determine it."""
        product = 1
        for factor in (self.bound or self.room or self.items).split(" * "):
            if not factor.isdigit() and factor not in sizes:
                return None
            product *= int(factor) if factor.isdigit() else sizes[factor]
        return product

    def work(self) -> str:
        """Return the relative CPU time of a work item as a C++ expression."""
        return "4 * ITEM_LANES" if "ITEM_LANES" in self.room else "1"

    def idle(self, sizes: Sizes) -> bool:
        """Return True if the phase has no work items in a model with these sizes."""
        items = self.bound or self.room or self.items
        names = re.findall(r"[a-z_]+", items) if _PLAIN.fullmatch(items) else []
        return any(not sizes[name] for name in names)


@dataclass(frozen=True)
class Condition:
    """Condition for running a part of the schedule.

    Attributes:
        text: condition as a C++ expression of the world ``w``.
        host: function that evaluates the condition on the host. If ``each_world`` is True, the function returns True if
            the condition can be true in any world.
        each_world: True if each world evaluates the condition on the device.
        build: function that returns the value of the condition in a build, or None if it is not constant.
    """

    name: str
    text: str
    host: Callable[[Sizes], bool] = lambda sizes: True
    each_world: bool = False
    build: Callable[[Build], bool | None] = lambda build: None


class Node:
    """Part of the schedule. ``body`` contains the child nodes."""

    body: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Run(Node):
    """Node that runs a phase. With ``by_level``, the kernel function is ``name(w, level, i)``."""

    phase: Phase
    by_level: bool = False


@dataclass(frozen=True)
class TicketRun(Run):
    """Node that runs a phase ``name(w)``. Several blocks share a world and take tickets (cuda_kernels/tickets.cuh)."""


@dataclass(frozen=True)
class Whole(Node):
    """Node for a function ``name(w)`` that all threads of a world execute together."""

    name: str


@dataclass(frozen=True)
class If(Node):
    """Conditional node: it runs its child nodes if a condition is true.

    For large worlds on a GPU, one launch with the name ``joined`` runs all child nodes.
    """

    when: Condition
    body: tuple[Node, ...]
    joined: str = ""


@dataclass(frozen=True)
class While(Node):
    """Loop node: it repeats its child nodes while the condition is true in any world."""

    when: Condition
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Sweeps(Node):
    """Loop node: it runs its child nodes up to ``count`` times, as long as ``condition`` is true.

    ``count`` is a number, or the name of a size or setting.
    """

    count: str | int
    body: tuple[Node, ...]
    condition: Condition | None = None


@dataclass(frozen=True)
class LaterSweeps(Node):
    """Node inside :class:`Sweeps` that runs only in the sweeps 1 to ``last``. The first sweep has the number 0."""

    body: tuple[Node, ...]
    last: int | None = None


@dataclass(frozen=True)
class Levels(Node):
    """Loop node: it runs its child nodes for each level from 0 to n - 1. ``size`` is the name of the size n."""

    size: str
    body: tuple[Node, ...]
    backward: bool = False


@dataclass(frozen=True)
class Lists(Node):
    """Node that runs a phase over contact manifolds: first manifolds without a color, then color by color."""

    phase: Phase
    add: Phase
    """Phase that adds, for each body, the contributions of manifolds without a color."""


@dataclass(frozen=True)
class Routine(Node):
    """Named sequence of nodes, which the schedule can use several times."""

    name: str
    body: tuple[Node, ...]
    label: str = ""


@dataclass(frozen=True)
class Stage(Routine):
    """Routine that every backend implements under the name ``name``. Parity tests and profiles use this name.

    Attributes:
        together: if this condition is true, the staged launch runs the stage with one block per world.
        reference: name of the NumPy function in gpusim/reference/, such as "joints.kick.kick". The function takes the
            StepBuffers. Default: the function in stages.py with the name of the stage. A dict ``CONSTANTS`` in the file
            of the function defines constants for the kernels.
        kernels: file in cuda_kernels/ with the phases of the stage, or "" if the phases are in another stage's file.
    """

    together: Condition | None = None
    reference: str = ""
    kernels: str = ""

    def __post_init__(self) -> None:
        if not self.reference:
            object.__setattr__(self, "reference", f"stages.{self.name}")


def walk(node: Node, build: Build | None = None) -> Iterator[Node]:
    """Yield a node and all its descendants, in order."""
    if isinstance(node, If) and build is not None and node.when.build(build) is False:
        return
    yield node
    for child in node.body:
        yield from walk(child, build)


def reached(node: Node, sizes: Sizes) -> Iterator[Node]:
    """Yield a node and all descendants that run for a model with these sizes."""
    if (isinstance(node, If) and not node.when.host(sizes)) or (isinstance(node, Levels) and not sizes[node.size]):
        return
    yield node
    for child in node.body:
        yield from reached(child, sizes)


def phases(node: Node, build: Build | None = None) -> list[tuple[Phase, str]]:
    """Return the phases in a node in order of first use, each with its type: "item", "level" or "tickets"."""
    found: dict[str, tuple[Phase, str]] = {}
    for part in walk(node, build):
        if isinstance(part, TicketRun):
            found.setdefault(part.phase.name, (part.phase, "tickets"))
        elif isinstance(part, Run):
            found.setdefault(part.phase.name, (part.phase, "level" if part.by_level else "item"))
    return list(found.values())
