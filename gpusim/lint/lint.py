"""``check_model``: all checks of a model in its start pose."""

from __future__ import annotations

from typing import Any

from gpusim.builder.builder import ModelBuilder
from gpusim.errors import ModelError
from gpusim.importers.report import Finding, ImportReport
from gpusim.lint.bodies import falling, implausible_inertia, mass_ratios, overlaps, thick_hulls
from gpusim.lint.joints import limits_in_degrees, open_loops, outside_limits, redundant_rows, stiff_gains
from gpusim.lint.subject import Subject

CHECKS = (
    outside_limits,
    limits_in_degrees,
    open_loops,
    redundant_rows,
    overlaps,
    mass_ratios,
    implausible_inertia,
    thick_hulls,
    stiff_gains,
    falling,
)


def check_model(builder: ModelBuilder, report: ImportReport | None = None, *, dt: float = 1e-3) -> list[Finding]:
    """Check a model for data that are valid but probably wrong.

    The checks find:

    * joints that start outside of their limits, joints that start with a gap, and limits that look like degrees
    * loops that cannot close, redundant constraints, and gains that are too stiff for the time step
    * shapes that overlap at the start, and convex hulls that are much larger than the drawn mesh
    * bodies that fall forever, large mass ratios at joints, and inertias that are implausible for the shapes of a body

    Args:
        builder: builder of the model. The function does not change the builder.
        report: report of the import. Overlaps in ``report.overlaps`` are not reported again.
        dt: time step of the simulation (s).

    Returns:
        The findings. The severity of a finding is "motion", "contact", or "info" (no effect on the simulation).

    Raises:
        ModelError: the model is invalid.
    """
    if not isinstance(builder, ModelBuilder):
        raise ModelError(f"check_model: {builder!r} is not a ModelBuilder; give a gpusim.ModelBuilder")
    subject: Any = Subject(builder, dt)
    for check in CHECKS:
        check(subject)
    known = set() if report is None else {frozenset(pair) for pair in report.overlaps}
    return [finding for finding in subject.findings if frozenset(finding.element.split("'")[1::2]) not in known]
