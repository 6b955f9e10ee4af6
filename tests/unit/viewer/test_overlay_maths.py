from __future__ import annotations

import math

import numpy as np
import pytest

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform, rotations
from gpusim.scene import load_scene
from gpusim.stage.poses import Poses
from gpusim.stage.stage import Stage
from gpusim.viewer import PinholeCamera
from gpusim.viewer.gl.text import GlyphAtlas, font_size
from gpusim.viewer.overlays import Frame, chosen_overlays, overlays
from gpusim.viewer.overlays.boxes import box_edges, shape_bounds
from gpusim.viewer.overlays.canvas import Box, Canvas
from gpusim.viewer.overlays.colors import color_of, contact_links, joint_links, manifold_colors
from gpusim.viewer.overlays.contacts import arrow_lengths, forces_on_moving_body
from gpusim.viewer.overlays.joints import joint_arrays
from gpusim.viewer.overlays.label_layout import arrange_boxes
from gpusim.viewer.overlays.mass import support_of, whole_center
from gpusim.viewer.overlays.panels import Row, add_panel
from gpusim.viewer.overlays.pressure import bar_fill
from gpusim.viewer.overlays.profile import contact_points
from gpusim.viewer.overlays.support import Level, convex_hull, margin

CAMERA = PinholeCamera((4.0, -6.0, 3.0), (0.0, 0.0, 0.5))
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
UP = np.array([0.0, 0.0, 1.0])


def frame_of(sim: Simulation, worlds: tuple[int, ...] = (0,)) -> Frame:
    stage = Stage(sim.model, len(worlds))
    state = sim.read_state()
    poses = Poses.from_state(state["position"], state["orientation"], worlds)
    return Frame(stage, poses, CAMERA, sim, worlds)


def resting(shift: float = 0.0, plane_first: bool = True, num_worlds: int = 1) -> Simulation:
    """A box of 2 kg and edge 0.2 m on a table of edge 1 m whose top is at z = 0, moved along x."""
    b = ModelBuilder()
    if plane_first:
        b.add_shape_box(-1, (0.5, 0.5, 0.1), xform=Transform((0.0, 0.0, -0.1)))
    body = b.add_body(xform=Transform((shift, 0.0, 0.1)), label="box")
    b.add_shape_box(body, (0.1, 0.1, 0.1), density=250.0)
    if not plane_first:
        b.add_shape_box(-1, (0.5, 0.5, 0.1), xform=Transform((0.0, 0.0, -0.1)))
    return Simulation(b.finalize(), num_worlds, config=SolverConfig(dt=0.005))


# The support polygon.


def test_hull_is_that_of_scipy_and_runs_counterclockwise() -> None:
    from scipy.spatial import ConvexHull

    points = np.random.default_rng(4).normal(size=(200, 2))
    hull = convex_hull(points)
    expected = points[ConvexHull(points).vertices]
    assert {tuple(p) for p in hull} == {tuple(p) for p in expected}
    x, y = hull.T
    assert 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) == pytest.approx(ConvexHull(points).volume)


def test_hull_leaves_out_points_on_edges_and_knows_lines_and_points() -> None:
    middle = np.array([[0.5, 0.0], [1.0, 0.5], [0.5, 0.5]])
    assert {tuple(p) for p in convex_hull(np.concatenate([SQUARE, middle, SQUARE]))} == {tuple(p) for p in SQUARE}
    line = convex_hull(np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]]))
    assert line.tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert convex_hull(np.array([[1.0, 2.0], [1.0, 2.0]])).tolist() == [[1.0, 2.0]]
    assert convex_hull(np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    "point, expected",
    [
        ((0.5, 0.5), 0.5),
        ((0.9, 0.5), 0.1),
        ((1.0, 0.5), 0.0),
        ((2.0, 0.5), -1.0),
        ((4.0, 5.0), -5.0),
        ((-0.25, 0.25), -0.25),
    ],
)
def test_margin_of_a_square(point: tuple[float, float], expected: float) -> None:
    assert margin(SQUARE, np.array(point)) == pytest.approx(expected)


