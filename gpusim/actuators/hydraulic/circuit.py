"""Hydraulic circuit: nodes, edges, and consumers (cylinders and motors), with one implicit solve per circuit.

    C_i (p_i+ - p_i)/h = sum of inflows(p+) - sum over chambers of S v+

p_i is the pressure and C_i the compliance of node i (volume divided by bulk modulus). h is the step size. v contains
the velocities of the consumers. S contains the piston areas of their chambers. S is positive if the chamber fills when
the consumer extends. circuit_flows.py computes the inflows Q of the nodes. For guessed velocities v^, Newton's method
finds the pressures p^. The linearized solution is

    p+ = p^ - M (v+ - v^),   M = (C/h - dQ/dp)^-1 S

The forces S^T p+ on the consumers are linear in their velocities: P - D v+ with D = S^T M. The joint solver treats
these forces like spring-dampers. Each solver pass linearizes the forces again.

After the solve, the circuit updates the pressures. The pressures never fall below the vapor pressure (cavitation.py).
Spool positions are integrated exactly. Poppets and load-sensing lines follow the pressures with a lag.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.actuators.hydraulic import hydraulics
from gpusim.actuators.hydraulic.cavitation import (
    MAX_ITERATIONS,
    PRECISION,
    STIFFNESS_LEFT,
    filled_fraction,
    slope_increase,
    solve_pressures,
)
from gpusim.actuators.hydraulic.circuit_energy import CircuitNow
from gpusim.actuators.hydraulic.circuit_flows import Flows, poppet_target
from gpusim.actuators.hydraulic.circuit_parts import COUNTERBALANCE, PIPE_BREAK, OilCylinder, OilNode, OilPump, parts_of
from gpusim.actuators.hydraulic.hydraulic_cylinder import VOLUME_SYNC
from gpusim.description.actuator_kinds import (
    ActuatorType,
    AxisMaker,
    Group,
    Parameter,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.description.elements import Elements
from gpusim.description.field import Field
from gpusim.description.references import ACTUATOR
from gpusim.description.specs import ActuatorSpec
from gpusim.typing import Array

MAX_NODES, MAX_CONSUMERS = 24, 8
PORTS = ("node_p", "node_t", "node_a", "node_b")
"""Names of the ports of valves, edges, cylinders and motors."""
# The flow balance is the gradient of a convex function. A Newton step is too long if the slope at its end is positive,
# and greater than OVERSHOOT times the slope at its start. A line search with at most MAX_SECANTS secants shortens too
# long steps.
OVERSHOOT, MAX_SECANTS, SECANT_MARGIN = 0.5, 12, 0.1


@register
class OilCircuit(ActuatorType):
    """Hydraulic circuit. The solver computes node pressures together with the velocities of cylinders and motors."""

    name: ClassVar[str] = "oil_circuit"
    kernel_file: ClassVar[str] = "circuit.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate_coupled", "relinearize_coupled", "advance")
    prefix: ClassVar[str] = "circuit"
    coupled: ClassVar[bool] = True
    nonlinear: ClassVar[bool] = True
    references: ClassVar = {"consumers": ACTUATOR}
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("vapor_pressure", "Pa", "absolute vapor pressure of the oil"),
    )
    kernel_fields: ClassVar[tuple[Field, ...]] = (
        Field("oil_circuit_guess", ("oil_circuit_count", MAX_NODES), "pose", "Pa", "pressures p^"),
        Field("oil_circuit_speed", ("oil_circuit_count", MAX_CONSUMERS), "pose", "m/s", "velocities v^"),
        Field("oil_circuit_reply", ("oil_circuit_count", MAX_NODES, MAX_CONSUMERS), "pose", "Pa s/m", "M"),
        Field("oil_circuit_matrix", ("oil_circuit_count", MAX_NODES, MAX_NODES), "pose", "m3/s/Pa", "C/h - dQ/dp"),
    )

    def axes(self, spec: ActuatorSpec, maker: AxisMaker) -> list[int]:
        """Return the axis rows of the cylinders and motors in a circuit."""
        return [maker.actuator_axis(actuator) for actuator in spec.params["consumers"]]

    def check_model(self, specs: list[ActuatorSpec], builder: Elements) -> None:  # type: ignore[override]
        """Raise ModelError if a circuit has no consumer, is too large, or has an unconnected pump."""
        numbers = {id(spec): k for k, spec in enumerate(builder.actuators)}
        for spec in specs:
            components = [a for a in builder.actuators if a.params.get("circuit") == numbers[id(spec)]]
            consumers = spec.params["consumers"]
            if not consumers:
                raise validate.fail(spec.element, "has no cylinder and no motor", "add one, or remove the circuit")
            for what, count, limit in (
                ("nodes", sum(a.kind == OilNode.name for a in components), MAX_NODES),
                ("cylinders and motors", len(consumers), MAX_CONSUMERS),
            ):
                if count > limit:
                    raise validate.fail(spec.element, f"has {count} {what}, the maximum is {limit}", "split it")
            _check_pumps(components, builder)
            _check_pressures(components, spec.params["vapor_pressure"])

    def check(self, group: Group) -> None:
        """Raise ModelError if a vapor pressure is negative."""
        if np.any(group.params["vapor_pressure"] < 0.0):
            rule = "vapor_pressure must not be negative: pressures are absolute"
            raise validate.fail(group.specs[0].element, rule, "write vapor_pressure >= 0")

    def potential(self, group: Group, now: StateReader) -> Array | None:
        """Return the elastic energy of the oil (J)."""
        return np.stack([CircuitNow(group, now, k).stored() for k in range(len(group.specs))], axis=1)

    def works(self, group: Group, now: StateReader, h: float) -> Callable[[StateReader], dict[str, Array]] | None:
        """Return a function that computes the work (J) of all circuit components in a step of ``h`` seconds."""
        before = [CircuitNow(group, now, k) for k in range(len(group.specs))]

        def after(now: StateReader) -> dict[str, Array]:
            found: dict[str, Array] = {}
            for k, circuit in enumerate(before):
                found |= circuit.works(CircuitNow(group, now, k), h)
            return found

        return after

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the linearized forces P - D v+ of each circuit, at the latest velocities of the solver."""
        if velocity is None:
            move_spools(work)
        for k in range(len(group.specs)):
            solve = _solve(group, work, k)
            axes = group.axes[k]
            guess = work.rate[:, axes] if velocity is None else work.rate_next[:, axes]
            start = solve.pressure if velocity is None else solve.fitted.pressures(guess)
            solve.fit(start, guess, work.active if velocity is not None else None)
            fitted, kick = solve.fitted, work.kick_time
            at_rest = fitted.pressures(np.zeros_like(guess))
            impulse = kick * np.matmul(at_rest[:, None], solve.area)[:, 0]
            slope = np.matmul(solve.area.swapaxes(-1, -2), fitted.reply)
            increase = solve.slope_increase(slope)
            impulse = impulse + kick * np.matmul(increase, fitted.speed[..., None])[..., 0]
            work.add_coupled_law(group, k, impulse, kick[..., None] * (slope + increase))

    def advance(self, group: Group, work: StepBuffers) -> None:
        """Update the pressures with the solved velocities. Integrate strokes, poppets and load-sensing lines."""
        for k in range(len(group.specs)):
            _solve(group, work, k).advance(work, work.rate_next[:, group.axes[k]])


