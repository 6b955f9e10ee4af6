"""The control of the excavator as a block diagram: two sticks (ISO 10968's pattern), two pedals, a safety lever."""

from __future__ import annotations

from collections.abc import Mapping

from gpusim.control import Diagram
from gpusim.scenes._lever_control import add_cylinder, add_lever, add_safety, add_swing, add_valve


def excavator_control(strokes: Mapping[str, float], tracks: bool, overlap: float) -> Diagram:
    """Inputs: ``left_x`` swing, ``left_y`` stick, ``right_x`` bucket, ``right_y`` boom, pedals ``left_pedal`` and
    ``right_pedal``, ``enable``; all from -1 to 1.

    Args:
        strokes: of the cylinders, m.
        tracks: whether there are any.
        overlap: of the spools, share of their travel.
    """
    d = Diagram("cab")
    add_safety(d)
    levers = {
        "left_x": ("swing", ("D", "A"), "left x"), "left_y": ("stick", ("W", "S"), "left y"),
        "right_x": ("bucket", ("L", "J"), "right x"), "right_y": ("boom", ("I", "K"), "right y"),
    }  # fmt: skip
    for lever, (part, keys, axis) in levers.items():
        eased = add_lever(d, lever, keys, axis)
        if part in strokes:
            add_cylinder(d, eased, part, strokes[part], overlap)
        else:
            add_swing(d, eased, overlap)
    if tracks:
        for side, keys in (("left", ("F", "R")), ("right", ("G", "T"))):
            add_valve(d, add_lever(d, f"{side}_pedal", keys, ""), f"{side}_track", overlap)
    return d
