"""Hydraulics of arms and undercarriages: pumps, spool valves, relief valves, cylinders and motors.

The command of a spool valve has the same label as the drive. ``sim.control["boom"] = 1`` extends the cylinder of the
drive "boom". Labels of cylinders end with "_cylinder". Labels of motors end with "_motor".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpusim import validate
from gpusim.actuators.hydraulic.circuit_builder import Consumer, HydraulicCircuit
from gpusim.actuators.hydraulic.hydraulic_cylinder import is_within
from gpusim.builder.builder import ModelBuilder
from gpusim.machines.arms import BoomArm
from gpusim.machines.holding import (
    FREE_DROP,
    LAMINAR,
    MAX_PRESSURE,
    RETURN,
    Balance,
    HoldingValve,
    Lowering,
    holding_valves,
    orifice_flow,
    orifice_gain,
)
from gpusim.machines.planar_arm import Ram, locate

RELIEF_RISE = 2e6
"""Pressure rise (Pa) of a port relief valve from its opening to the spool's full flow."""
HOSE_VOLUME = 2e-4
"""Oil volume between a holding valve and the spool, m3."""
OVERLAP = 0.05
"""Dead band of a spool, as a fraction of the spool's full travel."""


@dataclass(frozen=True)
class Spool:
    """The spool valve of a drive.

    Attributes:
        flow: flow (m3/s) from the pump through the fully open spool, at the pressure drop ``drop``.
        drop: pressure drop (Pa) at which ``flow`` applies.
        drain: flow gain to the tank divided by the flow gain from the pump. ``drain`` also scales the flow gain of
            holding valves. A retracting cylinder returns more oil than it receives. For a thick rod, set ``drain`` to
            piston area / rod-side area.
        compensated: if True, the flow depends only on the command, not on the load. The pump must supply the load
            pressure plus ``drop``.
        frequency: natural frequency (rad/s) of the spool.
    """

    flow: float
    drop: float = 6e5
    drain: float = 1.0
    compensated: bool = True
    frequency: float = 60.0

    def gain(self, element: str) -> float:
        """Check the parameters and return the flow gain K (m3/s/sqrt(Pa)) of the opening from the pump."""
        flow, drop = (validate.positive(element, f"spool.{n}", getattr(self, n)) for n in ("flow", "drop"))
        validate.positive(element, "spool.drain", self.drain)
        return orifice_gain(flow, drop)


@dataclass(frozen=True)
class PowerPack:
    """A hydraulic circuit with one pump and one supply line.

    Attributes:
        circuit: the hydraulic circuit, to which you can add components.
        line: node of the circuit that supplies the valves.
        pump: index of the pump in the circuit.
    """

    circuit: HydraulicCircuit
    line: int
    pump: int


@dataclass(frozen=True)
class Drive:
    """A cylinder or motor with its spool valve.

    Attributes:
        label: label of the valve's command.
        index: actuator index of the cylinder or motor.
        node_a, node_b: nodes of the cylinder's two chambers, or of the motor's two sides.
        port_a, port_b: nodes at the two ports of the spool valve. Optional holding valves connect a port to a chamber.
        valve: index of the valve.
    """

    label: str
    index: int
    node_a: int
    node_b: int
    port_a: int
    port_b: int
    valve: int


