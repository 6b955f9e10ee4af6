"""``ModelBuilder.add_hydraulic_cylinder``, and checks of its parameters."""

from __future__ import annotations

from typing import Any

from gpusim import validate
from gpusim.actuators.hydraulic.cavitation import VAPOR_PRESSURE
from gpusim.actuators.spring import line_params
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.typing import Vector

_POSITIVE = ("area_a", "area_b", "bulk_modulus", "flow_gain", "transition_pressure", "valve_gain")
_NOT_NEGATIVE = (
    "volume_a",
    "volume_b",
    "hose_volume_a",
    "hose_volume_b",
    "viscous_friction",
    "dry_friction",
    "brake_force",
    "anticavitation_gain",
    "piston_mass",
    "cushion_stiffness",
    "cushion_damping",
    "cushion_length",
    "stop_restitution",
    "supply_pressure",
    "tank_pressure",
    "vapor_pressure",
)


@builder_method
def add_hydraulic_cylinder(
    self: ModelBuilder,
    body_a: int,
    body_b: int,
    point_a: Vector | None = None,
    point_b: Vector | None = None,
    *,
    area_a: float,
    area_b: float,
    volume_a: float,
    volume_b: float,
    stroke_min: float,
    stroke_max: float,
    flow_gain: float,
    length_offset: float = 0.0,
    bulk_modulus: float = 1.5e9,
    supply_pressure: float = 1e7,
    tank_pressure: float = 1e5,
    viscous_friction: float = 0.0,
    dry_friction: float = 0.0,
    brake_force: float = 0.0,
    overlap_supply: float = 0.0,
    overlap_drain: float = 0.0,
    valve_gain: float = 1.0,
    valve_order: int = 2,
    valve_frequency: float = 157.0,
    valve_damping: float = 0.8,
    valve_time_constant: float = 0.005,
    transition_pressure: float = 1e4,
    orifice: str = "smooth",
    anticavitation_gain: float = 0.0,
    piston_mass: float = 0.0,
    pressure_a: float | None = None,
    pressure_b: float | None = None,
    hose_volume_a: float = 0.0,
    hose_volume_b: float = 0.0,
    hose_bulk_modulus: float = float("inf"),
    cushion_stiffness: float = 0.0,
    cushion_damping: float = 0.0,
    cushion_length: float = 0.0,
    stop_restitution: float = 0.0,
    coupling: str = "implicit",
    label: str | None = None,
    at_a: Vector | None = None,
    at_b: Vector | None = None,
    vapor_pressure: float = VAPOR_PRESSURE,
) -> int:
    """Add a hydraulic cylinder with a spool valve between two pins.

    The commands are ``sim.control[label]`` for the valve, -1 to 1, and ``sim.control[label + ".brake"]`` for the brake,
    0 to 1. Positive valve commands extend the cylinder. The signals are ``cylinder.<label>.position, .velocity,
    .pressure_a, .pressure_b, .spool, .force, .void_a, .void_b``.

    Args:
        body_a, body_b: bodies, -1 for the world.
        point_a, point_b: pins in the body frames (m). Default: origins of the body frames.
        area_a, area_b: piston areas of the chambers A and B (m2). Pressure in A extends the cylinder.
        volume_a, volume_b: chamber volumes at zero stroke, including dead volumes (m3).
        stroke_min, stroke_max: strokes at the end stops (m).
        flow_gain: flow gain K of a fully open valve edge (m3/s/sqrt(Pa)). See :func:`gpusim.orifice_gain`.
        length_offset: distance between the pins minus the stroke (m).
        bulk_modulus: bulk modulus of the oil (Pa).
        supply_pressure, tank_pressure: pressures of the supply and of the tank (Pa).
        viscous_friction: viscous friction (N s/m).
        dry_friction: dry friction (N).
        brake_force: additional dry friction at full brake command (N).
        overlap_supply: overlap c1 of the supply edges, from 0 to below 1.
        overlap_drain: underlap c2 of the drain edges, between -1 and 1, negative for a closed-center valve.
        valve_gain: spool position at command 1.
        valve_order: order of the spool dynamics: 2 (``valve_frequency`` in rad/s, ``valve_damping``) or 1
            (``valve_time_constant`` in s).
        transition_pressure: pressure drop below which the flow through an edge is laminar (Pa).
        orifice: flow law of the valve edges. "smooth" is smooth at zero pressure drop. "linear" is linear below
            ``transition_pressure``, and a square root above.
        anticavitation_gain: flow gain K of the check valves from the tank (m3/s/sqrt(Pa)).
        piston_mass: mass of piston and rod (kg). Gravity does not act on this mass.
        pressure_a, pressure_b: initial pressures of the chambers (Pa). Default: pressure of the tank.
        hose_volume_a, hose_volume_b: additional volumes of the hoses (m3).
        hose_bulk_modulus: effective bulk modulus of hose and oil (Pa).
        cushion_stiffness, cushion_damping, cushion_length: stiffness (N/m), damping (N s/m) and length (m) of the end
            cushions.
        stop_restitution: coefficient of restitution of the end stops, 0 to 1.
        coupling: "implicit", or "papers" for comparisons with published models. "papers" needs a ``piston_mass``.
        label: unique name.
        at_a, at_b: pins in the world frame (m) for the current poses of the bodies, instead of point_a and point_b.
        vapor_pressure: absolute vapor pressure of the oil (Pa), at which a void opens in a chamber.

    Returns:
        The index of the actuator.

    Raises:
        ModelError: a body is unknown, or a value is out of range. The error message names the value.
    """
    given = dict(locals())
    element = self.element("actuator", label, "cylinder")
    params: dict[str, Any] = line_params(self, element, body_a, body_b, point_a, point_b, at_a, at_b)
    for name in _POSITIVE:
        params[name] = validate.positive(element, name, given[name])
    for name in _NOT_NEGATIVE:
        params[name] = validate.not_negative(element, name, given[name])
    params["hose_bulk_modulus"] = validate.positive(element, "hose_bulk_modulus", hose_bulk_modulus, infinite=True)
    for name in ("length_offset", "stroke_min", "stroke_max"):
        params[name] = validate.number(element, name, given[name])
    if params["stop_restitution"] > 1.0:
        raise validate.fail(element, f"stop_restitution = {stop_restitution:g} is above 1", "give 0 to 1")
    _check_stroke(element, params)
    _check_valve(element, params, given)
    for name, choice, known in (
        ("orifice", orifice, ("smooth", "linear")),
        ("coupling", coupling, ("implicit", "papers")),
    ):
        validate.choice(element, name, choice, known)
    if coupling == "papers" and params["piston_mass"] == 0.0:
        raise validate.fail(element, 'coupling="papers" needs the mass of the piston', "give a piston_mass above zero")
    params["linear_orifice"] = float(orifice == "linear")
    params["papers_coupling"] = float(coupling == "papers")
    for chamber, pressure in (("a", pressure_a), ("b", pressure_b)):
        value = params["tank_pressure"] if pressure is None else pressure
        value = validate.not_negative(element, f"pressure_{chamber}", value)
        if value < params["vapor_pressure"]:
            rule = f"pressure_{chamber} = {value:g} Pa is below vapor_pressure = {params['vapor_pressure']:g} Pa"
            raise validate.fail(element, rule, "give absolute pressures, or a lower vapor_pressure")
        params[f"initial_pressure_{chamber}"] = value
    return self.add_actuator("cylinder", label, params)


