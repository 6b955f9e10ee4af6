from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("gpusim", "cuda_kernels", "viewer", "scenes", "ci")
CODE = (".py", ".pyi", ".cu", ".cuh", ".hpp", ".cpp", ".sh", ".vert", ".frag")
MAX_FILES, MAX_LINES = 20, 500


def code() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in CODE]
    return [path for path in found if not path.is_symlink()]


def test_folders_have_at_most_20_files() -> None:
    counts = Counter(path.parent for path in code() if path.name != "__init__.py")
    assert {str(folder): count for folder, count in counts.items() if count > MAX_FILES} == {}


def test_files_have_at_most_500_lines() -> None:
    made = {"builder_methods.pyi"}  # by a script
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in code() if path.name not in made}
    assert {str(path): count for path, count in lines.items() if count > MAX_LINES} == {}
