"""Holding valves, and the analytic lowering speed of a cylinder behind one.

For a load that moves steadily at speed u, chamber k carries the force L and the spool feeds chamber o:

    S_k p_k = L - c u + S_o p_o        Q_k = S_k u = y K sqrt(p_k - p_hose) = s K_drain sqrt(p_hose - p_return)
    y = (p_k + R p_o - p_set)/range    Q_o = S_o u = s K_supply sqrt(p_pump - p_o)

The roots are smooth at zero drop (actuators/circuit_flows.py). s is the opening of the spool and y that of the
valve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpusim import validate

FREE_DROP = 3e5
"""Pressure drop at which a drive's check valve passes the whole flow of its spool, Pa."""
LAMINAR = 2e5
"""Pressure drop below which the valves of drives are laminar, Pa.

The implicit solve takes many passes if the slope of a flow jumps by more than the oil's own stiffness, as at small
checks of small volumes.
"""
RETURN = 4e5
"""Absolute pressure of the return line, Pa. Its check valve keeps it, and it fills volumes that would run dry."""
MOST_PRESSURE, HALVINGS = 1e9, 80


def orifice_gain(flow: float, drop: float) -> float:
    """Return K of an orifice that passes ``flow`` at ``drop``: Q = K d/(d^2 + LAMINAR^2)^(1/4), m3/s/sqrt(Pa)."""
    return flow * math.hypot(drop, LAMINAR) ** 0.5 / drop


def orifice_flow(gain: float, drop: float) -> float:
    """Return the flow of an orifice, m3/s."""
    return gain * drop / math.hypot(drop, LAMINAR) ** 0.5


def orifice_drop(gain: float, flow: float) -> float:
    """Return the drop over an orifice, Pa: the inverse of :func:`orifice_flow`, d^4 = (Q/K)^4 (d^2 + LAMINAR^2)."""
    square = (flow / gain) ** 2
    return math.sqrt(0.5 * square * (square + math.hypot(square, 2.0 * LAMINAR)))


@dataclass(frozen=True)
class HoldingValve:
    """A counterbalance valve on a chamber.

    It holds the load until the other side is pressurized, even if a hose breaks.

    The faster a load descends, the less it presses on the pilot's side, and the oil of both sides is a spring. A valve
    that follows its pilot at once and opens over a small range therefore makes the load oscillate. A wide range and a
    slow pilot damp it (tests/analytic/test_holding_stability.py has the poles). They cost pressure on the other side,
    which ``ArmCylinder.lowering`` computes. With less pump pressure the load descends more slowly than the lever
    commands. The open valve passes the flow of the spool's edge to the tank (``Spool.drain`` times its flow) at 3e5 Pa.

    Attributes:
        pressure: at which it starts to open without the pilot, Pa. It must exceed the pressure of every load.
        chamber: "a" or "b".
        pilot_ratio: weight of the other side's pressure.
        opening_range: pressure above ``pressure`` at which it is fully open, Pa.
        pilot_time: time constant of its damped pilot line, s. 0: none.
        time_constant: of its poppet, s.
    """

    pressure: float
    chamber: str = "a"
    pilot_ratio: float = 3.0
    opening_range: float = 5e7
    pilot_time: float = 0.5
    time_constant: float = 0.005

    def check(self, element: str) -> None:
        """Raise a ModelError if a number breaks a rule."""
        if self.chamber not in ("a", "b"):
            raise validate.fail(element, f"holding.chamber = {self.chamber!r} is none", 'give "a" or "b"')
        for name in ("pressure", "opening_range"):
            validate.positive(element, f"holding.{name}", getattr(self, name))
        for name in ("pilot_ratio", "pilot_time", "time_constant"):
            validate.not_negative(element, f"holding.{name}", getattr(self, name))


def holding_valves(element: str, holding: Any) -> tuple[HoldingValve, ...]:
    """Return the holding valves as a tuple after checking them: at most one per chamber."""
    valves = (holding,) if isinstance(holding, HoldingValve) else holding
    if not isinstance(valves, tuple | list) or not all(isinstance(one, HoldingValve) for one in valves):
        rule = f"holding = {holding!r} is no HoldingValve"
        raise validate.fail(element, rule, "give gpusim.machines.HoldingValve(pressure), or a list of them")
    for one in valves:
        one.check(element)
    if len({one.chamber for one in valves}) < len(valves):
        raise validate.fail(element, "has two holding valves on one chamber", "give one for each chamber")
    return tuple(valves)


@dataclass(frozen=True)
class Lowering:
    """A load that descends steadily.

    Attributes:
        speed: of the piston, m/s, positive.
        pressure_a, pressure_b: of the chambers, Pa.
        pump: pressure that the pump has to supply, Pa.
    """

    speed: float
    pressure_a: float
    pressure_b: float
    pump: float


@dataclass(frozen=True)
class Balance:
    """The equations above for one cylinder and one lever position. Pairs are (carrying, other) chamber.

    Attributes:
        valve: the holding valve.
        areas: of the carrying and the other chamber, m2.
        load: on the carrying chamber, N.
        viscous: N s/m.
        supply, drain, poppet: K of the spool's open edges, s K, and of the valve, m3/s/sqrt(Pa).
        return_pressure: of the line to the tank, Pa.
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
        """Return the pressures of both chambers and of the pump at a speed, Pa."""
        flow = self.areas[0] * speed
        hose = self.return_pressure + orifice_drop(self.drain, flow)

        def carrying(other: float) -> float:
            return (self.load - self.viscous * speed + self.areas[1] * other) / self.areas[0]

        def passes(other: float) -> float:
            p, v = carrying(other), self.valve
            opening = min(max((p + v.pilot_ratio * other - v.pressure) / v.opening_range, 0.0), 1.0)
            return orifice_flow(self.poppet * opening, p - hose) if p > hose else 0.0

        low, high = 0.0, MOST_PRESSURE
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if passes(middle) > flow else (middle, high)
        return carrying(high), high, high + orifice_drop(self.supply, self.areas[1] * speed)

    def speed(self, most: float, pump: float) -> float:
        """Return the maximum speed up to ``most``, m/s, at which the pump pressure is at most ``pump``, Pa."""
        if self.pressures(most)[2] <= pump:
            return most
        low, high = 0.0, most
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.pressures(middle)[2] <= pump else (low, middle)
        return low
