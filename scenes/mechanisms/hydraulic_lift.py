"""A hydraulic cylinder lifts a load to the upper end stop.

The variants are the reference cases 1a, 1c and 1d in ``tests/reference/hydraulics`` (2023 VirSim paper, figures 3 and
4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

import gpusim
from gpusim.command_schedule import Schedule, drive
from gpusim.scene import Camera, Check, Plot, Positive, Range, Scene, require
from gpusim.scenes._bodies import cylinder_plots
from gpusim.scenes.mechanisms._lift_control import lift_control

NAME = "hydraulic_lift"
GRAVITY = 9.81
#: Height of the load's reference point above the base pin at piston position 0, m (arbitrary).
RETRACTED_LENGTH = 1.0

_ALIASES = {"closed_centre": "closed_center"}
Variant = Literal["step", "ramped", "closed_center", "closed_centre"]


@dataclass(frozen=True)
class _Lift:
    """Parameter set of a lift, SI units."""

    mass: float
    piston_mass: float
    dry_friction: float
    viscous_friction: float
    area_a: float
    area_b: float
    volume_a: float
    volume_b: float
    stroke: float
    supply_pressure: float
    spool_diameter: float
    spool_travel: float
    overlap_supply: float
    overlap_drain: float
    anticavitation_gain: float
    brake_force: float
    position: float
    #: initial pressure of chamber B, or None for tank pressure
    pressure_b: float | None
    duration: float
    #: pairs (time after the start of the command in s, fraction of the command)
    commands: tuple[tuple[float, float], ...]
    command_time: float
    tank_pressure: float = 1e5
    bulk_modulus: float = 1.5e9


def _area(bore: float, rod: float = 0.0) -> float:
    return math.pi / 4.0 * (bore**2 - rod**2)


_STEP = _Lift(
    mass=100.0,
    piston_mass=5.0,
    dry_friction=200.0,
    viscous_friction=1000.0,
    area_a=_area(0.04),
    area_b=_area(0.04, 0.02),
    volume_a=1e-4,
    volume_b=1e-4 + 0.5 * _area(0.04, 0.02),
    stroke=0.5,
    supply_pressure=1e7,
    spool_diameter=0.006,
    spool_travel=0.00025,
    overlap_supply=0.1,
    overlap_drain=0.05,
    anticavitation_gain=1e-6,
    brake_force=5000.0,
    position=0.0,
    pressure_b=None,
    duration=4.0,
    commands=((0.0, 0.0), (0.0, 1.0)),
    command_time=1.0,
)

_VARIANTS: dict[str, _Lift] = {
    "step": _STEP,
    "ramped": _Lift(
        mass=5000.0,
        piston_mass=30.0,
        dry_friction=1000.0,
        viscous_friction=5000.0,
        area_a=_area(0.1),
        area_b=_area(0.1, 0.06),
        volume_a=5e-4,
        volume_b=5e-4 + 0.8 * _area(0.1, 0.06),
        stroke=0.8,
        supply_pressure=1.6e7,
        spool_diameter=0.012,
        spool_travel=0.00045,
        overlap_supply=0.1,
        overlap_drain=0.05,
        anticavitation_gain=0.0,
        brake_force=2e5,
        position=0.0,
        pressure_b=None,
        duration=8.0,
        commands=((0.0, 0.0), (0.2, 0.5), (3.0, 0.5), (3.2, 1.0)),
        command_time=1.0,
    ),
    "closed_center": replace(
        _STEP,
        mass=1000.0,
        dry_friction=0.0,
        overlap_supply=0.03,
        overlap_drain=-0.03,
        anticavitation_gain=0.0,
        position=0.2,
        pressure_b=2e6,
        duration=2.0,
        commands=((0.0, 0.0), (0.2, 0.5), (0.6, 0.5), (0.8, 0.0)),
        command_time=0.2,
    ),
}

_VARIANT_PARAMETERS = (
    "mass", "piston_mass", "dry_friction", "viscous_friction", "command_time", "position", "stroke", "supply_pressure",
    "tank_pressure", "bulk_modulus", "overlap_supply", "overlap_drain", "anticavitation_gain",
)  # fmt: skip


_CYLINDER_FIELDS = (
    "area_a", "area_b", "volume_a", "volume_b", "bulk_modulus", "viscous_friction", "dry_friction", "supply_pressure",
    "tank_pressure", "overlap_supply", "overlap_drain", "anticavitation_gain", "brake_force", "piston_mass",
)  # fmt: skip
"""Names that are both fields of ``_Lift`` and arguments of ``add_hydraulic_cylinder``."""


def _default(name: str) -> str:
    """Return a text with the default value of a parameter, and with different default values of variants."""
    first, *others = ((variant, f"{getattr(lift, name):g}") for variant, lift in _VARIANTS.items())
    return ", ".join([first[1], *(f"{variant} {value}" for variant, value in others if value != first[1])])


DEFAULTS = {name: _default(name) for name in _VARIANT_PARAMETERS}


def build(
    variant: Variant = "step",
    mass: Positive | None = None,
    piston_mass: float | None = None,
    dry_friction: float | None = None,
    viscous_friction: float | None = None,
    command: Annotated[float, Range(-1.0, 1.0)] = 1.0,
    command_time: float | None = None,
    brake: Annotated[float, Range(0.0, 1.0)] = 0.0,
    position: float | None = None,
    stroke: Positive | None = None,
    supply_pressure: float | None = None,
    tank_pressure: float | None = None,
    bulk_modulus: float | None = None,
    overlap_supply: float | None = None,
    overlap_drain: float | None = None,
    anticavitation_gain: float | None = None,
    coupling: Literal["implicit", "papers"] = "implicit",
    control: Literal["schedule", "diagram"] = "schedule",
) -> Scene:
    """Build the scene. A parameter that is None has the default value of the variant.

    Args:
        variant: "step" (case 1a, 100 kg), "ramped" (case 1c, 5 t) or "closed_center" (case 1d, holds 1 t).
            "closed_centre" is another spelling.
        mass: mass of the load, kg, above 0.
        piston_mass: mass of piston and rod, kg. Gravity does not act on piston and rod.
        dry_friction: Coulomb friction of the seals, N.
        viscous_friction: viscous friction of the cylinder, N s/m.
        command: scale factor of the valve commands in the variant's table, -1 to 1.
        command_time: start time of the command, s.
        brake: command of the rod brake, 0 (open) to 1.
        position: initial piston position, m, 0 to the stroke.
        stroke: piston position of the upper stop, m, above 0.
        supply_pressure: supply pressure, Pa.
        tank_pressure: tank pressure, Pa.
        bulk_modulus: bulk modulus of the oil, Pa.
        overlap_supply: dead zone of the supply edges, as a fraction of the spool's travel.
        overlap_drain: opening of the drain edges at rest, as a fraction of the spool's travel, negative for a closed
            center.
        anticavitation_gain: flow gain of the check valves from the tank, m3/s/sqrt(Pa), or 0 for no check valves.
        coupling: coupling of piston and load: "implicit", or "papers". With "papers", only the piston moves in
            substeps, as in the 2023 paper.
        control: "schedule": the variant's table gives the valve command. "diagram": a block diagram (_lift_control.py)
            computes the valve command, so that the load follows the input "height".
    """
    arguments = locals()
    overrides = {name: arguments[name] for name in _VARIANT_PARAMETERS if arguments[name] is not None}
    lift = replace(_VARIANTS[_ALIASES.get(variant, variant)], **overrides)
    require(0.0 <= lift.position <= lift.stroke, NAME, "position", lift.position, "must be between 0 and the stroke")
    table = Schedule([(lift.command_time + t, command * fraction) for t, fraction in lift.commands])
    if control == "diagram":
        return _by_diagram(lift, coupling)
    return Scene(
        name=NAME,
        description="A hydraulic cylinder lifts a load up to its stop.",
        builder=_model(lift, coupling),
        config=gpusim.SolverConfig(dt=1e-3),
        duration=lift.duration,
        plots=_plots(),
        camera=Camera((2.5, -3.0, 1.8), (0.0, 0.0, 1.0)),
        schedule=drive({"lift": table, "lift.brake": Schedule([(0.0, brake)])}),
        checks=_CHECKS,
    )


def full_speed(lift: _Lift) -> float:
    """Return the load's upward speed (m/s) with the valve fully open."""
    force = lift.mass * GRAVITY + lift.dry_friction
    net_force = lift.supply_pressure * lift.area_a - lift.tank_pressure * lift.area_b - force
    return _flow_gain(lift) * math.sqrt(max(net_force, 0.01 * force) / (lift.area_a**3 + lift.area_b**3))


