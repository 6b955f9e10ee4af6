"""CUDA C++ sources of contacts: pairs, records, laws and solvers."""
