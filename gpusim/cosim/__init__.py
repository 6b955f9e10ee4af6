"""Co-simulation: FMUs, hardware in the loop, poses over UDP, and ROS 2.

Optional libraries are imported only when you call a function that needs them.
"""

from gpusim.cosim.clock import ClockReport, Spread, StepClock, run_clock
from gpusim.cosim.fmu import write_fmu
from gpusim.cosim.ros import RosBridge
from gpusim.cosim.udp import UdpPoses

__all__ = ["ClockReport", "RosBridge", "Spread", "StepClock", "UdpPoses", "run_clock", "write_fmu"]
