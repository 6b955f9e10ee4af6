"""What a schedule is made of: phases, conditions, and the nodes that put phases in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Sizes = Mapping[str, int]
"""Sizes of a model (backends/tables.py) and settings of a run, by name."""
_PLAIN = re.compile(r"[a-z_]+( \* ([a-z_]+|\d+))*")


@dataclass(frozen=True)
class Build:
    """What a build of the kernels knows: its joint solver, whether it has contacts, and its launch.

    ``swept``: with the direct solver, whether some joints are left to sweeps. ``coupled``: whether there are laws over
    several axes.
    """

    direct: bool
    shapes: bool
    staged: bool
    swept: bool = False
    coupled: bool = False


@dataclass(frozen=True)
class Phase:
    """One kernel function over independent items, ``name(w, i)``; between two phases stands a barrier.

    ``items`` is their number: sizes of the model and factors ("bodies * 6"), or an expression in C++ over the world
    ``w`` and ``level``. ``room`` is the greatest number over worlds, where it differs from world to world. ``bound``:
    sizes and factors that it does not exceed, where neither tells it: 0 leaves nothing to do.
    ``reads`` and ``writes`` are names of arrays (model/fields.py), with blanks between; it may read what it writes.
    """

    name: str
    items: str = "1"
    reads: str = ""
    writes: str = ""
    room: str = ""
    bound: str = ""

    def count(self, staged: bool = False) -> str:
        """Number of items as an expression in C++."""
        items = self.room if staged and self.room else self.items
        if not _PLAIN.fullmatch(items):
            return items
        return re.sub(r"[a-z_]+", lambda m: f"w.{m[0]}()", items)

    def most(self, sizes: Sizes) -> int | None:
        """Greatest number of items of a world, where sizes tell it."""
        found = 1
        for factor in (self.bound or self.room or self.items).split(" * "):
            if not factor.isdigit() and factor not in sizes:
                return None
            found *= int(factor) if factor.isdigit() else sizes[factor]
        return found

    def idle(self, sizes: Sizes) -> bool:
        """True where a size of the model leaves it nothing to do."""
        items = self.bound or self.room or self.items
        names = re.findall(r"[a-z_]+", items) if _PLAIN.fullmatch(items) else []
        return any(not sizes[name] for name in names)


@dataclass(frozen=True)
class Condition:
    """When a part of the schedule runs.

    ``text`` tells it in C++ over the world ``w``. ``host`` tells it from sizes and settings; where ``each_world``, it
    only tells whether it can be true, and each world decides on the device. ``build`` tells what a build knows of it.
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
    """A phase; one that takes ``level`` or a list is ``name(w, level, i)``."""

    phase: Phase
    by_level: bool = False


@dataclass(frozen=True)
class Turns(Run):
    """A phase ``name(w)`` of several blocks a world that work in turns (cuda_kernels/block_turns.cuh); staged alone."""


@dataclass(frozen=True)
class Whole(Node):
    """A function ``name(w)`` of a world by all of its threads."""

    name: str


@dataclass(frozen=True)
class If(Node):
    """Nodes under a condition.

    ``joined``: a name, where big worlds on a GPU run them in one launch by it, whose blocks work in turns: so one
    launch alone finds that it has nothing to do. How many items a phase has must not hang on what these nodes write.
    """

    when: Condition
    body: tuple[Node, ...]
    joined: str = ""


@dataclass(frozen=True)
class While(Node):
    """Nodes again and again, as long as the condition holds in a world."""

    when: Condition
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Sweeps(Node):
    """Nodes ``count`` times (a size, a setting or a number), as long as ``going`` holds."""

    count: str | int
    body: tuple[Node, ...]
    going: Condition | None = None


@dataclass(frozen=True)
class Later(Node):
    """Nodes that the first sweep leaves out, and sweeps after number ``last``."""

    body: tuple[Node, ...]
    last: int | None = None


@dataclass(frozen=True)
class Levels(Node):
    """Nodes once for each ``level`` below a size."""

    size: str
    body: tuple[Node, ...]
    backward: bool = False


@dataclass(frozen=True)
class Lists(Node):
    """A phase over the lists of manifolds: those without a color together, then one color after another."""

    phase: Phase
    add: Phase
    """Sums over each body what those without a color leave."""


@dataclass(frozen=True)
class Routine(Node):
    """Nodes with a name, which stands at several places; in C++ a function of this name.

    ``label``: its name in profiles where it is told apart from the stage around it.
    """

    name: str
    body: tuple[Node, ...]
    label: str = ""


@dataclass(frozen=True)
class Stage(Routine):
    """A routine that every backend has by this name, a stage of parity and profiles.

    ``together``: staged launch runs it by one block a world where this holds. ``reference``: the function in
    gpusim/reference/ that does it on NumPy, "kick.kick"; it takes the Work, and CONSTANTS of its file, by name, are
    known to the kernels. Left out: a method of the NumPy backend. ``kernels``: the file in cuda_kernels/ that holds its
    phases, where no other one includes it.
    """

    together: Condition | None = None
    reference: str = ""
    kernels: str = ""


def walk(node: Node, build: Build | None = None) -> Iterator[Node]:
    """A node and all nodes in it, in order; with ``build`` only what the build holds."""
    if isinstance(node, If) and build is not None and node.when.build(build) is False:
        return
    yield node
    for child in node.body:
        yield from walk(child, build)


def reached(node: Node, sizes: Sizes) -> Iterator[Node]:
    """A node and all nodes in it that sizes let run."""
    if (isinstance(node, If) and not node.when.host(sizes)) or (isinstance(node, Levels) and not sizes[node.size]):
        return
    yield node
    for child in node.body:
        yield from reached(child, sizes)


def phases(node: Node, build: Build | None = None) -> list[tuple[Phase, str]]:
    """Phases in a node by their first place, each with "item", "level" or "turns"."""
    found: dict[str, tuple[Phase, str]] = {}
    for part in walk(node, build):
        if isinstance(part, Turns):
            found.setdefault(part.phase.name, (part.phase, "turns"))
        elif isinstance(part, Run):
            found.setdefault(part.phase.name, (part.phase, "level" if part.by_level else "item"))
    return list(found.values())
