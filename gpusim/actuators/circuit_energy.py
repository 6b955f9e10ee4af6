"""Energy of a hydraulic circuit: what its oil stores, and where the power of its pumps goes.

At a node with pressure p the flows bring in p Q. Of this p S v goes to the consumers, the rest presses oil together,

    d/dt (C p^2/2) = p (Q - S v) + p^2/(2 B) dV/dt,   C = V/B

The last term is what the oil of a chamber carries along while the chamber grows, p/(2 B) of the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.actuators import hydraulics
from gpusim.actuators.circuit_flows import Flows
from gpusim.actuators.circuit_parts import OilCylinder, parts_of
from gpusim.model.actuator_kinds import Group, Now
from gpusim.typing import Array


class CircuitNow:
    """A circuit at t; stands for the running step where flows are asked for.

    Args:
        group: all circuits.
        now: the state.
        k: which circuit.
    """

    def __init__(self, group: Group, now: Now, k: int) -> None:
        self.now, self.label, self.num_worlds = now, group.labels[k], now.num_worlds
        self.groups = {g.type.name: g for g in now.groups}
        self.parts = parts_of(group, self.groups, k)
        nodes = self.groups["oil_node"]
        self.place = np.zeros(len(nodes.specs), np.int64)
        self.place[self.parts.nodes] = np.arange(len(self.parts.nodes))
        self.pressure = nodes.state["pressure"][:, self.parts.nodes].astype(np.float64)
        self.node = {
            name: self.broadcast(nodes.params[name])[:, self.parts.nodes].astype(np.float64)
            for name in ("volume", "bulk_modulus", "fixed")
        }

    def broadcast(self, array: Array) -> Array:
        """(1 or num_worlds, n) as (num_worlds, n)."""
        return self.now.broadcast(array)

    def command_now(self, group: Group, name: str) -> Array:
        """Commands, (num_worlds, n)."""
        return self.now.control[:, group.control[name]]

    def chambers(self) -> list[tuple[int, Array, Array, Array]]:
        """Node, signed area, stroke of the oil and speed of every chamber of a cylinder, (num_worlds,) each."""
        found = []
        for kind, n in self.parts.consumers:
            group = self.groups[kind]
            if not isinstance(group.type, OilCylinder):
                continue
            p, axis = {name: self.broadcast(x)[:, n] for name, x in group.params.items()}, group.axis[n : n + 1]
            stroke = self.now.axis_value(axis)[:, 0] - p["length_offset"]
            oil = group.state["oil_stroke"][:, n].astype(np.float64)
            oil, speed = np.where(np.isnan(oil), stroke, oil), self.now.axis_rate(axis)[:, 0]
            for port, sign in (("a", 1.0), ("b", -1.0)):
                found.append((int(self.place[int(p[f"node_{port}"][0])]), sign * p[f"area_{port}"], oil, speed))
        return found

    def stored(self) -> Array:
        """C p^2/2 over the nodes whose pressure is not given, J, (num_worlds,)."""
        volume = self.node["volume"].copy()
        for at, area, oil, _ in self.chambers():
            volume[:, at] += area * oil
        stored = 0.5 * volume / self.node["bulk_modulus"] * self.pressure**2
        return np.asarray(np.sum(np.where(self.node["fixed"] > 0.5, 0.0, stored), axis=1))

    def powers(self) -> dict[str, Array]:
        """Of pumps, valves, edges and given pressures, W; with the circuit's name what chambers carry along."""
        flows: Any = Flows(self._with_openings(), self.parts, self.place)  # type: ignore[arg-type]
        p, inflow, out = self.pressure, np.zeros_like(self.pressure), {}
        for kind, firsts, count in (("oil_valve", flows.valves, 4), ("oil_edge", flows.edges, 1)):
            for n, first in firsts.items():
                name = f"{self.groups[kind].type.prefix}.{self.groups[kind].labels[n]}"
                branches = range(first[0], first[0] + count) if count > 1 else (first,)
                out[name] = np.zeros(self.num_worlds)
                for branch in branches:
                    b, flow = flows.branches[branch], flows.flow(branch, p)
                    out[name] = out[name] - flow * (p[:, b.i] - p[:, b.j])
                    inflow[:, b.i] -= flow
                    inflow[:, b.j] += flow
        for n in self.parts.pumps:
            group = self.groups["oil_pump"]
            at, flow = self.place[int(group.params["node"][0, n])], flows.pump(n, p)[0]
            out[f"{group.type.prefix}.{group.labels[n]}"] = flow * p[:, at]
            inflow[:, at] += flow
        return out | self._given(inflow) | self._carried()

    def _with_openings(self) -> CircuitNow:
        """With the openings of the spools where they are."""
        if "oil_valve" in self.groups:
            group = self.groups["oil_valve"]
            p = group.params
            openings = hydraulics.edge_openings(group.state["spool"], p["overlap_supply"], p["overlap_drain"])
            gains = p["flow_gain"], p["drain_gain"], p["flow_gain"], p["drain_gain"]
            opened = [self.broadcast(gain * opening) for gain, opening in zip(gains, openings, strict=True)]
            self.scratch = {"oil_valve.opened": np.stack(opened)}
        return self

    scratch: dict[str, Array]

    def _given(self, inflow: Array) -> dict[str, Array]:
        """What nodes of a given pressure, such as tanks, bring in."""
        nodes, out = self.groups["oil_node"], {}
        for n in self.parts.nodes:
            at = self.place[n]
            if (self.node["fixed"][:, at] > 0.5).any():
                power = inflow[:, at] - sum(area * speed for i, area, _, speed in self.chambers() if i == at)
                out[f"{nodes.type.prefix}.{nodes.labels[n]}"] = -self.pressure[:, at] * power
        return out

    def _carried(self) -> dict[str, Array]:
        carried = np.zeros(self.num_worlds)
        for at, area, _, speed in self.chambers():
            own = 0.5 * self.pressure[:, at] ** 2 / self.node["bulk_modulus"][:, at] * area * speed
            carried = carried + np.where(self.node["fixed"][:, at] > 0.5, 0.0, own)
        return {f"circuit.{self.label}": carried}
