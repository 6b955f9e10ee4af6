"""Hydraulic cylinder with spool valve, brake and end stops.

With ``coupling="implicit"``, the pressures after the step are linear in the piston velocity (hydraulics.py). One
constraint row contains oil force, friction and end stops. The solver solves this row together with the mechanism. With
``coupling="papers"`` (for comparisons), the piston first moves without the load, in steps of at most 0.1 ms. Then an
impulse couples the piston to the load. At the vapor pressure, a void opens in a chamber (cavitation.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.actuators.hydraulic import hydraulics
from gpusim.actuators.hydraulic.cavitation import MAX_HALVINGS, PRECISION
from gpusim.actuators.hydraulic.hydraulics import free_piston
from gpusim.actuators.spring import spring_law
from gpusim.description.actuator_kinds import (
    LINE_REFERENCES,
    ActuatorType,
    AxisMaker,
    Group,
    Parameter,
    Reading,
    StateReader,
    StateVariable,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.specs import ActuatorSpec
from gpusim.description.ui_hints import UiHints
from gpusim.typing import Array

PAPERS_SUBSTEP = 1e-4
# Fraction of the difference between integrated and geometric stroke that a step corrects.
VOLUME_SYNC = 0.1


def stroke(group: Group, work: StepBuffers) -> Array:
    """Return the stroke x = (distance between the pins) - length_offset (m)."""
    position: Array = work.axis_position[:, group.axis] - group.params["length_offset"]
    return position


def _state_reader(name: str) -> Any:
    def read(group: Group, now: StateReader) -> Array:
        return now.broadcast(group.state[name])

    return read


def _command_reader(name: str) -> Any:
    def read(group: Group, now: StateReader) -> Array:
        return now.control[:, group.control[name]]

    return read


def _supplied(p: Mapping[str, Any]) -> tuple[float, float]:
    """Return the usual range of chamber pressures: tank pressure to supply pressure (Pa)."""
    return p["tank_pressure"], p["supply_pressure"]


def read_stroke(group: Group, now: StateReader) -> Array:
    """Return the stroke x (m)."""
    return np.asarray(now.axis_value(group.axis) - group.params["length_offset"])


def read_velocity(group: Group, now: StateReader) -> Array:
    """Return the rate of the stroke (m/s)."""
    return now.axis_rate(group.axis)


def read_force(group: Group, now: StateReader) -> Array:
    """Return the oil force minus the viscous friction: S_A p_A - S_B p_B - k v (N)."""
    p, s = group.params, group.state
    oil = p["area_a"] * s["pressure_a"] - p["area_b"] * s["pressure_b"]
    force: Array = oil - p["viscous_friction"] * read_velocity(group, now)
    return force


_PARAMETERS = (
    ("length_offset", "m", "distance between the pins minus the stroke x"),
    ("area_a", "m2", "piston area of chamber A, which extends"),
    ("area_b", "m2", "piston area of chamber B"),
    ("volume_a", "m3", "volume of chamber A at x = 0, with dead volume"),
    ("volume_b", "m3", "volume of chamber B at x = 0, with dead volume"),
    ("bulk_modulus", "Pa", "bulk modulus of the oil"),
    ("hose_volume_a", "m3", "volume of the hose at chamber A"),
    ("hose_volume_b", "m3", "volume of the hose at chamber B"),
    ("hose_bulk_modulus", "Pa", "effective bulk modulus of hose and oil"),
    ("viscous_friction", "N s/m", "viscous friction k"),
    ("dry_friction", "N", "dry friction"),
    ("brake_force", "N", "additional dry friction at brake command 1"),
    ("stroke_min", "m", "lower stop"),
    ("stroke_max", "m", "upper stop"),
    ("supply_pressure", "Pa", "pressure of the supply"),
    ("tank_pressure", "Pa", "pressure of the tank"),
    ("flow_gain", "m3/s/sqrt(Pa)", "flow gain K of a fully open edge"),
    ("overlap_supply", "-", "overlap c1 of the supply edges"),
    ("overlap_drain", "-", "underlap c2 of the drain edges; closed center: below 0"),
    ("valve_gain", "-", "spool position at command 1"),
    ("valve_order", "-", "order of the spool dynamics, 1 or 2"),
    ("valve_frequency", "rad/s", "natural frequency of a second-order valve"),
    ("valve_damping", "-", "damping ratio of a second-order valve"),
    ("valve_time_constant", "s", "time constant of a first-order valve"),
    ("transition_pressure", "Pa", "pressure drop below which the flow is laminar"),
    ("linear_orifice", "-", "1: linear below the transition pressure; 0: smooth law"),
    ("anticavitation_gain", "m3/s/sqrt(Pa)", "flow gain K of the check valves from the tank"),
    ("piston_mass", "kg", "mass of piston and rod"),
    ("cushion_stiffness", "N/m", "stiffness of the end cushions"),
    ("cushion_damping", "N s/m", "damping of the end cushions"),
    ("cushion_length", "m", "length of the end cushions"),
    ("papers_coupling", "-", '1: coupling="papers"; 0: "implicit"'),
    ("vapor_pressure", "Pa", "absolute vapor pressure of the oil"),
)

CUSHION = ("cushion_stiffness", "cushion_damping", "cushion_length")
_POSITIVE = (
    "area_a", "area_b", "bulk_modulus", "hose_bulk_modulus", "flow_gain", "transition_pressure", "valve_gain",
    "valve_frequency", "valve_damping", "valve_time_constant",
)  # fmt: skip
_NOT_NEGATIVE = (
    "viscous_friction", "dry_friction", "brake_force", "supply_pressure", "anticavitation_gain", "piston_mass",
    *CUSHION, "hose_volume_a", "hose_volume_b",
)  # fmt: skip


def is_within(stroke: float, low: float, high: float) -> bool:
    """Return whether a stroke is between the end stops. The tolerance is 1 micrometer plus 0.1 % of the range."""
    margin = 1e-6 + 1e-3 * (high - low)
    return low - margin <= stroke <= high + margin


def check_start(spec: ActuatorSpec, builder: Elements) -> None:
    """Check that the initial stroke of a cylinder is between its end stops.

    Raises:
        ModelError: the stroke is not between the end stops.
    """
    p = spec.params
    ends = [
        p[f"point_{k}"] if p[f"body_{k}"] < 0 else builder.bodies[p[f"body_{k}"]].xform.apply(p[f"point_{k}"])
        for k in "ab"
    ]
    x = float(np.linalg.norm(ends[1] - ends[0])) - p["length_offset"]
    if not is_within(x, p["stroke_min"], p["stroke_max"]):
        rule = f"starts at the stroke {x:.6g} m, outside its stops {p['stroke_min']:g} to {p['stroke_max']:g} m"
        raise validate.fail(spec.element, rule, "move a pin, or change length_offset or the stops")


@register
class HydraulicCylinder(ActuatorType):
    """Hydraulic cylinder: oil force, friction and end stops along the line between two pins."""

    name: ClassVar[str] = "cylinder"
    kernel_file: ClassVar[str] = "hydraulic_cylinder.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate", "relinearize", "advance")
    kernel_scratch: ClassVar[tuple[str, ...]] = (
        "next_spool", "next_rate", "supply_a", "supply_b", "drain_a", "drain_b", "oil", "compliance_a", "compliance_b",
        "guess_a", "guess_b", "line_a", "line_b", "slope_a", "slope_b", "cushion_impulse", "cushion_slope",
        "free_velocity", "free_pressure_a", "free_pressure_b", "free_void_a", "free_void_b",
        "guess_speed",
    )  # fmt: skip
    prefix: ClassVar[str] = "cylinder"
    references = LINE_REFERENCES
    picture: ClassVar[str | None] = "barrel_and_rod"
    commands: ClassVar[tuple[str, ...]] = ("command", "brake")
    needs: ClassVar[tuple[str, ...]] = ("initial_pressure_a", "initial_pressure_b", "stop_restitution")
    nonlinear: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = tuple(Parameter(*p) for p in _PARAMETERS)
    variables: ClassVar[tuple[StateVariable, ...]] = (
        StateVariable("pressure_a", "Pa", "pressure of chamber A", lambda p: p["initial_pressure_a"]),
        StateVariable("pressure_b", "Pa", "pressure of chamber B", lambda p: p["initial_pressure_b"]),
        StateVariable("spool", "-", "spool position, -1 to 1"),
        StateVariable("spool_rate", "1/s", "rate of the spool"),
        StateVariable(
            "oil_stroke",
            "m",
            "stroke that matches the oil volume; NaN: stroke of the geometry",
            lambda p: float("nan"),
            may_be_unset=True,
        ),  # fmt: skip
        StateVariable("void_a", "m3", "void in chamber A"),
        StateVariable("void_b", "m3", "void in chamber B"),
    )
    voids: ClassVar = {"void_a": 1 << 20, "void_b": 1 << 21}
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading(
            "command", "-", "valve command, -1 to 1", _command_reader("command"), "*out = w.cylinder_command_now(i);",
            lambda p: (-1.0, 1.0),
        ),
        Reading(
            "brake", "-", "brake command, 0 to 1", _command_reader("brake"), "*out = w.cylinder_brake_now(i);",
            lambda p: (0.0, 1.0),
        ),
        Reading(
            "position", "m", "stroke", read_stroke,
            "*out = axis_value(w, w.cylinder_axis()[i]) - w.cylinder_length_offset(i);",
            lambda p: (p["stroke_min"], p["stroke_max"]),
        ),
        Reading(
            "velocity", "m/s", "rate of the stroke", read_velocity, "*out = axis_rate(w, w.cylinder_axis()[i]);"
        ),
        Reading(
            "pressure_a", "Pa", "pressure of chamber A", _state_reader("pressure_a"),
            "*out = w.cylinder_pressure_a(i);", _supplied,
        ),
        Reading(
            "pressure_b", "Pa", "pressure of chamber B", _state_reader("pressure_b"),
            "*out = w.cylinder_pressure_b(i);", _supplied,
        ),
        Reading("void_a", "m3", "void in chamber A", _state_reader("void_a"), "*out = w.cylinder_void_a(i);"),
        Reading("void_b", "m3", "void in chamber B", _state_reader("void_b"), "*out = w.cylinder_void_b(i);"),
        Reading(
            "spool", "-", "spool position", _state_reader("spool"), "*out = w.cylinder_spool(i);", lambda p: (-1.0, 1.0)
        ),
        Reading(
            "force", "N", "S_A p_A - S_B p_B - k v", read_force,
            "*out = w.cylinder_area_a(i) * w.cylinder_pressure_a(i) - w.cylinder_area_b(i) * w.cylinder_pressure_b(i)"
            " - w.cylinder_viscous_friction(i) * axis_rate(w, w.cylinder_axis()[i]);",
        ),
    )  # fmt: skip

    def ui_hints(self, model: Elements, spec: ActuatorSpec, name: str) -> UiHints:
        """Return the operator settings of the valve command or the brake command.

        The valve command is -1 (retract) to 1 (extend), with the safe value 0. The brake command has the safe value 1
        (applied).
        """
        if name == "brake":
            idle = float(spec.params["brake_force"]) == 0.0
            return UiHints(lower=0.0, upper=1.0, safe=1.0, switch=True, springs=False, idle=idle)
        return UiHints(lower=-1.0, upper=1.0, safe=0.0)

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        """Return the index of the axis row along the line between the pins."""
        p = spec.params
        ends = p["body_a"], p["point_a"], p["body_b"], p["point_b"]
        return maker.line_axis(spec.label, *ends, limit_restitution=p["stop_restitution"])

    def check_model(self, specs: Sequence[ActuatorSpec], builder: Elements) -> None:
        """Raise ModelError if the initial stroke of a cylinder is not between its end stops."""
        for spec in specs:
            check_start(spec, builder)

    def check(self, group: Group) -> None:
        """Raise ModelError if a chamber volume is not positive at some stroke, or if a parameter has the wrong sign."""
        p = group.params
        group.check_signs(_POSITIVE, _NOT_NEGATIVE)
        hydraulics.check_overlaps(group)
        low = p["volume_a"] + p["area_a"] * p["stroke_min"] + p["hose_volume_a"]
        high = p["volume_b"] - p["area_b"] * p["stroke_max"] + p["hose_volume_b"]
        for name, volume in (("A at stroke_min", low), ("B at stroke_max", high)):
            if np.any(volume <= 0.0):
                raise validate.fail(
                    group.specs[0].element,
                    f"chamber {name} has no volume left",
                    "give a larger volume or a shorter stroke",
                )
        if np.any(p["stroke_min"] > p["stroke_max"]):
            raise validate.fail(group.specs[0].element, "stroke_min is above stroke_max", "swap them")
        if np.any((p["vapor_pressure"] < 0.0) | (p["vapor_pressure"] > p["tank_pressure"])):
            rule = "vapor_pressure is negative or above tank_pressure"
            raise validate.fail(group.specs[0].element, rule, "give absolute pressures with 0 <= vapor <= tank")

    def inertia(self, group: Group) -> Array | None:
        """Return the masses of the pistons (kg)."""
        return group.params["piston_mass"]

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Move the valve spools once per substep. Linearize the oil force at the latest piston velocity."""
        if velocity is None:
            self._begin(group, work)
        else:
            lines, old = work.scratch["cylinder.lines"], work.scratch["cylinder.guess"]
            guess, slope = work.circuit.refit(lines[0] - lines[1] * velocity, old, velocity)
            # Converged worlds keep their linearization while other worlds continue.
            if not work.active.all():
                guess, slope = np.where(work.active, guess, old), np.where(work.active, slope, lines[2])
                velocity = np.where(work.active, velocity, work.circuit.speed)
            work.scratch["cylinder.guess"], work.scratch["cylinder.slope"] = guess, slope
            work.circuit.speed = velocity
        self._implicit_law(group, work)

    def _begin(self, group: Group, work: StepBuffers) -> None:
        p, s = group.params, group.state
        position, rate, mean = hydraulics.second_order_valve(
            s["spool"], s["spool_rate"], work.command_now(group, "command"),
            p["valve_gain"], p["valve_frequency"], p["valve_damping"], work.h,
        )  # fmt: skip
        slow_position, slow_mean = hydraulics.first_order_valve(
            s["spool"], work.command_now(group, "command"), p["valve_gain"], p["valve_time_constant"], work.h
        )
        first = p["valve_order"] < 1.5
        work.scratch["cylinder.spool"] = np.stack(
            np.broadcast_arrays(np.where(first, slow_position, position), np.where(first, 0.0, rate))
        )
        openings = hydraulics.edge_openings(np.where(first, slow_mean, mean), p["overlap_supply"], p["overlap_drain"])
        x = stroke(group, work)
        oil = np.where(np.isnan(s["oil_stroke"]), x, s["oil_stroke"])
        pressure, void = (np.stack([s[name] for name in names]) for names in (PRESSURES, VOIDS))
        speed = work.rate[:, group.axis]
        compliances = hydraulics.compliances(p, hydraulics.middle_stroke(p, oil, speed, work.h))
        work.circuit = circuit(group, openings, (pressure, void, compliances, work.h))
        work.circuit.speed = speed
        work.scratch["cylinder.oil"] = oil
        work.scratch["cylinder.compliance"] = work.circuit.compliance
        guess, slope = work.circuit.begin(pressure)
        work.scratch["cylinder.guess"], work.scratch["cylinder.slope"] = guess, slope
        brake = np.clip(work.command(group, "brake"), 0.0, 1.0)
        work.add_friction(group, p["dry_friction"] + brake * p["brake_force"])
        offset = p["length_offset"]
        work.add_limits(group, p["stroke_min"] + offset, p["stroke_max"] + offset)
        work.scratch["cylinder.cushion"] = np.stack(cushions(group, work, x))
        if np.any(p["papers_coupling"] > 0.5):
            work.scratch["cylinder.free"] = free_piston(group, work, x)

    def _implicit_law(self, group: Group, work: StepBuffers) -> None:
        """Return P and D of the impulse law P - D u of the oil."""
        p, scratch = group.params, work.scratch
        a, b = work.circuit.lines(scratch["cylinder.guess"], scratch["cylinder.slope"])
        scratch["cylinder.lines"] = np.stack([a, b, scratch["cylinder.slope"]])
        kick, mass = work.kick_time, p["piston_mass"]
        constant = p["area_a"] * a[0] - p["area_b"] * a[1]
        slope = p["area_a"] * b[0] - p["area_b"] * b[1] + p["viscous_friction"]
        before = work.rate[:, group.axis]
        impulse, drag = kick * constant + mass * before, kick * slope + mass
        if "cylinder.free" in scratch:
            papers = p["papers_coupling"] > 0.5
            impulse = np.where(papers, mass * scratch["cylinder.free"][0], impulse)
            drag = np.where(papers, mass, drag)
        cushion = scratch["cylinder.cushion"]
        work.add_law(group, impulse + cushion[0], drag + cushion[1])

    def advance(self, group: Group, work: StepBuffers) -> None:
        """Update the chamber pressures with the solved piston velocity."""
        s, scratch = group.state, work.scratch
        oil = scratch["cylinder.oil"]
        speed = work.rate_next[:, group.axis]
        velocity = speed + VOLUME_SYNC * (stroke(group, work) - oil) / work.h
        lines = scratch["cylinder.lines"]
        pressures, voids = work.circuit.settled(lines[0] - lines[1] * velocity, scratch["cylinder.guess"], velocity)
        if "cylinder.free" in scratch:
            papers, free = group.params["papers_coupling"] > 0.5, scratch["cylinder.free"]
            pressures, voids = np.where(papers, free[1:3], pressures), np.where(papers, free[3:5], voids)
        s["pressure_a"], s["pressure_b"] = pressures
        s["void_a"], s["void_b"] = voids
        s["spool"], s["spool_rate"] = scratch["cylinder.spool"]
        s["oil_stroke"] = oil + work.h * velocity


