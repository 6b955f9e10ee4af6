from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform
from gpusim import machines as m

LOAD = 2500.0
PLACE = Transform.from_rpy((0.7, 0.2, 0.1), (0.0, 0.0, 0.3))
HEIGHT = 0.6
HUB = m.Hub((0.0, 0.60, 0.30), 18.0, (0.3, 0.5, 0.35))
Add = Callable[..., m.Suspension]


def coil(top: tuple[float, float, float], foot: tuple[float, float, float], **options: Any) -> m.Coil:
    return m.Coil(top, foot, **({"stiffness": 30e3, "damping": 2500.0, "load": LOAD} | options))


def given(spring: m.Coil | m.TorsionBar, rod: m.TieRod | None) -> dict[str, Any]:
    return {"hub": HUB, "spring": spring, "tie_rod": rod, "travel": (-0.08, 0.07)}


def swing_axle(b: ModelBuilder, chassis: int, xform: Transform, steered: bool = False, **o: Any) -> m.Suspension:
    rod = m.TieRod((-0.14, 0.20, 0.30), (-0.14, 0.58, 0.30)) if steered else None
    kind = given(coil((0.02, 0.40, 0.62), (0.0, 0.45, 0.30)), rod) | o
    return m.add_swing_axle(b, chassis, xform, arm=m.Arm((0, 0.1, 0.33), (0, 0.56, 0.30), 6.0), **kind)


def trailing_arm(b: ModelBuilder, chassis: int, xform: Transform, steered: bool = False, **o: Any) -> m.Suspension:
    rod = m.TieRod((0.15, 0.15, 0.36), (0.12, 0.50, 0.34)) if steered else None
    kind = given(m.TorsionBar(4500.0, 420.0, load=LOAD), rod) | o
    return m.add_trailing_arm(b, chassis, xform, arm=m.Arm((0.4, 0.5, 0.38), (0, 0.53, 0.3), 6.0), **kind)


def double_wishbone(b: ModelBuilder, chassis: int, xform: Transform, steered: bool = False, **o: Any) -> m.Suspension:
    rod = m.TieRod((-0.12, 0.27, 0.33), (-0.12, 0.52, 0.32)) if steered else None
    lower, upper = m.Arm((0, 0.25, 0.22), (0.01, 0.54, 0.20)), m.Arm((0, 0.30, 0.44), (-0.01, 0.51, 0.42), 2.0)
    kind = given(coil((0.0, 0.34, 0.66), (0.0, 0.44, 0.21)), rod) | o
    return m.add_double_wishbone(b, chassis, xform, lower=lower, upper=upper, **kind)


def double_trailing(b: ModelBuilder, chassis: int, xform: Transform, steered: bool = False, **o: Any) -> m.Suspension:
    rod = m.TieRod((0.13, 0.15, 0.33), (0.11, 0.47, 0.31)) if steered else None
    lower, upper = m.Arm((0.35, 0.5, 0.24), (0, 0.5, 0.22)), m.Arm((0.33, 0.5, 0.42), (0.0, 0.49, 0.40), 2.0)
    kind = given(m.TorsionBar(4000.0, 350.0, load=LOAD), rod) | o
    return m.add_double_trailing_arm(b, chassis, xform, lower=lower, upper=upper, **kind)


def sliding_pillar(b: ModelBuilder, chassis: int, xform: Transform, steered: bool = False, **o: Any) -> m.Suspension:
    rod = m.TieRod((-0.13, 0.15, 0.30), (-0.13, 0.50, 0.30)) if steered else None
    kind = given(coil((0, 0.5, 0.7), (0, 0.52, 0.3)), rod) | o
    return m.add_sliding_pillar(b, chassis, xform, pillar=(0, 0.52, 0.3), axis=(0.02, -0.05, 1.0), **kind)


def macpherson(b: ModelBuilder, chassis: int, xform: Transform, steered: bool = False, **o: Any) -> m.Suspension:
    rod = m.TieRod((-0.13, 0.22, 0.27), (-0.12, 0.52, 0.26)) if steered else None
    top, foot = (-0.04 if steered else 0.0, 0.44, 0.78), (0.0, 0.50, 0.42)
    kind = given(coil(top, foot), rod) | o
    lower = m.Arm((0, 0.2, 0.22), (0, 0.55, 0.20))
    return m.add_macpherson_strut(b, chassis, xform, lower=lower, top=top, foot=foot, **kind)


ALL: dict[str, Add] = {
    "swing_axle": swing_axle,
    "trailing_arm": trailing_arm,
    "double_trailing_arm": double_trailing,
    "double_wishbone": double_wishbone,
    "sliding_pillar": sliding_pillar,
    "macpherson_strut": macpherson,
}


def rig(add: Add, load: float = LOAD, dt: float = 1e-3, **options: Any) -> tuple[Simulation, m.Suspension]:
    b = ModelBuilder()
    probe = ModelBuilder()
    sprung = add(probe, -1, PLACE, **options).linkage.sprung(load)
    chassis = b.add_body(sprung, (20.0, 20.0, 20.0), xform=Transform((0, 0, HEIGHT)), label="chassis")
    b.add_joint_prismatic(-1, chassis, axis=(0, 0, 1), at=(0, 0, HEIGHT), label="guide")
    b.add_force(chassis, (0, 0, 1.0), label="throw")
    susp = add(b, chassis, PLACE, label="susp", **options)
    center = b.bodies[susp.hub].xform.position
    pad = b.add_body(1e-4, (1e-6, 1e-6, 1e-6), xform=Transform(center), label="pad")
    b.add_joint_planar(-1, pad, axis=(0, 0, 1), at=center, label="ground")
    b.add_joint_ball(pad, susp.hub, at=center, label="wheel")
    sim = Simulation(b.finalize(), config=SolverConfig(dt=dt))
    sim.control["throw"] = 0.0
    return sim, susp
