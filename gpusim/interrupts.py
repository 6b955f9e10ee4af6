"""Handle Ctrl-C while the program ``gpusim`` starts: print one line and exit with code 130."""

# Import only modules that Python has already loaded: the handling must be active from the first milliseconds on.
import os
import sys

INTERRUPTED = 130


class QuietImports:
    """Context manager that ends the program ``gpusim`` on Ctrl-C without a traceback."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
        # With "python -m gpusim", sys.argv[0] is "-m" until Python has found the file of gpusim.
        if isinstance(error, KeyboardInterrupt) and name in ("gpusim", "gpusim.exe", "-m"):
            print("gpusim: interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
