"""Contacts: pairs, records, laws and solvers; see gpusim.cuda_kernels."""