def move_spools(work: StepBuffers) -> None:
    """Integrate the motion of all valve spools exactly, and set the valve openings for the mean spool positions."""
    group = work.groups.get("oil_valve")
    if group is None:
        return
    p, s = group.params, group.state
    command, one = work.command_now(group, "command"), np.ones(1)
    position, rate, mean = hydraulics.second_order_valve(
        s["spool"], s["spool_rate"], command, one, p["frequency"], p["damping"], work.h
    )
    work.scratch["oil_valve.spool"] = np.stack(np.broadcast_arrays(position, rate))
    openings = hydraulics.edge_openings(mean, p["overlap_supply"], p["overlap_drain"])
    gains = p["flow_gain"], p["drain_gain"], p["flow_gain"], p["drain_gain"]
    opened = [work.broadcast(gain * opening) for gain, opening in zip(gains, openings, strict=True)]
    work.scratch["oil_valve.opened"] = np.stack(opened)


def _check_pumps(components: list[ActuatorSpec], builder: Elements) -> None:
    """Raise ModelError if a pump's node has no valve, line or consumer."""
    joined = {a.params[port] for a in components for port in PORTS if port in a.params}
    for pump in components:
        if pump.kind == OilPump.name and (node := pump.params["node"]) not in joined:
            rule = f"feeds node '{builder.actuators[node].label}', which has no other component"
            raise validate.fail(
                pump.element, rule, "add a valve, line, cylinder or motor at this node, or remove the pump"
            )


