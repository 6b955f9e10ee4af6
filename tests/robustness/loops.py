from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, field

import numpy as np

from gpusim import ModelBuilder, Simulation, SolverConfig, Transform

Vector = tuple[float, float, float]
AXES = ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
GAP = 1e-4


@dataclass
class Machine:
    rng: np.random.Generator
    b: ModelBuilder
    frame: Transform
    skew: float
    friction: float
    limits: str
    drivers: list[int] = field(default_factory=list)

    def body(self, at: Vector, size: float, mass: float, shape: bool = False) -> int:
        moments = mass * size**2 * self.rng.uniform(0.05, 0.15, 3)
        moments[np.argmax(moments)] = min(moments.max(), 0.99 * (moments.sum() - moments.max()))
        body = self.b.add_body(mass, tuple(moments), xform=self.frame * Transform(at))
        if shape:
            self.b.add_shape_sphere(body, 0.3 * size)
        return body

    def hinge(self, parent: int, child: int, at: Vector, axis: Vector) -> int:
        rng = self.rng
        bend = Transform.from_axis_angle((0, 0, 0), tuple(rng.normal(size=3)), self.skew * rng.uniform(-1.0, 1.0))
        options: dict[str, float] = {}
        if self.friction and rng.random() < 0.8:
            options["friction"] = self.friction * 10.0 ** rng.uniform(-1.0, 1.0)
        if self.limits != "none" and rng.random() < 0.5:
            low, high = -rng.uniform(0.0, 1.5), rng.uniform(0.0, 1.5)
            shift = rng.uniform(0.0, 2.0) if self.limits == "outside" and rng.random() < 0.3 else 0.0
            options.update(limit_lower=low + shift, limit_upper=high + shift)
        if rng.random() < 0.3:
            options["damping"] = 10.0 ** rng.uniform(-4.0, 0.0)
        if rng.random() < 0.2:
            options["armature"] = 10.0 ** rng.uniform(-4.0, -1.0)
        where = tuple(self.frame.apply(at))
        turned = tuple(self.frame.rotate(tuple(bend.rotate(axis))))
        return self.b.add_joint_revolute(parent, child, at=where, axis=turned, **options)

    def close(self, parent: int, child: int, at: Vector, axis: Vector) -> None:
        """Close a loop with a ball joint, a planar pin, a hinge or a weld."""
        kind, where = self.rng.choice(["ball", "pin", "hinge"], p=[0.5, 0.15, 0.35]), tuple(self.frame.apply(at))
        if kind == "ball":
            self.b.add_joint_ball(parent, child, at=where)
        elif kind == "pin":
            self.b.add_joint_planar_pin(parent, child, at=where, axis=tuple(self.frame.rotate(axis)))
        else:
            self.hinge(parent, child, at, axis)


def make(seed: int) -> tuple[ModelBuilder, SolverConfig, bool]:
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=(0, 0, -9.81) if rng.random() < 0.8 else (0, 0, 0))
    frame = Transform((0, 0, 1.5)) * Transform.from_axis_angle((0, 0, 0), tuple(rng.normal(size=3)), rng.uniform(0, 3))
    skew = 0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-13.0, -2.0)
    friction = 0.0 if rng.random() < 0.3 else 10.0 ** rng.uniform(-3.0, 1.0)
    m = Machine(rng, b, frame, skew, friction, str(rng.choice(["none", "inside", "outside"])))
    touches = bool(rng.random() < 0.4)
    scale = 10.0 ** rng.uniform(-1.5, 0.3)
    sizes = [_size(m, scale) for _ in range(rng.integers(1, 4))]
    parent, x = _base(m, *max(sizes))
    for size, mass in sizes:
        kind = rng.choice([_four_bar, _parallelogram, _slider_crank, _spatial, _six_bar])
        kind(m, parent, (x, rng.uniform(-1.0, 1.0) * size, 0.0), size, mass, touches)
        x += 2.0 * size * rng.uniform(0.0, 1.0)
    if len(m.drivers) > 1 and rng.random() < 0.4:
        b.add_gear(m.drivers[0], m.drivers[1], ratio=float(rng.choice([-1.0, 1.0])))
    if touches:
        # What the machine may swing against, below all that it has at the start.
        low = min(body.xform.position[2] for body in b.bodies) - 3.0 * scale
        b.add_shape_plane(-1, xform=Transform((0, 0, low)))
    driven = bool(rng.random() < 0.4)
    if driven:
        b.add_servo(m.drivers[0], stiffness=5.0, damping=0.5, target=float(rng.uniform(-0.5, 0.5)))
    dt, substeps = float(rng.choice([5e-4, 1e-3, 2e-3, 5e-3])), int(rng.choice([1, 1, 2]))
    passive = not driven and m.limits != "outside"
    return b, SolverConfig(dt=dt, substeps=substeps, joint_solver="direct"), passive


