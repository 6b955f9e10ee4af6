"""Co-simulation: FMUs, hardware in the loop, poses over UDP, and ROS 2.

The functions import their libraries themselves, so this package needs none of them.
"""

from gpusim.cosim.fmu import write_fmu

__all__ = ["write_fmu"]
