"""The circuits of tests/reference/circuits/generate.py, built with gpusim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gpusim import ModelBuilder, Simulation, SolverConfig

REFERENCE = Path(__file__).parents[1] / "reference" / "circuits"
G = 9.81
LIFT = {"area_a": 2e-3, "area_b": 1.2e-3, "stroke_min": 0.0, "stroke_max": 0.6, "viscous_friction": 200.0}
Commands = dict[str, Callable[[float], float]]


def step(at: float, value: float) -> Callable[[float], float]:
    return lambda t: value if t >= at - 1e-9 else 0.0


def load(b: ModelBuilder, label: str, mass: float, y: float) -> int:
    body = b.add_body(mass=mass, inertia=(10.0, 10.0, 10.0), label=label)
    b.add_joint_prismatic(-1, body, parent_xform=None, axis=(0, 0, 1), label=f"x_{label}")
    return int(body)


def _lifts(b: ModelBuilder, c: object, pump: int, masses: dict[str, float], **valve: object) -> None:
    for name, mass in masses.items():
        held = (mass * G + 1.2e-3 * 2e5) / 2e-3, 2e5
        cylinder = c.add_cylinder(  # type: ignore[attr-defined]
            -1, load(b, name, mass, 0.0), (0, 0, -1), (0, 0, 0), length_offset=0.95, pressure=held, label=name, **LIFT
        )
        c.add_valve(pump, cylinder.node_a, cylinder.node_b, 3e-7, label=f"v_{name}", **valve)  # type: ignore[attr-defined]


def two_on_one_pump() -> tuple[ModelBuilder, Commands]:
    """Two cylinders on a pump with pressure cut-off and a relief valve."""
    b = ModelBuilder()
    c = b.add_hydraulic_circuit(label="oil")
    pump = c.add_node(2e-3, label="pump")
    c.add_pump(pump, 6e-4, 1.8e7, band=9e5, label="feed")
    c.add_relief_valve(pump, 1.2e7, 2e-10, label="relief")
    _lifts(b, c, pump, {"heavy": 1000.0, "light": 600.0})
    return b, {"v_heavy": step(0.2, 0.8), "v_light": step(0.4, 0.5)}


def flow_sharing() -> tuple[ModelBuilder, Commands]:
    """Compensated valves on a load-sensing pump with a power limit."""
    b = ModelBuilder()
    c = b.add_hydraulic_circuit(label="oil")
    pump = c.add_node(2e-3, label="pump")
    c.add_pump(pump, 8e-4, 2e7, power=4e4, control="load_sensing", margin=1.5e6, band=1e6)
    _lifts(b, c, pump, {"heavy": 1000.0, "light": 400.0}, compensator_pressure=6e5)
    return b, {"v_heavy": step(0.2, 0.5), "v_light": step(0.2, 0.5)}


def holding_valve() -> tuple[ModelBuilder, Commands]:
    """A load lowered on a counterbalance valve."""
    b = ModelBuilder()
    c = b.add_hydraulic_circuit(label="oil")
    pump, line = c.add_node(2e-3, 1e7, label="pump"), c.add_node(3e-4, label="line")
    c.add_pump(pump, 5e-4, 1.5e7, band=7.5e5)
    boom = c.add_cylinder(
        -1, load(b, "boom", 2000.0, 0.0), (0, 0, -1), (0, 0, 0), length_offset=0.55, area_a=3e-3, area_b=1.5e-3,
        stroke_min=0.0, stroke_max=0.6, dead_volume=2e-4, viscous_friction=500.0,
        pressure=(2000.0 * G / 3e-3 + 0.5e5, 1e5), label="boom",
    )  # fmt: skip
    c.add_valve(pump, line, boom.node_b, 3e-7, label="v_boom")
    c.add_counterbalance_valve(
        boom.node_a, line, 2e-7, 9e6, boom.node_b, pilot_ratio=4.0, opening_range=4e6, time_constant=0.02, label="hold"
    )
    return b, {"v_boom": step(0.2, -0.4)}


def motor_with_relief() -> tuple[ModelBuilder, Commands]:
    """A motor that is braked by cross-port relief valves."""
    b = ModelBuilder()
    c = b.add_hydraulic_circuit(label="oil")
    pump, size = c.add_node(2e-3, label="pump"), 20.0 * 1e-4 / (2 * np.pi)
    c.add_pump(pump, 8e-4, 2e7, band=1e6)
    body = b.add_body(mass=100.0, inertia=(800.0, 800.0, 800.0), label="house")
    joint = b.add_joint_revolute(-1, body, axis=(0, 0, 1), label="x_swing")
    b.add_torque(body, (0.0, 0.0, -1500.0))
    swing = c.add_motor(joint, size, volume=2e-4, leakage=2e-12, viscous_friction=30.0, label="swing")
    c.add_valve(pump, swing.node_a, swing.node_b, 3e-7, label="v_swing")
    for one, other in ((swing.node_a, swing.node_b), (swing.node_b, swing.node_a)):
        c.add_relief_valve(one, 8e6, 1e-10, other)
        c.add_check_valve(c.tank, one, 5e-7)
    return b, {"v_swing": lambda t: 0.7 if 0.1 - 1e-9 <= t < 1.0 - 1e-9 else 0.0}


def pulled_rod() -> tuple[ModelBuilder, Commands]:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = load(b, "rod", 100.0, 0.0)
    b.add_force(body, (0.0, 0.0, 1.0), label="push")
    c = b.add_hydraulic_circuit(label="oil")
    size = LIFT | {"viscous_friction": 2e4}
    rod = c.add_cylinder(-1, body, (0, 0, -1), (0, 0, 0), length_offset=0.95, label="rod", **size)
    c.add_orifice(rod.node_b, c.tank, 2e-6)
    return b, {"push": lambda t: 15e3 if t < 0.2 - 1e-9 else -5e3}


def motor_outruns_pump() -> tuple[ModelBuilder, Commands]:
    """A heavy wheel on a hydraulic motor swings faster than the pump delivers oil."""
    b = ModelBuilder(gravity=(0, 0, 0))
    c = b.add_hydraulic_circuit(label="oil")
    line = c.add_node(2e-3, label="line")
    c.add_pump(line, 1.2e-3, 2.2e7, power=15e3, control="load_sensing", label="pump")
    wheel = b.add_body(mass=300.0, inertia=(2e4,) * 3, label="wheel")
    motor = c.add_motor(b.add_joint_revolute(-1, wheel, axis=(0, 0, 1), label="x_wheel"), 3e-4, label="wheel")
    c.add_valve(line, motor.node_a, motor.node_b, 3e-7, compensator_pressure=6e5, label="valve")
    return b, {"valve": step(0.0, 0.5)}


MADE = two_on_one_pump, flow_sharing, holding_valve, motor_with_relief, pulled_rod, motor_outruns_pump
CASES = {f.__name__: f for f in MADE}


def reference(name: str) -> dict[str, np.ndarray]:
    """Columns of a reference solution by name."""
    path = REFERENCE / f"{name}.csv"
    header = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    return dict(zip(header, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))


def measured(
    name: str, dt: float, backend: str = "auto", num_worlds: int = 1, **config: object
) -> dict[str, np.ndarray]:
    b, commands = CASES[name]()
    config_ = SolverConfig(dt=dt, **config)  # type: ignore[arg-type]
    sim = Simulation(b.finalize(), num_worlds, backend, config=config_)
    columns = [c for c in reference(name) if c != "time"]
    kinds = {"p": "node.{}.pressure", "v": "node.{}.void", "x": "joint.x_{}.position"}
    signals = [kinds[c[0]].format(c[2:]) for c in columns]
    times, rows = reference(name)["time"], []
    for k in range(times.size):
        rows.append([float(sim.read(s)[-1]) for s in signals])
        for n in range(round(0.01 / dt)):
            for label, command in commands.items():
                sim.control[label] = command(0.01 * k + n * dt)
            sim.step()
    return dict(zip(columns, np.array(rows).T, strict=True)) | {"time": times}
