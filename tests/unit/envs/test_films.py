"""Pictures and films of environments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusim.envs import Env, VectorEnv
from tests.unit.envs.tasks import Cart
from tests.unit.viewer.drawing import require_egl


def test_pictures_show_each_world() -> None:
    require_egl()
    env = VectorEnv(Cart(), 3, backend="numpy", render_mode="rgb_array", render_size=(64, 48), render_worlds=[0, 2])
    env.reset(seed=1)
    first, second, third = env.render()
    assert first.shape == (48, 64, 3) and first.dtype == np.uint8 and not second.any()
    assert not np.array_equal(first, third)
    for _ in range(5):
        env.step(np.ones((3, 1)))
    assert not np.array_equal(env.render()[0], first)
    env.close()
    assert VectorEnv(Cart(), 1, backend="numpy").render() is None
    one = Env(Cart(), "rgb_array", (64, 48), backend="numpy")
    one.reset(seed=1)
    assert one.render().shape == (48, 64, 3)
    one.close()


@pytest.mark.nightly
def test_record_video_writes_a_film_of_an_episode(tmp_path: Path) -> None:
    require_egl()
    pytest.importorskip("moviepy")
    from gymnasium.wrappers.vector import RecordVideo

    options = {"render_mode": "rgb_array", "render_size": (64, 48), "render_worlds": [0]}
    env = RecordVideo(
        VectorEnv(Cart(), 3, backend="numpy", **options), str(tmp_path), record_first_only=True,
        episode_trigger=lambda episode: episode == 0,
    )  # fmt: skip
    env.reset(seed=1)
    for _ in range(14):
        env.step(np.zeros((3, 1)))
    env.close()
    (film,) = tmp_path.glob("*.mp4")
    import imageio_ffmpeg

    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(film))
    assert count in (10, 11) and seconds == pytest.approx(1.05, abs=0.1)
