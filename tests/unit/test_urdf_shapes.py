from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import Simulation, SolverConfig, Transform
from gpusim.importers import ImportReport, load_urdf
from gpusim.importers.urdf_parts.urdf_geometry import UniqueLabels
from tests.message_snapshot import naming
from tests.unit.urdf_text import SOLID, joint, link, robot

pytest.importorskip("yourdfpy")
trimesh = pytest.importorskip("trimesh")


def collision(geometry: str, origin: str = "") -> str:
    return f"<collision>{origin}<geometry>{geometry}</geometry></collision>"


BOX = collision('<box size="0.2 0.4 0.6"/>', '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>')


def test_primitives_and_poses() -> None:
    shapes = [
        BOX,
        collision('<cylinder radius="0.1" length="0.5"/>'),
        collision('<sphere radius="0.3"/>'),
        collision('<capsule radius="0.1" length="0.4"/>'),
    ]
    builder, report = load_urdf(robot(link("base", SOLID + "".join(shapes))))
    assert report.shapes == {"base": [0, 1, 2, 3]}
    assert [s.kind for s in builder.shapes] == ["box", "cylinder", "sphere", "capsule"]
    assert [s.label for s in builder.shapes] == ["base", "base_2", "base_3", "base_4"]
    box = builder.shapes[0]
    np.testing.assert_allclose(box.params["half_extents"], (0.1, 0.2, 0.3))
    np.testing.assert_allclose(box.xform.position, (1, 2, 3))
    np.testing.assert_allclose(box.xform.rotate((1, 0, 0)), (0, 1, 0), atol=1e-12)
    assert builder.shapes[1].params["half_length"] == pytest.approx(0.25)
    assert not report.ignored
    assert "4 collision shapes on 1 link" in report.summary()


def test_shapes_of_merged_links_stand_where_the_links_were() -> None:
    text = robot(
        link("base", SOLID) + link("foot", SOLID + BOX),
        joint("weld", "base", "foot", "fixed", '<origin xyz="0 0 -1" rpy="0 0 1.5707963267948966"/>'),
    )
    for merged in (True, False):
        builder, _ = load_urdf(text, merge_fixed=merged)
        shape = builder.shapes[0]
        body = builder.bodies[shape.body]
        assert body.label == ("base" if merged else "foot")
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = body.xform.matrix(), body.xform.position
        place = pose @ np.array([*shape.xform.position, 1.0])
        np.testing.assert_allclose(place[:3], (-2, 1, 2), atol=1e-12)


def test_meshes_are_found_by_package_and_by_folder(tmp_path) -> None:
    package = tmp_path / "arm_description"
    (package / "meshes").mkdir(parents=True)
    trimesh.creation.box((0.2, 0.2, 0.2)).export(package / "meshes" / "cube.stl")
    names = ["package://arm_description/meshes/cube.stl", "../meshes/cube.stl"]
    shapes = "".join(collision(f'<mesh filename="{name}" scale="1 2 3"/>') for name in names)
    (package / "urdf").mkdir()
    (package / "urdf" / "arm.urdf").write_text(robot(link("base", SOLID + shapes)))
    builder, report = load_urdf(package / "urdf" / "arm.urdf")
    assert len(builder.shapes) == 2 and not report.warnings
    for shape in builder.shapes:
        np.testing.assert_allclose(np.abs(shape.params["vertices"]).max(axis=0), (0.1, 0.2, 0.3), atol=1e-6)
    lonely = robot(link("base", SOLID + collision(f'<mesh filename="{names[0]}"/>')))
    _, report = load_urdf(lonely)
    assert not report.shapes
    assert any("arm_description/meshes/cube.stl" in w and "asset_dirs" in w for w in report.warnings)
    builder, _ = load_urdf(lonely, asset_dirs=[tmp_path])
    assert len(builder.shapes) == 1


@pytest.mark.parametrize(
    ("geometry", "why"),
    [
        ('<box size="0.1 0 0.1"/>', "no volume"),
        ("<plane/>", "<plane> is none of box"),
        ("", "<geometry> is empty"),
        ("<mesh/>", "no filename"),
    ],
)
def test_what_is_left_out_is_reported(geometry: str, why: str) -> None:
    builder, report = load_urdf(robot(link("base", SOLID + collision(geometry))))
    assert not builder.shapes
    assert any("link 'base'" in w and why in w for w in report.warnings)


@pytest.mark.parametrize(
    ("geometry", "words"),
    [
        ('<box size="1 2"/>', "3"),
        ('<sphere radius="big"/>', "2 'base' radius"),
        ("<sphere/>", "2 link 'base' <sphere>"),
    ],
)
def test_broken_numbers_are_errors(geometry: str, words: str) -> None:
    with pytest.raises(gpusim.ModelError, match=naming(words)):
        load_urdf(robot(link("base", SOLID + collision(geometry))))


def test_without_collisions() -> None:
    builder, report = load_urdf(robot(link("base", SOLID + BOX)), collisions=False)
    assert not builder.shapes and not report.shapes


