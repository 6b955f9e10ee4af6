"""Work arrays of contacts. The contact stages fill these arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpusim.description.config import SolverConfig
from gpusim.description.contact_fields import CARRIED_FIELDS, CONTACT_WORK_FIELDS
from gpusim.description.field import Field
from gpusim.model.fields import allocate
from gpusim.model.model import Model
from gpusim.model.paths import find_paths, island_nodes, path_sizes
from gpusim.reference.collide.shapes import model_shapes
from gpusim.typing import Array

# Values that kernels read from the state.
_BEFORE = tuple(
    Field(f"before_{f.name}", f.dims, f.kind, f.unit, f"{f.doc}, of the step before") for f in CARRIED_FIELDS
)
_OVER_WORLDS = (
    *(replace(f, dims=("worlds", *f.dims)) for f in CONTACT_WORK_FIELDS),
    *_BEFORE,
    Field("before_count", ("worlds",), "int", "-", "pairs of the step before"),
)


class ContactWork:
    """Work arrays of CONTACT_WORK_FIELDS (description/contact_fields.py), with shapes (num_worlds, ...).

    Attributes:
        sizes: array dimensions by name ("pairs", "shapes", ...).
        shapes: shapes of the model, as objects of collide/shapes.py.
        island_nodes: island node of each body (model/paths.py), (bodies + 1,).
        overflowed: number of pair buffer overflows, over all worlds and steps.
    """

    def __init__(self, model: Model, num_worlds: int, config: SolverConfig, real: Any) -> None:
        t = model.topology
        contacts = model.contact.sizes(config, t.dynamic)
        self.sizes = {
            "worlds": num_worlds,
            "bodies": t.num_bodies + 1,
            "block": t.block,
            **contacts,
            **path_sizes(model, contacts),
        }
        work_fields = tuple(f for f in _OVER_WORLDS if f.name in ContactWork.__annotations__)
        self.arrays = allocate(work_fields, self.sizes, np.dtype(real))
        self.shapes = model_shapes(model.contact)
        self.island_nodes = island_nodes(t, find_paths(t))
        self.overflowed = 0
        for name, array in self.arrays.items():
            setattr(self, name, array)

    @property
    def num_pairs(self) -> int:
        """Return the capacity of the pair buffer of each world."""
        return self.sizes["pairs"]

    # Arrays that the stages fill. Only NumPy uses the arrays.
    shape_position: Array
    shape_rotation: Array
    shape_margin: Array
    shape_lower: Array
    shape_upper: Array
    pair_start: Array
    pair_bend: Array
    pair_seam: Array
    manifold_color: Array
    color_first: Array
    color_member: Array
    body_colors: Array
    body_parts: Array
    part_start: Array
    part_side: Array
    touching: Array
    sweep_change: Array
    sweep_count: Array
    forward_only: Array
    substep: Array
    pushing: Array
    relaxing: Array
    before_count: Array
    before_pair_shapes: Array
    before_pair_points: Array
    before_pair_normal: Array
    before_pair_guess: Array
    before_pair_force: Array
    before_pair_torque: Array
    before_contact_feature: Array
    before_contact_impulse: Array
    before_contact_slip: Array
    before_contact_arm: Array
    before_contact_age: Array


def contact_work(model: Model, num_worlds: int, config: SolverConfig, real: Any) -> ContactWork | None:
    """Return the work arrays of contacts, or None if the capacity of the pair buffer is 0."""
    if not model.contact.capacity(config, model.topology.dynamic):
        return None
    return ContactWork(model, num_worlds, config, real)
