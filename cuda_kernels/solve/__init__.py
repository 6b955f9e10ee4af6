"""CUDA C++ sources of the stages that solve joints and contacts together, and that move the bodies."""
