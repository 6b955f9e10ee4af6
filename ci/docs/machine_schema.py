"""Write docs/reference/machine.schema.json: the JSON schema of machine files.

    python ci/docs/machine_schema.py --write
    python ci/docs/machine_schema.py --check

``--check`` exits with code 1 if the file differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gpusim.machine_files import machine_schema

FILE = Path(__file__).parents[2] / "docs" / "reference" / "machine.schema.json"


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--write", action="store_true", help="write the file")
    parser.add_argument("--check", action="store_true", help="compare with the file")
    args = parser.parse_args()
    text = json.dumps(machine_schema(), indent=1) + "\n"
    if args.write:
        FILE.write_text(text, encoding="utf-8")
    if args.check and (not FILE.is_file() or FILE.read_text(encoding="utf-8") != text):
        print(f"{FILE.name} differs; run python ci/docs/machine_schema.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
