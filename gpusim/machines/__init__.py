"""Machine parts as macros over the model builder: suspensions, omni and mecanum wheels, tracks."""

from gpusim.machines.linkage import Static
from gpusim.machines.omni_wheel import OmniWheel, add_omni_wheel
from gpusim.machines.parts import Arm, Coil, Hub, TieRod, TorsionBar
from gpusim.machines.suspensions import (
    Suspension,
    add_double_trailing_arm,
    add_double_wishbone,
    add_macpherson_strut,
    add_sliding_pillar,
    add_swing_axle,
    add_trailing_arm,
)
from gpusim.machines.tie_rods import lateral_tie_rod
from gpusim.machines.track_parts import Idler, Pin, RoadWheel, Roller, Shoe, Sprocket, TorsionArm
from gpusim.machines.track_record import Track
from gpusim.machines.tracks import add_track

__all__ = [
    "Arm",
    "Coil",
    "Hub",
    "Idler",
    "OmniWheel",
    "Pin",
    "RoadWheel",
    "Roller",
    "Shoe",
    "Sprocket",
    "Static",
    "Suspension",
    "TieRod",
    "TorsionArm",
    "TorsionBar",
    "Track",
    "add_double_trailing_arm",
    "add_double_wishbone",
    "add_macpherson_strut",
    "add_omni_wheel",
    "add_sliding_pillar",
    "add_swing_axle",
    "add_track",
    "add_trailing_arm",
    "lateral_tie_rod",
]
