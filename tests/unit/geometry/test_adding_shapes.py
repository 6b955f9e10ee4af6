from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusim import ContactLaw, Material, ModelBuilder, ModelError, Transform
from tests.message_snapshot import naming

NAN = float("nan")
CORNERS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]


def scene() -> ModelBuilder:
    b = ModelBuilder()
    b.add_body(label="a")
    b.add_body(1.0, (1, 1, 1), label="b")
    b.add_body(label="lift", kinematic=True)
    b.add_shape_box(0, (1, 2, 3), label="crate")
    b.add_shape_sphere(0, 0.5, xform=Transform((1, 2, 3)), label="knob")
    b.add_shape_capsule(1, 0.1, 0.2, label="rod")
    b.add_shape_plane(label="floor")
    b.add_shape_plane(2, label="table")
    b.add_collision_pair(0, 2, material=Material(friction=0.1))
    return b


BAD: dict[str, tuple[Callable[[ModelBuilder], Any], str]] = {
    "radius": (lambda b: b.add_shape_sphere(0, -1, label="x"), "shape 'x' radius -1"),
    "radius NaN": (lambda b: b.add_shape_sphere(0, NAN), "shape 'shape5' radius"),
    "radius text": (lambda b: b.add_shape_sphere(0, "big"), "radius 'big'"),
    "body": (lambda b: b.add_shape_sphere(7, 1.0, label="x"), "shape 'x' body 7 3 -1"),
    "body is a label": (lambda b: b.add_shape_sphere("a", 1.0), "'a' add_body"),
    "half extents": (lambda b: b.add_shape_box(0, 1.0), "half_extents 3"),
    "flat box": (lambda b: b.add_shape_box(0, (1, 0, 1)), "half_extents"),
    "capsule": (lambda b: b.add_shape_capsule(0, 1.0, 0.0), "half_length"),
    "cylinder": (lambda b: b.add_shape_cylinder(0, 0.0, 1.0), "radius"),
    "cone": (lambda b: b.add_shape_cone(0, 1.0, -1.0), "half_length"),
    "ellipsoid": (lambda b: b.add_shape_ellipsoid(0, (1, 2)), "semi_axes 3"),
    "flat ellipsoid": (lambda b: b.add_shape_ellipsoid(0, (1, 2, 0)), "semi_axes"),
    "exponents": (lambda b: b.add_shape_superellipsoid(0, (1, 1, 1), (0, 1)), "e1 0 0.1 1.9 box"),
    "three exponents": (lambda b: b.add_shape_superellipsoid(0, (1, 1, 1), (1, 1, 1)), "exponents 2"),
    "edge": (lambda b: b.add_shape_wheel(0, 0.5, 0.5), "edge_radius 0.5 radius"),
    "flat arc": (lambda b: b.add_shape_barrel(0, 0.5, 0.4, 0.1), "arc_radius 0.4 radius 0.5 wheel"),
    "arc's tip": (lambda b: b.add_shape_barrel(0, 0.2, 1.0, 0.6), "half_length 0.6"),
    "short arc": (lambda b: b.add_shape_barrel(0, 0.2, 1.0, 2.0), "half_length 2 0.6 arc_radius"),
    "flat hull": (lambda b: b.add_shape_hull(0, [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), "volume"),
    "three points": (lambda b: b.add_shape_hull(0, CORNERS[:3]), "3"),
    "one point": (lambda b: b.add_shape_hull(0, [(1, 1, 1)] * 9), "shape 'shape5' 9"),
    "no points": (lambda b: b.add_shape_hull(0, np.zeros((0, 3))), "shape 'shape5' 0"),
    "hull shape": (lambda b: b.add_shape_hull(0, [1, 2, 3]), "shape 3"),
    "hull NaN": (lambda b: b.add_shape_hull(0, [*CORNERS, (0, NAN, 0)]), "4"),
    "max_vertices": (lambda b: b.add_shape_hull(0, CORNERS, max_vertices=999), "max_vertices 999 256"),
    "mesh file": (lambda b: b.add_shape_mesh(0, "nowhere.stl"), "nowhere.stl"),
    "mesh scale": (lambda b: b.add_shape_mesh(0, np.array(CORNERS), scale=0.0), "scale"),
    "heights": (lambda b: b.add_shape_height_field(-1, [1, 2, 3]), "shape 3"),
    "heights NaN": (lambda b: b.add_shape_height_field(-1, [[1, 2], [3, NAN]]), "1"),
    "spacing": (lambda b: b.add_shape_height_field(-1, [[1, 2], [3, 4]], spacing=(1, 0)), "shape 'shape5' y 0"),
    "base": (lambda b: b.add_shape_height_field(-1, [[1, 2], [3, 4]], base=2), "base 2 1"),
    "plane that moves": (lambda b: b.add_shape_plane(0), "'a' kinematic"),
    "field that moves": (lambda b: b.add_shape_height_field(1, [[1, 2], [3, 4]]), "'b'"),
    "xform": (lambda b: b.add_shape_sphere(0, 1.0, xform=(0, 0, 1)), "xform"),
    "material": (lambda b: b.add_shape_sphere(0, 1.0, material="steel"), "'steel' gpusim.Material"),
    "group": (lambda b: b.add_shape_sphere(0, 1.0, group=-1), "group -1 32"),
    "mask": (lambda b: b.add_shape_sphere(0, 1.0, mask=1 << 32), "mask 0xffffffff"),
    "mask float": (lambda b: b.add_shape_sphere(0, 1.0, mask=1.5), "mask 1.5"),
    "density": (lambda b: b.add_shape_sphere(0, 1.0, density=0.0), "density"),
    "label taken": (lambda b: b.add_shape_sphere(0, 1.0, label="knob"), "'knob'"),
    "label": (lambda b: b.add_shape_sphere(0, 1.0, label="a b"), ""),
    "kind": (lambda b: b.add_shape("torus", 0, {}), "'torus'"),
    "pair unknown": (lambda b: b.add_collision_pair(0, 9), "shape_b 9 5"),
    "pair of labels": (lambda b: b.add_collision_pair("knob", 2), "shape_a 'knob' add_shape_"),
    "pair of one body": (lambda b: b.exclude_collision_pair(0, 1), "'crate' 'knob'"),
    "pair twice": (lambda b: b.exclude_collision_pair(2, 0), "'rod' 'crate' add_collision_pair"),
    "pair of the unmoved": (lambda b: b.add_collision_pair(3, 4), "'floor' 'table'"),
    "pair material": (lambda b: b.add_collision_pair(1, 2, material=0.5), "0.5 gpusim.Material"),
    "inertia alone": (lambda b: b.add_body(inertia=(1, 1, 1), label="x"), "'x'"),
}


def test_meshes_in_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cube.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cube.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n")
    with pytest.raises(ModelError, match=naming("cube.zip .stl .obj .ply")):
        scene().add_shape_mesh(0, path)


@pytest.mark.parametrize("case", BAD)
def test_errors_name_element_rule_and_fix(case: str) -> None:
    call, words = BAD[case]
    b = scene()
    with pytest.raises(ModelError, match=naming(words)):
        call(b)
    assert len(b.shapes) == 5 and len(b.pairs) == 1 and len(b.bodies) == 3


def test_what_is_written_down() -> None:
    b = scene()
    crate, knob, rod, floor, table = b.shapes
    assert (crate.kind, crate.body, crate.group, crate.mask) == ("box", 0, 1, 0xFFFFFFFF)
    assert knob.element == "shape 'knob'" and knob.xform == Transform((1, 2, 3))
    assert (floor.body, table.body, rod.params) == (-1, 2, {"radius": 0.1, "half_length": 0.2})
    assert b.add_shape_sphere(0, 1.0, density=7.0, material=Material(density=3.0)) == 5
    assert b.add_shape_sphere(0, 1.0, material=Material(density=3.0)) == 6
    assert [s.density for s in b.shapes[4:]] == [1000.0, 7.0, 3.0] and b.shapes[6].label == "shape6"
    assert b.exclude_collision_pair(1, 3) == 1
    pair = b.pairs[1]
    assert (pair.shape_a, pair.shape_b, pair.collide, pair.material) == (1, 3, False, None)


def test_add_builder_copies_shapes_and_pairs() -> None:
    part, b = scene(), ModelBuilder()
    b.add_body(1.0, (1, 1, 1))
    b.add_shape_sphere(0, 1.0, label="first")
    pose = Transform.from_rpy((5, 6, 7), (0.1, 0.2, 0.3))
    b.add_builder(part, xform=pose, label_prefix="left_")
    b.add_builder(part, label_prefix="right_")
    assert [s.label for s in b.shapes[:4]] == ["first", "left_crate", "left_knob", "left_rod"]
    assert [s.body for s in b.shapes] == [0, 1, 1, 2, -1, 3, 4, 4, 5, -1, 6]
    assert b.shapes[2].xform == part.shapes[1].xform
    assert b.shapes[4].xform == pose
    assert b.shapes[5].xform == Transform()
    assert [(p.shape_a, p.shape_b) for p in b.pairs] == [(1, 3), (6, 8)]
    assert b.pairs[1].material == Material(friction=0.1)
    b.shapes[1].params["half_extents"][0] = 9.0
    assert part.shapes[0].params["half_extents"][0] == 1.0
    with pytest.raises(ModelError, match=naming("shape 'first'")):
        b.add_shape_sphere(0, 1.0, label="first")
    with pytest.raises(ModelError, match=naming("'left_crate'")):
        b.add_shape_sphere(0, 1.0, label="left_crate")


def test_replicate_copies_shapes() -> None:
    b = ModelBuilder()
    b.replicate(scene(), 3)
    assert (b.num_worlds, len(b.shapes), len(b.pairs)) == (3, 5, 1)
    ground = ModelBuilder()
    ground.add_shape_plane()
    with pytest.raises(ModelError, match=naming("ModelBuilder.replicate")):
        ground.replicate(scene(), 2)


def test_law_rides_on_the_material() -> None:
    law = ContactLaw(normal="hertz")
    b = scene()
    b.add_shape_sphere(0, 1.0, material=Material(law=law))
    other = ModelBuilder()
    other.add_builder(b)
    assert other.shapes[5].material.law is law