def test_nothing_is_inside_a_hull_without_area() -> None:
    line = np.array([[0.0, 0.0], [2.0, 0.0]])
    assert margin(line, np.array([1.0, 0.0])) <= 0.0
    assert margin(line, np.array([1.0, 0.3])) == pytest.approx(-0.3)
    assert margin(np.zeros((0, 2)), np.zeros(2)) == -math.inf


def test_projection_is_along_gravity_whatever_its_direction() -> None:
    up = np.array([2.0, -1.0, 2.0]) / 3.0
    level = Level(up)
    points = np.random.default_rng(5).normal(size=(20, 3))
    assert level.down(points + 3.0 * up) == pytest.approx(level.down(points))
    lifted = level.lift(level.down(points), 0.7)
    assert lifted @ up == pytest.approx(np.full(20, 0.7))
    assert level.down(lifted) == pytest.approx(level.down(points))


@pytest.mark.parametrize("shift, expected", [(0.0, 0.1), (0.45, 0.05), (0.55, -0.05)])
def test_support_of_a_box_that_sticks_out_over_a_table(shift: float, expected: float) -> None:
    sim = resting(shift)
    dynamic = sim.model.topology.dynamic
    support = support_of(sim.contacts(), dynamic, np.array([shift, 0.0, 0.1]), UP)
    assert support is not None
    assert support.margin == pytest.approx(expected, abs=1e-6)
    assert support.corners[:, 0].max() == pytest.approx(min(shift + 0.1, 0.5), abs=1e-6)
    # a box that tips stands on the edge of the table alone
    assert len(support.corners) == (4 if expected > 0.0 else 2)
    assert support.corners[:, 2] == pytest.approx(np.zeros(len(support.corners)), abs=1e-3)


def test_bodies_that_hold_each_other_in_the_air_have_no_support() -> None:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for k in (0, 1):
        b.add_shape_box(b.add_body(xform=Transform((0.0, 0.0, 0.199 * k))), (0.1, 0.1, 0.1))
    sim = Simulation(b.finalize(), config=SolverConfig(dt=0.005))
    assert len(sim.contacts())
    assert support_of(sim.contacts(), sim.model.topology.dynamic, np.zeros(3), UP) is None


def test_the_whole_center_weighs_bodies() -> None:
    coms = np.array([[[0.0, 0.0, 0.0], [4.0, 0.0, 2.0]]])
    assert whole_center(np.array([[3.0, 1.0]]), coms)[0] == pytest.approx([1.0, 0.0, 0.5])


# Arrows.


def test_arrows_grow_with_the_force_and_slowly_beyond_four_weights() -> None:
    force = np.array([0.0, 5.0, 10.0, 20.0, 39.0, 41.0, 400.0])
    length = arrow_lengths(force, 10.0, 0.3)
    assert length[:5] == pytest.approx(0.03 * force[:5])
    assert np.all(np.diff(length) > 0.0)
    assert length[5] - length[4] < 0.07 and length[-1] < 0.3 * 15
    slope = np.diff(arrow_lengths(np.array([39.99, 40.0, 40.01]), 10.0, 0.3))
    assert slope[0] == pytest.approx(slope[1], rel=1e-2)