def two_legs(apart: float = 0.0, more: str = "", **options: object) -> tuple[gpusim.ModelBuilder, ImportReport]:
    """Return a base and two legs of 0.1 m width, at a distance of ``apart`` (m)."""
    leg = collision('<box size="0.1 0.1 1"/>')
    links = [link("base", SOLID), link("left", SOLID + leg), link("right", SOLID + leg + more)]
    aside = f'<origin xyz="{apart} 0 0"/>'
    joints = [joint("l", "base", "left", "continuous", ""), joint("r", "base", "right", "continuous", aside)]
    return load_urdf(robot(*links, *joints), **options)  # type: ignore[arg-type]


def may_touch(builder: gpusim.ModelBuilder) -> list[list[int]]:
    return builder.finalize().contact.candidates or []


def test_links_pass_through_each_other_unless_asked() -> None:
    assert may_touch(two_legs(apart=0.2)[0]) == [[], []]
    assert may_touch(two_legs(apart=0.2, self_collisions=True)[0]) == [[1], []]


@pytest.mark.parametrize(("apart", "touch"), [(0.1001, True), (0.1, True), (0.0999, False), (0.0, False)])
def test_links_that_overlap_in_the_file_do_not_touch(apart: float, touch: bool) -> None:
    builder, report = two_legs(apart, self_collisions=True)
    assert may_touch(builder) == [[1] if touch else [], []]
    reported = [warning for warning in report.warnings if "overlap" in warning]
    if touch:
        assert not report.overlaps and not reported
    else:
        assert report.overlaps == {("left", "right"): pytest.approx(0.1 - apart, rel=1e-6)}
        assert len(reported) == 1 and "'left' and 'right' by" in reported[0]


def test_all_shapes_of_links_that_overlap_pass() -> None:
    more = collision('<sphere radius="0.1"/>', '<origin xyz="0.5 0 0"/>')
    turned = Transform.from_rpy((3.0, 2.0, 1.0), (0.3, 0.2, 0.1))
    assert may_touch(two_legs(0.05, more, self_collisions=True, xform=turned)[0]) == [[], [], []]
    assert may_touch(two_legs(0.2, more, self_collisions=True, xform=turned)[0]) == [[1, 2], [], []]


def test_many_overlaps_are_one_warning() -> None:
    ball = SOLID + collision('<sphere radius="0.1"/>')
    names = [f"finger{k}" for k in range(5)]
    joints = [joint(name, "palm", name, "continuous", "") for name in names]
    _, report = load_urdf(robot(link("palm", ball), *(link(n, ball) for n in names), *joints), self_collisions=True)
    assert len(report.overlaps) == 10
    assert [w for w in report.warnings if "overlap" in w and "and 7 pairs more" in w]


@pytest.mark.nightly
@pytest.mark.native
def test_robot_of_others_falls_on_its_feet() -> None:
    path = pytest.importorskip("upkie_description").URDF_PATH
    builder, report = load_urdf(path, fixed_base=False, xform=Transform((0, 0, 0.62)))
    builder.add_shape_plane(-1)
    sim = Simulation(builder.finalize(), backend="native", config=SolverConfig(dt=1e-3))
    sim.step(1500)
    assert sim.health().all()
    assert np.asarray(sim.read("sim.contacts"))[0] >= 2
    assert 0.0 <= np.asarray(sim.read("sim.penetration"))[0] < 1e-3
    lowest = min(sim.read(f"body.{body.label}.position")[0, 2] for body in sim.model.bodies)
    assert lowest > -0.05 and report.shapes


def test_slips_in_vectors_are_read_as_other_readers_do_and_reported(tmp_path) -> None:
    trimesh.creation.box((1.0, 1.0, 1.0)).export(tmp_path / "cube.stl")
    shapes = (
        '<collision><origin xyz="0, 0, 1"/><geometry><box size="1 2 3 4"/></geometry></collision>'
        '<collision><geometry><mesh filename="cube.stl" scale="2"/></geometry></collision>'
    )
    (tmp_path / "bot.urdf").write_text(robot(link("trunk", SOLID + shapes)))
    builder, report = load_urdf(tmp_path / "bot.urdf")
    box, mesh = builder.shapes
    np.testing.assert_allclose(box.params["half_extents"], (0.5, 1.0, 1.5))
    np.testing.assert_allclose(box.xform.position, (0.0, 0.0, 1.0))
    assert np.ptp(mesh.params["vertices"], axis=0) == pytest.approx((2.0, 2.0, 2.0))
    slips = [w for w in report.warnings if "commas" in w or "more than 3" in w or "all three axes" in w]
    assert len(slips) == 3 and all("of link 'trunk'" in w for w in slips), report.warnings


def test_labels_of_many_shapes_on_a_link() -> None:
    from types import SimpleNamespace

    taken: list[Any] = [SimpleNamespace(label="b_2")]
    labels = UniqueLabels(taken)
    found = []
    for name in ["a", "a", "b", "a", "b", "b"]:
        assert labels.next(name) == labels.next(name)
        found.append(labels.next(name))
        taken.append(SimpleNamespace(label=found[-1]))
    assert found == ["a", "a_2", "b", "a_3", "b_3", "b_4"]
