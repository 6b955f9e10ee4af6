"""CUDA C++ sources of sensors, signals and writes."""
