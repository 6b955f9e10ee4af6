"""``gpusim sweep``."""

from __future__ import annotations

from pathlib import Path

from tests.backends import FASTEST


def test_the_command_writes_the_table(cli, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "a.parquet"
    arguments = ("sweep", "double_pendulum", "--duration", 0.01, "--backend", FASTEST, "--out", out)
    result = cli(*arguments, "--set", "length1=0.5,1.0", "--set", "mass1=1:2:2", "--rate", 500)
    assert result.exit_code == 0, result.output
    table = parquet.read_table(out)
    assert len(table) == 4 * 6 and set(table.column("length1").to_pylist()) == {0.5, 1.0}
    result = cli(*arguments, "--set", "mass1=1:2", "--sample", 3)
    assert result.exit_code == 0 and len(parquet.read_table(out)) == 3
    for more, words in ((("--set", "mass1=1:2"), "--sample"), ((), "--set"), (("--set", "mas=1,2"), "mass1")):
        result = cli(*arguments, *more)
        assert result.exit_code == 2 and words in result.stderr, result.output


def test_whole_numbers_and_names(cli, tmp_path: Path) -> None:
    from pyarrow import parquet

    out = tmp_path / "a.parquet"
    arguments = (
        "sweep",
        "chain",
        "--duration",
        0.005,
        "--backend",
        FASTEST,
        "--out",
        out,
        "--signals",
        "joint.*.velocity",
    )
    result = cli(*arguments, "--set", "links=1:2:2", "--set", "joint=ball,revolute")
    assert result.exit_code == 0, result.output
    table = parquet.read_table(out)
    assert table.column("links").to_pylist() == [1, 1, 2, 2]
    assert [x is None for x in table.column("joint.joint1.velocity").to_pylist()] == [True, False, True, False]
    result = cli(*arguments, "--set", "links=1,2", "--sample", 3, "--seed", -3)
    assert result.exit_code == 2 and "seed = -3" in result.stderr, result.output