@dataclass(frozen=True)
class ArmCylinder:
    """A cylinder between two parts of an arm.

    Attributes:
        label: label of the valve's command.
        start, end: names of the parts that carry the barrel and the rod, such as "base" and "boom".
        pins: positions (x, z) (m) of the pins on ``start`` and ``end``, each in the frame of its part. The frame of the
            base is the arm's frame.
        bore, rod: diameters (m) of the bore and the rod.
        stroke: stroke (m) of the piston.
        spool: the spool valve.
        extension: extension (m) of the rod in the initial pose (default: half of the stroke).
        retracted: alternative to ``extension``: distance (m) between the pins when the rod is fully retracted.
        holding: counterbalance valves.
        relief: opening pressure (Pa) of the relief valves. The relief valves pass the spool's full flow at ``relief`` +
            2e6 Pa. With ``relief=None``, the drive has neither relief valves nor anticavitation valves.
        back_pressure: initial pressure (Pa) of the unloaded chamber.
        viscous_friction, dry_friction, piston_mass: viscous friction (N s/m), dry friction (N) and mass (kg) of the
            piston.
        dead_volume: minimum volume (m3) of each chamber.
    """

    label: str
    start: str
    end: str
    pins: tuple[tuple[float, float], tuple[float, float]]
    bore: float
    rod: float
    stroke: float
    spool: Spool
    extension: float | None = None
    retracted: float | None = None
    holding: HoldingValve | Sequence[HoldingValve] = ()
    relief: float | None = 3e7
    back_pressure: float = 1e6
    viscous_friction: float = 4000.0
    dry_friction: float = 0.0
    piston_mass: float = 8.0
    dead_volume: float = 2e-4

    def areas(self, element: str) -> tuple[float, float]:
        """Return the piston area and the rod-side area (m2)."""
        return piston_areas(element, self.bore, self.rod)

    def lowering(
        self, force: float, command: float = 1.0, line_pressure: float | None = None, return_pressure: float = RETURN
    ) -> Lowering:
        """Compute the speed at which the cylinder lowers a load through its holding valve.

        The docstring of ``holding.py`` contains the equations.

        The method assumes that the pump has enough flow and power, and that the relief valves stay closed.

        Args:
            force: force (N) of the load, positive if the load pressurizes the chamber with the holding valve.
            command: command of the spool, 0 to 1.
            line_pressure: pressure (Pa) at the spool's inlet. Default for a compensated spool: the minimum pressure at
                which the cylinder reaches the commanded speed. Below full flow, a pump with ``control="pressure"``
                supplies at least its cut-off pressure minus ``band``.
            return_pressure: pressure (Pa) of the line to the tank, as in ``add_power_pack``.

        Returns:
            The steady speed and the pressures. The field ``pump`` is the line pressure that this speed requires.

        Raises:
            ModelError: a number is invalid, the cylinder does not have exactly one holding valve, ``force`` alone opens
                the valve, or ``line_pressure`` does not open the valve.
        """
        element = f"cylinder '{self.label}'"
        valves = holding_valves(element, self.holding)
        if len(valves) != 1:
            raise validate.fail(element, f"has {len(valves)} holding valves", "lowering needs exactly one")
        fraction = validate.number(element, "command", command)
        if not OVERLAP < fraction <= 1.0:
            raise validate.fail(element, f"command = {command!r} moves no oil", f"give above {OVERLAP:g}, up to 1")
        balance = self._balance(element, valves[0], force, (fraction - OVERLAP) / (1.0 - OVERLAP), return_pressure)
        if line_pressure is None and not self.spool.compensated:
            raise validate.fail(element, "its spool's flow depends on the pressure", "give line_pressure")
        max_pressure = math.inf if line_pressure is None else validate.positive(element, "line_pressure", line_pressure)
        if (min_pressure := balance.pressures(0.0)[2]) >= max_pressure:
            rule = f"line_pressure = {max_pressure:.4g} does not open its holding valve"
            raise validate.fail(element, rule, f"give more than {min_pressure:.4g} Pa, or another pilot_ratio")
        drop = self.spool.drop if self.spool.compensated else max_pressure
        speed = balance.speed(orifice_flow(balance.supply, drop) / balance.areas[1], max_pressure)
        pressures = balance.pressures(speed)
        if pressures[1] >= MAX_PRESSURE:
            raise validate.fail(element, "no pressure opens its holding valve far enough", "give a higher spool.drain")
        first = "ab".index(valves[0].chamber)
        return Lowering(speed, pressures[first], pressures[1 - first], pressures[2])

    def _balance(
        self, element: str, valve: HoldingValve, force: float, opening: float, return_pressure: float
    ) -> Balance:
        """Set up the equations of ``holding.py`` for the spool opening ``opening`` (0 to 1)."""
        spool, sides = spool_of(element, self.spool), self.areas(element)
        areas = sides if valve.chamber == "a" else sides[::-1]
        load = validate.number(element, "force", force) - validate.not_negative(
            element, "dry_friction", self.dry_friction
        )
        if load / areas[0] >= valve.pressure:
            rule = f"force = {force:g} causes {load / areas[0]:.4g} Pa, which opens the holding valve"
            raise validate.fail(element, rule, "give a holding.pressure about 1.3 times as high")
        gain = opening * spool.gain(element)
        return Balance(
            valve, areas, load, validate.not_negative(element, "viscous_friction", self.viscous_friction),
            gain, gain * spool.drain, orifice_gain(spool.flow * spool.drain, FREE_DROP),
            validate.not_negative(element, "return_pressure", return_pressure),
        )  # fmt: skip


