"""Ctrl-C while the program ``gpusim`` is still importing: one sentence and exit code 130, as later on."""

# Imports nothing that Python has not imported already: it is what the first milliseconds of the program are spent in.
import os
import sys

INTERRUPTED = 130


class QuietImports:
    """End the program ``gpusim`` quietly on Ctrl-C; other programs that import gpusim get their KeyboardInterrupt."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
        # "-m" until "python -m gpusim" has found its file
        if isinstance(error, KeyboardInterrupt) and name in ("gpusim", "gpusim.exe", "-m"):
            print("gpusim: interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
