"""Machine parts as macros over the model builder: suspensions, wheels, steering, hitches, omni and mecanum wheels."""

from gpusim.machines.linkage import Static
from gpusim.machines.omni_drive import OmniDrive, add_omni_drive
from gpusim.machines.omni_wheel import OmniWheel, add_omni_wheel
from gpusim.machines.parts import Arm, Coil, Hub, TieRod, TorsionBar
from gpusim.machines.steering import Hitch, SteeringRack, ackermann, add_steering_rack, add_trailer_hitch
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
from gpusim.machines.wheels import (
    DcMotor,
    DriveTrain,
    SpeedDrive,
    TorqueDrive,
    TurnDrive,
    Wheel,
    add_drive_train,
    add_wheel,
    spin_of,
)

__all__ = [
    "Arm",
    "Coil",
    "DcMotor",
    "DriveTrain",
    "Hitch",
    "Hub",
    "OmniDrive",
    "OmniWheel",
    "SpeedDrive",
    "Static",
    "SteeringRack",
    "Suspension",
    "TieRod",
    "TorqueDrive",
    "TorsionBar",
    "TurnDrive",
    "Wheel",
    "ackermann",
    "add_double_trailing_arm",
    "add_double_wishbone",
    "add_drive_train",
    "add_macpherson_strut",
    "add_omni_drive",
    "add_omni_wheel",
    "add_sliding_pillar",
    "add_steering_rack",
    "add_swing_axle",
    "add_trailer_hitch",
    "add_trailing_arm",
    "add_wheel",
    "lateral_tie_rod",
    "spin_of",
]
