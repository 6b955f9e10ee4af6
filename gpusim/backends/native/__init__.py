"""Native backend: the system's C++ compiler builds the kernels for the CPU."""
