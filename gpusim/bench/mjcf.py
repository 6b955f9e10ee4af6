"""What the MJCF texts of the benchmarks have in common: the frame of a model, and how numbers are written."""

from __future__ import annotations

from collections.abc import Iterable


def mjcf_text(bodies: str, rest: str, dt: float, options: str = "") -> str:
    """A model for MuJoCo, angles in radians.

    Args:
        bodies: what is in the world.
        rest: what stands beside it: tendons, actuators.
        dt: step size, s.
        options: attributes of ``<option>`` beside time step and gravity.
    """
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="{dt}" gravity="0 0 -9.81" {options}/>'
        f"<worldbody>{bodies}</worldbody>{rest}</mujoco>"
    )


def numbers(vector: Iterable[float]) -> str:
    """The numbers of an attribute."""
    return " ".join(repr(float(x)) for x in vector)
