"""Web server of the browser view."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import socket
from typing import Any

from gpusim.viewer.errors import ViewerError

LOCAL = "127.0.0.1"
"""Host address for browsers on this computer only."""
PORT = 8080
_MAX_PORT = 65535


def open_server(host: str = LOCAL, port: int = PORT) -> Any:
    """Start a viser server.

    Args:
        host: name or address of this computer, which browsers use to connect. "0.0.0.0" means all addresses.
        port: 1 to 65535, or 0 for a free port.

    Raises:
        ViewerError: viser is not installed, or the port or host cannot be used.
    """
    try:
        import viser
    except ImportError:
        rule = "the browser view needs viser, which is not installed"
        raise ViewerError(f'{rule}; pip install "gpusim[web]"') from None
    free = _free_port(host, port)
    with contextlib.redirect_stdout(io.StringIO()):  # hides viser's table with its address
        server = viser.ViserServer(host=host, port=free, verbose=False)
    if server.get_port() != free:  # another program has just taken the port
        stop_server(server)
        raise _in_use(free)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def stop_server(server: Any) -> None:
    """Stop a server and disconnect its browsers."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def url_of(server: Any) -> str:
    """Return the URL of the page, for a browser on this computer."""
    host = server.get_host()
    return f"http://{LOCAL if host in ('0.0.0.0', '::') else host}:{server.get_port()}"


def _in_use(port: int) -> ViewerError:
    return ViewerError(f"port {port} is in use; give another one with --port or port=")


def _free_port(host: str, port: int) -> int:
    """Check that a server can use the port, and return the port. For port 0, return a free port."""
    if not isinstance(host, str):
        raise ViewerError(f"host {host!r} is not a name; give e.g. {LOCAL} or 0.0.0.0")
    if not isinstance(port, int) or not 0 <= port <= _MAX_PORT:
        raise ViewerError(f"port {port} is not between 0 and {_MAX_PORT}; give e.g. {PORT}")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as trial:
            if os.name == "posix":  # servers set this option, so that the port of a stopped server is free
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
            trial.listen()
            return int(trial.getsockname()[1])
    except socket.gaierror:
        raise ViewerError(f"host {host!r} is unknown; give e.g. {LOCAL} or 0.0.0.0") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _in_use(port) from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise ViewerError(f"host {host!r} is not an address of this computer; give {LOCAL} or 0.0.0.0") from None
        raise ViewerError(f"port {port} of {host!r} cannot be opened ({error.strerror}); give another one") from None
