"""Arithmetic: vectors, rotations, SIMD lanes and the platform; see gpusim.cuda_kernels."""
