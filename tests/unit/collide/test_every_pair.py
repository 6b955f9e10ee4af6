from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpusim import Contacts, ModelBuilder, ModelError, Simulation
from gpusim.contact.constants import FLIGHT
from gpusim.typing import Array
from tests.message_snapshot import naming

from .every_pair import DT, FAR, FIXED, GAPS, KINDS, NEAR, OVERLAPPING, PAIRS, PUSH_SPEED, Case, build, simulation
from .kernels import GUESSED, ROUTINES, collide
from .pairs import Contact, touch
from .record import Shape

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "collision_pairs.md"
KERNELS = Path(__file__).parents[3] / "cuda_kernels" / "collide"
TAKEN_BACK = {"native": (GAPS[OVERLAPPING], 42), "numpy": (-2.4e-4, 30)}
QUIET = 3
GAP_ERROR = 1e-7
BACKENDS = [pytest.param("native", marks=pytest.mark.native), pytest.param("numpy", marks=pytest.mark.nightly)]
each_backend = pytest.mark.parametrize("backend", BACKENDS)
each_pair = pytest.mark.parametrize("pair", PAIRS, ids="-".join)


@dataclass
class Run:
    """Pairs before the first step, and overlapping pairs after the position correction.

    Attributes:
        start: contact points of all worlds.
        stayed: (worlds, bodies, 3) displacements of the bodies after QUIET steps, m.
        end: contact points of the overlapping world.
        fastest: (bodies,) greatest speed, m/s.
        moved: (bodies, 3) displacements from start to end, m.
        farthest: (bodies,) greatest displacement in a step, m.
    """

    cases: list[Case]
    start: Contacts
    stayed: Array
    end: Contacts
    fastest: Array
    moved: Array
    farthest: Array


@cache
def model() -> tuple[ModelBuilder, list[Case]]:
    return build()


@cache
def run(backend: str) -> Run:
    b, cases = model()
    sim = simulation(b, cases, backend)
    start, place = sim.contacts(), np.array(sim.read_state()["position"])
    sim.step(QUIET)
    stayed = sim.read_state()["position"] - place
    gap, steps = TAKEN_BACK[backend]
    sim = simulation(b, cases, backend, [gap])
    first = before = np.array(sim.read_state()["position"][0])
    fastest, farthest = np.zeros(len(first)), np.zeros(len(first))
    for _ in range(steps):
        sim.step()
        now = np.array(sim.read_state()["position"][0])
        farthest = np.maximum(farthest, np.linalg.norm(now - before, axis=-1))
        fastest = np.maximum(fastest, np.linalg.norm(sim.read_state()["linear_velocity"][0], axis=-1))
        before = now
    return Run(cases, start, stayed, sim.contacts(), fastest, before - first, farthest)


def of(pair: tuple[str, str], cases: list[Case]) -> list[Case]:
    return [case for case in cases if pair in ((case.kind_a, case.kind_b), (case.kind_b, case.kind_a))]


def points(contacts: Contacts, case: Case, world: int) -> Contacts:
    ours = (contacts.shape_a == case.shape_a) & (contacts.shape_b == case.shape_b)
    return contacts.select(ours & (contacts.world == world))


@pytest.mark.nightly
@each_backend
@each_pair
def test_points_are_found_with_their_gap_and_normal(pair, backend) -> None:
    r = run(backend)
    for case in of(pair, r.cases):
        for world in (OVERLAPPING, NEAR):
            found = points(r.start, case, world)
            assert len(found) == documented_pairs()[pair][1]
            np.testing.assert_allclose(found.gap, GAPS[world], rtol=0, atol=GAP_ERROR)
            np.testing.assert_allclose(found.normal, np.tile(case.axis, (len(found), 1)), rtol=0, atol=1e-6)
        assert np.all(points(r.start, case, NEAR).mode == FLIGHT)
        assert len(points(r.start, case, FAR)) == 0