def spool_of(element: str, spool: Any) -> Spool:
    """Return ``spool``, or raise a ModelError if ``spool`` is not a Spool."""
    if not isinstance(spool, Spool):
        raise validate.fail(element, f"spool = {spool!r} is not a Spool", "give gpusim.machines.Spool(flow)")
    return spool


def piston_areas(element: str, bore: Any, rod: Any) -> tuple[float, float]:
    """Return the piston area and the rod-side area (m2) for two diameters (m)."""
    big, small = validate.positive(element, "bore", bore), validate.positive(element, "rod", rod)
    if small >= big:
        raise validate.fail(element, f"rod = {small:g} is not below bore = {big:g}", "give a thinner rod")
    return 0.25 * math.pi * big**2, 0.25 * math.pi * (big**2 - small**2)


def holding_pressures(force: float, areas: tuple[float, float], back_pressure: float) -> tuple[float, float]:
    """Return the pressures (Pa) of both chambers that produce a cylinder force (N).

    The pressure of the unloaded chamber is ``back_pressure``.
    """
    neutral_force = back_pressure * (areas[0] - areas[1])
    if force >= neutral_force:
        return (force + back_pressure * areas[1]) / areas[0], back_pressure
    return back_pressure, (back_pressure * areas[0] - force) / areas[1]


def add_power_pack(
    b: ModelBuilder,
    flow: float,
    pressure: float,
    power: float = math.inf,
    control: str = "load_sensing",
    margin: float = 2e6,
    band: float = 2e6,
    volume: float = 4e-3,
    relief: float | None = None,
    return_pressure: float = RETURN,
    label_prefix: str = "",
) -> PowerPack:
    """Add the hydraulic circuit "oil" with the pump "pump", which feeds the node "line".

    Args:
        b: the builder.
        flow, pressure, power, control, margin, band: parameters of the pump, as in ``HydraulicCircuit.add_pump``.
        volume: oil volume (m3) of the line.
        relief: opening pressure (Pa) of the line's relief valve (default: 1.1 times ``pressure``). The line's relief
            valve passes the pump's flow at ``relief`` + 2e6 Pa.
        return_pressure: absolute pressure (Pa) of the line to the tank. A higher pressure prevents cavitation in the
            cylinders.
        label_prefix: prefix of the labels.

    Raises:
        ModelError: a number is invalid. ``finalize`` also raises a ModelError if the circuit has no cylinder and no
            motor.
    """
    element = f"power pack '{label_prefix}'" if label_prefix else "power pack"
    max_pressure, max_flow = validate.positive(element, "pressure", pressure), validate.positive(element, "flow", flow)
    relief_pressure = 1.1 * max_pressure if relief is None else validate.positive(element, "relief", relief)
    if relief_pressure < max_pressure:
        rule = f"relief = {relief_pressure:g} is below the pump's pressure = {max_pressure:g}"
        raise validate.fail(element, rule, "give a higher relief pressure, so that the pump's cut-off acts first")
    if max_pressure <= validate.not_negative(element, "return_pressure", return_pressure):
        rule = f"pressure = {max_pressure:g} is not above return_pressure = {return_pressure:g}, so no oil flows"
        raise validate.fail(element, rule, "give a higher pressure, such as 2e7")
    oil = b.add_hydraulic_circuit(return_pressure, label=f"{label_prefix}oil")
    start = min(margin, max_pressure) if control == "load_sensing" else max_pressure
    line = oil.add_node(validate.positive(element, "volume", volume), start, label=f"{label_prefix}line")
    pump = oil.add_pump(line, max_flow, max_pressure, power, control, margin, band, label=f"{label_prefix}pump")
    oil.add_relief_valve(line, relief_pressure, max_flow / RELIEF_RISE, label=f"{label_prefix}line_relief")
    return PowerPack(oil, line, pump)