def _base(m: Machine, size: float, mass: float) -> tuple[int, float]:
    kind = m.rng.choice(["world", "free", "arm"])
    if kind == "world":
        return -1, 0.0
    parent, x = -1, 0.0
    if kind == "free":
        return m.body((0, 0, 0), 2.0 * size, mass * 10.0 ** m.rng.uniform(-0.5, 2.0)), 0.0
    for k in range(m.rng.integers(1, 8)):
        body = m.body((x + size, 0, 0), 2.0 * size, mass * 10.0 ** m.rng.uniform(0.0, 2.0))
        m.hinge(parent, body, (x, 0, 0), AXES[k % 3])
        parent, x = body, x + 2.0 * size
    return parent, x


def _size(m: Machine, scale: float) -> tuple[float, float]:
    length = scale * m.rng.uniform(0.5, 2.0)
    return length, 1000.0 * length**3 * 10.0 ** m.rng.uniform(-1.5, 0.0)


def _four_bar(m: Machine, parent: int, at: Vector, size: float, mass: float, touches: bool) -> None:
    """Add a planar four-bar of random lengths."""
    (x, y, z), axis = at, AXES[0]
    up, over, end = m.rng.uniform(0.3, 1.0) * size, m.rng.uniform(0.5, 1.5) * size, m.rng.uniform(0.3, 1.0) * size
    crank = m.body((x, y, z + up / 2), size, mass)
    rocker = m.body((x + size, y, z + end / 2), size, mass)
    coupler = m.body((x + over / 2, y, z + up), size, mass, touches)
    m.drivers.append(m.hinge(parent, crank, at, axis))
    m.hinge(parent, rocker, (x + size, y, z), axis)
    m.hinge(crank, coupler, (x, y, z + up), axis)
    m.close(rocker, coupler, (x + over, y, z + end), axis)


def _parallelogram(m: Machine, parent: int, at: Vector, size: float, mass: float, touches: bool) -> None:
    """Add a bar on two to four equal links. All links after the second are redundant."""
    (x, y, z), axis = at, AXES[0]
    tilt = m.rng.uniform(-1.2, 1.2)
    dx, dz = 0.5 * size * math.sin(tilt), 0.5 * size * math.cos(tilt)
    bar = m.body((x + size + dx, y, z + dz), 2.0 * size, mass, touches)
    for k in range(m.rng.integers(2, 5)):
        foot = (x + k * 0.7 * size, y, z)
        link = m.body((foot[0] + dx / 2, y, z + dz / 2), 0.5 * size, 0.3 * mass)
        joint = m.hinge(parent, link, foot, axis)
        head = (foot[0] + dx, y, z + dz)
        if k == 0:
            m.drivers.append(joint)
            m.hinge(link, bar, head, axis)
        else:
            m.close(link, bar, head, axis)


