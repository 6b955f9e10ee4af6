"""Model: the result of ``finalize``. Several simulations can share a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.compiler.contact_topology import ContactTopology
from gpusim.compiler.rows import Axis
from gpusim.compiler.topology import Topology
from gpusim.description.actuator_kinds import Group
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import Coordinate
from gpusim.errors import unknown_name
from gpusim.model.digest import model_digest
from gpusim.typing import Array


@dataclass(repr=False)
class Model(Elements):
    """Topology and default parameters of one world.

    ``parameters`` contains the parameter arrays of one world (``fields.PARAMETER_FIELDS``). ``groups`` contains one
    group of actuators for each kind. ``controls`` maps each command to its column in the control array. ``control_map``
    contains the minimum, maximum, factor and offset of each command, (4, controls). ``operator_commands`` lists the
    commands that operator panels show. Wildcards match only these commands.
    """

    topology: Topology
    contact: ContactTopology
    axes: list[Axis]
    coordinates: list[list[Coordinate]]
    angle_of: dict[tuple[int, int], int]
    groups: list[Group]
    controls: dict[str, int]
    default_controls: Array
    control_map: Array
    operator_commands: list[str]
    parameters: dict[str, Array]

    @cached_property
    def axis_of(self) -> dict[tuple[int, int], int]:
        """Return a dict that maps each (joint, coordinate) with an axis row to the index of this row.

        The axis row is the constraint row for limits, friction and actuators of the coordinate.
        """
        return {(axis.joint, axis.coordinate): k for k, axis in enumerate(self.axes) if axis.joint >= 0}

    @cached_property
    def digest(self) -> dict[str, str]:
        """Return the digests of all parts of the model that affect simulation steps.

        Saved states contain these digests to identify the model.
        """
        return model_digest(self, self.parameters["gravity"])

    def acting(self, commands: Array, columns: Any = slice(None)) -> Array:
        """Clip commands (num_worlds, controls) to their limits, then apply factors and offsets. NaN stays NaN."""
        lower, upper, factor, offset = self.control_map[:, columns]
        acting: Array = factor * np.clip(commands[:, columns], lower, upper) + offset
        return acting

    def with_swept(self, swept: Array) -> Model:
        """Return a copy of the model in which the colored solver solves the constraints ``swept``."""
        topology = replace(self.topology, swept=swept)
        return replace(self, topology=topology, contact=replace(self.contact, articulated=topology.articulated))

    def labels(self, kind: str) -> list[str]:
        """Return the labels of all elements of a kind ("body", "joint", ...), in the order of their indices."""
        lists = {
            "body": self.bodies,
            "joint": self.joints,
            "coupling": self.couplings,
            "actuator": self.actuators,
            "shape": self.shapes,
            "visual": self.visuals,
            "site": self.sites,
            "sensor": self.sensors,
            "camera": self.cameras,
            "light": self.lights,
        }
        if kind not in lists:
            raise unknown_name("element kind", kind, lists)
        return [element.label for element in lists[kind]]  # type: ignore[attr-defined]

    def index(self, kind: str, label: str) -> int:
        """Return the index of the element of a kind with the label ``label``.

        Raises:
            UnknownNameError: no element has this label. The message lists similar labels.
        """
        labels = self.labels(kind)
        if not isinstance(label, str) or label not in labels:
            raise unknown_name(kind, str(label), labels)
        return labels.index(label)
