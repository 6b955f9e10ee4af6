"""CUDA C++ sources of arithmetic: vectors, rotations, SIMD lanes and the platform."""