@pytest.mark.nightly
@each_backend
@each_pair
def test_overlaps_are_taken_back_gently(pair, backend) -> None:
    r = run(backend)
    for case in of(pair, r.cases):
        found = points(r.end, case, OVERLAPPING)
        assert np.all(found.gap > -1.1e-5), "the slop is left"
        free = [(body, sign) for body, sign in zip(case.bodies, (-1, 1), strict=True) if body >= 0]
        both = [body for body, _ in free]
        assert r.fastest[both].max() < 1e-6, "what is taken back leaves no speed"
        assert r.farthest[both].max() < 1.001 * PUSH_SPEED * DT
        assert all(sign * r.moved[body] @ case.axis > 1e-4 for body, sign in free), "along the normal"
        assert not r.stayed[[NEAR, FAR]][:, both].any()


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(FIXED, 2)), ids="-".join)
def test_what_cannot_move_never_collides(pair) -> None:
    b = ModelBuilder()
    sizes = {"plane": (), "height_field": (np.zeros((2, 2)),), "triangle_mesh": ((np.eye(3), [(0, 1, 2)]),)}
    a, c = (getattr(b, f"add_shape_{kind}")(b.add_body(1.0, kinematic=True), *sizes[kind]) for kind in pair)
    with pytest.raises(ModelError, match=naming("add_collision_pair shape 'shape0' 'shape1'")):
        b.add_collision_pair(a, c)
    assert len(Simulation(b.finalize(), backend="numpy").contacts()) == 0
    assert pair not in documented_pairs()


# What docs/reference/collision_pairs.md says.


def _rows(heading: str) -> list[list[str]]:
    part = DOCUMENT.read_text(encoding="utf-8").split(f"\n### {heading}\n")[1]
    lines = itertools.takewhile(lambda x: x.startswith("|"), part[part.index("\n|") + 1 :].splitlines())
    rows = [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in lines]
    return rows[:1] + rows[2:]


@cache
def documented_pairs() -> dict[tuple[str, str], tuple[str, int]]:
    head, *rows = _rows("Routine for each pair")
    names = [name.replace(" ", "_") for name in head[1:]]
    assert names == KINDS == [row[0].replace(" ", "_") for row in rows]
    cells = {(names[i], names[j]): rows[i][j + 1] for i in range(len(names)) for j in range(len(names))}
    assert all(cells[a, b] == cells[b, a] for a, b in cells)
    listed = {
        (a, b): cell.split() for (a, b), cell in cells.items() if cell != "–" and KINDS.index(a) <= KINDS.index(b)
    }
    return {pair: (letter, int(most)) for pair, (letter, most) in listed.items()}


@cache
def documented_routines() -> dict[str, tuple[str, str]]:
    return {row[0]: (row[1], row[2]) for row in _rows("The routines")[1:]}


def test_the_document_lists_every_pair_and_no_other() -> None:
    assert sorted(documented_pairs()) == sorted(PAIRS)
    assert {letter for letter, _ in documented_pairs().values()} == set(documented_routines())
    for name, file in documented_routines().values():
        assert re.search(rf"\bint {name}\(", (KERNELS / file).read_text(encoding="utf-8"))


def shape(sim: Simulation, number: int, world: int) -> Shape:
    c, m = sim.runtime.forward().contacts, sim.model.contact
    assert c is not None
    first, last = m.face_start[number : number + 2]
    vertices = slice(*m.vertex_start[number : number + 2])
    return Shape(
        int(m.kind[number]),
        m.size[number],
        m.points[slice(*m.point_start[number : number + 2])],
        m.face_first[first:last].astype(np.int32),
        m.face_vertex[vertices].astype(np.int32),
        m.face_normal[first - number : last - number - 1].reshape(-1),
        c.shape_position[world, number],
        c.shape_rotation[world, number],
    )


@pytest.mark.native
@each_pair
def test_the_routine_that_the_document_names_serves_the_pair(pair) -> None:
    sim, name = forward(), documented_routines()[documented_pairs()[pair][0]][0]
    for case in of(pair, model()[1]):
        a, b = (shape(sim, number, OVERLAPPING) for number in (case.shape_a, case.shape_b))
        seen: Contact = touch(collide, a, b, guess=np.zeros(4))
        first = next((ground for ground in ("height_field", "triangle_mesh") if ground in pair), None)
        in_order = case.kind_a == first or (first is None and (case.kind_a, case.kind_b) == pair)
        if not in_order:
            a, b = b, a
        own = touch(ROUTINES[name], a, b, guess=np.zeros(4) if name in GUESSED else None)
        sign = 1.0 if in_order else -1.0
        np.testing.assert_array_equal(seen.normal, sign * own.normal)
        np.testing.assert_array_equal(seen.a, own.a if in_order else own.b)
        np.testing.assert_array_equal(seen.feature, own.feature)


@cache
def forward() -> Simulation:
    sim = simulation(*model(), "numpy")
    sim.contacts()
    return sim