def add_arm_cylinders(
    b: ModelBuilder,
    arm: BoomArm,
    pack: PowerPack,
    cylinders: Sequence[ArmCylinder],
    hold: bool = True,
    forces: Sequence[tuple[Any, Any, Any]] = (),
) -> dict[str, Drive]:
    """Add all cylinders of an arm to a circuit. The initial pressures hold the arm in its initial pose.

    Add all links and linkages before the cylinders, since ``arm.static(forces=...)`` gives the pressures.

    Args:
        b: the builder.
        arm: from ``add_boom_arm``.
        pack: from ``add_power_pack``.
        cylinders: the cylinders, at least one for each hinge.
        hold: if False, both chambers of each cylinder start at ``ArmCylinder.back_pressure``.
        forces: initial loads in addition to the arm's weight, in the format of ``arm.static``.

    Returns:
        A dict: label -> drive.

    Raises:
        ModelError: a number is invalid, a cylinder cannot reach the initial pose, or a hinge has no cylinder.
    """
    validate.instance("arm cylinders", "arm", arm, BoomArm, "give what add_boom_arm returned")
    validate.instance(arm.element, "pack", pack, PowerPack, "give what add_power_pack returned")
    listed = isinstance(cylinders, list | tuple)
    if not listed or not cylinders or not all(isinstance(c, ArmCylinder) for c in cylinders):
        rule = f"cylinders = {cylinders!r} are not ArmCylinders"
        raise validate.fail(arm.element, rule, "give a list of gpusim.machines.ArmCylinder(label, start, end, pins)")
    offsets = {}
    known = list(arm.mechanism.rams)
    try:
        for cylinder in cylinders:
            offsets[cylinder.label] = _add_ram(arm, cylinder)
        push = arm.static(forces=forces).forces if hold else {}
    except Exception:
        arm.mechanism.rams[:] = known
        raise
    drives = {}
    for c in cylinders:
        element = f"cylinder '{arm.label_prefix}{c.label}'"
        areas, back = c.areas(element), validate.not_negative(element, "back_pressure", c.back_pressure)
        pressure = holding_pressures(push[c.label], areas, back) if hold else (back, back)
        poses = arm.poses()
        pins = [locate(poses[part], complex(*pin)) for part, pin in zip((c.start, c.end), c.pins, strict=True)]
        ends = [arm.world(b, pin).position for pin in pins]
        consumer = pack.circuit.add_cylinder(
            arm.bodies[c.start], arm.bodies[c.end], at_a=ends[0], at_b=ends[1], area_a=areas[0], area_b=areas[1],
            stroke_min=0.0, stroke_max=c.stroke, length_offset=offsets[c.label], dead_volume=c.dead_volume,
            pressure=pressure, viscous_friction=c.viscous_friction, dry_friction=c.dry_friction,
            piston_mass=c.piston_mass, label=f"{arm.label_prefix}{c.label}_cylinder",
        )  # fmt: skip
        drives[c.label] = add_drive_valves(
            pack, consumer, f"{arm.label_prefix}{c.label}", c.spool, c.relief, c.holding, pressure
        )
    return drives


