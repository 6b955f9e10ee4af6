"""ci/docs/robot_pictures.py: a small model in both programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.pictures import load_picture
from tests.unit.viewer.drawing import require_egl

pytest.importorskip("mujoco")

from ci.docs import robot_pictures  # noqa: E402

BALL = """<mujoco><worldbody>{world}<body name="ball" pos="0 0 {height}"><freejoint/>
  <geom size="0.2" rgba="1 0 0 1"/><geom name="hull" size="0.5" group="3"/></body></worldbody>
  <keyframe><key name="home" qpos="0 0 2 1 0 0 0"/></keyframe></mujoco>"""


@pytest.mark.nightly
def test_both_programs_show_the_same_ball(tmp_path: Path) -> None:
    require_egl()
    path = tmp_path / robot_pictures.ROBOTS["Fetch"]
    path.parent.mkdir(parents=True)
    path.write_text(BALL.format(world="", height=1))
    command = [sys.executable, robot_pictures.__file__, "--models", tmp_path, "--only", "Fetch", "--write", tmp_path]
    subprocess.run(list(map(str, command)), check=True, env={**os.environ, "MUJOCO_GL": "egl"})
    page, size = load_picture(tmp_path / "robots_1.webp"), robot_pictures.SIZE
    halves = page[:size, 8 : 8 + size].astype(int), page[:size, 8 + size : 8 + 2 * size].astype(int)
    red = [half[..., 0] - half[..., 1] > 40 for half in halves]
    assert min(mask.sum() for mask in red) > 20_000
    assert np.mean(red[0] != red[1]) < 0.01


def test_a_file_with_a_light_and_a_floor_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "ball.xml"
    path.write_text(BALL.format(world='<light name="l"/><geom name="f" type="plane" size="1 1 1"/>', height=1))
    model = robot_pictures.completed(path).compile()
    assert (model.nlight, model.ngeom, model.ntex) == (1, 3, 1)
    path.write_text(BALL.format(world="", height=1))
    bare = robot_pictures.completed(path).compile()
    assert (bare.nlight, bare.ngeom, bare.ntex) == (1, 3, 1)
    assert bare.geom_pos[0, 2] == pytest.approx(1.8)


def test_a_missing_robot_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        robot_pictures.main(["--models", str(tmp_path), "--only", "Fetch"])
    assert f"Fetch ({robot_pictures.ROBOTS['Fetch']})" in capsys.readouterr().err
