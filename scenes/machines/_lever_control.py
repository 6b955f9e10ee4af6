"""Blocks for control diagrams of diggers: safety lever, levers, arm cylinders, swing, valves."""

from __future__ import annotations

from gpusim.control import Diagram

#: Levers: dead zone as a fraction of the travel, exponent of the curve, and rate limit of a command, 1/s.
DEAD_ZONE, CURVE, RATE = 0.08, 1.6, 4.0
#: Distance over which a cylinder's command decreases to 0 near a stop, and distance from the stop at command 0, m.
BAND, MARGIN = 0.06, 0.01
#: Command from which the overlap compensation of a spool is complete; delay of the brake of a resting swing, s.
COMPENSATED, BRAKE_DELAY = 0.04, 0.6


def add_safety(d: Diagram, key: str = "Q") -> None:
    """Add a switch ``enable`` that enables all levers."""
    d.add("input", "enable", lower=0.0, upper=1.0, switch=True, keys=(key,))


def add_lever(d: Diagram, name: str, keys: tuple[str, str], axis: str = "", gain: float = 1.0) -> str:
    """Add a lever input from -1 to 1 (right and forward positive), which works only if the switch ``enable`` is on.

    Return the name of the block that outputs the rate-limited lever value times ``gain``.
    """
    d.add("input", name, keys=keys, axis=axis, dead_zone=DEAD_ZONE, curve=CURVE, unit="-")
    switch = d.add("switch", f"{name}_on")
    d.connect(name, d.add("gain", f"{name}_sense", gain=gain, unit="-"))
    switch.wire("enable", f"{name}_sense", 0.0)
    d.connect(f"{name}_on", d.add("rate_limiter", f"{name}_eased", rise=RATE))
    return f"{name}_eased"


def add_cylinder(d: Diagram, source: str, command: str, stroke: float, overlap: float) -> None:
    """Add the valve command of ``<command>_cylinder``. The command is reduced near both ends of the stroke."""
    text = (
        "max(min(u, max(min((high - x) / band, 1), 0)), -max(min((x - low) / band, 1), 0))"
        .replace("high", repr(stroke - MARGIN)).replace("low", repr(MARGIN)).replace("band", repr(BAND))
    )  # fmt: skip
    soft = d.add("expression", f"{command}_soft", text=text, unit="-")
    soft.wire(u=source, x=f"signal:cylinder.{command}_cylinder.position")
    add_valve(d, f"{command}_soft", command, overlap)


def add_valve(d: Diagram, source: str, command: str, overlap: float) -> None:
    """Add a valve command that compensates the overlap of the spool."""
    points = (-1.0, -COMPENSATED, 0.0, COMPENSATED, 1.0)
    commands = [x + overlap * ((x > 0.0) - (x < 0.0)) for x in points]
    commands[0], commands[-1] = -1.0, 1.0
    d.connect(source, d.add("lookup", f"{command}_valve", x=points, y=commands, unit="-"))
    d.connect(f"{command}_valve", f"command:{command}")


def add_swing(d: Diagram, source: str, overlap: float) -> None:
    """Add the swing's valve command and brake command. The brake engages with a delay after ``source`` becomes zero."""
    add_valve(d, source, "swing", overlap)
    d.connect(source, d.add("compare", "swing_moves", sign="!=", value=0.0)["a"])
    d.connect("swing_moves", d.add("logic", "swing_rests", operation="not"))
    transitions = [
        ["held", "free", "go"],
        ["free", "slows", "rest"],
        ["slows", "free", "go"],
        ["slows", "held", BRAKE_DELAY],
    ]
    mode = d.add("state_machine", "swing_mode", states=["held", "free", "slows"], transitions=transitions)
    mode.wire(go="swing_moves", rest="swing_rests")
    d.connect("swing_mode.held", "command:swing_brake")
