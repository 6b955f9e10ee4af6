"""Tests of the import report: findings, strict imports and JSON."""

import json

import numpy as np
import pytest

from gpusim.errors import ModelError
from gpusim.importers import CommandInfo, ImportReport


def _report():
    report = ImportReport("file 'arm.xml'", "arm", "base", None, True)
    report.add("look", "mesh 'hand'", "has a texture", "drawn in its mean color")
    return report


def test_report_is_exact_until_a_finding_affects_motion():
    report = _report()
    assert report.exact
    report.raise_if_not_exact()
    report.add("motion", "joint 'a'", "has damping 3", "none put instead")
    report.add("motion", "joint 'b'", "has damping 4", "none put instead")
    assert not report.exact
    assert report.warnings[1] == "joint 'a': has damping 3; none put instead; also 'b'"
    with pytest.raises(ModelError, match="joint 'a'"):
        report.raise_if_not_exact()


def test_unknown_severity_is_an_error():
    with pytest.raises(ValueError, match="severity"):
        _report().add("fatal", "joint 'a'", "is red")


def test_json_has_findings_and_no_infinite_numbers():
    report = _report()
    report.commands["motor"] = CommandInfo("motor", factor=2.0)
    report.link_frames["base"] = np.eye(4)
    content = json.loads(report.json())
    assert content["exact"] and content["findings"][0]["severity"] == "look"
    assert content["commands"]["motor"] == {
        "command": "motor", "factor": 2.0, "offset": 0.0, "lower": None, "upper": None
    }  # fmt: skip


def test_command_value_clamps_in_the_units_of_the_file():
    info = CommandInfo("motor", factor=2.0, offset=1.0, lower=-1.0, upper=1.0)
    assert np.array_equal(info.value([-5.0, 0.5, 5.0]), [-1.0, 2.0, 3.0])
