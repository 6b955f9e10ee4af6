"""Holding valves, and an analytic model of a cylinder that lowers a load through a holding valve.

A constant force L moves the piston at the constant speed u. c is the viscous friction. Chamber k carries the load. The
spool feeds the opposite chamber o. p_hose is the pressure between the holding valve and the spool. Chamber i has the
area S_i, the pressure p_i and the flow Q_i:

    S_k p_k = L - c u + S_o p_o        Q_k = S_k u = y K sqrt(p_k - p_hose) = s K_drain sqrt(p_hose - p_return)
    y = (p_k + R p_o - p_set)/range    Q_o = S_o u = s K_supply sqrt(p_pump - p_o)

s is the opening of the spool. y is the opening of the holding valve. K, K_drain and K_supply are flow gains. R is the
valve's ``pilot_ratio``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpusim import validate

FREE_DROP = 3e5
"""Pressure drop (Pa) of a drive's check valve at the spool's full flow."""
LAMINAR = 2e5
"""Pressure drop below which the flow through a drive's valves is laminar, Pa."""
RETURN = 4e5
"""Absolute pressure of the return line, Pa, high enough to prevent cavitation."""
MAX_PRESSURE, BISECTIONS = 1e9, 80


def orifice_gain(flow: float, drop: float) -> float:
    """Return the gain K (m3/s/sqrt(Pa)) of an orifice with flow Q at drop d, from Q = K d/(d^2 + LAMINAR^2)^(1/4)."""
    return flow * math.hypot(drop, LAMINAR) ** 0.5 / drop


def orifice_flow(gain: float, drop: float) -> float:
    """Return the flow (m3/s) of an orifice at the pressure drop ``drop`` (Pa)."""
    return gain * drop / math.hypot(drop, LAMINAR) ** 0.5


def orifice_drop(gain: float, flow: float) -> float:
    """Return the pressure drop d (Pa) for a flow Q (m3/s), from d^4 = (Q/K)^4 (d^2 + LAMINAR^2)."""
    square = (flow / gain) ** 2
    return math.sqrt(0.5 * square * (square + math.hypot(square, 2.0 * LAMINAR)))


@dataclass(frozen=True)
class HoldingValve:
    """A counterbalance valve (holding valve) on a chamber of a cylinder.

    The valve holds the load until the spool pressurizes the opposite chamber. The valve also holds the load if a hose
    breaks.

    The pilot pressure is the pressure of the opposite chamber. With a small ``pilot_time`` and a small
    ``opening_range``, the load oscillates. Larger values of ``pilot_time`` and ``opening_range`` damp the oscillation,
    but require a higher pump pressure (see ``ArmCylinder.lowering``). If the pump pressure is too low, the load
    descends more slowly than commanded. At a pressure drop of 3e5 Pa, the open valve passes the flow ``Spool.drain``
    times ``Spool.flow``.

    Attributes:
        pressure: chamber pressure (Pa) at which the valve starts to open without pilot pressure. ``pressure`` must
            exceed the chamber pressure under every load.
        chamber: chamber to which the valve is attached, "a" or "b".
        pilot_ratio: factor R of the pilot pressure in the equation of the valve opening (see ``holding.py``).
        opening_range: pressure rise (Pa) from the start of opening to the full opening.
        pilot_time: time constant (s) of the pilot pressure, or 0 for no delay.
        time_constant: time constant (s) of the poppet.
    """

    pressure: float
    chamber: str = "a"
    pilot_ratio: float = 3.0
    opening_range: float = 5e7
    pilot_time: float = 0.5
    time_constant: float = 0.005

    def check(self, element: str) -> None:
        """Raise a ModelError if a number is invalid."""
        if self.chamber not in ("a", "b"):
            raise validate.fail(element, f"holding.chamber = {self.chamber!r} is unknown", 'give "a" or "b"')
        for name in ("pressure", "opening_range"):
            validate.positive(element, f"holding.{name}", getattr(self, name))
        for name in ("pilot_ratio", "pilot_time", "time_constant"):
            validate.not_negative(element, f"holding.{name}", getattr(self, name))


def holding_valves(element: str, holding: Any) -> tuple[HoldingValve, ...]:
    """Check the holding valves (at most one per chamber) and return them as a tuple."""
    valves = (holding,) if isinstance(holding, HoldingValve) else holding
    if not isinstance(valves, tuple | list) or not all(isinstance(one, HoldingValve) for one in valves):
        rule = f"holding = {holding!r} is not a HoldingValve"
        raise validate.fail(element, rule, "give gpusim.machines.HoldingValve(pressure), or a list of them")
    for one in valves:
        one.check(element)
    if len({one.chamber for one in valves}) < len(valves):
        raise validate.fail(element, "has two holding valves on one chamber", "give one for each chamber")
    return tuple(valves)


@dataclass(frozen=True)
class Lowering:
    """A load that descends at constant speed.

    Attributes:
        speed: speed (m/s) of the piston, positive.
        pressure_a, pressure_b: pressures (Pa) of the chambers.
        pump: pressure (Pa) that the pump must supply.
    """

    speed: float
    pressure_a: float
    pressure_b: float
    pump: float


@dataclass(frozen=True)
class Balance:
    """The equations of ``holding.py`` for one cylinder at one spool command.

    Attributes:
        valve: the holding valve.
        areas: piston areas (m2) of the loaded chamber and of the opposite chamber.
        load: force (N) of the load.
        viscous: viscous friction (N s/m).
        supply, drain: gains s K_supply and s K_drain of the spool, m3/s/sqrt(Pa).
        poppet: gain K of the holding valve, m3/s/sqrt(Pa).
        return_pressure: pressure (Pa) of the line to the tank.
    """

    valve: HoldingValve
    areas: tuple[float, float]
    load: float
    viscous: float
    supply: float
    drain: float
    poppet: float
    return_pressure: float

    def pressures(self, speed: float) -> tuple[float, float, float]:
        """Return the pressures (Pa) of the loaded chamber, the opposite chamber and the pump at a speed (m/s)."""
        flow = self.areas[0] * speed
        hose = self.return_pressure + orifice_drop(self.drain, flow)

        def loaded_pressure(opposite: float) -> float:
            return (self.load - self.viscous * speed + self.areas[1] * opposite) / self.areas[0]

        def valve_flow(opposite: float) -> float:
            p, v = loaded_pressure(opposite), self.valve
            opening = min(max((p + v.pilot_ratio * opposite - v.pressure) / v.opening_range, 0.0), 1.0)
            return orifice_flow(self.poppet * opening, p - hose) if p > hose else 0.0

        low, high = 0.0, MAX_PRESSURE
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if valve_flow(middle) > flow else (middle, high)
        return loaded_pressure(high), high, high + orifice_drop(self.supply, self.areas[1] * speed)

    def speed(self, max_speed: float, pump: float) -> float:
        """Return the speed (m/s) at the pump pressure ``pump`` (Pa), at most ``max_speed``."""
        if self.pressures(max_speed)[2] <= pump:
            return max_speed
        low, high = 0.0, max_speed
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.pressures(middle)[2] <= pump else (low, middle)
        return low
