"""NumPy implementation of the solver stages, with one file per stage.

It is the readable reference for cuda_kernels/.
"""