def _flow_gain(lift: _Lift) -> float:
    return gpusim.orifice_gain(0.62, lift.spool_diameter, lift.spool_travel, 850.0)


def _by_diagram(lift: _Lift, coupling: Literal["implicit", "papers"]) -> Scene:
    """Return the scene for ``control="diagram"``: a block diagram moves the load up, then down."""
    b, speed = _model(lift, coupling), full_speed(lift)
    volume = lift.volume_a + 0.5 * lift.stroke * lift.area_a
    stiffness = math.sqrt(lift.mass * lift.bulk_modulus / volume)
    oil = lift.overlap_supply, lift.supply_pressure, _pressure_a(lift), stiffness
    b.add_diagram(lift_control(lift.stroke, lift.position, speed, *oil))
    travel = 0.6 * (lift.stroke - lift.position)
    return_time = 2.5 + travel / (0.5 * speed)
    end = return_time + 2.0 + 0.5 * travel / (0.5 * speed)
    heights = Schedule([(0.5, lift.position), (0.5, lift.position + travel), (return_time, lift.position + travel),
                        (return_time, lift.position + 0.5 * travel)])  # fmt: skip
    wires = "diagram.lift_control"
    signals = [f"{wires}.height", f"{wires}.wish", "joint.rail.position"]
    return Scene(
        name=NAME,
        description="A hydraulic cylinder follows a height that the operator sets.",
        builder=b,
        config=gpusim.SolverConfig(dt=1e-3),
        duration=end,
        plots=[
            Plot("Height", "m", signals, labels=["input", "setpoint", "load"]),
            Plot("Lamps", "on", [f"{wires}.late", f"{wires}.high"], labels=["late", "pressure"]),
            *_plots(),
        ],
        camera=Camera((2.5, -3.0, 1.8), (0.0, 0.0, 1.0)),
        schedule=drive({"height": heights}),
        checks=_following(heights, return_time, end, speed),
    )


