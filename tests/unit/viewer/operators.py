from __future__ import annotations

import gpusim
from gpusim import ModelBuilder, Simulation, Transform
from gpusim.viewer.operator import GamepadState, Operator

FRAME = 1.0 / 60.0


def arm(servos: int = 1, mode: str = "position", num_worlds: int = 1) -> Simulation:
    b = ModelBuilder()
    for k in range(servos):
        link = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, k, 1.0)), label=f"link{k}")
        joint = b.add_joint_revolute(
            -1, link, parent_xform=Transform((0.0, k, 1.0)), axis=(0, 1, 0), limit_lower=-0.5, limit_upper=1.5,
            label=f"hinge{k}",
        )  # fmt: skip
        b.add_servo(joint, mode=mode, stiffness=50.0, damping=5.0, target=0.2, label=f"s{k}")
    return Simulation(b.finalize(), num_worlds, backend="numpy", config=gpusim.SolverConfig(dt=0.01))


def machine(*labels: str, brake_force: float = 0.0) -> Simulation:
    """Add motors with these labels, and a cylinder "jack"."""
    b = ModelBuilder()
    for k, label in enumerate(labels):
        shaft = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, k, 1.0)), label=f"shaft_{label}")
        joint = b.add_joint_revolute(-1, shaft, parent_xform=Transform((0.0, k, 1.0)), axis=(0, 1, 0))
        b.add_dc_motor(joint, stall_torque=2.0, no_load_speed=50.0, mechanical_time_constant=0.01, label=label)
    if brake_force:
        load = b.add_body(mass=1.0, inertia=(0.1,) * 3, xform=Transform((0.0, -1.0, 1.0)), label="load")
        b.add_joint_prismatic(-1, load, parent_xform=Transform((0.0, -1.0, 1.0)), axis=(0, 0, 1))
        b.add_hydraulic_cylinder(
            -1, load, (0, -1, 0), (0, 0, 0), length_offset=0.8, area_a=1e-3, area_b=8e-4, volume_a=1e-4, volume_b=6e-4,
            stroke_min=0.0, stroke_max=0.5, supply_pressure=1e7, tank_pressure=1e5, flow_gain=1e-8,
            brake_force=brake_force, label="jack",
        )  # fmt: skip
    return Simulation(b.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=0.01))


class Pad:
    def __init__(self) -> None:
        self.axes: dict[str, float] = {}
        self.buttons: set[str] = set()
        self.connected = True

    def read(self) -> GamepadState | None:
        return GamepadState(dict(self.axes), frozenset(self.buttons)) if self.connected else None


def step(operator: Operator, count: int = 1) -> None:
    for _ in range(count):
        operator.before_steps(operator.sim.time)
        operator.sim.step()
