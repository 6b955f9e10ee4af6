from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from gpusim.cli.main import app

ROOT = Path(__file__).parents[2]
#: The tree of commands, which typer's runner builds for every command line: 30 ms each.
COMMANDS = cache(get_command)

SWINGING_ARM = """\
<robot name="arm">
  <link name="world"/>
  <link name="upper">
    <inertial><origin xyz="0.5 0 0"/><mass value="2"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.2"/></inertial>
  </link>
  <link name="slide">
    <inertial><mass value="0.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <parent link="world"/><child link="upper"/><axis xyz="0 1 0"/>
  </joint>
  <joint name="rail" type="prismatic">
    <origin xyz="1 0 0"/><parent link="upper"/><child link="slide"/><axis xyz="1 0 0"/>
    <limit lower="-0.2" upper="0.2" effort="200" velocity="2"/>
  </joint>
</robot>
"""


@pytest.fixture
def cli(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Function that runs a command line in this process: ``cli("run", "double_pendulum", "--dt", "0.01")``."""
    monkeypatch.setattr("typer.testing._get_command", COMMANDS, raising=False)
    runner = CliRunner()
    messages = pytestconfig.pluginmanager.get_plugin("messages")

    def invoke(*arguments: object) -> Result:
        result = runner.invoke(app, [str(argument) for argument in arguments])
        if result.exit_code == 2 and result.stderr.startswith("gpusim: "):
            messages.note(result.stderr.removeprefix("gpusim: "))
        return result

    return invoke


@pytest.fixture
def checkout() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(SWINGING_ARM)
    return path
