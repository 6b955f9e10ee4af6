"""Energy of a hydraulic circuit: energy stored in the oil, and work of pumps, valves and edges.

A step of h seconds changes the pressure of a node from p to p+. The inflow of the node is Q = C (p+ - p)/h + S v+. C =
V/B is the compliance, with the bulk modulus B and the volume V of the node in the middle of the step. S v+ is the flow
into the moving chambers. With the mean pressure p^ = (p + p+)/2, the energy balance is exact:

    h p^ Q = C (p+^2 - p^2)/2 + h p^ S v+

If the volume of a chamber grows by dV, its oil stores the additional energy dV/B (p^2 + p+^2)/4. A void (cavitation.py)
that grows from v to v+ stores the energy p^ (v+ - v).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.actuators.hydraulic import hydraulics
from gpusim.actuators.hydraulic.circuit_flows import Flows
from gpusim.actuators.hydraulic.circuit_parts import OilCylinder, parts_of
from gpusim.description.actuator_kinds import Group, StateReader
from gpusim.typing import Array


class CircuitNow:
    """Snapshot of a hydraulic circuit at time t, for computing its flows.

    Args:
        group: actuator group of all circuits.
        now: reader of the current state.
        k: index of the circuit.
    """

    def __init__(self, group: Group, now: StateReader, k: int) -> None:
        self.label, self.num_worlds = group.labels[k], now.num_worlds
        self.groups = {
            g.type.name: replace(g, state={name: np.array(x) for name, x in g.state.items()}) for g in now.groups
        }
        self.parts, self.control = parts_of(group, self.groups, k), np.array(now.control)
        nodes = self.groups["oil_node"]
        self.node_index = np.zeros(len(nodes.specs), np.int64)
        self.node_index[self.parts.nodes] = np.arange(len(self.parts.nodes))
        self.pressure = nodes.state["pressure"][:, self.parts.nodes].astype(np.float64)
        self.void = nodes.state["void"][:, self.parts.nodes].astype(np.float64)
        value = {name: self.broadcast(nodes.params[name])[:, self.parts.nodes] for name in ("bulk_modulus", "fixed")}
        self.bulk_modulus, self.fixed = value["bulk_modulus"], value["fixed"] > 0.5
        self.volume = self.broadcast(nodes.params["volume"])[:, self.parts.nodes].astype(np.float64).copy()
        self.displaced = np.zeros((self.num_worlds, len(self.parts.nodes)))
        for at, area, stroke in self._chambers(now):
            self.displaced[:, at] += area * stroke
        self.volume += self.displaced
        self.scratch: dict[str, Array] = {}

    def broadcast(self, array: Array) -> Array:
        """Broadcast an array (1 or num_worlds, n) to (num_worlds, n)."""
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:]))

    def command_now(self, group: Group, name: str) -> Array:
        """Return the values of command ``name`` for the n actuators in ``group``, (num_worlds, n)."""
        return self.control[:, group.control[name]]

    def _chambers(self, now: StateReader) -> list[tuple[int, Array, Array]]:
        """Return for each cylinder chamber: node index, signed piston area (m2) and integrated stroke (m)."""
        found = []
        for kind, n in self.parts.consumers:
            group = self.groups[kind]
            if not isinstance(group.type, OilCylinder):
                continue
            p, axis = {name: self.broadcast(x)[:, n] for name, x in group.params.items()}, group.axis[n : n + 1]
            oil = group.state["oil_stroke"][:, n].astype(np.float64)
            oil = np.where(np.isnan(oil), now.axis_value(axis)[:, 0] - p["length_offset"], oil)
            for port, sign in (("a", 1.0), ("b", -1.0)):
                found.append((int(self.node_index[int(p[f"node_{port}"][0])]), sign * p[f"area_{port}"], oil))
        return found

    def stored(self) -> Array:
        """Return the elastic energy of the oil in all nodes with variable pressure (J), (num_worlds,)."""
        stored = 0.5 * self.volume / self.bulk_modulus * self.pressure**2
        return np.asarray(np.sum(np.where(self.fixed, 0.0, stored), axis=1))

    def works(self, after: CircuitNow, h: float) -> dict[str, Array]:
        """Return a dict: component name -> work (J) in a step of ``h`` s. ``after`` is the snapshot after the step.

        Components are pumps, valves, edges, and nodes with fixed pressure. The entry with the name of the circuit is
        the additional energy stored by volume changes of chambers and voids.
        """
        self._open_valves(h)
        flows: Any = Flows(self, self.parts, self.node_index)  # type: ignore[arg-type]
        end, mean = after.pressure, 0.5 * (self.pressure + after.pressure)
        inflow, out = np.zeros_like(mean), {}
        for kind, firsts, count in (("oil_valve", flows.valves, 4), ("oil_edge", flows.edges, 1)):
            for n, first in firsts.items():
                work, start = np.zeros(self.num_worlds), first[0] if count > 1 else first
                for branch in range(start, start + count):
                    b, flow = flows.branches[branch], flows.flow(branch, end)
                    work = work - h * flow * (mean[:, b.i] - mean[:, b.j])
                    inflow[:, b.i] -= flow
                    inflow[:, b.j] += flow
                out[self._name(kind, n)] = work
        for n in self.parts.pumps:
            at, flow = self.node_index[int(self.groups["oil_pump"].params["node"][0, n])], flows.pump(n, end)[0]
            out[self._name("oil_pump", n)] = h * flow * mean[:, at]
            inflow[:, at] += flow
        return out | self._fixed_node_work(h * inflow, after) | self._stored_change(after)

    def _name(self, kind: str, n: int) -> str:
        return f"{self.groups[kind].type.prefix}.{self.groups[kind].labels[n]}"

    def _open_valves(self, h: float) -> None:
        """Set the valve openings for the mean spool positions in the step."""
        if "oil_valve" not in self.groups:
            return
        group = self.groups["oil_valve"]
        p, s, command = group.params, group.state, self.command_now(group, "command")
        _, _, mean = hydraulics.second_order_valve(
            s["spool"], s["spool_rate"], command, np.ones(1), p["frequency"], p["damping"], h
        )
        openings = hydraulics.edge_openings(mean, p["overlap_supply"], p["overlap_drain"])
        gains = p["flow_gain"], p["drain_gain"], p["flow_gain"], p["drain_gain"]
        opened = [self.broadcast(gain * opening) for gain, opening in zip(gains, openings, strict=True)]
        self.scratch["oil_valve.opened"] = np.stack(opened)

    def _fixed_node_work(self, volume: Array, after: CircuitNow) -> dict[str, Array]:
        """Return the work (J) of nodes with fixed pressure, such as tanks."""
        displaced, out = after.displaced - self.displaced, {}
        for n in self.parts.nodes:
            at = self.node_index[n]
            if self.fixed[:, at].any():
                out[self._name("oil_node", n)] = -self.pressure[:, at] * (volume[:, at] - displaced[:, at])
        return out

    def _stored_change(self, after: CircuitNow) -> dict[str, Array]:
        grown = (after.volume - self.volume) / self.bulk_modulus
        opened = 0.5 * (self.pressure + after.pressure) * (after.void - self.void)
        mean_square = 0.5 * (self.pressure**2 + after.pressure**2)
        stored = np.sum(np.where(self.fixed, 0.0, 0.5 * grown * mean_square + opened), axis=1)
        return {f"circuit.{self.label}": np.asarray(stored)}
