"""Picture and film files: written whole or not at all; a film that is cut short stays playable."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from gpusim.output_files import atomic_file, check_output_file
from gpusim.typing import Array
from gpusim.viewer.errors import ViewerError

PICTURE, FILM = ".png", ".mp4"


def save_picture(picture: Array, path: str | os.PathLike[str]) -> None:
    """Write a picture, uint8 (height, width, 3), as PNG.

    Raises:
        ModelError: the name does not end in .png, or its folder cannot be written.
        OSError: the disk fails while writing.
    """
    from PIL import Image  # comes with matplotlib; late, as drawing does without it

    target = check_output_file(path, (PICTURE,))
    with atomic_file(target) as stream:
        Image.fromarray(picture).save(stream, format="PNG", optimize=True)


def load_picture(path: str | os.PathLike[str]) -> Array:
    """Read a picture as uint8 (height, width, 3)."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def require_film_writer() -> None:
    """Find out early whether films can be written.

    Raises:
        ViewerError: imageio-ffmpeg is not installed.
    """
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise ViewerError(f'films need imageio-ffmpeg ({error}); install it: pip install "gpusim[video]"') from error


class Film:
    """An MP4 file (H.264) that grows frame by frame and appears under its name when it is closed.

    Leaving a ``with`` block by an error or Ctrl-C keeps what was filmed until then, if there is a frame at all.

    Args:
        path: must end in .mp4.
        width, height: of all frames, points; even numbers.
        fps: frames per second.

    Raises:
        ViewerError: imageio-ffmpeg is not installed, or an odd size.
        ModelError: the name does not end in .mp4, or its folder cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], width: int, height: int, fps: float) -> None:
        require_film_writer()
        if width % 2 or height % 2:
            raise ViewerError(f"films need an even width and height, got {width} x {height}; give e.g. 640x360")
        self._target = Path(os.path.realpath(check_output_file(path, (FILM,))))
        self._temporary = self._target.with_name(f".{self._target.stem}.{os.getpid()}{FILM}")
        self._size, self._fps = (width, height), fps
        self._writer: Generator[None, Any, None] | None = None
        self.frames = 0

    def add(self, picture: Array) -> None:
        """Append a frame, uint8 (height, width, 3)."""
        if self._writer is None:
            import imageio_ffmpeg

            self._writer = imageio_ffmpeg.write_frames(
                str(self._temporary),
                self._size,
                fps=self._fps,
                codec="libx264",
                macro_block_size=2,
                ffmpeg_log_level="error",
                output_params=["-crf", "18", "-preset", "fast", "-movflags", "+faststart"],
            )
            self._writer.send(None)
        self._writer.send(np.ascontiguousarray(picture))
        self.frames += 1

    def close(self) -> None:
        """End the film and give it its name; without a frame there is no file."""
        if self._writer is None:
            return
        try:
            self._writer.close()
            os.replace(self._temporary, self._target)
        finally:
            self._writer = None
            with suppress(OSError):
                self._temporary.unlink()

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
