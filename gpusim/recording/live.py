"""Addresses of Rerun viewers. If a recording's path is an address, the samples go to the viewer, not to a file."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from gpusim.errors import ModelError
from gpusim.recording.layout import require

SCHEMES = ("rerun+http", "rerun+https")
EXAMPLE = "rerun+http://127.0.0.1:9876/proxy"
_PATIENCE = 3.0
"""Timeout for a viewer's answer, s."""


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a recording's path is the address of a Rerun viewer."""
    return isinstance(path, str) and path.partition("://")[0] in SCHEMES


def check_address(address: str) -> str:
    """Check that a server answers at the address of a Rerun viewer, and return the address.

    Raises:
        ModelError: the text is not an address, rerun-sdk is not installed, or no server answers at the address.
    """
    require("rerun", ".rrd", "rerun-sdk")
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if parts.scheme not in SCHEMES or not host or not port:
        raise ModelError(f"Rerun address {address!r} is not rerun+http://HOST:PORT/proxy; give e.g. {EXAMPLE!r}")
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        hint = "start a viewer there with the command 'rerun'"
        raise ModelError(f"no Rerun viewer answers at {address!r} ({error.strerror or error}); {hint}") from None
    return address
