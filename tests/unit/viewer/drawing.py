from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpusim.viewer import ViewerError

PICTURES = Path(__file__).parents[2] / "reference" / "pictures"
UPDATE = "GPUSIM_UPDATE_PICTURES"
#: Greatest mean difference of two pictures, and the greatest share of points that differ by more than FAR, 0 to 255.
MEAN, SHARE, FAR = 2.0, 0.02, 24


@cache
def _why_not() -> str:
    from gpusim.viewer.gl.context import OffscreenContext

    try:
        OffscreenContext().close()
    except ViewerError as error:
        return str(error)
    return ""


def require_egl() -> None:
    if reason := _why_not():
        pytest.skip(reason)


def compare(picture: np.ndarray, name: str) -> None:
    """Compare a picture with the stored picture ``name``, or store the picture if the environment variable is set."""
    from gpusim.viewer.pictures import save_picture
    from tests.pictures import load_picture

    path = PICTURES / f"{name}.png"
    if os.environ.get(UPDATE):
        PICTURES.mkdir(exist_ok=True)
        save_picture(picture, path)
    kept = load_picture(path).astype(int)
    assert kept.shape == picture.shape
    difference = np.abs(kept - picture).max(axis=2)
    mean, share = float(np.abs(kept - picture).mean()), float((difference > FAR).mean())
    assert mean < MEAN and share < SHARE, f"{name}: mean difference {mean:.2f}, {100 * share:.1f} % differ clearly"
