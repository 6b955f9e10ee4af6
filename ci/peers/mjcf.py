"""Shared helpers for MJCF texts of benchmarks."""

from __future__ import annotations

from collections.abc import Iterable


def mjcf_text(bodies: str, elements: str, dt: float, options: str = "") -> str:
    """Return an MJCF model with angles in radians.

    Args:
        bodies: contents of ``<worldbody>``.
        elements: further elements, such as tendons and actuators.
        dt: step size (s).
        options: attributes of ``<option>``, in addition to time step and gravity.
    """
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="{dt}" gravity="0 0 -9.81" {options}/>'
        f"<worldbody>{bodies}</worldbody>{elements}</mujoco>"
    )


def numbers(vector: Iterable[float]) -> str:
    """Format numbers as the value of an attribute."""
    return " ".join(repr(float(x)) for x in vector)
