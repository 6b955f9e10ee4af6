from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gpusim import ModelBuilder, ModelError, Transform
from tests.message_snapshot import naming

from ..helpers import both_backends, simulate


def shapes(*groups: Any, masks: dict[int, int] | None = None) -> ModelBuilder:
    b = ModelBuilder()
    for k, group in enumerate(groups):
        more: dict[str, Any] = {} if group is None else {"group": group}
        if masks and k in masks:
            more["mask"] = masks[k]
        b.add_shape_sphere(b.add_body(), 0.1, label=f"s{k}", **more)
    return b


def meet(b: ModelBuilder) -> set[tuple[int, int]]:
    candidates = b.finalize().contact.candidates
    assert candidates is not None
    return {(a, other) for a, others in enumerate(candidates) for other in others}


def all_but(count: int, *pairs: tuple[int, int]) -> set[tuple[int, int]]:
    return set(combinations(range(count), 2)) - set(pairs)


def test_all_meet_of_whom_nothing_is_said() -> None:
    b = shapes("track", "wheel", None, 4)
    assert meet(b) == all_but(4)
    assert [s.group for s in b.finalize().shapes] == [1, 1, 1, 4]


def test_two_groups_and_one_in_itself() -> None:
    b = shapes("track", "track", "wheel", "wheel", None)
    b.set_group_collision("wheel", "track", False)
    assert meet(b) == all_but(5, (0, 2), (0, 3), (1, 2), (1, 3))
    b.set_group_collision("wheel", "wheel", False)
    assert meet(b) == all_but(5, (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    b.set_group_collision("track", "wheel", True)
    assert meet(b) == all_but(5, (2, 3))


def test_a_group_that_meets_one_other_alone() -> None:
    b = shapes("guide", "wheel", "ground", None, 8, "guide")
    b.set_group_collision("guide", None, False)
    assert meet(b) == set(combinations((1, 2, 3, 4), 2))
    b.set_group_collision("guide", "wheel", True)
    assert meet(b) == set(combinations((1, 2, 3, 4), 2)) | {(0, 1), (1, 5)}
    b.set_group_collision("guide", None, True)
    assert meet(b) == all_but(6)


def test_names_next_to_numbers() -> None:
    b = shapes("a", "b", 1 << 31, 2, 2, masks={3: 3, 4: ~1 & 0xFFFFFFFF})
    b.set_group_collision("a", "b", False)
    assert meet(b) == all_but(5, (0, 1), (0, 3), (1, 3), (2, 3))
    groups = [s.group for s in b.finalize().shapes]
    assert groups == [1 << 30, 1 << 29, 1 << 31, 2, 2]
    masked = shapes("a", "b", None, masks={0: 1})
    masked.set_group_collision("a", None, False)
    masked.set_group_collision("a", "b", True)
    assert meet(masked) == {(1, 2)}


def test_the_builder_keeps_its_names() -> None:
    b = shapes("a", "a")
    b.set_group_collision("a", "a", False)
    assert meet(b) == set()
    b.add_shape_sphere(b.add_body(), 0.1, group="a")
    assert meet(b) == set() and [s.group for s in b.shapes] == ["a"] * 3


def test_copies_with_prefixes_are_groups_apart() -> None:
    track = shapes("shoe", "wheel")
    track.set_group_collision("shoe", "wheel", False)
    track.set_group_collision("shoe", None, True)
    b = ModelBuilder()
    for side in ("left_", "right_"):
        b.add_builder(track, label_prefix=side)
    assert [s.group for s in b.shapes] == ["left_shoe", "left_wheel", "right_shoe", "right_wheel"]
    assert meet(b) == all_but(4, (0, 1), (2, 3))
    b.set_group_collision("left_shoe", "right_shoe", False)
    assert meet(b) == all_but(4, (0, 1), (2, 3), (0, 2))
    once = ModelBuilder()
    once.replicate(track, 2)
    assert meet(once) == set()


def heap(count: int) -> ModelBuilder:
    b = ModelBuilder()
    b.add_shape_plane(-1, group="floor")
    for k in range(count):
        body = b.add_body(xform=Transform((0.3 * (k // 2), 0.01 * (k % 2), 0.1 + 0.15 * (k % 2))), label=f"ball{k}")
        b.add_shape_sphere(body, 0.1, group="odd" if k % 2 else "even")
    b.set_group_collision("even", "odd", False)
    return b


@pytest.mark.nightly
@both_backends
@pytest.mark.parametrize("count", [6, 80])
def test_they_pass_through_each_other_and_not_through_the_floor(count: int, backend: str) -> None:
    sim = simulate(heap(count), backend=backend, dt=5e-3)
    sim.step(80)
    heights = [sim.read(f"body.ball{k}.position")[0, 2] for k in range(count)]
    np.testing.assert_allclose(heights, 0.1, atol=2e-3)


MANY = tuple(f"g{k}" for k in range(33))


def with_rules(b: ModelBuilder, names: tuple[str, ...]) -> ModelBuilder:
    for name in names:
        b.set_group_collision(name, name, False)
    return b


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "empty name": (lambda: shapes(""), "group left_track"),
    "name with space": (lambda: shapes("left track"), "shape 's0'"),
    "list": (lambda: shapes(["a"]), "group 'a' 32"),
    "number in a rule": (lambda: shapes(2).set_group_collision(2, "a", False), "2"),
    "rule that is none": (lambda: shapes("a").set_group_collision("a", "a", 0), "collide 0"),
    "unknown": (lambda: with_rules(shapes("wheel"), ("whel",)).finalize(), "'whel' 'wheel'"),
    "none": (lambda: with_rules(shapes(None), ("wheel",)).finalize(), "'wheel' group"),
    "too many": (lambda: with_rules(shapes(*MANY), MANY).finalize(), "33 31"),
    "bits are gone": (
        lambda: with_rules(shapes("a", 0xFFFFFFFF), ("a",)).finalize(), "1 0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_group(name: str) -> None:
    call, words = BAD[name]
    with pytest.raises(ModelError, match=naming(words)):
        call()


def test_thirty_one_names() -> None:
    assert meet(with_rules(shapes(*MANY[:31], *MANY[:31]), MANY[:31])) == all_but(62, *((k, k + 31) for k in range(31)))
