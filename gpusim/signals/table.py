"""Construction of the table of all signals of a simulation."""

from __future__ import annotations

import numpy as np

from gpusim.reference.signals.quantities import SIM
from gpusim.signals import energy
from gpusim.signals.elements.actuator_signals import add_actuator_signals
from gpusim.signals.elements.body_signals import add_body_signals
from gpusim.signals.elements.contact_signals import add_contact_signals
from gpusim.signals.elements.joint_signals import add_joint_signals
from gpusim.signals.elements.sensor_signals import add_force_signals, add_ray_signals, add_site_signals
from gpusim.signals.programs import add_program_signals
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SignalTable
from gpusim.typing import Array


def build_signals(runtime: Runtime) -> SignalTable:
    """Create all signals: ``sim.*``, ``body.*``, ``joint.*``, ``shape.*``, ``site.*``, ``sensor.*`` and actuators."""
    table = SignalTable(runtime.now)
    _add_global_signals(runtime, table)
    add_body_signals(runtime, table)
    add_joint_signals(runtime, table)
    add_actuator_signals(runtime, table)
    add_contact_signals(runtime, table)
    add_site_signals(runtime, table)
    add_force_signals(runtime, table)
    add_ray_signals(runtime, table)
    add_program_signals(runtime, table)
    return table


def _add_global_signals(runtime: Runtime, table: SignalTable) -> None:
    for quantity in SIM:
        table.observe(f"sim.{quantity.name}", quantity, (0,))
    now = runtime.now
    table.add(
        "sim.kinetic_energy", (), "J", "bodies, rotors and pistons", lambda: energy.kinetic_energy(runtime.forward()),
        forward=True,
    )  # fmt: skip
    table.add(
        "sim.potential_energy", (), "J", "gravity (zero at the origin) and springs",
        lambda: energy.potential_energy(now),
    )  # fmt: skip
    table.add("sim.joint_drift", (), "m", "maximum gap of all joints", lambda: energy.joint_drift(runtime.backend.work))
    table.add(
        "sim.health", (), "-",
        "0: no problem; sum of 1: failed and stopped, 2: more close pairs than max_pairs, 4: not converged, 8: a joint "
        "came apart, 16: contacts not converged, 32: oil cavitated, 64: a motion jumped, 128: a rotor was too fast",
        lambda: runtime.status,
    )  # fmt: skip

    def write_gravity(worlds: Array, value: Array) -> None:
        runtime.write_parameter("gravity", slice(None), worlds, value)

    table.add(
        "sim.gravity", (3,), "m/s2", "gravity; may differ per world",
        lambda: np.array(runtime.parameter("gravity")), write_gravity, parameter=("gravity", ()),
    )  # fmt: skip
