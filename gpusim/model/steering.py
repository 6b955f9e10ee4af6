"""What a person in front of a machine may do with a command of an actuator, and where the command is safe."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Steering:
    """How people move one command: every panel, key, stick and emergency stop goes by it.

    Attributes:
        lower, upper: least and greatest value that people are offered, in ``unit``, lower < upper.
        limited: a command beyond them acts as the nearest of them, whoever gives it, as with MuJoCo's ``ctrlrange``;
            False: they are an offer to people, and programs may give others.
        safe: value in an emergency stop, within the range; None: the value that ``measured`` has reached at that
            moment, so that nothing moves.
        unit: of the command, e.g. "rad"; "-" for a share.
        switch: the command has two values only, ``lower`` (off) and ``upper`` (on).
        springs: a stick that is let go brings the command back to zero (valves, motors); False: the command stays,
            and a stick moves it at a speed (positions).
        idle: the command changes nothing in this model, so nobody needs to see it.
        measured: signal, as in ``sim.read``, and component of it that tell the value that is reached, for ``safe``.
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
