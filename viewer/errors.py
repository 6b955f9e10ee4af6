"""The one error of the viewer."""

from __future__ import annotations

from gpusim.errors import GpusimError


class ViewerError(GpusimError, RuntimeError):
    """Nothing can be drawn: libraries, a driver or a package are missing, or an argument breaks a rule."""
