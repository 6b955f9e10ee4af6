"""The version of this gpusim."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version


def version() -> str:
    """Version of the installed distribution; "not installed" when run from a plain checkout."""
    try:
        return installed_version("gpusim")
    except PackageNotFoundError:
        return "(not installed)"
