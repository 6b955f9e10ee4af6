"""Contact laws: normal force, damping and friction of a contact.

A contact law has four parts (Kosenko et al. 2015): geometry, normal force, damping and friction. The shapes define the
geometry. The user chooses normal force, damping and friction by name. A tire (:class:`Tire`) is also a contact law. Its
friction depends on the rolling direction of the wheel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpusim import validate
from gpusim.renamed import checks_old_names


@dataclass(frozen=True)
class Choice:
    """Option for one part of a contact law: name, number in the kernels, description, equation and publication."""

    name: str
    number: int
    doc: str
    equation: str
    source: str
    uses: tuple[str, ...] = ()
    """Parameters of ContactLaw that this choice reads."""
    needs: tuple[str, ...] = ()
    """Parameters of ContactLaw that this choice requires."""


def _socket(*choices: Choice) -> dict[str, Choice]:
    return {choice.name: choice for choice in choices}


NORMAL = _socket(
    Choice("rigid", 0, "no penetration, impacts by restitution", "0 <= F, 0 <= gap, F gap = 0", "Signorini 1933"),
    Choice(
        "hertz",
        1,
        "elastic bodies with a small round patch; default stiffness (N/m^1.5) from E* and the radii",
        "F = k d^(3/2), k = 4/3 E* sqrt(R)",
        "Hertz 1882; Johnson 1985, eq. 4.23",
        uses=("stiffness",),
    ),
    Choice(
        "volumetric",
        2,
        "elastic foundation: force proportional to the volume of the overlap; stiffness in N/m^3",
        "F = k V, V = pi d^2 (R - d/3)",
        "Johnson 1985, section 4.3; Gonthier et al. 2004",
        uses=("stiffness",),
        needs=("stiffness",),
    ),
    Choice(
        "spring",
        3,
        "linear, such as a tire in radial direction; stiffness in N/m",
        "F = k d",
        "Hooke 1678",
        uses=("stiffness",),
        needs=("stiffness",),
    ),
)
DAMPING = _socket(
    Choice("none", 0, "elastic", "F = F_n", ""),
    Choice(
        "linear",
        1,
        "damper parallel to the spring, N s/m; the force never pulls",
        "F = max(0, F_n + c d')",
        "Kelvin and Voigt",
        uses=("damping_coefficient",),
        needs=("damping_coefficient",),
    ),
    Choice(
        "hunt_crossley",
        2,
        "damping proportional to the elastic force, without a jump at touchdown; coefficient in s/m",
        "F = F_n max(0, 1 + c d')",
        "Hunt and Crossley 1975",
        uses=("damping_coefficient",),
        needs=("damping_coefficient",),
    ),
)
FRICTION = _socket(
    Choice("coulomb", 0, "sticks or slides, exact circular cone", "|F_t| <= mu F", "Coulomb 1785"),
    Choice(
        "regularized",
        1,
        "force proportional to the sliding speed below regularization_speed (m/s); never sticks",
        "F_t = -mu F v / max(|v|, v_r)",
        "Kosenko et al. 2015",
        uses=("regularization_speed",),
        needs=("regularization_speed",),
    ),
    Choice(
        "contensou",
        2,
        "spin of the patch reduces the friction against sliding",
        "F_t and M_n integrated over the patch of radius a, by default a = sqrt(R d)",
        "Contensou 1963; Zhuravlev 1998",
        uses=("patch_radius", "pressure"),
    ),
    Choice(
        "tire",
        3,
        "bristles in the wheel's frame deflect until they slide; only for wheel shapes",
        "F = C s/l (1 - theta + theta^2/3) if theta = |C s/l|/(3 mu F_n) < 1, else mu F_n; s' = v - |V| s/l",
        "Pacejka 2012, sections 3.2 and 7.2",
        uses=("slip_stiffness", "relaxation_length", "friction_ellipse", "rolling_resistance", "width"),
        needs=("slip_stiffness", "relaxation_length"),
    ),
)
PRESSURE = _socket(
    Choice("uniform", 0, "constant over the patch", "p = F/(pi a^2)", ""),
    Choice("hertz", 1, "pressure between two elastic bodies", "p = 3 F/(2 pi a^2) sqrt(1 - r^2/a^2)", "Hertz 1882"),
)
SOCKETS = {"normal": NORMAL, "damping": DAMPING, "friction": FRICTION, "pressure": PRESSURE}
FLOATS = (
    "stiffness", "damping_coefficient", "regularization_speed", "patch_radius", "rolling_resistance", "width",
)  # fmt: skip
PAIRS = ("slip_stiffness", "relaxation_length", "friction_ellipse")
"""Parameters that take two numbers: one along and one across the wheel."""
NUMBERS = (*SOCKETS, *FLOATS, *(f"{name}_{axis}" for name in PAIRS for axis in ("along", "across")))
"""Names of the values that :meth:`ContactLaw.numbers` returns, in order."""


@dataclass(frozen=True)
class ContactLaw:
    """Contact law: contact forces as functions of penetration and velocities.

    Args:
        normal: one of "rigid", "hertz", "volumetric" and "spring".
        damping: one of "none", "linear" and "hunt_crossley". "linear" and "hunt_crossley" need a soft normal law. Rigid
            contacts use the restitution of the material instead.
        friction: one of "coulomb", "regularized", "contensou" and "tire".
        stiffness: stiffness of the normal law: N/m^1.5 for "hertz", N/m^3 for "volumetric" and N/m for "spring". The
            default for "hertz" is 4/3 E* sqrt(R) from materials and shapes. "volumetric" needs a round shape. "hertz"
            also needs a round shape if you give no stiffness. The radius R is undefined between flat shapes.
        damping_coefficient: coefficient c of the damping law: N s/m for "linear" and s/m for "hunt_crossley".
        regularization_speed: sliding speed at which "regularized" friction reaches its full force, m/s.
        patch_radius: radius of the contact patch for "contensou", m. The default is sqrt(R d), with the radius R of
            relative curvature and the penetration depth d. With normal="rigid", "contensou" needs a ``patch_radius``.
        pressure: pressure distribution over the contact patch, "uniform" (default) or "hertz".
        slip_stiffness, relaxation_length, friction_ellipse, rolling_resistance, width: parameters of friction "tire".
            See :class:`Tire`. ``width`` needs normal="spring".

    Raises:
        ModelError: a name is unknown, or a parameter is missing, out of range, or unused by the chosen laws.
    """

    normal: str = "rigid"
    damping: str = "none"
    friction: str = "coulomb"
    stiffness: float | None = None
    damping_coefficient: float | None = None
    regularization_speed: float | None = None
    patch_radius: float | None = None
    pressure: str | None = None
    slip_stiffness: float | tuple[float, float] | None = None
    relaxation_length: float | tuple[float, float] | None = None
    friction_ellipse: float | tuple[float, float] | None = None
    rolling_resistance: float | None = None
    width: float | None = None

    def __post_init__(self) -> None:
        choices = [_choice(socket, getattr(self, socket)) for socket in ("normal", "damping", "friction")]
        if self.pressure is not None:
            _choice("pressure", self.pressure)
        self._check_parameters(choices)
        if self.normal == "rigid" and self.damping != "none":
            raise validate.fail(
                "ContactLaw",
                f"damping {self.damping!r} needs a soft normal law, not normal='rigid'",
                "give normal='hertz' or 'volumetric', or damping='none' and a Material's restitution",
            )
        if self.friction == "contensou" and self.normal == "rigid" and self.patch_radius is None:
            raise validate.fail(
                "ContactLaw",
                "friction 'contensou' with normal='rigid' needs a patch",
                "give patch_radius in m, or normal='hertz'",
            )
        if self.width is not None and self.normal != "spring":
            raise validate.fail(
                "ContactLaw",
                f"width needs normal='spring', not normal={self.normal!r}",
                "give normal='spring' and its stiffness (Tire: radial_stiffness), or leave width out",
            )

    def _check_parameters(self, choices: list[Choice]) -> None:
        """Check that all given parameters are valid, that the law uses them, and that no parameter is missing."""
        used = {name for choice in choices for name in choice.uses}
        for name in (*FLOATS, *PAIRS, "pressure"):
            value = getattr(self, name)
            if value is not None and name not in used:
                readers = [f"{s}={c.name!r}" for s, table in SOCKETS.items() for c in table.values() if name in c.uses]
                raise validate.fail(
                    "ContactLaw",
                    f"{name} has no effect with normal={self.normal!r}, damping={self.damping!r}, "
                    f"friction={self.friction!r}",
                    f"leave it out, or choose {' or '.join(readers)}",
                )
            if value is not None and name in FLOATS:
                object.__setattr__(self, name, validate.positive(type(self).__name__, name, value))
            if value is not None and name in PAIRS:
                object.__setattr__(self, name, _pair(type(self).__name__, name, value))
        for choice in choices:
            for name in choice.needs:
                if getattr(self, name) is None:
                    raise validate.fail("ContactLaw", f"{choice.name!r} needs {name}", f"give {name} ({choice.doc})")

    def numbers(self) -> tuple[int | float, ...]:
        """Return the values of NUMBERS for the kernels: first the number of each chosen law, then the parameters.

        Parameters that are not given are 0.0, and factors of the friction ellipse are 1.0.
        """
        codes = [SOCKETS[socket][getattr(self, socket) or "uniform"].number for socket in SOCKETS]
        pairs = [getattr(self, name) or (float(name == "friction_ellipse"),) * 2 for name in PAIRS]
        return (*codes, *(getattr(self, name) or 0.0 for name in FLOATS), *(x for pair in pairs for x in pair))

    def __str__(self) -> str:
        names = (*SOCKETS, *FLOATS, *PAIRS)
        arguments = [f"{name}={getattr(self, name)!r}" for name in names if getattr(self, name) is not None]
        return f"ContactLaw({', '.join(arguments)})"


class Tire(ContactLaw):
    """Contact law of a tire, for the material of a wheel shape, as in ``Material(friction=1.0, law=Tire(...))``.

    The tread is modeled as a brush: bristles transmit the force along and across the wheel (Pacejka 2012, chapter 3).
    The deflection s of the bristles follows ``s' = v - |V| s/l``, with the slip velocity v, the rolling speed V and the
    relaxation length l (section 7.2). At standstill the bristles act as springs, so a braked wheel does not creep. A
    tire can touch shapes of any kind.

    Args:
        slip_stiffness: slope of the force over the slip at small slip (N). Give one number, or a pair (along, across).
        relaxation_length: rolling distance in which the force responds to a change of slip (m). Give one number, or a
            pair (along, across).
        radial_stiffness: stiffness of the tire in radial direction, N/m, or None for a rigid wheel.
        radial_damping: damping of the tire in radial direction, N s/m.
        friction_ellipse: pair of factors that scale the friction coefficient of the materials along and across the
            wheel.
        rolling_resistance: rolling resistance torque / (radius * load). This value replaces the ``rolling_friction`` of
            the materials. The ``spinning_friction`` of the materials also applies to tires.
        width: tread width, m. If the width is positive, a leaning (cambered) wheel causes a torque.

    Raises:
        ModelError: a parameter is out of range, or a tire without radial stiffness has a width or radial damping.
    """

    def __init__(
        self,
        slip_stiffness: float | tuple[float, float],
        relaxation_length: float | tuple[float, float],
        radial_stiffness: float | None = None,
        radial_damping: float = 0.0,
        friction_ellipse: float | tuple[float, float] = 1.0,
        rolling_resistance: float = 0.0,
        width: float = 0.0,
    ) -> None:
        if radial_stiffness is not None:
            validate.positive("Tire", "radial_stiffness", radial_stiffness)
        for name, value in (("radial_damping", radial_damping), ("rolling_resistance", rolling_resistance)):
            validate.not_negative("Tire", name, value)
        validate.not_negative("Tire", "width", width)
        if radial_stiffness is None and (radial_damping != 0.0 or width != 0.0):
            raise validate.fail(
                "Tire",
                "radial_damping and width need a radial_stiffness",
                "give radial_stiffness in N/m, or leave both out",
            )
        super().__init__(
            normal="rigid" if radial_stiffness is None else "spring",
            damping="none" if radial_damping == 0.0 else "linear",
            friction="tire",
            stiffness=radial_stiffness,
            damping_coefficient=None if radial_damping == 0.0 else radial_damping,
            slip_stiffness=slip_stiffness,
            relaxation_length=relaxation_length,
            friction_ellipse=friction_ellipse,
            rolling_resistance=None if rolling_resistance == 0.0 else rolling_resistance,
            width=None if width == 0.0 else width,
        )


def _pair(element: str, name: str, value: Any) -> tuple[float, float]:
    """Return ``value`` as a pair of positive numbers. A single number counts for both directions."""
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise validate.fail(
                element, f"{name} has {len(value)} numbers", f"give one {name}, or two: along and across"
            )
        first, second = value
    else:
        first = second = value
    return validate.positive(element, name, first), validate.positive(element, name, second)


def _choice(socket: str, name: Any) -> Choice:
    table = SOCKETS[socket]
    validate.choice("ContactLaw", socket, name, table)
    return table[name]


ContactLaw.__init__ = checks_old_names(ContactLaw.__init__)  # type: ignore[method-assign]
Tire.__init__ = checks_old_names(Tire.__init__)  # type: ignore[method-assign]
