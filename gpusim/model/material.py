"""Materials: what a contact needs to know of the two surfaces, and how two of them combine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from gpusim.model import validate
from gpusim.model.contact_law import ContactLaw

_NOT_NEGATIVE = ("friction", "rolling_friction", "spinning_friction")


@dataclass(frozen=True)
class Material:
    """Surface and bulk of a shape.

    Of two shapes in contact each of the three frictions is the geometric mean, the restitution the larger one
    (``combine``); ``add_collision_pair`` gives a pair a material of its own.

    Args:
        friction: coefficient of sliding friction, >= 0.
        rolling_friction: arm of the rolling resistance, m: its torque is at most this times the normal force.
        spinning_friction: arm of the torque against spin about the normal, m, likewise. The Contensou friction law
            has a spinning torque of its own.
        restitution: speed after a central impact over the speed before it, 0 to 1; for the rigid normal law.
        density: kg/m3, for bodies that take their mass from their shapes.
        young_modulus: Pa, for the Hertz normal law.
        poisson_ratio: above -1, below or at 0.5, for the Hertz normal law.
        law: how contacts of this material work; rigid with Coulomb friction if left out.

    Raises:
        ModelError: a value out of its range.
    """

    friction: float = 0.5
    rolling_friction: float = 0.0
    spinning_friction: float = 0.0
    restitution: float = 0.0
    density: float = 1000.0
    young_modulus: float = 1e7
    poisson_ratio: float = 0.3
    law: ContactLaw | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            name: validate.not_negative("Material", name, getattr(self, name)) for name in _NOT_NEGATIVE
        }
        checked["density"] = validate.positive("Material", "density", self.density)
        checked["young_modulus"] = validate.positive("Material", "young_modulus", self.young_modulus)
        checked["restitution"] = _within("restitution", self.restitution, 0.0, 1.0)
        checked["poisson_ratio"] = _within("poisson_ratio", self.poisson_ratio, -0.999, 0.5)
        if not isinstance(self.law, ContactLaw | None):
            raise validate.fail("Material", f"law {self.law!r} is no ContactLaw", "give gpusim.ContactLaw(...)")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def contact_modulus(self) -> float:
        """E* of Hertz, Pa: of two bodies of this material, E/(2 (1 - nu^2)); of ``combine``'s result, the pair's."""
        return self.young_modulus / (2.0 * (1.0 - self.poisson_ratio**2))


def _within(name: str, value: Any, lower: float, upper: float) -> float:
    number = validate.number("Material", name, value)
    if not lower <= number <= upper:
        raise validate.fail(
            "Material", f"{name} = {number:g} lies outside {lower:g} to {upper:g}", f"give a {name} between them"
        )
    return number


def contact_modulus(a: Material, b: Material) -> float:
    """Effective modulus of Hertz, Pa: 1/E* = (1 - nu_a^2)/E_a + (1 - nu_b^2)/E_b (Johnson 1985, eq. 4.20)."""
    return 1.0 / ((1.0 - a.poisson_ratio**2) / a.young_modulus + (1.0 - b.poisson_ratio**2) / b.young_modulus)


def combine(a: Material, b: Material, element: str = "Material") -> Material:
    """Material of a contact between ``a`` and ``b``; the order does not matter.

    The frictions are geometric means, restitution and density the larger ones, the law the one that is given.
    Young's modulus and Poisson's ratio are such that ``contact_modulus`` of the result is E* of the pair.

    Args:
        a, b: the two materials.
        element: how a message names the pair.

    Raises:
        ModelError: the two have different laws, so that neither is the pair's.
    """
    if a.law is not None and b.law is not None and a.law != b.law:
        raise validate.fail(
            element,
            f"the two materials have different contact laws, {a.law} and {b.law}",
            "give the pair a material with add_collision_pair(shape_a, shape_b, material=...), one law to both, or "
            "keep two that never meet apart with set_group_collision or exclude_collision_pair",
        )
    poisson = 0.5 * (a.poisson_ratio + b.poisson_ratio)
    return Material(
        friction=math.sqrt(a.friction * b.friction),
        rolling_friction=math.sqrt(a.rolling_friction * b.rolling_friction),
        spinning_friction=math.sqrt(a.spinning_friction * b.spinning_friction),
        restitution=max(a.restitution, b.restitution),
        density=max(a.density, b.density),
        young_modulus=2.0 * (1.0 - poisson**2) * contact_modulus(a, b),
        poisson_ratio=poisson,
        law=b.law if a.law is None else a.law,
    )
