"""Jacobians and inverse kinematics."""
