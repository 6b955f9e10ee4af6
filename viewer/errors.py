"""Error class of the viewer."""

from __future__ import annotations

from gpusim.errors import GpusimError


class ViewerError(GpusimError, RuntimeError):
    """Drawing error: a library, driver or package is missing, or an argument is invalid."""