def _slider_crank(m: Machine, parent: int, at: Vector, size: float, mass: float, touches: bool) -> None:
    """Add a crank, a rod and a piston in a slide."""
    (x, y, z), axis = at, AXES[0]
    angle, radius, length = m.rng.uniform(0.3, 2.8), 0.3 * size, size
    px, pz = x + radius * math.cos(angle), z + radius * math.sin(angle)
    reach = px + math.sqrt(length**2 - (pz - z) ** 2)
    crank = m.body((x, y, z), 0.5 * size, mass)
    rod = m.body(((px + reach) / 2, y, (pz + z) / 2), size, 0.3 * mass)
    piston = m.body((reach, y, z), 0.3 * size, 0.3 * mass, touches)
    m.drivers.append(m.hinge(parent, crank, at, axis))
    m.hinge(crank, rod, (px, y, pz), axis)
    slide = tuple(m.frame.apply((reach, y, z)))
    friction = m.friction if m.rng.random() < 0.5 else 0.0
    m.b.add_joint_prismatic(parent, piston, at=slide, axis=tuple(m.frame.rotate((1, 0, 0))), friction=friction)
    m.close(rod, piston, (reach, y, z), axis)


def _spatial(m: Machine, parent: int, at: Vector, size: float, mass: float, touches: bool) -> None:
    x, y, z = at
    left = m.body((x, y, z + size / 4), size / 2, mass)
    right = m.body((x + size, y + size / 4, z), size / 2, mass, touches)
    rod = m.body((x + size / 2, y + size / 4, z + size / 4), size, 0.2 * mass)
    m.drivers.append(m.hinge(parent, left, at, AXES[0]))
    m.hinge(parent, right, (x + size, y, z), AXES[2])
    m.b.add_joint_ball(left, rod, at=tuple(m.frame.apply((x, y, z + size / 2))))
    m.b.add_joint_ball(rod, right, at=tuple(m.frame.apply((x + size, y + size / 2, z))))


def _six_bar(m: Machine, parent: int, at: Vector, size: float, mass: float, touches: bool) -> None:
    (x, y, z), axis = at, AXES[0]
    crank = m.body((x, y, z + size / 4), size / 2, mass)
    rocker = m.body((x + size, y, z + 0.4 * size), 0.8 * size, mass)
    plate = m.body((x + size / 2, y, z + 0.7 * size), size, mass)
    arm = m.body((x + 0.6 * size, y, z + 1.2 * size), 0.5 * size, 0.5 * mass, touches)
    stay = m.body((x + 1.2 * size, y, z + 0.7 * size), 1.4 * size, 0.5 * mass)
    m.drivers.append(m.hinge(parent, crank, at, axis))
    m.hinge(parent, rocker, (x + size, y, z), axis)
    m.hinge(crank, plate, (x, y, z + size / 2), axis)
    m.close(rocker, plate, (x + size, y, z + 0.8 * size), axis)
    m.hinge(plate, arm, (x + 0.4 * size, y, z + size), axis)
    m.hinge(parent, stay, (x + 1.4 * size, y, z), axis)
    m.close(arm, stay, (x + 0.9 * size, y, z + 1.4 * size), axis)


def run(seed: int, seconds: float = 1.0, backend: str = "native") -> str:
    """Run a machine, and return its failure or an empty string."""
    b, config, passive = make(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sim = Simulation(b.finalize(), backend=backend, config=config)

        def energy() -> float:
            return float(sim.read("sim.kinetic_energy")[0] + sim.read("sim.potential_energy")[0])

        start = energy()
        mass = sum(x.mass for x in sim.model.bodies)
        gain, every = 0.0, 10
        for _ in range(math.ceil(seconds / config.dt / every)):
            sim.step(every)
            if not sim.health().all():
                return f"failed at {sim.time:.4f} s: {sim.health_report()}"
            gain = max(gain, energy() - start)
        gap = float(sim.read("sim.joint_drift_peak")[0])
    if gap > GAP:
        return f"gap {gap:.2g} m"
    if passive and gain > 1e-3 * mass + 1e-6 * abs(start):
        return f"gained {gain:.3g} J of {start:.3g} J, mass {mass:.3g} kg"
    return ""


def main(count: int, first: int = 0) -> None:
    """Run machines and print all failures."""
    failed = 0
    for seed in range(first, first + count):
        wrong = run(seed)
        if wrong:
            failed += 1
            print(f"machine {seed}: {wrong}", flush=True)
    print(f"{count} machines, {failed} failed")


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:]))