def _add_ram(arm: BoomArm, c: ArmCylinder) -> float:
    """Check a cylinder, add it to the analytic model, and return its pin distance (m) with the rod fully retracted."""
    element = f"cylinder '{arm.label_prefix}{c.label}'"
    for name in (c.start, c.end):
        arm.part(name)
    if c.start == c.end:
        raise validate.fail(element, f"starts and ends on '{c.start}'", "give two parts")
    if any(ram.name == c.label for ram in arm.mechanism.rams):
        raise validate.fail(element, "has the label of another cylinder", "give each cylinder a different label")
    if not isinstance(c.pins, tuple | list) or len(c.pins) != 2:
        raise validate.fail(element, f"pins = {c.pins!r} are not two pins", "give ((x, z), (x, z)) on both parts")
    pins = [complex(*validate.numbers(element, "pin", pin, 2)) for pin in c.pins]
    ram = Ram(c.label, c.start, c.end, (pins[0], pins[1]))
    poses = arm.poses()
    distance = abs(locate(poses[c.end], pins[1]) - locate(poses[c.start], pins[0]))
    stroke = validate.positive(element, "stroke", c.stroke)
    if c.extension is not None and c.retracted is not None:
        raise validate.fail(element, "extension and retracted both define the piston's position", "give one of them")
    offset = distance - (0.5 * stroke if c.extension is None else validate.number(element, "extension", c.extension))
    if c.retracted is not None:
        offset = validate.positive(element, "retracted", c.retracted)
    if offset > 0.0 and not is_within(distance - offset, 0.0, stroke):
        length_range = f"{offset:.4g} to {offset + stroke:.4g}"
        rule = f"its pins are initially {distance:.4g} m apart, outside of its range of {length_range} m"
        raise validate.fail(element, rule, "move a pin, or give another stroke, extension or retracted length")
    if offset < stroke:
        rule = f"its retracted length of {offset:.4g} m from pin to pin is below its stroke of {stroke:g} m"
        raise validate.fail(element, rule, "give a shorter stroke or extension, or pins farther apart")
    arm.mechanism.rams.append(ram)
    return offset


def add_hydraulic_drive(
    b: ModelBuilder,
    pack: PowerPack,
    joint: int,
    displacement: float,
    spool: Spool,
    label: str,
    relief: float | None = 2.5e7,
    brake_torque: float = 0.0,
    leakage: float = 0.0,
    viscous_friction: float = 0.0,
    rotor_inertia: float = 0.0,
    volume: float = 2e-4,
    back_pressure: float = 1e6,
    axis: int = 0,
) -> Drive:
    """Add a hydraulic motor to a joint, with a spool valve, port-to-port relief valves and anticavitation valves.

    Args:
        b: the builder.
        pack: from ``add_power_pack``.
        joint: joint that the motor drives, such as the joint of a swing, a sprocket or a wheel.
        displacement: oil volume (m3) per rad of joint rotation, including gears.
        spool: the spool valve. Command 1 rotates the joint forward.
        label: label of the valve's command.
        relief: pressure difference (Pa) between the ports at which the relief valves open. The relief valves pass the
            spool's full flow at ``relief`` + 2e6 Pa. With ``relief=None``, the drive has neither relief valves nor
            anticavitation valves.
        brake_torque: torque (N m) of the brake if ``sim.control["<label>_motor"] = 1``.
        leakage: leakage flow per pressure difference between the ports, m3/s/Pa.
        viscous_friction, rotor_inertia: viscous friction (N m s/rad) and inertia (kg m2) of the rotor, reflected to the
            joint.
        volume: oil volume (m3) of each side of the motor.
        back_pressure: initial pressure (Pa) on both sides of the motor.
        axis: index of the joint's coordinate.

    Raises:
        ModelError: a number is invalid.
    """
    element = f"hydraulic drive '{label}'"
    validate.instance(element, "pack", pack, PowerPack, "give what add_power_pack returned")
    start = validate.not_negative(element, "back_pressure", back_pressure)
    motor = pack.circuit.add_motor(
        joint, displacement, axis, volume, (start, start), leakage, viscous_friction, 0.0, brake_torque, rotor_inertia,
        label=f"{label}_motor",
    )  # fmt: skip
    return add_drive_valves(pack, motor, label, spool, relief, (), (start, start), crossed=True)


