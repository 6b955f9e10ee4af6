"""Colors of the lines of scopes."""

from __future__ import annotations

Rgba = tuple[float, float, float, float]

LINES: tuple[Rgba, ...] = (
    (0.36, 0.71, 0.94, 1.0),
    (0.95, 0.65, 0.18, 1.0),
    (0.25, 0.79, 0.60, 1.0),
    (0.93, 0.45, 0.40, 1.0),
    (0.82, 0.56, 0.78, 1.0),
    (0.94, 0.89, 0.36, 1.0),
    (0.62, 0.66, 0.98, 1.0),
    (0.80, 0.80, 0.80, 1.0),
)
"""Colors of scope lines, suitable for people with red-green color blindness."""
