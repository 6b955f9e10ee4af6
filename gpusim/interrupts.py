"""Handling of Ctrl-C while the program ``gpusim`` is importing: one line and exit code 130, as later in the run."""

# These modules are already loaded at this point, so that the handling is active within the first milliseconds.
import os
import sys

INTERRUPTED = 130


class QuietImports:
    """Context that ends the program ``gpusim`` quietly on Ctrl-C. Other programs get the KeyboardInterrupt."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
        # The name is "-m" until "python -m gpusim" has found its file.
        if isinstance(error, KeyboardInterrupt) and name in ("gpusim", "gpusim.exe", "-m"):
            print("gpusim: interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
