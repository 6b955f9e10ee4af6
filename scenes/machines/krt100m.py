"""A mobile robot with a trailer crosses obstacles with the wheels of one side.

The robot has double wishbones and torsion bars. The trailer has sliding pillars. Robot and trailer are from the VirSim
paper on wheels. ``gpusim.machines`` provides the drive train and its commands.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

import gpusim
from gpusim import machines as m
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Range, Scene, require
from gpusim.scenes._checks import GAPS, Recording, joints_stay_closed
from gpusim.scenes.machines._krt_control import asked_speed, krt_control

NAME = "krt100m"
GRAVITY, DURATION = 9.81, 7.0
WHEELBASE, TRACK, RADIUS, TRAILER_X = 1.6, 1.2, 0.3, -2.7
OBSTACLE_X, KERB = 2.5, 0.3
#: Tires: longitudinal and lateral slip stiffness divided by load; rolling resistance divided by load.
ALONG, ACROSS, ROLLING = 15.0, 10.0, 0.015
#: Drives: torque, N m; no-load speed, rad/s; speed droop of speed-controlled drives at full torque, rad/s.
TORQUE, FREE_SPEED, SPEED_DROOP = 1600.0, 20.0, 0.8
BRAKE = 500.0
DESCRIPTIONS = {
    "kerb": "crosses a kerb with its left wheels",
    "sine": "crosses waves with its left wheels",
    "step": "climbs a step with its left wheels",
    "none": "drives on level ground",
}
WIDTH, WHEEL_MASS, RADIAL_STIFFNESS = 0.16, 15.0, 2e5
HUB_MASS, LOWER_MASS, UPPER_MASS, RACK_MASS, SHAFT_MASS = 5.0, 3.0, 2.0, 2.0, 2.0
CHASSIS_MASS, CHASSIS_COM = 400.0, (0.1, 0.0, 0.45)
TRAILER_MASS, TRAILER_COM = 150.0, (0.1, 0.0, 0.45)
HITCH_X, HITCH_HEIGHT = -1.35, 0.35
KINGPIN_Y, RACK_HEIGHT = 0.5118, 0.32
STEERING_ARM, RACK_TRAVEL = 0.12, 0.048
GEAR = 40.0
MOTOR = m.DcMotor(TORQUE / GEAR, FREE_SPEED * GEAR, 0.02, gear_ratio=GEAR)
"""Motor of the drive train: no-load speed 20 rad/s at the wheels, stall torque 1600 N m."""
VISCOSITY = 40.0
"""Damping coefficient of the viscous coupling between front and rear wheels, N m s/rad."""
STICK, RELEASE_TIME = 0.8, 5.5
"""Stick deflection with ``control="diagram"``, and time at which the driver releases the stick, s."""
WHEELS = ("fl", "fr", "rl", "rr")
TRAILER_WHEELS = ("tl", "tr")


def build(
    obstacle: Literal["kerb", "sine", "step", "none"] = "kerb",
    height: Annotated[float, Range(0.01, 0.15)] = 0.08,
    speed: float = 1.5,
    turn: float = 0.0,
    steer: float = 0.0,
    drive_mode: Literal["motor", "speed"] = "motor",
    trailer: bool = True,
    travel: Annotated[float, Range(0.02, 0.12)] = 0.08,
    stiffness: float = 1800.0,
    damping: float = 150.0,
    friction: float = 0.9,
    slope: Annotated[float, Range(-0.6, 0.6)] = 0.0,
    brake: bool = False,
    control: Literal["schedule", "diagram"] = "schedule",
) -> Scene:
    """Build the scene. Commands are "drive", "steer", "turn" with "turn_clutch", and brakes such as "fl_brake".

    Args:
        obstacle: obstacle under the left wheels: a kerb of 0.3 m length, waves of 1 m length, or a step up.
        height: height of the obstacle, m, 0.01 to 0.15.
        speed: driving speed, m/s, -5.4 to 5.4.
        turn: speed of the right wheels relative to the mean speed, m/s, -5.4 to 5.4. With ``speed=0``, the robot
            rotates on the spot.
        steer: steering angle of the bicycle model, rad, positive to the left.
        drive_mode: "motor" for a DC motor with voltage commands, or "speed" for a drive that controls the wheels' mean
            speed.
        trailer: True adds a trailer.
        travel: travel of the wheels in each direction, m, 0.02 to 0.12.
        stiffness: stiffness of the robot's torsion bars, N m/rad.
        damping: damping of the robot's dampers, N m s/rad.
        friction: friction coefficient of the ground. The friction coefficient of the tires is 1.
        slope: slope of the ground, rad, -0.6 to 0.6, positive if the ground goes down in the forward direction.
        brake: True applies all brakes from the start.
        control: "schedule": a schedule writes the commands. "diagram": a block diagram (_krt_control.py) computes the
            commands from the inputs "stick" and "wheel". The arguments speed, turn, steer and brake have no effect with
            ``control="diagram"``.
    """
    for name, value in (("speed", speed), ("turn", turn)):
        max_speed = round(0.9 * FREE_SPEED * RADIUS, 9)
        rule = f"must be between -{max_speed:g} and {max_speed:g}, the range of the motors"
        require(abs(value) <= max_speed, NAME, name, value, rule)
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    ground = gpusim.Transform.from_axis_angle((0, 0, 0), (0, 1, 0), slope)
    _add_ground(b, obstacle, height, ground, gpusim.Material(friction=friction))
    rack, corners, wheels = _add_robot(b, ground, trailer, travel, stiffness, damping)
    limits = {f"joint.{corner.label}_lower.position": corner.limits for corner in corners}
    if trailer:
        _add_trailer(b, travel)
    speed_drive = m.SpeedDrive(torque=TORQUE, gain=TORQUE / SPEED_DROOP)
    chassis = next(k for k, body in enumerate(b.bodies) if body.label == "chassis")
    m.add_drive_train(
        b, chassis, wheels[0::2], wheels[1::2], drive=MOTOR if drive_mode == "motor" else speed_drive, turn=speed_drive,
        clutch=2000.0, viscosity=VISCOSITY, shaft_mass=SHAFT_MASS,
    )  # fmt: skip
    full_speed = FREE_SPEED * RADIUS if drive_mode == "motor" else RADIUS
    braked = (*WHEELS, *(TRAILER_WHEELS if trailer else ()))
    if control == "diagram":
        return _driven(b, rack, corners[:2], drive_mode, braked)
    commands = {
        "drive": Schedule([(0.5, 0.0), (1.0, speed / full_speed)]),
        "turn": Schedule([(0.5, 0.0), (1.0, turn / RADIUS)]),
        "turn_clutch": Schedule([(0.0, float(turn != 0.0))]),
        "steer": Schedule([(0.5, 0.0), (1.0, rack.command(corners[:2], steer))]),
    }
    if brake:
        commands |= {f"{name}_brake": Schedule([(0.0, 1.0)]) for name in braked}
    return Scene(
        name=NAME,
        description=f"A wheeled robot {'with a trailer ' * trailer}{DESCRIPTIONS[obstacle]}.",
        builder=b,
        config=gpusim.SolverConfig(dt=5e-3),
        duration=DURATION,
        plots=_plots(braked),
        camera=Camera((3.6, 4.6, 2.0), (0.6, 0.0, 0.3)),
        schedule=drive(commands),
        checks=[
            Check("the robot crosses the kerb with its left wheels and stays on its line", _crosses),
            Check("left wheels rise and right wheels droop within their travel", lambda run: _droops(run, limits)),
            joints_stay_closed(1e-4),
        ],
    )


def _driven(
    b: gpusim.ModelBuilder, rack: m.SteeringRack, corners: list[m.Suspension], drive_mode: str, braked: tuple[str, ...]
) -> Scene:
    """Return the scene for ``control="diagram"``: a driver crosses the obstacle."""
    travels = np.linspace(-0.95 * RACK_TRAVEL, 0.95 * RACK_TRAVEL, 21)
    angles = [math.copysign(rack.steering_angle(corners, abs(x)), x) if x else 0.0 for x in travels.tolist()]
    rolling = RADIUS - 0.5 * axle_loads()[0] / RADIAL_STIFFNESS
    has_speed_control = drive_mode == "speed"
    full_speed = (1.0 if has_speed_control else FREE_SPEED) * rolling
    names = [f"{name}_brake" for name in braked]
    b.add_diagram(krt_control(rolling, full_speed, has_speed_control, WHEELBASE, angles, travels.tolist(), names))
    wires = "diagram.driver"
    signals = [f"{wires}.wish", f"{wires}.speed"]
    return Scene(
        name=NAME,
        description="A driver controls a wheeled robot with a stick and a wheel.",
        builder=b,
        config=gpusim.SolverConfig(dt=5e-3),
        duration=RELEASE_TIME + 3.5,
        plots=[
            Plot("Speed", "m/s", signals, labels=["command", "wheels"]),
            Plot("Mode", "number", [f"{wires}.mode.state"]),
            Plot("Brakes", "-", [f"{wires}.brake"]),
            Plot("Drive", "-", [f"{wires}.motor"]),
            *_plots(braked),
        ],
        camera=Camera((3.6, 4.6, 2.0), (0.6, 0.0, 0.3)),
        schedule=drive({"stick": Schedule([(0.5, 0.0), (0.5, STICK), (RELEASE_TIME, STICK), (RELEASE_TIME, 0.0)])}),
        checks=[
            Check("the robot drives at the commanded speed", _cruises),
            Check("the robot stops and parks within 1.5 s after the release of the stick", _parks),
            joints_stay_closed(1e-4),
        ],
    )


def _crosses(run: Recording) -> bool:
    """Check that all wheels pass the kerb, with a lateral offset below 5 cm and slip below 3 %."""
    x, y, _ = run["body.chassis.position"][-1, 0]
    rolled = float(run["joint.mean.position"][-1, 0]) * (RADIUS - 0.5 * axle_loads()[0] / RADIAL_STIFFNESS)
    return bool(x > OBSTACLE_X + KERB - TRAILER_X and abs(y) < 0.05 and abs(x / rolled - 1.0) < 0.03)


def _droops(run: Recording, limits: dict[str, tuple[float, float]]) -> bool:
    """Check that the front arms rotate by over 0.056 rad (left up, right down), and that no arm exceeds its limits."""
    margins = [(run[name].min() - low, high - run[name].max()) for name, (low, high) in limits.items()]
    within = np.min(margins) > -1e-3
    left, right = (run[f"joint.{name}_lower.position"] for name in ("fl", "fr"))
    return bool(within and left.max() > 0.056 and right.min() < -0.056)


def _cruises(run: Recording) -> bool:
    """Check the mean speed between 3 s and the release of the stick, with a tolerance of 3 %."""
    steady = (run["time"] > 3.0) & (run["time"] < RELEASE_TIME)
    return bool(abs(run["diagram.driver.speed"][steady].mean() / asked_speed(STICK) - 1.0) < 0.03)


def _parks(run: Recording) -> bool:
    late = run["time"] > RELEASE_TIME + 1.5
    position = run["body.chassis.position"][late, 0]
    is_still = bool(np.abs(run["diagram.driver.speed"][late]).max() < 0.02 and np.ptp(position[:, 0]) < 0.02)
    return is_still and bool(
        np.all(run["diagram.driver.brake"][late] == 1.0) and run["diagram.driver.mode.state"][-1] == 0
    )


def _add_ground(
    b: gpusim.ModelBuilder, obstacle: str, height: float, ground: gpusim.Transform, material: gpusim.Material
) -> None:
    """Add the ground plane, and the obstacle in the path of the left wheels."""
    b.add_shape_plane(-1, xform=ground, material=material, label="ground")
    lateral = 0.5 * TRACK
    if obstacle in ("kerb", "step"):
        half = 0.15 if obstacle == "kerb" else 3.0
        pose = ground * gpusim.Transform((OBSTACLE_X + half, lateral, 0.5 * height))
        b.add_shape_box(-1, (half, 0.3, 0.5 * height), xform=pose, material=material, label="obstacle")
    elif obstacle == "sine":
        x = np.arange(0.0, 4.0 + 1e-9, 0.05)
        waves = np.tile(0.5 * height * (1.0 - np.cos(2.0 * math.pi * x)), (3, 1))
        pose = ground * gpusim.Transform((OBSTACLE_X + 2.0, lateral, 0.0))
        b.add_shape_height_field(-1, waves, (0.05, 0.3), xform=pose, material=material, label="obstacle")


def _tire(load: float) -> gpusim.Material:
    """Return the tire material of a wheel that carries a load (N)."""
    law = gpusim.Tire((ALONG * load, ACROSS * load), 0.15, RADIAL_STIFFNESS, 1000.0, 1.0, ROLLING, WIDTH)
    return gpusim.Material(friction=1.0, law=law)


def axle_loads(trailer: bool = True) -> tuple[float, float, float]:
    """Return the initial ground forces (N) on one front wheel, one rear wheel and one trailer wheel."""
    corner = WHEEL_MASS + HUB_MASS
    tongue = TRAILER_MASS * TRAILER_COM[0] / (HITCH_X - TRAILER_X) if trailer else 0.0
    axle = 2.0 * (corner + LOWER_MASS + UPPER_MASS)
    body = CHASSIS_MASS + SHAFT_MASS
    parts = ((body, CHASSIS_COM[0]), (RACK_MASS, 0.5 * WHEELBASE - STEERING_ARM), (tongue, HITCH_X))
    total = sum(mass for mass, _ in parts)
    front = sum(mass * (x + 0.5 * WHEELBASE) for mass, x in parts) / WHEELBASE
    masses = (front + axle, total - front + axle, TRAILER_MASS - tongue + 2.0 * corner)
    return tuple(0.5 * GRAVITY * mass for mass in masses)  # type: ignore[return-value]


def _add_robot(
    b: gpusim.ModelBuilder, ground: gpusim.Transform, trailer: bool, travel: float, stiffness: float, damping: float
) -> tuple[m.SteeringRack, list[m.Suspension], list[m.Wheel]]:
    """Add chassis, steering rack and four wheels with suspensions."""
    loads = axle_loads(trailer)
    start = gpusim.Transform((0.0, 0.0, -0.5 * (loads[0] + loads[1]) / RADIAL_STIFFNESS))
    inertia = (0.12 * CHASSIS_MASS, 0.35 * CHASSIS_MASS, 0.42 * CHASSIS_MASS)
    chassis = b.add_body(CHASSIS_MASS, inertia, com=CHASSIS_COM, xform=ground * start, label="chassis")
    b.add_visual(chassis, "box", (1.05, 0.23, 0.08), xform=gpusim.Transform((0.0, 0.0, 0.5)), color="#c75437")
    b.add_visual(chassis, "box", (0.35, 0.2, 0.12), xform=gpusim.Transform((-0.25, 0.0, 0.7)), color="#3a76b4")
    b.add_visual(chassis, "box", (0.25, 0.04, 0.04), xform=gpusim.Transform((-1.1, 0.0, 0.4)), color="#555555")
    rack = m.add_steering_rack(
        b, chassis, (0.5 * WHEELBASE - STEERING_ARM, 0.0, RACK_HEIGHT), travel=RACK_TRAVEL, arm=STEERING_ARM,
        wheelbase=WHEELBASE, track=2.0 * KINGPIN_Y, mass=RACK_MASS,
    )  # fmt: skip
    fixed_rod = m.TieRod((-STEERING_ARM, 0.27, RACK_HEIGHT), (-STEERING_ARM, KINGPIN_Y, RACK_HEIGHT))
    rods = {"f": rack.tie_rod((0.0, KINGPIN_Y, RACK_HEIGHT), 0.27), "r": fixed_rod}
    corners, wheels = [], []
    for label in WHEELS:
        load = loads[0] if label[0] == "f" else loads[1]
        pose = gpusim.Transform((0.5 * WHEELBASE if label[0] == "f" else -0.5 * WHEELBASE, 0.0, 0.0))
        corner = m.add_double_wishbone(
            b, chassis, pose, mirror=label[1] == "r", label=label, tie_rod=rods[label[0]], travel=(-travel, travel),
            lower=m.Arm((0.0, 0.25, 0.25), (0.0, 0.52, 0.25), LOWER_MASS),
            upper=m.Arm((0.0, 0.30, 0.42), (0.0, 0.50, 0.42), UPPER_MASS),
            hub=m.Hub((0.0, 0.5 * TRACK, RADIUS), HUB_MASS, (0.05, 0.03, 0.05), com=(0.0, 0.53, 0.33)),
            spring=m.TorsionBar(stiffness, damping, load=load - WHEEL_MASS * GRAVITY),
        )  # fmt: skip
        corners.append(corner)
        wheels.append(_add_wheel(b, corner, load))
    return rack, corners, wheels


def _add_trailer(b: gpusim.ModelBuilder, travel: float) -> None:
    """Add a trailer with one axle."""
    load = axle_loads()[2]
    # hitch height of the robot, for level frames
    tractor = next(k for k, body in enumerate(b.bodies) if body.label == "chassis")
    pose = b.bodies[tractor].xform * gpusim.Transform((TRAILER_X, 0.0, 0.0))
    inertia = (0.1 * TRAILER_MASS, 0.2 * TRAILER_MASS, 0.25 * TRAILER_MASS)
    body = b.add_body(TRAILER_MASS, inertia, com=TRAILER_COM, xform=pose, label="trailer")
    b.add_visual(body, "box", (0.55, 0.35, 0.18), xform=gpusim.Transform((0.0, 0.0, 0.6)), color="#6a8f4e")
    b.add_visual(body, "box", (0.45, 0.03, 0.03), xform=gpusim.Transform((0.9, 0.0, 0.38)), color="#555555")
    for label in TRAILER_WHEELS:
        coil = m.Coil((0.0, 0.5, 0.68), (0.0, 0.5, RADIUS), 12e3, (700.0, 1100.0), load=load - WHEEL_MASS * GRAVITY)
        pillar = m.add_sliding_pillar(
            b, body, hub=m.Hub((0.0, 0.5 * TRACK, RADIUS), HUB_MASS), pillar=(0.0, 0.5, RADIUS), spring=coil,
            travel=(-travel, travel), mirror=label[1] == "r", label=label,
        )  # fmt: skip
        _add_wheel(b, pillar, load)
    m.add_trailer_hitch(b, tractor, body, (HITCH_X, 0.0, HITCH_HEIGHT), limit=1.4, damping=5.0)


def _add_wheel(b: gpusim.ModelBuilder, corner: m.Suspension, load: float) -> m.Wheel:
    """Add a wheel whose tire touches only the ground."""
    return m.add_wheel(
        b, corner, radius=RADIUS, width=WIDTH, mass=WHEEL_MASS, edge_radius=0.05, material=_tire(load), brake=BRAKE,
        group=2, mask=1, color="#2b2b2b",
    )  # fmt: skip


def _coordinates(wheels: tuple[str, ...]) -> list[str]:
    """Return the signal names of the suspension positions, which increase when a wheel moves up."""
    return [f"joint.{name}_{'travel' if name in TRAILER_WHEELS else 'lower'}.position" for name in wheels]


def _plots(wheels: tuple[str, ...]) -> list[Plot]:
    return [
        Plot("Chassis", "m", ["body.chassis.position"], labels=["position"]),
        Plot("Arms (rad) and trailer pillars (m)", "rad, m", _coordinates(wheels), labels=list(wheels)),
        Plot("Wheel speeds", "rad/s", [f"joint.{name}_spin.velocity" for name in WHEELS], labels=list(WHEELS)),
        Plot("Mean wheel angle", "rad", ["joint.mean.position"]),
        Plot("Steering rack", "mm", ["joint.steer.position"], scale=1e3),
        Plot("Largest joint gap", "mm", ["sim.joint_drift", "sim.joint_drift_peak"], scale=1e3, labels=GAPS),
    ]
