"""Cameras: projections and their inverses, framing, orbits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim.viewer import OrbitCamera, PinholeCamera, ViewerError
from gpusim.viewer.camera import closest, fitted, frame_bounds
from tests.message_snapshot import naming

CAMERA = PinholeCamera((4.0, -6.0, 3.0), (0.5, 0.2, 1.0))
POINTS = np.random.default_rng(1).uniform(-1.0, 1.0, size=(50, 3))


def test_axes_are_right_handed_and_level() -> None:
    right, up, back = CAMERA.axes()
    assert np.cross(right, up) == pytest.approx(back)
    assert right[2] == pytest.approx(0.0) and up[2] > 0.0
    assert back == pytest.approx(-CAMERA.forward)


def test_looking_straight_down_has_axes_too() -> None:
    axes = PinholeCamera((0.0, 0.0, 5.0), (0.0, 0.0, 0.0)).axes()
    assert axes @ axes.T == pytest.approx(np.eye(3))


def test_target_is_in_the_middle_of_the_picture() -> None:
    pixel, depth = CAMERA.project(CAMERA.target, 640, 360)
    assert pixel == pytest.approx([320.0, 180.0])
    assert depth == pytest.approx(CAMERA.distance)


def test_rays_go_through_projected_points() -> None:
    pixels, depth = CAMERA.project(POINTS, 640, 360)
    rays = CAMERA.pixel_ray(pixels[:, 0], pixels[:, 1], 640, 360)
    reach = depth / (rays @ CAMERA.forward)
    assert np.array(CAMERA.position) + reach[:, None] * rays == pytest.approx(POINTS, abs=1e-9)


def test_clip_coordinates_agree_with_the_projection() -> None:
    relative = np.concatenate([POINTS - CAMERA.position, np.ones((len(POINTS), 1))], axis=1)
    clip = relative @ CAMERA.to_clip(640 / 360, 0.1, 100.0).T
    pixels, depth = CAMERA.project(POINTS, 640, 360)
    assert clip[:, 3] == pytest.approx(depth)
    assert 0.5 * (clip[:, 0] / clip[:, 3] + 1.0) * 640 == pytest.approx(pixels[:, 0])
    assert 0.5 * (1.0 - clip[:, 1] / clip[:, 3]) * 360 == pytest.approx(pixels[:, 1])
    near = CAMERA.to_clip(1.0, 0.1, 100.0) @ np.array([*(0.1 * CAMERA.forward), 1.0])
    assert near[2] / near[3] == pytest.approx(-1.0)


@pytest.mark.parametrize("aspect", [0.5, 16 / 9])
def test_frame_bounds_shows_a_sphere_from_edge_to_edge(aspect: float) -> None:
    camera = frame_bounds((1.0, 2.0, 3.0), 0.7, aspect)
    half = 0.5 * camera.field_of_view
    narrow = min(half, math.atan(math.tan(half) * aspect))
    assert math.asin(0.7 / camera.distance) == pytest.approx(narrow)


@pytest.mark.parametrize("move", [fitted, closest])
def test_all_points_are_in_the_picture(move) -> None:
    tight = PinholeCamera((0.1, -1.2, 0.3), (0.3, 0.0, 0.0))
    pixels, depth = move(tight, POINTS, 640 / 360).project(POINTS, 640, 360)
    assert np.all(depth > 0.0)
    assert np.all((pixels > 0.0) & (pixels < [640.0, 360.0]))


def test_fitted_never_goes_forward_and_closest_does() -> None:
    far = PinholeCamera((0.0, -80.0, 3.0), (0.0, 0.0, 0.0))
    assert fitted(far, POINTS, 1.5) == far
    assert closest(far, POINTS, 1.5).distance < 10.0


def test_a_tower_seen_from_above_is_not_swollen_by_perspective() -> None:
    tower = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (0.0, 9.0)])
    camera = closest(frame_bounds((0.0, 0.0, 4.5), 5.0, 1.5, (0.0, -1e-3, 1.0)), tower, 1.5)
    depth = camera.project(tower, 300, 200)[1]
    assert depth.min() == pytest.approx(0.4 * depth.max())


def test_orbit_starts_where_the_pinhole_stood() -> None:
    assert OrbitCamera.from_pinhole(CAMERA).pinhole().position == pytest.approx(CAMERA.position)


def test_orbit_keeps_the_distance_and_stops_at_the_poles() -> None:
    orbit = OrbitCamera.from_pinhole(CAMERA)
    orbit.orbit(7.0, 0.3)
    assert orbit.pinhole().distance == pytest.approx(CAMERA.distance)
    orbit.orbit(0.0, 9.0)
    assert orbit.pinhole().position[2] == pytest.approx(CAMERA.target[2] + CAMERA.distance, rel=1e-3)
    assert np.all(np.isfinite(orbit.pinhole().axes()))


def test_pan_moves_the_picture_by_shares_of_its_height() -> None:
    orbit = OrbitCamera.from_pinhole(CAMERA)
    orbit.pan(0.25, -0.1)
    pixel, _ = orbit.pinhole().project(CAMERA.target, 640, 360)
    assert pixel == pytest.approx([320.0 - 0.25 * 360.0, 180.0 - 0.1 * 360.0])


def test_zoom_and_its_rule() -> None:
    orbit = OrbitCamera.from_pinhole(CAMERA)
    orbit.zoom(0.5)
    assert orbit.pinhole().distance == pytest.approx(0.5 * CAMERA.distance)
    with pytest.raises(ViewerError, match=naming("0.0 0")):
        orbit.zoom(0.0)


def test_follow_starts_without_a_jump_and_goes_along() -> None:
    orbit = OrbitCamera.from_pinhole(CAMERA)
    orbit.follow((9.0, 9.0, 9.0))
    assert orbit.pinhole().target == pytest.approx(CAMERA.target)
    orbit.follow((10.0, 9.0, 8.0))
    assert orbit.pinhole().target == pytest.approx(np.add(CAMERA.target, (1.0, 0.0, -1.0)))
    orbit.follow(None)
    orbit.follow((0.0, 0.0, 0.0))
    assert orbit.pinhole().target == pytest.approx(np.add(CAMERA.target, (1.0, 0.0, -1.0)))


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"position": (1.0, 2.0)}, "position"),
        ({"target": (1.0, 2.0, math.nan)}, "target"),
        ({"position": (1.0, 1.0, 1.0), "target": (1.0, 1.0, 1.0)}, "1.0"),
        ({"field_of_view": 4.0}, "field_of_view"),
    ],
)
def test_wrong_cameras_are_refused(wrong, message: str) -> None:
    with pytest.raises(ViewerError, match=naming(message)):
        PinholeCamera(**{"position": (1.0, 2.0, 3.0), "target": (0.0, 0.0, 0.0), **wrong})
