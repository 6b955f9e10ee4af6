"""CUDA C++ sources of actuator laws, as package data. Each actuator kind has a file."""
