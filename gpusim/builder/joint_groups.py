"""Choice of the joint solver (direct or colored) for each group of connected joints.

Joints with a common movable body are in one group. With ``SolverConfig(joint_solver="auto")``, the argument ``solver``
of the joints in a group determines the solver of the group. By default, a group uses the direct solver. Tracks use the
colored solver by default. A track is a closed ring of at least MIN_RING links with shapes and without actuators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gpusim import validate
from gpusim.compiler.groups import Groups
from gpusim.description.config import SolverConfig
from gpusim.description.specs import JointSpec
from gpusim.model.model import Model
from gpusim.typing import Array

SOLVERS = ("direct", "colored")
MIN_RING = 12


def check_solver(element: str, solver: str | None) -> None:
    """Raise a ModelError for an unknown joint solver."""
    if solver is not None:
        validate.choice(element, "solver", solver, SOLVERS)


def choose_solvers(model: Model, config: SolverConfig) -> tuple[Model, SolverConfig]:
    """Mark the constraints that the colored solver solves. Return the changed model and settings.

    Raises:
        ModelError: two joints of the same group have different values of ``solver``.
    """
    if config.joint_solver != "auto" or not model.topology.num_constraints:
        return model, config
    swept = swept_constraints(model)
    if swept.all():
        return model, replace(config, joint_solver="colored")
    return (model.with_swept(swept) if swept.any() else model), config


def swept_constraints(model: Model) -> Array:
    """Return a mask (constraints,) of the constraints that the colored solver solves."""
    t = model.topology
    swept = np.zeros(t.num_constraints, bool)
    for group in joint_groups(t.constraint_bodies, t.dynamic):
        asked = _solver_argument(model.joints[j] for c in group if (j := int(t.constraint_joint[c])) >= 0)
        swept[group] = asked == "colored" if asked else _is_track(model, group)
    for c in np.flatnonzero(t.hub_body >= 0):  # the empty constraint of a hub has the solver of the hub
        swept[c] = swept[(t.constraint_bodies == t.hub_body[c]).any(axis=1)].any()
    return swept


def joint_groups(bodies: Array, dynamic: Array) -> list[list[int]]:
    """Return groups of constraint indices. Two constraints with a common dynamic body are in the same group.

    Args:
        bodies: bodies of each constraint (constraints, slots).
        dynamic: mask of the dynamic bodies (bodies,).
    """
    groups = Groups()
    moving = [[int(b) for b in row if dynamic[b]] for row in bodies]
    for row in moving:
        for b in row[1:]:
            groups.join(row[0], b)
    found: dict[int, list[int]] = {}
    for c, row in enumerate(moving):
        found.setdefault(groups.root(row[0]) if row else -1 - c, []).append(c)
    return list(found.values())


def _solver_argument(joints: Iterable[JointSpec]) -> str:
    """Return the argument ``solver`` of the joints in a group, or an empty string if no joint sets ``solver``."""
    first: dict[str, JointSpec] = {}
    for joint in joints:
        if joint.solver is not None:
            first.setdefault(joint.solver, joint)
    if len(first) > 1:
        other = first["colored"]
        raise validate.fail(
            first["direct"].element,
            f'has solver="direct", but the connected {other.element} has solver="colored"',
            "give both joints the same solver, or remove one of the two",
        )
    return next(iter(first), "")


def _is_track(model: Model, group: list[int]) -> bool:
    t = model.topology
    if len(group) < MIN_RING or (t.constraint_joint[group] < 0).any():
        return False
    bodies, count = np.unique(t.constraint_bodies[group], return_counts=True)
    sides = t.constraint_bodies[group]
    ring = bodies.size == len(group) and bool((count == 2).all()) and bool(t.dynamic[sides].all())
    driven = [t.axis_row[g.axis] // t.block for g in model.groups if "evaluate" in g.type.kernel]
    free = not np.isin(np.concatenate([*driven, np.zeros(0)]), group).any()
    return ring and free and bool(np.isin(bodies, model.contact.body).all())
