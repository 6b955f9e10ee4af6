from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.message_snapshot import exists, names, parse, plain, text_of

ROOT = Path(__file__).parents[2]
TESTS = """\
import warnings
import pytest

class ModelError(Exception):
    __module__ = "gpusim.errors"

@pytest.mark.parametrize("gain", [-1, -2])
def test_gain(gain):
    with pytest.raises(ModelError, match="gain"):
        raise ModelError(f"gain = {gain} is wrong")

def test_file(tmp_path):
    with pytest.warns(UserWarning):
        warnings.warn(f"cannot read {tmp_path}/a")

@pytest.mark.messages_vary
def test_time():
    with pytest.raises(ModelError):
        raise ModelError("it is 7:30")
"""
SNAPSHOT = """
tests/test_a.py
  test_file
    cannot read DIR/a
  test_gain
    gain = -1 is wrong
    gain = -2 is wrong
"""


class Project:
    """A folder with one test file and its snapshot."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.snapshot = folder, folder / "tests" / "messages.txt"
        (folder / "tests").mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n")
        self.write(TESTS)

    def write(self, tests: str) -> None:
        (self.folder / "tests" / "test_a.py").write_text(tests)

    def run(self, *arguments: str) -> str:
        """Run pytest on the folder and return its output."""
        command = [sys.executable, "-m", "pytest", "-p", "tests.message_snapshot", "-p", "no:cacheprovider", *arguments]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    assert "4 passed" in made.run("--write-messages")
    return made


@pytest.mark.nightly
def test_the_file_is_written_and_then_holds(project: Project) -> None:
    text = project.snapshot.read_text()
    assert text.split("\n", 1)[1] == SNAPSHOT
    assert "4 passed" in project.run()
    project.run("--write-messages", "-p", "xdist", "-n", "2", "--dist", "loadfile")
    assert project.snapshot.read_text() == text
    assert text_of(parse(text)) == text


@pytest.mark.nightly
def test_other_messages_fail_with_the_difference(project: Project) -> None:
    project.write(TESTS.replace("is wrong", "must be positive"))
    out = project.run("-k", "gain")
    assert "2 failed" in out
    assert "+ gain = -1 must be positive" in out and "- gain = -2 is wrong" in out
    assert "pytest --write-messages tests/test_a.py::test_gain" in out


@pytest.mark.nightly
def test_an_entry_that_is_missing_fails(project: Project) -> None:
    project.snapshot.write_text(project.snapshot.read_text().replace("    gain = -2 is wrong\n", ""))
    assert "1 failed, 3 passed" in project.run()
    project.snapshot.unlink()
    assert "3 failed, 1 passed" in project.run()


@pytest.mark.nightly
def test_a_message_that_no_case_gives_fails_after_the_last_case(project: Project) -> None:
    project.write(TESTS.replace("{gain}", "-1"))
    assert "1 failed, 3 passed" in project.run()
    assert "1 passed" in project.run("tests/test_a.py::test_gain[-2]")


@pytest.mark.nightly
def test_a_part_of_the_tests_rewrites_its_entries_alone(project: Project) -> None:
    project.write(TESTS.replace("is wrong", "must be positive").replace("cannot read", "can't read"))
    project.run("--write-messages", "tests/test_a.py::test_gain[-1]")
    added = SNAPSHOT.replace("    gain = -2 is wrong\n", "    gain = -1 must be positive\n    gain = -2 is wrong\n")
    assert sorted(parse(project.snapshot.read_text()).items()) == sorted(parse(added).items())
    project.run("--write-messages", "-k", "gain")
    rest = SNAPSHOT.replace("is wrong", "must be positive")
    assert sorted(parse(project.snapshot.read_text()).items()) == sorted(parse(rest).items())
    project.write(TESTS.replace("test_file", "test_folder"))
    project.run("--write-messages", "-k", "time")
    assert "test_file" not in project.snapshot.read_text()


def test_what_depends_on_the_machine_is_replaced() -> None:
    message = "no file '/tmp/x/a' <f at 0x7f00aa00bb11>: 0.30000000000000004 m\n"
    assert plain(message, ["/tmp/x"]) == "no file 'DIR/a' <f at 0xADDRESS>: 0.3 m"
    assert plain("it is broken (Expecting value (char 0)); fix it", []) == "it is broken (REASON); fix it"
    assert plain("one\ntwo", []) == r"one\ntwo"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("'a' mass -1", True),
        ("-1 mass", True),
        ("'b'", False),
        ("mas", False),
        ("1", False),
        ("0", False),
        ("x.y", True),
        ("y", True),
        ("5", False),
        ("", True),
    ],
)
def test_names_looks_for_whole_words_in_any_order(words: str, found: bool) -> None:
    assert names("body 'a': mass = -1 is below 0.5; write\nx.y", words) == found


def test_each_entry_is_of_a_test_that_exists() -> None:
    entries = parse((ROOT / "tests" / "messages.txt").read_text(encoding="utf-8"))
    assert len(entries) > 250
    assert not [key for key in entries if not exists(ROOT, key)]
