"""Builder of the table of all signals of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusim.reference.signals.quantities import SIM
from gpusim.signals import energy
from gpusim.signals.actuator_signals import add_actuator_signals
from gpusim.signals.body_signals import add_body_signals
from gpusim.signals.contact_signals import add_contact_signals
from gpusim.signals.joint_signals import add_joint_signals
from gpusim.signals.sensor_signals import add_force_signals, add_ray_signals, add_site_signals
from gpusim.signals.signal import SignalTable
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation


def build_signals(sim: Simulation) -> SignalTable:
    """Build ``sim.*``, ``body.*``, ``joint.*``, ``shape.*``, ``site.*``, ``sensor.*`` and the actuators' signals."""
    table = SignalTable(sim.now)
    _add_global_signals(sim, table)
    add_body_signals(sim, table)
    add_joint_signals(sim, table)
    add_actuator_signals(sim, table)
    add_contact_signals(sim, table)
    add_site_signals(sim, table)
    add_force_signals(sim, table)
    add_ray_signals(sim, table)
    if sim.programs is not None:
        sim.programs.add_signals(sim, table)
    return table


def _add_global_signals(sim: Simulation, table: SignalTable) -> None:
    for quantity in SIM:
        table.observe(f"sim.{quantity.name}", quantity, (0,))
    now = sim.now
    table.add(
        "sim.kinetic_energy", (), "J", "bodies, rotors, pistons", lambda: energy.kinetic_energy(sim.forward()),
        forward=True,
    )  # fmt: skip
    table.add(
        "sim.potential_energy", (), "J", "gravity (zero at the origin) and springs",
        lambda: energy.potential_energy(now),
    )  # fmt: skip
    table.add("sim.joint_drift", (), "m", "greatest gap of a joint", lambda: energy.joint_drift(sim.backend.work))
    table.add(
        "sim.health", (), "-",
        "0: fine; sum of 1: failed and quarantined, 2: more close pairs than places, 4: not converged, 8: a joint came "
        "apart, 16: contacts not converged, 32: oil cavitated, 64: a motion jumped",
        lambda: sim.status_flags(),
    )  # fmt: skip

    def write_gravity(worlds: Array, value: Array) -> None:
        sim.write_parameter("gravity", slice(None), worlds, value)

    table.add(
        "sim.gravity", (3,), "m/s2", "may differ per world", lambda: np.array(sim.parameter("gravity")), write_gravity
    )
