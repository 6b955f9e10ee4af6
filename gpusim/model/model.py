"""Model: a finalized builder, shared by every simulation that runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gpusim.errors import unknown_name
from gpusim.model.actuator_kinds import Group
from gpusim.model.contact_topology import ContactTopology
from gpusim.model.digest import model_digest
from gpusim.model.elements import Elements
from gpusim.model.joint_kinds import Coordinate
from gpusim.model.rows import Axis
from gpusim.model.topology import Topology
from gpusim.typing import Array


@dataclass
class Model(Elements):
    """One world's topology and default parameters, plus how many worlds the builder asked for.

    ``parameters`` holds the arrays of fields.PARAMETER_FIELDS with one world; ``groups`` the actuators by
    kind; ``controls`` the column of every command in the control array; ``control_range`` (2, controls) the least and
    the greatest value that acts, infinite where a command has no limits; ``operator_commands`` the labels of those that
    are the operator's, which wildcards and panels offer.
    """

    topology: Topology
    contact: ContactTopology
    axes: list[Axis]
    coordinates: list[list[Coordinate]]
    angle_of: dict[tuple[int, int], int]
    groups: list[Group]
    controls: dict[str, int]
    default_controls: Array
    control_range: Array
    operator_commands: list[str]
    parameters: dict[str, Array]

    @cached_property
    def axis_of(self) -> dict[tuple[int, int], int]:
        """Axis row of each joint coordinate that has one, by joint and coordinate."""
        return {(axis.joint, axis.coordinate): k for k, axis in enumerate(self.axes) if axis.joint >= 0}

    @cached_property
    def digest(self) -> dict[str, str]:
        """Digest of each part, by which a kept state knows its model."""
        return model_digest(self, self.parameters["gravity"])

    def limited(self, commands: Array, columns: Any = slice(None)) -> Array:
        """Some columns of commands (num_worlds, controls) as they act: within their ranges; NaN stays."""
        acting: Array = np.clip(commands[:, columns], *self.control_range[:, columns])
        return acting

    def with_swept(self, swept: Array) -> Model:
        """The same model, with some constraints left to sweeps."""
        topology = replace(self.topology, swept=swept)
        return replace(self, topology=topology, contact=replace(self.contact, articulated=topology.articulated))

    def labels(self, kind: str) -> list[str]:
        """Labels of all bodies, joints, couplings, actuators, shapes, visuals, sites or sensors, by index."""
        lists = {
            "body": self.bodies,
            "joint": self.joints,
            "coupling": self.couplings,
            "actuator": self.actuators,
            "shape": self.shapes,
            "visual": self.visuals,
            "site": self.sites,
            "sensor": self.sensors,
        }
        if kind not in lists:
            raise unknown_name("element kind", kind, lists)
        return [element.label for element in lists[kind]]  # type: ignore[attr-defined]

    def index(self, kind: str, label: str) -> int:
        """Index of the element with a label.

        Raises:
            UnknownNameError: no such label; names the nearest known ones.
        """
        labels = self.labels(kind)
        if label not in labels:
            raise unknown_name(kind, label, labels)
        return labels.index(label)
