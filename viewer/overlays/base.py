"""Base class and registry of overlays, and the data that overlays draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gpusim.description.registry import Registry
from gpusim.errors import unknown_name
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.typing import Array
from gpusim.viewer.camera import PinholeCamera

if TYPE_CHECKING:
    from gpusim.model.model import Model
    from gpusim.reference.contacts.contact_report import Contacts
    from gpusim.simulation import Simulation
    from gpusim.viewer.overlays.canvas import Canvas


@dataclass(frozen=True)
class Timings:
    """Times for the overlay ``profile``. Unknown times are None.

    Attributes:
        real_time_factor: simulated time divided by wall time.
        step: wall time of a step of all worlds (s).
        frame: wall time of drawing a frame (s).
    """

    real_time_factor: float | None = None
    step: float | None = None
    frame: float | None = None


@dataclass
class Frame:
    """Scene data of one picture, for overlays.

    Attributes:
        stage: stage with all drawn objects.
        poses: poses of the drawn worlds.
        camera: camera of the picture.
        sim: the simulation, or None for a model or a recording.
        worlds: indices of the simulation's drawn worlds.
        timings: times for the overlay ``profile``.
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
        """Number of drawn worlds."""
        return self.stage.num_worlds

    @cached_property
    def coms(self) -> Array:
        """Centers of mass (worlds, bodies + 1, 3), m, with the grid offset of each world in the picture.

        The last entry is the world's origin.
        """
        return np.asarray(self.poses.position + self.stage.offsets[:, None])

    def world_points(self, body: Array, point: Array) -> Array:
        """Return the positions (worlds, n, 3), m, of points on bodies, with the grid offset of each world.

        Args:
            body: (n,) indices of the bodies, -1 for the world.
            point: (n, 3) points relative to the centers of mass, in body axes (m).
        """
        rotated = np.einsum("wnij,nj->wni", self.poses.rotation[:, body], point)
        return np.asarray(self.coms[:, body] + rotated)

    @cached_property
    def contacts(self) -> Contacts | None:
        """Contact points of the drawn worlds, or None without a simulation.

        The first access in a frame runs a trial step, which does not change the state.
        """
        return None if self.sim is None else self.sim.contacts(worlds=list(self.worlds))

    def column(self, world: Array) -> Array:
        """Convert n world indices of the simulation (n,) to indices in the list of drawn worlds."""
        order = np.argsort(self.worlds)
        return np.asarray(order[np.searchsorted(np.asarray(self.worlds)[order], world)])

    def moved(self, point: Array, world: Array) -> Array:
        """Convert points (n, 3) to drawn positions (m), by adding the grid offset of each point's world."""
        return np.asarray(point + self.stage.offsets[self.column(world)])

    @cached_property
    def mass(self) -> Array:
        """Masses (worlds, bodies) of the bodies in the drawn worlds, kg."""
        bodies, drawn = len(self.model.bodies), self.num_worlds
        mass = (self.model if self.sim is None else self.sim.runtime).parameters["mass"][:, :bodies]
        chosen = mass if len(mass) == 1 else mass[list(self.worlds)]
        return np.broadcast_to(np.where(self.model.topology.dynamic[:bodies], chosen, 0.0), (drawn, bodies))

    @cached_property
    def weight(self) -> float:
        """Median weight (N) of the dynamic bodies, 0 without gravity."""
        gravity = (self.model if self.sim is None else self.sim.runtime).parameters["gravity"][0]
        moving = self.mass[0][self.mass[0] > 0.0]
        return float(np.linalg.norm(gravity) * np.median(moving)) if moving.size else 0.0

    @cached_property
    def body_radius(self) -> float:
        """Median radius of the moving shapes (m)."""
        shapes = self.model.contact
        moving = shapes.radius[self.model.topology.dynamic[shapes.body] & (shapes.radius < 1e9)]
        return float(np.median(moving)) if moving.size else 0.2 * self.stage.home.radius


_Made = TypeVar("_Made")


def cached_by_stage(make: Callable[[Stage], _Made]) -> Callable[[Stage], _Made]:
    """Cache the result of a function for each stage."""
    made_by_stage: WeakKeyDictionary[Stage, _Made] = WeakKeyDictionary()

    def made(stage: Stage) -> _Made:
        if stage not in made_by_stage:
            made_by_stage[stage] = make(stage)
        return made_by_stage[stage]

    return made


class Overlay(ABC):
    """Base class of overlays. The user can switch overlays on and off.

    Attributes:
        name: unique name.
        key: letter that toggles the overlay in a window.
        description: description in one line.
        needs_simulation: True if the overlay is empty for a model or a recording.
        floats: True if the overlay is drawn last, in free areas of the picture.
    """

    name: ClassVar[str]
    key: ClassVar[str]
    description: ClassVar[str]
    needs_simulation: ClassVar[bool] = False
    floats: ClassVar[bool] = False

    @abstractmethod
    def draw(self, frame: Frame, canvas: Canvas) -> None:
        """Draw the overlay onto the canvas."""


_OVERLAYS: Registry[Overlay] = Registry("overlay")
register = _OVERLAYS.register


def overlays() -> list[Overlay]:
    """Return all overlays, sorted by name."""
    return _OVERLAYS.all()


def chosen_overlays(names: Iterable[str]) -> list[Overlay]:
    """Return overlays by name, in drawing order.

    Raises:
        UnknownNameError: an overlay is unknown.
    """
    chosen_names = set(names)
    for name in sorted(chosen_names - set(_OVERLAYS.names())):
        raise unknown_name("overlay", name, _OVERLAYS.names())
    found = [overlay for overlay in overlays() if overlay.name in chosen_names]
    return sorted(found, key=lambda overlay: overlay.floats)
