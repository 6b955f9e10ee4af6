"""SolverConfig: the settings of the step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.model import validate

MOST_REPEATS = 1_000_000
"""Of substeps and iterations: kernels count them in 32 bits."""

SCHEMES = ("second_order", "semi_implicit")
JOINT_SOLVERS = ("auto", "direct", "colored")
# A bit mask of 64 holds the colors that a body has used.
MOST_COLORS = 62


@dataclass(frozen=True)
class SolverConfig:
    """Settings of the step; all are checked when it is made. docs/guides/step_and_solver.md helps to choose them.

    Args:
        dt: step size, s; pairs of shapes and their contact points are found once a step.
        substeps: substeps of each step.
        iterations: sweeps over all colors (``"colored"``), or the greatest number of times that limits and
            friction may switch within a substep (``"direct"``, and twice for each axis); sweeps over contacts with
            either.
        epsilon: sweeps end early when no impulse changes by more than this, N s; 0 for never (those over contacts
            alone also end when they have converged to rounding).
        max_colors: colors of the colored solver, 1 to 62; constraints that fit none of them are solved together by
            Jacobi with mass splitting, first in each sweep.
        joint_solver: of all joints, "direct" (block LDL^T over each world's joint graph) or "colored" (sweeps by
            color); "auto": by groups of joints that hang together, what they ask for, and else directly but for
            tracks (:mod:`gpusim.model.joint_groups`).
        scheme: "second_order" (default) or "semi_implicit" (semi-implicit Euler with split impulses, as in the VirSim
            papers).
        geometric_stiffness: stiffen light links under tension where the step would be unstable.
        max_pairs: places in each world for pairs of shapes that are close to each other; None: a guess from the number
            of shapes. When they run out the rest does not collide, with a warning that tells the number to give.
        strict: raise an error instead of that warning.
        contact_margin: shapes nearer than this are looked at, m; what they can move in a step is added to it.
        contact_slop: overlap that is left as it is, m.
        push_speed: overlaps are taken back no faster than this, m/s, and by a fifth in each substep.

    Raises:
        ModelError: a value breaks a rule.
    """

    dt: float = 1e-3
    substeps: int = 1
    iterations: int = 8
    epsilon: float = 0.0
    max_colors: int = 32
    joint_solver: str = "auto"
    scheme: str = "second_order"
    geometric_stiffness: bool = True
    max_pairs: int | None = None
    strict: bool = False
    contact_margin: float = 0.005
    contact_slop: float = 1e-5
    push_speed: float = 1.0

    @property
    def direct(self) -> bool:
        """Whether joints are solved directly, all or some of them."""
        return self.joint_solver != "colored"

    def __post_init__(self) -> None:
        element = "SolverConfig"
        for name in ("substeps", "iterations", "max_colors", "max_pairs"):
            if isinstance(value := getattr(self, name), np.integer):  # numbers of NumPy are no numbers for ctypes
                object.__setattr__(self, name, int(value))
        object.__setattr__(self, "dt", validate.positive(element, "dt", self.dt))
        for name in ("substeps", "iterations"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise validate.fail(
                    element, f"{name} = {value!r} must be a whole number of at least 1", "give 1 or more"
                )
            if value > MOST_REPEATS:
                raise validate.fail(element, f"{name} is above {MOST_REPEATS}", "give less")
        if isinstance(self.max_colors, bool) or not isinstance(self.max_colors, int):
            raise validate.fail(
                element, f"max_colors = {self.max_colors!r} must be a whole number", f"give 1 to {MOST_COLORS}"
            )
        if not 1 <= self.max_colors <= MOST_COLORS:
            raise validate.fail(
                element, f"max_colors = {self.max_colors} is not within 1 to {MOST_COLORS}", f"give 1 to {MOST_COLORS}"
            )
        if self.max_pairs is not None and (
            isinstance(self.max_pairs, bool) or not isinstance(self.max_pairs, int) or self.max_pairs < 1
        ):
            raise validate.fail(
                element,
                f"max_pairs = {self.max_pairs!r} must be a whole number of at least 1",
                "give 1 or more, or None for a guess",
            )
        for name in ("epsilon", "contact_margin", "contact_slop"):
            object.__setattr__(self, name, validate.not_negative(element, name, getattr(self, name)))
        object.__setattr__(self, "push_speed", validate.positive(element, "push_speed", self.push_speed))
        for name, known in (("joint_solver", JOINT_SOLVERS), ("scheme", SCHEMES)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise validate.fail(element, f"{name} = {getattr(self, name)!r} is unknown", f"give one of {known}")


def work_dtype(dtype: str, config: SolverConfig, fast: bool) -> str:
    """Number type that a substep is worked out in, for a state of ``dtype``.

    The direct solver's equations lose all of float32's digits where masses differ by 1e7 or a loop is locked twice, so
    it works in float64 whatever the state is kept in, unless speed comes first (``fast``). Sweeps correct their own
    errors and stay in the state's type.
    """
    return "float64" if config.direct and not fast else dtype
