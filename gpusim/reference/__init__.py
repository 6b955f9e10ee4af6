"""The stages in NumPy, one file each: the readable statement of the algorithm, mirrored by cuda_kernels/."""
