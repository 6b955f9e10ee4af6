"""Minimum versions of required packages. pyproject.toml contains the same versions."""

from __future__ import annotations

import re

import numpy as np

from gpusim.errors import ModelError

MIN_VERSIONS = {
    "numpy": "2.2",
    "scipy": "1.13",
    "matplotlib": "3.8",
    "typer": "0.15.1",
    "rich": "13.0",
    "ruamel.yaml": "0.18",
}


def version_key(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version string as a key for comparisons."""
    return tuple(int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", version, maxsplit=1)[0]))


def check_numpy() -> None:
    """Check that NumPy is new enough for all backends.

    Raises:
        ModelError: NumPy is too old.
    """
    minimum = MIN_VERSIONS["numpy"]
    if version_key(np.__version__) < version_key(minimum):
        raise ModelError(f"NumPy {np.__version__} is older than {minimum}; update it: pip install 'numpy>={minimum}'")
