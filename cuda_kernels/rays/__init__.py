"""CUDA C++ sources of ray casts. Each shape kind has a file."""
