"""Sweeps: run a scene with many values of its parameters, as worlds of a few simulations."""
