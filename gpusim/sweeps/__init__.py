"""Sweeps: a scene with many values of its parameters, as worlds of few simulations."""