def test_arrows_without_weight_go_by_the_median() -> None:
    assert arrow_lengths(np.array([0.0, 1.0, 2.0, 3.0]), 0.0, 1.0)[2] == pytest.approx(1.0)
    assert arrow_lengths(np.zeros(2), 0.0, 1.0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("plane_first", [True, False])
def test_forces_are_shown_on_the_body_that_moves(plane_first: bool) -> None:
    sim = resting(plane_first=plane_first)
    force = forces_on_moving_body(sim.contacts(), sim.model.topology.dynamic, UP)
    assert force.sum(axis=0) == pytest.approx([0.0, 0.0, 2.0 * 9.81], abs=1e-3)
    frame = frame_of(sim)
    assert frame.weight == pytest.approx(2.0 * 9.81)
    assert frame.body_radius == pytest.approx(0.1 * math.sqrt(3.0))


# Labels.


def test_labels_stay_apart_inside_and_off_what_is_taken() -> None:
    random = np.random.default_rng(6)
    anchors = random.uniform([0.0, 0.0], [640.0, 360.0], size=(120, 2))
    sizes = np.stack([random.integers(20, 60, 120), np.full(120, 13)], axis=1)
    taken = [Box(0.0, 0.0, 150.0, 100.0)]
    places = arrange_boxes(anchors, sizes, 640, 360, taken)
    found = [place for place in places if place is not None]
    assert len(found) > 60
    for k, place in enumerate(found):
        assert place.x >= 0 and place.y >= 0 and place.x + place.width <= 640 and place.y + place.height <= 360
        assert not any(place.overlaps(other) for other in [*taken, *found[:k]])


def test_the_first_label_has_the_best_place_and_the_last_may_have_none() -> None:
    anchors, sizes = np.full((60, 2), 100.0), np.full((60, 2), (50.0, 12.0))
    places = arrange_boxes(anchors, sizes, 200, 200)
    first = places[0]
    assert first is not None and first.x > 100.0 and first.y + first.height < 100.0
    assert places[-1] is None


def test_tables_fill_a_corner_without_covering_each_other_or_leaving_the_picture() -> None:
    canvas = Canvas(CAMERA, 320, 180)
    rows = [Row(f"color {k}", str(k), (1.0, 0.0, 0.0)) for k in range(20)]
    boxes = [add_panel(canvas, "long", rows), add_panel(canvas, "b", rows[:2]), add_panel(canvas, "c", rows[:3])]
    boxes.append(add_panel(canvas, "d", rows[:2], right=True))
    boxes.append(add_panel(canvas, "e", rows[:2], low=True))
    for k, box in enumerate(boxes):
        assert box is not None
        assert box.x >= 0 and box.y >= 0 and box.x + box.width <= 320 and box.y + box.height <= 180
        assert not any(box.overlaps(other) for other in boxes[:k])
    assert boxes[3] and boxes[4] and boxes[3].x + boxes[3].width > 310 and boxes[4].y + boxes[4].height > 170


def test_contacts_are_counted_before_the_first_step_too() -> None:
    sim = resting(num_worlds=2)
    counts = [contact_points(frame_of(sim, (0, 1)))]
    sim.step()
    counts += [contact_points(frame_of(sim, (0, 1))), contact_points(frame_of(sim, (1,)))]
    assert counts == [8, 8, 4]


def test_tables_give_way_where_there_is_no_room() -> None:
    rows = [Row(f"color {k}", str(k), (1.0, 0.0, 0.0)) for k in range(40)]
    for width, height in ((90, 80), (60, 200), (400, 40), (20, 15)):
        canvas = Canvas(CAMERA, width, height)
        boxes = [add_panel(canvas, f"table {k}", rows, right=k == 2) for k in range(4)]
        found = [box for box in boxes if box is not None]
        assert found == canvas.taken and None in boxes
        for k, box in enumerate(found):
            assert box.x >= 0 and box.y >= 0 and box.x + box.width <= width and box.y + box.height <= height
            assert not any(box.overlaps(other) for other in found[:k])
    assert not found  # nothing can be read in 20 x 15 points


# Letters.


def test_letters_stand_on_the_base_line() -> None:
    letters = GlyphAtlas(14)
    x, y, width, height, u, v = letters.letters("H")[0]
    ink = letters.image[v : v + height, u : u + width, 0]
    rows = np.flatnonzero(ink.max(axis=1) > 128)
    assert rows[-1] + y == -1
    assert 0.6 * 14 < len(rows) < 0.9 * 14
    halo = letters.image[v : v + height, u : u + width, 1]
    assert np.all(halo >= ink) and (halo > 0).sum() > 1.5 * (ink > 0).sum()


def test_lines_of_text_are_as_long_as_their_letters() -> None:
    letters = GlyphAtlas(11)
    places = letters.letters("ab c")
    assert len(places) == 3 and np.all(np.diff(places[:, 0]) > 0)
    assert letters.width("ab c") == sum(letters.width(letter) for letter in "ab c")
    assert letters.width("iii") < letters.width("WWW")
    assert letters.letters("").shape == (0, 6)


def test_new_letters_are_added_once() -> None:
    letters = GlyphAtlas(11)
    version, size = letters.version, letters.image.shape
    letters.width("plain ASCII 0.5")
    assert letters.version == version
    letters.letters("Ж" + "".join(map(chr, range(0x400, 0x500))))
    assert letters.version == version + 1 and letters.image.shape[0] > size[0]
    u, v = letters.letters("Ж")[0, 4:]
    assert letters.image[v : v + 10, u : u + 10].any()


def test_letters_are_larger_in_larger_pictures() -> None:
    sizes = [font_size(height) for height in (90, 180, 360, 720, 1080, 8192)]
    assert sizes == sorted(sizes) and sizes[0] >= 9 and sizes[4] > 1.5 * sizes[1]


# What the solver did.


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_no_two_contacts_of_a_color_share_a_body(backend: str) -> None:
    model = load_scene("pyramid", height=4).builder.finalize()
    sim = Simulation(model, 3, backend=backend, config=SolverConfig(dt=0.005))
    colors, contacts = manifold_colors(sim), sim.contacts()
    pairs, first = np.unique(contacts.pair, return_index=True)
    assert len(colors) == len(pairs) and colors.min() == 0 and colors.max() >= 3
    seen = set()
    for pair, k in zip(pairs, first, strict=True):
        for body in (contacts.body_a[k], contacts.body_b[k]):
            if body >= 0:
                use = (int(contacts.world[k]), int(colors[pair]), int(body))
                assert use not in seen
                seen.add(use)


def test_links_of_contacts_end_at_the_bodies_of_worlds_in_any_order() -> None:
    sim = resting(num_worlds=4)
    sim.write("body.box.position", (0.3, 0.0, 0.1), worlds=3)
    frame = frame_of(sim, (3, 1))
    assert frame.contacts is not None and set(frame.contacts.world) == {1, 3}
    links = contact_links(frame, frame.contacts, manifold_colors(sim))
    assert len(links.hub) == 2 and links.color.tolist() == [0, 0]
    offset = frame.stage.offsets[frame.column(np.array([1, 3]))]
    assert links.end - offset == pytest.approx(np.array([[0.0, 0.0, 0.1], [0.3, 0.0, 0.1]]))
    assert links.hub - offset == pytest.approx(np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0]]), abs=1e-3)


