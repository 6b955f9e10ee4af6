from __future__ import annotations

import itertools

import numpy as np
import pytest

import gpusim
from gpusim import Transform

X, Y, Z = np.eye(3)


class Robot:
    def __init__(self, hinges: str = "", welds: str = "", free: str = "") -> None:
        self.builder = gpusim.ModelBuilder()
        self.bodies = {"world": -1}
        kinds = {"revolute": hinges, "fixed": welds, "free": free}
        pairs = [(kind, pair.split()) for kind, text in kinds.items() for pair in text.split(",") if pair]
        for name in sorted({name for _, pair in pairs for name in pair} - {"world"}):
            self.bodies[name] = self.builder.add_body(1.0, (1.0, 1.0, 1.0), label=name)
            if name.isupper():
                self.builder.add_shape_sphere(self.bodies[name], 0.1, label=name)
        for kind, pair in pairs:
            getattr(self.builder, f"add_joint_{kind}")(*(self.bodies[name] for name in pair))

    def touching(self) -> str:
        contact = self.builder.finalize().contact
        names = contact.labels
        return " ".join(f"{names[a]}{names[b]}" for a, others in enumerate(contact.candidates) for b in others)


CASES = {
    "a joint connects them": ({"hinges": "A B,B C"}, "AC"),
    "three hinges of a hip": ({"hinges": "A x,x y,y B,B C"}, "AC"),
    "six joints of one body elsewhere": ({"hinges": "A p,p q,q r,r s,s t,t B"}, ""),
    "a long rope without shapes": ({"hinges": "A p,p q,q r,r s,s t,t u,u B"}, "AB"),
    "legs of a trunk without shapes": ({"hinges": "t A,t B"}, "AB"),
    "a fork without shapes": ({"hinges": "A f,f B,f C"}, "BC"),
    "welded": ({"welds": "A B,B C,C D"}, ""),
    "neighbor of a welded part": ({"hinges": "B L,L M", "welds": "A B"}, "AM BM"),
    "a part without shapes, welded": ({"hinges": "b L", "welds": "A b"}, ""),
    "welded links without shapes between": ({"hinges": "A x,y B", "welds": "x y"}, ""),
    "a shape welded on a link between": ({"hinges": "A x,x B", "welds": "x M"}, "AB"),
    "a closed loop": ({"hinges": "A B,B C,C D,D A"}, "AC BD"),
    "a circle without shapes": ({"hinges": "A x,x y,y x,y B"}, ""),
    "two pillars in the ground": ({"hinges": "A L", "welds": "world A,world B"}, "BL"),
    "a pillar on a pillar": ({"welds": "world A,A B"}, ""),
    "a free joint": ({"free": "A B"}, "AB"),
}


@pytest.mark.parametrize(("joints", "expected"), CASES.values(), ids=CASES)
def test_who_may_touch(joints: dict[str, str], expected: str) -> None:
    assert Robot(**joints).touching() == expected


def test_the_ground_and_a_robot() -> None:
    robot = Robot(hinges="A L,L M,world P", welds="world b,b A")
    robot.builder.add_shape_plane(-1, label="G")
    assert robot.touching() == "AM AP LP LG MP MG PG"


def test_a_listed_pair_touches_whatever_joins_it() -> None:
    robot = Robot(hinges="A x,x B", welds="B C")
    shapes = {shape.label: k for k, shape in enumerate(robot.builder.shapes)}
    robot.builder.add_collision_pair(shapes["A"], shapes["B"])
    assert robot.touching() == "AB"


def hip(weld: bool) -> gpusim.ModelBuilder:
    b = gpusim.ModelBuilder()
    b.add_shape_plane(-1)
    trunk = b.add_body(8.0, (0.1, 0.1, 0.1), xform=Transform((0, 0, 1)), label="trunk")
    b.add_shape_capsule(trunk, 0.1, 0.07)
    parent, frame = trunk, Transform((0, 0.05, -0.15))
    if weld:
        part = b.add_body(0.2, (1e-3, 1e-3, 1e-3), xform=Transform((0, 0.05, 0.85)))
        b.add_joint_fixed(trunk, part, frame)
        parent, frame = part, Transform()
    for axis in (Y,) if weld else (X, Z, Y):
        last = axis is Y
        link = b.add_body(4.0 if last else 0.2, (0.05 if last else 1e-3,) * 3, xform=Transform((0, 0.05, 0.85)))
        if last:
            b.add_shape_capsule(link, 0.1, 0.1, xform=Transform((0, 0, -0.1)))
        b.add_joint_revolute(parent, link, frame, axis=axis, limit_lower=-0.4, limit_upper=0.4)
        parent, frame = link, Transform()
    return b


@pytest.mark.nightly
@pytest.mark.parametrize("weld", [False, True], ids=["three hinges", "a welded part"])
@pytest.mark.parametrize("solver", ["direct", "colored"])
def test_parts_that_overlap_for_good_do_not_fly_apart(weld: bool, solver: str) -> None:
    config = gpusim.SolverConfig(dt=1e-3, joint_solver=solver)
    sim = gpusim.Simulation(hip(weld).finalize(), config=config, backend="numpy")
    greatest = 0.0
    for _ in range(10):
        sim.step(10)
        greatest = max(greatest, float(np.abs(sim.read("body.trunk.linear_velocity")).max()))
    assert sim.health().all()
    assert greatest == pytest.approx(0.981, rel=0.05)


def test_imported_robots_follow_the_same_rule() -> None:
    pytest.importorskip("yourdfpy")
    from gpusim.importers import load_urdf
    from tests.unit.urdf_text import SOLID, joint, link, robot

    ball = SOLID + '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    names = ["trunk", "yaw", "roll", "thigh", "foot"]
    links = [link(name, SOLID if name in ("yaw", "roll") else ball) for name in names]
    down = '<origin xyz="0 0 -0.11"/><limit lower="-1" upper="1" effort="10" velocity="2"/>'
    joints = [joint(f"to_{b}", a, b, content=down) for a, b in itertools.pairwise(names)]
    for wanted, expected in ((True, [[2], [], []]), (False, [[], [], []])):
        builder, _ = load_urdf(robot(*links, *joints), self_collisions=wanted)
        assert builder.finalize().contact.candidates == expected