def add_drive_valves(
    pack: PowerPack,
    consumer: Consumer,
    label: str,
    spool: Spool,
    relief: float | None,
    holding: HoldingValve | Sequence[HoldingValve],
    pressure: tuple[float, float],
    crossed: bool = False,
) -> Drive:
    """Add a spool valve, holding valves, relief valves and anticavitation valves to a cylinder or motor.

    Args:
        pack: the circuit.
        consumer: cylinder or motor, from the circuit's ``add_cylinder`` or ``add_motor``.
        label: label of the spool's command.
        spool: the spool valve.
        relief: opening pressure (Pa) of the relief valves. The relief valves pass the spool's full flow at ``relief`` +
            2e6 Pa. With ``relief=None``, the drive has neither relief valves nor anticavitation valves.
        holding: counterbalance valves.
        pressure: initial pressures (Pa) on the two sides of the cylinder or motor.
        crossed: True if the relief valves open to the opposite port, False if they open to the tank.

    Raises:
        ModelError: a number is invalid, or a holding valve opens below the pressure that it must hold.
    """
    oil, element = pack.circuit, f"drive '{label}'"
    gain = spool_of(element, spool).gain(element)
    sides = {"a": consumer.node_a, "b": consumer.node_b}
    ports = dict(sides)
    for spec in holding_valves(element, holding):
        k = "ab".index(spec.chamber)
        if spec.pressure <= pressure[k]:
            rule = f"holding.pressure = {spec.pressure:g} is not above the initial pressure of {pressure[k]:.4g} Pa"
            raise validate.fail(element, rule, "give about 1.3 times the pressure under the maximum load")
        ports[spec.chamber] = oil.add_node(HOSE_VOLUME, label=f"{label}_hose_{spec.chamber}")
        name, pilot = f"{label}_holding_{spec.chamber}", sides["ba"[k]]
        if spec.pilot_time > 0.0:
            pilot = oil.add_pilot_line(pilot, spec.pilot_time, label=f"{name}_pilot")
        oil.add_counterbalance_valve(
            sides[spec.chamber], ports[spec.chamber], orifice_gain(spool.flow * spool.drain, FREE_DROP), spec.pressure,
            pilot,
            pilot_ratio=spec.pilot_ratio, opening_range=spec.opening_range, time_constant=spec.time_constant,
            transition_pressure=LAMINAR, label=name,
        )  # fmt: skip
    if relief is not None:
        opens = validate.positive(element, "relief", relief)
        if opens <= max(pressure) and not crossed:
            rule = f"relief = {opens:g} is not above the initial pressure of {max(pressure):.4g} Pa"
            raise validate.fail(element, rule, "give more than the pressure under the maximum load")
        for k, (name, node) in enumerate(sides.items()):
            other = sides["ba"[k]] if crossed else None
            oil.add_relief_valve(node, opens, spool.flow / RELIEF_RISE, other, label=f"{label}_relief_{name}")
            free = orifice_gain(spool.flow, FREE_DROP)
            check = f"{label}_anticavitation_{name}"
            oil.add_check_valve(oil.tank, node, free, transition_pressure=LAMINAR, label=check)
    valve = oil.add_valve(
        pack.line, ports["a"], ports["b"], gain, gain * spool.drain,
        compensator_pressure=spool.drop if spool.compensated else math.inf, frequency=spool.frequency,
        transition_pressure=LAMINAR, overlap_supply=OVERLAP, overlap_drain=-OVERLAP, label=label,
    )  # fmt: skip
    return Drive(label, consumer.index, consumer.node_a, consumer.node_b, ports["a"], ports["b"], valve)