def test_joint_links_meet_in_the_joints() -> None:
    sim = Simulation(load_scene("chain", links=5).builder.finalize(), backend="numpy")
    links = joint_links(frame_of(sim), sim.config.max_colors)
    t = sim.model.topology
    assert len(links.hub) == t.num_constraints and set(links.color) == {0, 1}
    for color in (0, 1):
        bodies = t.constraint_bodies[links.color == color]
        moving = bodies[t.dynamic[bodies]]
        assert len(set(moving)) == len(moving)
    # in the builder's poses links are connected: hubs lie between the bodies
    shared = [np.flatnonzero(links.link == k) for k in range(len(links.hub))]
    for k, ends in enumerate(shared):
        if len(ends) == 2:
            a, b = links.end[ends]
            assert np.linalg.norm(a - links.hub[k]) + np.linalg.norm(links.hub[k] - b) == pytest.approx(
                np.linalg.norm(a - b), rel=1e-3
            )


def test_colors_of_the_solver_can_be_distinguished() -> None:
    shown = np.array([color_of(k) for k in (-3, -1, *range(32))])
    distance = np.linalg.norm(shown[:, None] - shown, axis=2) + 9.0 * np.eye(len(shown))
    assert distance[:12, :12].min() > 0.25 and distance.min() > 0.04
    assert np.all((shown >= 0.0) & (shown <= 1.0))


