"""Joints: rows, factorization, modes and drift; see gpusim.cuda_kernels."""
