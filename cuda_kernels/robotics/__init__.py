"""Inverse kinematics of trees; see gpusim.cuda_kernels."""