# Boxes, joints, bars, the list.


def test_boxes_touch_turned_shapes_on_all_sides() -> None:
    b = ModelBuilder()
    turned = Transform.from_axis_angle((1.0, 2.0, 3.0), (1.0, 1.0, 0.0), 0.7)
    body = b.add_body(xform=turned)
    b.add_shape_box(body, (0.1, 0.2, 0.3), xform=Transform((0.5, 0.0, 0.0)))
    b.add_shape_sphere(body, 0.25)
    b.add_shape_plane(-1)
    model = b.finalize()
    lower, upper = shape_bounds(Stage(model), Poses.from_model(model))
    matrix = rotations.matrix_from_quaternion(turned.rotation)
    middle, half = turned.apply(np.array([0.5, 0.0, 0.0])), np.abs(matrix) @ [0.1, 0.2, 0.3]
    assert lower[0, 0] == pytest.approx(middle - half) and upper[0, 0] == pytest.approx(middle + half)
    assert upper[0, 1] - lower[0, 1] == pytest.approx([0.5, 0.5, 0.5])
    assert np.all(upper[0, 2] - lower[0, 2] > 1e9)
    start, end = box_edges(lower[0, :1], upper[0, :1])
    assert len(start) == 12 and len({tuple(np.round([*a, *b], 9)) for a, b in zip(start, end, strict=True)}) == 12
    assert np.all((np.abs(end - start) > 1e-9).sum(axis=1) == 1)


def test_axes_of_motion_are_those_of_the_coordinates() -> None:
    b = ModelBuilder()
    first, second = b.add_body(1.0, (1, 1, 1)), b.add_body(1.0, (1, 1, 1))
    b.add_joint_revolute(-1, first, axis=(0, 1, 0))
    b.add_joint_prismatic(first, second, axis=(1, 0, 0))
    b.add_joint_distance(-1, second, max_distance=2.0)
    joints = joint_arrays(Stage(b.finalize()))
    assert joints.count == 3 and joints.move_slides.tolist() == [False, True] and joints.lines.tolist() == [2]
    assert joints.move_direction == pytest.approx(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))


def test_pressure_bars_run_from_the_tank_to_the_supply() -> None:
    assert bar_fill(0.0, 0.0, 2e7) == 0.0 and bar_fill(1e7, 0.0, 2e7) == 0.5
    assert bar_fill(3e7, 0.0, 2e7) == 1.0 and bar_fill(0.0, -1e7, 1e7) == 0.5


def test_overlays_have_names_keys_and_descriptions_of_their_own() -> None:
    known = overlays()
    names = {"boxes", "colors", "contacts", "joints", "labels", "mass", "pressure", "profile", "rays", "wireframe"}
    assert {overlay.name for overlay in known} == names
    keys = [overlay.key for overlay in known]
    assert len(set(keys)) == len(keys) and all(len(key) == 1 and key.islower() for key in keys)
    assert not set(keys) & set("fhr")
    assert all(overlay.description and "\n" not in overlay.description for overlay in known)
    order = [overlay.name for overlay in chosen_overlays(["labels", "profile", "contacts"])]
    assert order == ["contacts", "profile", "labels"]


def test_a_meter_across_the_view_is_as_many_pixels_as_the_camera_says() -> None:
    canvas = Canvas(CAMERA, 640, 360)
    right = CAMERA.axes()[0]
    point = np.array([0.3, 0.2, 0.5])
    pixel, _ = CAMERA.project(np.stack([point, point + 0.01 * right]), 640, 360)
    assert canvas.pixels_per_meter(point[None])[0] == pytest.approx(np.linalg.norm(pixel[1] - pixel[0]) / 0.01)
