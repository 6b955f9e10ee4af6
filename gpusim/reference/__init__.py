"""NumPy implementation of the solver stages, one file per stage.

It is the readable reference that cuda_kernels/ mirrors.
"""
