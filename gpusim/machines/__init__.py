"""Functions that add vehicle and excavator parts: suspensions, wheels, steering, hitches, tracks, hydraulic arms."""

from gpusim.machines.arm_cylinders import (
    ArmCylinder,
    Drive,
    PowerPack,
    Spool,
    add_arm_cylinders,
    add_hydraulic_drive,
    add_power_pack,
)
from gpusim.machines.arms import BoomArm, Link, add_boom_arm, add_bucket_linkage
from gpusim.machines.carriages import CylinderJack, Outrigger, ServoJack, Swing, add_outrigger, add_swing
from gpusim.machines.holding import HoldingValve, Lowering
from gpusim.machines.linkage import Static
from gpusim.machines.omni_drive import OmniDrive, add_omni_drive
from gpusim.machines.omni_wheel import OmniWheel, add_omni_wheel
from gpusim.machines.parts import Arm, Coil, Hub, TieRod, TorsionBar
from gpusim.machines.planar_arm import ArmStatic, PointForce
from gpusim.machines.steering import Hitch, SteeringRack, add_steering_rack, add_trailer_hitch
from gpusim.machines.suspensions import (
    Suspension,
    add_double_trailing_arm,
    add_double_wishbone,
    add_macpherson_strut,
    add_sliding_pillar,
    add_swing_axle,
    add_trailing_arm,
)
from gpusim.machines.tie_rods import ackermann, lateral_tie_rod
from gpusim.machines.track_parts import Idler, Pin, RoadWheel, Roller, Shoe, Sprocket, TorsionArm
from gpusim.machines.track_record import Track
from gpusim.machines.tracks import add_track
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
    "ArmCylinder",
    "ArmStatic",
    "BoomArm",
    "Coil",
    "CylinderJack",
    "DcMotor",
    "Drive",
    "DriveTrain",
    "Hitch",
    "HoldingValve",
    "Hub",
    "Idler",
    "Link",
    "Lowering",
    "OmniDrive",
    "OmniWheel",
    "Outrigger",
    "Pin",
    "PointForce",
    "PowerPack",
    "RoadWheel",
    "Roller",
    "ServoJack",
    "Shoe",
    "SpeedDrive",
    "Spool",
    "Sprocket",
    "Static",
    "SteeringRack",
    "Suspension",
    "Swing",
    "TieRod",
    "TorqueDrive",
    "TorsionArm",
    "TorsionBar",
    "Track",
    "TurnDrive",
    "Wheel",
    "ackermann",
    "add_arm_cylinders",
    "add_boom_arm",
    "add_bucket_linkage",
    "add_double_trailing_arm",
    "add_double_wishbone",
    "add_drive_train",
    "add_hydraulic_drive",
    "add_macpherson_strut",
    "add_omni_drive",
    "add_omni_wheel",
    "add_outrigger",
    "add_power_pack",
    "add_sliding_pillar",
    "add_steering_rack",
    "add_swing",
    "add_swing_axle",
    "add_track",
    "add_trailer_hitch",
    "add_trailing_arm",
    "add_wheel",
    "lateral_tie_rod",
    "spin_of",
]
