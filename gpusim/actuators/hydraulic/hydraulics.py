"""Building blocks of hydraulics: valve, edge (orifice) and chamber.

Arguments are arrays (1 or num_worlds, n) over n edges or chambers. ``orifice_gain`` takes numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gpusim import validate
from gpusim.description.actuator_kinds import Group, StepBuffers
from gpusim.errors import ModelError
from gpusim.typing import Array

PAPERS_SUBSTEP = 1e-4
"""Maximum step size for the piston with ``coupling="papers"``, s."""


def orifice_gain(discharge_coefficient: float, spool_diameter: float, spool_travel: float, density: float) -> float:
    """Return the flow gain K = alpha pi d x sqrt(2/rho) of a fully open spool edge, for the flow ``Q = K sqrt(dp)``.

    Args:
        discharge_coefficient: discharge coefficient alpha (0.6 to 0.7 for sharp edges).
        spool_diameter: diameter d of the spool (m).
        spool_travel: travel x of the spool at full command (m).
        density: density rho of the oil (kg/m3).

    Returns:
        Flow gain K (m3/s/sqrt(Pa)).

    Raises:
        ModelError: a value is not positive.
    """
    for name, value in (
        ("discharge_coefficient", discharge_coefficient),
        ("spool_diameter", spool_diameter),
        ("spool_travel", spool_travel),
        ("density", density),
    ):
        if not value > 0.0:
            raise ModelError(f"orifice_gain: {name} = {value} must be above zero; give a positive {name}")
    return discharge_coefficient * math.pi * spool_diameter * spool_travel * math.sqrt(2.0 / density)


def check_overlaps(group: Group) -> None:
    """Raise ModelError if an overlap of a spool valve is out of range."""
    c1, c2 = group.params["overlap_supply"], group.params["overlap_drain"]
    if np.any((c1 < 0.0) | (c1 >= 1.0) | (np.abs(c2) >= 1.0)):
        fix = "write 0 <= overlap_supply < 1 and -1 < overlap_drain < 1"
        raise validate.fail(group.specs[0].element, "overlap_supply or overlap_drain is out of range", fix)


def second_order_valve(
    position: Array, rate: Array, command: Array, gain: Array, frequency: Array, damping: Array, h: float
) -> tuple[Array, Array, Array]:
    """Solve ``x'' + 2 D w x' + w^2 x = K w^2 u`` exactly over one step, with spool position x and constant command u.

    Returns:
        Position and rate at the end of the step, and the mean position over the step.
    """
    target = gain * command
    decay = damping * frequency
    under = frequency * frequency * (1.0 - damping * damping)
    root = np.sqrt(np.abs(under))
    angle = root * h
    near_critical = angle < 1e-4
    safe = np.where(near_critical, 1.0, root)
    # The exponentials include the decay, because cosh alone would overflow.
    e = np.exp(-decay * h)
    slow, fast = 0.5 * np.exp(-(decay - root) * h), 0.5 * np.exp(-(decay + root) * h)
    c = np.where(under >= 0.0, e * np.cos(angle), slow + fast)
    s = np.where(near_critical, e * h, np.where(under >= 0.0, e * np.sin(angle) / safe, (slow - fast) / safe))
    offset = position - target
    new_position = target + offset * (c + decay * s) + rate * s
    new_rate = rate * (c - decay * s) - frequency * frequency * offset * s
    # Integrate the equation over the step to get the mean.
    change = (new_rate - rate) + 2.0 * decay * (new_position - position)
    mean = target - change / (frequency * frequency * h)
    return new_position, new_rate, mean


def first_order_valve(
    position: Array, command: Array, gain: Array, time_constant: Array, h: float
) -> tuple[Array, Array]:
    """Solve ``T x' + x = K u`` exactly over one step with constant u. Return the final and the mean position x."""
    target = gain * command
    ratio = h / time_constant
    offset = position - target
    return target + offset * np.exp(-ratio), target - offset * np.expm1(-ratio) / ratio


def edge_openings(spool: Array, overlap_supply: Array, overlap_drain: Array) -> tuple[Array, Array, Array, Array]:
    """Return the openings (0 to 1) of the edges supply to A, A to tank, supply to B, and B to tank.

    At the spool position x, the opening from supply to A is max(0, (x - c1)/(1 - c1)). The opening from B to tank is
    max(0, (x + c2)/(1 + c2)). For the edges from supply to B and from A to tank, replace x by -x. A closed-center valve
    has c2 < 0.
    """
    x = np.clip(spool, -1.0, 1.0)

    def supply(y: Array) -> Array:
        return np.maximum(0.0, (y - overlap_supply) / (1.0 - overlap_supply))

    def drain(y: Array) -> Array:
        return np.maximum(0.0, (y + overlap_drain) / (1.0 + overlap_drain))

    return supply(x), drain(-x), supply(-x), drain(x)


