"""NumPy implementation of the solver stages, one file each: the readable reference for cuda_kernels/."""
