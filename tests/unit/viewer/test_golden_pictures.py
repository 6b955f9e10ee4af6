from __future__ import annotations

import pytest

from gpusim.scene import list_scenes, load_scene
from gpusim.viewer import Offscreen
from tests.unit.viewer.drawing import PICTURES, compare, require_egl
from tests.unit.viewer.models import SHAPES, shape_model

SIZE = {"width": 320, "height": 180, "quality": "software"}


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*SHAPES, "height_field"])
def test_shape(name: str) -> None:
    require_egl()
    with Offscreen(shape_model(name), **SIZE) as eye:  # type: ignore[arg-type]
        compare(eye.image(), f"shape_{name}")


@pytest.mark.nightly
@pytest.mark.parametrize("name", list_scenes())
def test_scene(name: str) -> None:
    require_egl()
    scene = load_scene(name)
    with Offscreen(scene.builder.finalize(), camera=scene.camera, **SIZE) as eye:  # type: ignore[arg-type]
        compare(eye.image(), f"scene_{name}")


def test_kept_pictures_are_few_and_small() -> None:
    names = {path.stem for path in PICTURES.glob("*.png")}
    known = {f"shape_{name}" for name in (*SHAPES, "height_field")} | {f"scene_{name}" for name in list_scenes()}
    assert known <= names
    assert sum(path.stat().st_size for path in PICTURES.glob("*.png")) < 3e6
