"""Stability of loads that are lowered on a holding valve.

Linearized equations of tests/reference/circuits/generate.py, for a load that sinks at a steady speed u > 0:

    m u'   = L - S_A p_A + S_B p_B - k u              C_A p_A' = S_A u - Q(y, p_A - p_h)
    C_B p_B' = Q_s - S_B u - G (p_B - p_p)            C_h p_h' = Q(y, p_A - p_h) - Q_drain(p_h)
    C_p p_p' = G (p_B - p_p),  G = C_p/T_p            T y'     = (p_A + R p_p - p_set)/range - y
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim import machines as m
from gpusim.machines.arm_cylinders import HOSE_VOLUME, add_drive_valves, holding_pressures, piston_areas
from gpusim.machines.holding import FREE_DROP, LAMINAR, RETURN, orifice_gain
from tests.message_snapshot import naming

from .circuits import G, load

BULK, PILOT_VOLUME, DEAD_VOLUME, OVERLAP = 1.5e9, 2e-5, 2e-4, 0.05
SPOOL = m.Spool(6e-4)
VALVE = m.HoldingValve(1.6e7)
UNDAMPED = m.HoldingValve(1.6e7, pilot_ratio=4.0, opening_range=2e6, pilot_time=0.0, time_constant=0.01)
# The excavator's boom cylinder feels 7.7 kN and about 4 t.
LOADS = [(2000.0, 4000.0), (4000.0, 7700.0), (8000.0, 15400.0), (4000.0, 15400.0), (8000.0, 7700.0)]
COMMANDS = (0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True)
class Lift:
    mass: float
    push: float
    extension: float
    stroke: float = 0.5
    areas: tuple[float, float] = piston_areas("lift", 0.063, 0.036)
    viscous: float = 4000.0


def slope(gain: float, drop: float) -> tuple[float, float]:
    square = drop * drop + LAMINAR**2
    whole = gain / square**0.25
    return whole * drop, whole * (0.5 * drop * drop + LAMINAR**2) / square


def drop_of(gain: float, flow: float) -> float:
    return float(brentq(lambda d: slope(gain, d)[0] - flow, 0.0, 1e9, xtol=1e-3))


def linear(lift: Lift, valve: m.HoldingValve, command: float) -> np.ndarray:
    (area_a, area_b), share = lift.areas, (command - OVERLAP) / (1.0 - OVERLAP)
    speed = share * SPOOL.flow / area_b
    flow = area_a * speed
    drain, whole = share * orifice_gain(SPOOL.flow, SPOOL.drop), orifice_gain(SPOOL.flow, FREE_DROP)
    behind = drop_of(drain, flow)
    hose = RETURN + behind

    def steady(pilot: float) -> tuple[float, float, float]:
        a = (lift.push - lift.viscous * speed + area_b * pilot) / area_a
        return a, (a + valve.pilot_ratio * pilot - valve.pressure) / valve.opening_range, a - hose

    def misses(pilot: float) -> float:
        _, y, d = steady(pilot)
        return slope(whole * min(max(y, 0.0), 1.0), d)[0] - flow if d > 0.0 else -flow

    _, y, d = steady(brentq(misses, 0.0, 2e8, xtol=1e-3))
    assert 0.0 < y < 1.0
    c_a = (DEAD_VOLUME + area_a * lift.extension) / BULK
    c_b = (DEAD_VOLUME + area_b * (lift.stroke - lift.extension)) / BULK
    c_h, c_p = HOSE_VOLUME / BULK, PILOT_VOLUME / BULK
    out, poppet, back = slope(whole * y, d)[1], slope(whole, d)[0], slope(drain, behind)[1]
    lag, wide = valve.time_constant, valve.opening_range
    pilot = valve.pilot_ratio / wide / lag
    rows = [
        [-lift.viscous / lift.mass, -area_a / lift.mass, area_b / lift.mass, 0, 0, 0],
        [area_a / c_a, -out / c_a, 0, out / c_a, -poppet / c_a, 0],
        [-area_b / c_b, 0, 0, 0, 0, 0],
        [0, out / c_h, 0, -(out + back) / c_h, poppet / c_h, 0],
        [0, 1 / wide / lag, pilot, 0, -1 / lag, 0],
        [0, 0, 0, 0, 0, -1e3],
    ]
    if valve.pilot_time > 0.0:
        leak = c_p / valve.pilot_time
        rows[2][2], rows[2][5] = -leak / c_b, leak / c_b
        rows[4][2], rows[4][5] = 0, pilot
        rows[5][2], rows[5][5] = leak / c_p, -leak / c_p
    return np.array(rows, float)


def lifts() -> list[Lift]:
    return [Lift(mass, push, extension) for mass, push in LOADS for extension in (0.1, 0.25, 0.4)]


def growth(valve: m.HoldingValve) -> list[float]:
    return [float(np.linalg.eigvals(linear(x, valve, c)).real.max()) for x in lifts() for c in COMMANDS]


def test_poles_lie_to_the_left_with_the_valve_as_it_is() -> None:
    assert max(growth(VALVE)) < -3.0
    assert np.mean(np.array(growth(UNDAMPED)) > 0.0) > 0.9


def lowering(
    lift: Lift, valve: m.HoldingValve, command: float, dt: float, spool: m.Spool = SPOOL, pump: float = 2e7
) -> Simulation:
    b = ModelBuilder()
    body = load(b, "load", lift.mass, 0.0)
    b.add_force(body, (0.0, 0.0, lift.mass * G - lift.push), label="lighter")
    b.add_force(body, (0.0, 0.0, -1.0), label="more")
    pack = m.add_power_pack(b, 2e-3, pump)
    pressure = holding_pressures(lift.push, lift.areas, 5e5)
    cylinder = pack.circuit.add_cylinder(
        -1, body, (0, 0, -1), (0, 0, 0), length_offset=1.0 - lift.extension, area_a=lift.areas[0], area_b=lift.areas[1],
        stroke_min=0.0, stroke_max=lift.stroke, dead_volume=DEAD_VOLUME, pressure=pressure,
        viscous_friction=lift.viscous, label="ram_cylinder",
    )  # fmt: skip
    add_drive_valves(pack, cylinder, "ram", spool, None, valve, pressure)
    sim = Simulation(b.finalize(), config=SolverConfig(dt=dt))
    sim.control["more"] = 0.0
    sim.step(round(0.1 / dt))
    sim.control["ram"] = -command
    return sim


def force(sim: Simulation) -> float:
    return float(sim.read("cylinder.ram_cylinder.force")[0])


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize("dt", [5e-3, 1e-3])
@pytest.mark.parametrize("command", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_loads_go_down_smoothly_and_stay(scale: float, command: float, dt: float) -> None:
    lift = Lift(4000.0 * scale, 7700.0 * scale, 0.45)
    sim = lowering(lift, VALVE, command, dt)
    forces = []
    for k in range(round(1.3 / dt)):
        sim.step()
        if k * dt >= 1.0:
            forces.append(force(sim))
    assert np.std(forces) < 0.03 * abs(np.mean(forces))
    assert sim.read("cylinder.ram_cylinder.velocity")[0] < 0.0
    sim.control["ram"] = 0.0
    sim.step(round(2.0 / dt))
    places = []
    for _ in range(2 * round(1.0 / dt)):
        sim.step()
        places.append(float(sim.read("joint.x_load.position")[0]))
    before, after = np.array(places).reshape(2, -1).mean(axis=1)  # it bounces on its oil by some 0.02 mm
    assert after == pytest.approx(before, abs=5e-6)


@pytest.mark.native
def test_a_small_push_is_answered_as_the_poles_report() -> None:
    dt, lift, command = 2.5e-4, Lift(4000.0, 7700.0, 0.45), 0.2
    sim = lowering(lift, VALVE, command, dt)
    sim.step(round(3.0 / dt))
    extension = float(sim.read("cylinder.ram_cylinder.position")[0])
    before = float(sim.read("cylinder.ram_cylinder.velocity")[0])
    matrix = linear(Lift(lift.mass, lift.push, extension), VALVE, command)
    sim.control["more"] = 200.0
    still = -np.linalg.solve(matrix, np.array([200.0 / lift.mass, 0, 0, 0, 0, 0]))
    found, reported = [], []
    for k in range(round(0.5 / dt)):
        sim.step()
        found.append(before - float(sim.read("cylinder.ram_cylinder.velocity")[0]))
        if k % 20 == 0:
            reported.append((still - expm(matrix * dt * (k + 1)) @ still)[0])
    found = found[::20]
    assert np.abs(np.array(found) - reported).max() < 0.1 * np.abs(reported).max()


THICK = piston_areas("lift", 0.08, 0.07)


@pytest.mark.native
@pytest.mark.parametrize(
    ("spool", "bore", "rod", "pump", "command", "within"),
    [
        (SPOOL, 0.063, 0.036, 2e7, 0.3, 1e-3),
        (SPOOL, 0.063, 0.036, 5e6, 1.0, 0.02),
        (SPOOL, 0.08, 0.07, 2e7, 1.0, 0.02),
        (m.Spool(6e-4, compensated=False), 0.063, 0.036, 2e7, 0.5, 0.02),
        (m.Spool(6e-4, drain=THICK[0] / THICK[1]), 0.08, 0.07, 2e7, 1.0, 0.03),
    ],
)
def test_speed_and_pressures_are_those_calculated_by_hand(
    spool: m.Spool, bore: float, rod: float, pump: float, command: float, within: float
) -> None:
    areas, force = piston_areas("lift", bore, rod), 7700.0 if bore < 0.07 else 15000.0
    ram = m.ArmCylinder("ram", "a", "b", ((0, 0), (0, 0)), bore, rod, 1.0, spool, holding=VALVE)
    freely = ram.lowering(force, command, None if spool.compensated else pump)
    if spool.compensated:
        assert freely.speed == pytest.approx((command - OVERLAP) / (1.0 - OVERLAP) * spool.flow / areas[1], rel=1e-12)
    sim = lowering(Lift(4000.0, force, 0.95, 1.0, areas), VALVE, command, 2e-3, spool, pump)
    sim.step(round(min(3.0, 0.8 / ram.lowering(force, command, pump).speed) / 2e-3))
    reported = ram.lowering(force, command, float(sim.read("node.line.pressure")[0]))
    assert reported.pump <= min(freely.pump, pump) * (1.0 + 1e-9)
    found = [-float(sim.read("cylinder.ram_cylinder.velocity")[0])]
    found += [float(sim.read(f"cylinder.ram_cylinder.pressure_{port}")[0]) for port in "ab"]
    assert found == pytest.approx([reported.speed, reported.pressure_a, reported.pressure_b], rel=within)


def test_a_thick_rod_is_let_down_by_a_wide_drain() -> None:
    def needs(drain: float) -> float:
        spool = m.Spool(6e-4, drain=drain)
        return (
            m.ArmCylinder("ram", "a", "b", ((0, 0), (0, 0)), 0.08, 0.07, 1.0, spool, holding=VALVE).lowering(15e3).pump
        )

    assert needs(1.0) > 4e7
    assert needs(THICK[0] / THICK[1]) < 1e7


@pytest.mark.parametrize(
    ("change", "values", "rule"),
    [
        ({}, {"command": 0.04}, ""),
        ({"holding": ()}, {}, "0"),
        ({}, {"line_pressure": -1.0}, "line_pressure"),
        ({}, {"line_pressure": 5e5}, ""),
        ({}, {"return_pressure": -1.0}, "return_pressure"),
        ({"spool": m.Spool(6e-4, compensated=False)}, {}, "line_pressure"),
        ({"spool": 6e-4}, {}, ""),
        ({"holding": m.HoldingValve(2e6)}, {}, ""),
        ({"holding": m.HoldingValve(1.6e7, "c")}, {}, ""),
        ({"holding": m.HoldingValve(1.6e7, opening_range=0.0)}, {}, "holding.opening_range"),
        ({"holding": m.HoldingValve(1.6e7, pilot_ratio=-3.0)}, {}, "holding.pilot_ratio"),
        ({"holding": 5}, {}, "HoldingValve"),
        ({"holding": (VALVE, VALVE)}, {}, ""),
        ({"viscous_friction": -1.0}, {}, "viscous_friction"),
    ],
)
def test_what_cannot_be_calculated_is_reported(change: dict, values: dict, rule: str) -> None:
    given = {"holding": VALVE, "spool": SPOOL} | change
    ram = m.ArmCylinder("ram", "a", "b", ((0, 0), (0, 0)), 0.063, 0.036, 1.0, **given)
    with pytest.raises(ModelError, match=naming(rule)):
        ram.lowering(7700.0, **values)
