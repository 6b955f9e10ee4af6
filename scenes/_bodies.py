"""Mass properties, poses and plots shared by several scenes."""

from __future__ import annotations

import gpusim
from gpusim.scene import Plot

#: Rotation axis of all planar scenes (-y). Angles are in the x-z plane, positive from +x towards +z, or from -z towards
#: +x.
PLANE_AXIS = (0.0, -1.0, 0.0)

#: Axial moment of inertia of a thin rod, as a fraction of the transverse moment. The fraction must be positive, but has
#: no effect in planar motion.
AXIAL_RATIO = 0.01

Diagonal = tuple[float, float, float]


def thin_rod_inertia(mass: float, length: float, axis: str) -> Diagonal:
    """Return the inertia (kg m2) of a thin uniform rod along body axis "x", "y" or "z", about the rod's center."""
    transverse = mass * length**2 / 12.0
    ixx, iyy, izz = (AXIAL_RATIO * transverse if name == axis else transverse for name in "xyz")
    return ixx, iyy, izz


def box_inertia(mass: float, size: tuple[float, float, float]) -> Diagonal:
    """Return the inertia (kg m2) of a uniform box with edges ``size`` (m), about the box's center."""
    x2, y2, z2 = (edge**2 / 12.0 for edge in size)
    return mass * (y2 + z2), mass * (z2 + x2), mass * (x2 + y2)


def in_plane(x: float, z: float, angle: float = 0.0) -> gpusim.Transform:
    """Return a pose in the x-z plane: origin (x, 0, z), m, rotated by ``angle`` (rad) from +x towards +z."""
    return gpusim.Transform.from_axis_angle((x, 0.0, z), PLANE_AXIS, angle)


def cylinder_plots(label: str) -> list[Plot]:
    """Return plots of the chamber pressures and of the valve of a hydraulic cylinder."""
    pressures, valve = ([f"cylinder.{label}.{name}" for name in names]
                        for names in (("pressure_a", "pressure_b"), ("command", "spool")))  # fmt: skip
    return [
        Plot("Chamber pressures", "MPa", pressures, labels=["chamber A", "chamber B"], scale=1e-6),
        Plot("Valve", "-", valve, labels=["command", "spool"]),
    ]
