"""Operator settings: range, safe value and operator behavior of an actuator command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UiHints:
    """Operator settings of one command, used by every panel, key, joystick and emergency stop.

    Attributes:
        lower, upper: range that the operator gets, in ``unit``, lower < upper.
        limited: clip every command to this range, as MuJoCo's ``ctrlrange`` does. False: the range only applies to the
            operator, and programs may exceed it.
        safe: value in an emergency stop, within the range. None: the current value of ``measured``, so that nothing
            moves.
        unit: unit of the command, e.g. "rad", or "-" for a fraction.
        switch: the command has only two values, ``lower`` (off) and ``upper`` (on).
        springs: a released joystick returns the command to zero (valves, motors). False: the command stays, and the
            joystick sets its rate of change (positions).
        idle: the command has no effect in this model, so panels may hide it.
        measured: signal, as in ``sim.read``, and its component that measures the current value, for ``safe``.
    """

    lower: float = -1.0
    upper: float = 1.0
    safe: float | None = 0.0
    unit: str = "-"
    switch: bool = False
    springs: bool = True
    idle: bool = False
    measured: tuple[str, int] | None = None
    limited: bool = True
