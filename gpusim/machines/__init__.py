"""Machine parts as macros over the builder: suspensions, arms and their hydraulics, tracks, omni and mecanum wheels."""

from gpusim.machines.arm_cylinders import (
    ArmCylinder,
    Drive,
    HoldingValve,
    PowerPack,
    Spool,
    add_arm_cylinders,
    add_hydraulic_drive,
    add_power_pack,
)
from gpusim.machines.arms import BoomArm, Link, add_boom_arm, add_bucket_linkage
from gpusim.machines.carriages import CylinderJack, Outrigger, ServoJack, Swing, add_outrigger, add_swing
from gpusim.machines.linkage import Static
from gpusim.machines.omni_drive import OmniDrive, add_omni_drive
from gpusim.machines.omni_wheel import OmniWheel, add_omni_wheel
from gpusim.machines.parts import Arm, Coil, Hub, TieRod, TorsionBar
from gpusim.machines.planar_arm import ArmStatic, PointForce
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
    "ArmCylinder",
    "ArmStatic",
    "BoomArm",
    "Coil",
    "CylinderJack",
    "Drive",
    "HoldingValve",
    "Hub",
    "Idler",
    "Link",
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
    "Spool",
    "Sprocket",
    "Static",
    "Suspension",
    "Swing",
    "TieRod",
    "TorsionArm",
    "TorsionBar",
    "Track",
    "add_arm_cylinders",
    "add_boom_arm",
    "add_bucket_linkage",
    "add_double_trailing_arm",
    "add_double_wishbone",
    "add_hydraulic_drive",
    "add_macpherson_strut",
    "add_omni_drive",
    "add_omni_wheel",
    "add_outrigger",
    "add_power_pack",
    "add_sliding_pillar",
    "add_swing",
    "add_swing_axle",
    "add_track",
    "add_trailing_arm",
    "lateral_tie_rod",
]
