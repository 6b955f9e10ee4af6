"""Machine parts as macros over the model builder: suspensions, omni and mecanum wheels."""

from gpusim.machines.linkage import Static
from gpusim.machines.omni_drive import OmniDrive, add_omni_drive
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

__all__ = [
    "Arm",
    "Coil",
    "Hub",
    "OmniDrive",
    "OmniWheel",
    "Static",
    "Suspension",
    "TieRod",
    "TorsionBar",
    "add_double_trailing_arm",
    "add_double_wishbone",
    "add_macpherson_strut",
    "add_omni_drive",
    "add_omni_wheel",
    "add_sliding_pillar",
    "add_swing_axle",
    "add_trailing_arm",
    "lateral_tie_rod",
]