def _check_pressures(components: list[ActuatorSpec], vapor: float) -> None:
    """Raise ModelError if the initial pressure of a node or a tank is below the vapor pressure."""
    for node in components:
        if node.kind == OilNode.name and node.params["initial_pressure"] < vapor:
            rule = f"has the pressure {node.params['initial_pressure']:g} Pa, below vapor_pressure = {vapor:g} Pa"
            raise validate.fail(node.element, rule, "give absolute pressures, or a lower vapor_pressure")


@dataclass
class Fitted:
    """Linearized pressures of a circuit as a function of the velocities of its consumers (cylinders and motors)."""

    guess: Array
    speed: Array
    reply: Array
    low: Array
    """Mask of the worlds in which a node is at vapor pressure (num_worlds,)."""

    def pressures(self, speed: Array) -> Array:
        """Return the pressures p^ - M (v - v^), (num_worlds, nodes), at the velocities v = ``speed``."""
        return np.asarray(self.guess - np.matmul(self.reply, (speed - self.speed)[..., None])[..., 0])


def _solve(group: Group, work: StepBuffers, k: int) -> CircuitSolve:
    key = f"oil_circuit.{k}"
    if key not in work.scratch:
        work.scratch[key] = CircuitSolve(group, work, k)  # type: ignore[assignment]
    solve: Any = work.scratch[key]
    return solve  # type: ignore[no-any-return]


