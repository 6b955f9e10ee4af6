from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gpusim import ModelBuilder, Rays, Simulation, Transform, UnknownNameError
from gpusim.scene import load_scene
from gpusim.viewer import Offscreen, PinholeCamera
from gpusim.viewer.overlays import Frame, Timings, overlays
from gpusim.viewer.overlays.canvas import Box, Canvas
from tests.backends import FASTEST
from tests.message_snapshot import naming
from tests.unit.viewer.drawing import compare, require_egl
from tests.unit.viewer.models import ball_and_wall, pendulum

SIZE = {"width": 320, "height": 180, "quality": "software"}


@pytest.fixture(autouse=True)
def egl() -> None:
    require_egl()


def simulation(name: str, num_worlds: int = 1, **parameters: object) -> Simulation:
    scene = load_scene(name, **parameters)
    return Simulation(scene.builder.finalize(), num_worlds, config=scene.config)


def pyramid() -> Simulation:
    return simulation("pyramid", height=4)


def stepped() -> Simulation:
    sim = pyramid()
    sim.step()
    return sim


def pressed() -> Simulation:
    sim = simulation("boom_crane")
    sim.write("cylinder.lift.pressure_a", 93.4e5)
    sim.write("cylinder.lift.pressure_b", 12.5e5)
    return sim


