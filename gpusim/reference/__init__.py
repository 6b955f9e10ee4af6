"""NumPy implementation of the solver stages, with one file per stage.

The NumPy code is the readable reference for cuda_kernels/.
"""
