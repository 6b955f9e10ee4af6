"""SolverConfig: the settings of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim import validate
from gpusim.renamed import NamesMoved, checks_old_names

MAX_REPEATS = 1_000_000
"""Upper bound of ``substeps`` and of ``iterations``. Kernels store both counts in 32-bit integers."""

SCHEMES = ("second_order", "semi_implicit")
JOINT_SOLVERS = ("auto", "direct", "colored")
# A 64-bit mask contains the colors that a body uses.
MAX_COLORS = 62


@dataclass(frozen=True)
class SolverConfig(NamesMoved):
    """Settings of the simulation step. docs/guides/step_and_solver.md helps you choose values.

    Args:
        dt: step size (s). Collision detection runs once per step.
        substeps: substeps per step.
        iterations: number of sweeps over the contacts per substep. With ``joint_solver="colored"``, sweeps include the
            joints. With ``joint_solver="direct"``, more ``iterations`` let joint limits (active, inactive) and dry
            friction (stick, slip) switch more often in a substep.
        impulse_tolerance: sweeps end early when no impulse changes by more than this value (N s). With
            ``joint_solver="direct"`` or ``"auto"``, sweeps also end early when all changes of impulses are below 1e-7
            times the largest normal impulse (float32: 3e-6).
        max_colors: maximum number of colors of the colored solver, 1 to 62. Constraints that get no color are solved at
            the start of each sweep, by Jacobi iteration with mass splitting.
        joint_solver: solver of all joints, "direct" (block LDL^T over each world's joint graph) or "colored" (sweeps by
            color). "auto" uses the attribute ``JointSpec.solver`` of connected joints. If this attribute is None,
            tracks use "colored", and other joints use "direct".
        scheme: integration scheme, "second_order" (default) or "semi_implicit" (semi-implicit Euler with split
            impulses, as in the VirSim papers).
        geometric_stiffness: increase the effective inertia of light bodies under tension if the step would otherwise be
            unstable.
        max_pairs: maximum number of pairs of close shapes per world, or None to estimate it from the number of shapes.
            If a world has more pairs, the additional pairs do not collide, and a warning gives the required value.
        strict: raise an error instead of a warning when ``max_pairs`` overflows.
        contact_margin: shapes closer than this distance (m) are candidates for contact. gpusim increases
            ``contact_margin`` by the distance that the shapes can move in a step.
        contact_slop: penetration that the solver does not correct (m).
        max_depenetration_speed: maximum speed (m/s) at which the solver separates overlapping shapes. Each substep
            corrects 20 % of the penetration.

    Raises:
        ModelError: a value is invalid.
    """

    dt: float = 1e-3
    substeps: int = 1
    iterations: int = 8
    impulse_tolerance: float = 0.0
    max_colors: int = 32
    joint_solver: str = "auto"
    scheme: str = "second_order"
    geometric_stiffness: bool = True
    max_pairs: int | None = None
    strict: bool = False
    contact_margin: float = 0.005
    contact_slop: float = 1e-5
    max_depenetration_speed: float = 1.0

    @property
    def direct(self) -> bool:
        """Return True if ``joint_solver`` is "direct" or "auto"."""
        return self.joint_solver != "colored"

    def __post_init__(self) -> None:
        element = "SolverConfig"
        for name in ("substeps", "iterations", "max_colors", "max_pairs"):
            if isinstance(value := getattr(self, name), np.integer):  # ctypes rejects NumPy integers
                object.__setattr__(self, name, int(value))
        object.__setattr__(self, "dt", validate.positive(element, "dt", self.dt))
        for name in ("substeps", "iterations"):
            validate.count(element, name, getattr(self, name), greatest=MAX_REPEATS)
        validate.count(element, "max_colors", self.max_colors, 1, MAX_COLORS)
        if self.max_pairs is not None and (
            isinstance(self.max_pairs, bool) or not isinstance(self.max_pairs, int) or self.max_pairs < 1
        ):
            raise validate.fail(
                element,
                f"max_pairs = {validate.shown(self.max_pairs)} must be a whole number of at least 1",
                "give 1 or more, or None for an estimate",
            )
        if self.max_pairs is not None and self.max_pairs >= 2**31:  # kernels count pairs in 32 bits
            raise validate.fail(element, f"max_pairs = {validate.shown(self.max_pairs)} is too large", "give fewer")
        for name in ("geometric_stiffness", "strict"):
            validate.flag(element, name, getattr(self, name))
        for name in ("impulse_tolerance", "contact_margin", "contact_slop"):
            object.__setattr__(self, name, validate.not_negative(element, name, getattr(self, name)))
        object.__setattr__(
            self,
            "max_depenetration_speed",
            validate.positive(element, "max_depenetration_speed", self.max_depenetration_speed),
        )
        for name, known in (("joint_solver", JOINT_SOLVERS), ("scheme", SCHEMES)):
            validate.choice(element, name, getattr(self, name), known)


SolverConfig.__init__ = checks_old_names(SolverConfig.__init__)  # type: ignore[method-assign]


def work_dtype(dtype: str, config: SolverConfig, fast: bool) -> str:
    """Return the floating-point type of the computations in a substep, for a state of type ``dtype``.

    Without ``fast``, the direct solver computes in float64. In float32, the direct solver is inaccurate for
    overconstrained loops and for mass ratios of 1e7.
    """
    return "float64" if config.direct and not fast else dtype
