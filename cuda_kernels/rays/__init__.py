"""Sources of the rays, one file for each kind of shape; see gpusim.cuda_kernels."""
