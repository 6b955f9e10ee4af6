"""Control of rtk_m as a block diagram: two sticks, a rocker, a driving stick, a slider for the outriggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpusim.control import Diagram
from gpusim.scenes.machines._lever_control import add_cylinder, add_lever, add_safety, add_swing

#: Tracks: speed at full stick and for turning on the spot, m/s, and acceleration limit, m/s2.
SPEED, SPIN_SPEED, ACCELERATION = 0.6, 0.4, 0.8
#: Outriggers: rate, m/s, and travel above which the machine does not drive, m.
OUTRIGGER_RATE, EXTENDED = 0.1, 0.01


def rescuer_control(
    strokes: Mapping[str, float],
    drives: Mapping[str, Sequence[str]],
    legs: Sequence[str],
    travel: float,
    sprocket_ratio: float,
) -> Diagram:
    """Return the operator control of the machine.

    Inputs range from -1 to 1. Right and forward are positive. A positive input ``left_x`` swings to the right,
    ``left_y`` extends the stick, ``right_x`` empties the bucket, and ``right_y`` lowers the boom. ``rocker`` moves the
    jib. ``ahead`` and ``aside`` drive the tracks. ``outriggers`` (m) sets the outriggers' travel. ``enable`` is a
    switch.

    Args:
        strokes: strokes of the cylinders (m).
        drives: names of the track commands on each side.
        legs: names of the outrigger commands.
        travel: maximum travel of the outriggers (m).
        sprocket_ratio: rotation of a sprocket per travel of the track, rad/m.
    """
    d = Diagram("cab")
    add_safety(d)
    levers = {
        "left_x": ("swing", ("A", "D"), "left_x"), "left_y": ("stick", ("S", "W"), "left_y"),
        "right_x": ("bucket", ("J", "L"), "right_x"), "right_y": ("boom", ("K", "I"), "right_y"),
        "rocker": ("jib", ("U", "O"), ""),
    }  # fmt: skip
    for lever, (part, keys, axis) in levers.items():
        eased = add_lever(d, lever, keys, axis, -1.0)
        if part in strokes:
            add_cylinder(d, eased, part, strokes[part], 0.0)
        else:
            add_swing(d, eased, 0.0)
    _add_outriggers(d, legs, travel)
    _add_tracks(d, drives, sprocket_ratio)
    return d


def _add_outriggers(d: Diagram, legs: Sequence[str], travel: float) -> None:
    """Add blocks that move all outriggers together."""
    d.add("input", "outriggers", lower=0.0, upper=travel, unit="m")
    d.add("sample_hold", "wanted").wire("outriggers", "enable")
    d.connect("wanted", d.add("rate_limiter", "lowered", rise=OUTRIGGER_RATE))
    d.connect("lowered", *(f"command:{leg}" for leg in legs), d.add("compare", "stands", value=EXTENDED)["a"])


def _add_tracks(d: Diagram, drives: Mapping[str, Sequence[str]], sprocket_ratio: float) -> None:
    """Add the track commands, which are the sum and the difference of two inputs."""
    add_lever(d, "ahead", ("DOWN", "UP"))
    add_lever(d, "aside", ("LEFT", "RIGHT"))
    for side, sign in (("left", "+"), ("right", "-")):
        text = f"0 if stands else {SPEED} * ahead {sign} {SPIN_SPEED} * aside"
        wish = d.add("expression", f"{side}_wish", text=text, unit="m/s")
        wish.wire(ahead="ahead_eased", aside="aside_eased", stands="stands")
        d.connect(f"{side}_wish", d.add("rate_limiter", f"{side}_speed", rise=ACCELERATION))
        d.connect(f"{side}_speed", d.add("gain", f"{side}_turns", gain=sprocket_ratio, unit="1/m"))
        d.connect(f"{side}_turns", *(f"command:{drive}" for drive in drives[side]))
