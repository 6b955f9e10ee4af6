"""CUDA C++ sources of the stages of a step, as package data."""
