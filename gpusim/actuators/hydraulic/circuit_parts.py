"""Components of a hydraulic circuit: nodes, valves, edges, pumps, cylinders and motors.

Each component belongs to one circuit. This file defines the parameters and signals of the components. circuit.py
computes the pressures. Pressures are absolute (Pa). Flows are positive from ``node_a`` to ``node_b`` (m3/s). Volumes
are in m3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusim import validate
from gpusim.actuators.hydraulic.hydraulic_cylinder import CUSHION, check_start, cushions
from gpusim.actuators.hydraulic.hydraulics import check_overlaps
from gpusim.description.actuator_kinds import (
    ActuatorType,
    Group,
    JointActuator,
    LineActuator,
    Parameter,
    Reading,
    StateReader,
    StateVariable,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.references import ACTUATOR, AS_IS, BODY, JOINT, point_on
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array

EDGE_KINDS = ("ORIFICE", "CHECK", "RELIEF", "COUNTERBALANCE", "PIPE_BREAK", "LEAK")
"""Kinds of edges."""
ORIFICE, CHECK, RELIEF, COUNTERBALANCE, PIPE_BREAK, LEAK = range(len(EDGE_KINDS))
VOID = "volume of the void in oil at vapor pressure"
CIRCUIT = Parameter("circuit", "-", "number of the circuit", signal=False)


def _state_reading(name: str, unit: str, doc: str, limits: Callable | None = None) -> Reading:  # type: ignore[type-arg]
    return Reading(name, unit, doc, lambda group, now: group.state[name], f"*out = w.KIND_{name}(i);", limits)


def _for_kind(kind: str, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    return tuple(Reading(r.name, r.unit, r.doc, r.read, r.device.replace("KIND", kind), r.range) for r in readings)


def _command_reading(kind: str, name: str, doc: str, lower: float) -> Reading:
    text = f"*out = clamped(w.{kind}_{name}_now(i), {lower}, 1.0);"
    return Reading(
        name, "-", doc, lambda g, now: np.clip(now.control[:, g.control[name]], lower, 1.0), text,
        lambda p: (lower, 1.0),
    )  # fmt: skip


@register
class OilNode(ActuatorType):
    """Node: oil volume with a variable or fixed pressure p. C p' = inflow with C = volume/bulk_modulus.

    At the vapor pressure, a void opens in the oil (cavitation.py).
    """

    name: ClassVar[str] = "oil_node"
    kernel_file: ClassVar[str] = "circuit.cuh"
    prefix: ClassVar[str] = "node"
    references: ClassVar = {"circuit": ACTUATOR, "index": AS_IS}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        CIRCUIT,
        Parameter("index", "-", "index of the node in its circuit", signal=False),
        Parameter("volume", "m3", "volume of oil with hoses; for a chamber, volume at zero stroke"),
        Parameter("bulk_modulus", "Pa", "effective bulk modulus of oil and walls"),
        Parameter("initial_pressure", "Pa", "initial pressure"),
        Parameter("fixed", "-", "1: constant pressure, as in a tank; 0: the flows change the pressure"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("pressure", "Pa", "absolute pressure", lambda p: p["initial_pressure"]),
        StateVariable("void", "m3", VOID),
    )
    voids: ClassVar = {"void": 0}
    readings: ClassVar[tuple[Reading, ...]] = _for_kind(
        "oil_node", (_state_reading("pressure", "Pa", "absolute pressure"), _state_reading("void", "m3", VOID))
    )

    def check(self, group: Group) -> None:
        """Raise ModelError if a bulk modulus is not positive, or an initial pressure is negative."""
        group.check_signs(("bulk_modulus",), ("initial_pressure",))

    def check_together(self, groups: Mapping[str, Group]) -> None:
        """Raise ModelError if the oil volume of a node can become zero or negative."""
        volumes = groups[self.name].params["volume"]
        p = groups[OilCylinder.name].params if OilCylinder.name in groups else {}
        worlds = max(map(len, (volumes, *p.values())))
        min_volumes = np.repeat(volumes, worlds // len(volumes), axis=0)
        for port, end, sign in (("a", "stroke_min", 1.0), ("b", "stroke_max", -1.0)) if p else ():
            min_volumes[:, p[f"node_{port}"][0].astype(int)] += sign * p[f"area_{port}"] * p[end]
        empty = (min_volumes <= 0.0).any(axis=0)
        if empty.any():
            spec = groups[self.name].specs[int(np.argmax(empty))]
            raise validate.fail(spec.element, "has no oil at its minimum volume", "give a larger volume")


@register
class OilValve(ActuatorType):
    """Spool valve with four edges: pump to A, A to tank, pump to B, B to tank."""

    name: ClassVar[str] = "oil_valve"
    kernel_file: ClassVar[str] = "circuit.cuh"
    kernel_scratch: ClassVar[tuple[str, ...]] = (
        "next_spool",
        "next_rate",
        "opened_p_a",
        "opened_a_t",
        "opened_p_b",
        "opened_b_t",
    )
    prefix: ClassVar[str] = "valve"
    references: ClassVar = dict.fromkeys(("circuit", "node_p", "node_t", "node_a", "node_b"), ACTUATOR)
    commands: ClassVar[tuple[str, ...]] = ("command",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        CIRCUIT,
        *(Parameter(f"node_{port}", "-", f"node at port {port.upper()}", signal=False) for port in "ptab"),
        Parameter("flow_gain", "m3/s/sqrt(Pa)", "flow gain K of a fully open supply edge"),
        Parameter("drain_gain", "m3/s/sqrt(Pa)", "flow gain K of the edges to the tank"),
        Parameter("transition_pressure", "Pa", "pressure drop below which the flow is laminar"),
        Parameter("overlap_supply", "-", "overlap c1 of the supply edges"),
        Parameter("overlap_drain", "-", "underlap c2 of the drain edges; closed center: below 0"),
        Parameter("compensator_pressure", "Pa", "pressure drop that the compensator keeps; inf: no compensator"),
        Parameter("load_check", "-", "1: check valves prevent flow from the ports back to the pump"),
        Parameter("frequency", "rad/s", "natural frequency of the spool"),
        Parameter("damping", "-", "damping ratio of the spool"),
        Parameter("senses", "-", "1: load-sensing pumps use the load pressure of this valve"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("spool", "-", "spool position, -1 to 1"),
        StateVariable("spool_rate", "1/s", "rate of the spool"),
        StateVariable("flow_a", "m3/s", "flow out of port A"),
        StateVariable("flow_b", "m3/s", "flow out of port B"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        _command_reading("oil_valve", "command", "spool command, -1 to 1", -1.0),
        *_for_kind("oil_valve", (
            _state_reading("spool", "-", "spool position", lambda p: (-1.0, 1.0)),
            _state_reading("flow_a", "m3/s", "flow out of port A"),
            _state_reading("flow_b", "m3/s", "flow out of port B"),
        )),
    )  # fmt: skip

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the spool command (fraction of the travel). Safe value: 0 (center)."""
        return UiHints(lower=-1.0, upper=1.0, safe=0.0)

    def check(self, group: Group) -> None:
        """Raise ModelError if a gain or a spool constant is not positive, or an overlap is out of range."""
        gains = ("flow_gain", "drain_gain", "transition_pressure", "compensator_pressure")
        group.check_signs((*gains, "frequency", "damping"), ())
        check_overlaps(group)


