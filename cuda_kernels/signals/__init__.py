"""Sensors, signals and writes; see gpusim.cuda_kernels."""