def _check_stroke(element: str, p: dict[str, Any]) -> None:
    if p["stroke_min"] > p["stroke_max"]:
        raise validate.fail(
            element, f"stroke_min = {p['stroke_min']:g} is above stroke_max = {p['stroke_max']:g}", "swap them"
        )
    low = p["volume_a"] + p["area_a"] * p["stroke_min"] + p["hose_volume_a"]
    high = p["volume_b"] - p["area_b"] * p["stroke_max"] + p["hose_volume_b"]
    for name, volume in (("A at stroke_min", low), ("B at stroke_max", high)):
        if volume <= 0.0:
            raise validate.fail(
                element, f"chamber {name} has the volume {volume:.3g} m3", "give a larger volume or a shorter stroke"
            )


def _check_valve(element: str, p: dict[str, Any], given: dict[str, Any]) -> None:
    if given["valve_order"] not in (1, 2):
        raise validate.fail(element, f"valve_order = {given['valve_order']!r} is unknown", "give 1 or 2")
    p["valve_order"] = float(given["valve_order"])
    for name in ("valve_frequency", "valve_damping", "valve_time_constant"):
        p[name] = validate.positive(element, name, given[name])
    c1 = p["overlap_supply"] = validate.number(element, "overlap_supply", given["overlap_supply"])
    c2 = p["overlap_drain"] = validate.number(element, "overlap_drain", given["overlap_drain"])
    if not 0.0 <= c1 < 1.0:
        raise validate.fail(element, f"overlap_supply = {c1:g} is out of range", "give 0 <= overlap_supply < 1")
    if not -1.0 < c2 < 1.0:
        raise validate.fail(element, f"overlap_drain = {c2:g} is out of range", "give -1 < overlap_drain < 1")
    if p["tank_pressure"] >= p["supply_pressure"]:
        raise validate.fail(
            element,
            f"tank_pressure = {p['tank_pressure']:g} is not below supply_pressure = {p['supply_pressure']:g}",
            "give the supply the higher pressure",
        )
