"""Control of the excavator as a block diagram: two sticks (ISO 10968 pattern), two pedals, a safety lever."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.control import Diagram
from gpusim.scenes.machines._lever_control import add_cylinder, add_lever, add_safety, add_swing, add_valve


def excavator_control(strokes: Mapping[str, float], tracks: bool, overlap: float) -> Diagram:
    """Return the operator control of the excavator.

    Inputs range from -1 to 1. Right and forward are positive. A positive input ``left_x`` swings to the right,
    ``left_y`` extends the stick, ``right_x`` empties the bucket, and ``right_y`` lowers the boom. The other inputs are
    ``left_pedal``, ``right_pedal`` and the switch ``enable``.

    Args:
        strokes: strokes of the cylinders (m).
        tracks: True if the machine has tracks.
        overlap: overlap of the valve spools, as a fraction of the spool travel.
    """
    d = Diagram("cab")
    add_safety(d)
    levers = {
        "left_x": ("swing", ("A", "D"), "left_x"), "left_y": ("stick", ("S", "W"), "left_y"),
        "right_x": ("bucket", ("J", "L"), "right_x"), "right_y": ("boom", ("K", "I"), "right_y"),
    }  # fmt: skip
    for lever, (part, keys, axis) in levers.items():
        eased = add_lever(d, lever, keys, axis, -1.0)
        if part in strokes:
            add_cylinder(d, eased, part, strokes[part], overlap)
        else:
            add_swing(d, eased, overlap)
    if tracks:
        for side, keys in (("left", ("F", "R")), ("right", ("G", "T"))):
            add_valve(d, add_lever(d, f"{side}_pedal", keys), f"{side}_track", overlap)
    return d
