"""Create textures from files and arrays."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.description.looks import LARGEST, Texture
from gpusim.errors import ModelError


def texture_of(element: str, value: Any) -> Texture:
    """Return a texture from a Texture, the path of an image file (needs Pillow), or an array of pixels.

    Raises:
        ModelError: the file cannot be read, or the array is not an array of colors.
    """
    if isinstance(value, Texture):
        return value
    try:
        return Texture(_pixels_of_file(element, os.fspath(value)) if isinstance(value, str | os.PathLike) else value)
    except ModelError as error:
        if str(error).startswith(element):
            raise
        raise ModelError(f"{element}: {error}") from None
    except (TypeError, ValueError):
        rule = f"texture {value!r:.60} is not an image"
        raise validate.fail(element, rule, "give a Texture, a path, or pixels (rows, columns, 3)") from None


def texture_of_bytes(element: str, content: bytes) -> Texture:
    """Return a texture from the content of an image file (needs Pillow).

    Raises:
        ModelError: the content is not an image.
    """
    return Texture(_pixels(element, "its content", io.BytesIO(content)))


def _pixels_of_file(element: str, path: str) -> Any:
    if not os.path.isfile(path):
        raise validate.fail(element, f"there is no image file {path}", "give the path of an existing file")
    return _pixels(element, f"the texture {path}", path)


def _pixels(element: str, name: str, source: Any) -> Any:
    try:
        from PIL import Image
    except ImportError:
        rule = f"reading {name} needs Pillow, which is not installed"
        raise validate.fail(element, rule, "pip install pillow") from None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Image size")  # above 89 megapixels
            with Image.open(source) as image:
                transparent = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
                converted = image.convert("RGBA" if transparent else "RGB")
        reduction = -(-max(converted.size) // LARGEST)
        return np.array(converted.reduce(reduction) if reduction > 1 else converted)
    except Exception as error:  # Pillow's readers raise many error types
        raise validate.fail(element, f"{name} cannot be read ({error})", "give a PNG or JPEG file") from None