class CircuitSolve:
    """Solution of one circuit in a substep. Arrays are (num_worlds, nodes of the circuit, ...)."""

    def __init__(self, group: Group, work: StepBuffers, k: int) -> None:
        parts = parts_of(group, work.groups, k)
        self.parts, self.groups, self.worlds = parts, work.groups, work.num_worlds
        nodes = work.groups["oil_node"]
        self.node_index = np.zeros(len(nodes.specs), np.int64)
        self.node_index[parts.nodes] = np.arange(len(parts.nodes))
        self.pressure = nodes.state["pressure"][:, parts.nodes].astype(np.float64)
        value = {
            name: work.broadcast(nodes.params[name])[:, parts.nodes] for name in ("volume", "bulk_modulus", "fixed")
        }
        self.fixed = value["fixed"] > 0.5
        volume = value["volume"].copy()
        self.vapor, self.h = work.broadcast(group.params["vapor_pressure"])[:, k : k + 1], work.h
        self.void = nodes.state["void"][:, parts.nodes].astype(np.float64)
        self.has_void = np.any(self.void != 0.0, axis=1)
        self.area = np.zeros((self.worlds, len(parts.nodes), len(parts.consumers)))
        self.oil: dict[int, tuple[Array, Array]] = {}
        for row, (kind, n) in enumerate(parts.consumers):
            p, cylinder = work.groups[kind].params, isinstance(work.groups[kind].type, OilCylinder)
            fraction = 1.0 if cylinder else self._filled_fraction(work, kind, n, volume)
            for port, sign in (("a", 1.0), ("b", -1.0)):
                at = self.node_index[int(p[f"node_{port}"][0, n])]
                area = work.broadcast(p[f"area_{port}"])[:, n]
                self.area[:, at, row] += sign * area * fraction
                if cylinder:
                    volume[:, at] += sign * area * self._middle_stroke(work, row, n)
        self.capacity = volume / value["bulk_modulus"] / work.h
        self.flows = Flows(work, parts, self.node_index)
        self.fitted: Any = None
        self.before: Any = None

    def _filled_fraction(self, work: StepBuffers, kind: str, n: int, volume: Array) -> Array:
        """Return the oil-filled fraction of the displacement of motor ``n``, (num_worlds,)."""
        group = work.groups[kind]
        speed, ends = work.rate[:, group.axis[n]].astype(np.float64), []
        for port in "ab":
            at = self.node_index[int(group.params[f"node_{port}"][0, n])]
            void, area = self.void[:, at], work.broadcast(group.params[f"area_{port}"])[:, n]
            ends.append(filled_fraction(volume[:, at] - void, area * np.abs(speed) * work.h, void))
        return np.where(speed > 0.0, ends[0], ends[1])

    def _middle_stroke(self, work: StepBuffers, row: int, n: int) -> Array:
        group = work.groups["oil_cylinder"]
        stroke = work.axis_position[:, group.axis[n]] - work.broadcast(group.params["length_offset"])[:, n]
        oil = group.state["oil_stroke"][:, n].astype(np.float64)
        oil = np.where(np.isnan(oil), stroke, oil)
        self.oil[row] = stroke, oil
        p = {name: work.broadcast(group.params[name])[:, n] for name in ("stroke_min", "stroke_max")}
        return hydraulics.middle_stroke(p, oil, work.rate[:, group.axis[n]].astype(np.float64), work.h)

    def fit(self, start: Array, speed: Array, active: Array | None) -> None:
        """Compute the pressures p^ and the matrix M at the velocities v^ of the consumers (cylinders and motors)."""
        load = self._load(speed)
        p = np.where(self.fixed, self.pressure, start)
        unsettled = np.ones(self.worlds, bool)
        for _ in range(MAX_ITERATIONS):
            error, matrix = self.equations(p, load)
            move = np.linalg.solve(matrix, error[..., None])[..., 0]
            move = move * self.step_fraction(p, move, error, load)[:, None]
            p = np.where(unsettled[:, None], p - move, p)
            unsettled = unsettled & (np.abs(move).max(axis=1) > PRECISION * np.abs(p).max(axis=1))
            if not unsettled.any():
                break
        # A first velocity guess may wrongly give pressures below the vapor pressure. Only two low pressures in a row
        # count as cavitation.
        low, old = np.any(~self.fixed & (p < self.vapor), axis=1), self.fitted
        low &= old is not None and np.any(~self.fixed & (old.guess <= self.vapor), axis=1)
        low |= self.has_void
        p, void = self._settled(low, np.where(self.has_void[:, None], start, p), p, load)
        _, matrix = self.equations(p, load)
        diagonal = np.arange(p.shape[1])
        matrix[:, diagonal, diagonal] += np.where(void > 0.0, self.capacity / STIFFNESS_LEFT, 0.0)
        reply = np.linalg.solve(matrix, np.where(self.fixed[..., None], 0.0, self.area))
        fitted = Fitted(p, speed.astype(np.float64), reply, low)
        if active is not None and not active.all():
            fitted = Fitted(
                np.where(active, p, old.guess), np.where(active, speed, old.speed),
                np.where(active[..., None], reply, old.reply), np.where(active[:, 0], low, old.low),
            )  # fmt: skip
            last = self.before
            old = old if last is None else Fitted(
                np.where(active, old.guess, last.guess), np.where(active, old.speed, last.speed), old.reply, old.low
            )  # fmt: skip
        self.before, self.fitted = old, fitted

    def slope_increase(self, slope: Array) -> Array:
        """Return the increase of the force slopes D, (num_worlds, rows, rows), and 0 for worlds without cavitation."""
        fitted, before = self.fitted, self.before
        if before is None or not fitted.low.any():
            return np.zeros_like(slope)
        force_decrease = np.matmul((before.guess - fitted.guess)[:, None], self.area)[:, 0]
        increase = slope_increase(slope, fitted.speed - before.speed, force_decrease)
        return np.where(fitted.low[:, None, None], increase, 0.0)

    def _load(self, speed: Array) -> Array:
        """Return the flow into cylinders and motors, plus (void volume / step size), in m3/s."""
        return np.asarray(np.matmul(self.area, speed[..., None].astype(np.float64))[..., 0] + self.void / self.h)

    def _settled(self, low: Array, start: Array, p: Array, load: Array) -> tuple[Array, Array]:
        """Return node pressures (Pa) and void volumes (m3) after the step, with cavitation in the worlds ``low``."""
        if not low.any():
            return p, np.zeros_like(p)
        settled, void = solve_pressures(self, np.where(low[:, None], start, p), load)
        return np.where(low[:, None], settled, p), np.where(low[:, None], self.h * void, 0.0)

    def equations(self, p: Array, load: Array) -> tuple[Array, Array]:
        """Return the residual of the flow balance (m3/s), and its derivatives with respect to the pressures."""
        matrix = np.where(self.fixed[..., None], 0.0, self.flows.slopes(p))
        diagonal = np.arange(p.shape[1])
        matrix[:, diagonal, diagonal] += np.where(self.fixed, 1.0, self.capacity)
        return self.error(p, load), matrix

    def error(self, p: Array, load: Array) -> Array:
        """Return the residual of the flow balance (m3/s) at the pressures p."""
        error = self.capacity * (p - self.pressure) - self.flows.inflow(p) + load
        return np.where(self.fixed, 0.0, error)

    def step_fraction(self, p: Array, move: Array, error: Array, load: Array) -> Array:
        """Return the fraction (0 to 1) of the Newton step ``-move`` to take, (num_worlds,)."""

        def slope(fraction: Array) -> Array:
            ahead = self.error(p - fraction[:, None] * move, load)
            return -np.asarray(np.add.accumulate(ahead * move, axis=1)[:, -1])

        first = -np.asarray(np.add.accumulate(error * move, axis=1)[:, -1])
        low, slope_low, high = np.zeros(self.worlds), first, np.ones(self.worlds)
        slope_high, max_slope = slope(high), OVERSHOOT * np.abs(first)
        fraction, too_long = high.copy(), slope_high > max_slope
        for _ in range(MAX_SECANTS):
            if not too_long.any():
                break
            span = high - low
            with np.errstate(divide="ignore", invalid="ignore"):
                secant = np.clip(-slope_low / (slope_high - slope_low), SECANT_MARGIN, 1.0 - SECANT_MARGIN)
            fraction = np.where(too_long, low + secant * span, fraction)
            slope_now = slope(fraction)
            beyond, before = too_long & (slope_now > max_slope), too_long & (slope_now < -max_slope)
            high, slope_high = np.where(beyond, fraction, high), np.where(beyond, slope_now, slope_high)
            low, slope_low = np.where(before, fraction, low), np.where(before, slope_now, slope_low)
            too_long = beyond | before
        return fraction

    def advance(self, work: StepBuffers, rates: Array) -> None:
        """Store pressures and flows, and advance poppets and other states that depend on pressures."""
        speed = rates.astype(np.float64)
        for row, (_, n) in enumerate(self.parts.consumers):
            if row in self.oil:
                stroke, oil = self.oil[row]
                speed[:, row] = speed[:, row] + VOLUME_SYNC * (stroke - oil) / work.h
                work.groups["oil_cylinder"].state["oil_stroke"][:, n] = oil + work.h * speed[:, row]
        p = np.where(self.fixed, self.pressure, self.fitted.pressures(speed))
        low = self.has_void | self.fitted.low | np.any(~self.fixed & (p < self.vapor), axis=1)
        p, void = self._settled(low, p, p, self._load(speed))
        state = self.groups["oil_node"].state
        state["pressure"][:, self.parts.nodes], state["void"][:, self.parts.nodes] = p, void
        self._advance_valves(work, p)
        self._advance_edges(work, p)
        self._advance_pumps(work, p)

    def _advance_valves(self, work: StepBuffers, p: Array) -> None:
        for n, (first, _) in self.flows.valves.items():
            state = work.groups["oil_valve"].state
            state["spool"][:, n], state["spool_rate"][:, n] = work.scratch["oil_valve.spool"][:, :, n]
            flow = [self.flows.flow(first + k, p) for k in range(4)]
            state["flow_a"][:, n], state["flow_b"][:, n] = flow[0] - flow[1], flow[2] - flow[3]

    def _advance_edges(self, work: StepBuffers, p: Array) -> None:
        group = work.groups.get("oil_edge")
        for n, at in self.flows.edges.items():
            assert group is not None
            flow, kind = self.flows.flow(at, p), int(group.params["kind"][0, n])
            group.state["flow"][:, n] = flow
            if kind in (COUNTERBALANCE, PIPE_BREAK):
                target = poppet_target(work, group, n, self.node_index, p, self.flows.branches[at])
                poppet = group.state["poppet"][:, n]
                closing, opening = (work.broadcast(group.params[x])[:, n] for x in ("time_constant", "opening_time"))
                weight = -np.expm1(-work.h / np.maximum(np.where(target > poppet, opening, closing), 1e-9))
                group.state["poppet"][:, n] = poppet + weight * (target - poppet)

    def _advance_pumps(self, work: StepBuffers, p: Array) -> None:
        for n in self.parts.pumps:
            group = work.groups["oil_pump"]
            q, s = {k: work.broadcast(v)[:, n] for k, v in group.params.items()}, group.state
            at = self.node_index[int(group.params["node"][0, n])]
            s["flow"][:, n] = self.flows.pump(n, p)[0]
            s["pressure_now"][:, n] = p[:, at]
            weight = -np.expm1(-work.h / np.maximum(q["time_constant"], 1e-9))
            s["load_pressure"][:, n] += weight * (self.flows.load_pressure(work, p) - s["load_pressure"][:, n])
