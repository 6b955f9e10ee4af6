"""CUDA C++ sources of actuator laws, as package data. Each kind has a file."""
