from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = "tells?|told|mends?|mended|anew|beside|seldom|likewise|places?|placed|larger|smaller|least|most"
ALLOWED = {"tell", "least_squares", "most_common"}  # names of libraries
IDENTIFIER = re.compile(rf"(?:^|_)(?:{NAMES})(?:_|$)", re.IGNORECASE)
FOLDERS = ("gpusim", "cuda_kernels", "viewer", "scenes", "docs", "ci", "*.md", "*.toml", "*.yml", ".gitignore")
WORDS = (
    "tells? told mends? mended anew beside nobody whoever seldom likewise reckon(?:s|ed)? whence thereof "
    "but~for goes?~by hangs?~on of~(?:its|their|one's)~own so~many worked~out what~there~is "
    "where~there~(?:is|are)~(?:none|no)"
)
BANNED = re.compile(rf"\b(?:{WORDS})\b".replace(" ", "|").replace("~", r"\s+"), re.IGNORECASE)
C_LIKE = (".cuh", ".cu", ".cpp", ".hpp", ".vert", ".frag", ".glsl")
PLAIN = (".md", ".toml", ".yaml", ".yml", ".sh", ".gitignore")
KINDS = (".py", ".pyi", *C_LIKE, *PLAIN)


def prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and texts of a file: comments and strings of code, all of a document."""
    if path.suffix in (".py", ".pyi"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING) or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
                yield token.start[0], token.string
    elif path.suffix in C_LIKE:
        for number, line in enumerate(text.splitlines(), 1):
            yield number, "".join(line.partition("//")[1:])
    else:
        yield 1, text


def findings(path: Path, text: str) -> list[str]:
    """Return the places of a text with banned words."""
    return [
        f"{path}:{start + part[: match.start()].count(chr(10))}: {match.group()}"
        for start, part in prose(path, text)
        for match in BANNED.finditer(part)
    ]


def tracked(*folders: str) -> list[str]:
    """Return the tracked files of folders that exist."""
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs the git checkout to know the files")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_banned_words() -> None:
    found = []
    for name in tracked(*FOLDERS, "tests"):
        path = ROOT / name
        if (path.suffix or path.name) in KINDS and path != Path(__file__):
            text = path.read_text(encoding="utf8")
            found += findings(Path(name), text) if BANNED.search(text) else []
    assert not found, "\n".join(found)


def test_no_banned_words_in_identifiers() -> None:
    found = []
    for name in tracked(*FOLDERS):
        if name.endswith(".py"):
            text = (ROOT / name).read_text(encoding="utf8")
            for token in tokenize.generate_tokens(io.StringIO(text).readline) if re.search(NAMES, text, re.I) else ():
                if token.type == tokenize.NAME and IDENTIFIER.search(token.string) and token.string not in ALLOWED:
                    found.append(f"{name}:{token.start[0]}: {token.string}")
    assert not found, "\n".join(found)


def test_subjects_of_commits_are_short() -> None:
    log = ["git", "log", "--since=2026-11-27T00:00:00Z", "--format=%s"]
    found = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("needs the git history")
    assert [subject for subject in found.stdout.splitlines() if len(subject) > 72] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "# It tells why.\n"),
        ("a.py", 'X = """A\nbeside B."""\n'),
        ("a.cuh", "int x;  // made anew\n"),
        ("a.md", "but for one\n"),
        ("a.md", "A text\nbut\nfor one.\n"),
        ("a.frag", "float x;  // beside y\n"),
        (".gitignore", "# beside y\n"),
    ],
)
def test_banned_words_are_found(name: str, text: str) -> None:
    assert len(findings(Path(name), text)) == 1
