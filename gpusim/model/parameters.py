"""Computation of derived parameters, and checks of parameters that the user writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.compiler.contact_topology import pairs_with_material
from gpusim.compiler.topology import Topology
from gpusim.description.joint_kinds import DISTANCE
from gpusim.model.model import Model
from gpusim.typing import Array


def derive(name: str, t: Topology, p: Mapping[str, Any], real: Any, xp: Any = np) -> Any:
    """Compute the derived array ``name`` (``fields.DERIVED_FIELDS``) from the parameters ``p``.

    ``xp`` is the array module: numpy or cupy. cupy does not support arrays that depend on the inertia.
    """
    if name == "body_gravity":
        acting = p["gravity_scale"][..., None] * p["gravity"][:, None, :]
        return xp.where(xp.asarray(t.dynamic[:, None]), acting, 0.0).astype(real)
    if name == "inverse_mass":
        return xp.where(xp.asarray(t.dynamic), 1.0 / p["mass"], 0.0).astype(real)
    if name == "system_inverse_mass":
        total = xp.zeros(p["mass"].shape, np.float64)
        for bodies in _one_of_each(t.systems):
            total[:, t.systems[bodies]] += p["mass"][:, bodies]
        return xp.where(xp.asarray(t.dynamic), 1.0 / total[:, t.systems], 0.0).astype(real)
    if name == "inertia":
        return p["inertia"].astype(real)
    if name == "inertia_inverse_body":
        return np.linalg.inv(p["inertia"]).astype(real)
    return np.asarray(np.linalg.eigvalsh(p["inertia"])[..., -1].astype(real))


def _one_of_each(systems: Array) -> list[Array]:
    """Return lists of bodies from different systems (groups of jointed bodies).

    List k contains the k-th body of each system with more than k bodies.
    """
    order = np.argsort(systems, kind="stable")
    rank = np.arange(order.size) - np.searchsorted(systems[order], systems[order])
    return [order[rank == k] for k in range(rank.max(initial=-1) + 1)]


DERIVED_FROM: dict[str, tuple[str, ...]] = {
    "body_gravity": ("gravity", "gravity_scale"), "inverse_mass": ("mass",), "system_inverse_mass": ("mass",),
    "inertia": ("inertia",), "inertia_inverse_body": ("inertia",), "inertia_largest": ("inertia",),
}  # fmt: skip
"""Derived field -> parameters from which it is computed."""


def derived_parameters(t: Topology, p: dict[str, Array], real: Any) -> dict[str, Array]:
    """Compute all derived arrays (``fields.DERIVED_FIELDS``) from the parameters ``p``."""
    return {name: derive(name, t, p, real) for name in DERIVED_FROM}


def refresh_derived(
    derived: dict[str, Array], name: str, worlds: Array, t: Topology, p: dict[str, Array], real: Any
) -> list[str]:
    """Recompute the derived arrays that depend on parameter ``name`` in ``worlds``, and return their names."""
    changed = [field for field, sources in DERIVED_FROM.items() if name in sources]
    for field in changed:
        if derived[field].shape[0] == p[name].shape[0]:
            # An array that all worlds share has one row.
            selected = {s: p[s][worlds] if p[s].shape[0] == p[name].shape[0] else p[s] for s in DERIVED_FROM[field]}
            derived[field][worlds] = derive(field, t, selected, real)
        else:
            derived[field] = derive(field, t, p, real)
    return changed


def check_parameter(model: Model, current: dict[str, Array], name: str, array: Array, column: Any) -> None:
    """Check a new parameter array (worlds, ...). Compare it with current parameters, such as the opposite limit."""
    if name in ("limit_lower", "limit_upper"):
        axis = model.axes[int(column)]
        if axis.joint >= 0 and model.coordinates[axis.joint][axis.coordinate].kind == DISTANCE:
            check_length(_axis(model, column), name, array[:, column])
        lower = array if name == "limit_lower" else current["limit_lower"]
        upper = array if name == "limit_upper" else current["limit_upper"]
        if np.any(lower[:, column] > upper[:, column]):
            raise validate.fail(
                _axis(model, column),
                "limit_lower would be above limit_upper",
                "write both in one sim.write_state, or a smaller range",
            )
    if name == "mass" and not np.all((array > 0.0) & (array <= validate.GREATEST)):
        rule = f"mass must be above zero and at most {validate.GREATEST:g} kg"
        raise validate.fail(_body(model, column), rule, "write a positive mass")
    if name == "inertia":
        for tensor in array[:, column]:
            validate.inertia(_body(model, column), tensor)
    if name in ("damping", "friction", "armature") and np.any(array < 0.0):
        raise validate.fail(_axis(model, column), f"{name} must not be negative", f"write {name} >= 0")
    if name == "limit_restitution" and np.any((array < 0.0) | (array > 1.0)):
        raise validate.fail(_axis(model, column), "limit_restitution is not within 0 to 1", "write 0 to 1")
    if name == "shape_restitution" and np.any(array > 1.0):
        raise validate.fail(_surface(model, column), "restitution is not within 0 to 1", "write 0 to 1")
    if name.startswith("shape_") and np.any(array < 0.0):
        raise validate.fail(_surface(model, column), f"{name[6:]} must not be negative", "write 0 or more")
    if name == "gravity" and not np.all(np.isfinite(array)):
        raise validate.fail("sim.gravity", "is not finite", "write three finite numbers")


def check_length(element: str, name: str, values: Array) -> None:
    """Raise a ModelError if a distance limit is negative. A lower limit of -inf means no limit."""
    wrong = values[(values < 0.0) & ~((name == "limit_lower") & np.isneginf(values))]
    if wrong.size:
        raise validate.fail(element, f"{name} = {wrong[0]:g} is a negative length", "write 0 or more")


def _body(model: Model, column: Any) -> str:
    return model.bodies[int(column)].element


def _surface(model: Model, column: Any) -> str:
    shapes = model.shapes
    if column < len(shapes):
        return shapes[int(column)].element
    pair = pairs_with_material(model.pairs)[int(column) - len(shapes)]
    return f"{shapes[pair.shape_a].element} and {shapes[pair.shape_b].element}"


def _axis(model: Model, column: Any) -> str:
    return f"joint '{model.axes[int(column)].label}'"
