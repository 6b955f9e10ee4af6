from __future__ import annotations

import numpy as np
import pytest

from gpusim.scene import load_scene

from . import models
from .cases import CASES
from .march import simulation
from .reference_data import load
from .setups import Setup, read, total_energy

ENERGIES = {
    "A01": "energy0_J",
    "A02": "energy0_J",
    "A04": "energy0_J",
    "B01": "energy0_J",
    "C01": "rot_energy_J",
    "E01": "energy0_J",
}


@pytest.mark.parametrize("case", ENERGIES)
def test_energy_at_the_start(case):
    sim = simulation(CASES[case].scene(Setup()), Setup())
    assert total_energy(sim) == pytest.approx(load(case).record[ENERGIES[case]], abs=1e-10)


def test_flyball_starts_with_the_recorded_energy_and_angular_momentum():
    scene = CASES["A05"].scene(Setup())
    sim = simulation(scene, Setup())
    record = load("A05").record
    shaft = 0.3 * 9.81 * 0.5
    assert total_energy(sim) - shaft == pytest.approx(record["E0"], abs=1e-9)
    momentum = sum(2.0 * _spin_energy(body) / record["initial"]["omega0"] for body in scene.builder.bodies)
    assert momentum == pytest.approx(record["Lz0"], abs=1e-9)


def _spin_energy(body) -> float:
    rate = body.xform.inverse().rotate(body.angular_velocity)
    return 0.5 * float(body.mass * np.dot(body.linear_velocity, body.linear_velocity) + rate @ body.inertia @ rate)


def test_heavy_top_starts_with_the_recorded_energy():
    sim = simulation(CASES["C03"].scene(Setup()), Setup())
    assert total_energy(sim) == pytest.approx(load("C03").record["invariants"]["E"], abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_joints_start_closed_and_the_output_starts_right(case):
    trajectory = CASES[case]
    sim = simulation(trajectory.scene(Setup()), Setup())
    reference = load(case)
    assert read(sim, "sim.joint_drift") < 1e-14
    found = np.asarray([trajectory.observe(sim)], dtype=float)
    assert trajectory.errors(found, reference.table(*trajectory.columns)[:1])[0] < 1e-8


def test_lift_and_boom_start_at_their_holding_pressures():
    for case, scene in (
        ("case1d", load_scene("hydraulic_lift", variant="closed_center")),
        ("case4", load_scene("boom_crane")),
    ):
        (cylinder,) = (a for a in scene.builder.actuators if a.label == "lift")
        initial = load(case).record["initial"]
        assert cylinder.params["initial_pressure_a"] == pytest.approx(initial["pA0"], rel=1e-12)
        assert cylinder.params["initial_pressure_b"] == pytest.approx(initial["pB0"], rel=1e-12)


LIFT_NAMES = {
    "S_A": "area_a",
    "S_B": "area_b",
    "V_A": "volume_a",
    "V_B": "volume_b",
    "beta": "bulk_modulus",
    "k": "viscous_friction",
    "F_fmax": "dry_friction",
    "x_pmin": "stroke_min",
    "x_pmax": "stroke_max",
    "p_S": "supply_pressure",
    "p_T": "tank_pressure",
    "c1": "overlap_supply",
    "c2": "overlap_drain",
    "omega_v": "valve_frequency",
    "D_v": "valve_damping",
    "p_tr": "transition_pressure",
    "K_cav": "anticavitation_gain",
    "F_br": "brake_force",
    "m_p": "piston_mass",
}


@pytest.mark.parametrize(
    ("case", "scene", "parameters"),
    [
        ("case1a", "hydraulic_lift", {}),
        ("case1c", "hydraulic_lift", {"variant": "ramped"}),
        ("case1d", "hydraulic_lift", {"variant": "closed_center"}),
        ("case4", "boom_crane", {}),
    ],
)
def test_cylinder_parameters_are_the_records(case, scene, parameters):
    builder = load_scene(scene, **parameters).builder
    (cylinder,) = (a for a in builder.actuators if a.label == "lift")
    record = load(case).record
    for symbol, name in LIFT_NAMES.items():
        assert cylinder.params[name] == pytest.approx(record["parameters"][symbol], rel=1e-12), name
    assert cylinder.params["flow_gain"] == pytest.approx(record["K_q"], rel=1e-12)
    if "M" in record["parameters"]:
        assert builder.bodies[0].mass == record["parameters"]["M"]


def test_spring_masses_are_the_records():
    builder = models.spring_masses().builder
    variants = load("case3a").record["columns"]
    assert [a.params["stiffness"] for a in builder.actuators] == [v["k"] for v in variants]
    assert [a.params["damping"] for a in builder.actuators] == [v["c"] for v in variants]
