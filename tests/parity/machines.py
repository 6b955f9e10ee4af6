"""Random machines for comparing backends.

``random_machine(seed)`` gives the same builder for the same seed. ``scatter`` sets the parameters that differ between
worlds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpusim import BumpStop, Model, ModelBuilder, Simulation, SolverConfig, Transform, orifice_gain
from gpusim.description.joint_kinds import joint_type
from gpusim.model.state import State

COORDINATES = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "ball": 3, "universal": 2, "planar": 3, "fixed": 0}
SEVERAL_AXES = (20, 24)
SEEDS = (*range(20), *SEVERAL_AXES)


def random_frame(rng: np.random.Generator) -> Transform:
    return Transform.from_axis_angle(rng.normal(size=3) * 0.2, rng.normal(size=3), rng.uniform(-2.0, 2.0))


def locked_twice(seed: int) -> bool:
    """Return whether a loop of the machine has redundant joints, with ambiguous impulses."""
    return seed % 5 == 3


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng, self.seed = np.random.default_rng(1000 + seed), seed
        self.b = ModelBuilder()
        self.poses: list[Transform] = []
        self.coordinates: list[tuple[int, int]] = []
        self.turns: list[int] = []

    def body(self, pose: Transform, mass: float, **options: Any) -> int:
        inertia = self.rng.uniform(0.7, 1.0, 3) * mass * 0.02
        self.poses.append(pose)
        return int(self.b.add_body(mass, inertia, com=self.rng.normal(size=3) * 0.05, xform=pose, **options))

    def tree(self, count: int) -> None:
        rng = self.rng
        for i in range(count):
            parent = int(rng.integers(-1, i)) if i else -1
            frame_a, frame_b = random_frame(rng), random_frame(rng)
            start = self.poses[parent] if parent >= 0 else Transform()
            child = self.body(start * frame_a * frame_b.inverse(), 10 ** rng.uniform(-0.5, 0.8))
            # The first bodies take every kind in turn over the seeds.
            kinds = list(COORDINATES)
            kind = kinds[(self.seed + i) % len(kinds)] if i < 2 else str(rng.choice(kinds))
            if self.seed in SEVERAL_AXES and i < 3:
                self._several_axes(parent, child, (frame_a, frame_b), slides=i % 2, turns=3 - i // 2)
                continue
            joint = getattr(self.b, f"add_joint_{kind}")(parent, child, frame_a, frame_b, **self._joint_options(kind))
            if kind != "ball":
                self.coordinates += [(joint, axis) for axis in range(COORDINATES[kind])]
            if kind == "revolute":
                self.turns.append(joint)

    def _several_axes(
        self, parent: int, child: int, frames: tuple[Transform, Transform], slides: int, turns: int
    ) -> None:
        rng, count = self.rng, slides + turns
        turned, moved = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
        lower = rng.uniform(-0.02, 0.005, count)
        joint = self.b.add_joint_d6(
            parent, child, *frames, linear_axes=moved[:slides], angular_axes=turned[:turns],
            damping=rng.uniform(0.0, 1.0, count), friction=rng.uniform(0.0, 0.5, count), limit_lower=lower,
            limit_upper=lower + rng.uniform(0.002, 0.03, count), armature=rng.uniform(0.0, 0.1, count),
        )  # fmt: skip
        self.coordinates += [(joint, axis) for axis in range(count)]

    def _joint_options(self, kind: str) -> dict[str, Any]:
        rng, count = self.rng, COORDINATES[kind]
        if not count:
            return {}
        options: dict[str, Any] = {"damping": rng.uniform(0.0, 1.0, count)}
        if rng.random() < 0.6:
            options["friction"] = rng.uniform(0.0, 2.0, count)
        if rng.random() < 0.6 and kind == "ball":
            options["limit"] = float(rng.uniform(0.01, 0.3))
        elif rng.random() < 0.7 and kind != "ball":
            # Narrow: some are passed at the start, some are reached within the first steps.
            options["limit_lower"] = rng.uniform(-0.02, 0.005, count)
            options["limit_upper"] = options["limit_lower"] + rng.uniform(0.002, 0.03, count)
        if count == 1 and rng.random() < 0.5:
            options["armature"] = rng.uniform(0.0, 0.2, 1)
        return {k: float(np.ravel(v)[0]) if count == 1 or k == "limit" else v for k, v in options.items()}

    def loops(self) -> None:
        rng, last = self.rng, len(self.poses) - 1
        other = int(rng.integers(-1, last))
        start = self.poses[other] if other >= 0 else Transform()
        if locked_twice(self.seed):
            self._four_bar()
        elif self.seed % 3 == 1:
            self._distance(other, last, start, rod=True)
        if self.seed % 2 == 0:
            self._distance(-1, int(rng.integers(0, last)), Transform(), rod=False)

    def _four_bar(self) -> None:
        at = {"axis": (0.0, 1.0, 0.0), "damping": 0.05}
        crank, rocker = Transform((0.0, -2.0, 0.0)), Transform((0.5, -2.0, 0.0))
        coupler = Transform((0.1, -2.0, 0.3))
        bars = [self.body(place, 1.0) for place in (crank, coupler, rocker)]
        top = Transform((0.1, 0.0, 0.3))
        drive = self.b.add_joint_revolute(-1, bars[0], crank, **at)
        self.b.add_joint_revolute(bars[0], bars[1], top, **at)
        self.b.add_joint_revolute(-1, bars[2], rocker, friction=0.1, **at)
        self.b.add_joint_revolute(bars[1], bars[2], Transform((0.5, 0.0, 0.0)), top, **at)
        self.coordinates.append((drive, 0))

    def _distance(self, a: int, b: int, start: Transform, rod: bool) -> None:
        frames = random_frame(self.rng), random_frame(self.rng)
        gap = (self.poses[b] * frames[1]).position - np.asarray((start * frames[0]).position)
        length = float(np.linalg.norm(gap))
        limits = {"min_distance": length} if rod else {"damping": 2.0}
        self.b.add_joint_distance(a, b, *frames, max_distance=length if rod else length + 0.002, **limits)

    def couplings(self, curved: bool) -> None:
        places = [Transform((2.0, y, 0.0)) for y in (0.0, 0.5, 1.0)]
        options = {"axis": (0.3, 1.0, 0.2), "damping": 0.05}
        joints = []
        for place in places:
            joints.append(self.b.add_joint_revolute(-1, self.body(place, 1.0), place, **options))
        self.b.add_gear(joints[0], joints[1], ratio=float(self.rng.choice([-2.0, 0.5, 3.0])))
        multiplier = float(self.rng.uniform(-1.5, 1.5))
        curve = (0.2, -0.05, 0.01) if curved else (0.0, 0.0, 0.0)
        self.b.add_mimic(joints[2], joints[1], multiplier, offset=0.1, curve=curve)
        self.coordinates.append((joints[0], 0))
        self.turns.append(joints[2])
        self._axle(joints[2])

    def _axle(self, shaft: int) -> None:
        carrier, at = Transform((2.5, 0.0, 0.0)), {"axis": (0.1, 1.0, -0.2), "damping": 0.02}
        swing = self.b.add_joint_revolute(-1, self.body(carrier, 2.0), carrier, **at)
        on = len(self.poses) - 1
        wheels = []
        for y in (-0.3, 0.4):
            place = carrier * Transform((0.1, y, 0.05))
            wheels.append(self.b.add_joint_revolute(on, self.body(place, 0.5), Transform((0.1, y, 0.05)), **at))
        kind = "limited_slip" if self.seed % 4 == 1 else "open"
        gear = self.b.add_differential(*wheels, shaft, 3.0, kind, 0.02 * (kind != "open"), label="axle")
        self.b.add_anti_roll_bar(*wheels, stiffness=5.0, damping=0.1, label="bar")
        self.b.add_brake(wheels[0], 0.05, command=0.4, label="brake")
        self.b.add_linear_coupling([(wheels[1], 0.5), (swing, 1.0), (gear.slip, -0.7)], label="sum")

    def light_link(self) -> None:
        top, low = Transform((-2.0, 0.0, 0.0)), Transform((-2.0, 0.0, -0.3))
        link = self.b.add_body(0.02, (2e-5, 2e-5, 1e-5), xform=Transform((-2.0, 0.0, -0.15)))
        self.poses.append(Transform((-2.0, 0.0, -0.15)))
        load = self.body(low, 8.0)
        self.b.add_joint_ball(-1, link, top, Transform((0.0, 0.0, 0.15)))
        self.b.add_joint_ball(link, load, Transform((0.0, 0.0, -0.15)), Transform())

    def ends(self) -> tuple[int, int, tuple[float, ...], tuple[float, ...], float]:
        while True:
            b, a = int(self.rng.integers(0, len(self.poses))), int(self.rng.integers(-1, len(self.poses)))
            points = [tuple(float(x) for x in self.rng.normal(size=3) * 0.2) for _ in range(2)]
            start = self.poses[a] if a >= 0 else Transform()
            length = float(np.linalg.norm(self.poses[b].apply(points[1]) - start.apply(points[0])))
            if a != b and length > 0.2:
                return a, b, points[0], points[1], length

    def lines(self) -> None:
        rng = self.rng
        a, b, pin_a, pin_b, length = self.ends()
        stroke = float(rng.uniform(0.001, 0.08))
        self.b.add_hydraulic_cylinder(
            a, b, pin_a, pin_b, length_offset=length - stroke, area_a=1e-4, area_b=6e-5, volume_a=5e-5, volume_b=9e-5,
            stroke_min=0.0, stroke_max=0.1, flow_gain=orifice_gain(0.7, 0.003, 1e-4, 870.0), piston_mass=0.5,
            supply_pressure=5e6, viscous_friction=20.0, dry_friction=5.0 * (self.seed % 2), brake_force=50.0,
            overlap_supply=0.05, overlap_drain=-0.02, valve_order=1 + self.seed % 2, valve_time_constant=0.004,
            valve_damping=float(rng.choice([0.6, 1.0, 1.4])), cushion_stiffness=1e4 * (self.seed % 3),
            cushion_damping=5.0, cushion_length=0.01, coupling="papers" if self.seed % 5 == 4 else "implicit",
            hose_volume_a=2e-5, hose_bulk_modulus=3e8, orifice="linear" if self.seed % 4 == 1 else "smooth",
            pressure_a=1e6, pressure_b=4e5, anticavitation_gain=1e-8 * (self.seed % 2), label="lift",
        )  # fmt: skip
        for k in range(2):
            a, b, pin_a, pin_b, length = self.ends()
            self.b.add_spring(
                a, b, pin_a, pin_b, 10 ** rng.uniform(1, 4), 10 ** rng.uniform(0, 2), 0.9 * length, f"s{k}"
            )

    def circuit(self) -> None:
        """A circuit of cylinders and a motor on one pump, with all types of valves and pipes."""
        rng, c = self.rng, self.b.add_hydraulic_circuit(label="oil")
        pump, line = c.add_node(5e-4, 4e6, label="line"), c.add_node(2e-4, label="port")
        control = "load_sensing" if self.seed % 8 == 2 else "pressure"
        c.add_pump(pump, 4e-4, 8e6, power=2e3, control=control, margin=1e6, label="pump")
        c.add_relief_valve(pump, 6e6, 1e-10)
        cylinders = []
        for k in range(2):
            a, b, pin_a, pin_b, length = self.ends()
            stroke = float(rng.uniform(0.01, 0.05))
            cylinders.append(c.add_cylinder(
                a, b, pin_a, pin_b, area_a=2e-4, area_b=1e-4, stroke_min=0.0, stroke_max=0.06,
                length_offset=length - stroke, pressure=(3e5, 2e5), viscous_friction=50.0, dry_friction=3.0 * k,
                piston_mass=0.3, cushion_stiffness=2e4 * k, cushion_length=0.02, label=f"ram{k}",
            ))  # fmt: skip
        c.add_valve(pump, line, cylinders[0].node_b, 2e-8, label="v0")
        c.add_counterbalance_valve(cylinders[0].node_a, line, 3e-8, 4e5, cylinders[0].node_b, opening_range=1e6)
        c.add_valve(pump, cylinders[1].node_a, cylinders[1].node_b, 2e-8, compensator_pressure=3e5, label="v1")
        c.add_pipe_break_valve(cylinders[1].node_b, c.add_hose(cylinders[1].node_a, 1e-4, 2e-8), 1e-8, 1e-5)
        c.add_check_valve(c.tank, cylinders[0].node_a, 1e-8, 1e4)
        joint, axis = self._coordinate()
        motor = c.add_motor(joint, 1e-6, axis, leakage=1e-13, viscous_friction=0.01, brake_torque=0.1, label="spin")
        c.add_valve(pump, motor.node_a, motor.node_b, 1e-8, load_check=False, label="v2")

    def soft_parts(self) -> None:
        a, b, pin_a, pin_b, length = self.ends()
        self.b.add_spring(
            a, b, pin_a, pin_b, 2e3, (5.0, 40.0), preload=30.0, label="strut",
            bump=BumpStop(1.001 * length, 1e5, 0.01), droop=BumpStop(1.002 * length, 3e4),
        )  # fmt: skip
        a, b, pin_a, pin_b, length = self.ends()
        forces = [(0.9 * length, 90.0), (length, 40.0), (1.01 * length, 0.0), (1.2 * length, -10.0)]
        curve = [(-0.5, -40.0), (-0.05, -20.0), (0.0, 0.0), (0.1, 30.0), (1.0, 50.0)]
        self.b.add_spring(a, b, pin_a, pin_b, damping=curve, table=forces, label="tables")
        if self.coordinates:
            joint, axis = self._coordinate()
            self.b.add_torsion_spring(joint, 10.0, (0.1, 0.5), axis=axis, preload=0.5, label="joint_strut")
        frame_a, frame_b = random_frame(self.rng), random_frame(self.rng)
        child = self.body(self.poses[0] * frame_a * random_frame(self.rng) * frame_b.inverse(), 1.0)
        stiffness = (1e3, 3e3, 2e3, 5.0, 8.0, 20.0)
        self.b.add_bushing(
            0, child, frame_a, frame_b, stiffness=stiffness, damping=(5.0,) * 3 + (0.1,) * 3, label="soft"
        )

    def drives(self) -> None:
        rng = self.rng
        if not self.coordinates:
            return
        for k, lag in enumerate((0.0, 2e-3)):
            joint, axis = self._coordinate()
            self.b.add_dc_motor(
                joint, 0.3, 300.0, 0.02, lag, gear_ratio=float(rng.uniform(5, 20)), axis=axis, label=f"m{k}"
            )  # fmt: skip
        limited = rng.permutation(len(self.coordinates))
        for k, limit in enumerate((0.5, np.inf, 0.2)[: 1 + len(self.coordinates)]):
            joint, axis = self._coordinate() if k == 1 else self.coordinates[limited[k // 2]]
            mode = "velocity" if k == 2 else "position"
            self.b.add_servo(
                joint, mode, stiffness=50.0, damping=3.0, effort_limit=limit, target=0.05, axis=axis, label=f"servo{k}"
            )  # fmt: skip
        if self.seed % 3 == 0:
            self._servos_together(*self.coordinates[limited[0]])
        joint, axis = self._coordinate()
        self.b.add_torsion_spring(joint, 20.0, 0.3, 0.1, axis, label="torsion")

    def _servos_together(self, joint: int, axis: int) -> None:
        for k, (limit, target) in enumerate(((0.05, -0.2), (3.0, 0.1))):
            self.b.add_servo(
                joint, stiffness=80.0, damping=1.0, effort_limit=limit, target=target, axis=axis, label=f"together{k}"
            )

    def _coordinate(self) -> tuple[int, int]:
        return self.coordinates[int(self.rng.integers(0, len(self.coordinates)))]

    def pushes(self) -> None:
        rng, last = self.rng, len(self.poses) - 1
        for k, frame in enumerate(("world", "body")):
            self.b.add_force(
                last,
                rng.normal(size=3) * 5,
                rng.normal(size=3) * 0.1,
                frame,
                label=f"f{k}",
                torque=(0.3, -0.2, 0.1 * k),
            )
            self.b.add_torque(int(rng.integers(0, last + 1)), rng.normal(size=3) * 0.5, frame, label=f"t{k}")


def random_machine(seed: int, curved: bool = True) -> ModelBuilder:
    m = _Maker(seed)
    m.tree(3 + seed % 3)
    m.loops()
    if seed % 2:
        m.couplings(curved)
    if seed % 4 == 0:
        m.light_link()
    m.lines()
    m.drives()
    if seed % 4 == 2 and m.coordinates:
        m.circuit()
    m.pushes()
    m.soft_parts()
    # A body that nothing holds, and one that follows its own path.
    m.b.add_body(1.0, (0.02, 0.03, 0.04), xform=Transform((0.0, 0.0, 3.0)), label="loose")
    if seed % 3 == 2:
        m.b.add_body(1.0, (0.1, 0.1, 0.1), linear_velocity=(0.1, 0.0, 0.0), kinematic=True, label="path")
    for joint, spec in enumerate(m.b.joints):
        if joint_type(spec.kind).holds and joint % 2 == seed % 2:
            m.b.add_force_sensor(joint)
    return m.b


@cache
def machine_model(seed: int) -> Model:
    return random_machine(seed).finalize()


def scatter(sim: Simulation, seed: int) -> None:
    """Set different masses, gravity, damping, friction, actuator constants and commands in each world."""
    rng, n = np.random.default_rng(seed), sim.num_worlds
    names = sim.signals()
    parts = {
        "mass": (0.8, 1.2), "damping": (0.5, 1.5), "friction": (0.5, 1.5), "supply_pressure": (0.5, 1.5),
        "stall_torque": (0.5, 1.5), "stiffness": (0.5, 1.5), "force_x": (0.5, 2.0),
    }  # fmt: skip
    for name in names:
        last = name.rpartition(".")[2]
        if last in parts and names[name].writable:
            sim.write(name, sim.read(name) * rng.uniform(*parts[last], n))
    sim.write("sim.gravity", rng.normal(size=(n, 3)) + np.array([0.0, 0.0, -9.81]))
    for label in sim.control:
        brake = label.endswith(".brake")
        sim.control[label] = rng.uniform(0.0, 0.3, n) if brake else rng.uniform(-1.0, 1.0, n)


@cache
def moving_state(seed: int, num_worlds: int, steps: int = 4) -> State:
    sim = Simulation(machine_model(seed), num_worlds, backend="numpy", config=SolverConfig(dt=2e-3))
    scatter(sim, seed)
    rng = np.random.default_rng(seed)
    for body in sim.model.bodies:
        for kind in ("linear", "angular"):
            name = f"body.{body.label}.{kind}_velocity"
            sim.write(name, rng.normal(size=(sim.num_worlds, 3)) * 0.5)
    sim.step(steps)
    assert np.all(sim.health()), sim.health_report()
    if not locked_twice(seed):
        # Joints 0.1 mm apart, so that the position stages have something to do.
        sim.state.arrays["position"] += rng.normal(size=sim.state.arrays["position"].shape) * 1e-4
    return sim.state
