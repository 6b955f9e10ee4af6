"""What an overlay is, the list of them, and the frame that they draw into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gpusim.errors import unknown_name
from gpusim.model.registry import Registry
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera
from gpusim.viewer.scene.poses import Poses
from gpusim.viewer.scene.stage import Stage

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.reference.contact_report import Contacts
    from gpusim.simulation import Simulation
    from gpusim.viewer.overlays.canvas import Canvas


@dataclass(frozen=True)
class Timings:
    """What the overlay ``profile`` shows; whoever runs the simulation measures it. None: not known.

    Attributes:
        real_time_factor: simulated seconds per second of wall time.
        step: wall time of a step of all worlds, s.
        frame: wall time of drawing a frame, s.
    """

    real_time_factor: float | None = None
    step: float | None = None
    frame: float | None = None


@dataclass
class Frame:
    """One picture's scene for overlays.

    Attributes:
        stage: what is drawn.
        poses: of the worlds that are drawn.
        camera: where from.
        sim: the simulation, None where a model or a recording is drawn.
        worlds: numbers of the simulation's worlds that are drawn.
        timings: for the overlay ``profile``.
    """

    stage: Stage
    poses: Poses
    camera: PinholeCamera
    sim: Simulation | None = None
    worlds: Sequence[int] = (0,)
    timings: Timings = field(default_factory=Timings)

    @property
    def model(self) -> Model:
        """The model of all worlds."""
        return self.stage.model

    @property
    def num_worlds(self) -> int:
        """How many worlds are drawn."""
        return self.stage.num_worlds

    @cached_property
    def coms(self) -> Array:
        """Centers of mass where they are drawn, (worlds, bodies + 1, 3), m; the last one is the world's origin."""
        return np.asarray(self.poses.position + self.stage.offsets[:, None])

    def places(self, body: Array, point: Array) -> Array:
        """Where points fixed to bodies are drawn, (worlds, n, 3), m.

        Args:
            body: (n,) indices, -1 for the world.
            point: (n, 3) from the centers of mass, body axes, m.
        """
        turned = np.einsum("wnij,nj->wni", self.poses.rotation[:, body], point)
        return np.asarray(self.coms[:, body] + turned)

    @cached_property
    def contacts(self) -> Contacts | None:
        """Contact points of the worlds that are drawn; None without a simulation.

        Costs a trial step, once a frame, and only where an overlay asks for it.
        """
        return None if self.sim is None else self.sim.contacts(world=list(self.worlds))

    def column(self, world: Array) -> Array:
        """Places among the worlds that are drawn of numbers of the simulation's worlds, (n,)."""
        order = np.argsort(self.worlds)
        return np.asarray(order[np.searchsorted(np.asarray(self.worlds)[order], world)])

    def moved(self, point: Array, world: Array) -> Array:
        """Points of the simulation's worlds where they are drawn, (n, 3), m."""
        return np.asarray(point + self.stage.offsets[self.column(world)])

    @cached_property
    def mass(self) -> Array:
        """Masses of the bodies, (worlds, bodies), kg; 0 for those that no force moves."""
        bodies, drawn = len(self.model.bodies), self.num_worlds
        kept = (self.model if self.sim is None else self.sim).parameters["mass"][:, :bodies]
        own = kept if len(kept) == 1 else kept[list(self.worlds)]
        return np.broadcast_to(np.where(self.model.topology.dynamic[:bodies], own, 0.0), (drawn, bodies))

    @cached_property
    def weight(self) -> float:
        """Of a typical body, N; 0 without gravity."""
        gravity = (self.model if self.sim is None else self.sim).parameters["gravity"][0]
        moving = self.mass[0][self.mass[0] > 0.0]
        return float(np.linalg.norm(gravity) * np.median(moving)) if moving.size else 0.0

    @cached_property
    def body_radius(self) -> float:
        """Radius about a typical moving shape, or a share of the whole where there is none, m."""
        shapes = self.model.contact
        moving = shapes.radius[self.model.topology.dynamic[shapes.body] & (shapes.radius < 1e9)]
        return float(np.median(moving)) if moving.size else 0.2 * self.stage.home.radius


_Made = TypeVar("_Made")


def once_a_stage(make: Callable[[Stage], _Made]) -> Callable[[Stage], _Made]:
    """Decorator: keep what ``make`` returns for a stage as long as there is the stage."""
    kept: WeakKeyDictionary[Stage, _Made] = WeakKeyDictionary()

    def made(stage: Stage) -> _Made:
        if stage not in kept:
            kept[stage] = make(stage)
        return kept[stage]

    return made


class Overlay(ABC):
    """Something that is drawn over the scene, which a person turns on and off.

    Attributes:
        name: by which it is asked for.
        key: the letter that toggles it in a window.
        description: one line.
        needs_simulation: shows nothing of a model or a recording.
        floats: places its boxes where the others leave room; drawn after them.
    """

    name: ClassVar[str]
    key: ClassVar[str]
    description: ClassVar[str]
    needs_simulation: ClassVar[bool] = False
    floats: ClassVar[bool] = False

    @abstractmethod
    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Put everything onto the canvas."""


_OVERLAYS: Registry[Overlay] = Registry("overlay")
register = _OVERLAYS.register


def overlays() -> list[Overlay]:
    """All overlays, by name."""
    return _OVERLAYS.all()


def chosen_overlays(names: Iterable[str]) -> list[Overlay]:
    """Overlays by name, in the order in which they are drawn.

    Raises:
        UnknownNameError: no such overlay; names the nearest ones.
    """
    wanted = set(names)
    for name in sorted(wanted - set(_OVERLAYS.names())):
        raise unknown_name("overlay", name, _OVERLAYS.names())
    found = [overlay for overlay in overlays() if overlay.name in wanted]
    return sorted(found, key=lambda overlay: overlay.floats)
