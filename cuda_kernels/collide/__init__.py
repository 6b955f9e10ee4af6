"""CUDA C++ sources of the narrow phase, as package data."""
