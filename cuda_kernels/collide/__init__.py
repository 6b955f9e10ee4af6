"""The laws of the actuators in CUDA C++, one file for each kind; this package holds their sources as data."""
