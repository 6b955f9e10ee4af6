"""Flows of a hydraulic circuit, and their derivatives with respect to the node pressures.

A *branch* is a flow path between two nodes. A valve has four branches. An edge has one branch. The flow depends on the
pressure drop d, the gain K or G, the opening a, the set pressure p_set and the transition pressure p_tr:

    orifice           K a d/(d^2 + p_tr^2)^(1/4); a compensator limits d to ``compensator_pressure``
    check valve       an orifice with the drop max(0, d - p_set)
    relief valve      G max(0, d - p_set)
    counterbalance    an orifice with the poppet's opening from A to B, a check valve from B to A
    pipe break        the same as a counterbalance valve
    leak              G d

The equations are from Merritt, Hydraulic Control Systems (1967), chapters 3 and 5, but smooth at zero pressure drop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusim.actuators.hydraulic.circuit_parts import CHECK, COUNTERBALANCE, LEAK, ORIFICE, PIPE_BREAK, RELIEF
from gpusim.description.actuator_kinds import Group, StepBuffers
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.actuators.hydraulic.circuit_parts import Parts


@dataclass
class Branch:
    """Flow path between the nodes i and j.

    ``forth`` is gain times opening for flow from i to j, and ``back`` for flow from j to i, (num_worlds,) each.
    ``start`` is the pressure drop at which the branch opens for flow from i to j.
    """

    i: int
    j: int
    forth: Array
    back: Array
    start: Array
    transition: Array
    max_drop: Array
    linear: bool

    def flow(self, drop: Array) -> tuple[Array, Array]:
        """Return the flow for a pressure drop, and its derivative with respect to the pressure drop."""
        ahead = drop > self.start
        gain = np.where(ahead, self.forth, np.where(drop < 0.0, self.back, 0.0))
        d = np.where(ahead, drop - self.start, np.minimum(drop, 0.0))
        if self.linear:
            return gain * d, gain
        limited = np.minimum(d, self.max_drop)
        square = limited * limited + self.transition * self.transition
        conductance = gain / np.sqrt(np.sqrt(square))
        slope = conductance * (0.5 * limited * limited + self.transition * self.transition) / square
        return conductance * limited, np.where(d > self.max_drop, 0.0, slope)


class Flows:
    """Branches and pumps of a circuit in the current substep.

    Args:
        work: work arrays of the step, after the update of the spools.
        parts: indices of the circuit's components.
        node_index: index of each node within its circuit.
    """

    def __init__(self, work: StepBuffers, parts: Parts, node_index: Array) -> None:
        self.work, self.parts, self.node_index, self.branches = work, parts, node_index, []
        self.valves = {n: (self._add_valve(n), n) for n in parts.valves}
        self.edges = {n: self._add_edge(n) for n in parts.edges}

    branches: list[Branch]

    def _values(self, kind: str, n: int) -> dict[str, Array]:
        params = self.work.groups[kind].params
        return {name: self.work.broadcast(array)[:, n] for name, array in params.items()}

    def _at(self, kind: str, name: str, n: int) -> int:
        return int(self.node_index[int(self.work.groups[kind].params[name][0, n])])

    def _add_valve(self, n: int) -> int:
        """Add the four branches of a valve: pump to A, A to tank, pump to B, and B to tank."""
        q, opened = self._values("oil_valve", n), self.work.scratch["oil_valve.opened"][:, :, n]
        at = {port: self._at("oil_valve", f"node_{port}", n) for port in "ptab"}
        zero, first = np.zeros(self.work.num_worlds), len(self.branches)
        for k, (i, j) in enumerate((("p", "a"), ("a", "t"), ("p", "b"), ("b", "t"))):
            supply = i == "p"
            back = np.where(q["load_check"] > 0.5, 0.0, opened[k]) if supply else opened[k]
            max_drop = q["compensator_pressure"] if supply else zero + np.inf
            transition = q["transition_pressure"]
            self.branches.append(Branch(at[i], at[j], opened[k], back, zero, transition, max_drop, False))
        return first

    def _add_edge(self, n: int) -> int:
        group, q = self.work.groups["oil_edge"], self._values("oil_edge", n)
        kind, zero = int(q["kind"][0]), np.zeros(self.work.num_worlds)
        gain, poppet = q["gain"], group.state["poppet"][:, n].astype(np.float64)
        opening = np.clip(self.work.command_now(group, "opening")[:, n], 0.0, 1.0)
        forth, back, start = gain, gain, zero
        if kind == ORIFICE:
            forth = back = gain * opening
        elif kind in (CHECK, RELIEF):
            back, start = zero, q["set_pressure"]
        elif kind in (COUNTERBALANCE, PIPE_BREAK):
            forth = gain * poppet
        ends = self._at("oil_edge", "node_a", n), self._at("oil_edge", "node_b", n)
        linear = kind in (RELIEF, LEAK)
        self.branches.append(Branch(*ends, forth, back, start, q["transition_pressure"], zero + np.inf, linear))
        return len(self.branches) - 1

    def flow(self, branch: int, p: Array) -> Array:
        """Return the flow of one branch (m3/s)."""
        b = self.branches[branch]
        return b.flow(p[:, b.i] - p[:, b.j])[0]

    def inflow(self, p: Array) -> Array:
        """Return the total inflow of each node (m3/s)."""
        total = np.zeros_like(p)
        for b in self.branches:
            flow = b.flow(p[:, b.i] - p[:, b.j])[0]
            total[:, b.i] -= flow
            total[:, b.j] += flow
        for n in self.parts.pumps:
            total[:, self._at("oil_pump", "node", n)] += self.pump(n, p)[0]
        return total

    def slopes(self, p: Array) -> Array:
        """Return the derivatives -d inflow/dp, (num_worlds, nodes, nodes)."""
        matrix = np.zeros((*p.shape, p.shape[1]))
        for b in self.branches:
            slope = b.flow(p[:, b.i] - p[:, b.j])[1]
            matrix[:, b.i, b.i] += slope
            matrix[:, b.j, b.j] += slope
            matrix[:, b.i, b.j] -= slope
            matrix[:, b.j, b.i] -= slope
        for n in self.parts.pumps:
            at = self._at("oil_pump", "node", n)
            matrix[:, at, at] += self.pump(n, p)[1]
        return matrix

    def pump(self, n: int, p: Array) -> tuple[Array, Array]:
        """Return the flow Q of pump ``n`` (m3/s), and -dQ/dp."""
        group, q = self.work.groups["oil_pump"], self._values("oil_pump", n)
        at, max_flow = p[:, self._at("oil_pump", "node", n)], q["max_flow"]
        flow = max_flow * np.clip(self.work.command_now(group, "displacement")[:, n], 0.0, 1.0)
        slope = np.zeros_like(flow)
        load = group.state["load_pressure"][:, n].astype(np.float64)
        sensed = np.where(q["load_sensing"] > 0.5, load + q["margin"], np.inf)
        for limit in (q["pressure"], sensed):
            fraction = np.clip((limit - at) / q["band"], 0.0, 1.0)
            limits = max_flow * fraction < flow
            slope = np.where(limits, np.where(fraction > 0.0, max_flow / q["band"], 0.0), slope)
            flow = np.where(limits, max_flow * fraction, flow)
        positive = np.where(at > 0.0, at, 1.0)
        limits = (at > 0.0) & (q["power"] / positive < flow)
        slope = np.where(limits, q["power"] / (positive * positive), slope)
        return np.where(limits, q["power"] / positive, flow), slope

    def load_pressure(self, work: StepBuffers, p: Array) -> Array:
        """Return the maximum pressure (Pa) at open working ports of valves with ``senses=True``, or 0."""
        highest = np.zeros(self.work.num_worlds)
        for n in self.parts.valves:
            senses = self._values("oil_valve", n)["senses"] > 0.5
            for k, port in ((0, "a"), (2, "b")):
                opened = work.scratch["oil_valve.opened"][k, :, n] > 0.0
                load = p[:, self._at("oil_valve", f"node_{port}", n)]
                highest = np.maximum(highest, np.where(senses & opened, load, 0.0))
        return highest


def poppet_target(work: StepBuffers, group: Group, n: int, node_index: Array, p: Array, branch: Branch) -> Array:
    """Return the steady-state opening (0 to 1) of the poppet of edge ``n`` at the pressures p.

    For a counterbalance valve, the opening depends on the load pressure and the pilot pressure.
    """
    q = {name: work.broadcast(array)[:, n] for name, array in group.params.items()}
    a, b = (p[:, node_index[int(q[f"node_{end}"][0])]] for end in "ab")
    if int(q["kind"][0]) == COUNTERBALANCE:
        pilot = p[:, node_index[int(q["node_pilot"][0])]] if q["node_pilot"][0] >= 0.0 else 0.0
        return np.clip((a + q["pilot_ratio"] * pilot - q["set_pressure"]) / q["range"], 0.0, 1.0)
    open_flow = replace(branch, forth=q["gain"]).flow(a - b)[0]
    stays_shut = (group.state["poppet"][:, n] < 0.5) & (a - b > q["transition_pressure"])
    return np.where((open_flow > q["flow_limit"]) | stays_shut, 0.0, 1.0)