def _following(heights: Schedule, return_time: float, end: float, speed: float) -> tuple[Check, ...]:
    """Return the checks for ``control="diagram"``."""

    def arrives(run: Mapping[str, np.ndarray]) -> bool:
        position, target = run["joint.rail.position"], run["diagram.lift_control.height"]
        ends = [np.searchsorted(run["time"], t) - 1 for t in (return_time, end)]
        commanded = np.allclose(target[ends[1]], heights.value(end), rtol=0.0, atol=1e-9)
        return bool(commanded and np.all(np.abs(position - target)[ends] < 2e-3))

    def follows(run: Mapping[str, np.ndarray]) -> bool:
        gap = np.abs(run["joint.rail.position"] - run["diagram.lift_control.wish"])[1:]  # starts after one sample
        return bool(gap.max() < 0.008 and np.abs(run["cylinder.lift.velocity"]).max() < 0.75 * speed)

    return (
        Check("the load reaches both commanded heights", arrives),
        Check("the load follows the setpoint within 8 mm and below the maximum speed", follows),
        Check("no alarm", lambda run: not any(run[f"diagram.lift_control.{n}"].any() for n in ("late", "high"))),
    )


def _model(lift: _Lift, coupling: Literal["implicit", "papers"]) -> gpusim.ModelBuilder:
    b = gpusim.ModelBuilder(gravity=(0.0, 0.0, -GRAVITY))
    height = RETRACTED_LENGTH + lift.position
    start = gpusim.Transform((0.0, 0.0, height))
    # the rail allows no rotation, so the load's inertia has no effect
    load = b.add_body(mass=lift.mass, inertia=(lift.mass / 6.0,) * 3, xform=start, label="load")
    zero = gpusim.Transform((0.0, 0.0, RETRACTED_LENGTH))
    b.add_joint_prismatic(-1, load, parent_xform=zero, axis=(0.0, 0.0, 1.0), label="rail")
    parameters = {name: getattr(lift, name) for name in _CYLINDER_FIELDS}
    b.add_hydraulic_cylinder(
        -1, load, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), **parameters, length_offset=RETRACTED_LENGTH, stroke_min=0.0,
        stroke_max=lift.stroke, flow_gain=_flow_gain(lift), valve_frequency=2.0 * math.pi * 25.0, valve_damping=0.8,
        transition_pressure=1e4, pressure_a=_pressure_a(lift), pressure_b=_pressure_b(lift), coupling=coupling,
        label="lift",
    )  # fmt: skip
    return b


def _pressure_a(lift: _Lift) -> float:
    """Return the initial pressure of chamber A. At the lower end stop, the pressure does not carry the load."""
    if lift.position == 0.0:
        return lift.tank_pressure
    return (lift.mass * GRAVITY + lift.area_b * _pressure_b(lift)) / lift.area_a


def _pressure_b(lift: _Lift) -> float:
    return lift.tank_pressure if lift.pressure_b is None else lift.pressure_b


def _plots() -> list[Plot]:
    return [
        Plot("Piston position", "m", ["cylinder.lift.position"]),
        Plot("Piston velocity", "m/s", ["cylinder.lift.velocity"]),
        *cylinder_plots("lift"),
    ]


def _between(run: Mapping[str, np.ndarray], signal: str, start: float, stop: float) -> np.ndarray:
    inside = (run["time"] >= start) & (run["time"] <= stop)
    return run[f"cylinder.lift.{signal}"][inside]


_CHECKS = (
    Check(
        "the load rests before the command", lambda run: bool(np.all(np.abs(_between(run, "position", 0, 1)) < 1e-5))
    ),
    Check(
        "pressure A has a peak at the start of the motion",
        lambda run: bool(
            _between(run, "pressure_a", 1.0, 1.1).max() > 1.02 * _between(run, "pressure_a", 2, 2.5).max()
        ),
    ),
    Check("pressure B rises with the speed", lambda run: bool(_between(run, "pressure_b", 2, 2.5).min() > 3e6)),
    Check(
        "at the stop, chamber A has supply pressure and chamber B has tank pressure",
        lambda run: bool(
            np.all(np.abs(run["cylinder.lift.pressure_a"][-1] - 1e7) < 1e4)
            and np.all(np.abs(run["cylinder.lift.pressure_b"][-1] - 1e5) < 1e3)
            and np.all(np.abs(run["cylinder.lift.position"][-1] - 0.5) < 1e-5)
        ),
    ),
)
