"""``gpusim fmu``."""

from __future__ import annotations

from pathlib import Path


def test_the_command_writes_an_fmu(cli, tmp_path: Path) -> None:
    from fmpy import read_model_description

    out = tmp_path / "lift.fmu"
    arguments = ("fmu", "hydraulic_lift", "--backend", "numpy", "--out", out)
    result = cli(*arguments, "--parameters", "body.load.mass", "--set", "mass=120", "--step", 0.01)
    assert result.exit_code == 0, result.output
    assert "schedule is not part" in result.stderr and "wrote" in result.stdout
    found = read_model_description(str(out))
    kinds: dict[str, list[str]] = {}
    for variable in found.modelVariables:
        kinds.setdefault(variable.causality, []).append(variable.name)
    assert kinds["input"] == ["lift", "lift.brake"] and kinds["parameter"] == ["body.load.mass"]
    assert "cylinder.lift.pressure_a" in kinds["output"]
    experiment = found.defaultExperiment
    assert (float(experiment.stepSize), float(experiment.stopTime)) == (0.01, 4.0)
    assert float({v.name: v for v in found.modelVariables}["body.load.mass"].start) == 120.0


def test_bad_options_are_refused(cli, tmp_path: Path) -> None:
    out = tmp_path / "lift.fmu"
    for more, words in (
        (("--out", tmp_path / "lift.zip"), ".fmu"),
        (("--out", out, "--outputs", "body.lod.position"), "body.load.position"),
        (("--out", out, "--step", -1.0), "step = -1"),
    ):
        result = cli("fmu", "hydraulic_lift", "--backend", "numpy", *more)
        assert result.exit_code == 2 and words in result.stderr, result.output
    assert not out.exists()
