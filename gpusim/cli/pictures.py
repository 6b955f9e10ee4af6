"""Options that ``gpusim render`` and ``gpusim view`` share: camera, worlds, overlays, size and quality of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusim.cli.console import note
from gpusim.cli.exit_codes import OptionError
from gpusim.cli.options import picture_size
from gpusim.errors import unknown_name
from gpusim.scene import Camera, Scene
from gpusim.viewer.camera import VIEWS, PinholeCamera
from gpusim.viewer.overlays import chosen_overlays

if TYPE_CHECKING:
    from gpusim.model.model import Model

SCENE_VIEW = "scene"
"""View name that selects the camera of the scene."""
_VIEWS = (SCENE_VIEW, *VIEWS)
_SHOWN = 8
"""Maximum number of worlds that an error message or a note lists."""


@dataclass(frozen=True)
class PictureOptions:
    """Options for pictures in ``gpusim render`` and ``gpusim view``."""

    camera: str | None = None
    follow: str | None = None
    overlays: tuple[str, ...] = ()
    world: int | None = None
    max_worlds: int = 16
    size: str = "640x360"
    quality: str = "auto"
    glass: bool = True
    decoration: bool | None = None
    visuals: bool = True

    def check(self, min_size: int) -> None:
        """Check the options that do not depend on the model.

        Args:
            min_size: minimum width and height of the picture (pixels).

        Raises:
            OptionError, UnknownNameError, ViewerError: an option is invalid.
        """
        self.points(min_size)
        self._eye()
        self.overlay_names()
        if self.max_worlds < 1:
            raise OptionError(f"--max-worlds must be at least 1, got {self.max_worlds}; give e.g. 16")

    def points(self, min_size: int) -> tuple[int, int]:
        """Return the width and height (pixels).

        Raises:
            OptionError: the format is not WIDTHxHEIGHT, or a number is too small or too large.
        """
        return picture_size(self.size, min_size, "640x360")

    def overlay_names(self) -> frozenset[str]:
        """Return the names of the overlays. Each ``--overlay`` option may list several names, separated by commas.

        Raises:
            UnknownNameError: the name of an overlay is unknown.
        """
        names = [name.strip() for option in self.overlays for name in option.split(",")]
        return frozenset(overlay.name for overlay in chosen_overlays(name for name in names if name))

    def camera_for(self, scene: Scene) -> PinholeCamera | Camera | str:
        """Return the camera of ``--camera`` (six numbers, a label or a named view). Default: the scene's camera."""
        eye = self._eye()
        return scene.camera if eye == SCENE_VIEW else eye

    def decorated(self, scene: Scene) -> bool:
        """Return True if the picture shows joints, springs, cylinders, and bodies without shapes."""
        return scene.decoration if self.decoration is None else self.decoration

    def _eye(self) -> PinholeCamera | str:
        if self.camera is None:
            return SCENE_VIEW
        if "," not in self.camera:
            name = self.camera.strip()
            return name.lower() if name.lower() in _VIEWS else name
        try:
            x, y, z, tx, ty, tz = (float(part) for part in self.camera.split(","))
        except ValueError:
            raise OptionError(
                f"--camera {self.camera!r} must be x,y,z,tx,ty,tz (eye and target, m) or a view; give e.g. 4,-6,3,0,0,1"
            ) from None
        return PinholeCamera((x, y, z), (tx, ty, tz))

    def check_names(self, model: Model) -> None:
        """Check that the chosen camera and the followed body exist.

        Raises:
            UnknownNameError: the camera, view or body does not exist.
        """
        eye, cameras = self._eye(), model.labels("camera")
        if isinstance(eye, str) and eye not in (*cameras, *_VIEWS):
            raise unknown_name("camera or view in --camera:", eye, dict.fromkeys([*cameras, *_VIEWS]))
        if self.follow is not None and self.follow not in (labels := model.labels("body")):
            raise unknown_name("body in --follow:", self.follow, labels)

    def check_world(self, numbers: Sequence[int]) -> None:
        """Check that the chosen world exists.

        Args:
            numbers: indices of the available worlds. A recording can lack some worlds.

        Raises:
            OptionError: the world does not exist.
        """
        if self.world is not None and self.world not in numbers:
            rule = f"is not among {len(numbers)} worlds, whose numbers start at 0"
            if numbers != range(len(numbers)):
                rule = f"was not recorded; the recording has {_listed(numbers)}"
            raise OptionError(f"--world {self.world} {rule}")

    def drawn_worlds(self, numbers: Sequence[int]) -> list[int]:
        """Return the positions of the chosen worlds in ``numbers``, the list of available worlds.

        Raises:
            OptionError: the world does not exist.
        """
        self.check_world(numbers)
        if self.world is not None:
            return [numbers.index(self.world)]
        count, drawn = len(numbers), min(len(numbers), self.max_worlds)
        if drawn < count:
            what = f"world{'s' if drawn > 1 else ''} {_listed(numbers[:drawn])} of {count}"
            note(f"drawing {what}; --max-worlds {count} draws all of them, --world N draws one")
        return list(range(drawn))


def _listed(numbers: Sequence[int]) -> str:
    """Format world indices as a range or a short list."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 1 and list(numbers) == list(range(first, last + 1)):
        return f"{first} to {last}"
    more = ", ..." if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more