def cushions(group: Group, work: StepBuffers, x: Array) -> tuple[Array, Array]:
    """Return P and D (num_worlds, n) of the end cushions. A cushion is a one-sided spring with ``cushion_length``."""
    p = group.params
    impulse, slope = np.zeros_like(x), np.zeros_like(x)
    if not np.any(p["cushion_stiffness"] + p["cushion_damping"] > 0.0):
        return impulse, slope
    into_low = x - (p["stroke_min"] + p["cushion_length"])
    into_high = x - (p["stroke_max"] - p["cushion_length"])
    for depth, inside in ((into_low, into_low < 0.0), (into_high, into_high > 0.0)):
        law = spring_law(work, group.axis, p["cushion_stiffness"], p["cushion_damping"], depth)
        impulse += np.where(inside, law[0], 0.0)
        slope += np.where(inside, law[1], 0.0)
    return impulse, slope


PRESSURES, VOIDS = ("pressure_a", "pressure_b"), ("void_a", "void_b")
Start = tuple[Array, Array, Array, float]
"""Pressures (Pa), voids (m3) and compliances V/beta (m3/Pa) of both chambers (2, worlds, n), and step size (s)."""


def circuit(group: Group, openings: tuple[Array, Array, Array, Array], start: Start) -> Circuit:
    """Return the :class:`Circuit` for given valve openings. Each chamber has edges to supply, tank and check valve."""
    p = group.params
    if not group.derived:
        supply, tank = p["supply_pressure"], p["tank_pressure"]
        check, linear = p["anticavitation_gain"], p["linear_orifice"] > 0.5
        group.derived["reference"] = np.stack(np.broadcast_arrays(supply, tank, tank))[:, None]
        group.derived["area"] = np.stack(np.broadcast_arrays(p["area_a"], -p["area_b"]))
        group.derived["linear"] = linear if linear.any() else None
        group.derived["check"] = check if (check > 0.0).any() else None
    derived = group.derived
    opened = np.stack([openings[0], openings[2], openings[1], openings[3]]) * p["flow_gain"]
    return Circuit(
        opened.reshape(2, 2, *opened.shape[1:]),
        derived["reference"],
        derived["area"],
        p["transition_pressure"],
        derived["linear"],
        derived["check"],
        p["vapor_pressure"],
        *start,
    )


