from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, Transform

FLAT = {"heights": np.zeros((3, 3)), "spacing": (0.5, 0.5)}


def neighbors(*shapes: tuple[str, Transform, dict[str, Any]], body: bool = False) -> list[list[int]]:
    b = ModelBuilder()
    on = b.add_body(1.0, (1, 1, 1)) if body else -1
    for kind, place, parameters in shapes:
        getattr(b, f"add_shape_{kind}")(on, xform=place, **parameters)
    b.add_shape_sphere(b.add_body(xform=Transform((0, 0, 5))), 0.1)
    return b.finalize().contact.seams[:-1]


BOX = {"half_extents": (0.5, 0.5, 0.1)}
HULL = {"vertices": [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.1, 0.1)]}


@pytest.mark.parametrize(
    ("first", "second", "place", "joined"),
    [
        ("box", "box", Transform((1, 0, 0)), True),
        ("box", "hull", Transform((1, 0.3, 0)), True),
        ("box", "box", Transform.from_axis_angle((0.9955, 0, 0.0434), (0, 1, 0), -math.radians(5)), True),
        ("box", "box", Transform((1.001, 0, 0)), False),
        ("box", "box", Transform((1.5, 0, 0)), False),
        ("box", "box", Transform((0.2, 0.2, 0.2)), False),
        ("hull", "box", Transform.from_axis_angle((0.85, 0.2, 0.35), (0, 1, 0), -math.radians(45)), False),
        ("box", "sphere", Transform((0.6, 0, 0)), False),
    ],
)
@pytest.mark.parametrize("body", [False, True])
def test_faces_that_continue_each_other(first: str, second: str, place: Transform, joined: bool, body: bool) -> None:
    sizes = {"box": BOX, "hull": HULL, "sphere": {"radius": 0.1}}
    found = neighbors((first, Transform(), sizes[first]), (second, place, sizes[second]), body=body)
    assert found == ([[1], [0]] if joined else [[], []])


def test_grounds() -> None:
    assert neighbors(("height_field", Transform(), FLAT), ("height_field", Transform((1, 0, 0)), FLAT)) == [[1], [0]]
    assert neighbors(("plane", Transform(), {}), ("box", Transform((3, 4, -0.1)), BOX)) == [[1], [0]]
    assert neighbors(("plane", Transform(), {}), ("box", Transform((3, 4, 0.1)), BOX)) == [[], []]
