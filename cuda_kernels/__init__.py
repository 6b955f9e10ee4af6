"""The stages of the step in CUDA C++; this package holds their sources as data."""
