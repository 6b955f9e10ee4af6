"""CUDA C++ sources of inverse kinematics of trees."""