@dataclass
class Circuit:
    """Valve edges and oil of both chambers of n cylinders.

    ``opened`` is the flow gain K times the opening of each edge, (edges, 2, worlds, n). ``reference`` is the pressure
    at the outer end of each edge (supply, tank, tank), (3, 1, worlds, n). All other arrays are (2, worlds, n), with the
    first axis for the chambers. ``pressure``, ``void`` and ``compliance`` are values at the start of the step.
    """

    opened: Array
    reference: Array
    area: Array
    transition: Array
    linear: Array | None
    check: Array | None
    vapor: Array
    pressure: Array
    void: Array
    compliance: Array
    h: float
    speed: Any = None
    """Piston velocity in the last solver pass (worlds, n)."""

    def lines(self, guess: Array, slope: Array) -> tuple[Array, Array]:
        """Return the chamber pressures after the step as linear functions ``p+ = a - b v`` of the piston velocity v.

        Args:
            guess: pressures at which to compute the conductances (flow / pressure drop), (2, worlds, n).
            slope: coefficient b of chambers with a void after the step, and NaN for other chambers, (2, worlds, n).

        Returns:
            a (Pa) and b (Pa s/m), both (2, worlds, n).
        """
        total, inflow = self._edges(guess)
        a, b = hydraulics.chamber(self.pressure, self.compliance, self.area, total, inflow - self.void / self.h, self.h)
        empty = ~np.isnan(slope)
        return np.where(empty, self.vapor + slope * self.speed, a), np.where(empty, slope, b)

    def _edges(self, guess: Array) -> tuple[Array, Array]:
        """Return the sums of G and G p_ref over all edges. G is the conductance, p_ref the reference pressure."""
        supply, tank = self.reference[0], self.reference[1]
        drop = self.reference[:2] - guess
        conductance = hydraulics.edge_conductance(self.opened, drop, self.transition, self.linear)
        total = conductance[0] + conductance[1]
        inflow = conductance[0] * supply + conductance[1] * tank
        if self.check is not None:
            # check valve: flow into the chamber only
            valve = hydraulics.edge_conductance(self.check, drop[1], self.transition, self.linear)
            valve = np.where(drop[1] > 0.0, valve, 0.0)
            total, inflow = total + valve, inflow + valve * tank
        return total, inflow

    def _balance(self, p: Array, velocity: Array) -> Array:
        """Return the residual of the flow balance of each chamber at pressure p (m3/s): new void volume / step size."""
        total, inflow = self._edges(p)
        stored = self.compliance * (p - self.pressure) + self.void
        return np.asarray(stored / self.h - (inflow - total * p) + self.area * velocity)

    def begin(self, pressure: Array) -> tuple[Array, Array]:
        """Return the initial guesses of the pressures, and the slopes of :meth:`lines`."""
        return self.refit(pressure, np.full_like(pressure, np.inf), self.speed)

    def refit(self, p: Array, guess: Array, velocity: Array) -> tuple[Array, Array]:
        """Return improved guesses of the pressures, and the slopes of :meth:`lines`."""
        low = (self.void != 0.0) | (guess == self.vapor) | ((p < self.vapor) & (guess < self.vapor))
        if not low.any():
            return p, np.full_like(p, np.nan)
        vapor, change = np.broadcast_to(self.vapor, p.shape), velocity - self.speed
        empty = low & (self._balance(vapor, velocity) > 0.0)
        back = (guess > vapor) & (guess < np.inf) & (change * self.area > 0.0)
        slope = np.where(back, (guess - vapor) / np.where(back, change, 1.0), 0.0)
        return np.where(empty, vapor, np.where(low, np.maximum(p, vapor), p)), np.where(empty, slope, np.nan)

    def settled(self, p: Array, guess: Array, velocity: Array) -> tuple[Array, Array]:
        """Return the pressures (Pa) and void volumes (m3) after the step, for a piston velocity."""
        low = (self.void != 0.0) | (p < self.vapor) | (guess == self.vapor)
        void = np.zeros_like(p)
        if not low.any():
            return p, void
        vapor = np.broadcast_to(self.vapor, p.shape).astype(np.float64)
        residual = self._balance(vapor, velocity)
        # Upper bound: the pressure of the closed chamber, or the maximum pressure outside an edge.
        closed = self.pressure - (self.h * self.area * velocity + self.void) / self.compliance
        below, above = vapor, np.maximum(np.maximum(closed, self.reference.max(axis=0)), vapor)
        for _ in range(MAX_HALVINGS):
            middle = 0.5 * (below + above)
            over = self._balance(middle, velocity) > 0.0
            below, above = np.where(over, below, middle), np.where(over, middle, above)
            if not (low & (above - below > PRECISION * above)).any():
                break
        found = np.where(residual > 0.0, vapor, 0.5 * (below + above))
        return np.where(low, found, p), np.where(low & (residual > 0.0), self.h * residual, void)
