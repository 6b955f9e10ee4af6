"""Options of ``gpusim view``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpusim.cli.options import RunOptions
from gpusim.cli.pictures import PictureOptions
from gpusim.recording.motion import is_motion_file


@dataclass(frozen=True)
class ViewOptions:
    """Options of the command ``gpusim view``."""

    run: RunOptions
    picture: PictureOptions
    speed: float = 1.0
    max_dt: float | None = None
    paused: bool = False
    duration: float | None = None
    record: Path | None = None
    panel: bool = True
    mapping: str = "auto"
    web: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    rerun: str | None = None

    @property
    def windowed(self) -> bool:
        """Whether the command opens a window, instead of a web page or a stream to Rerun."""
        return not self.web and self.rerun is None

    @property
    def is_recording(self) -> bool:
        """Whether the target is a recorded motion."""
        return is_motion_file(self.run.target)
