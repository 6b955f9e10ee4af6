from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError
from gpusim.description.shape_kinds import Line, ShapeType, shape_kinds, shape_type
from tests.message_snapshot import naming

RAYS, SAMPLES, REACH = 600, 1500, 6.0
HEIGHTS = np.random.default_rng(5).normal(size=(6, 9)) * 0.3
HULL = np.random.default_rng(6).normal(size=(24, 3)) * 0.5


def _out(p: np.ndarray) -> np.ndarray:
    return np.hypot(p[..., 0], p[..., 1])


def _tube(p: np.ndarray, radius: float, half: float) -> np.ndarray:
    return np.maximum(_out(p) - radius, np.abs(p[..., 2]) - half)


def _capsule(p: np.ndarray) -> np.ndarray:
    axis = np.stack([0 * p[..., 2], 0 * p[..., 2], np.clip(p[..., 2], -0.5, 0.5)], axis=-1)
    return np.linalg.norm(p - axis, axis=-1) - 0.4


def _super(p: np.ndarray, e1: float, e2: float) -> np.ndarray:
    x, y, z = np.moveaxis(np.abs(p) / (0.6, 0.9, 0.5), -1, 0)
    ring = (x ** (2 / e2) + y ** (2 / e2)) ** (e2 / 2)
    return (ring ** (2 / e1) + z ** (2 / e1)) ** (e1 / 2) - 1.0


def _hull(p: np.ndarray) -> np.ndarray:
    spec = _shape("hull", vertices=HULL)
    faces, vertices = spec.params["faces"], spec.params["vertices"]
    # Recompute their planes from three corners each.
    worst = np.full(p.shape[:-1], -np.inf)
    for f in range(len(faces)):
        a, b, c = vertices[faces.polygon(f)[:3]]
        normal = np.cross(b - a, c - a)
        worst = np.maximum(worst, (p - a) @ (normal / np.linalg.norm(normal)))
    return worst


def _field(p: np.ndarray) -> np.ndarray:
    rows, columns = HEIGHTS.shape
    x, y = p[..., 0] / 0.4 + 0.5 * (columns - 1), p[..., 1] / 0.5 + 0.5 * (rows - 1)
    i, j = np.clip(x.astype(int), 0, columns - 2), np.clip(y.astype(int), 0, rows - 2)
    u, v = x - i, y - j
    h00, h10, h01, h11 = HEIGHTS[j, i], HEIGHTS[j, i + 1], HEIGHTS[j + 1, i], HEIGHTS[j + 1, i + 1]
    lower = (1 - u) * h00 + (u - v) * h10 + v * h11
    upper = (1 - v) * h00 + (v - u) * h01 + u * h11
    top = p[..., 2] - np.where(u >= v, lower, upper)
    sides = np.maximum(np.abs(p[..., 0]) - 0.2 * (columns - 1), np.abs(p[..., 1]) - 0.25 * (rows - 1))
    return np.maximum(np.maximum(top, sides), -1.5 - p[..., 2])


def _cone(p: np.ndarray) -> np.ndarray:
    return np.maximum(_out(p) - 0.6 * (0.7 - p[..., 2]) / 1.4, -0.7 - p[..., 2])


def _barrel(p: np.ndarray) -> np.ndarray:
    return np.maximum(np.hypot(_out(p) + 0.9 - 0.4, p[..., 2]) - 0.9, np.abs(p[..., 2]) - 0.5)


def _wheel(p: np.ndarray) -> np.ndarray:
    return np.hypot(np.maximum(_out(p) - 0.65, 0.0), p[..., 2]) - 0.15


def _box_mesh(half: tuple[float, float, float]) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """Triangles around a box, counterclockwise seen from outside."""
    corners = np.array([[(k >> i & 1) * 2 - 1 for i in range(3)] for k in range(8)]) * half
    quads = [(1, 3, 7, 5), (0, 4, 6, 2), (2, 6, 7, 3), (0, 1, 5, 4), (4, 5, 7, 6), (0, 2, 3, 1)]
    return corners, [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]


