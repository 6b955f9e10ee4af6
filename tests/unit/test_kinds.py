from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, Simulation
from gpusim.description.actuator_kinds import actuator_kinds
from gpusim.description.joint_kinds import _KINDS as JOINTS
from gpusim.description.joint_kinds import register as register_joint
from gpusim.description.shape_kinds import _KINDS as SHAPES
from gpusim.description.shape_kinds import register as register_shape
from gpusim.description.shape_kinds import shape_kinds
from gpusim.description.specs import JointSpec
from gpusim.joints.fixed import Fixed
from gpusim.shapes.box import Box

PACKAGE = Path(gpusim.__file__).parent
OUTSIDE = ("viewer", "scenes", "cuda_kernels", "importers", "exporters", "lint")


def homes() -> dict[str, set[str]]:
    kinds = [*JOINTS.all(), *actuator_kinds(), *shape_kinds()]
    files: dict[str, set[str]] = {}
    for kind in kinds:
        files.setdefault(kind.name, set()).add(inspect.getfile(type(kind)))
    return files


def asked_by_name(text: str, names: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Attribute) and side.attr in ("kind", "name") for side in sides):
                words = {c.value for side in sides for c in ast.walk(side) if isinstance(c, ast.Constant)}
                yield from ((node.lineno, name) for name in words & names)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            words = {c.value for c in node.elts if isinstance(c, ast.Constant)}
            if len(words & names) > 1:
                yield node.lineno, ", ".join(sorted(words & names))


@pytest.mark.nightly
def test_no_one_asks_for_a_kind_by_name() -> None:
    home = homes()
    found = []
    for file in PACKAGE.rglob("*.py"):
        if file.relative_to(PACKAGE).parts[0] in OUTSIDE:
            continue
        own = {name for name, files in home.items() if str(file) in files}
        asked = asked_by_name(file.read_text(encoding="utf-8"), set(home) - own)
        path = file.relative_to(PACKAGE).as_posix()
        found += [f"{path}:{line}: {name}" for line, name in asked]
    assert not found, "declare it on the kind:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    ['if spec.kind == "cylinder": pass', 'x = group.type.name != "servo"', 'a = s.kind in ("ball", "other")',
     'ROLLING = ["sphere", "capsule"]'],
)  # fmt: skip
def test_the_search_finds(text: str) -> None:
    assert list(asked_by_name(text, set(homes())))


@pytest.fixture
def welded_and_round() -> Iterator[None]:
    class Glued(Fixed):
        name: ClassVar[str] = "glued"

        def lets_collide(self, joint: JointSpec) -> bool:
            return True

    class Drum(Box):
        name: ClassVar[str] = "drum"
        rolls: ClassVar[bool] = True

        def curvature(self, params: dict[str, Any]) -> float:
            return 4.0

    register_joint(Glued)
    register_shape(Drum)
    yield
    JOINTS.forget("glued")
    SHAPES.forget("drum")


def test_kinds_of_a_users_own_are_asked(welded_and_round: None) -> None:
    b = ModelBuilder()
    for _ in range(3):
        b.add_shape_box(b.add_body(), (0.1, 0.1, 0.1))
    b.add_joint_fixed(0, 1)
    b.add_joint("glued", 1, 2)
    b.add_shape("drum", 2, dict(b.shapes[0].params))
    contact = b.finalize().contact
    assert contact.candidates == [[2, 3], [2, 3], [], []]  # 0 and 1 are welded, 1 and 2 glued
    np.testing.assert_array_equal(contact.rolls, [False, False, False, True])
    np.testing.assert_array_equal(contact.curvature, [0.0, 0.0, 0.0, 4.0])


def test_a_ball_shows_three_coordinates_and_a_rod_sets_no_pose() -> None:
    b = ModelBuilder()
    for _ in range(2):
        b.add_body(1.0, (0.1, 0.1, 0.1), com=(0.5, 0.0, 0.0))
    b.add_joint_ball(-1, 0, limit=0.5, label="ball")
    b.add_joint_distance(-1, 1, max_distance=2.0, label="rope")
    signals = Simulation(b.finalize(), backend="numpy").signals()
    assert signals["joint.ball.velocity"].shape == (3,) and signals["joint.ball.position"].writable
    assert signals["joint.rope.velocity"].shape == () and not signals["joint.rope.position"].writable