def edge_conductance(opened: Array, drop: Array, transition: Array, linear: Array | None) -> Array:
    """Return the conductance G = flow / pressure drop of edges.

    Args:
        opened: flow gain K times opening a (m3/s/sqrt(Pa)).
        drop: pressure drop d = p_ref - p (Pa).
        transition: transition pressure p_tr, below which the flow is laminar (Pa).
        linear: mask of the edges with Q = K a sign(d) sqrt(|d|) above p_tr, and linear flow below. All other edges have
            Q = K a d/(d^2 + p_tr^2)^(1/4). None stands for an empty mask.
    """
    root = np.sqrt(np.sqrt(drop * drop + transition * transition))
    if linear is not None:
        root = np.where(linear, np.sqrt(np.maximum(np.abs(drop), transition)), root)
    conductance: Array = opened / root
    return conductance


def chamber(
    pressure: Array, compliance: Array, area: Array, conductance: Array, inflow: Array, h: float
) -> tuple[Array, Array]:
    """Return the pressure after an implicit step as a linear function of the piston velocity v: ``p+ = a - b v``.

    The equation of the chamber is ``C p' = sum G (p_ref - p+) - S v`` with the compliance C = V/beta.

    Args:
        pressure: pressure at the start of the step (Pa).
        compliance: compliance C of chamber and hose (m3/Pa).
        area: piston area S (m2), negative for the chamber that shrinks when the piston extends.
        conductance: sum of the conductances G of the edges (m3/s/Pa).
        inflow: sum of G p_ref over the edges (m3/s).
        h: step size (s).

    Returns:
        a (Pa) and b (Pa s/m).
    """
    rate = h / compliance
    divisor = 1.0 + rate * conductance
    return (pressure + rate * inflow) / divisor, rate * area / divisor


def compliances(p: dict[str, Array], x: Array) -> Array:
    """Return the compliances V/beta of both chambers, including hoses (m3/Pa), (2, worlds, n)."""
    bulk, hose = p["bulk_modulus"], p["hose_bulk_modulus"]
    return np.stack(
        [
            (p["volume_a"] + p["area_a"] * x) / bulk + p["hose_volume_a"] / hose,
            (p["volume_b"] - p["area_b"] * x) / bulk + p["hose_volume_b"] / hose,
        ]
    )


def middle_stroke(p: dict[str, Array], oil: Array, speed: Array, h: float) -> Array:
    """Return the stroke in the middle of the step (m), clipped to the end stops.

    Args:
        p: parameters ``stroke_min`` and ``stroke_max`` (m).
        oil: stroke at the start of the step, as integrated for the oil volume (m).
        speed: velocity at the last half step (m/s).
        h: step size (s).
    """
    low, high = np.minimum(p["stroke_min"], oil), np.maximum(p["stroke_max"], oil)
    return np.clip(oil + 0.5 * h * speed, low, high)


def free_piston(group: Group, work: StepBuffers, x: Array) -> Array:
    """Return velocity, pressures and void volumes of the unloaded piston after the step, for ``coupling="papers"``.

    The piston starts with the velocity of the load. Mass and viscous friction of the piston resist the oil force.

    Args:
        group: actuator group of the cylinders.
        work: work arrays of the step.
        x: stroke at t_n (m).

    Returns:
        Velocity (m/s), p_A and p_B (Pa), and both void volumes (m3), (5, num_worlds, n).
    """
    p = group.params
    count = max(1, math.ceil(work.h / PAPERS_SUBSTEP - 1e-9))
    h = work.h / count
    velocity = work.rate[:, group.axis]
    pressure, void = work.circuit.pressure, work.circuit.void
    position = x
    mass = np.where(p["papers_coupling"] > 0.5, p["piston_mass"], 1.0)
    for _ in range(count):
        chambers = replace(work.circuit, pressure=pressure, void=void, compliance=compliances(p, position), h=h)
        chambers.speed = velocity
        guess, slope = chambers.begin(pressure)
        a, b = chambers.lines(guess, slope)
        force = p["area_a"] * a[0] - p["area_b"] * a[1]
        drag = p["area_a"] * b[0] - p["area_b"] * b[1] + p["viscous_friction"]
        velocity = (mass * velocity + h * force) / (mass + h * drag)
        moved = np.clip(position + h * velocity, p["stroke_min"], p["stroke_max"])
        velocity = (moved - position) / h
        position = moved
        pressure, void = chambers.settled(a - b * velocity, guess, velocity)
    return np.stack([velocity, *pressure, *void])