CASES: dict[str, tuple[str, dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = {
    "plane": ("plane", {}, lambda p: p[..., 2]),
    "sphere": ("sphere", {"radius": 0.7}, lambda p: np.linalg.norm(p, axis=-1) - 0.7),
    "capsule": ("capsule", {"radius": 0.4, "half_length": 0.5}, _capsule),
    "box": ("box", {"half_extents": (0.3, 0.8, 0.5)}, lambda p: (np.abs(p) - (0.3, 0.8, 0.5)).max(axis=-1)),
    "cylinder": ("cylinder", {"radius": 0.5, "half_length": 0.6}, lambda p: _tube(p, 0.5, 0.6)),
    "cone": ("cone", {"radius": 0.6, "half_length": 0.7}, _cone),
    "ellipsoid": (
        "ellipsoid",
        {"semi_axes": (0.3, 0.9, 0.5)},
        lambda p: np.linalg.norm(p / (0.3, 0.9, 0.5), axis=-1) - 1.0,
    ),
    "superellipsoid": ("superellipsoid", {"semi_axes": (0.6, 0.9, 0.5), "exponents": (0.4, 1.3)},
                       lambda p: _super(p, 0.4, 1.3)),
    "boxy": ("superellipsoid", {"semi_axes": (0.6, 0.9, 0.5), "exponents": (0.1, 0.1)}, lambda p: _super(p, 0.1, 0.1)),
    "pointed": ("superellipsoid", {"semi_axes": (0.6, 0.9, 0.5), "exponents": (1.9, 1.9)},
                lambda p: _super(p, 1.9, 1.9)),
    "hull": ("hull", {"vertices": HULL}, _hull),
    "height_field": ("height_field", {"heights": HEIGHTS, "spacing": (0.4, 0.5), "base": -1.5}, _field),
    "triangle_mesh": ("triangle_mesh", {"mesh": _box_mesh((0.3, 0.8, 0.5))},
                      lambda p: (np.abs(p) - (0.3, 0.8, 0.5)).max(axis=-1)),
    "wheel": ("wheel", {"radius": 0.8, "edge_radius": 0.15}, _wheel),
    "barrel": ("barrel", {"radius": 0.4, "arc_radius": 0.9, "half_length": 0.5}, _barrel),
}  # fmt: skip


def _shape(kind: str, **params: Any) -> Any:
    b = ModelBuilder()
    body = -1 if not shape_type(kind).movable else b.add_body(1.0, (1.0, 1.0, 1.0))
    getattr(b, f"add_shape_{kind}")(body, **params)
    return b.shapes[0]


def cast(spec: Any, origin: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kind, start = shape_type(spec.kind), np.zeros(len(origin))
    near = origin
    if np.isfinite(kind.radius(spec.params)):
        start = np.sum(origin * direction, axis=1)
        near = origin - start[:, None] * direction
    with np.errstate(all="ignore"):
        s, normal = kind.cast(spec.params, Line(near, direction, start))
        return s - start, normal / np.linalg.norm(normal, axis=1, keepdims=True)


def _rays(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    origin = rng.normal(size=(RAYS, 3))
    origin *= (np.where(rng.random(RAYS) < 0.3, 0.3, 2.5) / np.linalg.norm(origin, axis=1))[:, None]
    direction = rng.normal(size=(RAYS, 3)) * 0.6 - origin
    direction[:30] = np.sign(direction[:30]) * np.eye(3)[np.arange(30) % 3]  # along axes
    return origin, direction / np.linalg.norm(direction, axis=1, keepdims=True)


def test_every_kind_of_shape_is_seen() -> None:
    assert {kind for kind, _, _ in CASES.values()} == {kind.name for kind in shape_kinds() if kind.ray_file}
    assert {"sphere", "hull"} <= {kind.name for kind in shape_kinds() if kind.ray_file}


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_rays_stop_where_the_implicit_function_changes_sign(case: str) -> None:
    kind, params, f = CASES[case]
    origin, direction = _rays(hash_of(case))
    found, normal = cast(_shape(kind, **params), origin, direction)
    s = np.linspace(0.0, REACH, SAMPLES)
    inside = f(origin[:, None] + s[:, None] * direction[:, None]) <= 0.0
    change = inside[:, 1:] != inside[:, :-1]
    first = np.argmax(change, axis=1)
    met = change[np.arange(RAYS), first]
    low, high = s[first], s[first + 1]
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = (f(origin + middle[:, None] * direction) <= 0.0) == inside[:, 0]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    assert np.all(found[met] <= high[met] + 1e-11)
    # What sampling has overlooked is on the surface all the same, and rare.
    near = np.isfinite(found)
    point = origin[near] + found[near, None] * direction[near]
    np.testing.assert_allclose(f(point), 0.0, atol=1e-12)
    assert np.mean(np.abs(found[met] - high[met]) > 1e-11) < 0.01
    assert np.all(np.isfinite(found[met])) and np.mean(np.isfinite(found) & (found < REACH) & ~met) < 0.01
    step = 1e-6 * normal[near]
    edges = np.mean((f(point + step) <= 0.0) | (f(point - step) >= 0.0))
    assert edges < 0.01
    assert met.sum() > RAYS // 4 and inside[:, 0].sum() > 30


def hash_of(case: str) -> int:
    return sum(map(ord, case))


@pytest.mark.parametrize("case", CASES)
def test_normals_are_gradients(case: str) -> None:
    kind, params, f = CASES[case]
    origin, direction = _rays(hash_of(case) + 1)
    found, normal = cast(_shape(kind, **params), origin, direction)
    hit = np.isfinite(found)
    point = origin[hit] + found[hit, None] * direction[hit]
    h = 1e-5
    gradient = np.stack([f(point + h * e) - f(point - h * e) for e in np.eye(3)], axis=1)
    gradient /= np.linalg.norm(gradient, axis=1, keepdims=True)
    apart = np.linalg.norm(gradient - normal[hit], axis=1)
    assert np.mean(apart > 1e-4) < 0.03, np.sort(apart)[-20:]


def test_rays_from_far_away_lose_no_digits() -> None:
    for case in ("sphere", "cylinder", "cone", "ellipsoid", "superellipsoid", "wheel", "barrel", "hull", "capsule"):
        kind, params, _ = CASES[case]
        spec = _shape(kind, **params)
        origin, direction = np.array([[0.1, 0.05, 0.02]] * 2), np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
        near, _ = cast(spec, origin - 2.0 * direction, direction)
        far, _ = cast(spec, origin - 1e6 * direction, direction)
        np.testing.assert_allclose(far - 1e6, near - 2.0, atol=2e-9)


def test_grazing_rays() -> None:
    turned = np.array([[1.0, 0.0, 0.0]])
    for case, top in {"sphere": 0.7, "capsule": 0.9, "box": 0.5, "cylinder": 0.6, "ellipsoid": 0.5, "cone": 0.7,
                      "superellipsoid": 0.5, "wheel": 0.15, "barrel": 0.5}.items():  # fmt: skip
        kind, params, _ = CASES[case]
        spec, hair = _shape(kind, **params), 1e-9
        within, _ = cast(spec, np.array([[-3.0, 0.0, top - hair]]), turned)
        beside, _ = cast(spec, np.array([[-3.0, 0.0, top + hair]]), turned)
        assert np.isfinite(within[0]) and within[0] < 3.0 + 1e-12, case
        assert np.isinf(beside[0]), case


def test_closed_forms() -> None:
    forward, back = np.array([[1.0, 0.0, 0.0]]), np.array([[-1.0, 0.0, 0.0]])
    cone = _shape("cone", radius=0.6, half_length=0.7)
    distance, normal = cast(cone, np.array([[-2.0, 0.0, 0.0]]), forward)
    assert distance[0] == pytest.approx(1.7, abs=1e-15)
    np.testing.assert_allclose(normal[0], np.array([-1.4, 0, 0.6]) / math.hypot(1.4, 0.6), atol=1e-15)
    wheel = _shape("wheel", radius=0.8, edge_radius=0.15)
    assert cast(wheel, np.array([[2.0, 0.0, 0.1]]), back)[0][0] == pytest.approx(
        2.0 - 0.65 - math.sqrt(0.15**2 - 0.01), abs=1e-14
    )
    disk = _shape("wheel", radius=0.8, edge_radius=0.0)
    down = np.array([[0.0, 0.0, -1.0]])
    assert cast(disk, np.array([[0.3, 0.2, 1.0]]), down)[0][0] == 1.0
    assert np.isinf(cast(disk, np.array([[0.8, 0.2, 1.0]]), down)[0][0])
    barrel = _shape("barrel", radius=0.4, arc_radius=0.9, half_length=0.5)
    expected = 2.0 - (math.sqrt(0.9**2 - 0.3**2) - 0.5)
    assert cast(barrel, np.array([[2.0, 0.0, 0.3]]), back)[0][0] == pytest.approx(expected, abs=1e-14)
    plane = _shape("plane")
    slanted = np.array([[0.6, 0.0, -0.8]])
    assert cast(plane, np.array([[0.0, 0.0, 2.0]]), slanted)[0][0] == pytest.approx(2.5, abs=1e-15)
    assert np.isinf(cast(plane, np.array([[0.0, 0.0, 2.0]]), forward)[0][0])


def test_a_height_field_has_walls_a_bottom_and_no_seams() -> None:
    field = _shape("height_field", heights=HEIGHTS, spacing=(0.4, 0.5), base=-1.5)
    side, normal = cast(field, np.array([[-5.0, 0.1, -1.0]]), np.array([[1.0, 0.0, 0.0]]))
    assert side[0] == pytest.approx(5.0 - 1.6, abs=1e-14) and normal[0] == pytest.approx([-1, 0, 0])
    upwards = np.array([[0.0, 0.0, 1.0]])
    out, _ = cast(field, np.array([[0.1, 0.1, -1.0]]), upwards)
    down, _ = cast(field, np.array([[0.1, 0.1, 3.0]]), -upwards)
    assert out[0] - 1.0 == pytest.approx(3.0 - down[0], abs=1e-14)
    below, normal = cast(field, np.array([[0.1, 0.1, -4.0]]), upwards)
    assert below[0] == 2.5 and normal[0] == pytest.approx([0, 0, -1])
    rows, columns = HEIGHTS.shape
    x, y = np.meshgrid((np.arange(columns) - 4.0) * 0.4, (np.arange(rows) - 2.5) * 0.5)
    origin = np.stack([x.ravel(), y.ravel(), np.full(x.size, 3.0)], axis=1)
    found, _ = cast(field, origin, np.tile([0.0, 0.0, -1.0], (x.size, 1)))
    np.testing.assert_allclose(3.0 - found, HEIGHTS.ravel(), atol=1e-13)
    middle = origin.reshape(rows, columns, 3)[:-1, :-1].reshape(-1, 3) + (0.2, 0.25, 0.0)
    found, _ = cast(field, middle, np.tile([0.0, 0.0, -1.0], (len(middle), 1)))
    expected = 0.5 * (HEIGHTS[:-1, :-1] + HEIGHTS[1:, 1:]).ravel()
    np.testing.assert_allclose(3.0 - found, expected, atol=1e-13)


def test_a_kind_without_a_cast_of_its_own_is_reported() -> None:
    line = Line(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(ModelError, match=naming("'sphere' ray_file")):
        ShapeType.cast(shape_type("sphere"), {}, line)
