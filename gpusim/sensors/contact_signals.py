"""Signals of contacts: forces on bodies and shapes, how many, how deep; and the shapes' parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusim.sensors.signal import SignalTable
from gpusim.typing import Array

if TYPE_CHECKING:
    from gpusim.simulation import Simulation

# Parameters of a shape by the name of their signal: unit and meaning.
_PARAMETERS = {
    "friction": ("-", "Coulomb's coefficient; of a pair the geometric mean"),
    "rolling_friction": ("m", "torque of rolling friction over normal force; of a pair the geometric mean"),
    "spinning_friction": ("m", "torque about the normal over normal force; of a pair the geometric mean"),
    "restitution": ("-", "speed after over speed before an impact; of a pair the larger one"),
}


def add_contact_signals(sim: Simulation, table: SignalTable) -> None:
    """``sim.contacts`` and others of all contacts, ``body.<label>.contact_force``, ``shape.<label>...``."""
    table.add("sim.contacts", (), "-", "contact points with force", lambda: sim.contact_sums().points, forward=True)
    table.add(
        "sim.penetration",
        (),
        "m",
        "deepest overlap of rigid contacts; tires and other soft normal laws do not count",
        lambda: sim.contact_sums().penetration,
        forward=True,
    )
    for index, body in enumerate(sim.model.bodies):
        _add_body(sim, table, index, f"body.{body.label}.")
    for index, shape in enumerate(sim.model.shapes):
        _add_shape(sim, table, index, f"shape.{shape.label}.")


def _add_body(sim: Simulation, table: SignalTable, index: int, prefix: str) -> None:
    table.add(
        prefix + "contact_force", (3,), "N", "sum of all contacts on the body, world frame",
        lambda: sim.contact_sums().body_force[:, index], forward=True,
    )  # fmt: skip
    table.add(
        prefix + "contact_torque", (3,), "N m", "of all contacts about the center of mass, world frame",
        lambda: sim.contact_sums().body_torque[:, index], forward=True,
    )  # fmt: skip


def _add_shape(sim: Simulation, table: SignalTable, index: int, prefix: str) -> None:
    table.add(
        prefix + "contact_force", (3,), "N", "sum of all contacts on the shape, world frame",
        lambda: sim.contact_sums().shape_force[:, index], forward=True,
    )  # fmt: skip
    table.add(
        prefix + "contacts", (), "-", "contact points with force",
        lambda: sim.contact_sums().shape_points[:, index], forward=True,
    )  # fmt: skip
    for name, (unit, doc) in _PARAMETERS.items():
        _add_parameter(sim, table, prefix + name, f"shape_{name}", index, unit, doc)


def _add_parameter(
    sim: Simulation, table: SignalTable, signal: str, field: str, index: int, unit: str, doc: str
) -> None:
    def write(worlds: Array, value: Array) -> None:
        sim.write_parameter(field, index, worlds, value)

    more = "; may differ per world; pairs with a material of their own keep it"
    table.add(signal, (), unit, doc + more, lambda: sim.parameter(field)[:, index], write)
