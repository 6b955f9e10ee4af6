"""The native backend: the kernels built by the C++ compiler of the system."""
