from __future__ import annotations

import os

import numpy as np

from gpusim.typing import Array


def load_picture(path: str | os.PathLike[str]) -> Array:
    """Read a picture as uint8 (height, width, 3)."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))
