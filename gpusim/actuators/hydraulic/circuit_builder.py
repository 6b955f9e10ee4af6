"""``ModelBuilder.add_hydraulic_circuit``, and the builder of hydraulic circuits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpusim import validate
from gpusim.actuators.hydraulic.cavitation import VAPOR_PRESSURE
from gpusim.actuators.hydraulic.circuit_parts import CHECK, COUNTERBALANCE, LEAK, ORIFICE, PIPE_BREAK, RELIEF, OilNode
from gpusim.actuators.spring import line_params
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.typing import Vector

UNLIMITED = float("inf")
_NO_EDGE = {
    "set_pressure": 0.0, "pilot_ratio": 0.0, "range": 1.0, "flow_limit": UNLIMITED, "time_constant": 0.0,
    "opening_time": 0.0, "node_pilot": -1, "initial_opening": 1.0, "initial_poppet": 1.0,
}  # fmt: skip


class HydraulicCircuit:
    """Builder of a hydraulic circuit. Each method adds a component and returns its index.

    Pressures are absolute (Pa). Nodes are given by their indices. Each component has a unique label. The signals are
    ``node.<label>...``, ``valve.<label>...``, ``edge.<label>...``, ``pump.<label>...``, ``cylinder.<label>...`` and
    ``hydraulic_motor.<label>...``. ``add_cylinder`` and ``add_motor`` return a :class:`Consumer`.

    Attributes:
        index: index of the circuit among the actuators.
        tank: node of the tank, which has a constant pressure.
    """

    def __init__(
        self, builder: ModelBuilder, label: str | None, tank_pressure: float, bulk: float, vapor: float = VAPOR_PRESSURE
    ) -> None:
        self._builder, self._nodes = builder, 0
        element = builder.element("actuator", label, "oil_circuit")
        self._bulk = validate.positive(element, "bulk_modulus", bulk)
        self._tank_pressure = validate.not_negative(element, "tank_pressure", tank_pressure)
        vapor = validate.not_negative(element, "vapor_pressure", vapor)
        validate.up_to(element, "vapor_pressure", vapor, "tank_pressure", self._tank_pressure, "Pa")
        self.index = int(builder.add_actuator("oil_circuit", label, {"consumers": [], "vapor_pressure": vapor}))
        self._spec = builder.actuators[self.index]
        self.tank = self.add_node(pressure=tank_pressure, fixed=True, label=f"{self._spec.label}_tank")

    def _add(self, kind: str, label: str | None, params: Mapping[str, Any]) -> int:
        return int(self._builder.add_actuator(kind, label, {"circuit": self.index, **params}))

    def _node(self, element: str, name: str, index: Any) -> int:
        actuators = self._builder.actuators
        known = isinstance(index, int) and 0 <= index < len(actuators)
        if not known or (spec := actuators[index]).kind != OilNode.name or spec.params["circuit"] != self.index:
            rule = f"{name} = {index!r} is not a node of circuit '{self._spec.label}'"
            raise validate.fail(element, rule, "give a node from add_node of this circuit, or its tank")
        return index

    def add_node(
        self, volume: float = 1e-3, pressure: float | None = None, bulk_modulus: float | None = None,
        fixed: bool = False, label: str | None = None,
    ) -> int:  # fmt: skip
        """Add a volume of oil, such as a line, a hose or a port.

        Args:
            volume: volume of the oil (m3).
            pressure: initial pressure (Pa). Default: pressure of the tank.
            bulk_modulus: effective bulk modulus of oil and walls (Pa). Default: bulk modulus of the circuit.
            fixed: True for a constant pressure, as in a tank or an ideal supply.
            label: unique name.
        """
        element = self._builder.element("actuator", label, "oil_node")
        value = self._tank_pressure if pressure is None else pressure
        bulk = self._bulk if bulk_modulus is None else bulk_modulus
        index = self._add("oil_node", label, {
            "index": self._nodes,
            "volume": validate.positive(element, "volume", volume),
            "bulk_modulus": validate.positive(element, "bulk_modulus", bulk),
            "initial_pressure": validate.not_negative(element, "pressure", value),
            "fixed": float(fixed),
        })  # fmt: skip
        self._nodes += 1
        return index

    def add_pump(
        self,
        node: int,
        flow: float,
        pressure: float,
        power: float = UNLIMITED,
        control: str = "pressure",
        margin: float = 1.5e6,
        band: float | None = None,
        time_constant: float = 0.02,
        label: str | None = None,
    ) -> int:
        """Add a pump. ``sim.control[label]`` is the fraction of the full displacement, 0 to 1 (initially 1).

        Args:
            node: node at the outlet of the pump.
            flow: flow at full displacement (m3/s).
            pressure: cut-off pressure, at which the flow is zero (Pa).
            power: maximum hydraulic power (W).
            control: "pressure" limits the pressure to the cut-off pressure. "load_sensing" also limits the pressure to
                the highest load pressure plus ``margin``.
            margin: pressure margin of load sensing (Pa).
            band: pressure range in which cut-off and load sensing reduce the flow (Pa). Default: 5 % of ``pressure``.
            time_constant: time constant of the load-sensing line (s).
            label: unique name.
        """
        element = self._builder.element("actuator", label, "oil_pump")
        validate.choice(element, "control", control, ("pressure", "load_sensing"))
        top = validate.positive(element, "pressure", pressure)
        return self._add("oil_pump", label, {
            "node": self._node(element, "node", node),
            "tank": self.tank,
            "max_flow": validate.positive(element, "flow", flow),
            "pressure": top,
            "power": validate.positive(element, "power", power, infinite=True),
            "band": 0.05 * top if band is None else validate.positive(element, "band", band),
            "load_sensing": float(control == "load_sensing"),
            "margin": validate.not_negative(element, "margin", margin),
            "time_constant": validate.not_negative(element, "time_constant", time_constant),
        })  # fmt: skip

    def add_valve(
        self,
        supply: int,
        port_a: int,
        port_b: int,
        flow_gain: float,
        drain_gain: float | None = None,
        tank: int | None = None,
        overlap_supply: float = 0.05,
        overlap_drain: float = -0.05,
        compensator_pressure: float = UNLIMITED,
        load_check: bool = True,
        frequency: float = 100.0,
        damping: float = 0.8,
        transition_pressure: float = 1e4,
        senses: bool = True,
        label: str | None = None,
    ) -> int:
        """Add a spool valve with the command ``sim.control[label]``, from -1 (supply to B) to 1 (supply to A).

        Args:
            supply, port_a, port_b: nodes at the supply and at the working ports.
            flow_gain: flow gain K of a fully open edge from the supply (m3/s/sqrt(Pa)).
            drain_gain: flow gain K of the edges to the tank. Default: ``flow_gain``.
            tank: node of the return line. Default: tank of the circuit.
            overlap_supply: overlap c1 of the supply edges, from 0 to below 1.
            overlap_drain: underlap c2 of the drain edges, between -1 and 1, negative for a closed-center valve.
            compensator_pressure: pressure drop over a supply edge above which the flow is constant (Pa).
            load_check: True to add check valves against flow from the working ports to the supply.
            frequency, damping: natural frequency (rad/s) and damping ratio of the spool.
            transition_pressure: pressure drop below which the flow through an edge is laminar (Pa).
            senses: True if load-sensing pumps use the load pressure of this valve.
            label: unique name.
        """
        element = self._builder.element("actuator", label, "oil_valve")
        nodes = {"p": supply, "t": self.tank if tank is None else tank, "a": port_a, "b": port_b}
        c1 = validate.number(element, "overlap_supply", overlap_supply)
        c2 = validate.number(element, "overlap_drain", overlap_drain)
        if not 0.0 <= c1 < 1.0 or not -1.0 < c2 < 1.0:
            rule = f"overlaps {c1:g} and {c2:g} are out of range"
            raise validate.fail(element, rule, "give 0 <= overlap_supply < 1 and -1 < overlap_drain < 1")
        for one, other, what in ((port_a, port_b, "ports A and B"), (supply, nodes["t"], "supply and tank")):
            if one == other:
                raise validate.fail(element, f"{what} are the same node", "give two nodes, or remove the valve")
        gain = validate.positive(element, "flow_gain", flow_gain)
        return self._add("oil_valve", label, {
            **{f"node_{port}": self._node(element, f"port {port}", node) for port, node in nodes.items()},
            "flow_gain": gain,
            "drain_gain": gain if drain_gain is None else validate.positive(element, "drain_gain", drain_gain),
            "transition_pressure": validate.positive(element, "transition_pressure", transition_pressure),
            "overlap_supply": c1,
            "overlap_drain": c2,
            "compensator_pressure": validate.positive(
                element, "compensator_pressure", compensator_pressure, infinite=True
            ),
            "load_check": float(load_check),
            "frequency": validate.positive(element, "frequency", frequency),
            "damping": validate.positive(element, "damping", damping),
            "senses": float(senses),
        })  # fmt: skip

    def _edge(self, kind: int, a: int, b: int, gain: float, transition: float, label: str | None, **values: Any) -> int:
        element = self._builder.element("actuator", label, "oil_edge")
        ends = self._node(element, "node_a", a), self._node(element, "node_b", b)
        if ends[0] == ends[1]:
            raise validate.fail(element, "begins and ends at the same node", "give two nodes")
        pilot = values.pop("node_pilot", -1)
        return self._add("oil_edge", label, _NO_EDGE | {
            "kind": kind,
            "node_a": ends[0],
            "node_b": ends[1],
            "node_pilot": pilot if pilot == -1 else self._node(element, "pilot", pilot),
            "gain": validate.positive(element, "gain", gain),
            "transition_pressure": validate.positive(element, "transition_pressure", transition),
            **{name: _checked(element, name, value) for name, value in values.items()},
        })  # fmt: skip

    def add_orifice(
        self, a: int, b: int, gain: float, opening: float = 1.0, transition_pressure: float = 1e4,
        label: str | None = None,
    ) -> int:  # fmt: skip
        """Add an orifice with the flow Q = opening K sqrt(drop). ``sim.control[label]`` is the opening, 0 to 1.

        Args:
            a, b: nodes at the ends.
            gain: flow gain K (m3/s/sqrt(Pa)).
            opening: initial opening, 0 to 1.
            transition_pressure: pressure drop below which the flow is laminar (Pa).
            label: unique name.
        """
        return self._edge(ORIFICE, a, b, gain, transition_pressure, label, initial_opening=opening)

    def add_hose(self, a: int, volume: float, gain: float, bulk_modulus: float = 5e8, label: str | None = None) -> int:
        """Add a hose at node ``a``. Return the node at its other end, which has the volume and compliance of the hose.

        Args:
            a: node at the inlet of the hose.
            volume: volume of the oil (m3).
            gain: flow gain K of the hose's flow resistance (m3/s/sqrt(Pa)).
            bulk_modulus: effective bulk modulus of hose and oil (Pa).
            label: label of the new node. The resistance is the edge ``<label>_line``.
        """
        end = self.add_node(volume, bulk_modulus=bulk_modulus, label=label)
        self.add_orifice(a, end, gain, label=f"{self._builder.actuators[end].label}_line")
        return end

    def add_pilot_line(self, a: int, time_constant: float, volume: float = 2e-5, label: str | None = None) -> int:
        """Add a pilot line with a damping orifice, and return its end node.

        The pressure at the end node follows the pressure at node ``a`` with a first-order lag.

        Args:
            a: node at the inlet of the line.
            time_constant: time constant of the lag (s).
            volume: oil volume behind the orifice (m3).
            label: label of the new node. The laminar orifice is the edge ``<label>_orifice``.
        """
        element = self._builder.element("actuator", label, "oil_node")
        time = validate.positive(element, "time_constant", time_constant)
        start = self._builder.actuators[self._node(element, "node_a", a)].params["initial_pressure"]
        end = self.add_node(volume, start, label=label)
        self.add_leak(a, end, volume / (self._bulk * time), label=f"{self._builder.actuators[end].label}_orifice")
        return end

    def add_check_valve(
        self, a: int, b: int, gain: float, cracking_pressure: float = 0.0, transition_pressure: float = 1e4,
        label: str | None = None,
    ) -> int:  # fmt: skip
        """Add a check valve from ``a`` to ``b``. The valve opens above the pressure drop ``cracking_pressure`` (Pa)."""
        return self._edge(CHECK, a, b, gain, transition_pressure, label, set_pressure=cracking_pressure)

    def add_relief_valve(
        self, a: int, pressure: float, gain: float, b: int | None = None, label: str | None = None
    ) -> int:
        """Add a relief valve from ``a`` to ``b`` (default: the tank). The flow is Q = gain max(0, drop - pressure).

        Args:
            a, b: nodes at the ends.
            pressure: pressure drop at which the valve opens (Pa).
            gain: flow per pressure drop above ``pressure`` (m3/s/Pa).
            label: unique name.
        """
        return self._edge(RELIEF, a, self.tank if b is None else b, gain, 1e4, label, set_pressure=pressure)

    def add_counterbalance_valve(
        self, load: int, valve: int, gain: float, set_pressure: float, pilot: int, pilot_ratio: float = 4.0,
        opening_range: float = 2e6, time_constant: float = 0.01, transition_pressure: float = 1e4,
        label: str | None = None,
    ) -> int:  # fmt: skip
        """Add a counterbalance (load-holding) valve. Oil flows freely from ``valve`` to ``load``.

        A poppet controls the flow from ``load`` to ``valve``. The poppet opens if p_load + pilot_ratio p_pilot exceeds
        ``set_pressure``.

        Args:
            load: node of the chamber that holds the load.
            valve: node at the control valve.
            gain: flow gain K of the open valve (m3/s/sqrt(Pa)).
            set_pressure: pressure at which the poppet starts to open (Pa), usually 1.3 times the maximum load pressure.
            pilot: node of the cylinder's opposite chamber, or of the motor's opposite port.
            pilot_ratio: factor of the pilot pressure.
            opening_range: pressure increase from the start of opening to the fully open valve (Pa).
            time_constant: time constant of the poppet (s).
            transition_pressure: pressure drop below which the flow is laminar (Pa).
            label: unique name.
        """
        return self._edge(
            COUNTERBALANCE, load, valve, gain, transition_pressure, label, node_pilot=pilot, set_pressure=set_pressure,
            pilot_ratio=pilot_ratio, range=opening_range, time_constant=time_constant, opening_time=time_constant,
            initial_poppet=0.0,
        )  # fmt: skip

    def add_pipe_break_valve(
        self, load: int, line: int, gain: float, flow_limit: float, time_constant: float = 0.01,
        transition_pressure: float = 1e4, opening_time: float = 0.2, label: str | None = None,
    ) -> int:  # fmt: skip
        """Add a pipe-break valve, which shuts if the flow from ``load`` to ``line`` exceeds ``flow_limit`` (m3/s).

        The valve stays shut until the pressure drop is below ``transition_pressure``. Flow from ``line`` to ``load`` is
        always possible, so lifting the load reopens the valve. The time constants (s) are ``time_constant`` for
        shutting and ``opening_time`` for opening. Set ``flow_limit`` to 1.5 times the maximum working flow, because the
        load speed overshoots after sudden changes of the command.
        """
        return self._edge(
            PIPE_BREAK, load, line, gain, transition_pressure, label, flow_limit=flow_limit,
            time_constant=time_constant, opening_time=opening_time,
        )  # fmt: skip

    def add_leak(self, a: int, b: int, gain: float, label: str | None = None) -> int:
        """Add a laminar leak with the flow Q = gain (p_a - p_b). ``gain`` is in m3/s/Pa."""
        return self._edge(LEAK, a, b, gain, 1e4, label)

    def add_cylinder(
        self,
        body_a: int,
        body_b: int,
        point_a: Vector | None = None,
        point_b: Vector | None = None,
        *,
        area_a: float,
        area_b: float,
        stroke_min: float,
        stroke_max: float,
        length_offset: float = 0.0,
        dead_volume: float | tuple[float, float] = 1e-4,
        pressure: tuple[float, float] | None = None,
        viscous_friction: float = 0.0,
        dry_friction: float = 0.0,
        brake_force: float = 0.0,
        piston_mass: float = 0.0,
        cushion_stiffness: float = 0.0,
        cushion_damping: float = 0.0,
        cushion_length: float = 0.0,
        at_a: Vector | None = None,
        at_b: Vector | None = None,
        label: str | None = None,
    ) -> Consumer:
        """Add a cylinder between two pins. The command ``sim.control[label]`` is the brake command, 0 (released) to 1.

        Args:
            body_a, body_b: bodies, -1 for the world.
            point_a, point_b: pins in the body frames (m).
            at_a, at_b: pins in the world frame (m) for the current poses of the bodies, instead of point_a and point_b.
            area_a, area_b: piston areas of the chambers A and B (m2). Pressure in A extends the cylinder.
            stroke_min, stroke_max: strokes at the end stops (m).
            length_offset: distance between the pins minus the stroke (m).
            dead_volume: minimum volume of each chamber and its lines (m3), one number or a pair for A and B.
            pressure: initial pressures of the chambers (Pa), one number or a pair. Default: pressure of the tank.
            viscous_friction: viscous friction (N s/m).
            dry_friction, brake_force: dry friction (N), and additional dry friction at full brake command (N).
            piston_mass: mass of piston and rod (kg). Gravity does not act on this mass.
            cushion_stiffness, cushion_damping, cushion_length: stiffness (N/m), damping (N s/m) and length (m) of the
                end cushions.
            label: unique name. The nodes are ``<label>_a`` and ``<label>_b``.

        Returns:
            Index of the cylinder, and the nodes of its chambers.
        """
        b = self._builder
        element = b.element("actuator", label, "oil_cylinder")
        params: dict[str, Any] = line_params(b, element, body_a, body_b, point_a, point_b, at_a, at_b)
        low, high = (
            validate.number(element, n, v) for n, v in (("stroke_min", stroke_min), ("stroke_max", stroke_max))
        )
        if not low < high:
            rule = f"stroke_min = {low:g} is not below stroke_max = {high:g}"
            raise validate.fail(element, rule, "give a greater stroke_max")
        areas = [validate.positive(element, n, v) for n, v in (("area_a", area_a), ("area_b", area_b))]
        dead = [validate.positive(element, "dead_volume", v) for v in _pair(dead_volume)]
        params |= {
            "length_offset": validate.number(element, "length_offset", length_offset),
            "stroke_min": low, "stroke_max": high,
            **{
                name: validate.not_negative(element, name, value)
                for name, value in (
                    ("cushion_stiffness", cushion_stiffness), ("cushion_damping", cushion_damping),
                    ("cushion_length", cushion_length),
                )
            },
        }  # fmt: skip
        # Nodes store the volume at zero stroke, which is negative if zero stroke is far outside the stops.
        volumes = dead[0] - areas[0] * low, dead[1] + areas[1] * high
        friction = viscous_friction, dry_friction, brake_force, piston_mass
        return self._consumer("oil_cylinder", label, params, areas, volumes, pressure, friction)

    def add_motor(
        self,
        joint: int,
        displacement: float,
        axis: int = 0,
        volume: float = 1e-4,
        pressure: tuple[float, float] | None = None,
        leakage: float = 0.0,
        viscous_friction: float = 0.0,
        dry_friction: float = 0.0,
        brake_torque: float = 0.0,
        rotor_inertia: float = 0.0,
        label: str | None = None,
    ) -> Consumer:
        """Add a hydraulic motor on a joint coordinate. ``sim.control[label]`` is the brake command, 0 (released) to 1.

        Args:
            joint: joint index.
            displacement: displacement per joint angle, including gears (m3/rad). Pressure at port A drives the joint in
                the positive direction.
            axis: index of the joint coordinate.
            volume: oil volume at each port, including lines (m3).
            pressure: initial pressures of the ports (Pa), one number or a pair. Default: pressure of the tank.
            leakage: leakage flow per pressure difference between the ports (m3/s/Pa).
            viscous_friction: viscous friction (N m s/rad).
            dry_friction, brake_torque: dry friction (N m), and additional dry friction at full brake command (N m).
            rotor_inertia: inertia along the coordinate (kg m2).
            label: unique name. The nodes are ``<label>_a`` and ``<label>_b``.

        Returns:
            Index of the motor, and the nodes of its ports.
        """
        element = self._builder.element("actuator", label, "oil_motor")
        params = {"joint": self._builder.check_joint(element, "joint", joint, axis), "axis": axis}
        size = validate.positive(element, "displacement", displacement)
        volume = validate.positive(element, "volume", volume)
        leak = validate.not_negative(element, "leakage", leakage)
        friction = viscous_friction, dry_friction, brake_torque, rotor_inertia
        motor = self._consumer("oil_motor", label, params, [size, size], (volume, volume), pressure, friction)
        if leak > 0.0:
            name = self._builder.actuators[motor.index].label
            self.add_leak(motor.node_a, motor.node_b, leak, label=f"{name}_leak")
        return motor

    def _consumer(
        self, kind: str, label: str | None, params: dict[str, Any], areas: list[float], volumes: tuple[float, float],
        pressure: tuple[float, float] | None, friction: tuple[float, float, float, float],
    ) -> Consumer:  # fmt: skip
        """Add a cylinder or motor with a node for each chamber or port."""
        b, consumers = self._builder, self._spec.params["consumers"]
        element = b.element("actuator", label, kind)
        name = label or f"{self._spec.label}_{kind.removeprefix('oil_')}{len(consumers)}"
        given = ("brake_force", "piston_mass") if kind == "oil_cylinder" else ("brake_torque", "rotor_inertia")
        names = ("viscous_friction", "dry_friction", "brake_force", "moving_mass")
        for key, reported, value in zip(names, (*names[:2], *given), friction, strict=True):
            params[key] = validate.not_negative(element, reported, value)
        starts = (self._tank_pressure,) * 2 if pressure is None else _pair(pressure)
        nodes = []
        for port, volume, start in zip("ab", volumes, starts, strict=True):
            nodes.append(self.add_node(1.0, start, label=f"{name}_{port}"))
            b.actuators[nodes[-1]].params["volume"] = volume
        params |= {
            "row": len(consumers),
            "node_a": nodes[0],
            "node_b": nodes[1],
            "area_a": areas[0],
            "area_b": areas[1],
        }
        index = self._add(kind, name, params)
        consumers.append(index)
        return Consumer(index, *nodes)


class Consumer:
    """Indices of a cylinder or motor, and of the nodes at its chambers or ports."""

    def __init__(self, index: int, node_a: int, node_b: int) -> None:
        self.index, self.node_a, self.node_b = index, node_a, node_b


def _pair(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, tuple | list) else (value, value)


def _checked(element: str, name: str, value: Any) -> float:
    number = validate.not_negative(element, name, value, infinite=name == "flow_limit")
    if name.startswith("initial_") and number > 1.0:
        raise validate.fail(element, f"opening = {number:g} is above 1", "give 0 to 1")
    if not number and name in ("range", "flow_limit"):
        raise validate.fail(element, f"{name} = 0 must be above zero", f"give {name} > 0")
    return number


@builder_method
def add_hydraulic_circuit(
    self: ModelBuilder, tank_pressure: float = 1e5, bulk_modulus: float = 1.5e9, label: str | None = None,
    vapor_pressure: float = VAPOR_PRESSURE,
) -> HydraulicCircuit:  # fmt: skip
    """Add an empty hydraulic circuit. Its methods add nodes, valves, pumps, cylinders and motors.

    Args:
        tank_pressure: absolute pressure in the tank (Pa).
        bulk_modulus: bulk modulus of the oil (Pa).
        label: unique name.
        vapor_pressure: absolute pressure at which the oil cavitates and voids open (Pa). The ``void`` signals contain
            the void volumes.

    Returns:
        Builder of the circuit.
    """
    return HydraulicCircuit(self, label, tank_pressure, bulk_modulus, vapor_pressure)
