"""The native backend: the C++ compiler of the system builds the kernels."""
