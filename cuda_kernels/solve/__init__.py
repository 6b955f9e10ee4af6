"""Stages that solve joints and contacts together, and move the bodies; see gpusim.cuda_kernels."""
