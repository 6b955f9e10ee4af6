"""Sticks and pedals of diggers as parts of block diagrams: a safety lever, arms' cylinders, a swing, tracks."""

from __future__ import annotations

from gpusim.control import Diagram

#: Sticks: share about the middle that gives nothing, and power of the rest. Change of a command, 1/s.
DEAD_ZONE, CURVE, RATE = 0.08, 1.6, 4.0
#: Stroke before a cylinder's end over which its lever does less, and what is left at the end, m.
BAND, MARGIN = 0.06, 0.01
#: Command up to which the overlap of a spool is made up for in proportion, and time until a swing is braked, s.
CROSSED, PATIENCE = 0.04, 0.6


def add_safety(d: Diagram, key: str = "Q") -> None:
    """A switch ``enable``: without it no lever does anything."""
    d.add("input", "enable", lower=0.0, upper=1.0, switch=True, keys=(key,))


def add_lever(d: Diagram, name: str, keys: tuple[str, str], axis: str = "", gain: float = 1.0) -> str:
    """An input from -1 to 1, right and forward above 0, that counts while the machine is enabled; the block of what it
    asks for, times ``gain``."""
    d.add("input", name, keys=keys, axis=axis, dead_zone=DEAD_ZONE, curve=CURVE, unit="-")
    d.connect("enable", d.add("switch", f"{name}_on")["on"])
    d.connect(name, d.add("gain", f"{name}_sense", gain=gain, unit="-"))
    d.connect(f"{name}_sense", f"{name}_on.a")
    d.connect(0.0, f"{name}_on.b")
    d.connect(f"{name}_on", d.add("rate_limiter", f"{name}_eased", rise=RATE))
    return f"{name}_eased"


def add_cylinder(d: Diagram, source: str, command: str, stroke: float, overlap: float) -> None:
    """A cylinder ``<command>_cylinder`` by its valve: less near its ends, where it stops MARGIN before them."""
    text = (
        "max(min(u, max(min((high - x) / band, 1), 0)), -max(min((x - low) / band, 1), 0))"
        .replace("high", repr(stroke - MARGIN)).replace("low", repr(MARGIN)).replace("band", repr(BAND))
    )  # fmt: skip
    d.connect(source, d.add("expression", f"{command}_soft", text=text, unit="-")["u"])
    d.connect(f"signal:cylinder.{command}_cylinder.position", f"{command}_soft.x")
    add_valve(d, f"{command}_soft", command, overlap)


def add_valve(d: Diagram, source: str, command: str, overlap: float) -> None:
    """A valve's command, with the overlap of its spool made up for."""
    points = (-1.0, -CROSSED, 0.0, CROSSED, 1.0)
    opened = [x + overlap * ((x > 0.0) - (x < 0.0)) for x in points]
    opened[0], opened[-1] = -1.0, 1.0
    d.connect(source, d.add("table", f"{command}_valve", x=points, y=opened, unit="-"))
    d.connect(f"{command}_valve", f"command:{command}")


def add_swing(d: Diagram, source: str, overlap: float) -> None:
    """The swing's valve, and its brake: on once the lever has rested for a while."""
    add_valve(d, source, "swing", overlap)
    d.connect(source, d.add("compare", "swing_moves", sign="!=", value=0.0)["a"])
    d.connect("swing_moves", d.add("logic", "swing_rests", operation="not"))
    transitions = [
        ["held", "free", "go"],
        ["free", "slows", "rest"],
        ["slows", "free", "go"],
        ["slows", "held", PATIENCE],
    ]
    d.add("state_machine", "swing_mode", states=["held", "free", "slows"], transitions=transitions)
    d.connect("swing_moves", "swing_mode.go")
    d.connect("swing_rests", "swing_mode.rest")
    d.connect("swing_mode.held", "command:swing_brake")
