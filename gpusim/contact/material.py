"""Materials: surface and bulk properties of shapes, and the combination of two materials in a contact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.contact.law import ContactLaw
from gpusim.renamed import checks_old_names

_NOT_NEGATIVE = ("friction", "rolling_friction", "spinning_friction")
COMBINE = ("mean", "min", "multiply", "max")
"""Rules that combine the friction of two materials. If the materials have different rules, the later rule in this tuple
applies."""
GREATEST_PRIORITY = 1_000_000


@dataclass(frozen=True)
class Material:
    """Surface and bulk properties of a shape.

    For two shapes in contact, ``combine`` and ``priority`` determine the friction. The restitution of a contact is the
    maximum of both materials. Use ``add_collision_pair`` to set the material of one shape pair.

    Args:
        friction: coefficient of sliding friction, >= 0.
        rolling_friction: lever arm of the rolling resistance, m. The maximum torque is the lever arm times the normal
            force. If one of two materials has the lever arm 0, the lever arm of the other material applies.
        spinning_friction: lever arm of the friction torque about the contact normal, m. If one of two materials has the
            lever arm 0, the lever arm of the other material applies. With the Contensou friction law, the contact patch
            causes an additional torque.
        restitution: speed after a central impact divided by the speed before, 0 to 1, for the rigid normal law.
        density: kg/m3, for bodies without a given mass.
        young_modulus: modulus of elasticity for the Hertz normal law, Pa.
        poisson_ratio: Poisson's ratio for the Hertz normal law, -0.999 to 0.5.
        law: contact law of this material (default: rigid with Coulomb friction).
        combine: rule that combines the three friction values of two materials: "mean" (geometric), "min", "multiply" or
            "max". If the rules of both materials differ, the first of "max", "multiply", "min", "mean" applies. For
            rolling and spinning friction, "multiply" takes the geometric mean.
        priority: whole number from -1e6 to 1e6. If the priorities of both materials differ, the material with the
            higher priority defines all friction values, including values of 0.

    Raises:
        ModelError: a value is out of range.
    """

    friction: float = 0.5
    rolling_friction: float = 0.0
    spinning_friction: float = 0.0
    restitution: float = 0.0
    density: float = 1000.0
    young_modulus: float = 1e7
    poisson_ratio: float = 0.3
    law: ContactLaw | None = None
    combine: str = "mean"
    priority: int = 0

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            name: validate.not_negative("Material", name, getattr(self, name)) for name in _NOT_NEGATIVE
        }
        checked["density"] = validate.positive("Material", "density", self.density)
        checked["young_modulus"] = validate.positive("Material", "young_modulus", self.young_modulus)
        checked["restitution"] = _within("restitution", self.restitution, 0.0, 1.0)
        checked["poisson_ratio"] = _within("poisson_ratio", self.poisson_ratio, -0.999, 0.5)
        if not isinstance(self.law, ContactLaw | None):
            raise validate.fail("Material", f"law {self.law!r} is not a ContactLaw", "give gpusim.ContactLaw(...)")
        validate.choice("Material", "combine", self.combine, COMBINE)
        whole = isinstance(self.priority, int | np.integer) and not isinstance(self.priority, bool)
        if not whole or abs(self.priority) > GREATEST_PRIORITY:
            rule = f"priority = {validate.shown(self.priority)} is not a whole number within {GREATEST_PRIORITY}"
            raise validate.fail("Material", rule, "give a small whole number, such as 1")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def rule(self) -> int:
        """Return the code of the friction rule: 4 * priority + index of ``combine`` in COMBINE."""
        return 4 * int(self.priority) + COMBINE.index(self.combine)

    @property
    def contact_modulus(self) -> float:
        """Return Hertz's effective modulus E* = E/(2 (1 - nu^2)) of two shapes of this material (Pa)."""
        return self.young_modulus / (2.0 * (1.0 - self.poisson_ratio**2))


def _within(name: str, value: Any, lower: float, upper: float) -> float:
    number = validate.number("Material", name, value)
    if not lower <= number <= upper:
        raise validate.fail(
            "Material", f"{name} = {number:g} is not within {lower:g} to {upper:g}", f"give a {name} between them"
        )
    return number


def contact_modulus(a: Material, b: Material) -> float:
    """Return Hertz's effective modulus E* (Pa): 1/E* = (1 - nu_a^2)/E_a + (1 - nu_b^2)/E_b (Johnson 1985, eq. 4.20)."""
    return 1.0 / ((1.0 - a.poisson_ratio**2) / a.young_modulus + (1.0 - b.poisson_ratio**2) / b.young_modulus)


def combine(a: Material, b: Material, element: str = "Material") -> Material:
    """Return the material of a contact between materials ``a`` and ``b``, in any order.

    ``combine`` and ``priority`` determine the friction. Restitution and density are the maximum of both materials. If
    only one material has a contact law, this law applies. Young's modulus and Poisson's ratio of the result give the
    effective modulus E* of the contact (``contact_modulus``).

    Args:
        a, b: the two materials.
        element: name of the pair for error messages.

    Raises:
        ModelError: the two materials have different contact laws.
    """
    if a.law is not None and b.law is not None and a.law != b.law:
        raise validate.fail(
            element,
            f"the two materials have different contact laws, {a.law} and {b.law}",
            "give the pair a material with add_collision_pair(shape_a, shape_b, material=...), give both the same law, "
            "or call set_group_collision or exclude_collision_pair if they never touch",
        )
    poisson = 0.5 * (a.poisson_ratio + b.poisson_ratio)
    top, low = (a, b) if a.rule >= b.rule else (b, a)
    rule = "first" if top.priority > low.priority else top.combine
    return Material(
        friction=_friction(rule, top.friction, low.friction),
        rolling_friction=_arm(rule, top.rolling_friction, low.rolling_friction),
        spinning_friction=_arm(rule, top.spinning_friction, low.spinning_friction),
        restitution=max(a.restitution, b.restitution),
        density=max(a.density, b.density),
        young_modulus=2.0 * (1.0 - poisson**2) * contact_modulus(a, b),
        poisson_ratio=poisson,
        law=b.law if a.law is None else a.law,
        combine=top.combine,
        priority=top.priority,
    )


def _friction(rule: str, first: float, second: float) -> float:
    if rule == "mean":
        return math.sqrt(first * second)
    return {"first": first, "min": min(first, second), "multiply": first * second, "max": max(first, second)}[rule]


def _arm(rule: str, first: float, second: float) -> float:
    """Combine the lever arms of two materials for rolling or spinning friction."""
    if rule != "first" and (first == 0.0 or second == 0.0):
        return max(first, second)
    return _friction("mean" if rule == "multiply" else rule, first, second)


Material.__init__ = checks_old_names(Material.__init__)  # type: ignore[method-assign]