@register
class OilEdge(ActuatorType):
    """Edge between two nodes: orifice, leak, check valve, relief valve, counterbalance valve or pipe-break valve."""

    name: ClassVar[str] = "oil_edge"
    kernel_file: ClassVar[str] = "circuit.cuh"
    prefix: ClassVar[str] = "edge"
    references: ClassVar = dict.fromkeys(("circuit", "node_a", "node_b", "node_pilot"), ACTUATOR) | {"kind": AS_IS}
    commands: ClassVar[tuple[str, ...]] = ("opening",)
    needs: ClassVar[tuple[str, ...]] = ("initial_opening", "initial_poppet")
    parameters: ClassVar[tuple[Parameter, ...]] = (
        CIRCUIT,
        Parameter("kind", "-", "kind of edge", signal=False),
        Parameter("node_a", "-", "node at A", signal=False),
        Parameter("node_b", "-", "node at B", signal=False),
        Parameter("node_pilot", "-", "node that opens a counterbalance valve", signal=False),
        Parameter("gain", "m3/s/sqrt(Pa)", "flow gain of the open edge (m3/s/Pa for relief valves and leaks)"),
        Parameter("set_pressure", "Pa", "pressure drop at which it opens; for counterbalance valves, pressure at A"),
        Parameter("pilot_ratio", "-", "weight of the pilot pressure relative to the pressure at A"),
        Parameter("range", "Pa", "pressure increase from the start of opening to full opening"),
        Parameter("flow_limit", "m3/s", "flow from A to B at which a pipe-break valve shuts"),
        Parameter("transition_pressure", "Pa", "pressure drop below which the flow is laminar"),
        Parameter("time_constant", "s", "time constant of the poppet of a counterbalance or pipe-break valve"),
        Parameter("opening_time", "s", "time constant of the poppet when it opens"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("poppet", "-", "opening of a counterbalance or pipe-break valve", lambda p: p["initial_poppet"]),
        StateVariable("flow", "m3/s", "flow from A to B"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        _command_reading("oil_edge", "opening", "opening of an orifice, 0 to 1", 0.0),
        *_for_kind("oil_edge", (
            _state_reading("flow", "m3/s", "flow from A to B"),
            _state_reading("poppet", "-", "opening of a counterbalance or pipe-break valve", lambda p: (0.0, 1.0)),
        )),
    )  # fmt: skip

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return the initial opening."""
        return float(spec.params["initial_opening"])

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the opening of an orifice. Safe value: initial opening."""
        idle = int(spec.params["kind"]) != ORIFICE
        return UiHints(lower=0.0, upper=1.0, safe=float(spec.params["initial_opening"]), springs=False, idle=idle)

    def check(self, group: Group) -> None:
        """Raise ModelError if a gain is not positive, or a time constant, pressure or pilot ratio is negative."""
        positive = ("gain", "transition_pressure", "range", "flow_limit")
        group.check_signs(positive, ("time_constant", "opening_time", "pilot_ratio", "set_pressure"))


def read_outlet_power(group: Group, now: StateReader) -> Array:
    """Return the hydraulic power Q (p - p_tank) of pumps (W)."""
    tank: Array = now.group("oil_node").state["pressure"][:, group.params["tank"][0].astype(int)]
    return np.asarray(group.state["flow"] * (group.state["pressure_now"] - tank))


@register
class OilPump(ActuatorType):
    """Pump that feeds a node from a tank. Its suction side never cavitates.

        Q = displacement * max_flow, at most   max_flow clamp((pressure - p)/band, 0, 1)       (pressure cut-off)
                                                power/p                                          (power limit)
                                                max_flow clamp((p_LS + margin - p)/band, 0, 1)  (load sensing)

    p_LS is the pressure of the load-sensing line. p_LS follows the maximum pressure at open working ports of valves
    with ``senses=True``, with a lag.
    """

    name: ClassVar[str] = "oil_pump"
    kernel_file: ClassVar[str] = "circuit.cuh"
    prefix: ClassVar[str] = "pump"
    references: ClassVar = {"circuit": ACTUATOR, "node": ACTUATOR, "tank": ACTUATOR}
    commands: ClassVar[tuple[str, ...]] = ("displacement",)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        CIRCUIT,
        Parameter("node", "-", "node at the outlet", signal=False),
        Parameter("tank", "-", "node at the inlet", signal=False),
        Parameter("max_flow", "m3/s", "flow at full displacement"),
        Parameter("pressure", "Pa", "cut-off pressure, at which the flow is zero"),
        Parameter("power", "W", "maximum hydraulic power; inf: no limit"),
        Parameter("band", "Pa", "pressure range in which cut-off and load sensing reduce the flow"),
        Parameter("load_sensing", "-", "1: keeps the pressure below the highest load pressure plus the margin"),
        Parameter("margin", "Pa", "pressure margin of load sensing"),
        Parameter("time_constant", "s", "time constant of the load-sensing line"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("load_pressure", "Pa", "pressure of the load-sensing line"),
        StateVariable("flow", "m3/s", "flow of the pump"),
        StateVariable("pressure_now", "Pa", "pressure at the outlet"),
    )
    readings: ClassVar[tuple[Reading, ...]] = (
        _command_reading("oil_pump", "displacement", "fraction of the full displacement, 0 to 1", 0.0),
        *_for_kind("oil_pump", (
            _state_reading("flow", "m3/s", "flow of the pump"),
            _state_reading("load_pressure", "Pa", "pressure of the load-sensing line"),
            Reading(
                "outlet_power", "W", "flow times pressure difference to the tank", read_outlet_power,
                "*out = w.KIND_flow(i) * (w.KIND_pressure_now(i) - w.oil_node_pressure(int(w.KIND_tank(i))));",
            ),
        )),
    )  # fmt: skip

    def default_command(self, spec: ActuatorSpec, name: str) -> float:
        """Return 1, the full displacement."""
        return 1.0

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the displacement command. Safe value: 0."""
        return UiHints(lower=0.0, upper=1.0, safe=0.0, springs=False)

    def check(self, group: Group) -> None:
        """Raise ModelError if flow, pressure, power or band is not positive, or margin or time constant is negative."""
        group.check_signs(("max_flow", "pressure", "power", "band"), ("margin", "time_constant"))


_CONSUMER = (
    CIRCUIT,
    Parameter("row", "-", "index of the cylinder or motor in its circuit", signal=False),
    Parameter("node_a", "-", "node of chamber A", signal=False),
    Parameter("node_b", "-", "node of chamber B", signal=False),
    Parameter("area_a", "m2", "piston area of chamber A, which extends (motor: displacement, m3/rad)"),
    Parameter("area_b", "m2", "piston area of chamber B (motor: displacement, m3/rad)"),
    Parameter("viscous_friction", "N s/m", "viscous friction (motor: N m s/rad)"),
    Parameter("dry_friction", "N", "dry friction (motor: N m)"),
    Parameter("brake_force", "N", "additional dry friction at brake command 1 (motor: N m)"),
    Parameter("moving_mass", "kg", "mass of the piston (motor: inertia of the rotor, kg m2)"),
)


def read_pressure(port: str, name: str = "pressure") -> Callable[[Group, StateReader], Array]:
    """Return a function that reads the state variable ``name`` of the node at a cylinder or motor port."""

    def read(group: Group, now: StateReader) -> Array:
        value: Array = now.group("oil_node").state[name]
        return value[:, group.params[f"node_{port}"][0].astype(int)]

    return read


def read_force(group: Group, now: StateReader) -> Array:
    """Return the oil force minus the viscous friction at time t: S_A p_A - S_B p_B - k v (N or N m)."""
    p = group.params
    pressures = [read_pressure(port)(group, now) for port in "ab"]
    drag = p["viscous_friction"] * now.axis_rate(group.axis)
    return np.asarray(p["area_a"] * pressures[0] - p["area_b"] * pressures[1] - drag)


def read_position(group: Group, now: StateReader) -> Array:
    """Return the stroke (m) or the angle (rad)."""
    return np.asarray(now.axis_value(group.axis) - group.params.get("length_offset", 0.0))


def _consumer_readings(kind: str, unit: str, force: str, offset: str) -> tuple[Reading, ...]:
    pressures = [f"w.oil_node_pressure(int(w.{kind}_node_{port}(i)))" for port in "ab"]
    drag = f"w.{kind}_viscous_friction(i) * axis_rate(w, w.{kind}_axis()[i])"
    effort = f"*out = w.{kind}_area_a(i) * {pressures[0]} - w.{kind}_area_b(i) * {pressures[1]} - {drag};"
    position = f"*out = axis_value(w, w.{kind}_axis()[i]){offset};"
    return (
        _command_reading(kind, "brake", "brake command, 0 to 1", 0.0),
        Reading("position", unit, "stroke or angle", read_position, position),
        Reading(
            "velocity", f"{unit}/s", "rate of the stroke or angle", lambda g, now: now.axis_rate(g.axis),
            f"*out = axis_rate(w, w.{kind}_axis()[i]);",
        ),
        Reading("pressure_a", "Pa", "pressure of chamber A", read_pressure("a"), f"*out = {pressures[0]};"),
        Reading("pressure_b", "Pa", "pressure of chamber B", read_pressure("b"), f"*out = {pressures[1]};"),
        *(
            Reading(
                f"void_{port}", "m3", f"void in chamber {port.upper()}", read_pressure(port, "void"),
                f"*out = w.oil_node_void(int(w.{kind}_node_{port}(i)));",
            )
            for port in "ab"
        ),
        Reading(force, "N" if unit == "m" else "N m", "S_A p_A - S_B p_B - k v", read_force, effort),
    )  # fmt: skip


class Consumer(ActuatorType):
    """Base class of cylinders and motors: friction, brake and moving mass."""

    kernel_file: ClassVar[str] = "circuit.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate",)
    commands: ClassVar[tuple[str, ...]] = ("brake",)

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the brake switch. Safe value: 1 (applied)."""
        idle = float(spec.params["brake_force"]) == 0.0
        return UiHints(lower=0.0, upper=1.0, safe=1.0, switch=True, springs=False, idle=idle)

    def check(self, group: Group) -> None:
        """Raise ModelError if an area is not positive, or if a friction, brake force or mass is negative."""
        group.check_signs(("area_a", "area_b"), ("viscous_friction", "dry_friction", "brake_force", "moving_mass"))

    def inertia(self, group: Group) -> Array | None:
        """Return the masses of the pistons (kg) or the inertias of the rotors (kg m2)."""
        return group.params["moving_mass"]

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add friction, brake and moving mass."""
        if velocity is not None:
            return
        p, mass = group.params, group.params["moving_mass"]
        brake = np.clip(work.command(group, "brake"), 0.0, 1.0)
        work.add_friction(group, p["dry_friction"] + brake * p["brake_force"])
        impulse, slope = self.end_stops(group, work)
        work.add_law(
            group, impulse + mass * work.rate[:, group.axis], slope + mass + work.kick_time * p["viscous_friction"]
        )

    def end_stops(self, group: Group, work: StepBuffers) -> tuple[Array | float, Array | float]:
        """Add the end stops, and return P and D of the impulse law P - D u of the end cushions."""
        return 0.0, 0.0


@register
class OilCylinder(LineActuator, Consumer):
    """Hydraulic cylinder between two pins, with end stops and cushions."""

    name: ClassVar[str] = "oil_cylinder"
    prefix: ClassVar[str] = "cylinder"
    picture: ClassVar[str | None] = "barrel_and_rod"
    references: ClassVar = {
        "circuit": ACTUATOR, "node_a": ACTUATOR, "node_b": ACTUATOR, "row": AS_IS,
        "body_a": BODY, "point_a": point_on("body_a"), "body_b": BODY, "point_b": point_on("body_b"),
    }  # fmt: skip
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *_CONSUMER,
        Parameter("length_offset", "m", "distance between the pins minus the stroke"),
        Parameter("stroke_min", "m", "lower stop"),
        Parameter("stroke_max", "m", "upper stop"),
        Parameter("cushion_stiffness", "N/m", "stiffness of the end cushions"),
        Parameter("cushion_damping", "N s/m", "damping of the end cushions"),
        Parameter("cushion_length", "m", "length of the end cushions"),
    )
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable(
            "oil_stroke", "m", "stroke that matches the oil volume; NaN: stroke of the geometry",
            lambda p: float("nan"), may_be_unset=True,
        ),
    )  # fmt: skip
    readings: ClassVar[tuple[Reading, ...]] = _consumer_readings(
        "oil_cylinder", "m", "force", " - w.oil_cylinder_length_offset(i)"
    )

    def check_model(self, specs: Sequence[ActuatorSpec], builder: Elements) -> None:
        """Raise ModelError if the initial stroke of a cylinder is not between its end stops."""
        for spec in specs:
            check_start(spec, builder)

    def check(self, group: Group) -> None:
        """Raise ModelError if the lower stop is above the upper stop, or a value of a cushion is negative."""
        super().check(group)
        group.check_signs((), CUSHION)
        if np.any(group.params["stroke_min"] > group.params["stroke_max"]):
            raise validate.fail(group.specs[0].element, "stroke_min is above stroke_max", "swap them")

    def check_together(self, groups: Mapping[str, Group]) -> None:
        """Raise ModelError if the oil volume of a chamber can become zero or negative."""
        groups[OilNode.name].type.check_together(groups)

    def end_stops(self, group: Group, work: StepBuffers) -> tuple[Array | float, Array | float]:
        """Add the end stops, and return P and D of the impulse law P - D u of the end cushions."""
        p, offset = group.params, group.params["length_offset"]
        work.add_limits(group, p["stroke_min"] + offset, p["stroke_max"] + offset)
        return cushions(group, work, work.axis_position[:, group.axis] - offset)


@register
class OilMotor(JointActuator, Consumer):
    """Hydraulic motor on a joint coordinate. ``area_a`` and ``area_b`` are equal to the displacement (m3/rad).

    If the inlet cavitates, flow and torque are proportional to the oil-filled fraction of the displacement.
    """

    name: ClassVar[str] = "oil_motor"
    prefix: ClassVar[str] = "hydraulic_motor"
    picture: ClassVar[str | None] = "motor_can"
    references: ClassVar = {
        "circuit": ACTUATOR, "node_a": ACTUATOR, "node_b": ACTUATOR, "row": AS_IS, "joint": JOINT, "axis": AS_IS,
    }  # fmt: skip
    parameters: ClassVar[tuple[Parameter, ...]] = _CONSUMER
    readings: ClassVar[tuple[Reading, ...]] = _consumer_readings("oil_motor", "rad", "torque", "")


@dataclass
class Parts:
    """Indices of a circuit's components by component type. Consumers (cylinders and motors) are pairs (type, index)."""

    nodes: list[int]
    valves: list[int]
    edges: list[int]
    pumps: list[int]
    consumers: list[tuple[str, int]]


def parts_of(group: Group, groups: dict[str, Group], k: int) -> Parts:
    """Return the components of circuit ``k``."""
    if (key := f"parts {k}") not in group.derived:

        def indices_of(kind: str) -> list[int]:
            found = groups[kind].params["circuit"][0] if kind in groups else np.zeros(0)
            return np.flatnonzero(found == k).tolist()

        consumers = [g for g in groups.values() if isinstance(g.type, Consumer)]
        by_row = {int(g.params["row"][0, n]): (g.type.name, n) for g in consumers for n in indices_of(g.type.name)}
        nodes, valves, edges, pumps = (indices_of(kind.name) for kind in (OilNode, OilValve, OilEdge, OilPump))
        group.derived[key] = Parts(nodes, valves, edges, pumps, [by_row[row] for row in range(len(by_row))])
    parts: Parts = group.derived[key]
    return parts
