"""Signals of contacts: forces on bodies and shapes, number of contact points, penetration, and parameters."""

from __future__ import annotations

from gpusim.compiler.contact_topology import pairs_with_material
from gpusim.signals.runtime import Runtime
from gpusim.signals.signal import SignalTable
from gpusim.typing import Array

# Parameters of a surface: name of the signal -> unit and meaning.
_PARAMETERS = {
    "friction": ("-", "Coulomb's coefficient"),
    "rolling_friction": ("m", "torque of rolling friction divided by normal force"),
    "spinning_friction": ("m", "torque about the normal divided by normal force"),
    "restitution": ("-", "ratio of the speeds after and before an impact"),
}


def add_contact_signals(runtime: Runtime, table: SignalTable) -> None:
    """Add the contact signals of the simulation (``sim.contacts``, ...), bodies, shapes and collision pairs."""
    table.add("sim.contacts", (), "-", "contact points with force", lambda: runtime.contact_sums().points, forward=True)
    table.add(
        "sim.penetration",
        (),
        "m",
        "maximum penetration of rigid contacts, without tires and other soft contacts",
        lambda: runtime.contact_sums().penetration,
        forward=True,
    )
    for index, body in enumerate(runtime.model.bodies):
        _add_body(runtime, table, index, f"body.{body.label}.")
    for index, shape in enumerate(runtime.model.shapes):
        _add_shape(runtime, table, index, f"shape.{shape.label}.")
    shapes = runtime.model.shapes
    for row, pair in enumerate(pairs_with_material(runtime.model.pairs)):
        a, b = shapes[pair.shape_a].label, shapes[pair.shape_b].label
        _add_material(runtime, table, len(shapes) + row, f"pair.{a}.{b}.", "of the pair")
        for name in _PARAMETERS:
            table.by_name.also(f"pair.{a}.{b}.{name}", f"pair.{b}.{a}.{name}")


def _add_body(runtime: Runtime, table: SignalTable, index: int, prefix: str) -> None:
    table.add(
        prefix + "contact_force", (3,), "N", "force of all contacts on the body, world frame",
        lambda: runtime.contact_sums().body_force[:, index], forward=True,
    )  # fmt: skip
    table.add(
        prefix + "contact_torque", (3,), "N m", "torque of all contacts about the center of mass, world frame",
        lambda: runtime.contact_sums().body_torque[:, index], forward=True,
    )  # fmt: skip


def _add_shape(runtime: Runtime, table: SignalTable, index: int, prefix: str) -> None:
    table.add(
        prefix + "contact_force", (3,), "N", "force of all contacts on the shape, world frame",
        lambda: runtime.contact_sums().shape_force[:, index], forward=True,
    )  # fmt: skip
    table.add(
        prefix + "contacts", (), "-", "contact points with force",
        lambda: runtime.contact_sums().shape_points[:, index], forward=True,
    )  # fmt: skip
    _add_material(runtime, table, index, prefix, "value of this shape, before the combination with the other shape")


def _add_material(runtime: Runtime, table: SignalTable, column: int, prefix: str, whose: str) -> None:
    def add(signal: str, field: str, unit: str, doc: str) -> None:
        def write(worlds: Array, value: Array) -> None:
            runtime.write_parameter(field, column, worlds, value)

        parameter = field, (column,)
        table.add(signal, (), unit, doc, lambda: runtime.parameter(field)[:, column], write, parameter=parameter)

    for name, (unit, doc) in _PARAMETERS.items():
        add(prefix + name, f"shape_{name}", unit, f"{doc}; {whose}; may differ per world")
