"""Picture and film files. If writing fails, no partial file remains."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from gpusim.closing import Closing
from gpusim.output_files import atomic_file, check_output_file, temporary_of
from gpusim.typing import Array
from gpusim.viewer.errors import ViewerError

PICTURE, FILM = ".png", ".mp4"


def save_picture(picture: Array, path: str | os.PathLike[str]) -> None:
    """Write a picture, uint8 (height, width, 3), as PNG.

    Raises:
        ModelError: the name does not end in .png, or its folder cannot be written.
        OSError: the disk fails while writing.
    """
    from PIL import Image  # comes with matplotlib; late import: drawing works without it

    target = check_output_file(path, (PICTURE,))
    with atomic_file(target) as stream:
        Image.fromarray(picture).save(stream, format="PNG", optimize=True)


def require_film_writer() -> None:
    """Check that the packages for films are installed.

    Raises:
        ViewerError: imageio-ffmpeg is not installed.
    """
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise ViewerError(f'films need imageio-ffmpeg ({error}); install it: pip install "gpusim[video]"') from error


class Film(Closing):
    """MP4 file (H.264), encoded frame by frame. :meth:`close` gives the file its final name.

    If an error or Ctrl-C ends the ``with`` block, the file contains all earlier frames. Without frames, no file
    remains.

    Args:
        path: path of the file, which must end in .mp4.
        width, height: frame size in pixels, even numbers.
        fps: frames per second.

    Raises:
        ViewerError: imageio-ffmpeg is not installed, or a size is odd.
        ModelError: the name does not end in .mp4, or its folder cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], width: int, height: int, fps: float) -> None:
        require_film_writer()
        if width % 2 or height % 2:
            raise ViewerError(f"films need an even width and height, got {width} x {height}; give e.g. 640x360")
        self._target = Path(os.path.realpath(check_output_file(path, (FILM,))))
        self._temporary = temporary_of(self._target, FILM)
        self._size, self._fps = (width, height), fps
        self._encoder: subprocess.Popen[bytes] | None = None
        self.frames = 0

    def add(self, picture: Array) -> None:
        """Append a frame, uint8 (height, width, 3).

        Raises:
            OSError: ffmpeg stopped, for example because the disk is full. After the error, no film file remains.
        """
        if self._encoder is None:
            self._encoder = self._start()
        assert self._encoder.stdin is not None
        try:
            self._encoder.stdin.write(np.ascontiguousarray(picture).data)
        except BrokenPipeError:
            self._end()  # raises with ffmpeg's message
            raise
        self.frames += 1

    def _start(self) -> subprocess.Popen[bytes]:
        import imageio_ffmpeg

        size = "x".join(map(str, self._size))
        source = f"-f rawvideo -vcodec rawvideo -s {size} -pix_fmt rgb24 -r {self._fps:.02f} -i - -an"
        made = "-vcodec libx264 -pix_fmt yuv420p -v error -crf 18 -preset fast -movflags +faststart"
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", *source.split(), *made.split(), str(self._temporary)]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in _end)
        # a separate session protects ffmpeg from Ctrl-C in a terminal
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors, start_new_session=True
        )

    def close(self) -> None:
        """Finish the film and move it to its final name. Without frames, no file remains.

        Raises:
            OSError: ffmpeg could not write the complete film, and no film file remains.
        """
        if self._encoder is None:
            return
        try:
            self._end()
            if self.frames:
                os.replace(self._temporary, self._target)
        finally:
            with suppress(OSError):
                self._temporary.unlink()

    def _end(self) -> None:
        """Wait for ffmpeg."""
        encoder, self._encoder = self._encoder, None
        assert encoder is not None and encoder.stdin is not None
        try:
            with suppress(OSError):  # ffmpeg's exit code is more informative
                encoder.stdin.close()
            code = encoder.wait()
        finally:
            if encoder.poll() is None:  # interrupted
                encoder.kill()
        with self._errors as errors:
            errors.seek(0)
            words = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
        if code and self.frames:
            with suppress(OSError):
                self._temporary.unlink()
            reason = words[-1] if words else f"it ended with {code}"
            raise OSError(f"film {str(self._target)!r} could not be written; ffmpeg says: {reason}")