def scanned() -> Simulation:
    """A scanner among a ball, a box and a cone, and a grid of rays onto the ground."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    head = b.add_body(1.0, (1, 1, 1), xform=Transform((0, 0, 0.8)), label="head")
    b.add_shape_capsule(head, radius=0.1, half_length=0.2)
    b.add_shape_sphere(-1, radius=0.5, xform=Transform((2.0, 0.5, 0.8)))
    b.add_shape_box(-1, half_extents=(0.3, 0.3, 0.8), xform=Transform((1.5, -1.0, 0.8)))
    b.add_shape_cone(-1, radius=0.5, half_length=0.8, xform=Transform((0.2, 1.6, 0.8)))
    site = b.add_site(head)
    b.add_ray_sensor(site, Rays.fan(math.pi, 61), max_range=3.0, label="scan")
    b.add_ray_sensor(site, Rays.grid((1.0, 1.0), (6, 6)), label="heights")
    return Simulation(b.finalize(), backend=FASTEST)


CLOSE = PinholeCamera((1.6, -8.2, 3.2), (-0.9, 0.0, 1.75))
ASIDE = PinholeCamera((2.6, -3.2, 1.6), (0.9, 0.0, 0.35))
SHOWN: dict[str, tuple[Callable[[], Simulation], PinholeCamera | str]] = {
    "boxes": (lambda: simulation("card_house"), "fit"),
    "colors": (pyramid, CLOSE),
    "contacts": (pyramid, CLOSE),
    "joints": (lambda: simulation("four_bar"), ASIDE),
    "labels": (lambda: simulation("flyball"), "fit"),
    "mass": (pyramid, PinholeCamera((2.6, -8.0, 5.4), (-0.7, 0.0, 1.5))),
    "pressure": (pressed, "fit"),
    "profile": (stepped, CLOSE),
    "rays": (scanned, PinholeCamera((-2.0, -3.5, 3.5), (0.9, 0.1, 0.6))),
    "wireframe": (lambda: simulation("quarter_car"), "fit"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", [overlay.name for overlay in overlays()])
def test_picture(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, camera = SHOWN[name]
    sim = make()
    monkeypatch.setattr(sim, "backend_name", "any")
    with Offscreen(sim, camera=camera, overlays=[name], **SIZE) as eye:  # type: ignore[arg-type]
        eye.timings = Timings(1.25, 0.8e-3, 16.7e-3)
        picture = eye.image()
        compare(picture, f"overlay_{name}")
        eye.overlays = ()
        assert (np.abs(picture.astype(int) - eye.image()).max(axis=2) > 40).mean() > 0.004


def test_joints_and_contacts_have_colors_of_their_own() -> None:
    sim = simulation("four_bar")
    with Offscreen(sim, camera=ASIDE, overlays=["colors"], **SIZE) as eye:  # type: ignore[arg-type]
        compare(eye.image(), "overlay_colors_joints")


def test_turned_off_they_leave_no_trace() -> None:
    sim = pyramid()
    with Offscreen(sim, camera=CLOSE, **SIZE) as eye:  # type: ignore[arg-type]
        before = eye.image()
        depth = eye.depth()
        eye.overlays = {overlay.name for overlay in overlays()}
        assert not np.array_equal(eye.image(), before)
        assert np.array_equal(eye.depth(), depth)
        eye.overlays = ()
        assert np.array_equal(eye.image(), before)


def test_a_trial_step_is_made_once_a_frame_and_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, calls = pyramid(), []
    sim.step()
    forward = sim.backend.run_forward
    monkeypatch.setattr(sim.backend, "run_forward", lambda h: calls.append(h) or forward(h))
    with Offscreen(sim, **SIZE) as eye:  # type: ignore[arg-type]
        eye.overlays = ("boxes", "joints", "labels", "profile", "wireframe")
        eye.image()
        assert not calls
        eye.overlays = ("contacts", "mass", "colors")
        eye.image()
        assert len(calls) == 1
        sim.step()
        eye.image()
        assert len(calls) == 2


def test_a_model_without_simulation_says_what_is_missing() -> None:
    with Offscreen(pendulum(), overlays=["contacts", "pressure"], **SIZE) as eye:  # type: ignore[arg-type]
        noted = eye.image()
        eye.overlays = ()
        changed = np.argwhere(np.any(noted != eye.image(), axis=2))
    assert len(changed) > 500 and changed[:, 0].min() > 120 and changed[:, 1].max() < 280
    with Offscreen(pendulum(), overlays=["joints", "mass", "colors", "boxes", "labels"], **SIZE) as eye:  # type: ignore[arg-type]
        assert not np.array_equal(eye.image(), noted)


def test_many_worlds_show_each_its_own() -> None:
    sim = simulation("hydraulic_lift", num_worlds=4)
    sim.write("cylinder.lift.pressure_a", 150e5, worlds=2)
    pictures = []
    for world in (1, 2):
        with Offscreen(sim, worlds=[world], overlays=["pressure"], **SIZE) as eye:  # type: ignore[arg-type]
            pictures.append(eye.image().astype(int))
    red = [((p[..., 0] - p[..., 2] > 120) & (p[..., 1] < 110)).sum() for p in pictures]
    assert red[1] > red[0] + 100


def test_letters_are_as_sharp_as_in_the_atlas() -> None:
    def write(frame: Frame, canvas: Canvas) -> None:
        canvas.rectangle(Box(0.0, 0.0, 320.0, 180.0), (1.0, 1.0, 1.0))
        canvas.text(40.3, 90.4, "Hydraulics", (0.0, 0.0, 0.0))
        drawn.append(canvas.atlas)

    drawn = []
    with Offscreen(pendulum(), **SIZE) as eye:  # type: ignore[arg-type]
        eye.sketches = [write]
        picture = eye.image()
    letters = drawn[0]
    expected = np.full((180, 320), 255)
    for x, y, width, height, u, v in letters.letters("Hydraulics"):
        cell = expected[90 + y : 90 + y + height, 40 + x : 40 + x + width]
        cell -= np.minimum(cell, letters.image[v : v + height, u : u + width, 0])
    assert np.abs(picture - expected[..., None]).max() <= 3
    assert (expected < 100).sum() > 60


def test_what_bodies_hide_is_faint_and_what_is_on_top_is_not() -> None:
    def line(top: bool) -> Callable[[Frame, Canvas], None]:
        ends = np.array([[-2.0, 6.5, 1.0]]), np.array([[2.0, 6.5, 1.0]])
        return lambda frame, canvas: canvas.lines(*ends, (1.0, 0.0, 0.0), 8.0, top=top)

    ahead = PinholeCamera((0.0, 0.0, 1.0), (0.0, 1.0, 1.0))
    pictures = []
    with Offscreen(ball_and_wall(), camera=ahead, **SIZE) as eye:  # type: ignore[arg-type]
        behind = eye.segmentation()[90] == 0
        for sketches in ([], [line(False)], [line(True)]):
            eye.sketches = sketches
            pictures.append(eye.image()[90].astype(int))
    none, hidden, top = pictures
    red = top[:, 0] - top[:, 1] > 200
    assert red[behind].all() and behind.sum() > 40 and (red & ~behind).sum() > 40
    assert np.array_equal(hidden[red & ~behind], top[red & ~behind])
    middle = np.flatnonzero(behind)[3:-3]
    change = np.abs(hidden - none)[middle].max(axis=1)
    assert change.min() > 8 and change.max() < 0.4 * np.abs(top - none)[middle].max()


def test_lines_behind_the_eye_are_cut_off() -> None:
    def line(frame: Frame, canvas: Canvas) -> None:
        start = np.array([[0.0, -30.0, 0.4], [0.0, -30.0, 0.4]])
        canvas.lines(start, np.array([[0.0, 3.0, 0.4], [0.0, -20.0, 0.0]]), (1.0, 0.0, 0.0), 6.0, top=True)

    with Offscreen(pendulum(), camera=PinholeCamera((0, -5, 0), (0, 0, 0)), **SIZE) as eye:  # type: ignore[arg-type]
        eye.sketches = [line]
        picture = eye.image().astype(int)
    red = picture[..., 0] - picture[..., 1] > 200
    # from the point above the middle upwards, out of the picture
    assert red[:60, 160].all() and not red[90:].any() and red.sum() < 1500


def test_unknown_overlays_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=naming("'contacts'")):
        Offscreen(pendulum(), overlays=["contact"])
    with Offscreen(pendulum(), **SIZE) as eye:  # type: ignore[arg-type]
        with pytest.raises(UnknownNameError, match=naming("wireframe")):
            eye.overlays = {"wirefame"}
        assert eye.overlays == frozenset()
