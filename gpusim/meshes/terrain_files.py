"""Readers of terrain files: images (PNG), GeoTIFF and NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.typing import Array

_PIXEL_SCALE, _KEYS, _NO_DATA = 33550, 34735, 42113
"""GeoTIFF tags: pixel size, keys of the coordinate system, value that marks a missing height."""
_MODEL_TYPE, _GEOGRAPHIC = 1024, 2
"""GeoTIFF key of the coordinate system's type, and the key's value for coordinates in degrees."""


def read_terrain(element: str, source: Any) -> tuple[Array, tuple[float, float] | None]:
    """Return the heights (rows, columns) and the cell size (dx, dy). The cell size is None if it is unknown.

    The first row of the heights is at the lowest y.

    For a PNG, heights range from 0 (black) to 1 (white). Other sources contain the heights themselves. A missing height
    is NaN.

    Args:
        element: name for error messages.
        source: path of a .png, .tif, .tiff or .npy file, or an array. The first row of an image or GeoTIFF is in the
            north, at the highest y. The first row of an array or .npy file is at the lowest y.

    Raises:
        ModelError: the file is missing, unreadable or of an unknown type, a package is not installed, or a height is
            infinite. The source must be a grid of numbers with at least 2 rows and 2 columns.
    """
    if not isinstance(source, str | os.PathLike):
        return _grid(element, "the array", source), None
    path = os.fspath(source)
    suffix = os.path.splitext(path)[1].lower()
    if not os.path.isfile(path):
        raise validate.fail(element, f"there is no terrain file {path}", "give the path of an existing file")
    if suffix not in _READERS:
        raise validate.fail(
            element, f"the terrain file {path} has an unknown type", f"give one of {', '.join(sorted(_READERS))}"
        )
    package, reader = _READERS[suffix]
    try:
        heights, cell = reader(path)
    except ImportError:
        raise validate.fail(
            element, f"reading {path} needs {package}, which is not installed", 'pip install "gpusim[terrain]"'
        ) from None
    except Exception as error:  # readers raise undocumented errors
        raise validate.fail(
            element, f"the terrain file {path} cannot be read ({error})", "give a complete file"
        ) from None
    return _grid(element, path, heights), cell


def _read_png(path: str) -> tuple[Array, None]:
    from PIL import Image

    with Image.open(path) as image:
        if image.mode in ("1", "L", "P", "RGB", "RGBA", "LA"):
            return np.asarray(image.convert("L"), dtype=np.float64)[::-1] / 255.0, None
        return np.asarray(image, dtype=np.float64)[::-1] / 65535.0, None


def _read_tiff(path: str) -> tuple[Array, tuple[float, float] | None]:
    import tifffile

    with tifffile.TiffFile(path) as file:
        page: Any = file.pages[0]
        stored = page.asarray()
        scale, keys, missing = (tag and tag.value for tag in map(page.tags.get, (_PIXEL_SCALE, _KEYS, _NO_DATA)))
    heights = stored.astype(np.float64)
    if missing is not None:
        mark = float(str(missing).strip("\0 "))
        if stored.dtype.kind == "f":  # tolerance for rounded decimals in files
            with np.errstate(over="ignore"):
                mark = float(stored.dtype.type(mark))
        heights[heights == mark] = np.nan
    if keys and any(key[0] == _MODEL_TYPE and key[3] == _GEOGRAPHIC for key in np.reshape(keys[4:], (-1, 4))):
        scale = None
    return heights[::-1], None if scale is None else (float(scale[0]), float(scale[1]))


def _read_npy(path: str) -> tuple[Array, None]:
    return np.load(path, allow_pickle=False), None


_READERS: dict[str, tuple[str, Callable[[str], tuple[Array, tuple[float, float] | None]]]] = {
    ".png": ("pillow", _read_png),
    ".tif": ("tifffile", _read_tiff),
    ".tiff": ("tifffile", _read_tiff),
    ".npy": ("numpy", _read_npy),
}


def _grid(element: str, name: str, values: Any) -> Array:
    try:
        grid = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise validate.fail(element, f"{name} contains no numbers", "give heights (rows, columns)") from None
    if grid.ndim != 2 or min(grid.shape) < 2:
        raise validate.fail(
            element, f"{name} has shape {grid.shape}", "give heights (rows, columns), at least 2 rows and 2 columns"
        )
    if np.any(np.isinf(grid)):
        row, column = np.argwhere(np.isinf(grid))[0]
        raise validate.fail(element, f"{name} is infinite at row {row}, column {column}", "give NaN for a hole")
    return grid
