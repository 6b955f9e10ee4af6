"""Parts of a schedule: phases, conditions, and the nodes that define the order of the phases."""

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
        direct: whether the direct solver solves the joints, instead of colored sweeps.
        shapes: whether the build contains contacts.
        staged: whether the build is for the staged launch.
        swept: whether sweeps solve some joints, and the direct solver solves all other joints.
        coupled: whether the build contains actuators that couple several joint coordinates.
    """

    direct: bool
    shapes: bool
    staged: bool
    swept: bool = False
    coupled: bool = False


@dataclass(frozen=True)
class Phase:
    """Kernel function ``name(w, i)`` that processes independent work items i. A barrier separates consecutive phases.

    Attributes:
        items: number of items, as a product of sizes and factors ("bodies * 6"), or as a C++ expression with the world
            ``w`` and ``level``.
        reads, writes: names of arrays (model/fields.py), separated by spaces. A phase may read the arrays that it
            writes.
        room: upper bound of ``items`` over all worlds, if worlds have different numbers of items.
        bound: upper bound of the number of items, as a product of sizes and factors. ``bound`` is necessary if
            ``items`` and ``room`` are C++ expressions. If the bound is 0, the phase has no work.
    """

    name: str
    items: str = "1"
    reads: str = ""
    writes: str = ""
    room: str = ""
    bound: str = ""

    def count(self, staged: bool = False) -> str:
        """Return the number of items as a C++ expression."""
        items = self.room if staged and self.room else self.items
        if not _PLAIN.fullmatch(items):
            return items
        return re.sub(r"[a-z_]+", lambda m: f"w.{m[0]}()", items)

    def max_items(self, sizes: Sizes) -> int | None:
        """Return the maximum number of items of a world, or None if ``sizes`` does not determine this number."""
        product = 1
        for factor in (self.bound or self.room or self.items).split(" * "):
            if not factor.isdigit() and factor not in sizes:
                return None
            product *= int(factor) if factor.isdigit() else sizes[factor]
        return product

    def work(self) -> str:
        """Return the relative cost of an item on a CPU, as a C++ expression."""
        return "4 * ITEM_LANES" if "ITEM_LANES" in self.room else "1"

    def idle(self, sizes: Sizes) -> bool:
        """Return True if the phase has no work, because a factor in the number of items is 0."""
        items = self.bound or self.room or self.items
        names = re.findall(r"[a-z_]+", items) if _PLAIN.fullmatch(items) else []
        return any(not sizes[name] for name in names)


@dataclass(frozen=True)
class Condition:
    """Condition under which a part of the schedule runs.

    Attributes:
        text: condition as a C++ expression with the world ``w``.
        host: function that evaluates the condition from sizes and settings. With ``each_world``, ``host`` returns True
            if the condition can be true in a world.
        each_world: whether each world evaluates the condition on the device.
        build: function that returns the value of the condition if it is constant in a build, else None.
    """

    name: str
    text: str
    host: Callable[[Sizes], bool] = lambda sizes: True
    each_world: bool = False
    build: Callable[[Build], bool | None] = lambda build: None


class Node:
    """A part of the schedule."""

    body: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Run(Node):
    """Run a phase. With ``by_level``, the kernel function is ``name(w, level, i)``."""

    phase: Phase
    by_level: bool = False


@dataclass(frozen=True)
class TicketRun(Run):
    """Run a phase ``name(w)``. Several blocks work on a world and take tickets (cuda_kernels/tickets.cuh)."""


@dataclass(frozen=True)
class Whole(Node):
    """Function ``name(w)`` that all threads of a world execute together."""

    name: str


@dataclass(frozen=True)
class If(Node):
    """Nodes that run if a condition is true.

    For large worlds on a GPU, one launch with the name ``joined`` runs all nodes.
    """

    when: Condition
    body: tuple[Node, ...]
    joined: str = ""


@dataclass(frozen=True)
class While(Node):
    """Nodes that repeat while the condition is true in a world."""

    when: Condition
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Sweeps(Node):
    """Nodes that run up to ``count`` times, as long as ``condition`` is true.

    ``count`` is a number, or the name of a size or setting.
    """

    count: str | int
    body: tuple[Node, ...]
    condition: Condition | None = None


@dataclass(frozen=True)
class LaterSweeps(Node):
    """Nodes inside :class:`Sweeps` that run only in the sweeps 1 to ``last``, not in sweep 0."""

    body: tuple[Node, ...]
    last: int | None = None


@dataclass(frozen=True)
class Levels(Node):
    """Nodes that run once for each level 0 to n - 1, where n is the size with the name ``size``."""

    size: str
    body: tuple[Node, ...]
    backward: bool = False


@dataclass(frozen=True)
class Lists(Node):
    """Phase over contact manifolds: first the manifolds without a graph color, then one color after another."""

    phase: Phase
    add: Phase
    """Phase that adds, for each body, the contributions of manifolds without a color."""


@dataclass(frozen=True)
class Routine(Node):
    """Named sequence of nodes that several parts of the schedule can use."""

    name: str
    body: tuple[Node, ...]
    label: str = ""


@dataclass(frozen=True)
class Stage(Routine):
    """A routine that every backend implements under the name ``name``. Parity tests and profiles use this name.

    Attributes:
        together: condition under which the staged launch runs the stage with one block per world.
        reference: name of the NumPy function in gpusim/reference/, such as "joints.kick.kick". The argument of the
            function is the StepBuffers. Default: the function in stages.py with the name of the stage. The dict
            ``CONSTANTS`` in the same file contains the constants that kernels can use.
        kernels: file in cuda_kernels/ with the phases of the stage. Empty if the phases are in another kernel file.
    """

    together: Condition | None = None
    reference: str = ""
    kernels: str = ""

    def __post_init__(self) -> None:
        if not self.reference:
            object.__setattr__(self, "reference", f"stages.{self.name}")


def walk(node: Node, build: Build | None = None) -> Iterator[Node]:
    """Yield a node and all nodes inside this node, in order."""
    if isinstance(node, If) and build is not None and node.when.build(build) is False:
        return
    yield node
    for child in node.body:
        yield from walk(child, build)


def reached(node: Node, sizes: Sizes) -> Iterator[Node]:
    """Yield a node, and all nodes inside this node that run for a model with these sizes."""
    if (isinstance(node, If) and not node.when.host(sizes)) or (isinstance(node, Levels) and not sizes[node.size]):
        return
    yield node
    for child in node.body:
        yield from reached(child, sizes)


def phases(node: Node, build: Build | None = None) -> list[tuple[Phase, str]]:
    """Return the phases in a node, in order of first use."""
    found: dict[str, tuple[Phase, str]] = {}
    for part in walk(node, build):
        if isinstance(part, TicketRun):
            found.setdefault(part.phase.name, (part.phase, "tickets"))
        elif isinstance(part, Run):
            found.setdefault(part.phase.name, (part.phase, "level" if part.by_level else "item"))
    return list(found.values())
