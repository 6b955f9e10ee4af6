"""CUDA C++ sources of joints: rows, laws, factorization and modes."""
